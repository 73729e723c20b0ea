"""Generated sessions of a broken reference harness, performed and followed up."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from signet_conformance import targets
from signet_conformance.generated import GeneratedSessions
from signet_conformance.generated_summary import Breach, Summary
from signet_conformance.runner import Run

BROKEN = Path(__file__).with_name("broken_reference.py")


def broken_target(*defects: str) -> targets.Target:
    """The reference target with some defects; none is the reference itself, through the same transport."""
    return replace(targets.load("reference"), name="broken", command=(sys.executable, str(BROKEN), *defects))


def generate(folder: Path, target: targets.Target, count: int, seed: int = 1, lanes: int | None = None) -> Summary:
    """Perform `count` sessions and follow up what they show, as a run without scripted scenarios would."""
    with Run(target, folder, lanes=lanes) as run:
        sessions = GeneratedSessions(
            run, count=count, seed=seed, failures=folder / "failures", replay=lambda path: f"replay {path}"
        )
        return sessions.conclude(list(run.work(sessions.jobs())), {}, lambda _words: None)


def steps_of(breach: Breach) -> Sequence[dict[str, Any]]:
    """The steps of the scenario that was saved for a breach."""
    steps: Sequence[dict[str, Any]] = json.loads(Path(breach.scenario).read_bytes())["steps"]
    return steps
