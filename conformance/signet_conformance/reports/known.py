"""The lines that tell of known failures, and of entries that fail the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from signet_conformance.errors import printable
from signet_conformance.outcome.baseline import KnownInRun
from signet_conformance.reports.terminal import STRONG, drawn, labelled, labelled_command, one_line

if TYPE_CHECKING:
    from signet_conformance.outcome.baseline_documents import Entry


def known_lines(known: KnownInRun, width: int, colour: bool) -> Sequence[str]:
    """What is known, and what must be done about entries that fail the run."""
    return drawn([*_blocks(known)], width, colour)


def _blocks(known: KnownInRun) -> Iterator[RenderableType]:
    for (requirement, target), (_, entry) in known.covered.items():
        yield _head("KNOWN", requirement, target)
        whose = f"{printable(entry.owner, 80)}, until {entry.expires.isoformat()}: {printable(entry.reason, 300)}"
        yield labelled("by", whose)
        yield labelled_command("explain", ["signet-conformance", "explain", requirement])
    for word, entries, what in (
        ("STALE", known.stale, "it no longer fails: take the entry out"),
        ("EXPIRED", known.expired, "mend the connector and take the entry out, or agree on a later day with its owner"),
    ):
        for file, entry in entries:
            yield _head(word, entry.requirement, entry.target)
            yield labelled("in", f"{printable(file.path, 400)}, {_since(entry)}")
            yield labelled("change", what)
            yield labelled_command("explain", ["signet-conformance", "explain", entry.requirement])


def _head(word: str, requirement: str, target: str) -> Text:
    return one_line(Text.assemble((word, STRONG), f" {requirement} at {printable(target, 60)}"))


def _since(entry: Entry) -> str:
    days = f"{entry.created.isoformat()} to {entry.expires.isoformat()}"
    return f"by {printable(entry.owner, 80)}, {days}"
