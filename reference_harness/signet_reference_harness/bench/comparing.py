"""Compares two results of the same suite, question by question."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field
from rich.console import Console
from rich.table import Table

from signet_reference_harness.bench import figures
from signet_reference_harness.bench.result import Figure, Question, Result, subject_name
from signet_reference_harness.documents import DocumentError, HarnessDocument, StrictModel, parse_document
from signet_reference_harness.errors import ConfigError, printable

SHOWN: Final = 20
OF_CATEGORIES: Final = ("hit@10", "mrr@10")
"""The figures that are printed of each category; the page holds all."""
STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.better { color: light-dark(#0a6b2d, #6fdc94); } .worse { color: light-dark(#a3201a, #ff9a93); }
"""


class FigureDifference(StrictModel):
    """A figure in both results. The interval is that of the mean of the questions' differences, at 95 %."""

    first: Figure
    second: Figure
    difference: Figure
    interval: Annotated[tuple[Figure, Figure] | None, Field(strict=False)]


class Changed(StrictModel):
    """A question whose best evidence has another rank; null where none was brought."""

    scenario: str
    id: str
    line: int
    category: str | None
    first_rank: int | None
    second_rank: int | None


class ResultComparison(HarnessDocument):
    """What `signet-harness bench compare` found."""

    model_config = ConfigDict(title="Comparison of two benchmark runs")
    schema_file: ClassVar[str] = "harness/signet-bench-comparison-1.schema.json"

    format: Literal["signet-bench-comparison/1"] = "signet-bench-comparison/1"
    suite: str
    suite_sha256: str
    first: dict[str, Any]
    second: dict[str, Any]
    questions: int
    better: Annotated[int, Field(description="questions whose best evidence stands higher in the second result")]
    worse: int
    figures: dict[str, FigureDifference]
    by_category: dict[str, dict[str, FigureDifference]]
    changed: Annotated[tuple[Changed, ...], Field(strict=False)]


def read_result(path: Path) -> Result:
    """The result in a file, or in the folder of a run. Raises DocumentError."""
    file = path / "result.json" if path.is_dir() else path
    try:
        data = file.read_bytes()
    except OSError as error:
        raise DocumentError(f"{file}: {error.strerror or error}", remedy="name a result.json, or its folder") from None
    return parse_document(Result, data, str(file))


def compare(first: Result, second: Result) -> ResultComparison:
    """The differences from the first result to the second. Raises ConfigError for results of two suites."""
    if first.suite.sha256 != second.suite.sha256:
        raise ConfigError(
            f"the results are of two suites: {first.suite.name} {first.suite.sha256[:12]} and "
            f"{second.suite.name} {second.suite.sha256[:12]}",
            remedy="run both on the same suite file",
        )
    known = {question.line: question for question in second.questions}
    pairs = [(question, known[question.line]) for question in first.questions if question.line in known]
    changed = [pair for pair in pairs if pair[0].rank != pair[1].rank]
    changed.sort(key=lambda pair: (-abs(_gain(pair)), pair[0].line))
    categories = sorted({pair[0].category for pair in pairs if pair[0].category is not None})
    return ResultComparison(
        suite=first.suite.name,
        suite_sha256=first.suite.sha256,
        first=first.subject,
        second=second.subject,
        questions=len(pairs),
        better=sum(_gain(pair) > 0 for pair in changed),
        worse=sum(_gain(pair) < 0 for pair in changed),
        figures=_differences(pairs),
        by_category={name: _differences([pair for pair in pairs if pair[0].category == name]) for name in categories},
        changed=tuple(
            Changed(
                scenario=old.scenario,
                id=old.id,
                line=old.line,
                category=old.category,
                first_rank=old.rank,
                second_rank=new.rank,
            )
            for old, new in changed
        ),
    )


