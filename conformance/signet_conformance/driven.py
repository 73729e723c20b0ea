"""A driven run: the scripted scenarios (or those of a file), and beside them the generated sessions."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from signet_conformance import engine, trace
from signet_conformance.errors import NothingTestedError, TargetError
from signet_conformance.finding import Verdict
from signet_conformance.generated import Chunk, GeneratedSessions
from signet_conformance.generated_summary import BREACHES, Summary
from signet_conformance.runner import Job, Run, ScenarioRun
from signet_conformance.scenarios.script import Scenario, scripted
from signet_conformance.targets import Target

FAILURES = "signet-failures"
"""The folder, where one stands, for scenarios that show a breach in a run without a report."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a driven run performs. `scenarios` stand in for the scripted ones when there are any.

    `generated` counts the generated sessions, which `seed` determines. With `report`, the scenarios that
    show a breach are saved beside the traces.
    """

    target: Target
    daemon: str = "embedded"
    scenarios: tuple[Scenario, ...] = ()
    generated: int = 0
    seed: int = 1
    strict: bool = False
    report: bool = False


Progress = Callable[[str], None]
"""Told, as a few words, how far the run has come: after every scenario, and every few generated sessions."""


def drive(plan: Plan, folder: Path, progress: Progress) -> Summary | None:
    """Perform a run and leave its traces in `folder`; the summary of its generated sessions, if it had any.

    Raises TargetError, with exit status 4, when the connector could not perform a scenario, and
    NothingTestedError when it cannot be started at all.
    """
    with Run(plan.target, folder, plan.daemon) as run:
        scenarios = run.usable(plan.scenarios or scripted())
        generated = GeneratedSessions(
            run,
            count=plan.generated,
            seed=plan.seed,
            failures=folder / "scenarios" if plan.report else Path.cwd() / FAILURES,
            replay=lambda path: _replay(plan, path),
            strict=plan.strict,
        )
        errors: dict[str, str] = {}
        chunks: list[Chunk] = []
        done = 0
        scripted_jobs = [run.job(scenario, part=bool(plan.scenarios)) for scenario in scenarios]
        # A chunk is the longest job there is: were it begun last, one lane would be at it alone.
        jobs: list[Job[ScenarioRun | Chunk]] = [*scripted_jobs[:1], *generated.jobs(), *scripted_jobs[1:]]
        try:
            for result in run.work(jobs):
                if isinstance(result, Chunk):
                    chunks.append(result)
                else:
                    done += 1
                    if result.error is not None:
                        errors[result.scenario] = result.error
                performed = sum(chunk.performed for chunk in chunks)
                sessions = f", {performed}/{plan.generated} generated sessions" if plan.generated else ""
                progress(f"{done}/{len(scenarios)} scenarios{sessions}")
        except NothingTestedError as failure:
            if any(trace.read(path).exchanges for path in folder.glob("*.jsonl")):
                # It could be started before: something was tested, but not all.
                failure.exit_status = 4
            raise
        _raise_for(scenarios, errors, folder)
        if not chunks:
            return None
        summary = generated.conclude(chunks, _verdicts(folder), progress)
    _raise_for_failures(summary)
    return summary


def _verdicts(folder: Path) -> dict[str, Verdict]:
    judged = engine.judge_run([trace.read(path) for path in sorted(folder.glob("*.jsonl"))])
    verdicts = {name: judgement.verdict for name, judgement in judged.together.items()}
    for one in judged.traces:
        verdicts.update((n, found.verdict) for n, found in one.daemon.items() if found.verdict in BREACHES)
    return verdicts


def _raise_for(scenarios: Sequence[Scenario], errors: dict[str, str], folder: Path) -> None:
    first = next((scenario.name for scenario in scenarios if scenario.name in errors), None)
    if first is not None:
        failure = TargetError(
            f"{len(errors)} of {len(scenarios)} scenarios could not be performed; the first, {first}: {errors[first]}",
            remedy=f"traces so far: {folder}",
        )
        failure.exit_status = 4
        raise failure


def _raise_for_failures(summary: Summary) -> None:
    confirmed = [failure for failure in summary.failures if failure.confirmed]
    if confirmed:
        failure = TargetError(
            f"a generated session could not be performed, by a fresh connector either: {confirmed[0].error}",
            where=confirmed[0].scenario,
            remedy=f"replay it: {confirmed[0].replay}",
        )
        failure.exit_status = 4
        raise failure


def _replay(plan: Plan, path: Path) -> str:
    """The command that performs a saved scenario again, as it can be pasted where the run was started."""
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    words = ["pytest", "--signet-conformance", "--signet-target", plan.target.name]
    if plan.daemon != "embedded":
        words += ["--signet-daemon", plan.daemon]
    return shlex.join([*words, "--signet-scenario", str(shown)])
