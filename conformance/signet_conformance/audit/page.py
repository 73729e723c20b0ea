"""The summary of an audit as one HTML page: what is breached, where it was first seen, and what was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from signet_conformance import __version__
from signet_conformance.audit.ending import Ending
from signet_conformance.audit.summary import Cell
from signet_conformance.reports.evidence import known_requirement
from signet_conformance.reports.html.markup import Markup, element, joined
from signet_conformance.reports.html.page import facts, requirement_page, table, verdict_tag, write_page


def write(ending: Ending, stream: TextIO) -> None:
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
    sections = [
        ("breaches", "What is breached", _breaches(ending)),
        ("connectors", "Connectors", _connectors(ending)),
    ]
    if summary.unread:
        rows = (element("tr", element("td", name), element("td", why)) for name, why in summary.unread)
        sections.append(("unread", "Not read", table("Recordings that could not be read", ("Recording", "Why"), rows)))
    write_page(stream, "Signet conformance: an audit", header, sections)


def _breaches(ending: Ending) -> Markup:
    cells = ending.summary.cells
    if not cells:
        return element("p", "Nothing is breached in what was judged.")
    heads = ("Requirement", "Verdict", "Connector", "Release", "Breach it", "Pass it", "First seen", "New since")
    rows = (_row(ending, cell) for cell in cells)
    return table("By connector, release and requirement", heads, rows)


def _row(ending: Ending, cell: Cell) -> Markup:
    requirement = known_requirement(cell.requirement)
    told: list[tuple[str, str | Markup]] = [("show", element("code", cell.show))]
    if requirement is not None:
        told += [
            ("says", requirement.title),
            ("change", requirement.fix),
            ("page", requirement_page(cell.requirement)),
        ]
    if cell.between:
        told.append(("seen", "in several recordings together"))
    if ending.is_known(cell.requirement, cell.connector):
        told.append(("known", "a baseline lets it pass"))
    more = element("details", element("summary", "More", aria_label=f"More about {cell.requirement}"), facts(told))
    return element(
        "tr",
        element("th", element("span", cell.requirement, class_="whole"), more, scope="row"),
        element("td", verdict_tag(cell.verdict)),
        element("td", cell.connector),
        element("td", cell.release or ""),
        element("td", f"{cell.recordings:,}"),
        element("td", f"{cell.passing:,}"),
        element("td", (cell.first_seen or "")[:10], class_="whole"),
        element("td", cell.new_since or "", class_="whole"),
    )


def _connectors(ending: Ending) -> Markup:
    return table("Recordings that were judged", ("Connector", "Recordings", "Breached"), _connector_rows(ending))


def _connector_rows(ending: Ending) -> Iterator[Markup]:
    summary = ending.summary
    for connector, count in summary.connectors.items():
        breached = dict.fromkeys(cell.requirement for cell in summary.cells if cell.connector == connector)
        tags = joined(f"{name} " for name in breached)
        yield element("tr", element("th", connector, scope="row"), element("td", f"{count:,}"), element("td", tags))
