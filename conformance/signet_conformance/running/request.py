"""The request of a run: the options of a command line or of pytest, checked before any process starts."""

from __future__ import annotations

import fcntl
import itertools
import os
import secrets
import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from signet_conformance import targets
from signet_conformance.children.temporary import kept_folder
from signet_conformance.contract import version_document
from signet_conformance.errors import SignetConformanceError, UsageError, os_errors, printable
from signet_conformance.files import shown_path
from signet_conformance.outcome.conclusion import Terms
from signet_conformance.outcome.coverage import percentage
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.outcome.options import Declarations
from signet_conformance.running.daemon import EMBEDDED, demand_consent
from signet_conformance.running.default_port import demand_free
from signet_conformance.running.progress import RunNote, Tell
from signet_conformance.running.stopwatch import Stopwatch
from signet_conformance.targets.face import find_face, with_faces
from signet_conformance.targets.files import connector_release
from signet_conformance.targets.real import HarnessChoice, with_harness

if TYPE_CHECKING:
    from signet_conformance.scenarios.scenario import Scenario

DEFAULT_SESSIONS = 60
"""Generated sessions of a target whose profile gives no number."""
DEFAULT_SEED = 1
"""Fixed, so that two runs perform the same sessions."""
MOST_SESSIONS = 1_000_000
_DAEMONS = "embedded (or embedded:VERSION), the URL of a running daemon, or a command that starts one"

Spelling = Callable[[str], str]
"""Returns the spelling of an option in messages, such as `--signet-seed` for `seed`."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The command that drives a target: its `words`, and the `prefix` of option names."""

    words: tuple[str, ...]
    prefix: str = "--"

    def command(self, *options: tuple[str, str]) -> str:
        """Return the command with these options, quoted for a shell."""
        return shlex.join([*self.words, *(word for name, value in options for word in (self.prefix + name, value))])


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run as the user gave them; None, or empty, for an option left out."""

    daemon: str | None = None
    scenarios: str | None = None
    """The number of generated sessions."""
    files: Sequence[str] = ()
    """Files of scenarios."""
    seed: str | None = None
    contract: str | None = None
    coverage_fail_under: str | None = None
    report: str | None = None
    strict: bool = False
    only: frozenset[str] | None = None
    every: bool = False
    """Whether selected requirements are judged over every scenario that can decide them, also after a breach."""
    known: KnownFailures = field(default_factory=KnownFailures)
    allow_writes: bool = False
    allow_default_port: bool = False
    harness: HarnessChoice = field(default_factory=HarnessChoice)
    profile: bool = False
    """Whether to report the time of each part of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A request to judge recordings: those in `folder`, or the named ones.

    `options` are the user's, checked. Without a target, the recordings hold the declarations of theirs.
    """

    folder: Path
    options: RunOptions = field(default_factory=RunOptions)
    target: targets.Target | None = None
    recordings: Sequence[str] = ()
    least_coverage: float | None = None
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    @property
    def report(self) -> bool:
        """Whether the folder takes a report in every format."""
        return self.options.report is not None

    def terms(self) -> Terms:
        """Return the terms by which the run is judged."""
        target = self.target
        # The traces of a driven run hold the target's declarations.
        declared = Declarations()
        if target is not None and self.recordings:
            declared = Declarations(profile=target.declared_of_recordings, name=target.name)
        return Terms(
            only=self.options.only,
            contract=self.options.contract,
            strict=self.options.strict,
            least_coverage=self.least_coverage,
            known=self.options.known,
            target=None if target is None else target.name,
            declared=declared,
            connector=None if target is None else connector_release(target),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivenRequest(RunRequest):
    """A run that can be performed.

    `folder` takes its traces and, with a report, that and the scenarios that show a breach. `sessions` is the number of
    generated sessions, which `seed` determines. Scripted scenarios that decide no selected requirement are left out.
    """

    target: targets.Target
    daemon: str = EMBEDDED
    scenarios: tuple[Scenario, ...] = ()
    """From the files of the options; performed in place of the scripted ones."""
    sessions: int = 0
    seed: int = DEFAULT_SEED
    spelt: Spelling = "--{}".format
    """How the reader of a message writes an option."""

    @property
    def sessions_of_target(self) -> bool:
        """Whether the number is from the target's profile, not from the user."""
        return self.target.profile.sessions is not None and self.options.scenarios is None

    @property
    def stops_early(self) -> bool:
        """Whether the run ends once each selected requirement is breached."""
        return self.options.only is not None and not self.options.every and self.least_coverage is None

    def demand_consent(self, tell: Tell) -> None:
        """Report the workspace of a daemon at an address. Raises UsageError unless the run may write to it."""
        demand_consent(
            self.daemon,
            lambda words: tell(RunNote(words)),
            allowed=self.options.allow_writes,
            option=self.spelt("allow-writes"),
        )
        # Consent to write to a daemon also covers one at the default port.
        allowed = self.options.allow_default_port or self.options.allow_writes
        note = demand_free(allowed=allowed, option=self.spelt("allow-default-port"))
        if note is not None:
            tell(RunNote(note))

    def describe_host(self, option: str) -> str:
        """Describe the host release that is played and newer known ones, or the real one; empty without a host.

        `option` is the option that chooses another one.
        """
        target = self.target
        if target.real is not None:
            return f"the real {target.real.program.name} {target.real.release}"
        return find_face(target).describe(option, target.day) if target.kind.has_face else ""

    def words(self, option: str) -> Sequence[str]:
        """Describe the generated sessions and the host that is played; `option` is as for `describe_host`."""
        why = " (this target's own number: --scenarios N performs N)" if self.sessions_of_target else ""
        words = [f"{self.sessions} generated sessions{why}, seed {self.seed}"] if self.sessions else []
        return [*words, f"in {printable(host, 600)}"] if (host := self.describe_host(option)) else words

    def replay(self, scenario: Path, invocation: Invocation) -> str:
        """Return the command that performs a saved scenario again, with a path from the current folder."""
        return self._command(invocation, ("scenario", shown_path(scenario)))

    def replay_sessions(self, invocation: Invocation) -> str:
        """Return the command that performs the generated sessions again."""
        return self._command(invocation, ("scenarios", str(self.sessions)), ("seed", str(self.seed)))

    def _command(self, invocation: Invocation, *options: tuple[str, str]) -> str:
        daemon = () if self.daemon == EMBEDDED else (("daemon", self.daemon),)
        command = invocation.command(*daemon, *options)
        if self.options.allow_default_port:
            command += f" {invocation.prefix}allow-default-port"
        return f"{command} {invocation.prefix}allow-writes" if self.options.allow_writes and daemon else command


