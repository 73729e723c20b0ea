"""The summary of an audit for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.text import Text

from signet_conformance.audit.ending import Ending
from signet_conformance.audit.manifest import Entry
from signet_conformance.audit.stores import is_remote
from signet_conformance.audit.summary import Cell
from signet_conformance.errors import counted, printable
from signet_conformance.finding import Verdict
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.reports.evidence import known_requirement
from signet_conformance.reports.terminal import Paragraph, labelled, labelled_line, one_line, verdict_text

_MOST_NAMED = 20


def paragraphs(ending: Ending, out: str, places: Mapping[str, Entry]) -> Iterator[RenderableType]:
    """What is breached, what could not be read, and what was judged in all; `out` is the folder of the audit."""
    connector = None
    for cell in ending.summary.cells:
        if cell.connector != connector:
            connector = cell.connector
            count = ending.summary.connectors[connector]
            yield one_line(Text(f"{connector}: {counted(count, 'recording')}", style="bold"))
        yield from _cell(ending, cell, out)
    yield from _unread(ending, places)
    yield Paragraph(closing_line(ending))


def _cell(ending: Ending, cell: Cell, out: str) -> Iterator[RenderableType]:
    count = f"{cell.recordings:,} of {cell.recordings + cell.passing:,}"
    about = [f"release {cell.release}"] if cell.release else []
    about += [f"first seen {cell.first_seen[:10]}"] if cell.first_seen else []
    about += [f"new since {cell.new_since}"] if cell.new_since else []
    about += ["between recordings"] if cell.between else []
    about += ["known"] if ending.is_known(cell.requirement, cell.connector) else []
    yield one_line(
        Text.assemble(
            "  ", verdict_text(Verdict(cell.verdict)), f" {cell.requirement}  {count}", *(f", {a}" for a in about)
        )
    )
    requirement = known_requirement(cell.requirement)
    if requirement is not None:
        yield labelled("says", requirement.title)
    yield labelled_line("show", cell.show + (f" {shell_command(['--out', out])}" if out else ""))


def _unread(ending: Ending, places: Mapping[str, Entry]) -> Iterator[RenderableType]:
    unread = ending.summary.unread
    for name, why in unread[:_MOST_NAMED]:
        entry = places.get(name)
        place = "" if entry is None else printable(entry.place if is_remote(entry.place) else entry.name, 400)
        yield one_line(Text(f"unreadable ({why}): {place} [{name}]"))
    if ending.summary.unreadable > _MOST_NAMED:
        yield Paragraph(f"and {ending.summary.unreadable - _MOST_NAMED:,} more that could not be read")


def closing_line(ending: Ending) -> str:
    """What was judged, and what it came to."""
    summary = ending.summary
    parts = [
        f"{summary.judged:,} judged",
        f"{summary.unreadable:,} unreadable" if summary.unreadable else "",
        f"{summary.broken_off:,} broken off" if summary.broken_off else "",
        f"{summary.earlier:,} from before the day" if summary.earlier else "",
    ]
    counts = {verdict: sum(cell.verdict == verdict for cell in summary.cells) for verdict in ("ERROR", "FAIL", "WARN")}
    came_to = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "nothing breached"
    why = f" ({ending.because})" if ending.because else ""
    return (
        f"audit: {summary.recordings:,} recordings: {', '.join(filter(None, parts))};"
        f" {summary.exchanges:,} exchanges; {came_to}{why}; exit {ending.status}"
    )
