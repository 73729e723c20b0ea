"""The options of a pytest run, as the kit reads them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from signet_conformance import targets
from signet_conformance.contract import requirements
from signet_conformance.errors import UsageError, printable
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.outcome.options import KnownOptions
from signet_conformance.running import request
from signet_conformance.running.request import Invocation, RunOptions, RunRequest
from signet_conformance.targets.face import with_faces
from signet_conformance.targets.real import HarnessChoice, options_for

_SHORT = ("target", "face", "daemon", "scenarios", "scenario")
_AS_GIVEN = (
    *("seed", "contract", "coverage_fail_under", "report", "profile", "strict"),
    *("allow_writes", "allow_default_port"),
)
"""Options that have the same name in pytest and in `run`."""
_OWN = "SIG-"
_TARGETS = "NAME; signet-conformance targets lists them"


def invocation(target: targets.Target, face: str | None) -> Invocation:
    """The pytest command that drives a target in the same harness, and in the same face if `face` chose it."""
    words = [
        word.replace("--", "--signet-", 1) if word.startswith("--") else word for word in options_for(target, face)
    ]
    return Invocation(("pytest", "--signet-conformance", "--signet-target", target.name, *words), "--signet-")


def chosen_face(config: pytest.Config) -> str | None:
    """The face that the user chose, or `all`; None for the target's own."""
    return _either(config, "face")


def read_options(config: pytest.Config, taken: Sequence[str]) -> Sequence[RunRequest]:
    """Read the options of the controlling process: a request, or several if every face is played.

    `taken` names the short options that the repository owns. Raises UsageError or TargetError when an
    option cannot be used. Without a report the folder is a new temporary one.
    """
    for short in taken:
        print(f"signet-conformance: this repository owns --{short}; use --signet-{short}", file=sys.stderr)

    def spelt(option: str) -> str:
        return f"--{option}" if option in _SHORT and option not in taken else f"--signet-{option}"

    _demand_requirements(config.getoption("signet_requirement"))
    name, daemon = _either(config, "target"), _either(config, "daemon")
    recordings: Sequence[str] = config.getoption("signet_trace")
    if name == "":
        raise UsageError("names no target", where=spelt("target"), remedy=f"{spelt('target')} {_TARGETS}")
    target = None if name is None else targets.load(name)
    if target is None and not recordings:
        remedy = f"add {spelt('target')} {_TARGETS}"
        raise UsageError("no target is named", where="--signet-conformance", remedy=remedy)
    files = [*config.getoption("signet_scenario"), *config.getoption("signet_short_scenario", default=[])]
    sessions = _either(config, "scenarios")
    if recordings:
        driving = {"face": chosen_face(config), "daemon": daemon, "scenario": files or None, "scenarios": sessions}
        _demand_recordings(recordings, [spelt(option) for option, given in driving.items() if given is not None])
    given = RunOptions(
        **{name: config.getoption(f"signet_{name}") for name in _AS_GIVEN},
        daemon=daemon,
        scenarios=sessions,
        files=files,
        every=config.getoption("signet_all"),
        known=_known_failures(config),
        harness=HarnessChoice(config.getoption("signet_harness"), config.getoption("signet_harness_version")),
    )
    if target is None or recordings:
        return (request.read_judging_request(given, target, spelt, recordings),)
    return request.read_requests(given, target, chosen_face(config), spelt)


def read_worker_options(config: pytest.Config, folders: Sequence[str]) -> Sequence[RunRequest]:
    """Read the options of an xdist worker, checked by the controlling process, with the folder of each run."""
    name = _either(config, "target")
    played = [None] if name is None else with_faces(targets.load(name), chosen_face(config), "--signet-face")
    recordings: Sequence[str] = config.getoption("signet_trace")
    judging = RunOptions(contract=config.getoption("signet_contract"), known=_known_failures(config, writing=False))
    return [
        RunRequest(folder=Path(folder), options=judging, target=target, recordings=recordings)
        for target, folder in zip(played, folders, strict=True)
    ]


def _demand_recordings(recordings: Sequence[str], driving: Sequence[str]) -> None:
    """Raise UsageError for an option that only a driven run has, and for a recording that is not a file."""
    for option in driving:
        problem = "a recording needs no daemon" if option.endswith("daemon") else "a recording performs no scenario"
        problem = "a recording names the face in which it was made" if option.endswith("face") else problem
        raise UsageError(problem, where="--signet-trace", remedy=f"leave {option} out")
    for path in recordings:
        if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for a name that is too long
            raise UsageError("is not a file", where=f"--signet-trace {printable(path)}", remedy="name a recorded trace")


def _demand_requirements(ids: Sequence[str]) -> None:
    """Raise UsageError for an id in the kit's own name that it does not have; other rules are the repository's."""
    for name in ids:
        if name.startswith(_OWN) and name not in requirements():
            raise UsageError(
                f"no requirement is called {printable(name, 60)!r}",
                where="--signet-requirement",
                remedy=f"list the nearest: signet-conformance explain {printable(name, 60)}",
            )


def _known_failures(config: pytest.Config, *, writing: bool = True) -> KnownFailures:
    """The files of known failures, and unless `writing` is off the baseline that is to be written."""

    def text_option(name: str) -> str | None:
        value: str | None = config.getoption(f"signet_{name}")
        return value if writing or name in ("baseline", "flaky") else None

    named = KnownOptions(**{name: text_option(name) for name in KnownOptions.__struct_fields__})
    known = KnownFailures.parse(named, "--signet-")
    # With --runxfail, known failures count as failures, but a baseline is still written.
    return msgspec.structs.replace(known, files=()) if config.getoption("runxfail", default=False) else known


def _either(config: pytest.Config, name: str) -> str | None:
    long: str | None = config.getoption(f"signet_{name}")
    short: str | None = config.getoption(f"signet_short_{name}", default=None)
    return short if long is None else long
