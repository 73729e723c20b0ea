"""`signet-conformance lane`: one run for a CI system, by environment variables; the same on any machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from signet_conformance.errors import KitError, SignetConformanceError
from signet_conformance.github_action.github import Annotation, Runner, without_runner
from signet_conformance.github_action.inputs import FIELDS, Inputs, demand_new_report, read_inputs
from signet_conformance.github_action.outcome import WORDS, Outcome, read_outcome, relative, remarks
from signet_conformance.github_action.performing import CANCELLED, Performed, perform
from signet_conformance.github_action.summary import summary
from signet_conformance.outcome import baseline
from signet_conformance.outcome.known_failures import failing_text
from signet_conformance.reports.registry import FORMATS

_EPILOG = "\n".join(
    [
        "\b",
        "Variables (the inputs of the action carry the same names):",
        *(f"  {f.variable:<30} {f.meaning.split(';')[0]}" + (f" [{f.default}]" if f.default else "") for f in FIELDS),
        "",
        "\b",
        "Examples:",
        "  SIGNET_LANE_TARGET=mine signet-conformance lane",
        "",
        "\b",
        "Where GITHUB_OUTPUT and GITHUB_STEP_SUMMARY name files, outputs and a summary",
        "are added to them; where GITHUB_ACTIONS is true, breaches become annotations.",
    ]
)


@click.command(
    "lane",
    help="Drive a target as a CI lane does. All inputs are environment variables.",
    epilog=_EPILOG,
)
def command() -> int:
    """Run the lane; the exit status is the run's, known failures let pass."""
    runner = Runner.from_environment(os.environ, sys.stdout)
    try:
        inputs = read_inputs(os.environ, Path.cwd())
        return _lane(inputs, runner, os.environ)
    except SignetConformanceError as failure:
        runner.set("status", failure.exit_status)
        runner.set("verdict", WORDS[failure.exit_status])
        place = f"{failure.where}: " if failure.where else ""
        runner.annotate(Annotation("error", "Signet conformance", f"{place}{failure.message}; {failure.remedy or ''}"))
        raise


def _lane(inputs: Inputs, runner: Runner, environment: Mapping[str, str]) -> int:
    demand_new_report(inputs)
    known = [] if inputs.baseline is None else [baseline.read(str(inputs.baseline))]
    # Said before the run: a run that is cancelled leaves traces to upload all the same.
    runner.set("report", relative(inputs.report, inputs.workspace))
    runner.set("artifact", inputs.artifact)
    with runner.quoting():
        performed = perform(inputs, without_runner(environment))
    outcome: Outcome | None = None
    status = performed.status
    if status != CANCELLED and (inputs.report / FORMATS["json"].file).is_file():
        outcome = read_outcome(inputs.report / FORMATS["json"].file, inputs.target, known)
        if outcome.status != performed.status:
            raise KitError(
                f"the run ended with {performed.status}, its report says {outcome.status}",
                where=str(inputs.report),
                remedy="look into the log above: something ended the run after its report was written",
            )
        _keep_audit(inputs)
    else:
        status = performed.unreported
    _tell(inputs, runner, performed, outcome, status)
    return status


def _keep_audit(inputs: Inputs) -> None:
    """Put what the baseline let pass beside the report: the workspace of a CI lane is thrown away."""
    if inputs.baseline is not None and (audit := baseline.audit_path(str(inputs.baseline))).is_file():
        shutil.copyfile(audit, inputs.report / audit.name)


def _tell(inputs: Inputs, runner: Runner, performed: Performed, outcome: Outcome | None, status: int) -> None:
    runner.set("status", status)
    runner.set("verdict", WORDS.get(status, "unjudged"))
    runner.summarise(summary(inputs, performed, outcome, status))
    counts = {} if outcome is None else outcome.counts()
    for name, count in counts.items():
        runner.set(name.lower(), count)
    if outcome is None:
        text = performed.complaint or f"pytest ended with {performed.status} and without a report; the log says why"
        runner.annotate(Annotation("error", "Signet conformance", text))
    else:
        for annotation in remarks(outcome, inputs.workspace):
            runner.annotate(annotation)
    because = "" if outcome is None else failing_text(outcome.known)
    said = ", ".join(filter(None, [*(f"{count} {name}" for name, count in counts.items() if count), because]))
    print(f"lane: {inputs.target} {WORDS.get(status, 'ended')}{': ' if said else ''}{said} (exit {status})")
