"""Known failures of a run: the files that options name, held against its verdicts."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from signet_conformance.engine import Judged
from signet_conformance.errors import UsageError, printable
from signet_conformance.files.whole_file import create_file
from signet_conformance.finding import FOLDING_ORDER, Judgement, Verdict
from signet_conformance.outcome import baseline
from signet_conformance.outcome.baseline import Known, KnownInRun, Verdicts
from signet_conformance.outcome.known_options import DEFAULT_DAYS, KnownOptions
from signet_conformance.rules import run_rules

UNNAMED = "unnamed"
"""The target of a recording that names none."""


class KnownFailures(Struct, frozen=True):
    """The files that a command line names, and what it wants written. `today` is the day on which entries are held."""

    files: Sequence[Known]
    written: str | None
    owner: str
    reason: str
    expires: date
    today: date = field(default_factory=lambda: datetime.now(UTC).date())

    @classmethod
    def none(cls) -> KnownFailures:
        """The known failures of a run without such options."""
        return cls((), None, "", "", date.max)

    @classmethod
    def parse(cls, given: KnownOptions, prefix: str = "--") -> KnownFailures:
        """Read the options and the files; raise UsageError for one that cannot be used.

        `prefix` stands before the names of the options in what is said about them.
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
        files = [] if given.baseline is None else [baseline.read(given.baseline, f"{prefix}baseline")]
        files += [] if given.flaky is None else [baseline.read(given.flaky, f"{prefix}flaky", flaky=True)]
        until = _expiry(given.expires, f"{prefix}expires")
        owner = (given.owner or "").strip() or user_name()
        return cls(files, given.write_baseline, owner, (given.reason or "").strip(), until)

    def of_face(self, face: str, *, alone: bool) -> KnownFailures:
        """What is known of a run in one face of the target's harness; `alone` tells that no other is run beside."""
        return replace(self, files=[file.of_face(face, alone=alone) for file in self.files])

    def reasons(self, target: str, verdicts: Mapping[str, Verdict]) -> dict[str, str]:
        """The requirements whose verdict at a target an entry in force lets pass, each with the entry in words."""
        return {
            entry.requirement: f"{entry.owner}, until {entry.expires.isoformat()}: {entry.reason}"
            for file in reversed(self.files)
            for entry in reversed(file.entries)
            if baseline.covers(entry, target, verdicts.get(entry.requirement)) and entry.expires >= self.today
        }

    def held(self, verdicts: Verdicts) -> KnownInRun:
        """What the files say of a run with these verdicts."""
        return baseline.held(verdicts, self.files, self.today)

    def write_audit(self, known: KnownInRun, verdicts: Verdicts) -> None:
        """Write a line for each failure that was let pass. Raises UsageError when that is not possible."""
        for path, line in baseline.audit_lines(known, verdicts, user_name(), datetime.now(UTC)):
            _append(path, line)

    def write(self, verdicts: Verdicts) -> str | None:
        """Write the baseline of a run with these verdicts, if it was asked for; what was written in words, or None."""
        if self.written is None:
            return None
        entries = baseline.entries_for(verdicts, self.owner, self.reason, self.today, self.expires)
        try:
            create_file(Path(self.written), baseline.document(entries))
        except OSError as failure:
            raise UsageError(
                f"cannot be written: {failure.strerror}", where=self.written, remedy="name a new file of your own"
            ) from None
        return f"baseline: {len(entries)} known in {printable(self.written, 400)}, until {self.expires.isoformat()}"


def by_target(
    judged: Sequence[Judged], target: str | None, over_all: Mapping[str, Judgement]
) -> dict[str, dict[str, Verdict]]:
    """The verdicts of a run by target: those `over_all` at the one that was named, or those of the recordings."""
    if target is not None:
        # Generated sessions decide too, and leave no trace of most of what they do.
        return {_named(target): {name: judgement.verdict for name, judgement in over_all.items()}}
    by_name: dict[str, dict[str, Verdict]] = {}
    for each in judged:
        verdicts = by_name.setdefault(target_of(each, None), {})
        for name, verdict in each.verdicts.items():
            verdicts[name] = min(verdicts.get(name, verdict), verdict, key=FOLDING_ORDER.index)
    # What the run as a whole is judged by is the same at every target of it.
    over_run = {name: judgement.verdict for name, judgement in over_all.items() if name in run_rules()}
    for verdicts in by_name.values():
        verdicts.update(over_run)
    return by_name


def target_of(judged: Judged, target: str | None) -> str:
    """The target whose known failures count for a judged trace."""
    return _named(target or judged.trace.header.target or "")


def _named(target: str) -> str:
    named = target.strip()
    # What a baseline says of every target is for people to write, never for a recording to be called.
    return UNNAMED if named in ("", baseline.EVERY_TARGET) else named


def failing_text(known: KnownInRun) -> str:
    """The entries that fail a run, counted, such as `1 stale and 2 expired entries`; empty where none does."""
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
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _append(path: Path, line: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(line)
    except OSError as failure:
        raise UsageError(
            f"cannot be written: {failure.strerror}",
            where=str(path),
            remedy="keep the baseline in a folder that you may write to: the kit logs there what it lets pass",
        ) from None
