"""What is drawn for a seed, and what is left when a scenario is shrunk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from signet_conformance.scenarios.features import CHUNK, Features
from signet_conformance.scenarios.scenario import Scenario, identity
from signet_conformance.scenarios.strategies import draw, smallest

FEATURES = Features()
ELSEWHERE = """
import json, sys, importlib.util
spec = importlib.util.spec_from_file_location("surroundings", sys.argv[1])
sys.modules["surroundings"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from signet_conformance.scenarios.strategies import draw
from signet_conformance.scenarios.scenario import identity
from signet_conformance.scenarios.features import Features
print(json.dumps([identity(scenario) for scenario in draw(Features(), 7, 2)]))
"""


def test_chunk_is_full_of_different_scenarios() -> None:
    """A chunk holds as many scenarios as it should, no two the same, named after chunk and place."""
    scenarios = draw(FEATURES, 1, 3)
    assert len({identity(scenario) for scenario in scenarios}) == len(scenarios) == CHUNK
    assert [scenario.name for scenario in scenarios] == [f"generated-3-{place}" for place in range(CHUNK)]


def test_seed_and_number_determine_a_chunk() -> None:
    """The same chunk of the same seed is the same again; another seed or number is another one."""
    drawn = [tuple(map(identity, draw(FEATURES, seed, chunk))) for seed, chunk in ((1, 0), (1, 0), (1, 1), (2, 0))]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 3


def test_draws_do_not_depend_on_what_else_is_imported(tmp_path: Path) -> None:
    """Constants of the modules around change no scenario, and are not looked for: Hypothesis would note them here."""
    surroundings = tmp_path / "surroundings.py"
    surroundings.write_text("NUMBERS = " + repr(list(range(2000))))
    run = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(surroundings)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout) == [identity(scenario) for scenario in draw(FEATURES, 7, 2)]
    assert not (tmp_path / ".hypothesis").exists()


def test_smallest_scenario_is_found_from_what_is_known() -> None:
    """The search begins at the first known scenario, and asks about none that it knows already."""
    asked: list[str] = []

    def clears(scenario: Scenario) -> bool:
        return any(step.step == "clear" for step in scenario.steps)

    def shows(scenario: Scenario) -> bool:
        asked.append(identity(scenario))
        return clears(scenario)

    drawn = draw(FEATURES, 1, 0)
    scenario, tried = smallest(FEATURES, 1, 0, [clears(scenario) for scenario in drawn], shows)
    assert scenario is not None
    assert [step.step for step in scenario.steps] == ["start", "clear", "end"]
    assert len(asked) == len(set(asked)) == tried
    assert not set(asked) & {identity(scenario) for scenario in drawn}


def test_nothing_known_is_nothing_found() -> None:
    """Without a scenario that shows it, nothing is tried."""
    scenario, tried = smallest(FEATURES, 1, 0, [False] * CHUNK, lambda scenario: bool(scenario.steps))
    assert (scenario, tried) == (None, 0)
