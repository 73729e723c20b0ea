"""The matrix as one HTML page: parity of each connector, connector by operation, connector by requirement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from signet_conformance import __version__
from signet_conformance.contract import document
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
from signet_conformance.reports.matrix import (
    ABSENT,
    DRIFT,
    SEEN,
    UNUSED,
    USED,
    Column,
    differences,
    headings,
    operations,
    parity_line,
    surface,
)

_MEANINGS = (
    (USED, "declared and observed"),
    (UNUSED, "declared, not observed"),
    (DRIFT, "observed, not declared"),
    (SEEN, "observed, and nothing is declared"),
    (ABSENT, "neither"),
)


def write(columns: Sequence[Column], stream: TextIO, lead: Iterable[Markup] = ()) -> None:
    """Write the page; a column is one connector by one contract version. `lead` stands above the rest."""
    named = list(zip(headings(columns, 200), columns, strict=True))
    parity = element("ul", (element("li", parity_line(column, name)) for name, column in named), class_="plain")
    meaning = facts(_MEANINGS)
    heads = [_head(name, column) for name, column in named]
    by_operation = table("Connector by operation", ("Operation", *heads), _operation_rows(columns))
    by_requirement = table("Connector by requirement", ("Requirement", *heads), _requirement_rows(columns))
    sections = [
        ("parity", "Parity with the integration surface", parity),
        ("operations", "Operations", joined((meaning, by_operation))),
        ("requirements", "Requirements", by_requirement),
    ]
    if later := [element("li", f"{name}: {column.later}") for name, column in named if column.later]:
        sections.insert(1, ("later", "Would breach the next contract", element("ul", later, class_="plain")))
    if differing := differences(columns):
        listed = element("ul", (element("li", each.words) for each in differing), class_="plain")
        sections.insert(1, ("lanes", "Breached in one lane and not in the other", listed))
    header = (*lead, facts((("connectors", str(len(columns))), ("kit", __version__))))
    write_page(stream, "Signet conformance: connectors side by side", header, sections)


def _head(name: str, column: Column) -> Markup:
    return joined((element("bdi", name), element("span", f"contract {column.contract}", class_="line quiet")))


def _operation_rows(columns: Sequence[Column]) -> Iterator[Markup]:
    rows = document("operations.json")["operations"]
    for name in operations(columns):
        number = f"row {rows[name]['row']}" if name in surface() else "beside the surface"
        head = joined((name, element("span", number, class_="line quiet")))
        cells = (column.operation(name) for column in columns)
        yield row(head, *(element("span", shown, data_cell=shown) for shown in cells))


def _requirement_rows(columns: Sequence[Column]) -> Iterator[Markup]:
    for name in dict.fromkeys(name for column in columns for name in column.verdicts):
        requirement = known_requirement(name)
        about: list[Markup] = []
        if requirement is not None:
            rows = (("says", requirement.title), ("change", requirement.fix), ("page", requirement_page(name)))
            about = [more_about(name, rows)]
        verdicts = (column.verdicts.get(name) for column in columns)
        cells = ("" if verdict is None else verdict_tag(verdict.value) for verdict in verdicts)
        yield row(joined((name, *about)), *cells)
