"""What belongs to a scenario: from its first mark to its last, and nothing of what comes between two."""

from __future__ import annotations

import sys
from pathlib import Path

from signet_conformance import trace
from signet_conformance.running.workers import RunWorkers
from signet_conformance.scenarios.scenario import scripted
from signet_conformance.trace import Trace
from signet_conformance.trace.recordings import recordings_in

from .conftest import FIXTURES, Made, recordings

COMMAND = [sys.executable, str(FIXTURES / "talkative.py")]


def after_the_end(recorded: Trace) -> int:
    """How many exchanges follow the mark of a scenario's end."""
    (end,) = [mark.seq for mark in recorded.marks if mark.name == "scenario_end"]
    return sum(exchange.seq > end for exchange in recorded.exchanges)


def test_greeting_and_quitting_belong_to_no_scenario(made: Made, tmp_path: Path) -> None:
    """A process that performs several scenarios is greeted and quits between them: no trace holds what it says then."""
    plain = next(scenario for scenario in scripted() if scenario.name == "plain")
    with RunWorkers(made("mine", command=COMMAND), tmp_path / "traces", count=1) as run:
        (recorded_daemon,) = run.recorded_daemons
        for number in range(2):
            driver = recorded_daemon.launch({})
            driver.hello()
            out = run.folder / f"{number}.jsonl"
            assert recorded_daemon.perform(plain, driver, out, apart=f"x{number}") is None
            driver.close()
    traces = [trace.read(path) for path in recordings_in(tmp_path / "traces")]
    assert [len(recording.exchanges) for recording in traces] == [len(plain.steps)] * 2
    assert [after_the_end(recording) for recording in traces] == [0, 0]


def test_greeting_and_quitting_of_one_s_own_process(made: Made, tmp_path: Path) -> None:
    """Where a scenario has a process of its own, its greeting and its quitting are part of the scenario."""
    scenarios = [scenario for scenario in scripted() if scenario.name in ("plain", "switch")]
    assert len(scenarios) == 2
    with RunWorkers(made("mine", command=COMMAND), tmp_path / "traces", count=1) as run:
        paths = recordings(run.recorded_daemons[0], tmp_path / "own", scenarios)
    for scenario, path in zip(scenarios, paths, strict=True):
        recorded = trace.read(path)
        assert len(recorded.exchanges) == len(scenario.steps) + 2
        assert after_the_end(recorded) == 0
