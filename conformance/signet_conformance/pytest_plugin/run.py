"""One conformance run inside a pytest run: the scenarios are performed once, then there is one item per requirement.

The controlling process performs the scenarios before its first item, however many xdist workers there are; the workers
judge the same traces. `outcome` draws the conclusion; this module shows it.
"""

from __future__ import annotations

import io
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, Self

import pytest

from signet_conformance.children.foreground import interrupted_by
from signet_conformance.children.temporary import let_go
from signet_conformance.contract import requirements
from signet_conformance.errors import SignetConformanceError, printable
from signet_conformance.finding import Judgement, Reason, Verdict
from signet_conformance.outcome.conclusion import Conclusion, Judging
from signet_conformance.pytest_plugin.items import NODE, RequirementItem, Requirements, verdict_of
from signet_conformance.pytest_plugin.options import chosen_face, invocation, read_options, read_worker_options
from signet_conformance.reports import run_text, write_reports
from signet_conformance.reports.cause_text import CauseText
from signet_conformance.reports.causes import Cause, Causes
from signet_conformance.reports.command_lines import explain_words
from signet_conformance.reports.terminal import Paragraph, draw, is_live, labelled_command
from signet_conformance.rules import rules
from signet_conformance.running.performance import DrivenPerformance, RunPerformance
from signet_conformance.running.progress import Tell, show_progress
from signet_conformance.running.request import DrivenRequest, RunRequest
from signet_conformance.running.stopwatch import REPORTS
from signet_conformance.targets.face import find_face
from signet_conformance.trace.recordings import recordings_in

_SETTLED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""The statuses of a run that ended normally; pytest's other statuses are not changed."""

_UNJUDGED = 4


