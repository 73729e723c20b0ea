"""Compares results of the same suite: two of them question by question, any number side by side."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field
from rich.console import Console
from rich.table import Table

from signet_reference_harness.bench import figures
from signet_reference_harness.bench.result import RESULT, AboutQuestion, Figure, Question, Result, subject_name
from signet_reference_harness.bench.suite import UNANSWERABLE
from signet_reference_harness.documents import HarnessDocument, StrictModel, read_document
from signet_reference_harness.errors import ConfigError, printable

LARGEST_RESULT: Final = 1024 * 1024 * 1024
SHOWN: Final = 20
COMPARED: Final = ("first", "second", "difference", "95 % interval")
SHORT: Final = ("hit@10", "mrr@10")
"""The figures that are printed of each category and run; the plot has the last, the page of two results all."""
WIDTH, ROW, LEFT = 720, 28, 220
"""Pixels of the plot: of all of it, of a row, and of the names."""
STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.better { color: light-dark(#0a6b2d, #6fdc94); } .worse { color: light-dark(#a3201a, #ff9a93); }
"""


class FigureDifference(StrictModel):
    """A figure in both results. The interval is for the mean of the questions' differences, at 95 %."""

    first: Figure
    second: Figure
    difference: Figure
    interval: Annotated[tuple[Figure, Figure] | None, Field(strict=False)]


class RankChange(AboutQuestion):
    """A question whose best evidence has another rank in the second result; null if no evidence was returned."""

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
    better: int
    """the questions whose best evidence has a better rank in the second result"""
    worse: int
    figures: dict[str, FigureDifference]
    by_category: dict[str, dict[str, FigureDifference]]
    changed: Annotated[tuple[RankChange, ...], Field(strict=False)]


def read_result(path: Path) -> Result:
    """The result in a file, or in the folder of a run. Raises DocumentError."""
    return read_document(Result, path / RESULT if path.is_dir() else path, LARGEST_RESULT)


def read_results(paths: Sequence[Path]) -> dict[str, Result]:
    """Results by the names of their folders, or by their paths where two folders have one name.

    Raises DocumentError, and ConfigError for fewer than two.
    """
    if len(paths) < 2:
        raise ConfigError("a comparison needs two results or more", remedy="name another run's folder")
    names = [(path.parent if path.is_file() else path).absolute().name for path in paths]
    given = names if len(set(names)) == len(names) else [str(path) for path in paths]
    return {name: read_result(path) for name, path in zip(given, paths, strict=True)}


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
    answerable = [pair for pair in pairs if pair[0].category not in UNANSWERABLE]
    changed = [pair for pair in answerable if pair[0].rank != pair[1].rank]
    changed.sort(key=lambda pair: (-abs(_gain(pair)), pair[0].line))
    categories = sorted({pair[0].category for pair in pairs if pair[0].category is not None})
    return ResultComparison(
        suite=first.suite.name,
        suite_sha256=first.suite.sha256,
        first=first.subject,
        second=second.subject,
        questions=len(answerable),
        better=sum(_gain(pair) > 0 for pair in changed),
        worse=sum(_gain(pair) < 0 for pair in changed),
        figures=_differences(answerable),
        by_category={name: _differences([pair for pair in pairs if pair[0].category == name]) for name in categories},
        changed=tuple(
            RankChange(
                **old.model_dump(include=set(AboutQuestion.model_fields)), first_rank=old.rank, second_rank=new.rank
            )
            for old, new in changed
        ),
    )


