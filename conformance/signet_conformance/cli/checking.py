"""What `check` does once its options are read: judge the files one after the other, show, write, conclude."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.children.spread import batches, spread
from signet_conformance.cli.commands import PROGRAM, tell
from signet_conformance.cli.output import demand_distinct_files, report_stream
from signet_conformance.cli.recordings import STDIN, TraceFiles, read_recording
from signet_conformance.cli.shared_options import ReportFiles, parse_declarations, select_requirements
from signet_conformance.contract import version_document
from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import SignetConformanceError, UsageError, printable
from signet_conformance.outcome.broken_off import broke_off
from signet_conformance.outcome.conclusion import Conclusion, Judging, Terms
from signet_conformance.outcome.coverage import percentage
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.outcome.options import KnownOptions
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.reports.ending import ReportWriter, RunEnding
from signet_conformance.rules import builtin_rules
from signet_conformance.trace import Trace
from signet_conformance.trace.model import forget_lines
from signet_conformance.trace.reading import HELD_BYTES, collector_paused


def check(
    recordings: TraceFiles,
    *,
    traces: Sequence[str],
    only: Sequence[str],
    contract: str | None,
    strict: bool,
    coverage: bool,
    coverage_fail_under: str | None,
    show_all: bool,
    summary: bool,
    reports: ReportFiles,
    force: bool,
    workers: int,
    target: str | None,
    known: KnownOptions,
    **declared: Any,
) -> int:
    """Judge the recordings that `traces` name; the exit status is the run's."""
    # The rules are imported while other processes search the recordings.
    builtin_rules()
    failures = KnownFailures.parse(known)
    declarations = parse_declarations(target, **declared)
    if contract is not None:
        version_document(contract)
    terms = Terms(
        only=select_requirements(only, "-k/--only"),
        contract=contract,
        strict=strict,
        least_coverage=None
        if coverage_fail_under is None
        else percentage(coverage_fail_under, "--coverage-fail-under"),
        known=failures,
        target=target,
        declared=declarations,
    )
    _demand_no_report_among(traces, reports)
    run = CheckRun(terms, measured=coverage or reports.shows_coverage, selftest=reports.selftest, workers=workers)
    files = list(recordings.files)
    for complaint in recordings.complaints:
        run.complain(complaint)
    for note in recordings.notes:
        run.pass_over(note)
    if not files:
        return UsageError.exit_status
    inputs = [*files, *(file.path for file in failures.files), reports.selftest_file]
    demand_distinct_files([*reports.files, failures.new_baseline], inputs)
    with ExitStack() as stack:
        stream = stack.enter_context(report_stream(reports.output, force))
        run.reports = reports.open(stream, stack, force)
        judged_traces = stack.enter_context(closing(run.each(files)))
        if reports.document is not None:
            for _ in judged_traces:
                pass
            conclusion = run.conclude()
        else:
            from signet_conformance.cli.check_text import CheckText

            text = CheckText(stream, traces, show_all=show_all, summary=summary, coverage=coverage)
            for judged in judged_traces:
                text.add(judged, terms.known_in(judged))
            conclusion = run.conclude()
            text.end(conclusion)
        run.close_reports(conclusion)
    baseline_line = conclusion.write_baseline()
    if baseline_line is not None and reports.document is None:
        print(baseline_line)
    if reports.output is not None:
        from signet_conformance.cli.check_text import closing_line

        print(closing_line(conclusion, sys.stdout))
    # With a document on stdout, nothing else is written there.
    if not summary and (reports.output is not None or reports.document is None):
        for file in reports.files:
            print(f"report: {printable(file, 1000)}")
    return conclusion.status


def _demand_no_report_among(traces: Sequence[str], reports: ReportFiles) -> None:
    """Raise UsageError where `--json FILE` was meant: the option takes no file, so FILE would be read as a trace."""
    meant = next((word for word in traces if word.lower().endswith(".json")), None)
    if reports.document is not None and reports.output is None and meant is not None:
        option = f"--{reports.document.name}"
        others = [word for word in traces if word != meant] or ["TRACE"]
        raise UsageError(
            f"takes no file, and {printable(meant, 200)} is not a recording",
            where=option,
            remedy=shell_command([PROGRAM, "check", *others, option, "--output", meant]),
        )


def _with_progress(files: Sequence[str], stack: ExitStack) -> Iterable[str]:
    """Return the files; on a terminal, taking one moves a progress bar."""
    if len(files) == 1 or not sys.stderr.isatty():
        return files
    from signet_conformance.reports.terminal import is_live, with_progress

    return stack.enter_context(closing(with_progress(files, sys.stderr))) if is_live(sys.stderr) else files