class ConformanceRun:
    """The kit's part of one pytest run."""

    def __init__(self, config: pytest.Config, asked: RunRequest, *, alone: bool = True) -> None:
        self.asked = asked
        self.performance = DrivenPerformance(asked) if isinstance(asked, DrivenRequest) else RunPerformance(asked)
        target = "recording" if asked.target is None else asked.target.name
        # If several faces are played, the items of each have its name.
        played = "" if asked.target is None or alone else find_face(asked.target).name
        self.title = f"signet conformance{played and ': '}{played}"
        self._node = f"{NODE}/{target}{played and '@'}{played}"
        self.baseline_line: str | None = None
        """The line that says which baseline was written."""
        self._config = config
        self._worker = hasattr(config, "workerinput")
        self._verdicts: dict[str, Verdict] = {}
        self._stopped = False
        self._interrupted = False
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            # Without file arguments only the kit's items run.
            config.args = []
        if not self._worker and not asked.report:
            config.add_cleanup(self._discard_traces)

    @classmethod
    def all_of(cls, session: pytest.Session, taken: Sequence[str]) -> Sequence[Self]:
        """Read the options: one run, or one per face. End the pytest run with status 2 if they cannot be used.

        `taken` are the options that the repository defines itself.
        """
        config = session.config
        worker = getattr(config, "workerinput", None)
        try:
            every = (
                read_options(config, taken)
                if worker is None
                else read_worker_options(config, worker["signet_conformance_folders"])
            )
        except SignetConformanceError as failure:
            end_run(session, failure)
        return [cls(config, asked, alone=len(every) == 1) for asked in every]

    @property
    def folder(self) -> Path:
        """The folder for the traces of a driven run."""
        return self.asked.folder

    # -- before the items

    def collector(self, session: pytest.Session) -> Requirements:
        """The collector of the kit's items."""
        # pytest's own node id would begin with `::` here, which readers of JUnit files mangle.
        return Requirements.from_parent(session, name=self._node, nodeid=self._node, run=self)

    def owns(self, nodeid: str) -> bool:
        """Whether an item belongs to this run."""
        return nodeid.startswith(f"{self._node}::")

    def header(self) -> str | None:
        """The line with the played face and the seed of the generated sessions; None if there is neither."""
        asked = self.asked
        if not isinstance(asked, DrivenRequest):
            return None
        words = asked.words("--signet-face")
        return f"signet: target {asked.target.name}, {', '.join(words)}" if words else None

    def begin(self, session: pytest.Session) -> None:
        """Perform the scenarios, or read the recordings, in the controlling process; end the pytest run on an error."""
        if self._worker or not self._has_items(session):
            return
        self._narrow(session)
        try:
            if isinstance(self.performance, DrivenPerformance):
                self._perform(self.performance)
            self.performance.recordings.traces()
            self.performance.remember()
            if self.performance.conclusion.is_interrupted:
                self._end_interrupted(session)
        except SignetConformanceError as failure:
            self._stopped = True
            end_run(session, failure)
        except KeyboardInterrupt:
            self._interrupted = True
            # A message, since a traceback of where the kit waited would not help.
            pytest.exit("interrupted: nothing was judged", returncode=pytest.ExitCode.INTERRUPTED)

    def _end_interrupted(self, session: pytest.Session) -> None:
        """Show and write what the interrupted run found, and end pytest with the status of an interruption."""
        conclusion, width = self.performance.conclusion, shutil.get_terminal_size().columns
        self.performance.write()
        text = run_text.ClosingText(conclusion, self.performance.status, width)
        blocks = run_text.cause_blocks(Causes.of(conclusion), text, self.folder)
        shortfall = conclusion.shortfall
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter.section(self.title)
            lines = [f"{block}\n" for block in blocks]
            lines += [] if shortfall is None else shortfall.lines()
            lines += [run_text.reports_line(self.folder)] if self.asked.report else []
            for line in lines:
                reporter.write_line(line)
        self._interrupted = True
        pytest.exit(
            "interrupted: only the scenarios performed until then were judged", returncode=pytest.ExitCode.INTERRUPTED
        )

    def _narrow(self, session: pytest.Session) -> None:
        """Perform only scenarios that can decide the selected items: by -k, --lf or a node id.

        Generated sessions concern all requirements, so they are left out, unless their number was given, or --lf
        repeats failures that may have come from one of them.
        """
        asked = self.asked
        selected = {item.name for item in session.items if isinstance(item, RequirementItem) and self.owns(item.nodeid)}
        every = {*requirements(), *rules()}
        if not isinstance(asked, DrivenRequest) or asked.least_coverage is not None:
            return
        if not selected or selected >= every:
            return
        given = (self._config.getoption(name, default=None) for name in ("signet_scenarios", "signet_short_scenarios"))
        are_given = any(number is not None for number in given)
        sessions = asked.sessions if are_given or session.config.getoption("lf", default=False) else 0
        options = replace(asked.options, only=frozenset(selected))
        narrowed = replace(asked, options=options, sessions=sessions)
        self.asked, self.performance = narrowed, DrivenPerformance(narrowed)
        line = (
            f"signet: {len(selected)} of {len(every)} requirements: only scenarios that can decide them are performed"
        )
        if asked.sessions and not sessions:
            line += f"; no generated sessions: --signet-scenarios {asked.sessions} performs them"
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(line)

    def _has_items(self, session: pytest.Session) -> bool:
        option = session.config.option
        if option.collectonly or (session.testsfailed and not option.continue_on_collection_errors):
            return False
        # With xdist, only the workers know the items.
        return session.config.pluginmanager.hasplugin("dsession") or any(
            isinstance(item, RequirementItem) and self.owns(item.nodeid) for item in session.items
        )

    def _perform(self, driven: DrivenPerformance) -> None:
        # So that a signal also ends the run's daemons, recorders and connectors.
        with interrupted_by(signal.SIGTERM, signal.SIGHUP), progress_shown(self._config) as tell:
            driven.drive(invocation(driven.request.target, chosen_face(self._config)), tell)

    # -- for the items

    def judgement(self, requirement: str) -> Judgement:
        """The verdict of the whole run for a requirement."""
        undecided = Judgement(
            requirement, Verdict.NOT_APPLICABLE, Reason.NO_SUBJECT, "no scenario was performed to its end"
        )
        return self.performance.conclusion.judgements.get(requirement, undecided)

    def known_reason(self, judgement: Judgement) -> str | None:
        """The reason of a known failure; None if the failure is not known at every target that has it."""
        reason = self.performance.conclusion.known_reasons.get(judgement.requirement)
        return None if reason is None else printable(reason, 300)

    def place_of(self, judgement: Judgement) -> tuple[str, int]:
        """The file and line of the first exchange that decided, or the folder of the run if no exchange did."""
        return self.performance.conclusion.place_of(judgement.requirement) or (str(self.folder), 0)

    def breach_text(self, judgement: Judgement) -> str:
        """The report on a failing requirement, for the author of the connector."""
        drawing = CauseText.of_run(self.performance.conclusion, str(self.folder), shutil.get_terminal_size().columns)
        return drawing.of_requirement(self._causes, judgement.requirement) or printable(judgement.message, 600)

    @cached_property
    def _causes(self) -> Sequence[Cause]:
        return Causes.of(self.performance.conclusion).connector()

    # -- the end

    def note_verdict(self, report: pytest.TestReport) -> None:
        """Remember the verdict of an item, wherever it ran."""
        if self.owns(report.nodeid) and (verdict := verdict_of(report)) is not None:
            self._verdicts[report.nodeid.rsplit("::", 1)[-1]] = verdict

    @cached_property
    def conclusion(self) -> Conclusion:
        """The conclusion over the tested requirements; to be used after the last item."""
        # If no item ran, there may be no traces either.
        judging = self.performance.judging if self._verdicts else Judging(self.asked.terms(), measured=True)
        return judging.conclude(
            generated=self.performance.recordings.generated(),
            shortfall=self.performance.recordings.shortfall(),
            tested=self._verdicts,
        )

    def status(self, exitstatus: int) -> int:
        """The exit status of the pytest run; pytest's own is `exitstatus`."""
        if exitstatus not in _SETTLED:
            return int(exitstatus)
        # If a test of the repository failed too, the status for unjudged requirements has precedence.
        failed = exitstatus == pytest.ExitCode.TESTS_FAILED and self.conclusion.status != _UNJUDGED
        return 1 if failed else self.conclusion.status

    @property
    def has_summary(self) -> bool:
        """Whether the run came far enough for a section of the summary."""
        return not (self._stopped or self._interrupted)

    @property
    def is_tested(self) -> bool:
        """Whether any item of the run was tested."""
        return bool(self._verdicts)

    def finish(self, exitstatus: int) -> int:
        """Write the requested audit, baseline and report, and return the status of the run."""
        if self._worker or self._stopped or exitstatus not in _SETTLED:
            return exitstatus
        try:
            self.conclusion.write_audit()
            self.baseline_line = self.conclusion.write_baseline()
            if self.asked.report and self._verdicts:
                self._write_report(self.status(exitstatus))
        except SignetConformanceError as failure:
            print(f"error: {failure}", file=sys.stderr)
            return failure.exit_status
        except OSError as failure:
            print(f"error: {self.folder}: the report cannot be written: {failure.strerror}", file=sys.stderr)
            return 2
        return self.status(exitstatus)

    def _write_report(self, status: int) -> None:
        with self.asked.stopwatch.phase(REPORTS):
            ending = self.performance.ending(self.conclusion, status)
            write_reports(self.folder, ending, self.conclusion.terms.known_in)

    @property
    def keeps_traces(self) -> bool:
        """Whether the traces of a driven run are kept, so that a failure which names them can be replayed."""
        if self.asked.recordings or not recordings_in(self.folder):
            return False
        generated = self.performance.recordings.generated()
        return (
            self._stopped
            or (generated is not None and generated.has_unconfirmed)
            or self.performance.recordings.shortfall() is not None
            or bool({Verdict.FAIL, Verdict.ERROR} & set(self._verdicts.values()))
        )

    def _discard_traces(self) -> None:
        if not self.keeps_traces:
            shutil.rmtree(self.folder, ignore_errors=True)
        let_go(self.folder)


