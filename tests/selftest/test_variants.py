"""Facts about schemas/variants.json: its shape, and when a variant counts as blamed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from signet_conformance.contract import catalogue, document
from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import UsageError
from signet_conformance.finding import Finding, Judgement, Reason, Side, Verdict
from signet_conformance.selftest.matrix import Grade, grade
from signet_conformance.selftest.mutants import grouped, mutants, variant, variants
from signet_conformance.selftest.trials import PerformedTrial, of_variants, scenario_of, trials
from signet_conformance.trace import Header, Trace

ROWS = document("variants.json")
LEAST = 60


def validator() -> jsonschema.Draft202012Validator:
    """The schema of variants, which takes what a change is from that of mutants."""
    shared = document("mutants.schema.json")
    registry: Registry[Any] = Registry().with_resource(shared["$id"], Resource.from_contents(shared))
    return jsonschema.Draft202012Validator(document("variants.schema.json"), registry=registry)


def test_the_variants_satisfy_their_schema() -> None:
    """The data are as variants.schema.json describes them."""
    validator().validate(ROWS)


OFF: list[Mapping[str, Any]] = [
    {"because": " "},
    {"rows": []},
    {"rows": ["HTTP-001"]},
    {"changes": []},
    {"changes": [{"do": "spell", "on": "*"}]},
    {"changes": [{"do": "spell", "on": "*", "wire": "carrier pigeon"}]},
    {"allowed": {"SIG-END-005": ""}},
    {"breaks": "SIG-END-005"},
]


@pytest.mark.parametrize("members", OFF)
def test_a_variant_of_another_shape_is_refused(members: Mapping[str, Any]) -> None:
    """No variant goes without a reason, a row and a change that is known."""
    assert not validator().is_valid({**ROWS, "variants": [{**ROWS["variants"][0], **members}]})


def test_there_are_many() -> None:
    """There are at least sixty, and no name stands for two of them or for a mutant."""
    names = [row["id"] for row in ROWS["variants"]]
    assert len(names) >= LEAST
    assert len({*names, *mutants().mutants}) == len(names) + len(mutants().mutants)


def test_every_variant_names_what_exists() -> None:
    """Its rows are requirements, its scenario is known, and no scenario stands unused."""
    known = variants().variants.values()
    assert {name for oddity in known for name in (*oddity.rows, *oddity.allowed)} <= set(catalogue())
    assert {row["name"] for row in ROWS["scenarios"]} <= {scenario_of(oddity).name for oddity in known}


def test_each_is_performed_once() -> None:
    """Groups take all variants, and their trials have names of their own."""
    odd = list(variants().variants.values())
    asked = [trial for trial in trials([], odd) if trial.variants]
    assert sorted(oddity.id for trial in asked for oddity in trial.variants) == sorted(oddity.id for oddity in odd)
    assert len({trial.name for trial in asked}) == len(asked) < len(odd)


def test_a_group_changes_one_connector_in_one_scenario() -> None:
    """Only the same group, scenario, contract and side go together."""
    first = replace(variant("shouts-its-type"), group="x")
    others = [replace(first, id="b"), replace(first, id="c", scenario="plain"), replace(first, id="d", group=None)]
    assert [[oddity.id for oddity in group] for group in grouped([first, *others])] == [
        [first.id, "b"],
        ["c"],
        ["d"],
    ]


def graded(verdicts: Mapping[str, str], applied: tuple[str, ...], **members: Any) -> Grade:
    """The grade of a variant that HTTP-002 must have judged, with these verdicts."""
    oddity = replace(variant("shouts-its-type"), rows=("SIG-HTTP-002",), **members)
    judgements = {
        name: Judgement(name, Verdict(verdict), Reason.BREACH, "so", (Finding(Verdict(verdict), (1,), "so"),))
        for name, verdict in verdicts.items()
    }
    judged = JudgedTrace(Trace(Header(), (), ()), "0.145.7", judgements, {})
    return grade(PerformedTrial(of_variants((oddity,)), judged, None, applied), {})


CLEAN = {"SIG-HTTP-002": "PASS"}


def test_a_variant_that_was_judged_and_not_blamed_is_clean() -> None:
    """PASS and INCONCLUSIVE of its row do, and so does NOT-APPLICABLE of others."""
    for verdict in ("PASS", "INCONCLUSIVE"):
        assert not graded({"SIG-HTTP-002": verdict, "SIG-END-008": "NOT-APPLICABLE"}, ("shouts-its-type",)).complaints


@pytest.mark.parametrize("verdict", ["FAIL", "WARN", "ERROR"])
def test_a_variant_that_is_blamed_is_complained_of(verdict: str) -> None:
    """Any breach counts, of a SHOULD too."""
    (complaint,) = graded({**CLEAN, "SIG-END-005": verdict}, ("shouts-its-type",)).complaints
    assert complaint == f"conforms, and SIG-END-005 says {verdict}: so"


def test_a_variant_that_tested_nothing_is_complained_of() -> None:
    """Its change must have met a request, and its row a subject."""
    (idle,) = graded(CLEAN, ()).complaints
    (unjudged,) = graded({"SIG-HTTP-002": "NOT-APPLICABLE"}, ("shouts-its-type",)).complaints
    assert idle == "shouts-its-type changed nothing"
    assert unjudged == "shouts-its-type was not judged by SIG-HTTP-002, which it names"


def test_what_its_entry_allows_may_warn_and_has_to() -> None:
    """A WARN under `allowed` is not complained of; a FAIL is, and so is an allowance that nothing uses."""
    allowed = {"SIG-END-005": "the law asks for it"}
    assert not graded({**CLEAN, "SIG-END-005": "WARN"}, ("shouts-its-type",), allowed=allowed).complaints
    assert graded({**CLEAN, "SIG-END-005": "FAIL"}, ("shouts-its-type",), allowed=allowed).complaints
    (unused,) = graded(CLEAN, ("shouts-its-type",), allowed=allowed).complaints
    assert unused.endswith("does not break SIG-END-005, which it names under allowed")


def test_an_unknown_variant_is_refused() -> None:
    """The complaint names the id."""
    with pytest.raises(UsageError, match=r"no variant.*nobody"):
        variant("nobody")


def test_the_daemons_side_counts_too() -> None:
    """A daemon that a variant makes odd is blamed like a connector."""
    oddity = variant("a-daemon-that-says-more")
    finding = Finding(Verdict.FAIL, (1,), "so", side=Side.DAEMON)
    breach = {"SIG-DAEMON-001": Judgement("SIG-DAEMON-001", Verdict.FAIL, Reason.BREACH, "so", (finding,))}
    judged = JudgedTrace(Trace(Header(), (), ()), "0.145.7", {}, breach)
    complaints = grade(PerformedTrial(of_variants((oddity,)), judged, None, (oddity.id,)), {}).complaints
    assert complaints[0] == "conforms, and SIG-DAEMON-001 says FAIL: so"