class CheckRun:
    """One run of `check` over its files. A file that cannot be judged is reported at once; the run continues."""

    def __init__(
        self, terms: Terms, *, measured: bool, selftest: Mapping[str, Any] | None = None, workers: int = 1
    ) -> None:
        self.judging = Judging(terms, measured=measured)
        self._workers = workers
        self.reports: list[ReportWriter] = []
        self._selftest = selftest
        self._complaints: list[SignetConformanceError] = []
        self._notes: list[str] = []

    def complain(self, failure: SignetConformanceError) -> None:
        """Tell what cannot be judged."""
        sys.stdout.flush()
        tell(failure)
        self._complaints.append(failure)

    def pass_over(self, note: str) -> None:
        """Tell of a file that does not belong to the run."""
        sys.stdout.flush()
        print(f"note: {note}", file=sys.stderr)
        self._notes.append(note)

    def each(self, files: Sequence[str]) -> Generator[JudgedTrace, None, None]:
        """Judge the files, in order."""
        with ExitStack() as stack:
            outcomes = stack.enter_context(closing(self._outcomes(_batches(files))))
            for file in _with_progress(files, stack):
                with collector_paused():
                    outcome = next(outcomes)
                if isinstance(outcome, SignetConformanceError):
                    outcome.where = outcome.where or printable(file, 400)
                    self.complain(outcome)
                    continue
                self.judging.add(outcome)
                # A scenario that was broken off decides nothing, so no report gets it.
                if broke_off(outcome.trace) is None:
                    known = self.judging.terms.known_in(outcome)
                    for report in self.reports:
                        report.add(outcome, known)
                yield outcome

    def _outcomes(self, batches: Sequence[_Batch]) -> Generator[Outcome, None, None]:
        """Yield the result of each file. Workers judge small files; a large file uses all of them."""
        small = [batch for batch in batches if batch.size <= HELD_BYTES]
        spreads = self._workers > 1 and len(small) > 1 and sum(batch.size for batch in small) >= _LEAST_BYTES
        with closing(spread(self._in_worker, small if spreads else (), self._workers)) as results:
            for batch in batches:
                spread_out = spreads and batch.size <= HELD_BYTES
                yield from next(results) if spread_out else self._judge_batch(batch, self._workers)

    def _judge_batch(self, batch: _Batch, workers: int) -> Sequence[Outcome]:
        read = [_read_trace(file, workers if sys.platform == "linux" else 1) for file in batch.files]
        try:
            traces = [trace for trace in read if isinstance(trace, Trace)]
            judged = iter(self.judging.judge_traces(traces, workers))
        except SignetConformanceError as failure:
            # Of several files, it is not known which one cannot be judged.
            if len(batch.files) == 1:
                return [failure]
            raise
        return [next(judged) if isinstance(each, Trace) else each for each in read]

    def _in_worker(self, batch: _Batch) -> Sequence[Outcome]:
        """Judge in a worker. The results drop what the process that receives them can rebuild."""
        outcomes = self._judge_batch(batch, 1)
        for each in outcomes:
            if isinstance(each, JudgedTrace):
                forget_lines(each.trace)
        # A copy is without the cached recording.
        return [replace(each) if isinstance(each, JudgedTrace) else each for each in outcomes]

    def conclude(self) -> Conclusion:
        """Return the conclusion of the run, and record which failures it lets pass."""
        conclusion = self.judging.conclude(unread=self._complaints, notes=self._notes)
        conclusion.write_audit()
        return conclusion

    def close_reports(self, conclusion: Conclusion) -> None:
        """Write the end of every report."""
        ending = RunEnding(conclusion, self._selftest)
        for report in self.reports:
            report.close(ending)


Outcome = JudgedTrace | SignetConformanceError
"""One judged file, or the reason why it cannot be judged."""
_LEAST_BYTES = 4 * 1024 * 1024
"""One process judges fewer bytes than this sooner than workers start."""
_BATCH_FILES = 16
_BATCH_BYTES = 4 * 1024 * 1024


class _Batch(Struct):
    """Files that are judged together, and their size in bytes. A large file is a batch of its own."""

    files: list[str]
    size: int


def _batches(files: Sequence[str]) -> Sequence[_Batch]:
    sizes = {
        file: Path(file).stat().st_size if file != STDIN and Path(file).is_file() else _BATCH_BYTES for file in files
    }
    together = batches(files, sizes.__getitem__, _BATCH_FILES, _BATCH_BYTES)
    return [_Batch(batch, sum(sizes[file] for file in batch)) for batch in together]


def _read_trace(file: str, workers: int) -> Trace | SignetConformanceError:
    try:
        return read_recording(file, workers=workers)
    except SignetConformanceError as failure:
        return failure
