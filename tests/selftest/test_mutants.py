"""Facts about schemas/mutants.json: its shape, and that no requirement is without a mutant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from signet_conformance.contract import catalogue, daemon_requirements, document
from signet_conformance.errors import ContractError, UsageError
from signet_conformance.rules import daemon_rules
from signet_conformance.scenarios.scenario import scripted
from signet_conformance.selftest.matrix import completeness
from signet_conformance.selftest.mutants import mutant, mutants
from signet_conformance.selftest.trials import scenario_of, trials

SCHEMA = document("mutants.schema.json")
ROWS = document("mutants.json")


def test_the_mutants_satisfy_their_schema() -> None:
    """The data are as mutants.schema.json describes them."""
    jsonschema.Draft202012Validator(SCHEMA).validate(ROWS)


def test_each_requirement_on_the_daemon_has_a_rule() -> None:
    """The rules of the daemon's side are those of its requirements, in their order."""
    assert list(daemon_rules()) == list(daemon_requirements())


def changed(**members: Any) -> Mapping[str, Any]:
    """The first mutant with other members; None takes one out."""
    row = {**ROWS["mutants"][0], **members}
    return {name: value for name, value in row.items() if value is not None}


OFF = [
    changed(change=None),
    changed(verdict="INCONCLUSIVE"),
    changed(side="daemon"),
    changed(side="harness"),
    changed(change={"do": "model", "how": "drop", "of": "summary"}),
    changed(breaks="SIG-DAEMON-001"),
    changed(id="Not An Id"),
    changed(note="unknown"),
    changed(change={"do": "edit", "on": "memory-get"}),
    changed(change={"do": "explode", "on": "memory-get"}),
    changed(change={"do": "insert", "on": "memory-get", "path": "/x"}),
    changed(change={"do": "fall_silent", "on": "*", "answered": "surprised"}),
    changed(change={"do": "edit", "on": "memory-get", "set": {"no-pointer": 1}}),
    changed(situation={"do": "repeat", "on": "session-start"}),
]


@pytest.mark.parametrize("row", OFF)
def test_a_mutant_of_another_shape_is_refused(row: Mapping[str, Any]) -> None:
    """The schema refuses unknown changes, members, sides and verdicts."""
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid({**ROWS, "mutants": [row]})


def test_every_requirement_has_a_mutant_or_a_reason() -> None:
    """No rule stands without a mutant that it kills, and no mutant without a rule."""
    assert list(completeness(mutants())) == []
    assert set(catalogue()) == {
        *(known_mutant.breaks for known_mutant in mutants().mutants.values()),
        *mutants().exempt,
    }


def test_a_requirement_without_a_mutant_is_complained_of() -> None:
    """Taking the only mutant of a requirement away shows, and so does one that breaks what has no rule."""
    known = mutants()
    rest = {name: known_mutant for name, known_mutant in known.mutants.items() if known_mutant.breaks != "SIG-FAIL-002"}
    (missing,) = completeness(replace(known, mutants=rest))
    assert missing.startswith("SIG-FAIL-002 has a rule and no mutant")
    stray = replace(known.mutants["never-ends"], id="stray", breaks="SIG-END-099")
    (unknown,) = completeness(replace(known, mutants={**known.mutants, "stray": stray}))
    assert unknown == "mutant stray names SIG-END-099, which has no rule"


def test_an_exemption_is_a_rule_without_a_mutant() -> None:
    """An exemption that a mutant contradicts, or that no rule needs, is complained of."""
    exempt = {**mutants().exempt, "SIG-END-005": "none can", "SIG-END-099": "none can"}
    assert list(completeness(replace(mutants(), exempt=exempt))) == [
        "SIG-END-005 is exempt, and has a mutant",
        "SIG-END-099 is exempt, and has no rule",
    ]


def test_ids_are_unique() -> None:
    """No two mutants share an id, and none has the name of a trial of the reference."""
    names = [row["id"] for row in ROWS["mutants"]]
    assert len(set(names)) == len(names)
    every = [trial.name for trial in trials(list(mutants().mutants.values()))]
    assert len(set(every)) == len(every)


def test_every_mutant_has_its_scenario() -> None:
    """Each performs a known scenario, and no scenario stands unused."""
    used = {scenario_of(known_mutant).name for known_mutant in mutants().mutants.values()}
    assert {row["name"] for row in ROWS["scenarios"]} <= used
    with pytest.raises(ContractError, match="is not a scenario"):
        scenario_of(replace(mutant("never-ends"), scenario="nowhere"))


def test_the_reference_performs_what_its_mutants_perform() -> None:
    """Each scenario of a mutant is performed by the reference too, at the same contract version."""
    asked = trials(list(mutants().mutants.values()))
    controls = {(trial.contract, trial.scenario.name) for trial in asked if trial.mutant is None and trial.base is None}
    assert {(known_mutant.contract, known_mutant.scenario) for known_mutant in mutants().mutants.values()} <= controls
    assert {("0.145", known_mutant.name) for known_mutant in scripted()} <= controls


def test_a_base_is_tried_with_what_passes_by_when_sessions_start() -> None:
    """Faults of a start, and refusals, are tried in the connector that starts late; how one member is written is not.

    What a base leaves out would be tried otherwise.
    """
    base = mutants().bases["at-prompt"]
    for name in ("goes-on-after-a-conflict", "waits-for-ever", "hammers-with-a-start", "gives-up-when-refused"):
        assert base.is_tried_with(mutant(name))
    assert not base.is_tried_with(mutant("sends-text-plain"))
    assert not any(base.is_tried_with(each) for each in mutants().mutants.values() if each.side != "connector")
    willing = replace(base, leaves={})
    assert all(willing.is_tried_with(mutant(name)) for name in base.leaves)
    tried = [trial for trial in trials([mutant("goes-on-after-a-conflict")]) if trial.base is not None]
    assert [trial.name for trial in tried] == ["at-prompt-0-145-start-conflict", "at-prompt-goes-on-after-a-conflict"]


def test_an_unknown_mutant_is_refused() -> None:
    """The complaint names the id."""
    with pytest.raises(UsageError, match=r"no mutant.*nobody"):
        mutant("nobody")
