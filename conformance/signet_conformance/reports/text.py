"""The report for people: a block for each breach that can be mended alone, then what is undecided, then counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from signet_conformance.contract import catalogue, requirements
from signet_conformance.engine import Judged
from signet_conformance.errors import KitError, NothingTestedError, counted, printable
from signet_conformance.finding import BREACHES, FOLDING_ORDER, Judgement, Verdict
from signet_conformance.outcome.coverage import Coverage
from signet_conformance.reports.requirement_pages import explain_note
from signet_conformance.reports.terminal import (
    MAX_WIDTH,
    VERDICT_STYLES,
    Paragraph,
    drawn,
    one_line,
    usable_width,
    verdict_text,
)

_COLUMNS = {
    Verdict.ERROR: "ERROR",
    Verdict.FAIL: "FAIL",
    Verdict.WARN: "WARN",
    Verdict.PASS: "PASS",
    Verdict.INCONCLUSIVE: "INC",
    Verdict.NOT_APPLICABLE: "N/A",
}
_COLUMN_WIDTH = 6
_DIMENSION_WIDTH = 13
_LEAST_NAME_WIDTH = 16
MAX_ROWS = 5
"""Traces that get a line each; more are counted together."""


_APART = "apart from the connector's verdicts and the exit status"


def daemon_side_lines(width: int) -> list[str]:
    """What stands above the daemon's breaches: they change no verdict of the connector."""
    return drawn([Paragraph(f"On the daemon's side, {_APART}:")], width)


def model_side_lines(
    judged: Sequence[Judged], at_model: Mapping[str, Judgement], width: int, colour: bool
) -> list[str]:
    """What reached the harness's model, counted, and what stays open of it; empty where nothing was recorded there."""
    models = [each.trace.model for each in judged if each.trace.model is not None]
    if not models:
        return []
    asked = counted(sum(len(model.exchanges) for model in models), "exchange")
    undecided = (
        _listed(judgement, f"{printable(judgement.message, 200)}.{explain_note(judgement.requirement)}")
        for judgement in at_model.values()
        if judgement.verdict is Verdict.INCONCLUSIVE
    )
    remarked = (
        _listed(judgement, judgement.message)
        for judgement in at_model.values()
        if judgement.verdict is Verdict.PASS and ";" in judgement.message
    )
    head = Paragraph(f"What reached the model ({asked}), {_APART}: {_counted(at_model)}")
    return drawn([head, *remarked, *undecided], width, colour)


def model_closing_line(judged: Sequence[Judged], at_model: Mapping[str, Judgement], status: int) -> str:
    """The verdict, in one line, of a run that was asked for what reached the model alone."""
    where = counted(len(judged), "trace")
    if status == NothingTestedError.exit_status:
        why = next((judgement.message for judgement in at_model.values()), "no trace was judged")
        return f"nothing was tested in {where}: {printable(why, 200)} (exit {status})"
    return f"at the model: {_counted(at_model)} in {where}, {_APART} (exit {status})"


def _counted(judgements: Mapping[str, Judgement]) -> str:
    verdicts = Counter(judgement.verdict for judgement in judgements.values())
    return ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in FOLDING_ORDER if verdicts[verdict])


def side_summary_lines(judged: Sequence[Judged], width: int = 80) -> list[str]:
    """What daemon and harness breach over several traces, one paragraph a requirement."""
    paragraphs = []
    for name, requirement in catalogue().items():
        sides = [trace.harness if requirement.side == "harness" else trace.daemon for trace in judged]
        judgements = [side[name] for side in sides if name in side]
        breaches = [judgement for judgement in judgements if judgement.verdict in BREACHES]
        if breaches:
            where = counted(len(breaches), "trace")
            message = printable(breaches[0].message, 200)
            whose = "at the model" if requirement.side == "harness" else "on the daemon's side"
            text = f"{whose}: {breaches[0].verdict} {name} {message} ({where}){explain_note(name)}"
            paragraphs.append(Paragraph(text, 0, 4))
    return drawn(paragraphs, width)


def settled_lines(judgements: Mapping[str, Judgement], width: int, colour: bool) -> list[str]:
    """The requirements that are met, or that nothing in the run is subject to: one paragraph each."""
    known = requirements()
    paragraphs = []
    for verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE):
        for name, judgement in judgements.items():
            if judgement.verdict is verdict:
                sentence = known[name].title if name in known else ""
                text = f"{sentence} ({printable(judgement.message, 120)}){explain_note(name)}".strip()
                paragraphs.append(_listed(judgement, text))
    return drawn(paragraphs, width, colour)


