"""Reading suites: a valid suite, and errors that name their line."""

from __future__ import annotations

import json

import pytest

from signet_reference_harness.bench.command import own_suite
from signet_reference_harness.bench.suite import SuiteError, parse_suite

HEAD = {"kind": "suite", "format": "signet-bench-suite/1", "name": "small", "licence": "CC0-1.0"}
SCENARIO = {"kind": "scenario", "id": "first"}
FACT = {"kind": "fact", "id": "f", "text": "The hut is red."}


def lines(*values: object) -> bytes:
    """The bytes of a suite; a text is taken unchanged."""
    return b"".join((v if isinstance(v, str) else json.dumps(v)).encode() + b"\n" for v in values)


def test_the_own_suite_can_be_read() -> None:
    """The suite in the wheel is valid, and has questions and assertions."""
    counts = own_suite().counts()
    assert counts["questions"] > 20
    assert counts["assertions"] > 10


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([], "s:1: the file holds no line"),
        ([HEAD], "s:1: the suite holds no scenario"),
        ([SCENARIO], "s:1: the suite does not begin with its head"),
        ([HEAD, HEAD], "s:2: a second line of kind suite"),
        ([HEAD, FACT], "s:2: fact before any scenario"),
        ([HEAD, SCENARIO, '{"kind": "fact"'], "s:3:1:16: is not JSON"),
        ([HEAD, SCENARIO, "[]"], "s:3: the whole: is a list"),
        ([HEAD, SCENARIO, {"kind": "fcat"}], "s:3: the whole: kind is 'fcat'"),
        ([HEAD, SCENARIO, {**FACT, "text": " "}], 's:3: /text: is " "'),
        ([HEAD, SCENARIO, {**FACT, "colour": 1}], "s:3: /colour: unknown member 'colour'"),
        ([HEAD, SCENARIO, FACT, FACT], "s:4: id 'f' is in line 3 already"),
        ([HEAD, SCENARIO, FACT, SCENARIO], "s:4: scenario 'first' is in line 2 already"),
        (
            [HEAD, SCENARIO, {"kind": "query", "id": "q", "text": "Which?", "evidence": ["g"]}],
            "s:3: evidence 'g' is not the id of a fact or prompt above it",
        ),
        ([HEAD, SCENARIO, {"kind": "forget", "fact": "f"}], "s:3: fact 'f' is not the id of a fact or prompt above it"),
        ([HEAD, SCENARIO, {"kind": "end", "session": "s1"}], "s:3: session 's1' has not been started"),
    ],
)
def test_a_broken_suite_is_told_by_its_line(values: list[object], told: str) -> None:
    """Each error has file, line and remedy."""
    with pytest.raises(SuiteError) as raised:
        parse_suite(lines(*values), "s")
    assert told in raised.value.message
    assert raised.value.remedy


def test_every_fault_is_told_at_once() -> None:
    """So an author corrects a suite once, not once per error."""
    broken = lines(HEAD, SCENARIO, {"kind": "fcat"}, FACT, FACT, "{")
    with pytest.raises(SuiteError) as raised:
        parse_suite(broken, "s")
    assert [problem.message.split(": ")[0] for problem in raised.value.problems] == ["s:3", "s:5", "s:6:1:2"]
