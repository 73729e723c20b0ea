"""Known failures: a baseline names each with owner, reason and expiry; a flaky list stands apart from it.

A FAIL or WARN that an entry covers does not fail the run; one written for a WARN covers no FAIL. An entry that
covers nothing any more, or whose day has passed, does. Every failure that was let pass leaves a line in a file
beside the baseline.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from signet_conformance.contract import requirements
from signet_conformance.errors import UsageError, printable
from signet_conformance.files.json_file import read_json
from signet_conformance.finding import Verdict

BASELINE, FLAKY, AUDIT = "signet-baseline/1", "signet-flaky/1", "signet-audit/1"
EVERY_TARGET = "*"
COVERABLE = frozenset({Verdict.FAIL, Verdict.WARN})
_TEXTS = ("requirement", "target", "owner", "reason")
_DAYS = ("created", "expires")


@dataclass(frozen=True, slots=True)
class Entry:
    """One known failure: who answers for it, why it stands, the last day on which it may, and the worst it may be."""

    requirement: str
    target: str
    owner: str
    reason: str
    created: date
    expires: date
    verdict: Verdict = Verdict.FAIL

    def covers(self, target: str, verdict: Verdict | None) -> bool:
        """Whether it speaks of a target, and of a failure as bad as this verdict of its requirement there."""
        return self.target in (target, EVERY_TARGET) and verdict in (Verdict.WARN, self.verdict)

    def to_json(self) -> dict[str, str]:
        """The entry as it stands in a file."""
        texts = {name: getattr(self, name) for name in _TEXTS}
        days = {name: getattr(self, name).isoformat() for name in _DAYS}
        return {**texts, "verdict": self.verdict.value, **days}


@dataclass(frozen=True, slots=True)
class Known:
    """A file of entries. A `flaky` one is never stale: what fails now and then passes now and then."""

    path: str
    entries: Sequence[Entry]
    flaky: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
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


def outcome(verdicts: Verdicts, known: Sequence[Known], today: date) -> Outcome:
    """Hold the verdicts of a run against the files. Entries of targets that did not run say nothing."""
    covered: dict[tuple[str, str], tuple[Known, Entry]] = {}
    stale: list[tuple[Known, Entry]] = []
    expired: list[tuple[Known, Entry]] = []
    for file in known:
        for entry in file.entries:
            ran = [target for target in verdicts if entry.target in (target, EVERY_TARGET)]
            found = {target: verdicts[target].get(entry.requirement) for target in ran}
            if not ran:
                continue
            if entry.expires < today:
                expired.append((file, entry))
                continue
            failing = [target for target, verdict in found.items() if verdict in COVERABLE]
            for target in failing:
                if entry.covers(target, found[target]):
                    covered.setdefault((entry.requirement, target), (file, entry))
            # Only a PASS shows that it is mended: what was not tested, or cannot be told, may still fail.
            if not file.flaky and not failing and Verdict.PASS in found.values():
                stale.append((file, entry))
    return Outcome(covered, stale, expired)


def read(path: str, option: str = "--baseline", *, flaky: bool = False) -> Known:
    """Read the baseline, or the flaky list, that an option names.

    Raises UsageError naming the file, the entry and the member that is off.
    """
    expected = FLAKY if flaky else BASELINE
    where = f"{option} {printable(path, 400)}"
    data = read_json(path, f"write one with {option.rpartition('-')[0]}-write-baseline FILE", where=where)
    if not isinstance(data, dict) or data.get("format") != expected or not isinstance(data.get("entries"), list):
        raise UsageError(f"is no {expected} file", where=where, remedy=f'begin it with "format": "{expected}"')
    return Known(
        path, [_entry(row, f"{where}, entry {number}") for number, row in enumerate(data["entries"], 1)], flaky
    )


def _entry(row: Any, where: str) -> Entry:
    members = row if isinstance(row, dict) else {}
    for name in _TEXTS:
        value = members.get(name)
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{name} is blank", where=where, remedy=f"say {name}, so that others can follow it up")
    if members["requirement"] not in requirements():
        near = get_close_matches(members["requirement"], requirements(), 1, 0.4)
        raise UsageError(
            f"there is no requirement {printable(members['requirement'], 60)!r}",
            where=where,
            remedy=f"signet-conformance explain {near[0]}" if near else "signet-conformance explain",
        )
    created, expires = (_day(members.get(name), name, where) for name in _DAYS)
    verdict = members.get("verdict", Verdict.FAIL.value)
    if not isinstance(verdict, str) or verdict not in COVERABLE:
        raise UsageError(
            f"verdict is {printable(verdict, 40)!r}, expected FAIL or WARN",
            where=where,
            remedy="write the worst that may stand",
        )
    requirement, target, owner, reason = (members[name] for name in _TEXTS)
    return Entry(requirement, target, owner, reason, created, expires, Verdict(verdict))


def _day(value: object, name: str, where: str) -> date:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise UsageError(
            f"{name} is {printable(value, 40)!r}, expected a day", where=where, remedy="write it like 2026-06-01"
        ) from None


def entries_for(verdicts: Verdicts, owner: str, reason: str, created: date, expires: date) -> list[Entry]:
    """An entry for each FAIL and WARN of a run, in the catalogue's order, target by target."""
    return [
        Entry(name, target, owner, reason, created, expires, found[name])
        for target, found in verdicts.items()
        for name in requirements()
        if found.get(name) in COVERABLE
    ]


def document(entries: Iterable[Entry]) -> str:
    """A baseline's text, one entry a line, so that a change to one is one line of a review."""
    rows = ",\n".join(f"    {json.dumps(entry.to_json())}" for entry in entries)
    return f'{{\n  "format": "{BASELINE}",\n  "entries": [\n{rows}\n  ]\n}}\n'


def audit_path(path: str) -> Path:
    """The file beside a baseline that takes its audit lines."""
    return Path(f"{path}.audit.jsonl")


def audit_lines(found: Outcome, verdicts: Verdicts, who: str, when: datetime) -> Iterator[tuple[Path, str]]:
    """A line for each failure that was let pass: who, when, what, why; with the file that takes it."""
    for (requirement, target), (file, entry) in found.covered.items():
        line = {
            "format": AUDIT,
            "when": when.isoformat(timespec="seconds"),
            "who": who,
            "what": "flaky" if file.flaky else "override",
            "requirement": requirement,
            "target": target,
            "verdict": verdicts[target][requirement].value,
            "why": entry.reason,
            "owner": entry.owner,
            "expires": entry.expires.isoformat(),
        }
        yield audit_path(file.path), json.dumps(line) + "\n"
