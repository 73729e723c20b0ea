"""Facts about the choice of scenarios."""

from __future__ import annotations

from signet_conformance.running.choosing import fewest_showing
from signet_conformance.scenarios.scenario import Scenario


def test_few_cheap_scenarios_show_everything_again() -> None:
    """One that shows two breaches is preferred, and then the cheaper one; what no scenario shows is left out."""
    costs = {"plain": 1.0, "tools": 1.5, "outage": 9.0}
    scenarios = [Scenario(name, "", ()) for name in costs]
    shown = {"A": ["plain", "tools"], "B": ["tools", "outage"], "C": ["outage"], "D": ["gone"]}
    chosen = fewest_showing(shown, scenarios, lambda scenario: costs[scenario.name])
    assert [scenario.name for scenario in chosen] == ["tools", "outage"]
