"""Facts about the choice of scenarios."""

from __future__ import annotations

from signet_conformance.running.scenario_choice import fewest_showing, waits_at_once
from signet_conformance.scenarios.scenario import Scenario


def test_few_cheap_scenarios_show_everything_again() -> None:
    """One that shows two breaches is preferred, and then the cheaper one; what no scenario shows is left out."""
    costs = {"plain": 1.0, "tools": 1.5, "outage": 9.0}
    scenarios = [Scenario(name, "", ()) for name in costs]
    shown = {"A": ["plain", "tools"], "B": ["tools", "outage"], "C": ["outage"], "D": ["gone"]}
    chosen = fewest_showing(shown, scenarios, lambda scenario: costs[scenario.name])
    assert [scenario.name for scenario in chosen] == ["tools", "outage"]


def test_long_waits_run_side_by_side() -> None:
    """Each takes longer than the other scenarios: one after the other would make the run as long as their sum."""
    assert waits_at_once([45.0, 31.0, 15.0, 6.0, 5.0]) == 5


def test_short_waits_follow_each_other() -> None:
    """They hide behind the other scenarios, and a worker for each would only cost its processes."""
    assert waits_at_once([2.0, 2.0, 1.0, 1.0, 1.0]) == 2
    assert waits_at_once([]) == 0
