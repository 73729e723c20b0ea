"""One conformance run inside a pytest run: scenarios performed once, then one item a requirement.

Scenarios run in the controlling process before its first item, whatever the number of xdist workers;
workers judge the same traces.
"""

from __future__ import annotations

import dataclasses
import shutil
import signal
import sys
from collections.abc import Generator, Sequence
from typing import Any, NoReturn, Self

import pytest

from signet_conformance import engine
from signet_conformance.children.signals import interrupted_by
from signet_conformance.errors import KitError, SignetConformanceError, printable
from signet_conformance.finding import Judgement, Verdict
from signet_conformance.outcome.baseline import COVERABLE, Outcome
from signet_conformance.outcome.broken_off import warnings_of
from signet_conformance.outcome.coverage import Coverage, Meter
from signet_conformance.outcome.generated_summary import breach_lines, folded
from signet_conformance.outcome.known_failures import by_target, failing_text, target_of
from signet_conformance.outcome.together import run_level_breaches
from signet_conformance.pytest_plugin.items import (
    KNOWN,
    VERDICT,
    InconclusiveError,
    RequirementItem,
    Requirements,
)
from signet_conformance.pytest_plugin.options import invocation, read_options, read_worker_options
from signet_conformance.pytest_plugin.progress import ProgressLine
from signet_conformance.pytest_plugin.recordings import Recordings
from signet_conformance.pytest_plugin.reports import write_reports
from signet_conformance.reports.ending import Ending
from signet_conformance.reports.known import known_lines
from signet_conformance.reports.registry import FORMATS
from signet_conformance.reports.remarks import remarks
from signet_conformance.reports.requirement_pages import explain_note
from signet_conformance.reports.terminal import MAX_WIDTH
from signet_conformance.reports.text import closing_line, daemon_summary_lines, failure_text, summary_lines
from signet_conformance.running.request import Request
from signet_conformance.trace.marks import SkippedMark, marks_of

