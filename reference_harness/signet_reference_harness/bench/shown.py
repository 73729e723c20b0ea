"""Shows on a terminal what a run came to."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.table import Table

from signet_reference_harness.bench.answering import Answers
from signet_reference_harness.bench.result import Group, Result, Times, named
from signet_reference_harness.errors import printable

COLUMNS: Final = ("hit@1", "hit@5", "hit@10", "recall@10", "mrr@10", "ndcg@10")
SURE: Final = ("hit@10", "mrr@10")
"""The figures whose intervals are printed; the result holds those of all."""


def show(result: Result, times: Times, answers: Answers | None, console: Console) -> None:
    """Print the figures, the times and the assertions that failed."""
    suite, counts = result.suite, result.suite.counts
    console.print(f"{printable(suite.name)} on {printable(named(result.subject))}", markup=False, highlight=False)
    said = (
        f"{counts['questions']} questions over {counts['facts']} facts in {counts['scenarios']} scenarios; "
        f"{counts['questions_without_evidence']} without evidence, in no figure"
    )
    console.print(said, markup=False, highlight=False)
    if result.questions:
        console.print(_figures(result))
        bounds = result.overall.intervals
        said = "; ".join(f"{name} {low:.3f} to {high:.3f}" for name, (low, high) in bounds.items() if name in SURE)
        if said:
            console.print(f"95 % intervals: {said}", markup=False, highlight=False)
    console.print(_latencies(times))
    if answers is not None:
        console.print(_answers(answers), markup=False, highlight=False)
    held, failed = result.assertions["held"], result.assertions["failed"]
    if held + failed:
        console.print(f"assertions: {held} held, {failed} failed", markup=False, highlight=False)
    for each in result.failed_assertions:
        demanded = "is missing" if each.demand == "expect" else "should not be there"
        line = f"  line {each.line}, scenario {each.scenario}: {each.item} {demanded}"
        console.print(printable(line), markup=False, highlight=False)
    for defect in suite.known_defects:
        console.print(f"known defect of the suite: {printable(defect)}", markup=False, highlight=False)
    if suite.licence:
        console.print(f"licence of the suite: {printable(suite.licence)}", markup=False, highlight=False)


def _answers(answers: Answers) -> str:
    overall = answers.overall
    judged = "" if overall.judged is None or answers.judge is None else f", judged {overall.judged:.3f}"
    by = f" (by {answers.judge['model']})" if judged and answers.judge else ""
    model = printable(" ".join(each for each in (answers.provider, answers.model) if each))
    scores = f"exact {overall.exact:.3f}, F1 {overall.f1:.3f}{judged}{by}"
    return f"answers of {model} to {overall.questions} questions: {scores}"


def _figures(result: Result) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True, max_width=20)
    table.add_column("n", justify="right")
    for name in COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    _row(table, "all", result.overall)
    groups = {**result.by_category} if set(result.by_category) != {"none"} else {}
    for name, group in groups.items():
        _row(table, printable(name), group)
    return table


def _row(table: Table, name: str, group: Group) -> None:
    table.add_row(name, str(group.questions), *(f"{group.figures[column]:.3f}" for column in COLUMNS))


def _latencies(times: Times) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("milliseconds")
    for name in ("calls", "p50", "p90", "p99"):
        table.add_column(name, justify="right", no_wrap=True)
    for operation, spent in times.latencies_ms.items():
        table.add_row(operation, str(int(spent["count"])), *(f"{spent[name]:.1f}" for name in ("p50", "p90", "p99")))
    return table
