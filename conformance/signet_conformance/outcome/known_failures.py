"""Known failures: a baseline names each with owner, reason and expiry; a flaky list stands apart from it.

A FAIL or WARN that an entry covers does not fail the run; an entry for a WARN covers no FAIL. An entry fails the run if
its requirement passes again, or if its last day has passed. Each accepted failure is logged in a file beside the
baseline.
"""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from signet_conformance.contract import requirements
from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import UsageError, os_errors, printable
from signet_conformance.files import create_file, read_json
from signet_conformance.finding import COVERABLE, FOLDING_ORDER, Judgement, Verdict
from signet_conformance.outcome.options import DEFAULT_DAYS, KnownOptions
from signet_conformance.rules import run_rules

if TYPE_CHECKING:
    from signet_conformance.outcome.baseline_documents import Entry

UNNAMED = "unnamed"
"""The target of a recording that names none."""
EVERY_TARGET = "*"
"""In an entry of a baseline: whichever target was run."""
Verdicts = Mapping[str, Mapping[str, Verdict]]
"""Target to requirement to verdict: the worst over the target's traces."""


class KnownFailures(Struct, frozen=True):
    """The known failures in the files that a command line names, and the `new_baseline` that it asks for.

    `owner`, `reason` and `expires` describe the new entries. An entry expires when its last day is before `today`.
    """

    files: Sequence[KnownFailureFile] = ()
    new_baseline: str | None = None
    owner: str = ""
    reason: str = ""
    expires: date = date.max
    today: date = field(default_factory=lambda: datetime.now(UTC).date())

    @classmethod
    def parse(cls, given: KnownOptions, prefix: str = "--") -> KnownFailures:
        """Read the options and the files; raise UsageError for one that cannot be used.

        `prefix` comes before the names of options in messages.
        """
        if given.write_baseline is None and not (given.owner is given.reason is given.expires is None):
            raise UsageError(
                f"{prefix}owner, {prefix}reason and {prefix}expires describe entries that are written",
                remedy=f"add {prefix}write-baseline FILE",
            )
        if given.write_baseline is not None and not (given.reason and given.reason.strip()):
            raise UsageError(
                "a known failure needs a reason",
                where=f"{prefix}write-baseline",
                remedy=f"{prefix}reason 'why it may stand'",
            )
        if given.write_baseline is not None and os.path.lexists(given.write_baseline):
            raise UsageError(
                "exists already", where=given.write_baseline, remedy="choose another name: nothing is replaced"
            )
        files = [] if given.baseline is None else [read_known(given.baseline, f"{prefix}baseline")]
        files += [] if given.flaky is None else [read_known(given.flaky, f"{prefix}flaky", flaky=True)]
        until = _expiry(given.expires, f"{prefix}expires")
        owner = (given.owner or "").strip() or user_name()
        return cls(files, given.write_baseline, owner, (given.reason or "").strip(), until)

    def of_face(self, face: str, *, alone: bool) -> KnownFailures:
        """The entries for a run in one face of the target's harness, which is `alone` if the run has no other face."""
        return replace(self, files=[file.of_face(face, alone=alone) for file in self.files])

    def reasons(self, target: str, verdicts: Mapping[str, Verdict]) -> dict[str, str]:
        """The requirements whose verdict at a target an entry in force lets pass, each with the entry in words."""
        # Of several entries for a requirement, the first one counts.
        return {
            entry.requirement: f"{entry.owner}, until {entry.expires.isoformat()}: {entry.reason}"
            for file in reversed(self.files)
            for entry in reversed(file.entries)
            if covers(entry, target, verdicts.get(entry.requirement)) and entry.expires >= self.today
        }

    def in_run(self, verdicts: Verdicts) -> KnownInRun:
        """Match the entries of the files with the verdicts of a run, without those of targets that did not run."""
        covered: dict[tuple[str, str], tuple[KnownFailureFile, Entry]] = {}
        stale: list[tuple[KnownFailureFile, Entry]] = []
        expired: list[tuple[KnownFailureFile, Entry]] = []
        for file in self.files:
            for entry in file.entries:
                ran = [target for target in verdicts if entry.target in (target, EVERY_TARGET)]
                if not ran:
                    continue
                now = {target: verdicts[target].get(entry.requirement) for target in ran}
                if entry.expires < self.today:
                    expired.append((file, entry))
                    continue
                failing = [target for target, verdict in now.items() if verdict in COVERABLE]
                for target in failing:
                    if covers(entry, target, now[target]):
                        covered.setdefault((entry.requirement, target), (file, entry))
                # Only a PASS shows that it is fixed: what was not tested or not decided may still fail.
                may_fail_elsewhere = file.flaky or (file.several_faces and entry.face is None)
                if not may_fail_elsewhere and not failing and Verdict.PASS in now.values():
                    stale.append((file, entry))
        return KnownInRun(covered, stale, expired)

    def write_audit(self, known: KnownInRun, verdicts: Verdicts) -> None:
        """Write a line for each accepted failure. Raises UsageError when that is not possible."""
        from signet_conformance.outcome.baseline_documents import AuditLine

        when, who = datetime.now(UTC).isoformat(timespec="seconds"), user_name()
        for (requirement, target), (file, entry) in known.covered.items():
            line = AuditLine(
                format="signet-audit/1",
                when=when,
                who=who,
                what="flaky" if file.flaky else "override",
                requirement=requirement,
                target=target,
                verdict=verdicts[target][requirement],
                why=entry.reason,
                owner=entry.owner,
                expires=entry.expires,
            )
            _append(audit_path(file.path), f"{json.dumps(line.to_json())}\n")

    def write(self, verdicts: Verdicts) -> str | None:
        """Write the baseline of a run with these verdicts, if it was asked for. Return a line about it, or None."""
        if self.new_baseline is None:
            return None
        entries = entries_for(verdicts, self.owner, self.reason, self.today, self.expires)
        with os_errors("cannot be written", where=self.new_baseline, remedy="name a new file of your own"):
            create_file(Path(self.new_baseline), [baseline_document(entries).encode()])
        return f"baseline: {len(entries)} known in {printable(self.new_baseline, 400)}, until {self.expires}"


