"""Generated sessions of a broken reference harness, or against a broken daemon, performed and followed up."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from signet_conformance import targets
from signet_conformance.outcome.generated_summary import GeneratedBreach, GeneratedSummary
from signet_conformance.running.generated import GeneratedSessions
from signet_conformance.running.workers import RunWorkers

BROKEN = Path(__file__).with_name("broken_reference.py")


def broken_target(*defects: str) -> targets.Target:
    """The reference target with some defects; none is the reference itself, through the same transport."""
    return replace(targets.load("reference"), name="broken", command=(sys.executable, str(BROKEN), *defects))


@contextmanager
def broken_daemon(mutant: str) -> Iterator[str]:
    """The address of an embedded daemon that a mutant of schemas/mutants.json breaks."""
    command = [sys.executable, "-m", "signet_conformance.selftest.daemon", "--mutant", mutant]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield str(json.loads(process.stdout.readline())["url"])
        finally:
            process.communicate(timeout=30)  # the end of its input ends it, and it removes its folder


def generate(
    folder: Path,
    target: targets.Target,
    count: int,
    *,
    seed: int = 1,
    workers: int | None = None,
    daemon: str = "embedded",
    only: frozenset[str] | None = None,
) -> GeneratedSummary:
    """Perform `count` sessions and follow up what they show, as a run without scripted scenarios would.

    `only` are the requirements that are asked for, None for all.
    """
    with RunWorkers(target, folder, daemon, count=workers) as run:
        sessions = GeneratedSessions(
            workers=run,
            count=count,
            seed=seed,
            failures=folder / "failures",
            replay=lambda path: f"replay {path}",
            only=only,
        )
        return sessions.conclude(list(run.work(sessions.jobs())), dict)


def steps_of(breach: GeneratedBreach) -> Sequence[dict[str, Any]]:
    """The steps of the scenario that was saved for a breach."""
    steps: Sequence[dict[str, Any]] = json.loads(Path(breach.scenario).read_bytes())["steps"]
    return steps
