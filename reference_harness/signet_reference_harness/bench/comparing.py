"""Compares results of the same suite: two of them question by question, any number side by side."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field
from rich.bar import Bar
from rich.console import Console
from rich.table import Table

from signet_reference_harness.bench import figures
from signet_reference_harness.bench.result import RESULT, AboutQuestion, Figure, Question, Result, subject_name
from signet_reference_harness.bench.suite import UNANSWERABLE
from signet_reference_harness.documents import HarnessDocument, StrictModel, read_document
from signet_reference_harness.errors import ConfigError, printable

LARGEST_RESULT: Final = 1024 * 1024 * 1024
MOST_SHOWN: Final = 20
COLUMNS: Final = ("first", "second", "difference", "95 % interval")
MAIN_FIGURES: Final = ("hit@10", "mrr@10")
"""The figures printed for each category and run. The plot shows the last one; the page of two results shows all."""
PLOT: Final = 60
"""Characters of the plot from 0 to 1."""


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
    """Results by the names of their folders, or by their paths if two folders have one name.

    Raises DocumentError, and ConfigError for fewer than two.
    """
    if len(paths) < 2:
        raise ConfigError("a comparison needs two results or more", remedy="name another run's folder")
    names = [(path.parent if path.is_file() else path).absolute().name for path in paths]
    keys = names if len(set(names)) == len(names) else [str(path) for path in paths]
    return {name: read_result(path) for name, path in zip(keys, paths, strict=True)}


def compare(first: Result, second: Result) -> ResultComparison:
    """Subtract the first result from the second. Raises ConfigError for results of two suites."""
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
    about = set(AboutQuestion.model_fields)
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
            RankChange(**old.model_dump(include=about), first_rank=old.rank, second_rank=new.rank)
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


def wide_console() -> Console:
    """Standard output, on which no table loses a figure: a narrow terminal wraps its lines."""
    return Console(soft_wrap=True, width=1000)


def speaker(console: Console) -> Callable[[str], None]:
    """A function that prints a text without markup, and without control characters."""
    return lambda text: console.print(printable(text), markup=False, highlight=False)


def show(comparison: ResultComparison, console: Console, *, whole: bool = False) -> None:
    """Print the figures, and the questions that changed most; with `whole`, every figure and question."""
    say = speaker(console)
    say(f"{comparison.suite}: {subject_name(comparison.first)} -> {subject_name(comparison.second)}")
    table = bare_table("", *COLUMNS)
    for name, each in comparison.figures.items():
        table.add_row(name, *_cells(each))
    for category, figures_of_category in comparison.by_category.items():
        for name in (name for name in figures_of_category if whole or name in MAIN_FIGURES):
            table.add_row(printable(f"{category}: {name}"), *_cells(figures_of_category[name]))
    console.print(table)
    same = comparison.questions - comparison.better - comparison.worse
    moved = f"{comparison.better} better, {comparison.worse} worse"
    say(f"{comparison.questions} questions: {moved}, {same} with the same best rank")
    for change in comparison.changed if whole else comparison.changed[:MOST_SHOWN]:
        ranks = f"{_rank(change.first_rank)} -> {_rank(change.second_rank)}"
        about = f" ({change.category})" if whole and change.category else ""
        say(f"  line {change.line}, {change.scenario}/{change.id}{about}: {ranks}")
    if not whole and len(comparison.changed) > MOST_SHOWN:
        say(f"  and {len(comparison.changed) - MOST_SHOWN} more: --json or --html has them all")


def show_side_by_side(results: Mapping[str, Result], comparisons: Sequence[ResultComparison], console: Console) -> None:
    """Print a row for each result, and one for each category. `comparisons` are those of the first with each other."""
    figure, say = MAIN_FIGURES[-1], speaker(console)
    runs, categories = bare_table("run", "subject", "n", *MAIN_FIGURES), bare_table(figure, *map(printable, results))
    runs.columns[1].justify = "left"
    for name, result in results.items():
        cells = [_with_interval(result, each) for each in MAIN_FIGURES]
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


def page_of(results: Mapping[str, Result], comparisons: Sequence[ResultComparison]) -> str:
    """Two results compared, or more side by side, and a plot, as an HTML page without scripts or references."""
    console = Console(record=True, file=io.StringIO(), width=160, soft_wrap=True)
    if len(comparisons) == 1:
        show(comparisons[0], console, whole=True)
    else:
        show_side_by_side(results, comparisons, console)
    _plot(results, console)
    return console.export_html(code_format=Path(__file__).with_name("page.html").read_text("utf-8"))


def _plot(results: Mapping[str, Result], console: Console) -> None:
    """Draw the interval of a figure of each result, from 0 to 1."""
    figure = MAIN_FIGURES[-1]
    table = bare_table("run", figure)
    table.add_column(f"0{'1':>{PLOT - 1}}", width=PLOT)
    for name, result in results.items():
        value: Figure = result.overall.figures.get(figure, 0.0)
        low, high = result.overall.intervals.get(figure, (value, value))
        # A bar has a width, even that of one value.
        table.add_row(printable(name), f"{value:.3f}", Bar(1.0, min(low, 1 - 1 / PLOT), max(high, low + 1 / PLOT)))
    console.print(table)


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
    first, second = (1 / (question.rank or math.inf) for question in pair)
    return second - first


def _rank(rank: int | None) -> str:
    return "none" if rank is None else str(rank)


def _cells(each: FigureDifference) -> tuple[str, str, str, str]:
    bounds = "none" if each.interval is None else f"{each.interval[0]:+.3f} to {each.interval[1]:+.3f}"
    return f"{each.first:.3f}", f"{each.second:.3f}", f"{each.difference:+.3f}", bounds
