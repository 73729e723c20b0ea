"""The conclusion of a driven run as text: a block for each cause of what fails, and the lines at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from signet_conformance.errors import printable
from signet_conformance.facts.whole_run import refusals
from signet_conformance.finding import Verdict
from signet_conformance.outcome.broken_off import warnings_of
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.outcome.time_spent import TimePart, TimeSpent
from signet_conformance.reports import FORMATS
from signet_conformance.reports.cause_text import CauseText
from signet_conformance.reports.causes import Causes
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.reports.remarks import no_requests, played, remarks
from signet_conformance.reports.terminal import FAINT, STRONG, Paragraph, draw, draw_table, labelled_command
from signet_conformance.reports.text import (
    OpenRequirements,
    closing_line,
    known_lines,
    side_summary_lines,
    skipped_lines,
    summary_lines,
)
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import PrintedMark, SkippedMark, marks_of

MOST_LINES = 80
"""Lines of all causes together, so that a first failing run can be read in one go."""


def cause_blocks(causes: Causes, text: ClosingText, folder: Path) -> list[str]:
    """A block of text for each cause that is not a known failure; `folder` holds the traces of the run.

    Beside a FAIL, a WARN takes one line unless everything is asked for.
    """
    drawing = CauseText.of_run(text.conclusion, str(folder), text.width, colour=text.colour)
    unknown = [cause for cause in causes.connector() if not cause.is_known]
    if text.verbose:
        return ["\n".join(block) for block in drawing.blocks(unknown)]
    failing = [cause for cause in unknown if cause.verdict is not Verdict.WARN]
    blocks = ["\n".join(block) for block in drawing.blocks(failing or unknown, most_lines=MOST_LINES)]
    if rows := [drawing.row(cause) for cause in unknown if failing and cause.verdict is Verdict.WARN]:
        full = labelled_command("in full", ["signet-conformance", "check", str(folder), *text.conclusion.terms.words()])
        blocks.append("\n".join([*rows, *draw([full], text.width, text.colour)]))
    return blocks


def note_lines(read: Iterable[Trace]) -> Iterator[str]:
    """Problems of the recordings and the installation."""
    traces = tuple(read)
    texts = (*(warning for trace in traces for warning in warnings_of(trace)), *remarks(traces))
    return (f"note: {printable(text, 600)}" for text in texts)


_LONG_NOTE = 320


def shorten_note(note: str) -> str:
    """A note, cut so that several can be read."""
    return note if len(note) <= _LONG_NOTE else f"{note[: _LONG_NOTE - 1]}…"


def undecided_lines(text: ClosingText) -> Sequence[str]:
    """Why requirements stayed undecided, and what would settle them; shortened if something fails."""
    undecided = OpenRequirements()
    for judged in text.conclusion.judged:
        undecided.add(judged)
    short = text.status == 1 and not text.verbose
    return undecided.lines(text.conclusion.judgements, text.width, text.colour, short=short, elsewhere=text.verbose)


def reports_line(folder: Path) -> str:
    """Where the reports of a run are."""
    first, *others = FORMATS.values()
    return f"report: {folder / first.file}, and beside it {', '.join(kind.suffix for kind in others)}"


class ClosingText(Struct, frozen=True):
    """The closing lines of a run: its conclusion, the width and the colours.

    `status` is the exit status of the run, `baseline` names the baseline that was written. Without `verbose`, lines
    that no verdict rests on are left out: the page has them.
    """

    conclusion: Conclusion
    status: int
    width: int
    colour: bool = False
    baseline: str | None = None
    verbose: bool = False


def closing_lines(text: ClosingText) -> Iterator[str]:
    """The end of a run, part by part."""
    concluded, width, colour = text.conclusion, text.width, text.colour
    yield from known_lines(concluded.known, width, colour)
    yield from summary_lines([("this run", concluded.verdicts)], None, width, colour)
    yield from side_summary_lines(concluded.judged, width)
    yield from later_contract(text)
    # What a connector can do depends on the harness that was played.
    yield from (host.words for host in played(each.trace for each in concluded.judged))
    yield from skipped_lines(concluded.skipped, width)
    yield from closing(text)
    yield from () if concluded.shortfall is None else concluded.shortfall.lines()
    yield from () if text.baseline is None else (text.baseline,)
    yield from generated_sessions(text)
    yield from coverage(text)
    yield from unreached(text)
    yield from silence(text)


def later_contract(text: ClosingText) -> Iterable[str]:
    """Breaches of the next contract by a release between two."""
    newer = text.conclusion.newer
    if newer is None or not newer.words:
        return
    yield from draw([Paragraph(f"{newer.words} (changes no exit status)", 0, 2)], text.width, text.colour)
    rows = [f"{each.verdict} {name}: {printable(each.message, 300)}" for name, each in newer.breaches.items()]
    yield from draw((Paragraph(row, 2, 4) for row in rows), text.width, text.colour)


def closing(text: ClosingText) -> Iterable[str]:
    """The verdict of the run in one line."""
    yield closing_line(text.conclusion, text.status, text.colour)


def generated_sessions(text: ClosingText) -> Iterable[str]:
    """The results of the generated sessions."""
    generated = text.conclusion.generated
    if generated is None:
        return
    yield from generated.lines()
    lines = generated.coverage_lines() if text.verbose else generated.gap_lines()
    yield from draw((Paragraph(line, 2, 4) for line in lines), text.width, text.colour)


def coverage(text: ClosingText) -> Iterable[str]:
    """How much of the contract was exercised, and whether that is too little."""
    measured, terms = text.conclusion.coverage, text.conclusion.terms
    # A run for some requirements exercises only a part on purpose.
    is_bounded = terms.least_coverage is not None
    if measured is not None and (is_bounded or (text.verbose and terms.only is None)):
        yield f"coverage: {measured.words}"
    if (note := text.conclusion.coverage_note()) is not None:
        yield note


def unreached(text: ClosingText) -> Iterable[str]:
    """Tools and fields that the model cannot reach through the connector."""
    reach = text.conclusion.reach
    if reach is not None and reach.words and text.conclusion.terms.only is None and (text.verbose or not text.status):
        yield from draw([Paragraph(f"not reachable, for information: {reach.words}", 0, 2)], text.width, text.colour)


def silence(text: ClosingText) -> Iterable[str]:
    """What to check if the connector never called, or if none of its requests was passed on."""
    if text.conclusion.recorded:
        return
    traces = [each.trace for each in text.conclusion.judged]
    if (first := next((trace for trace in traces if trace.exchanges), None)) is not None:
        command = shell_command(["signet-conformance", "show", first.path or "TRACE"])
        yield f"no hook or memory request was accepted; what was sent and answered: {command}"
    elif (refused := next(refusals(traces), None)) is not None:
        yield f"no request was passed on: {refused}"
    elif unread := no_requests(traces):
        yield f"no request was passed on, and what came was {printable(unread[0], 300)}"
    else:
        yield "no request was recorded: does the connector call the address in SIGNET_DAEMON_URL?"
    prints = (mark.text for trace in traces for mark in marks_of(trace, PrintedMark) if mark.text is not None)
    if printed := next(prints, "").split():
        yield f"the connector printed: {printable(' '.join(printed), 300)}"
    skips = (mark for each in text.conclusion.judged for mark in marks_of(each.trace, SkippedMark))
    if (skip := next(skips, None)) is not None:
        yield f"the first step that was skipped: {printable(skip.reason, 300)}"


def time_spent_lines(spent: TimeSpent, width: int | None, colour: bool = False) -> list[str]:
    """The table, then the phases and the CPU time, one line each."""
    table = Table(box=None, pad_edge=False)
    table.add_column(Text("where the time went", STRONG))
    for heading in ("seconds", "share", "times"):
        table.add_column(Text(heading, FAINT), justify="right")
    total = sum(seconds for seconds, _ in spent.parts.values())
    for group, parts in groupby(spent.parts, lambda part: part.group):
        _add_group(table, group, [(part, *spent.parts[part]) for part in parts], total)
    phases = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.phases.items())
    programs = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.cpu_s.items())
    return [
        *draw_table(table, width, colour),
        f"time, {spent.wall_s:.1f} s: {phases}; above, what {spent.workers} workers did while driving",
        f"CPU time, {sum(spent.cpu_s.values()):.1f} s: {programs}",
    ]


def _add_group(table: Table, group: str, parts: list[tuple[TimePart, float, int]], total: float) -> None:
    _add(table, Text(group, STRONG), sum(seconds for _, seconds, _ in parts), total, None)
    for part, seconds, times in parts:
        _add(table, Text(f"  {part.words}"), seconds, total, times)


def _add(table: Table, name: Text, seconds: float, total: float, times: int | None) -> None:
    share = f"{seconds / total:.0%}" if total else ""
    table.add_row(name, Text(f"{seconds:.2f}"), Text(share), Text("" if times is None else str(times)))
