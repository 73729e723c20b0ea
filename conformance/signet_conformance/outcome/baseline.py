"""Known failures: a baseline names each with owner, reason and expiry; a flaky list stands apart from it.

A FAIL or WARN that an entry covers does not fail the run; one written for a WARN covers no FAIL. An entry that
covers nothing any more, or whose day has passed, does. Every failure that was let pass leaves a line in a file
beside the baseline.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from signet_conformance.contract import requirements
from signet_conformance.errors import printable
from signet_conformance.files.reading import read_json
from signet_conformance.finding import Verdict

if TYPE_CHECKING:
    from signet_conformance.outcome.baseline_documents import Entry

EVERY_TARGET = "*"
COVERABLE = frozenset({Verdict.FAIL, Verdict.WARN})


class Known(Struct, frozen=True):
    """A file of entries. A `flaky` one is never stale: what fails now and then passes now and then.

    Where several faces are run, neither is an entry that names no face: what passes in one may fail in another.
    """

    path: str
    entries: Sequence[Entry]
    flaky: bool = False
    several_faces: bool = False

    def of_face(self, face: str, *, alone: bool) -> Known:
        """The entries that speak of a run in a face; `alone` tells that no other face is run beside."""
        entries = [entry for entry in self.entries if entry.face in (None, face)]
        return replace(self, entries=entries, several_faces=not alone)


class KnownInRun(Struct, frozen=True):
    """What some files of known failures say of a run. `covered` are failures with the entry that lets them pass."""

    covered: Mapping[tuple[str, str], tuple[Known, Entry]] = field(default_factory=dict)
    stale: Sequence[tuple[Known, Entry]] = ()
    expired: Sequence[tuple[Known, Entry]] = ()

    @property
    def fails(self) -> bool:
        """Whether an entry itself fails the run."""
        return bool(self.stale or self.expired)

    def covers(self, requirement: str, targets: Iterable[str]) -> bool:
        """Whether a requirement's failure is known at each of these targets."""
        return all((requirement, target) in self.covered for target in targets)


Verdicts = Mapping[str, Mapping[str, Verdict]]
"""Target to requirement to verdict: the worst over the target's traces."""


def covers(entry: Entry, target: str, verdict: Verdict | None) -> bool:
    """Whether an entry speaks of a target, and of a failure as bad as this verdict of its requirement there."""
    return entry.target in (target, EVERY_TARGET) and verdict in (Verdict.WARN, entry.verdict)


def held(verdicts: Verdicts, known: Sequence[Known], today: date) -> KnownInRun:
    """Hold the verdicts of a run against the files. Entries of targets that did not run say nothing."""
    covered: dict[tuple[str, str], tuple[Known, Entry]] = {}
    stale: list[tuple[Known, Entry]] = []
    expired: list[tuple[Known, Entry]] = []
    for file in known:
        for entry in file.entries:
            ran = [target for target in verdicts if entry.target in (target, EVERY_TARGET)]
            now = {target: verdicts[target].get(entry.requirement) for target in ran}
            if not ran:
                continue
            if entry.expires < today:
                expired.append((file, entry))
                continue
            failing = [target for target, verdict in now.items() if verdict in COVERABLE]
            for target in failing:
                if covers(entry, target, now[target]):
                    covered.setdefault((entry.requirement, target), (file, entry))
            # Only a PASS shows that it is mended: what was not tested, or cannot be told, may still fail.
            may_fail_elsewhere = file.flaky or (file.several_faces and entry.face is None)
            if not may_fail_elsewhere and not failing and Verdict.PASS in now.values():
                stale.append((file, entry))
    return KnownInRun(covered, stale, expired)


def read(path: str, option: str = "--baseline", *, flaky: bool = False) -> Known:
    """Read the baseline, or the flaky list, that an option names.

    Raises UsageError naming the file, the entry and the wrong member.
    """
    from signet_conformance.files.documents import demand
    from signet_conformance.outcome.baseline_documents import Baseline, FlakyList

    where = f"{option} {printable(path, 400)}"
    data = read_json(path, f"write one with {option.rpartition('-')[0]}-write-baseline FILE", where=where)
    return Known(path, demand(FlakyList if flaky else Baseline, data, where).entries, flaky)


def entries_for(verdicts: Verdicts, owner: str, reason: str, created: date, expires: date) -> list[Entry]:
    """An entry for each FAIL and WARN of a run, in the catalogue's order, target by target."""
    from signet_conformance.outcome.baseline_documents import Entry

    return [
        Entry(name, target, owner, reason, created, expires, judged[name])
        for target, judged in verdicts.items()
        for name in requirements()
        if judged.get(name) in COVERABLE
    ]


def document(entries: Iterable[Entry]) -> str:
    """A baseline's text, one entry a line, so that a change to one is one line of a review."""
    rows = ",\n".join(f"    {json.dumps(entry.to_json())}" for entry in entries)
    return f'{{\n  "format": "signet-baseline/1",\n  "entries": [\n{rows}\n  ]\n}}\n'


def audit_path(path: str) -> Path:
    """The file beside a baseline that takes its audit lines."""
    return Path(f"{path}.audit.jsonl")


def audit_lines(known: KnownInRun, verdicts: Verdicts, who: str, when: datetime) -> Iterator[tuple[Path, str]]:
    """A line for each failure that was let pass: who, when, what, why; with the file that takes it."""
    from signet_conformance.outcome.baseline_documents import AuditLine

    for (requirement, target), (file, entry) in known.covered.items():
        line = AuditLine(
            format="signet-audit/1",
            when=when.isoformat(timespec="seconds"),
            who=who if who.strip() else "unknown",
            what="flaky" if file.flaky else "override",
            requirement=requirement,
            target=target,
            verdict=verdicts[target][requirement],
            why=entry.reason,
            owner=entry.owner,
            expires=entry.expires,
        )
        yield audit_path(file.path), f"{json.dumps(line.to_json())}\n"
