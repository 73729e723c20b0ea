"""Performs a run: every database of the suite on a subject, several at once, with a log."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signet_reference_harness.bench import answering
from signet_reference_harness.bench.log import BenchLog, ProgressLine, Record, RunLog, first_failure
from signet_reference_harness.bench.performing import Subject, perform
from signet_reference_harness.bench.result import RESULT, TIMES, Result, Times, result_of, times_of, write_document
from signet_reference_harness.bench.suite import ScenarioRun, Suite
from signet_reference_harness.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """Suite, subject and settings of a run; `settings` are those that its figures depend on."""

    suite: Suite
    subject: Subject
    settings: Mapping[str, Any]
    folder: Path
    jobs: int

    def as_record(self) -> dict[str, Any]:
        """The plan as the log has it. A folder holds one plan."""
        return {"suite": self.suite.sha256, "subject": self.subject.describe(), "settings": dict(self.settings)}

    @property
    def run(self) -> str:
        """The id of the run: it follows from the plan."""
        return hashlib.sha256(json.dumps(self.as_record(), sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """The documents of a finished run."""

    result: Result
    times: Times
    answers: answering.Answers | None


def run(plan: BenchPlan, *, quiet: bool, answerer: answering.Answerer | None = None) -> FinishedRun:
    """Perform the run, or its remaining part, ask the answering model if there is one, and write the documents.

    Raises ConfigError for a folder that holds another run, BenchFailureError when the run cannot go on.
    """
    log = RunLog.open(plan.folder)
    try:
        loaded = log.load()
        if loaded.run is None:
            log.write({"kind": "run", "format": "signet-bench-log/1", "id": plan.run, "plan": plan.as_record()})
        elif loaded.run.get("id") != plan.run:
            raise ConfigError(
                f"{plan.folder}: holds another run: another suite, subject or setting",
                remedy="name another folder with --out",
            )
        unfinished = {name: each for name, each in plan.suite.databases.items() if name not in loaded.done}
        if unfinished:
            progress = ProgressLine(sum(_size(each) for each in unfinished.values()), "steps", quiet=quiet)
            if len(unfinished) < len(plan.suite.databases):
                progress.note(f"going on: {len(loaded.done)} of {len(plan.suite.databases)} databases are done")
            try:
                asyncio.run(_perform_all(plan, unfinished, log, loaded, progress))
            finally:
                progress.clear()
            loaded = log.load()
        result = result_of(plan.suite, plan.as_record(), plan.run, loaded)
        write_document(result, plan.folder / RESULT)
        try:
            answers = None if answerer is None else _answer_questions(plan.suite, result, answerer, log, quiet=quiet)
            if answers is not None:
                write_document(answers, plan.folder / answering.ANSWERS)
        finally:
            times = times_of(plan.suite, plan.run, log.load())
            write_document(times, plan.folder / TIMES)
    finally:
        log.close()
    return FinishedRun(result, times, answers)


def _answer_questions(
    suite: Suite, result: Result, answerer: answering.Answerer, log: RunLog, *, quiet: bool
) -> answering.Answers:
    progress = ProgressLine(sum(1 for _ in answering.questions_for_model(suite, result)), "answers", quiet=quiet)
    try:
        asyncio.run(answering.answer_all(suite, result, answerer, log, log.load(), progress))
    finally:
        progress.clear()
    return answering.answers_of(suite, result, answerer, log.load())


async def _perform_all(
    plan: BenchPlan, unfinished: Mapping[str, list[ScenarioRun]], log: RunLog, loaded: BenchLog, progress: ProgressLine
) -> None:
    slots = asyncio.Semaphore(plan.jobs)
    numbers = {name: number for number, name in enumerate(plan.suite.databases, 1)}

    async def turn(name: str) -> None:
        async with slots:
            await _measure(plan, name, numbers[name], log, loaded.attempts.get(name, 0) + 1, progress)

    with first_failure():
        async with asyncio.TaskGroup() as group:
            # The largest first, so that it does not run alone at the end.
            for name in sorted(unfinished, key=lambda each: -_size(unfinished[each])):
                group.create_task(turn(name))


async def _measure(plan: BenchPlan, name: str, number: int, log: RunLog, attempt: int, progress: ProgressLine) -> None:
    where = {"database": name, "attempt": attempt}

    def note(record: Record) -> None:
        log.write({"kind": record["kind"], **where, **record})

    async with plan.subject.open(plan.folder, name, number) as opened:
        log.write({"kind": "begin", **where, "daemon_version": opened.version})
        for scenario_run in plan.suite.databases[name]:
            await perform(scenario_run, opened.player(scenario_run), note, progress.step)
            await asyncio.sleep(0)
        latencies = opened.latencies.ms
    log.write({"kind": "done", **where, "latencies_ms": latencies})


def _size(scenario_runs: list[ScenarioRun]) -> int:
    return sum(len(scenario_run.steps) for scenario_run in scenario_runs)