def end_run(session: pytest.Session, failure: SignetConformanceError) -> NoReturn:
    """Print the error, and end the pytest run with its status."""
    print(f"error: {failure}", file=sys.stderr)
    # pytest sets the status of a failed session to 1, so it is set once more after that.
    session.config.add_cleanup(lambda: setattr(session, "exitstatus", failure.exit_status))
    raise session.Failed


@contextmanager
def progress_shown(config: pytest.Config) -> Iterator[Tell]:
    """Show the progress of a run within the block, unless pytest is quiet."""
    reporter = config.pluginmanager.get_plugin("terminalreporter") if config.option.verbose >= 0 else None
    if reporter is not None:
        reporter.ensure_newline()
    with show_progress(_Terminal(reporter), quiet=reporter is None) as tell:
        yield tell


class _Terminal(io.StringIO):
    """pytest's terminal as a stream. A live terminal gets the text unchanged; elsewhere each line gets a prefix."""

    def __init__(self, reporter: pytest.TerminalReporter | None) -> None:
        super().__init__()
        self._reporter = reporter
        self._line = ""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._reporter is not None and bool(self._reporter.isatty)

    def write(self, text: str, /) -> int:
        """Write the text at once in a live terminal, elsewhere when its line is complete."""
        assert self._reporter is not None  # noqa: S101 - a quiet run writes nothing
        if is_live(self):
            self._reporter.write(text, flush=True)
            return len(text)
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._reporter.ensure_newline()
            self._reporter.write_line(f"signet: {line}")
        return len(text)


