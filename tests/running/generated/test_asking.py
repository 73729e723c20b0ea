"""Which steps a driver performs: said in its answer to hello, or found out by trying, and what is lost without."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from signet_conformance import targets
from signet_conformance.running.generated import PerformableSteps, find_performable_steps
from signet_conformance.running.workers import RunWorkers
from signet_conformance.scenarios.features import HALVES, WHOLE_STEPS, possible_steps
from signet_conformance.trace import Declared

from .live import generate

BARE = Path(__file__).with_name("bare_driver.py")


def bare(mode: str) -> targets.Target:
    """A target whose own driver program answers the halves of a compaction in this way."""
    return replace(targets.load("reference"), name="bare", command=(sys.executable, str(BARE), mode))


@pytest.mark.parametrize(
    ("mode", "steps", "listed", "lacks"),
    [
        ("performs", WHOLE_STEPS | HALVES, False, None),
        ("skips", WHOLE_STEPS, False, "it skips pre_compaction: compactions are one step here"),
        ("refuses", WHOLE_STEPS, False, "there is no step pre_compaction"),
        ("ends", WHOLE_STEPS, False, "ended with status 3"),
        ("lists", frozenset({"start", "prompt", "end"}), True, None),
    ],
)
def test_driver_that_does_not_list_its_steps_is_asked_by_trying(
    tmp_path: Path, mode: str, steps: frozenset[str], listed: bool, lacks: str | None
) -> None:
    """Halves are generated for a driver that performs them when they are handed over, and for no other."""
    with RunWorkers(bare(mode), tmp_path, count=1) as workers:
        (recorded_daemon,) = workers.recorded_daemons
        driver = recorded_daemon.launch({})
        try:
            said = driver.hello()
        finally:
            driver.close()
        performs = find_performable_steps(recorded_daemon, said)
    assert (performs.steps, performs.listed) == (steps, listed)
    assert (performs.lacks is None) if lacks is None else (lacks in str(performs.lacks))


def test_connector_without_agents_is_asked_too(tmp_path: Path) -> None:
    """Its sessions name none."""
    with RunWorkers(replace(bare("performs"), declared=Declared()), tmp_path, count=1) as workers:
        assert find_performable_steps(workers.recorded_daemons[0], {}).steps == WHOLE_STEPS | HALVES


EVERY = WHOLE_STEPS | HALVES


@pytest.mark.parametrize(
    ("performs", "possible", "own", "told"),
    [
        (PerformableSteps(EVERY, listed=True), EVERY, True, None),
        (PerformableSteps(EVERY, listed=False), EVERY, False, None),
        (
            PerformableSteps(EVERY, listed=False),
            EVERY,
            True,
            "found out by trying: list its steps in the answer to hello",
        ),
        (
            PerformableSteps(WHOLE_STEPS, listed=False, lacks="it skips them"),
            EVERY,
            True,
            "tried, it skips them; list its",
        ),
        (PerformableSteps(WHOLE_STEPS, listed=False, lacks="it skips them"), EVERY, False, "tried, it skips them"),
        (PerformableSteps(WHOLE_STEPS, listed=False, lacks="it skips them"), WHOLE_STEPS, False, None),
        (
            PerformableSteps(EVERY - {"clear"}, listed=True),
            EVERY,
            True,
            "no generated session holds clear: the driver does",
        ),
    ],
)
def test_loss_is_told_with_what_to_do(
    performs: PerformableSteps, possible: frozenset[str], own: bool, told: str | None
) -> None:
    """What generated sessions lack is named, with its reason, and with the way out where the driver is one's own."""
    lost = performs.describe_lost(possible, own_program=own)
    assert (lost is None) if told is None else (told in str(lost))


def test_steps_that_make_sense_follow_what_is_declared() -> None:
    """Nobody misses compactions or tools that the connector never claimed."""
    declared = Declared.from_json({"capabilities": ["session-start", "user-prompt-submit", "session-end"]}, "here")
    assert possible_steps(declared) == frozenset({"start", "prompt", "resume", "clear", "end"})
    assert possible_steps(Declared()) == EVERY


def test_summary_of_a_run_says_what_its_sessions_held_and_lost(tmp_path: Path) -> None:
    """Outages are counted, and what none of the sessions held stands beside them with a reason."""
    summary = generate(tmp_path, bare("skips"), 3)
    lines = list(summary.coverage_lines())
    assert lines[0].startswith("generated sessions that held an outage: away at a start and back later 1, ")
    assert "401 on a prompt 0" in lines[0]
    assert any("pre_compaction: the driver does not list its steps" in line for line in lines)
    assert sum("8 sessions or more hold every outage" in line for line in lines) == 5
    assert json.loads((tmp_path / "generated.json").read_bytes())["outages"] == summary.outages
