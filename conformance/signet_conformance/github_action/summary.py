"""The step summary of a lane: the run's own Markdown report, and beside it what only the lane knows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from signet_conformance.errors import printable
from signet_conformance.github_action.inputs import Inputs
from signet_conformance.github_action.outcome import WORDS, Outcome
from signet_conformance.github_action.performing import Performed, command_line
from signet_conformance.outcome.known_failures import failing_text
from signet_conformance.reports.markdown import code, inline
from signet_conformance.reports.registry import FORMATS


def summary(inputs: Inputs, performed: Performed, outcome: Outcome | None, status: int) -> str:
    """The Markdown of a lane that ended. Without an `outcome` it says why there is none."""
    return "\n".join(_lines(inputs, performed, outcome, status))


def _lines(inputs: Inputs, performed: Performed, outcome: Outcome | None, status: int) -> Iterator[str]:
    report = _written(inputs.report / FORMATS["markdown"].file)
    if report:
        yield report
    else:
        yield "## Signet conformance\n"
    word = WORDS.get(status, "ended early")
    because = "" if outcome is None else failing_text(outcome.known)
    ended = f"exit {status}, failed by {because}" if because else f"exit {status}"
    yield f"Target {code(inputs.target)} against {code(inputs.daemon)}: **{word}** ({ended}).\n"
    if outcome is None:
        yield f"No verdict was reached: {inline(printable(performed.complaint or 'the log says why', 600))}\n"
    words = shlex.join(command_line(inputs))
    yield f"The same on your machine, from {code(_folder(inputs))}:\n\n```sh\n{words}\n```\n"


def _folder(inputs: Inputs) -> str:
    return str(inputs.folder.relative_to(inputs.workspace))


def _written(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""
