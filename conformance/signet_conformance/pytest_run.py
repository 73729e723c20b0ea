"""One conformance run inside a pytest run: scenarios performed once, then one item a requirement.

Scenarios run in the controlling process before its first item, whatever the number of xdist workers;
workers judge the same traces.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import engine, targets, trace
from signet_conformance.contract import requirements
from signet_conformance.errors import SignetConformanceError, TargetError, UsageError, printable
from signet_conformance.finding import Judgement, Reason, Verdict
from signet_conformance.scenarios.script import Scenario

VERDICT = "signet_verdict"
"""The user property that carries an item's verdict, also from xdist workers and into JUnit."""


class ConformanceWarning(UserWarning):
    """A requirement of level SHOULD is not met."""


class InconclusiveError(Exception):
    """Raised by an item whose requirement could not be decided; it becomes an outcome of its own."""


class ConformanceRun:
    """The kit's part of one pytest run, registered as a plugin only when it was asked for."""

    def __init__(self, config: pytest.Config, target: targets.Target | None, daemon: str, folder: Path) -> None:
        self._config = config
        self._target = target
        self._daemon = daemon
        self.folder = folder
        self._given: list[str] = config.getoption("signet_trace")
        self._worker = hasattr(config, "workerinput")
        self._verdicts: dict[str, Verdict] = {}
        self._judged: engine.JudgedRun | None = None
        self._error: SignetConformanceError | None = None
        if config.args_source is not pytest.Config.ArgsSource.ARGS or self._worker:
            # Without file arguments only the kit's items run.
            config.args = [] if not self._worker else [a for a in config.args if a != str(config.rootpath)]

    @classmethod
    def from_config(cls, config: pytest.Config, taken: Sequence[str]) -> ConformanceRun:
        """Read the options; end the run with status 2 when they cannot be used."""
        try:
            return cls._from_config(config, taken)
        except SignetConformanceError as failure:
            print(f"error: {failure}", file=sys.stderr)
            pytest.exit(f"signet-conformance: {failure.message}", returncode=failure.exit_status)

    @classmethod
    def _from_config(cls, config: pytest.Config, taken: Sequence[str]) -> ConformanceRun:
        for short in taken:
            print(f"signet-conformance: this repository owns {short}; use --signet-{short[2:]}", file=sys.stderr)
        name = config.getoption("signet_target") or config.getoption("signet_short_target", default=None)
        daemon = config.getoption("signet_daemon") or config.getoption("signet_short_daemon", default=None) or "embedded"
        given = config.getoption("signet_trace")
        if name is None and not given:
            raise UsageError(
                "no target is named", where="--signet-conformance", remedy="add --target NAME; signet-conformance targets lists them"
            )
        if given and name is not None and config.getoption("signet_daemon"):
            raise UsageError("a recording needs no daemon", where="--signet-trace", remedy="leave --daemon out")
        target = targets.load(name) if name is not None else None
        for path in given:
            if not Path(path).is_file():
                raise UsageError("is no file", where=f"--signet-trace {printable(path)}", remedy="name a recorded trace")
        worker = getattr(config, "workerinput", None)
        if worker is not None:
            return cls(config, target, daemon, Path(worker["signet_conformance_folder"]))
        report = config.getoption("signet_report")
        if report is None:
            folder = Path(tempfile.mkdtemp(prefix="signet-traces-"))
            config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        else:
            folder = _fresh_folder(Path(report))
        return cls(config, target, daemon, folder)

    # -- items

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Put the kit's items beside whatever else was asked for."""
        report = yield
        if isinstance(collector, pytest.Session) and report.outcome == "passed":
            name = self._target.name if self._target is not None else "recording"
            report.result = [*report.result, Requirements.from_parent(collector, name=f"signet-conformance[{name}]", run=self)]
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Perform the scenarios before the first item, in the controlling process only."""
        wanted = any(isinstance(item, RequirementItem) for item in session.items) or not session.items
        if not self._worker and wanted and not session.config.option.collectonly and not session.testsfailed:
            self._perform()
            if self._error is not None:
                print(f"error: {self._error}", file=sys.stderr)
                pytest.exit(f"signet-conformance: {self._error.message}", returncode=self._error.exit_status)
        return (yield)

    def _perform(self) -> None:
        if self._given or self._target is None:
            return
        # Imported here: a worker, or a run on recordings, launches nothing.
        from signet_conformance.runner import Run
        from signet_conformance.scenarios.script import scripted

        try:
            with Run(self._target, self.folder, self._daemon) as run:
                errors = [done for done in run.perform(scripted(), self._progress) if done.error is not None]
        except SignetConformanceError as failure:
            self._error = failure
            return
        if errors:
            first = errors[0]
            self._error = TargetError(
                f"{len(errors)} scenarios could not be performed; the first, {first.scenario}: {first.error}",
                remedy=f"traces so far: {self.folder}",
            )
            self._error.exit_status = 4

    def _progress(self, number: int, total: int, scenario: Scenario) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or self._config.option.verbose < 0:
            return
        reporter.ensure_newline()
        reporter.write_line(f"signet: scenario {number}/{total} {scenario.name}: {scenario.title}")

    # -- verdicts

    def judged(self) -> engine.JudgedRun:
        """The verdicts of this run, worked out once a process."""
        if self._judged is None:
            paths: Iterable[Path | str] = self._given or sorted(self.folder.glob("*.jsonl"))
            self._judged = engine.judge_run([trace.read(path) for path in paths])
        return self._judged

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Give an inconclusive requirement an outcome of its own."""
        report = yield
        if isinstance(item, RequirementItem) and call.excinfo is not None and call.excinfo.errisinstance(InconclusiveError):
            report.outcome = "skipped"
            report.longrepr = ("signet-conformance", 0, f"INCONCLUSIVE: {call.excinfo.value}")
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
            self._verdicts[report.nodeid] = Verdict(verdict)
        elif report.when == "call" and report.failed and "signet-conformance[" in report.nodeid:
            self._verdicts[report.nodeid] = Verdict.ERROR

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """List what could not be decided, and where the traces are."""
        from signet_conformance.reports.text import closing_line, summary_lines

        if not self._verdicts:
            return
        verdicts = {nodeid.rsplit("::", 1)[-1]: verdict for nodeid, verdict in self._verdicts.items()}
        terminalreporter.section("signet conformance")
        undecided = terminalreporter.stats.get("inconclusive", [])
        for report in undecided:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            terminalreporter.write_line(f"{report.nodeid.rsplit('::', 1)[-1]} {printable(reason, 300)}")
        for line in summary_lines([("this run", verdicts)]):
            terminalreporter.write_line(line)
        traces = len(self._given) or len(list(self.folder.glob("*.jsonl")))
        terminalreporter.write_line(closing_line(verdicts, traces, self._status()))
        if self._config.getoption("signet_report"):
            terminalreporter.write_line(f"report and traces: {self.folder}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """End with the kit's own statuses; write the report."""
        if self._worker or session.config.option.collectonly or int(exitstatus) not in (0, 1, 5):
            return
        status = self._status()
        session.exitstatus = status or (1 if int(exitstatus) == 1 else 0)
        if self._config.getoption("signet_report") and self._verdicts:
            self._write_report(status)

    def _status(self) -> int:
        return engine.exit_status(list(self._verdicts.values()), strict=self._config.getoption("signet_strict"))

    def _write_report(self, status: int) -> None:
        from signet_conformance.reports.jsonreport import ReportWriter

        run = self.judged()
        with (self.folder / "report.json").open("x", encoding="ascii") as stream:
            writer = ReportWriter(stream, "0.145")
            for one in run.traces:
                writer.add(one)
            writer.close(run.traces, status)


def _fresh_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError("is not empty", where=f"--signet-report {printable(folder)}", remedy="name a new folder; nothing is overwritten")
    except OSError as failure:
        raise UsageError(
            f"cannot be written: {failure.strerror}", where=f"--signet-report {printable(folder)}", remedy="name a folder of your own"
        ) from None
    return folder.resolve()


class Requirements(pytest.Collector):
    """The collector of the kit's items, one a requirement of the catalogue."""

    def __init__(self, *, run: ConformanceRun, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._run = run

    def collect(self) -> Iterable[pytest.Item]:
        """One item a requirement, in the catalogue's order."""
        for name in requirements():
            yield RequirementItem.from_parent(self, name=name, run=self._run)


class RequirementItem(pytest.Item):
    """One requirement over all traces of the run."""

    def __init__(self, *, run: ConformanceRun, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._run = run
        requirement = requirements()[self.name]
        # Names for -k; marks would have to be registered in the repository that is judged.
        self.extra_keyword_matches.update((requirement.level, requirement.area))

    def runtest(self) -> None:
        """Turn the verdict into an outcome."""
        judged = self._run.judged()
        judgement = judged.together[self.name]
        self.user_properties.append((VERDICT, str(judgement.verdict)))
        if judgement.verdict in (Verdict.FAIL, Verdict.ERROR):
            raise _BreachError(judged, judgement)
        if judgement.verdict is Verdict.INCONCLUSIVE:
            raise InconclusiveError(judgement.message)
        if judgement.verdict is Verdict.NOT_APPLICABLE:
            pytest.skip(judgement.message)
        if judgement.verdict is Verdict.WARN:
            self._warn(judged, judgement)

    def _warn(self, judged: engine.JudgedRun, judgement: Judgement) -> None:
        # Recorded directly: a repository that turns warnings into errors has not asked for this one to fail.
        message = f"{self.name}: {judgement.message} (signet-conformance explain {self.name})"
        recorded = warnings.WarningMessage(ConformanceWarning(message), ConformanceWarning, str(self.path), 0)
        self.ihook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": recorded, "nodeid": self.nodeid, "when": "runtest", "location": None}
        )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The failure as its reader needs it: no traceback of the kit."""
        if isinstance(excinfo.value, _BreachError):
            return str(excinfo.value)
        if isinstance(excinfo.value, SignetConformanceError):
            return f"error: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where pytest says that the item is."""
        return self.path, None, f"{self.name} {requirements()[self.name].title}"


class _BreachError(Exception):
    """Raised by an item whose requirement fails."""

    def __init__(self, judged: engine.JudgedRun, judgement: Judgement) -> None:
        from signet_conformance.reports.text import failure_text

        traces: Mapping[str, engine.Judged] = {str(one.trace.path): one for one in judged.traces}
        blocks = [
            failure_text(one, judgement.requirement)
            for one in traces.values()
            if one.judgements[judgement.requirement].verdict is judgement.verdict
        ]
        if judgement.reason is Reason.CRASHED or not blocks:
            blocks.append(judgement.message)
        super().__init__("\n\n".join(blocks[:3]) + (f"\n\n… and in {len(blocks) - 3} more traces" if len(blocks) > 3 else ""))