def read_judging_request(
    given: RunOptions, target: targets.Target | None, spelt: Spelling, recordings: Sequence[str]
) -> RunRequest:
    """Check the options of judging recordings; UsageError and the folder are as for a run."""
    # No sessions are generated here, but an unusable seed is reported as for a run.
    _seed(given.seed, spelt("seed"))
    return RunRequest(
        options=given,
        target=target,
        recordings=recordings,
        least_coverage=_least_coverage(given, spelt),
        stopwatch=Stopwatch(detailed=given.profile),
        folder=_folder(given, spelt),
    )


def read_request(given: RunOptions, target: targets.Target, spelt: Spelling) -> DrivenRequest:
    """Check the options of a run. Without a report the folder is a new temporary one.

    Raises UsageError for an option that cannot be used, by the name that `spelt` returns.
    """
    if given.daemon is not None:
        check_daemon(given.daemon, spelt("daemon"))
    return DrivenRequest(
        options=given,
        target=target,
        daemon=given.daemon or (EMBEDDED if given.contract is None else f"{EMBEDDED}:{given.contract}"),
        scenarios=_scenarios(given.files, spelt("scenario")),
        sessions=_sessions(given, target.profile.sessions, spelt),
        least_coverage=_least_coverage(given, spelt),
        seed=_seed(given.seed, spelt("seed")),
        spelt=spelt,
        stopwatch=Stopwatch(detailed=given.profile),
        # Last: a run that cannot be used leaves no folder behind.
        folder=_folder(given, spelt),
    )


def read_requests(
    given: RunOptions, target: targets.Target, face: str | None, spelt: Spelling
) -> Sequence[DrivenRequest]:
    """Check the options of a run, for each host release that `face` chooses.

    With several, each report has a folder of its own below the given one, and each face is compared with its own known
    failures. Raises TargetError for a face that cannot be played, UsageError for a baseline of several.
    """
    driven = with_harness(target, given.harness, spelt("harness"))
    if driven.real is not None and face is not None:
        raise UsageError(
            "a face applies only to a harness that the kit plays",
            where=spelt("face"),
            remedy=f"leave it, or {spelt('harness')}, out",
        )
    played = with_faces(driven, face, spelt("face"))
    if len(played) == 1:
        alone = (
            given if driven.real is not None or not played[0].kind.has_face else _of_face(given, played[0], alone=True)
        )
        return (read_request(alone, played[0], spelt),)
    if given.known.new_baseline is not None:
        raise UsageError(
            "one file cannot be written by several runs",
            where=spelt("write-baseline"),
            remedy=f'name one face, and add its name to the entries as their "face"; {spelt("baseline")} takes them',
        )
    report = None if given.report is None else _fresh_folder(Path(given.report), spelt("report"))
    folders = [None if report is None else str(report / find_face(each).name) for each in played]
    return [
        read_request(replace(_of_face(given, each, alone=False), report=folder), each, spelt)
        for each, folder in zip(played, folders, strict=True)
    ]


