"""What a pytest run was asked to judge, read from its options and checked before anything is started."""

from __future__ import annotations

import dataclasses
import os
import secrets
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from signet_conformance import targets
from signet_conformance.contract import version_document
from signet_conformance.errors import SignetConformanceError, UsageError, printable
from signet_conformance.outcome.coverage import percentage
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.scenarios.script import CONNECTOR_STEPS, Scenario, read_scenarios

DEFAULT_SESSIONS = 60
"""For a target whose profile names no number of its own."""
DEFAULT_SEED = 1
"""Fixed, so that a run says the same tomorrow; another one looks elsewhere."""
MOST_SESSIONS = 1_000_000
_OPENING = ("start", "resume")

_TARGETS = "NAME; signet-conformance targets lists them"
_DAEMONS = "embedded (or embedded:VERSION), the URL of a running daemon, or a command that starts one"


@dataclass(frozen=True, slots=True)
class Asked:
    """The kit's options. Recordings are judged when there are any; without them the target is driven.

    `folder` takes the traces of a driven run and, where `report` is set, the report.
    """

    target: targets.Target | None
    daemon: str
    recordings: Sequence[str]
    folder: Path
    report: bool
    strict: bool
    scenarios: tuple[Scenario, ...] = ()
    """Those of the files that were named; they stand in for the scripted ones."""
    sessions: int = 0
    sessions_of_target: bool = False
    """Whether the target's profile named that number, and not the command line."""
    seed: int = DEFAULT_SEED
    contract: str | None = None
    least_coverage: float | None = None
    known: KnownFailures = field(default_factory=KnownFailures.none)


def read_options(config: pytest.Config, taken: Sequence[str]) -> Asked:
    """Read the options of the controlling process.

    `taken` names the short options that the repository owns. Raises UsageError or TargetError when an
    option cannot be used. Without a report the folder is a new temporary one.
    """
    for short in taken:
        print(f"signet-conformance: this repository owns --{short}; use --signet-{short}", file=sys.stderr)
    spelt = {
        name: f"--signet-{name}" if name in taken else f"--{name}"
        for name in ("target", "daemon", "scenarios", "scenario")
    }
    name, daemon = _either(config, "target"), _either(config, "daemon")
    recordings: Sequence[str] = config.getoption("signet_trace")
    if name == "":
        raise UsageError("names no target", where=spelt["target"], remedy=f"{spelt['target']} {_TARGETS}")
    target = None if name is None else targets.load(name)
    if target is None and not recordings:
        raise UsageError(
            "no target is named",
            where="--signet-conformance",
            remedy=f"add {spelt['target']} {_TARGETS}",
        )
    if recordings and daemon is not None:
        raise UsageError("a recording needs no daemon", where="--signet-trace", remedy=f"leave {spelt['daemon']} out")
    if daemon is not None:
        _check_daemon(daemon, spelt["daemon"])
    for path in recordings:
        if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for a name that is too long
            raise UsageError("is no file", where=f"--signet-trace {printable(path)}", remedy="name a recorded trace")
    files = _files(config)
    sessions = _either(config, "scenarios")
    if recordings and (files or sessions is not None):
        short = spelt["scenario" if files else "scenarios"]
        raise UsageError("a recording performs no scenario", where="--signet-trace", remedy=f"leave {short} out")
    scenarios = _scenarios(files, spelt["scenario"])
    own = None if target is None else target.profile.get("sessions")
    default = 0 if files or recordings else DEFAULT_SESSIONS if own is None else int(own)
    asked_sessions = default if sessions is None else _whole(sessions, spelt["scenarios"], MOST_SESSIONS)
    report = config.getoption("signet_report")
    contract: str | None = config.getoption("signet_contract")
    if contract is not None:
        _check_version(contract, "--signet-contract")
    least: str | None = config.getoption("signet_coverage_fail_under")
    return Asked(
        target=target,
        daemon=daemon or ("embedded" if contract is None else f"embedded:{contract}"),
        contract=contract,
        least_coverage=None if least is None else percentage(least, "--signet-coverage-fail-under"),
        recordings=recordings,
        report=report is not None,
        strict=config.getoption("signet_strict"),
        scenarios=scenarios,
        sessions=asked_sessions,
        sessions_of_target=own is not None and sessions is None,
        seed=_seed(config.getoption("signet_seed")),
        known=_known(config),
        # Last: a run that cannot be used leaves no folder behind.
        folder=Path(tempfile.mkdtemp(prefix="signet-traces-")) if report is None else _fresh_folder(Path(report)),
    )


