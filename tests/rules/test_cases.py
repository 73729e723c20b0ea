"""Each requirement over short traces: the cases are data (cases/<area>.json), one fact a case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.contract import MUST, requirements
from signet_conformance.engine import judge
from signet_conformance.finding import Verdict
from signet_conformance.rules import run_rules
from tests.support.case_traces import build

CASES = Path(__file__).with_name("cases")
BREACHES = {"FAIL", "WARN"}


def _load() -> dict[str, dict[str, list[dict[str, Any]]]]:
    return {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(CASES.glob("*.json"))}


AREAS = _load()
ALL = [
    pytest.param(requirement, case, id=f"{requirement}-{case['id']}")
    for area in AREAS.values()
    for requirement, cases in area.items()
    for case in cases
]


@pytest.mark.parametrize(("requirement", "case"), ALL)
def test_a_case_has_its_verdict(requirement: str, case: dict[str, Any], tmp_path: Path) -> None:
    """The requirement has exactly the verdict of its case, and its findings name the exchanges that breach it first.

    Where the case says so, a finding also points `at` a place in the first of them and shows what was `expected`,
    what was `received` and by what repeats `fold`, and the message `says` a text.
    """
    trace = build(tmp_path / "trace.jsonl", case["exchanges"], case.get("header"), shared=False)
    judgement = judge(trace, frozenset({requirement})).judgements[requirement]
    assert (judgement.verdict, judgement.message) == (Verdict(case["verdict"]), judgement.message), case["fact"]
    if "reason" in case:
        assert judgement.reason == case["reason"]
    named = {number for finding in judgement.findings for number in finding.exchanges}
    assert set(case.get("names", ())) <= named
    first = {finding.exchanges[0] for finding in judgement.findings if finding.exchanges}
    assert not case.get("names") or case["names"][0] in first
    assert not set(case.get("spares", ())) & named
    if "at" in case:
        assert case["at"] in {finding.pointer for finding in judgement.findings}
    for name in ("expected", "received", "fold"):
        assert name not in case or case[name] in [getattr(finding, name) for finding in judgement.findings]
    assert case.get("says", "") in judgement.message


@pytest.mark.parametrize(("requirement", "case"), [item for item in ALL if item.values[1].get("only_this")])
def test_a_breach_breaches_nothing_else(requirement: str, case: dict[str, Any], tmp_path: Path) -> None:
    """Where a case is about one requirement only, no other MUST fails, and judging all leaves its verdict."""
    trace = build(tmp_path / "trace.jsonl", case["exchanges"], case.get("header"))
    judgements = judge(trace).judgements
    assert judgements[requirement].verdict == case["verdict"]
    others = [j for name, j in judgements.items() if name != requirement and requirements()[name].level == MUST]
    assert [f"{j.requirement}: {j.message}" for j in others if j.verdict is Verdict.FAIL] == []


@pytest.mark.parametrize("requirement", requirements())
def test_every_requirement_has_a_conforming_and_a_violating_case(requirement: str) -> None:
    """No requirement stands without a trace that satisfies it and one that breaches it, named by its numbers.

    Of what a whole run decides, the PASS is among the tests of the engine.
    """
    cases = [case for area in AREAS.values() for case in area.get(requirement, ())]
    verdicts = {case["verdict"] for case in cases}
    lacking = f"{requirement} lacks a case: add it to tests/rules/cases/{requirements()[requirement].area}.json"
    assert verdicts & BREACHES, lacking
    assert "PASS" in verdicts or requirement in run_rules(), lacking
    assert all("names" in case for case in cases if case["verdict"] in BREACHES)


def test_cases_stand_in_the_file_of_their_area() -> None:
    """A case is found by the area of its requirement, and its name is its own."""
    for area, by_requirement in AREAS.items():
        assert {requirements()[requirement].area for requirement in by_requirement} == {area}
        for cases in by_requirement.values():
            names = [case["id"] for case in cases]
            assert len(names) == len(set(names)), names