def by_target(
    judged: Sequence[JudgedTrace], target: str | None, over_all: Mapping[str, Judgement]
) -> dict[str, dict[str, Verdict]]:
    """The verdicts of a run by target. If a `target` is named, they are those over all recordings (`over_all`)."""
    if target is not None:
        # Generated sessions decide too, and most of them leave no trace.
        return {_target_name(target): {name: judgement.verdict for name, judgement in over_all.items()}}
    by_name: dict[str, dict[str, Verdict]] = {}
    for each in judged:
        verdicts = by_name.setdefault(target_of(each, None), {})
        for name, verdict in each.verdicts.items():
            verdicts[name] = min(verdicts.get(name, verdict), verdict, key=FOLDING_ORDER.index)
    # A rule over the whole run gives each of its targets the same verdict.
    over_run = {name: judgement.verdict for name, judgement in over_all.items() if name in run_rules()}
    for verdicts in by_name.values():
        verdicts.update(over_run)
    return by_name


def target_of(judged: JudgedTrace, target: str | None) -> str:
    """The target whose known failures count for a judged trace."""
    return _target_name(target or judged.trace.header.target or "")


def _target_name(target: str) -> str:
    named = target.strip()
    # No recording may have the name that means every target.
    return UNNAMED if named in ("", EVERY_TARGET) else named


def failing_text(known: KnownInRun) -> str:
    """The entries that fail a run, counted, such as `1 stale and 2 expired entries`; empty if no entry does."""
    groups = (("stale", known.stale), ("expired", known.expired))
    counts = " and ".join(f"{len(entries)} {word}" for word, entries in groups if entries)
    return f"{counts} {'entry' if len(known.stale) + len(known.expired) == 1 else 'entries'}" if counts else ""