def _of_face(given: RunOptions, played: targets.Target, *, alone: bool) -> RunOptions:
    return replace(given, known=given.known.of_face(find_face(played).name, alone=alone))


def worst(statuses: Sequence[int]) -> int:
    """Return the exit status of several runs: not all judged (4) comes before a breach (1), then no test (3)."""
    return next((status for status in (4, 1, 3) if status in statuses), max(statuses, default=0))


def _least_coverage(given: RunOptions, spelt: Spelling) -> float | None:
    """Check the options of judging; return the percentage of the contract that must be exercised."""
    if given.contract is not None:
        _check_version(given.contract, spelt("contract"))
    least = given.coverage_fail_under
    return None if least is None else percentage(least, spelt("coverage-fail-under"))


def _sessions(given: RunOptions, own: int | None, spelt: Spelling) -> int:
    # A run that is narrowed down to scenarios or requirements generates no sessions.
    if given.scenarios is not None:
        return _parse_whole_number(given.scenarios, spelt("scenarios"), MOST_SESSIONS)
    if given.files or given.only is not None:
        return 0
    return DEFAULT_SESSIONS if own is None else own


def _scenarios(files: Sequence[str], where: str) -> tuple[Scenario, ...]:
    # Two different scenarios of one name are refused: the name is also that of the trace.
    if not files:
        return ()
    # Imported late: scenarios import pydantic, which a run over recordings does not need.
    from signet_conformance.scenarios.scenario import demand_open_sessions, read_scenarios

    by_name: dict[str, Scenario] = {}
    for file in files:
        for scenario in read_scenarios(Path(file)):
            demand_open_sessions(scenario, f"{where} {printable(file)}")
            if by_name.setdefault(scenario.name, scenario) != scenario:
                raise UsageError(
                    f"two scenarios are called {scenario.name}",
                    where=f"{where} {printable(file)}",
                    remedy="give one of them another name",
                )
    return tuple(by_name.values())


def _seed(given: str | None, where: str) -> int:
    if given == "random":
        return secrets.randbelow(1 << 32)
    return DEFAULT_SEED if given is None else _parse_whole_number(given, where, (1 << 64) - 1)


def _parse_whole_number(given: str, where: str, limit: int) -> int:
    if not (given.isascii() and given.isdigit() and len(given) <= 20 and int(given) <= limit):
        raise UsageError(
            f"{printable(given, 40)!r} is not a whole number from 0 to {limit}",
            where=where,
            remedy=f"write a whole number, such as {where} 200",
        )
    return int(given)


def _check_version(version: str, where: str) -> None:
    try:
        version_document(version)
    except SignetConformanceError as failure:
        failure.where = where
        raise


def check_daemon(daemon: str, where: str) -> None:
    """Raise UsageError, which names the option `where`, for a daemon that cannot be launched."""
    embedded, _, version = daemon.partition(":")
    if embedded == EMBEDDED and version:
        _check_version(version, where)
        return
    try:
        words = shlex.split(daemon)
    except ValueError as failure:
        raise UsageError(f"{printable(daemon)!r} is not a command: {failure}", where=where, remedy=_DAEMONS) from None
    if not words:
        raise UsageError("is empty", where=where, remedy=_DAEMONS)


def _folder(given: RunOptions, spelt: Spelling) -> Path:
    return kept_folder("signet-traces-") if given.report is None else _fresh_folder(Path(given.report), spelt("report"))


def _fresh_folder(folder: Path, option: str) -> Path:
    where = f"{option} {printable(folder)}"
    with os_errors("cannot be written", where=where, remedy="name a folder of your own"):
        folder.mkdir(parents=True, exist_ok=True)
        if not _claim(folder):
            raise UsageError(
                "another run writes its report there", where=where, remedy=f"name another: {option} {_free(folder)}"
            )
        if any(folder.iterdir()):
            remedy = f"nothing is overwritten, name a new folder: {option} {_free(folder)}"
            raise UsageError("is not empty", where=where, remedy=remedy)
        # Try to write: permissions alone do not show whether it works.
        with tempfile.TemporaryFile(dir=folder):
            pass
    return folder.resolve()


_claimed: dict[tuple[int, int], int] = {}
"""The folders that this process claimed, by device and number, each with its locked descriptor."""


def _claim(folder: Path) -> bool:
    """Claim a folder for as long as this process lives. Return False if another process has done so."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    about = os.fstat(descriptor)
    place = (about.st_dev, about.st_ino)
    if place in _claimed:
        os.close(descriptor)
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as failure:
        os.close(descriptor)
        # Some file systems know no locks.
        return not isinstance(failure, BlockingIOError)
    _claimed[place] = descriptor
    return True


def _free(folder: Path) -> str:
    """Return an unused name for a folder beside this one, quoted for a shell."""
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
    return printable(shlex.quote(str(next(path for path in numbered if not path.exists()))), 400)
