"""`signet-conformance lane`: one run for a CI system, by environment variables; the same on any machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import click

from signet_conformance.cli.commands import tell
from signet_conformance.cli.run_lines import run_lines
from signet_conformance.errors import SignetConformanceError
from signet_conformance.github_action import LaneRun, because_of, failure_text, github, perform, summary
from signet_conformance.github_action.inputs import FIELDS, Inputs, read_inputs, with_new_report
from signet_conformance.outcome import known_failures
from signet_conformance.running.progress import show_progress

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
        "If GITHUB_OUTPUT and GITHUB_STEP_SUMMARY name files, outputs and a summary",
        "are appended to them. If GITHUB_ACTIONS is true, breaches become annotations.",
    ]
)


@click.command("lane", help="Drive a target in CI. All inputs are environment variables.", epilog=_EPILOG)
def command() -> int:
    """Run the lane. Return the run's exit status, for which known failures do not count."""
    runner = github.Runner.from_environment(os.environ, sys.stdout)
    try:
        inputs = read_inputs(os.environ, Path.cwd())
        return _lane(inputs, runner)
    except SignetConformanceError as failure:
        runner.set_output("status", failure.exit_status)
        runner.set_output("verdict", github.VERDICT_WORDS[failure.exit_status])
        runner.annotate(github.Annotation("error", "Signet conformance", failure_text(failure)))
        raise


def _lane(inputs: Inputs, runner: github.Runner) -> int:
    inputs = with_new_report(inputs, ci=bool(os.environ.get("CI") or os.environ.get("GITHUB_ACTIONS")))
    # Set before the run: if it is cancelled, its traces can still be uploaded.
    runner.set_output("report", github.relative(inputs.report, inputs.workspace))
    runner.set_output("artifact", inputs.artifact)
    with runner.commands_stopped(), show_progress(sys.stderr) as tell_progress:
        lane_run = perform(inputs, tell_progress)
        for performance in lane_run.performances:
            print(*run_lines(performance), sep="\n")
        if lane_run.failure is not None:
            tell(lane_run.failure)
    _keep_audit(inputs)
    _write_results(inputs, runner, lane_run)
    return lane_run.status


def _keep_audit(inputs: Inputs) -> None:
    """Copy the record of passed failures into the report's folder: CI deletes the workspace, but uploads the report."""
    if inputs.baseline is None or not inputs.report.is_dir():
        return
    if (audit := known_failures.audit_path(str(inputs.baseline))).is_file():
        shutil.copyfile(audit, inputs.report / audit.name)


def _write_results(inputs: Inputs, runner: github.Runner, lane_run: LaneRun) -> None:
    word = github.VERDICT_WORDS.get(lane_run.status, "unjudged")
    runner.set_output("status", lane_run.status)
    runner.set_output("verdict", word)
    runner.add_summary(summary(inputs, lane_run))
    notes: list[str] = []
    if not lane_run.performances or lane_run.failure is not None:
        runner.annotate(github.Annotation("error", "Signet conformance", failure_text(lane_run.failure)))
    if lane_run.performances:
        tally = Counter[str]()
        for performance in lane_run.performances:
            tally.update(github.count_verdicts(performance.conclusion))
            for annotation in github.annotations_of(performance.conclusion, inputs.workspace):
                runner.annotate(annotation)
        for name, count in tally.items():
            runner.set_output(name.lower(), count)
        notes = [*(f"{count} {name}" for name, count in tally.items() if count), because_of(lane_run)]
    text = ", ".join(filter(None, notes))
    print(f"lane: {inputs.target} {word}{': ' if text else ''}{text} (exit {lane_run.status})")