def _expiry(text: str | None, where: str) -> date:
    today = datetime.now(UTC).date()
    if text is None:
        return today + timedelta(days=DEFAULT_DAYS)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.min
    if day < today:
        raise UsageError(
            f"{printable(text, 40)!r} is past, or is not a date",
            where=where,
            remedy=f"write it like {today.isoformat()}",
        )
    return day


def user_name() -> str:
    """The system's name of the current user."""
    try:
        return getpass.getuser().strip() or "unknown"
    except (OSError, KeyError):
        return "unknown"


def _append(path: Path, line: str) -> None:
    remedy = "keep the baseline in a writable folder: the kit logs accepted failures there"
    with os_errors("cannot be written", where=str(path), remedy=remedy), path.open("a", encoding="utf-8") as stream:
        stream.write(line)


class KnownFailureFile(Struct, frozen=True):
    """A file of entries. Entries of a `flaky` file are never stale, because their requirements sometimes pass.

    With `several_faces`, an entry that names no face is never stale either: its requirement may fail in another face.
    """

    path: str
    entries: Sequence[Entry]
    flaky: bool = False
    several_faces: bool = False

    def of_face(self, face: str, *, alone: bool) -> KnownFailureFile:
        """The entries that apply to a run in a face, which is `alone` if no other face is run."""
        entries = [entry for entry in self.entries if entry.face in (None, face)]
        return replace(self, entries=entries, several_faces=not alone)


class KnownInRun(Struct, frozen=True):
    """The known failures among the verdicts of a run, and the entries that fail it.

    `covered` has each failure, by requirement and target, with the entry that lets it pass.
    """

    covered: Mapping[tuple[str, str], tuple[KnownFailureFile, Entry]] = field(default_factory=dict)
    stale: Sequence[tuple[KnownFailureFile, Entry]] = ()
    expired: Sequence[tuple[KnownFailureFile, Entry]] = ()

    @property
    def fails(self) -> bool:
        """Whether an entry itself fails the run."""
        return bool(self.stale or self.expired)


def covers(entry: Entry, target: str, verdict: Verdict | None) -> bool:
    """Whether an entry applies to a target, and accepts a verdict of its requirement there."""
    return entry.target in (target, EVERY_TARGET) and verdict in (Verdict.WARN, entry.verdict)


def read_known(path: str, option: str = "--baseline", *, flaky: bool = False) -> KnownFailureFile:
    """Read the baseline, or the flaky list, that an option names.

    Raises UsageError naming the file, the entry and the wrong member.
    """
    from signet_conformance.files.documents import demand
    from signet_conformance.outcome.baseline_documents import Baseline, FlakyList

    where = f"{option} {printable(path, 400)}"
    data = read_json(path, f"write one with {option.rpartition('-')[0]}-write-baseline FILE", where=where)
    return KnownFailureFile(path, demand(FlakyList if flaky else Baseline, data, where).entries, flaky)


def entries_for(verdicts: Verdicts, owner: str, reason: str, created: date, expires: date) -> list[Entry]:
    """An entry for each FAIL and WARN of a run, in the catalogue's order, target by target."""
    from signet_conformance.outcome.baseline_documents import Entry

    return [
        Entry(name, target, owner, reason, created, expires, judged[name])
        for target, judged in verdicts.items()
        for name in requirements()
        if judged.get(name) in COVERABLE
    ]


def baseline_document(entries: Iterable[Entry]) -> str:
    """A baseline's text, one entry a line, so that a change to one is one line of a review."""
    rows = ",".join(f"\n    {json.dumps(entry.to_json())}" for entry in entries)
    return f'{{\n  "format": "signet-baseline/1",\n  "entries": [{rows}\n  ]\n}}\n'


def audit_path(path: str) -> Path:
    """The file beside a baseline that takes its audit lines."""
    return Path(f"{path}.audit.jsonl")
