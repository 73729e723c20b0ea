"""Which scenarios decide a requirement: fewer than all, and never too few."""

from __future__ import annotations

import pytest

from signet_conformance.contract import requirements
from signet_conformance.scenarios.scenario import Scenario, deciding, scripted
from signet_conformance.selftest.mutants import mutants

START = {"step": "start", "session": "s1"}


def names(*asked: str) -> set[str]:
    """The scripted scenarios that decide any of some requirements."""
    return {scenario.name for scenario in deciding(scripted(), asked)}


COMPACTIONS = {
    "compaction",
    "interleaved",
    "other-agent",
    "after-compaction",
    "slow-after-compaction",
    "daemon-409-at-start",
    "daemon-busy",
    "daemon-not-json",
}


@pytest.mark.parametrize(
    ("requirement", "performed"),
    [
        ("SIG-FAIL-004", {"plain", "bypass"}),
        ("SIG-CMP-003", COMPACTIONS),
        (
            "SIG-SEC-001",
            {
                "tools",
                "secret",
                "feedback",
                "interleaved",
                "other-agent",
                "many-rows",
                "two-forgotten",
                "skill",
                "two-tasks",
                "sub-agent",
                "closed-window",
            }
            | {"clear", "compaction", "resume", "daemon-refuses-save", "daemon-limits", "daemon-busy", "daemon-denies"}
            | {"daemon-not-json", "search-of-sessions", "own-memory", "host-restarts"}
            | {"daemon-slow", "daemon-slow-prompt"},
        ),
    ],
)
def test_scenarios_that_cannot_decide_are_left_out(requirement: str, performed: set[str]) -> None:
    """What only certain steps bring about is looked for where these steps are."""
    assert names(requirement) == performed


def test_silence_is_looked_for_beside_a_session_in_which_a_connector_speaks() -> None:
    """A connector that never calls the daemon must not pass for one that minds the bypass."""
    assert [scenario.name for scenario in deciding(scripted(), ["SIG-FAIL-004"])] == ["plain", "bypass"]


def test_several_requirements_have_the_scenarios_of_each() -> None:
    """A scenario is performed when it decides any of what was asked for."""
    assert names("SIG-FAIL-004", "SIG-CMP-003") == {"bypass", *COMPACTIONS}


@pytest.mark.parametrize("requirement", ["SIG-START-001", "SIG-CMP-007", "SIG-COV-001", "ACME-HTTP-001"])
def test_what_may_happen_anywhere_is_looked_for_everywhere(requirement: str) -> None:
    """A requirement on what every session holds, on the whole run, or of a repository's own has all scenarios."""
    assert tuple(deciding(scripted(), [requirement])) == scripted()


def test_scenarios_of_ones_own_are_performed_even_if_none_seems_to_decide() -> None:
    """Where nothing would be left, nothing is left out."""
    own = [Scenario("own", "", (START,))]
    assert deciding(own, ["SIG-CMP-003"]) == own


def test_each_mutant_of_the_connector_is_noticed_in_a_scenario_that_is_performed() -> None:
    """The scenario in which the self-test shows a requirement breached decides that requirement."""
    scripts = {scenario.name for scenario in scripted()}
    shown = [
        (m.breaks, m.scenario) for m in mutants().mutants.values() if m.side == "connector" and m.scenario in scripts
    ]
    assert {requirement for requirement, _ in shown} <= requirements().keys()
    missed = [(requirement, name) for requirement, name in shown if name not in names(requirement)]
    assert missed == []
