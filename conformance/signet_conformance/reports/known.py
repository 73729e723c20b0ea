"""The lines that tell of known failures, and of entries that fail the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from signet_conformance.errors import printable
from signet_conformance.outcome.baseline import Outcome
from signet_conformance.reports.layout import command_line, labelled, strong, usable_width

if TYPE_CHECKING:
    from signet_conformance.outcome.baseline_documents import Entry


def known_lines(found: Outcome, width: int, colour: bool) -> Iterator[str]:
    """What is known, and what must be done about entries that fail the run."""
    width = usable_width(width)
    for (requirement, target), (_, entry) in found.covered.items():
        yield f"{strong('KNOWN', colour)} {requirement} at {printable(target, 60)}"
        whose = f"{printable(entry.owner, 80)}, until {entry.expires.isoformat()}: {printable(entry.reason, 300)}"
        yield from labelled("by", whose, width, colour)
        yield command_line("explain", ["signet-conformance", "explain", requirement], colour)
    for word, entries, what in (
        ("STALE", found.stale, "it no longer fails: take the entry out"),
        ("EXPIRED", found.expired, "mend the connector and take the entry out, or agree on a later day with its owner"),
    ):
        for file, entry in entries:
            yield f"{strong(word, colour)} {entry.requirement} at {printable(entry.target, 60)}"
            yield from labelled("in", f"{printable(file.path, 400)}, {_since(entry)}", width, colour)
            yield from labelled("change", what, width, colour)
            yield command_line("explain", ["signet-conformance", "explain", entry.requirement], colour)


def _since(entry: Entry) -> str:
    days = f"{entry.created.isoformat()} to {entry.expires.isoformat()}"
    return f"by {printable(entry.owner, 80)}, {days}"