_SETTLED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""The statuses of a run that came to its end; any other one is left as pytest gave it."""

_NODE = "signet-conformance"
_MAX_BLOCKS = 3


class ConformanceRun:
    """The kit's part of one pytest run, registered as a plugin only when it was asked for."""

    def __init__(self, config: pytest.Config, asked: Request) -> None:
        self.folder = asked.folder
        self._config = config
        self._asked = asked
        self._worker = hasattr(config, "workerinput")
        self._verdicts: dict[str, Verdict] = {}
        self._known: set[str] = set()
        self._held = Outcome()
        self._baseline_line: str | None = None
        self._judged: engine.JudgedRun | None = None
        self._measured: Coverage | None = None
        self._recordings = Recordings(asked)
        self._stopped = False
        self._interrupted = False
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            # Without file arguments only the kit's items run.
            config.args = []
        if not self._worker and not asked.report:
            config.add_cleanup(self._discard_traces)

    @classmethod
    def of(cls, session: pytest.Session, taken: Sequence[str]) -> Self:
        """Read the options; end the run with status 2 when they cannot be used."""
        config = session.config
        worker = getattr(config, "workerinput", None)
        if worker is not None:
            return cls(config, read_worker_options(config, worker["signet_conformance_folder"]))
        try:
            return cls(config, read_options(config, taken))
        except SignetConformanceError as failure:
            _end(session, failure)

    # -- items

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Put the kit's items beside whatever else was asked for."""
        report = yield
        if isinstance(collector, pytest.Session) and report.outcome == "passed":
            name = f"{_NODE}/{self._asked.target.name if self._asked.target is not None else 'recording'}"
            # A node id of its own: the usual one begins with `::` here, which JUnit readers get mangled.
            node = Requirements.from_parent(collector, name=name, nodeid=name, run=self)
            report.result = [*report.result, node]
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Perform the scenarios, or read the recordings, before the first item; in the controlling process only."""
        if not self._worker and self._has_items(session):
            try:
                if not self._asked.recordings:
                    self._perform()
                self._recordings.traces()
            except SignetConformanceError as failure:
                self._stopped = True
                _end(session, failure)
            except KeyboardInterrupt:
                self._interrupted = True
                # In words: where the kit waited at that moment tells nobody anything.
                pytest.exit("interrupted: nothing was judged", returncode=pytest.ExitCode.INTERRUPTED)
        return (yield)

    def _has_items(self, session: pytest.Session) -> bool:
        option = session.config.option
        if option.collectonly or (session.testsfailed and not option.continue_on_collection_errors):
            return False
        # Where xdist distributes, the items are known to its workers only.
        return session.config.pluginmanager.hasplugin("dsession") or any(
            isinstance(item, RequirementItem) for item in session.items
        )

    def _perform(self) -> None:
        # Imported here: workers and runs on recordings drive nothing, and have no use for Hypothesis.
        from signet_conformance.running.run import drive

        assert self._asked.target is not None  # noqa: S101 - a run without recordings has a target
        plan = self._asked.plan(invocation(self._asked.target.name))
        # A run that is ended from outside takes its daemons, recorders and connectors along.
        with interrupted_by(signal.SIGTERM, signal.SIGHUP):
            self._recordings.performed = drive(plan, self.folder, ProgressLine(self._config))

    def pytest_report_header(self) -> str | None:
        """Say what would repeat the run."""
        asked = self._asked
        if asked.target is None or self._worker or not asked.sessions:
            return None
        why = " (this target's own number: --scenarios N performs N)" if asked.sessions_of_target else ""
        return f"signet: target {asked.target.name}, {asked.sessions} generated sessions{why}, seed {asked.seed}"

    # -- verdicts

    def judged(self) -> engine.JudgedRun:
        """The verdicts of this run, worked out once a process."""
        if self._judged is None:
            self._judged = folded(
                engine.judge_run(self._recordings.traces(), contract=self._asked.contract), self._recordings.summary()
            )
        return self._judged

    def breach_text(self, judgement: Judgement) -> str:
        """What the author of the connector reads of a requirement that fails: a block for each of the first traces."""
        run, name, options = self.judged(), judgement.requirement, self._replay_options()
        breached = [one for one in run.traces if one.judgements[name].verdict is judgement.verdict]
        if not breached and (whole := run_level_breaches(run.traces)) is not None:
            # Only all traces together show it, so the folder is what replays it.
            breached = [dataclasses.replace(whole, trace=dataclasses.replace(whole.trace, path=str(self.folder)))]
        width = shutil.get_terminal_size().columns
        blocks = [failure_text(one, name, width, options=options) for one in breached[:_MAX_BLOCKS]]
        if len(breached) > _MAX_BLOCKS:
            blocks.append(f"… and in {len(breached) - _MAX_BLOCKS} more traces")
        summary = self._recordings.summary()
        blocks += breach_lines(() if summary is None else summary.breaches, name)
        return "\n\n".join(blocks)

    def _replay_options(self) -> list[str]:
        """The words that make `check` judge a trace of this run as the run did."""
        asked = self._asked
        words = [] if asked.contract is None else [f"--contract={asked.contract}"]
        # A driven run's traces say themselves what the target declares.
        return [*words, f"--target={asked.target.name}"] if asked.target is not None and asked.recordings else words

    def known_reason(self, judgement: Judgement) -> str | None:
        """Why a failure may stand; None when it is not known at each target that has it."""
        if judgement.verdict not in COVERABLE or not self._asked.known.files:
            return None
        targets = by_target(self.judged().traces, self._target_name())
        failing = [at for at, verdicts in targets.items() if verdicts.get(judgement.requirement) in COVERABLE]
        reasons = [self._asked.known.reasons(at, targets[at]).get(judgement.requirement) for at in failing]
        return printable(reasons[0], 300) if reasons and all(reasons) else None

    def _target_name(self) -> str | None:
        return None if self._asked.target is None else self._asked.target.name

    def place_of(self, judgement: Judgement) -> tuple[str, int]:
        """The file and the line of the first exchange that decided; the folder of the run when there is none."""
        for one in self.judged().traces:
            found = one.judgements[judgement.requirement]
            if found.verdict is judgement.verdict:
                first = next((seq for finding in found.findings for seq in finding.exchanges), None)
                lines = [exchange.line for exchange in one.trace.exchanges if exchange.seq == first]
                return one.trace.path or str(self.folder), lines[0] if lines else 1
        return str(self.folder), 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Give an inconclusive requirement an outcome of its own; let a skipped one be told by its id."""
        report = yield
        if isinstance(item, RequirementItem) and call.excinfo is not None:
            if call.excinfo.errisinstance(InconclusiveError):
                report.outcome = "skipped"
                report.longrepr = (item.name, None, f"INCONCLUSIVE: {call.excinfo.value}")
            elif report.skipped and not hasattr(report, "wasxfail"):
                report.longrepr = (item.name, None, str(call.excinfo.value))
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
        """Name the outcomes that pytest does not know."""
        verdict = dict(getattr(report, "user_properties", ())).get(VERDICT)
        if report.when == "call" and verdict == Verdict.INCONCLUSIVE:
            return "inconclusive", "I", "INCONCLUSIVE"
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the verdicts, wherever the items ran."""
        verdict = dict(report.user_properties).get(VERDICT)
        if verdict is not None:
            self._verdicts[report.nodeid] = Verdict(str(verdict))
            if KNOWN in dict(report.user_properties) and not report.failed:
                self._known.add(report.nodeid)
        elif report.when == "call" and report.failed and report.nodeid.startswith(f"{_NODE}/"):
            self._verdicts[report.nodeid] = Verdict.ERROR

    # -- the end

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        """List what could not be decided, count the verdicts, say where the traces are."""
        if self._stopped or self._interrupted or self._config.option.collectonly:
            return
        terminalreporter.section("signet conformance")
        for report in terminalreporter.stats.get("inconclusive", []):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            name = report.nodeid.rsplit("::", 1)[-1]
            terminalreporter.write_line(f"{name} {printable(reason, 300)} {explain_note(name)}")
        for warning in (warning for one in self._recordings.read for warning in warnings_of(one)):
            terminalreporter.write_line(f"note: {printable(warning, 600)}")
        for remark in remarks(self._recordings.read):
            terminalreporter.write_line(f"note: {printable(remark, 600)}")
        status = self._status(exitstatus)
        if not self._verdicts:
            terminalreporter.write_line(f"nothing was tested: no requirement was judged (exit {status})")
            return
        for line in known_lines(self._held, shutil.get_terminal_size().columns, colour=False):
            terminalreporter.write_line(line)
        verdicts = self._by_requirement()
        for line in summary_lines([("this run", verdicts)], shutil.get_terminal_size().columns):
            terminalreporter.write_line(line)
        for line in daemon_summary_lines(self.judged().traces, shutil.get_terminal_size().columns):
            terminalreporter.write_line(line)
        traces = len(self._recordings.traces())
        terminalreporter.write_line(closing_line(verdicts, traces, status, because=self._because()))
        if (shortfall := self._recordings.shortfall()) is not None:
            for line in shortfall.lines():
                terminalreporter.write_line(line)
        if self._baseline_line is not None:
            terminalreporter.write_line(self._baseline_line)
        if (summary := self._recordings.summary()) is not None:
            for line in summary.lines():
                terminalreporter.write_line(line)
        found = self._coverage()
        terminalreporter.write_line(
            "coverage: "
            + ", ".join(f"{len(p.exercised)} of {p.total} {p.name}" for p in found.parts)
            + f"; {found.percent:.0f} % of the contract"
        )
        if self._covers_too_little():
            terminalreporter.write_line(f"that is less than {self._asked.least_coverage:g} %: the run fails")
        if not self._recordings.hold_anything():
            terminalreporter.write_line(
                "no request was recorded: does the connector call the address in SIGNET_DAEMON_URL?"
            )
            if (reason := self._first_skip()) is not None:
                terminalreporter.write_line(f"the first step that was skipped: {reason}")
        if self._asked.report:
            first, *others = FORMATS.values()
            beside = ", ".join(kind.suffix for kind in others)
            terminalreporter.write_line(f"report: {self.folder / first.file}, and beside it {beside}")
        elif self._keeps_traces():
            terminalreporter.write_line(f"traces: {self.folder}")

    def _first_skip(self) -> str | None:
        skips = (mark for trace in self._recordings.traces() for mark in marks_of(trace, SkippedMark))
        return next((printable(mark.reason, 300) for mark in skips), None)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """End with the kit's own statuses; write the report."""
        if self._worker or self._stopped or session.config.option.collectonly or exitstatus not in _SETTLED:
            return
        try:
            self._hold_against_known()
            session.exitstatus = self._status(exitstatus)
            if self._asked.report and self._verdicts:
                self._write_report(int(session.exitstatus))
        except SignetConformanceError as failure:
            print(f"error: {failure}", file=sys.stderr)
            session.exitstatus = failure.exit_status
        except OSError as failure:
            print(f"error: {self.folder}: the report cannot be written: {failure.strerror}", file=sys.stderr)
            session.exitstatus = 2

    def _by_requirement(self) -> dict[str, Verdict]:
        return {nodeid.rsplit("::", 1)[-1]: verdict for nodeid, verdict in self._verdicts.items()}

    def _hold_against_known(self) -> None:
        """Write down what is let pass, and the baseline that was asked for; of the requirements that were tested."""
        known, tested = self._asked.known, self._by_requirement()
        if tested and (known.files or known.written is not None):
            run, target = self.judged(), self._target_name()
            verdicts = by_target(run.traces, target)
            if target is not None:
                # Generated sessions decide too, and leave no trace of most of what they do.
                verdicts = {target: {name: judgement.verdict for name, judgement in run.together.items()}}
            verdicts = {at: {name: each[name] for name in each if name in tested} for at, each in verdicts.items()}
            self._held = known.outcome(verdicts)
            self._baseline_line = known.write(verdicts)

    def _status(self, exitstatus: int) -> int:
        if exitstatus not in _SETTLED:
            return int(exitstatus)
        left = [verdict for nodeid, verdict in self._verdicts.items() if nodeid not in self._known]
        # What is known to fail was tested, even where nothing else was.
        tested = [*left, Verdict.PASS] if self._known else left
        status = engine.exit_status(tested, strict=self._asked.strict, recorded=self._recordings.hold_anything())
        if status in (0, 3) and (self._held.fails or (status == 0 and self._covers_too_little())):
            status = 1
        if self._recordings.shortfall() is not None:
            status = KitError.exit_status
        # A test of the repository's own may have failed; that not all could be judged says more than that.
        return 1 if exitstatus == pytest.ExitCode.TESTS_FAILED and status != 4 else status

    def _coverage(self) -> Coverage:
        if self._measured is None:
            meter = Meter(self._asked.contract)
            for one in self.judged().traces:
                meter.add(one)
            self._measured = meter.coverage()
        return self._measured

    def _because(self) -> str:
        """What fails the run beside its verdicts, in words; nothing where nothing does."""
        return " and ".join(filter(None, [failing_text(self._held), "too little coverage" * self._covers_too_little()]))

    def _covers_too_little(self) -> bool:
        least = self._asked.least_coverage
        return least is not None and self._coverage().percent < least

    def _write_report(self, status: int) -> None:
        run = self.judged()
        known, target = self._asked.known, self._target_name()
        shortfall = self._recordings.shortfall()
        notes = [] if shortfall is None else list(shortfall.notes())
        notes += known_lines(self._held, MAX_WIDTH, colour=False)
        if (summary := self._recordings.summary()) is not None:
            breached = dict.fromkeys(one.requirement for one in summary.breaches)
            notes += [f"{name}: {line}" for name in breached for line in breach_lines(summary.breaches, name)]
        ending = Ending(
            run.traces,
            status,
            notes,
            self._coverage(),
            run.together,
            self._asked.contract,
            self._replay_options(),
            known.everywhere(run.traces, target),
            self._because(),
        )
        write_reports(self.folder, ending, lambda one: known.reasons(target_of(one, target), one.verdicts))

    def _keeps_traces(self) -> bool:
        if self._asked.recordings or not any(self.folder.glob("*.jsonl")):
            return False
        if (summary := self._recordings.summary()) is not None and not all(one.confirmed for one in summary.breaches):
            return True
        return (
            self._stopped
            or self._recordings.shortfall() is not None
            or bool({Verdict.FAIL, Verdict.ERROR} & set(self._verdicts.values()))
        )

    def _discard_traces(self) -> None:
        # Those that a failure names stay, or nobody could replay it.
        if not self._keeps_traces():
            shutil.rmtree(self.folder, ignore_errors=True)


def _end(session: pytest.Session, failure: SignetConformanceError) -> NoReturn:
    """Tell why the run cannot go on, once, and end it with the failure's own status."""
    print(f"error: {failure}", file=sys.stderr)
    # pytest ends a failed session without a word, and with 1: the last of all is what its status is when it has ended.
    session.config.add_cleanup(lambda: setattr(session, "exitstatus", failure.exit_status))
    raise session.Failed
