"""The lane: one driven run for a CI system, reported as step summary, annotations, outputs and an exit status."""

from __future__ import annotations

import contextlib
import io
import os
import signal
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from signet_conformance import targets
from signet_conformance.children.foreground import interrupted_by
from signet_conformance.errors import EXIT_INTERRUPTED, SignetConformanceError, printable
from signet_conformance.github_action.github import VERDICT_WORDS, without_runner
from signet_conformance.github_action.inputs import Inputs, variable
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.outcome.options import KnownOptions
from signet_conformance.reports import FORMATS
from signet_conformance.reports.markdown import HEADING, code, inline
from signet_conformance.running import request
from signet_conformance.running.performance import DrivenPerformance
from signet_conformance.running.progress import Tell
from signet_conformance.running.request import DrivenRequest, Invocation, RunOptions, worst
from signet_conformance.targets.real import options_for

_CANCELLING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A CI system that cancels sends SIGINT, then SIGTERM; a terminal that is closed, SIGHUP."""


class LaneRun(Struct, frozen=True):
    """The end of a lane's run: its exit status, a performance for each face, and the error that prevented a verdict.

    A lane that was cancelled before a verdict has neither performance nor error.
    """

    status: int
    performances: Sequence[DrivenPerformance] = ()
    failure: SignetConformanceError | None = None


def options(inputs: Inputs) -> Mapping[str, str]:
    """The options of `run` that correspond to the inputs, with paths relative to the connector's folder."""
    values = {
        "face": inputs.face,
        "harness": inputs.harness.harness,
        "harness-version": inputs.harness.release,
        "daemon": inputs.daemon,
        "scenarios": inputs.scenarios,
        "seed": inputs.seed,
        "contract": inputs.contract,
        "baseline": None if inputs.baseline is None else os.path.relpath(inputs.baseline, inputs.folder),
        "report": os.path.relpath(inputs.report, inputs.folder),
    }
    return {name: value for name, value in values.items() if value is not None}


def invocation(inputs: Inputs, driven_request: DrivenRequest | None = None) -> Invocation:
    """The command with which a user repeats the lane, or its run of `driven_request`."""
    strict = ("--strict",) if inputs.strict else ()
    chosen = () if driven_request is None else options_for(driven_request.target, inputs.face)
    return Invocation(("signet-conformance", "run", inputs.target, *chosen, *strict))


def perform(inputs: Inputs, tell: Tell) -> LaneRun:
    """Perform the run, judge it and write its report. An interruption ends all that the run started."""
    performances: list[DrivenPerformance] = []
    try:
        with contextlib.chdir(inputs.folder), _without_runner_variables(), interrupted_by(*_CANCELLING):
            for driven_request in _requests(inputs):
                performance = DrivenPerformance(driven_request)
                performance.drive(invocation(inputs, driven_request), tell)
                performance.write()
                performances.append(performance)
                if performance.conclusion.is_interrupted:
                    return LaneRun(EXIT_INTERRUPTED, performances)
    except KeyboardInterrupt:
        return LaneRun(EXIT_INTERRUPTED)
    except SignetConformanceError as failure:
        return LaneRun(failure.exit_status, performances, failure)
    return LaneRun(worst([performance.conclusion.status for performance in performances]), performances)


def _requests(inputs: Inputs) -> Sequence[DrivenRequest]:
    words = options(inputs)
    known = None if inputs.baseline is None else str(inputs.baseline)
    chosen = RunOptions(
        daemon=words["daemon"],
        allow_writes=inputs.allow_writes,
        allow_default_port=inputs.allow_default_port,
        scenarios=words.get("scenarios"),
        seed=words["seed"],
        contract=words.get("contract"),
        report=str(inputs.report),
        strict=inputs.strict,
        known=KnownFailures.parse(KnownOptions(baseline=known)),
        harness=inputs.harness,
    )
    return request.read_requests(chosen, targets.load(inputs.target, option=variable("target")), inputs.face, variable)


@contextlib.contextmanager
def _without_runner_variables() -> Iterator[None]:
    """During the block, remove the CI system's tokens and command files from our environment."""
    ours = dict(os.environ)
    allowed = without_runner(ours)
    for name in ours.keys() - allowed.keys():
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(ours)


def summary(inputs: Inputs, lane_run: LaneRun) -> str:
    """The step summary: the Markdown report of the run, the verdict first, or why there is no verdict.

    Paths are relative to the connector's folder, where the commands are run.
    """
    text = "\n".join(_lines(inputs, lane_run))
    return text.replace(f"{inputs.folder}{os.sep}", "").replace(f"{inputs.workspace}{os.sep}", "")


def _lines(inputs: Inputs, lane_run: LaneRun) -> Iterator[str]:
    because = because_of(lane_run)
    word = VERDICT_WORDS.get(lane_run.status, "ended early")
    status = f"exit {lane_run.status}, failed by {because}" if because else f"exit {lane_run.status}"
    yield f"## Signet conformance: {word}\n"
    yield f"Target {code(inputs.target)} against {code(inputs.daemon)} ({status}).\n"
    if lane_run.failure is not None:
        yield f"No verdict was reached: {inline(printable(failure_text(lane_run.failure), 600))}\n"
    for performance in lane_run.performances:
        report = io.StringIO()
        performance.write_report(FORMATS["markdown"], report)
        yield report.getvalue().removeprefix(f"{HEADING}\n\n")
    command = invocation(inputs).command(*options(inputs).items())
    folder = str(inputs.folder.relative_to(inputs.workspace))
    yield f"On your machine, from {code(folder)}:\n\n```sh\n{command}\n```\n"


def because_of(lane_run: LaneRun) -> str:
    """Describe the reasons other than verdicts for which the lane fails."""
    return "; ".join(dict.fromkeys(filter(None, (each.conclusion.because for each in lane_run.performances))))


def failure_text(failure: SignetConformanceError | None) -> str:
    """Describe in one line why no verdict was reached; without a failure the lane was cancelled."""
    if failure is None:
        return "the lane was cancelled"
    return "; ".join(filter(None, [failure.headline, failure.remedy]))