def bare_table(first: str, *numbers: str) -> Table:
    """A table without lines: a column of names, and columns of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def speaker(console: Console) -> Callable[[str], None]:
    """Prints a text as it is, without characters that the terminal would obey."""
    return lambda text: console.print(printable(text), markup=False, highlight=False)


def show(comparison: ResultComparison, console: Console) -> None:
    """Print the figures, and the questions that changed most."""
    say = speaker(console)
    say(f"{comparison.suite}: {subject_name(comparison.first)} -> {subject_name(comparison.second)}")
    table = bare_table("", *COMPARED)
    for name, each in comparison.figures.items():
        table.add_row(name, *_cells(each))
    for category, figures_of_category in comparison.by_category.items():
        for name in (name for name in SHORT if name in figures_of_category):
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


def show_side_by_side(results: Mapping[str, Result], comparisons: Sequence[ResultComparison], console: Console) -> None:
    """Print a row for each result, and one for each category. `comparisons` are those of the first with each other."""
    figure, say = SHORT[-1], speaker(console)
    runs, categories = bare_table("run", "subject", "n", *SHORT), bare_table(figure, *map(printable, results))
    runs.columns[1].justify = "left"
    for name, result in results.items():
        cells = [_with_interval(result, each) for each in SHORT]
        runs.add_row(printable(name), printable(subject_name(result.subject)), str(result.overall.questions), *cells)
    console.print(runs)
    first, *others = results
    for name, comparison in zip(others, comparisons, strict=True):
        if figure in comparison.figures:
            _, _, difference, bounds = _cells(comparison.figures[figure])
            say(f"{name}: {figure} {difference} ({bounds}) from {first}")
    # A baseline has no sessions, and so lacks the questions that only a session asks.
    names = sorted({category for result in results.values() for category in result.by_category})
    for category in names if len(names) > 1 else ():
        groups = [result.by_category.get(category) for result in results.values()]
        shown = ("none" if group is None else f"{group.figures[figure]:.3f} of {group.questions}" for group in groups)
        categories.add_row(printable(category), *shown)
    if categories.row_count:
        console.print(categories)


def _with_interval(result: Result, figure: str) -> str:
    bounds, value = result.overall.intervals.get(figure), result.overall.figures.get(figure)
    if value is None:
        return "none"
    return f"{value:.3f}" if bounds is None else f"{value:.3f} ({bounds[0]:.3f} to {bounds[1]:.3f})"


def plot_page(results: Mapping[str, Result]) -> str:
    """The plot of a figure of each result, with its interval, as a page that fetches nothing and runs nothing."""
    suite, figure = next(iter(results.values())).suite.name, SHORT[-1]
    title = html.escape(f"{suite}: {figure}")
    return "\n".join(
        [
            *_page_head(title),
            f"<h1>{title}</h1>",
            f'<svg width="{WIDTH}" height="{ROW * len(results)}" role="img" aria-label="{title}">',
            *(_bar(place, name, result, figure) for place, (name, result) in enumerate(results.items())),
            "</svg></body></html>",
            "",
        ]
    )


def _page_head(title: str) -> tuple[str, ...]:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{STYLE}</style></head><body>",
    )


def _bar(place: int, name: str, result: Result, figure: str) -> str:
    middle, scale = place * ROW + ROW // 2, WIDTH - LEFT - 80
    value: Figure = result.overall.figures.get(figure, 0.0)
    low, high = result.overall.intervals.get(figure, (value, value))
    at, begin, end = (LEFT + round(each * scale) for each in (value, low, high))
    return (
        f'<text x="0" y="{middle + 5}" fill="currentColor">{html.escape(name)}</text>'
        f'<line x1="{begin}" x2="{end}" y1="{middle}" y2="{middle}" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{at}" cy="{middle}" r="5" fill="currentColor"/>'
        f'<text x="{end + 12}" y="{middle + 5}" fill="currentColor">{value:.3f}</text>'
    )


def page(comparison: ResultComparison) -> str:
    """The comparison as a page that fetches nothing and runs nothing."""
    first, second = html.escape(subject_name(comparison.first)), html.escape(subject_name(comparison.second))
    title = f"{html.escape(comparison.suite)}: {first} and {second}"
    return "\n".join(
        [
            *_page_head(title),
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
    yield "".join(f'<th class="n">{name}</th>' for name in COMPARED)
    yield "</tr></thead><tbody>"
    for name, difference in each.items():
        cells = "".join(f'<td class="n">{html.escape(cell)}</td>' for cell in _cells(difference))
        yield f"<tr><td>{html.escape(name)}</td>{cells}</tr>"
    yield "</tbody></table>"


def _changed_row(change: RankChange) -> str:
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