def write_summary(run: ConformanceRun, terminalreporter: Any, exitstatus: int) -> None:
    """Write the run's section of pytest's summary; it is short if no requirement was tested."""
    undecided = [report for report in terminalreporter.stats.get("inconclusive", []) if run.owns(report.nodeid)]
    status, width = run.status(exitstatus), shutil.get_terminal_size().columns
    parts: list[Iterable[str]] = [
        _undecided_lines(undecided, width),
        run_text.note_lines(run.performance.recordings.read_so_far),
    ]
    if run.conclusion.verdicts:
        verbose = terminalreporter.verbosity > 0
        ending = run_text.ClosingText(run.conclusion, status, width, baseline=run.baseline_line, verbose=verbose)
        spent = run.performance.time_spent
        parts += [
            run_text.closing_lines(ending),
            () if spent is None else run_text.time_spent_lines(spent, width),
            _file_lines(run),
        ]
    else:
        parts.append([f"nothing was tested: no requirement was judged (exit {status})"])
    terminalreporter.section(run.title)
    for line in chain.from_iterable(parts):
        terminalreporter.write_line(line)


def _undecided_lines(reports: Iterable[pytest.TestReport], width: int) -> Iterator[str]:
    """The lines that say why requirements stayed undecided, with the command that explains these."""
    names: list[str] = []
    for report in reports:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        names.append(report.nodeid.rsplit("::", 1)[-1])
        yield from draw([Paragraph(f"{names[-1]} {printable(reason, 300)}", 0, 4)], width)
    if words := explain_words(names):
        yield from draw([labelled_command("page", words)], width)


def _file_lines(run: ConformanceRun) -> Iterator[str]:
    """The line that says where the report or the traces are."""
    if run.asked.report:
        yield run_text.reports_line(run.folder)
    elif run.keeps_traces:
        yield f"traces: {run.folder}"
