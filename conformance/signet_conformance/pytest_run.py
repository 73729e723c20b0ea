"""One conformance run inside a pytest run: scenarios performed once, then one item a requirement.

Scenarios run in the controlling process before its first item, whatever the number of xdist workers;
workers judge the same traces.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
import warnings
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

import pytest

from signet_conformance import engine, trace
from signet_conformance.contract import requirements
from signet_conformance.coverage import Coverage, Meter
from signet_conformance.errors import SignetConformanceError, printable
from signet_conformance.finding import Judgement, Verdict
from signet_conformance.generated_summary import Summary, breach_lines, folded
from signet_conformance.pytest_options import Asked, read_options, read_worker_options
from signet_conformance.pytest_progress import Progress
from signet_conformance.pytest_reports import write_reports
from signet_conformance.reports.ending import Ending
from signet_conformance.reports.text import closing_line, daemon_summary_lines, failure_text, summary_lines
from signet_conformance.reports.together import run_level_breaches
from signet_conformance.rules import rules

VERDICT = "signet_verdict"
"""The user property that carries an item's verdict, also from xdist workers and into JUnit."""

_SETTLED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""The statuses of a run that came to its end; any other one is left as pytest gave it."""

_NODE = "signet-conformance"
_MAX_BLOCKS = 3


class ConformanceWarning(UserWarning):
    """A requirement of level SHOULD is not met."""


class InconclusiveError(Exception):
    """Raised by an item whose requirement could not be decided; it becomes an outcome of its own."""


class ConformanceRun:
    """The kit's part of one pytest run, registered as a plugin only when it was asked for."""

    def __init__(self, config: pytest.Config, asked: Asked) -> None:
        self.folder = asked.folder
        self._config = config
        self._asked = asked
        self._worker = hasattr(config, "workerinput")
        self._verdicts: dict[str, Verdict] = {}
        self._judged: engine.JudgedRun | None = None
        self._measured: Coverage | None = None
        self._traces: list[trace.Trace] | None = None
        self._stopped = False
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            # Without file arguments only the kit's items run.
            config.args = []
        if not self._worker and not asked.report:
            config.add_cleanup(self._discard_traces)

    @classmethod
    def from_config(cls, config: pytest.Config, taken: Sequence[str]) -> Self:
        """Read the options; end the run with status 2 when they cannot be used."""
        worker = getattr(config, "workerinput", None)
        if worker is not None:
            return cls(config, read_worker_options(config, worker["signet_conformance_folder"]))
        try:
            return cls(config, read_options(config, taken))
        except SignetConformanceError as failure:
            _end(failure)

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
                self._read_traces()
            except SignetConformanceError as failure:
                self._stopped = True
                _end(failure)
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
        from signet_conformance.driven import Plan, drive

        asked = self._asked
        assert asked.target is not None  # noqa: S101 - a run without recordings has a target
        plan = Plan(
            asked.target,
            asked.daemon,
            scenarios=asked.scenarios,
            generated=asked.sessions,
            seed=asked.seed,
            strict=asked.strict,
            report=asked.report,
        )
        drive(plan, self.folder, Progress(self._config))

    def pytest_report_header(self) -> str | None:
        """Say what would repeat the run."""
        asked = self._asked
        if asked.target is None or self._worker or not asked.sessions:
            return None
        return f"signet: target {asked.target.name}, {asked.sessions} generated sessions, seed {asked.seed}"

    # -- verdicts

    def judged(self) -> engine.JudgedRun:
        """The verdicts of this run, worked out once a process."""
        if self._judged is None:
            self._judged = folded(
                engine.judge_run(self._read_traces(), contract=self._asked.contract), Summary.read(self.folder)
            )
        return self._judged

    def _read_traces(self) -> list[trace.Trace]:
        if self._traces is None:
            paths: Iterable[Path | str] = self._asked.recordings or sorted(self.folder.glob("*.jsonl"))
            self._traces = [self._declared(trace.read(path)) for path in paths]
        return self._traces

    def _declared(self, recorded: trace.Trace) -> trace.Trace:
        """The trace, with what the target declares in front of what its header does."""
        if self._asked.target is None:
            return recorded
        said, header = self._asked.target.declared, recorded.header
        members = [member.name for member in dataclasses.fields(trace.Declared)]
        declared = trace.Declared(**{name: getattr(said, name) or getattr(header.declared, name) for name in members})
        return dataclasses.replace(recorded, header=dataclasses.replace(header, declared=declared))

    def breach_text(self, judgement: Judgement) -> str:
        """What the author of the connector reads of a requirement that fails: a block for each of the first traces."""
        run, name, target = self.judged(), judgement.requirement, self._asked.target
        # A driven run's traces say themselves what the target declares.
        options = [f"--target={target.name}"] if target is not None and self._asked.recordings else []
        breached = [one for one in run.traces if one.judgements[name].verdict is judgement.verdict]
        if not breached and (whole := run_level_breaches(run.traces)) is not None:
            # Only all traces together show it, so the folder is what replays it.
            breached = [dataclasses.replace(whole, trace=dataclasses.replace(whole.trace, path=str(self.folder)))]
        width = shutil.get_terminal_size().columns
        blocks = [failure_text(one, name, width, options=options) for one in breached[:_MAX_BLOCKS]]
        if len(breached) > _MAX_BLOCKS:
            blocks.append(f"… and in {len(breached) - _MAX_BLOCKS} more traces")
        summary = Summary.read(self.folder)
        blocks += breach_lines(() if summary is None else summary.breaches, name)
        return "\n\n".join(blocks)

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
            elif report.skipped:
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
        elif report.when == "call" and report.failed and report.nodeid.startswith(f"{_NODE}/"):
            self._verdicts[report.nodeid] = Verdict.ERROR

    # -- the end

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        """List what could not be decided, count the verdicts, say where the traces are."""
        if self._stopped or self._config.option.collectonly:
            return
        terminalreporter.section("signet conformance")
        for report in terminalreporter.stats.get("inconclusive", []):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            terminalreporter.write_line(f"{report.nodeid.rsplit('::', 1)[-1]} {printable(reason, 300)}")
        for warning in (warning for one in self._traces or () for warning in one.warnings):
            terminalreporter.write_line(f"note: {printable(warning, 600)}")
        status = self._status(exitstatus)
        if not self._verdicts:
            terminalreporter.write_line(f"nothing was tested: no requirement was judged (exit {status})")
            return
        verdicts = {nodeid.rsplit("::", 1)[-1]: verdict for nodeid, verdict in self._verdicts.items()}
        for line in summary_lines([("this run", verdicts)], shutil.get_terminal_size().columns):
            terminalreporter.write_line(line)
        for line in daemon_summary_lines(self.judged().traces, shutil.get_terminal_size().columns):
            terminalreporter.write_line(line)
        traces = len(self._read_traces())
        terminalreporter.write_line(closing_line(verdicts, traces, status))
        if (summary := Summary.read(self.folder)) is not None:
            terminalreporter.write_line(summary.line())
        found = self._coverage()
        terminalreporter.write_line(
            "coverage: "
            + ", ".join(f"{len(p.exercised)} of {p.total} {p.name}" for p in found.parts)
            + f"; {found.percent:.0f} % of the contract"
        )
        if self._covers_too_little():
            terminalreporter.write_line(f"that is less than {self._asked.least_coverage:g} %: the run fails")
        if not any(one.exchanges for one in self._read_traces()):
            terminalreporter.write_line(
                "no request was recorded: does the connector call the address in SIGNET_DAEMON_URL?"
            )
        if self._asked.report:
            terminalreporter.write_line(f"report: {self.folder / 'report.json'}, and beside it .md, .sarif, .html")
        elif self._keeps_traces():
            terminalreporter.write_line(f"traces: {self.folder}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """End with the kit's own statuses; write the report."""
        if self._worker or session.config.option.collectonly or exitstatus not in _SETTLED:
            return
        session.exitstatus = self._status(exitstatus)
        if self._asked.report and self._verdicts:
            try:
                self._write_report(int(session.exitstatus))
            except OSError as failure:
                print(f"error: {self.folder}: the report cannot be written: {failure.strerror}", file=sys.stderr)
                session.exitstatus = 2

    def _status(self, exitstatus: int) -> int:
        if exitstatus not in _SETTLED:
            return int(exitstatus)
        status = engine.exit_status(list(self._verdicts.values()), strict=self._asked.strict)
        if status == 0 and self._covers_too_little():
            status = 1
        # A test of the repository's own may have failed; only a failure of the kit says more than that.
        return 1 if exitstatus == pytest.ExitCode.TESTS_FAILED and status != 4 else status

    def _coverage(self) -> Coverage:
        if self._measured is None:
            meter = Meter(self._asked.contract)
            for one in self.judged().traces:
                meter.add(one)
            self._measured = meter.coverage()
        return self._measured

    def _covers_too_little(self) -> bool:
        least = self._asked.least_coverage
        return least is not None and self._coverage().percent < least

    def _write_report(self, status: int) -> None:
        run = self.judged()
        contract = self._asked.contract
        ending = Ending(run.traces, status, coverage=self._coverage(), judgements=run.together, contract=contract)
        write_reports(self.folder, ending, lambda _: {})

    def _keeps_traces(self) -> bool:
        if self._asked.recordings or not any(self.folder.glob("*.jsonl")):
            return False
        if (summary := Summary.read(self.folder)) is not None and not all(one.confirmed for one in summary.breaches):
            return True
        return self._stopped or bool({Verdict.FAIL, Verdict.ERROR} & set(self._verdicts.values()))

    def _discard_traces(self) -> None:
        # Those that a failure names stay, or nobody could replay it.
        if not self._keeps_traces():
            shutil.rmtree(self.folder, ignore_errors=True)


def _end(failure: SignetConformanceError) -> NoReturn:
    print(f"error: {failure}", file=sys.stderr)
    place = f"{failure.where}: " if failure.where else ""
    pytest.exit(f"signet-conformance: {place}{failure.message}", returncode=failure.exit_status)


class Requirements(pytest.Collector):
    """The collector of the kit's items, one a requirement of the catalogue, then one a rule of the repository's own."""

    def __init__(self, *, run: ConformanceRun, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._run = run

    def collect(self) -> Iterable[pytest.Item]:
        """One item a requirement, in the catalogue's order."""
        for name in dict.fromkeys((*requirements(), *rules())):
            yield RequirementItem.from_parent(self, name=name, run=self._run)


class RequirementItem(pytest.Item):
    """One requirement over all traces of the run."""

    def __init__(self, *, run: ConformanceRun, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._run = run
        requirement = requirements().get(self.name)
        self._title = requirement.title if requirement is not None else "a rule of this repository's own"
        if requirement is not None:
            # Names for -k; marks would have to be registered in the repository that is judged.
            self.extra_keyword_matches.update((requirement.level, requirement.area))

    def runtest(self) -> None:
        """Turn the verdict into an outcome."""
        judgement = self._run.judged().together[self.name]
        # Skip reasons and warnings reach terminal and JUnit file as they are.
        judgement = dataclasses.replace(judgement, message=printable(judgement.message, 600))
        self.user_properties.append((VERDICT, str(judgement.verdict)))
        if judgement.verdict in (Verdict.FAIL, Verdict.ERROR):
            raise _BreachError(self._run.breach_text(judgement), judgement.message)
        if judgement.verdict is Verdict.INCONCLUSIVE:
            raise InconclusiveError(judgement.message)
        if judgement.verdict is Verdict.NOT_APPLICABLE:
            pytest.skip(judgement.message)
        if judgement.verdict is Verdict.WARN:
            self._warn(judgement)

    def _warn(self, judgement: Judgement) -> None:
        # Recorded directly: a repository that turns warnings into errors has not asked for this one to fail.
        message = f"{self.name}: {judgement.message} (signet-conformance explain {self.name})"
        file, line = self._run.place_of(judgement)
        # An empty source line, or pytest would print the whole line of the trace.
        recorded = warnings.WarningMessage(ConformanceWarning(message), ConformanceWarning, file, line, line="")
        self.ihook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": recorded, "nodeid": self.nodeid, "when": "runtest", "location": None}
        )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The failure as its reader needs it: no traceback of the kit."""
        if not isinstance(excinfo.value, (_BreachError, InconclusiveError, SignetConformanceError)):
            return super().repr_failure(excinfo, style)
        # The text of the error and nothing else, in a form that xdist carries whole.
        shown = excinfo.getrepr(style="value", chain=False)
        if shown.reprcrash is not None:
            # What stands behind the item's name in pytest's last lines, which a CI log does not cut.
            value = excinfo.value
            shown.reprcrash.message = value.summary if isinstance(value, _BreachError) else f"error: {value}"
        return shown

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where pytest says that the item is."""
        return self.config.rootpath / self.nodeid.partition("::")[0], None, f"{self.name} {self._title}"


class _BreachError(Exception):
    """Raised by an item whose requirement fails; its text is all that is shown, its summary where one line must do."""

    def __init__(self, text: str, summary: str) -> None:
        super().__init__(text)
        self.summary = printable(summary, 200)
