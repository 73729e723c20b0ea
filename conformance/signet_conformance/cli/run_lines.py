"""The text of `run`: the conclusion of a run; with --watch also what each later pass changed.

It takes long to import: import it in the function that prints.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

from signet_conformance.cli.commands import tell
from signet_conformance.errors import counted, first_of, printable
from signet_conformance.files import shown_path
from signet_conformance.finding import Verdict
from signet_conformance.reports import run_text
from signet_conformance.reports.cause_text import CauseText, run_summary
from signet_conformance.reports.causes import Causes
from signet_conformance.reports.remarks import warning_lines
from signet_conformance.reports.terminal import Paragraph, draw, table_width, terminal_width, wants_colour
from signet_conformance.reports.text import coverage_lines, skipped_lines
from signet_conformance.running.performance import DrivenPerformance
from signet_conformance.running.watch_loop import Loop, LoopEvent, PassFailed, Saved, Stage, StageOver, Waiting

_MOST_FILES = 3


def run_lines(
    performance: DrivenPerformance,
    baseline: str | None = None,
    *,
    summary: bool = False,
    coverage: bool = False,
    verbose: bool = False,
) -> Iterator[str]:
    """The text of a finished run; with `summary`, one line for each kind of breach.

    `baseline` is the line about the baseline that was written. With `coverage`, the text lists what the run did not
    exercise. Without `verbose`, a WARN beside a FAIL is one line, and notes are shortened.
    """
    conclusion, folder = performance.conclusion, performance.request.folder
    ending = run_text.ClosingText(
        conclusion, performance.status, terminal_width(), wants_colour(sys.stdout), baseline, verbose=verbose
    )
    causes = Causes.of(conclusion)
    lacking = warning_lines(performance.recordings.read_so_far)
    yield from lacking
    if summary:
        yield from run_summary(causes, conclusion, table_width(sys.stdout), ending.colour)
        yield from skipped_lines(conclusion.skipped, ending.width)
        yield from run_text.closing(ending)
        yield from _time_spent_lines(performance, colour=ending.colour)
        return
    for block in run_text.cause_blocks(causes, ending, folder):
        yield block
        yield ""
    yield from run_text.undecided_lines(ending)
    notes = (line for line in run_text.note_lines(performance.recordings.read_so_far) if line not in lacking)
    yield from _wrapped(notes if verbose else map(run_text.shorten_note, notes))
    yield from run_text.closing_lines(ending)
    if coverage and conclusion.coverage is not None:
        yield from coverage_lines(conclusion.coverage, ending.width, ending.colour, missed=True)
    yield from _time_spent_lines(performance, colour=ending.colour)
    if performance.request.report:
        yield run_text.reports_line(folder)
    elif performance.keeps_traces:
        yield f"traces: {printable(folder, 1000)}"


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    """Wrap lines at words for a terminal; a pipe gets them whole, for other programs."""
    width = table_width(sys.stdout)
    for line in lines:
        yield from [line] if width is None else draw([Paragraph(line, 0, 2)], width)


def _time_spent_lines(performance: DrivenPerformance, *, colour: bool) -> Sequence[str]:
    spent = performance.time_spent
    if spent is None:
        return ()
    return run_text.time_spent_lines(spent, table_width(sys.stdout), colour)


def show_loop(loop: Loop, first_lines: Callable[[DrivenPerformance], Iterable[str]], *, brief: bool) -> None:
    """Show the passes of a loop until KeyboardInterrupt. `first_lines` draws the first; `brief` leaves out details."""
    loop_text = _LoopText(first_lines, brief=brief)
    with closing(loop.events()) as events:
        for event in events:
            for line in loop_text.lines(event):
                print(line, flush=True)
            if isinstance(event, StageOver) and event.performance.conclusion.is_interrupted:
                raise KeyboardInterrupt
            if isinstance(event, PassFailed):
                tell(event.failure)


class _LoopText:
    """The text of a loop's events. A pass shows each line once."""

    def __init__(self, first_lines: Callable[[DrivenPerformance], Iterable[str]], *, brief: bool) -> None:
        self._first_lines = first_lines
        self._brief = brief
        self._shown_lines: set[tuple[str, str]] = set()
        """The lines of this pass: a word and a requirement."""
        self._where = ""

    def lines(self, event: LoopEvent) -> Iterator[str]:
        if isinstance(event, Waiting):
            yield from self._waiting(event)
            return
        if isinstance(event, Saved):
            self._shown_lines = set()
            yield ""
            yield f"saved: {first_of((printable(shown_path(path), 200) for path in event.saved), _MOST_FILES)}"
            return
        if isinstance(event, PassFailed):
            return
        if not event.saved:
            yield from self._first_lines(event.performance)
            return
        yield from self._stage(event)

    def _stage(self, event: StageOver) -> Iterator[str]:
        conclusion, changes = event.performance.conclusion, event.changes
        width, colour = terminal_width(), wants_colour(sys.stdout)
        causes = Causes.of(conclusion).connector()
        drawing = CauseText.of_run(conclusion, str(event.performance.request.folder), width, colour=colour)
        for word, names in (("gone", changes.gone), ("still", changes.still), ("new", changes.new)):
            for name in names:
                if (word, name) in self._shown_lines:
                    continue
                self._shown_lines.add((word, name))
                if word == "gone":
                    yield f"  {word:5} {name}"
                    continue
                judgement = conclusion.judgements[name]
                yield f"  {word:5} {judgement.verdict} {name}  {printable(judgement.message, 200)}"
                if word == "new" and not self._brief and judgement.verdict is not Verdict.WARN:
                    yield from (f"  {line}" for line in drawing.of_requirement(causes, name).splitlines())
        if changes.unshown:
            reason = "not shown again so far" if event.stage is Stage.BROKEN else "decided once nothing else fails"
            yield f"  {reason}: {', '.join(changes.unshown)}"
        if conclusion.shortfall is not None:
            yield from (f"  {line}" for line in conclusion.shortfall.lines())
        counts = f"{len(changes.new)} new, {len(changes.gone)} gone, {len(changes.still)} still"
        yield f"{counts}; {event.performed} of {event.of} scenarios, {event.after_s:.1f} s after the save"
        if event.stage is Stage.WHOLE:
            yield from run_text.closing(run_text.ClosingText(conclusion, conclusion.status, width, colour))

    def _waiting(self, event: Waiting) -> Iterator[str]:
        where = ", ".join(printable(place, 300) for place in event.places)
        if where != self._where:
            self._where = where
            compiled = " (JavaScript is loaded: let your compiler watch the TypeScript)" if event.compiled else ""
            yield f"watching {counted(event.files, 'file')} below {where or 'nothing'}{compiled}; Ctrl-C ends it"