def _listed(judgement: Judgement, text: str) -> Paragraph:
    head = verdict_text(judgement.verdict)
    return Paragraph(Text.assemble(head, f" {judgement.requirement} {text}"), 0, 4)


def summary_lines(
    rows: Sequence[tuple[str, Mapping[str, Verdict]]],
    together: Mapping[str, Verdict] | None = None,
    width: int = 80,
    colour: bool = False,
) -> list[str]:
    """How many requirements got which verdict, a line for each (name, verdicts) of `rows`, and one for all `together`.

    INC counts INCONCLUSIVE, N/A counts NOT-APPLICABLE. Of many rows only the last is shown. Too narrow a terminal gets
    sentences, not columns.
    """
    tallies = [(printable(name, 400), Counter(verdicts.values())) for name, verdicts in rows]
    if together is not None and len(tallies) > 1:
        whole = (
            f"{len(tallies)} traces together" if len(tallies) > MAX_ROWS else "together",
            Counter(together.values()),
        )
        tallies = [*tallies, whole] if len(tallies) <= MAX_ROWS else [whole]
    room = usable_width(width) - _COLUMN_WIDTH * len(_COLUMNS)
    if room < _LEAST_NAME_WIDTH:
        sentences = (
            f"{name}: "
            + ", ".join(f"{tally[verdict]} {title}" for verdict, title in _COLUMNS.items() if tally[verdict])
            for name, tally in tallies
        )
        return drawn([Paragraph(sentence, 0, 2) for sentence in sentences], width, colour)
    table = Table.grid()
    table.add_column(width=min(room, max([8, *(cell_len(name) for name, _ in tallies)])))
    for _ in _COLUMNS:
        table.add_column(justify="right", width=_COLUMN_WIDTH)
    table.add_row("", *_COLUMNS.values())
    for name, tally in tallies:
        counts = (Text.assemble((str(tally[v]), VERDICT_STYLES[v] if tally[v] else "")) for v in _COLUMNS)
        table.add_row(Text(_tail(name, room), no_wrap=True), *counts)
    return drawn([table], width, colour)


def _tail(name: str, width: int) -> str:
    """The end of a name that is too wide: files differ by their ends."""
    if cell_len(name) <= width:
        return name
    while cell_len(name) >= width:
        name = name[1:]
    return f"…{name}"


def coverage_lines(coverage: Coverage, width: int, colour: bool, *, missed: bool = False) -> list[str]:
    """How much of the contract was exercised, a line each dimension; the missed points below it when asked for."""
    lines = []
    for part in coverage.parts:
        lines.append(Paragraph(f"{len(part.exercised):>4} of {part.total}", _DIMENSION_WIDTH, beside=part.name))
        if missed:
            lines += [Paragraph(f"not seen: {point}", 4, 8) for point in part.missed]
    lines.append(Paragraph(f"{coverage.percent:>6.1f} %", _DIMENSION_WIDTH, beside="contract"))
    return drawn(lines, width, colour)


def closing_line(
    verdicts: Mapping[str, Verdict],
    traces: int,
    status: int,
    colour: bool = False,
    unread: int = 0,
    because: str = "",
) -> str:
    """The verdict of a run in one line.

    `verdicts` is by requirement, over all `traces`; `unread` counts what could not be read; `status` is
    the exit status, which is 3 where no hook or memory request was accepted, whatever was met by silence.
    `because` says in words what fails the run beside its verdicts.
    """
    tally = Counter(verdicts.values())
    tested = sum(tally[verdict] for verdict in BREACHES) + tally[Verdict.PASS]
    where = counted(traces, "trace") + (f", {unread} not readable" if unread else "")
    if tested == 0:
        return f"nothing was tested in {where}{f', failed by {because}' if because else ''} (exit {status})"
    if status == NothingTestedError.exit_status:
        return f"nothing was tested: no hook or memory request was accepted in {where} (exit {status})"
    tallied = ", ".join(f"{tally[verdict]} {verdict}" for verdict in BREACHES if tally[verdict])
    worst = next(verdict for verdict in FOLDING_ORDER if tally[verdict])
    with_counted = f", with {tallied}" if tallied else ""
    if because and status == 1:
        text, worst = f"failed by {because}{with_counted}", Verdict.FAIL
    elif because and status == KitError.exit_status and not tally[Verdict.ERROR]:
        text, worst = f"incomplete: {because}{with_counted}", Verdict.ERROR
    elif status:
        text = tallied or "nothing is breached"
    else:
        text = f"conforming{with_counted}"
    tail = f"; {counted(tested, 'requirement')} tested in {where} (exit {status})"
    (line,) = drawn([one_line(Text.assemble((text, VERDICT_STYLES[worst]), tail))], MAX_WIDTH, colour)
    return line