def read_worker_options(config: pytest.Config, folder: str) -> Asked:
    """Read the options of an xdist worker: what the controlling process has checked, and its folder."""
    name = _either(config, "target")
    target = None if name is None else targets.load(name)
    recordings: Sequence[str] = config.getoption("signet_trace")
    contract: str | None = config.getoption("signet_contract")
    known = _known(config, writing=False)
    return Asked(target, "", recordings, Path(folder), report=False, strict=False, contract=contract, known=known)


def _known(config: pytest.Config, *, writing: bool = True) -> KnownFailures:
    """The files of known failures, and unless `writing` is off the baseline that is to be written."""

    def given(name: str) -> str | None:
        value: str | None = config.getoption(f"signet_{name}")
        return value if writing or name in ("baseline", "flaky") else None

    known = KnownFailures.parse(
        given("baseline"),
        given("flaky"),
        given("write_baseline"),
        given("owner"),
        given("reason"),
        given("expires"),
        "--signet-",
    )
    # Asked to look past expected failures, pytest looks past known ones; a baseline is written all the same.
    return dataclasses.replace(known, files=()) if config.getoption("runxfail", default=False) else known


def _either(config: pytest.Config, name: str) -> str | None:
    long: str | None = config.getoption(f"signet_{name}")
    short: str | None = config.getoption(f"signet_short_{name}", default=None)
    return short if long is None else long


def _files(config: pytest.Config) -> Sequence[str]:
    return [*config.getoption("signet_scenario"), *config.getoption("signet_short_scenario", default=[])]


def _scenarios(files: Sequence[str], where: str) -> tuple[Scenario, ...]:
    """The scenarios of some files. Raises UsageError when two have one name: it is also that of the trace."""
    found: dict[str, Scenario] = {}
    for file in files:
        for scenario in read_scenarios(Path(file)):
            _demand_open_sessions(scenario, f"{where} {printable(file)}")
            if found.setdefault(scenario.name, scenario) != scenario:
                raise UsageError(
                    f"two scenarios are called {scenario.name}",
                    where=f"{where} {printable(file)}",
                    remedy="give one of them another name",
                )
    return tuple(found.values())


def _demand_open_sessions(scenario: Scenario, where: str) -> None:
    """Raise UsageError for a step in a session that is not open: no harness could perform it."""
    opened: set[str] = set()
    for index, step in enumerate(scenario.steps):
        if step["step"] not in CONNECTOR_STEPS:
            continue
        kind, session = step["step"], str(step["session"])
        if kind in _OPENING:
            opened.add(session)
        elif session not in opened:
            name = printable(session, 60)
            raise UsageError(
                f"scenario {scenario.name}, step {index}: a {kind} in session {name}, which is not open",
                where=where,
                remedy=f'put {{"step": "start", "session": "{name}"}} before it',
            )
        elif kind == "end":
            opened.discard(session)


def _seed(given: str | None) -> int:
    if given == "random":
        return secrets.randbelow(1 << 32)
    return DEFAULT_SEED if given is None else _whole(given, "--signet-seed", (1 << 64) - 1)


def _whole(given: str, where: str, limit: int) -> int:
    if not (given.isascii() and given.isdigit() and len(given) <= 20 and int(given) <= limit):
        raise UsageError(
            f"{printable(given, 40)!r} is no whole number from 0 to {limit}", where=where, remedy=f"such as {where} 200"
        )
    return int(given)


def _check_version(version: str, where: str) -> None:
    try:
        version_document(version)
    except SignetConformanceError as failure:
        failure.where = where
        raise


def _check_daemon(daemon: str, where: str) -> None:
    embedded, _, version = daemon.partition(":")
    if embedded == "embedded" and version:
        _check_version(version, where)
        return
    try:
        words = shlex.split(daemon)
    except ValueError as failure:
        raise UsageError(f"{printable(daemon)!r} is no command: {failure}", where=where, remedy=_DAEMONS) from None
    if not words:
        raise UsageError("is empty", where=where, remedy=_DAEMONS)


def _fresh_folder(folder: Path) -> Path:
    where = f"--signet-report {printable(folder)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError("is not empty", where=where, remedy="name a new folder; nothing is overwritten")
        # Trying beats asking: permissions are not all that can stand against writing.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as failure:
        problem = f"cannot be written: {failure.strerror}"
        raise UsageError(problem, where=where, remedy="name a folder of your own") from None
    return folder.resolve()
