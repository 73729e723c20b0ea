"""What a breach is shrunk to shows nothing that the sessions as drawn do not show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from signet_conformance import targets
from signet_conformance.finding import Verdict
from signet_conformance.running import shrinking
from signet_conformance.running.connector import Patience
from signet_conformance.running.shrinking import Chunk
from signet_conformance.scenarios.features import Features
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.scenarios.steps import PromptStep

SHRUNK, OTHER = "SIG-HTTP-015", "SIG-HEALTH-001"
Shows = Callable[[Scenario, bool], Mapping[str, Verdict]]


def follow_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shows: Shows) -> tuple[Any, Scenario, set[str]]:
    """What comes of a breach that one session of a chunk showed, that session as it was drawn, and what it settled.

    `shows` says what a scenario breaches; it is told whether the connector is a fresh one.
    """

    class Connector:
        watched = None

        def __init__(self, *_: object) -> None: ...

        def close(self) -> None: ...

        def perform_and_judge(self, scenario: Scenario, out: Path, apart: str | None) -> Any:
            # As the recorder does: never over a file, and with the model's side of a scenario performed alone.
            for path in (out, *((out.with_suffix(".model.jsonl"),) if apart is None else ())):
                path.touch(exist_ok=False)
            verdicts = {SHRUNK: Verdict.PASS, **shows(scenario, apart is None)}
            return SimpleNamespace(
                judgements={name: SimpleNamespace(verdict=verdict) for name, verdict in verdicts.items()}, daemon={}
            )

    monkeypatch.setattr(shrinking, "LiveConnector", Connector)
    chunk = Chunk(1, 0, performed=1, features=Features())
    original = next(place for place, scenario in enumerate(chunk.draw()) if prompts(scenario) > 2)
    chunk.performed = original + 1
    chunk.breached[SHRUNK, Verdict.WARN] = [original]
    chunk.traces[original] = tmp_path / "drawn.jsonl"
    after = shrinking.FollowUp(
        recorded_daemon=SimpleNamespace(target=targets.load("reference")),
        patience=Patience(),
        folder=tmp_path,
        run_folder=tmp_path / "run",
        failures=tmp_path / "failures",
        replay=str,
        only=None,
    )
    (tmp_path / "run").mkdir()
    settled: set[str] = set()
    return after.breach(chunk, SHRUNK, Verdict.WARN, settled), chunk.draw()[original], settled


def prompts(scenario: Scenario) -> int:
    """How many prompts a scenario has."""
    return sum(isinstance(step, PromptStep) for step in scenario.steps)


def test_a_smaller_session_that_breaches_more_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without two prompts another requirement would be breached too: two prompts stay."""

    def shows(scenario: Scenario, fresh: bool) -> Mapping[str, Verdict]:  # noqa: ARG001 - one signature for both
        return {SHRUNK: Verdict.WARN, **({} if prompts(scenario) > 1 else {OTHER: Verdict.WARN})}

    breach, _, settled = follow_up(tmp_path, monkeypatch, shows)
    assert (breach.confirmed, breach.also, settled) == (True, (), {SHRUNK})
    assert breach.steps < breach.drawn


def test_a_smaller_session_that_breaches_more_alone_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fresh connector shows that the smallest session breaches more: that as it was drawn stands there."""

    def shows(scenario: Scenario, fresh: bool) -> Mapping[str, Verdict]:
        return {SHRUNK: Verdict.WARN, **({OTHER: Verdict.WARN} if fresh and prompts(scenario) < 2 else {})}

    breach, original, settled = follow_up(tmp_path, monkeypatch, shows)
    assert (breach.confirmed, breach.also, settled) == (True, (), {SHRUNK})
    assert (breach.steps, breach.tried) == (len(original.steps), 0)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [f"{SHRUNK}.jsonl", f"{SHRUNK}.model.jsonl"]
    assert not list(tmp_path.glob("*again*"))
