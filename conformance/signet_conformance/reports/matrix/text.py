"""The matrix in a terminal: connector by operation, connector by requirement, and the parity of each in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from signet_conformance.finding import Verdict
from signet_conformance.reports import matrix
from signet_conformance.reports.command_lines import explain_command
from signet_conformance.reports.matrix import Column
from signet_conformance.reports.terminal import MAX_WIDTH, STRONG, VERDICT_STYLES, Paragraph, draw, draw_table

_MEANING = {
    matrix.USED: Verdict.PASS,
    matrix.UNUSED: Verdict.FAIL,
    matrix.DRIFT: Verdict.WARN,
    matrix.ABSENT: Verdict.NOT_APPLICABLE,
}
_STYLES = {word: VERDICT_STYLES[verdict] for word, verdict in _MEANING.items()}
_STYLES |= {verdict.value: style for verdict, style in VERDICT_STYLES.items()}


def matrix_lines(columns: Sequence[Column], width: int | None, colour: bool) -> Iterator[str]:
    """Both tables, then the parity of each connector. `width` is as for `draw_table`."""
    named = matrix.headings(columns)
    heads = [f"{name} {column.contract}" for name, column in zip(named, columns, strict=True)]
    by_operation = ((name, [column.operation(name) for column in columns]) for name in matrix.operations(columns))
    yield from draw_table(_table("operation", heads, by_operation), width, colour)
    yield ""
    names = dict.fromkeys(name for column in columns for name in column.verdicts)
    by_requirement = ((name, [column.verdicts.get(name, "") for column in columns]) for name in names)
    yield from draw_table(_table("requirement", heads, by_requirement), width, colour)
    yield f"the page of a requirement: {explain_command('ID')}"
    yield ""
    yield from draw(
        (Paragraph(matrix.parity_line(column, name), 0, 4) for name, column in zip(named, columns, strict=True)),
        width or MAX_WIDTH,
        colour,
    )
    later = [Paragraph(f"{name}: {each.later}", 0, 4) for name, each in zip(named, columns, strict=True) if each.later]
    yield from draw(later, width or MAX_WIDTH, colour)
    if differing := matrix.differences(columns):
        yield from ("", "breached in one lane and not in the other:")
        yield from draw((Paragraph(each.words, 2, 4) for each in differing), width or MAX_WIDTH, colour)


def _table(corner: str, heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=STRONG)
    for head in (corner, *heads):
        table.add_column(Text(head), overflow="fold")
    for name, cells in rows:
        table.add_row(Text(name), *(Text.assemble((word, _STYLES.get(word, ""))) for word in cells))
    return table
