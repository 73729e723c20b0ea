"""Each requirement over short traces: the cases are data (cases/<area>.json), one fact a case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.contract import MUST, requirements
from signet_conformance.engine import judge
from signet_conformance.finding import Judgement, Verdict
from signet_conformance.rules import run_rules
from tests.support.case_traces import build

CASES = Path(__file__).with_name("cases")
BREACHES = {"FAIL", "WARN"}


def _load() -> dict[str, dict[str, list[dict[str, Any]]]]:
    return {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(CASES.glob("*.json"))}


AREAS = _load()
CASES_OF = {requirement: cases for area in AREAS.values() for requirement, cases in area.items()}


def differences(case: dict[str, Any], judgement: Judgement) -> Iterator[str]:
    """How a judgement differs from what its case says, in words; nothing where it agrees."""
    if judgement.verdict != case["verdict"]:
        yield f"{judgement.verdict}, not {case['verdict']}: {judgement.message}"
    if judgement.reason != case.get("reason", judgement.reason):
        yield f"the reason is {judgement.reason}, not {case['reason']}"
    named = {number for finding in judgement.findings for number in finding.exchanges}
    if not set(case.get("names", ())) <= named:
        yield f"names {sorted(named)}, not {case['names']}"
    first = {finding.exchanges[0] for finding in judgement.findings if finding.exchanges}
    if case.get("names") and case["names"][0] not in first:
        yield f"names {sorted(first)} first, not {case['names'][0]}"
    if spared := set(case.get("spares", ())) & named:
        yield f"names {sorted(spared)}, which it should spare"
    pointers = {finding.pointer for finding in judgement.findings}
    if "at" in case and case["at"] not in pointers:
        yield f"points at {pointers}, not {case['at']}"
    for name in ("expected", "received", "fold"):
        said = [getattr(finding, name) for finding in judgement.findings]
        if name in case and case[name] not in said:
            yield f"{name} is {said}, not {case[name]!r}"
    if judgement.subjects != case.get("subjects", judgement.subjects):
        yield f"{judgement.subjects} subjects, not {case['subjects']}"
    if case.get("says", "") not in judgement.message:
        yield f"says {judgement.message!r}, not {case['says']!r}"


@pytest.mark.parametrize("requirement", CASES_OF)
def test_cases_have_their_verdicts(requirement: str, tmp_path: Path) -> None:
    """The requirement has exactly the verdict of each case, and its findings name the exchanges that breach it first.

    Where the case says so, a finding also points `at` a place in the first of them and shows what was `expected`,
    what was `received` and by what repeats `fold`, the message `says` a text, and the `subjects` are that many.
    """
    differing = {}
    for case in CASES_OF[requirement]:
        trace = build(tmp_path / f"{case['id']}.jsonl", case["exchanges"], case.get("header"), shared=False)
        judgement = judge(trace, frozenset({requirement})).judgements[requirement]
        if said := list(differences(case, judgement)):
            differing[case["id"]] = (case["fact"], said)
    assert differing == {}


ALONE = {name: [case for case in cases if case.get("only_this")] for name, cases in CASES_OF.items()}


@pytest.mark.parametrize("requirement", [name for name, cases in ALONE.items() if cases])
def test_a_breach_breaches_nothing_else(requirement: str, tmp_path: Path) -> None:
    """Where a case is about one requirement only, no other MUST fails, and judging all leaves its verdict."""
    differing = {}
    for case in ALONE[requirement]:
        judgements = judge(build(tmp_path / f"{case['id']}.jsonl", case["exchanges"], case.get("header"))).judgements
        others = [j for name, j in judgements.items() if name != requirement and requirements()[name].level == MUST]
        said = [f"{j.requirement}: {j.message}" for j in others if j.verdict is Verdict.FAIL]
        if judgements[requirement].verdict != case["verdict"]:
            said.append(f"{judgements[requirement].verdict}, not {case['verdict']}")
        if said:
            differing[case["id"]] = (case["fact"], said)
    assert differing == {}


@pytest.mark.parametrize("requirement", requirements())
def test_every_requirement_has_a_conforming_and_a_violating_case(requirement: str) -> None:
    """No requirement stands without a trace that satisfies it and one that breaches it, named by its numbers.

    Of what a whole run decides, the PASS is among the tests of the engine.
    """
    cases = CASES_OF.get(requirement, [])
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
