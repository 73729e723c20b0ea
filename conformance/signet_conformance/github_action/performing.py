"""The run of a lane: the same run that `signet-conformance run` performs, in this process."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from signet_conformance import targets
from signet_conformance.children.foreground import interrupted_by
from signet_conformance.errors import SignetConformanceError
from signet_conformance.github_action.github import without_runner
from signet_conformance.github_action.inputs import Inputs, variable
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.outcome.options import KnownOptions
from signet_conformance.running import request
from signet_conformance.running.performance import RunPerformance
from signet_conformance.running.progress import Tell
from signet_conformance.running.request import Invocation, RunOptions, RunRequest, worst
from signet_conformance.targets.real import harness_words

CANCELLED = 130
"""The exit status of a lane that was interrupted."""
_CANCELLING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A CI system that cancels sends SIGINT, then SIGTERM; a terminal that goes away, SIGHUP."""


class LaneRun(Struct, frozen=True):
    """How the run of a lane ended: its status, and the performance, or why no verdict was reached.

    There is a performance for each face that was asked for. Of a lane that was cancelled there is neither.
    """

    status: int
    performances: Sequence[RunPerformance] = ()
    failure: SignetConformanceError | None = None


def options(inputs: Inputs) -> Mapping[str, str]:
    """The options of `run` that equal the inputs, with paths from the folder of the connector."""
    given = {
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
    return {name: value for name, value in given.items() if value is not None}


def invocation(inputs: Inputs, asked: RunRequest | None = None) -> Invocation:
    """How a person performs the run of a lane, or one of its runs."""
    strict = ("--strict",) if inputs.strict else ()
    played = None if asked is None or inputs.face is None else asked.target
    face = () if played is None else ("--face", played.face_name)
    real = () if asked is None or asked.target is None else harness_words(asked.target)
    return Invocation(("signet-conformance", "run", inputs.target, *face, *real, *strict))


def perform(inputs: Inputs, tell: Tell) -> LaneRun:
    """Perform the run, judge it and write its report. An interruption ends all that the run started."""
    done: list[RunPerformance] = []
    try:
        with contextlib.chdir(inputs.folder), _unheard(), interrupted_by(*_CANCELLING):
            for asked in _requests(inputs):
                performance = RunPerformance(asked)
                performance.drive(invocation(inputs, asked), tell)
                performance.write()
                done.append(performance)
    except KeyboardInterrupt:
        return LaneRun(CANCELLED)
    except SignetConformanceError as failure:
        return LaneRun(failure.exit_status, done, failure)
    return LaneRun(worst([performance.conclusion.status for performance in done]), done)


def _requests(inputs: Inputs) -> Sequence[RunRequest]:
    given = options(inputs)
    known = None if inputs.baseline is None else str(inputs.baseline)
    asked = RunOptions(
        daemon=given["daemon"],
        allow_writes=inputs.allow_writes,
        allow_default_port=inputs.allow_default_port,
        scenarios=given.get("scenarios"),
        seed=given["seed"],
        contract=given.get("contract"),
        report=str(inputs.report),
        strict=inputs.strict,
        known=KnownFailures.parse(KnownOptions(baseline=known)),
        harness=inputs.harness,
    )
    return request.read_requests(asked, targets.load(inputs.target, option=variable("target")), inputs.face, variable)


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """While this lasts, a child has no way to speak to the CI system, and none of its tokens."""
    ours = dict(os.environ)
    kept = without_runner(ours)
    for name in ours.keys() - kept.keys():
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(ours)
