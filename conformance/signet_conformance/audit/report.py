"""The summary of an audit for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TextIO

from rich.console import RenderableType
from rich.text import Text

from signet_conformance import __version__
from signet_conformance.audit.manifest import ManifestEntry
from signet_conformance.audit.stores import is_remote
from signet_conformance.audit.summary import AuditEnding, Cell
from signet_conformance.errors import counted, printable
from signet_conformance.finding import Verdict
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.reports.evidence import known_requirement
from signet_conformance.reports.html.page import (
    Markup,
    element,
    facts,
    joined,
    more_about,
    requirement_page,
    row,
    table,
    verdict_tag,
    write_page,
)
from signet_conformance.reports.terminal import Paragraph, labelled, labelled_line, one_line, verdict_text

_MOST_NAMED = 20


def paragraphs(ending: AuditEnding, out: str, places: Mapping[str, ManifestEntry]) -> Iterator[RenderableType]:
    """Draw the breaches, the unreadable recordings and the totals; `out` is the folder of the audit."""
    connector = None
    for cell in ending.summary.cells:
        if cell.connector != connector:
            connector = cell.connector
            count = ending.summary.connectors[connector]
            yield one_line(Text(f"{connector}: {counted(count, 'recording')}", style="bold"))
        yield from _cell(ending, cell, out)
    yield from _unread(ending, places)
    yield Paragraph(closing_line(ending))


def _cell(ending: AuditEnding, cell: Cell, out: str) -> Iterator[RenderableType]:
    about = [f"release {cell.release}"] if cell.release else []
    about += [f"new with {cell.new_since}"] if cell.new_since else []
    about += ["between recordings"] if cell.between else []
    about += ["known"] if ending.is_known(cell.requirement, cell.connector) else []
    yield one_line(
        Text.assemble(
            "  ",
            verdict_text(Verdict(cell.verdict)),
            f" {cell.requirement} {_extent(cell)}",
            *(f", {a}" for a in about),
        )
    )
    requirement = known_requirement(cell.requirement)
    if requirement is not None:
        yield labelled("says", requirement.title)
    yield labelled_line("show", cell.show + (f" {shell_command(['--out', out])}" if out else ""))


def _extent(cell: Cell) -> str:
    """In how many of the recordings that decide it, and from which day on."""
    since = f", since {cell.first_seen[:10]}" if cell.first_seen else ""
    return f"in {cell.recordings:,} of {counted(cell.recordings + cell.passing, 'recording')}{since}"


def _unread(ending: AuditEnding, places: Mapping[str, ManifestEntry]) -> Iterator[RenderableType]:
    unread = ending.summary.unread
    for name, why in unread[:_MOST_NAMED]:
        entry = places.get(name)
        place = "" if entry is None else printable(entry.place if is_remote(entry.place) else entry.name, 400)
        yield one_line(Text(f"unreadable ({why}): {place} [{name}]"))
    if ending.summary.unreadable > _MOST_NAMED:
        yield Paragraph(f"and {ending.summary.unreadable - _MOST_NAMED:,} more that could not be read")


def closing_line(ending: AuditEnding) -> str:
    """Return the closing line: how much was judged, and the result."""
    summary = ending.summary
    parts = [
        f"{summary.judged:,} judged",
        f"{summary.unreadable:,} unreadable" if summary.unreadable else "",
        f"{summary.broken_off:,} broken off" if summary.broken_off else "",
        f"{summary.earlier:,} from before the day" if summary.earlier else "",
    ]
    counts = {verdict: sum(cell.verdict == verdict for cell in summary.cells) for verdict in ("ERROR", "FAIL", "WARN")}
    breached = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "nothing breached"
    why = f" ({ending.because})" if ending.because else ""
    return (
        f"audit: {summary.recordings:,} recordings: {', '.join(filter(None, parts))};"
        f" {summary.exchanges:,} exchanges; {breached}{why}; exit {ending.status}"
    )


def draw_page(ending: AuditEnding, stream: TextIO) -> None:
    """Write the page."""
    summary = ending.summary
    header = (
        facts(
            (
                ("recordings", f"{summary.recordings:,}"),
                ("judged", f"{summary.judged:,}"),
                ("unreadable", f"{summary.unreadable:,}" if summary.unreadable else ""),
                ("broken off", f"{summary.broken_off:,}" if summary.broken_off else ""),
                ("from before the day", f"{summary.earlier:,}" if summary.earlier else ""),
                ("exchanges", f"{summary.exchanges:,}"),
                ("sessions in several recordings", f"{summary.joined:,}" if summary.joined else ""),
                ("kit", __version__),
            )
        ),
    )
    headings = ("Connector", "Recordings", "Breached")
    connectors = table("Recordings that were judged", headings, _connector_rows(ending))
    sections = [("breaches", "Breaches", _breaches(ending)), ("connectors", "Connectors", connectors)]
    if summary.unread:
        rows = (element("tr", element("td", name), element("td", why)) for name, why in summary.unread)
        sections.append(("unread", "Not read", table("Recordings that could not be read", ("Recording", "Why"), rows)))
    write_page(stream, "Signet conformance: an audit", header, sections)


def _breaches(ending: AuditEnding) -> Markup:
    cells = ending.summary.cells
    if not cells:
        return element("p", "The judged recordings have no breach.")
    heads = ("Requirement", "Verdict", "Connector", "Release", "Breached", "New with")
    rows = (_row(ending, cell) for cell in cells)
    return table("By connector, release and requirement", heads, rows)


def _row(ending: AuditEnding, cell: Cell) -> Markup:
    requirement = known_requirement(cell.requirement)
    rows: list[tuple[str, str | Markup]] = [("show", element("code", cell.show))]
    if requirement is not None:
        rows += [("says", requirement.title), ("change", requirement.fix), ("page", requirement_page(cell.requirement))]
    if cell.between:
        rows.append(("seen", "in several recordings together"))
    if ending.is_known(cell.requirement, cell.connector):
        rows.append(("known", "known in a baseline"))
    head = joined((element("span", cell.requirement, class_="whole"), more_about(cell.requirement, rows)))
    since = element("span", cell.new_since or "", class_="whole")
    return row(head, verdict_tag(cell.verdict), cell.connector, cell.release or "", _extent(cell), since)


def _connector_rows(ending: AuditEnding) -> Iterator[Markup]:
    summary = ending.summary
    for connector, count in summary.connectors.items():
        breached = dict.fromkeys(cell.requirement for cell in summary.cells if cell.connector == connector)
        tags = joined(f"{name} " for name in breached)
        yield row(connector, f"{count:,}", tags)