def show(comparison: ResultComparison, console: Console) -> None:
    """Print the figures, and the questions that changed most."""

    def say(text: str) -> None:
        console.print(printable(text), markup=False, highlight=False)

    say(f"{comparison.suite}: {subject_name(comparison.first)} -> {subject_name(comparison.second)}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "first", "second", "difference", "95 % interval"):
        table.add_column(name, justify="left" if name == "" else "right", no_wrap=True)
    for name, each in comparison.figures.items():
        table.add_row(name, *_cells(each))
    for category, figures_of_category in comparison.by_category.items():
        for name in (name for name in OF_CATEGORIES if name in figures_of_category):
            table.add_row(printable(f"{category}: {name}"), *_cells(figures_of_category[name]))
    console.print(table)
    same = comparison.questions - comparison.better - comparison.worse
    moved = f"{comparison.better} better, {comparison.worse} worse"
    say(f"{comparison.questions} questions: {moved}, {same} with the same best rank")
    for change in comparison.changed[:SHOWN]:
        ranks = f"{_rank(change.first_rank)} -> {_rank(change.second_rank)}"
        say(f"  line {change.line}, {change.scenario}/{change.id}: {ranks}")
    if len(comparison.changed) > SHOWN:
        say(f"  and {len(comparison.changed) - SHOWN} more: --json or --html has them all")


def page(comparison: ResultComparison) -> str:
    """The comparison as a page that fetches nothing and runs nothing."""
    first, second = html.escape(subject_name(comparison.first)), html.escape(subject_name(comparison.second))
    title = f"{html.escape(comparison.suite)}: {first} and {second}"
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{STYLE}</style></head><body>",
            f"<h1>{html.escape(comparison.suite)}</h1>",
            (
                f"<p>First: {first}. Second: {second}. "
                f"{comparison.questions} questions, {comparison.better} better, {comparison.worse} worse.</p>"
            ),
            *_table("All questions", comparison.figures),
            *(line for name, each in comparison.by_category.items() for line in _table(name, each)),
            "<h2>Questions that changed</h2>",
            (
                '<table><thead><tr><th>question</th><th>category</th><th class="n">line</th>'
                '<th class="n">first rank</th><th class="n">second rank</th></tr></thead><tbody>'
            ),
            *(_changed_row(change) for change in comparison.changed),
            "</tbody></table></body></html>",
            "",
        ]
    )


def _table(heading: str, each: dict[str, FigureDifference]) -> Iterator[str]:
    yield f"<h2>{html.escape(heading)}</h2><table><thead><tr><th>figure</th>"
    yield "".join(f'<th class="n">{name}</th>' for name in ("first", "second", "difference", "95 % interval"))
    yield "</tr></thead><tbody>"
    for name, difference in each.items():
        cells = "".join(f'<td class="n">{html.escape(cell)}</td>' for cell in _cells(difference))
        yield f"<tr><td>{html.escape(name)}</td>{cells}</tr>"
    yield "</tbody></table>"


def _changed_row(change: Changed) -> str:
    kind = "better" if _reciprocal(change.second_rank) > _reciprocal(change.first_rank) else "worse"
    return (
        f"<tr><td>{html.escape(f'{change.scenario}/{change.id}')}</td><td>{html.escape(change.category or '')}</td>"
        f'<td class="n">{change.line}</td><td class="n">{_rank(change.first_rank)}</td>'
        f'<td class="n {kind}">{_rank(change.second_rank)} {kind}</td></tr>'
    )


def _differences(pairs: list[tuple[Question, Question]]) -> dict[str, FigureDifference]:
    first = figures.mean([old.figures for old, _ in pairs])
    second = figures.mean([new.figures for _, new in pairs])
    return {
        name: FigureDifference(
            first=first[name],
            second=second[name],
            difference=figures.rounded(second[name] - first[name]),
            interval=figures.interval([new.figures[name] - old.figures[name] for old, new in pairs]),
        )
        for name in first
    }


def _gain(pair: tuple[Question, Question]) -> float:
    return _reciprocal(pair[1].rank) - _reciprocal(pair[0].rank)


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1 / rank


def _rank(rank: int | None) -> str:
    return "none" if rank is None else str(rank)


def _cells(each: FigureDifference) -> tuple[str, str, str, str]:
    bounds = "" if each.interval is None else f"{each.interval[0]:+.3f} to {each.interval[1]:+.3f}"
    return f"{each.first:.3f}", f"{each.second:.3f}", f"{each.difference:+.3f}", bounds
