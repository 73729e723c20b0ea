"""The step summary of a lane: the run's own Markdown report, and beside it what only the lane knows."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

from signet_conformance.errors import printable
from signet_conformance.github_action.github import WORDS
from signet_conformance.github_action.inputs import Inputs
from signet_conformance.github_action.performing import LaneRun, invocation, options
from signet_conformance.reports.markdown import HEADING, code, inline
from signet_conformance.reports.registry import FORMATS


def summary(inputs: Inputs, ended: LaneRun) -> str:
    """The Markdown of a lane that ended: the verdict first. Where no verdict was reached, it says why.

    Paths are relative to the connector's folder, where the commands are run.
    """
    text = "\n".join(_lines(inputs, ended))
    return text.replace(f"{inputs.folder}{os.sep}", "").replace(f"{inputs.workspace}{os.sep}", "")


def _lines(inputs: Inputs, ended: LaneRun) -> Iterator[str]:
    because = because_of(ended)
    word = WORDS.get(ended.status, "ended early")
    status = f"exit {ended.status}, failed by {because}" if because else f"exit {ended.status}"
    yield f"## Signet conformance: {word}\n"
    yield f"Target {code(inputs.target)} against {code(inputs.daemon)} ({status}).\n"
    if ended.failure is not None:
        yield f"No verdict was reached: {inline(printable(failure_text(ended), 600))}\n"
    for performance in ended.performances:
        report = io.StringIO()
        performance.write_report(FORMATS["markdown"], report)
        yield report.getvalue().removeprefix(f"{HEADING}\n\n")
    command = invocation(inputs).command(*options(inputs).items())
    folder = str(inputs.folder.relative_to(inputs.workspace))
    yield f"The same on your machine, from {code(folder)}:\n\n```sh\n{command}\n```\n"


def because_of(ended: LaneRun) -> str:
    """What fails the lane beside its verdicts, in words."""
    return "; ".join(dict.fromkeys(filter(None, (each.conclusion.because for each in ended.performances))))


def failure_text(ended: LaneRun) -> str:
    """Why no verdict was reached, in one line."""
    failure = ended.failure
    if failure is None:
        return "the lane was cancelled"
    place = f"{failure.where}: " if failure.where else ""
    return "; ".join(filter(None, [f"{place}{failure.message}", failure.remedy]))
