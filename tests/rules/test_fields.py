"""Facts about checks of fields: what is said of a breach, and of how many."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from signet_conformance.contract import requirements
from signet_conformance.engine import judge
from signet_conformance.finding import Verdict
from signet_conformance.rules import fields
from signet_conformance.rules.fields import explain
from tests.support.case_traces import KEYED, build

DAEMONS = ("0.58.0", "0.145.7", "0.205.0")
EITHER = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
DEEP = {"anyOf": [{"oneOf": [{"properties": {"a": {"type": "string"}}}, {"required": ["c"]}]}, {"required": ["b"]}]}

TWICE_EITHER = {
    "anyOf": [
        {"oneOf": [{"required": ["z"]}, {"properties": {"a": {"type": "string"}}}]},
        {"oneOf": [{"required": ["y"]}, {"properties": {"a": {"type": "null"}}}]},
    ]
}
OBJECT_OR_TEXT = {"anyOf": [{"type": "object", "required": ["q"]}, {"type": "string", "minLength": 5}]}
TEXT, ONE = {"type": "string"}, {"enum": [1]}


@pytest.mark.parametrize(
    ("schema", "document", "path", "why", "received"),
    [
        ({"required": ["a"]}, {}, ("a",), "absent", None),
        ({"required": ["a", "b"]}, {"a": 1}, ("b",), "absent", None),
        ({"properties": {"a": {"required": ["b"]}}}, {"a": {}}, ("a", "b"), "absent", None),
        ({"properties": {"a": {"type": "string"}}}, {"a": 7}, ("a",), '7 is not of type "string"', 7),
        ({"properties": {"a": {"items": {"type": "string"}}}}, {"a": [7]}, ("a", 0), '7 is not of type "string"', 7),
        (EITHER, {}, ("a",), "absent", None),
        ({"properties": {"x": EITHER}}, {"x": {}}, ("x", "a"), "absent", None),
        (DEEP, {"a": 7}, ("a",), '7 is not of type "string"', 7),
        ({"oneOf": [{"type": "object"}, {"required": ["a"]}]}, {"a": 1}, (), None, {"a": 1}),
        ({"anyOf": [{"required": ["a"]}]}, {}, ("a",), "absent", None),
        (TWICE_EITHER, {"a": 7}, ("z",), "absent", None),
        (OBJECT_OR_TEXT, "ab", (), '"ab" is shorter than 5 characters', "ab"),
        ({"properties": {"A": ONE, "a": {"properties": {"b": TEXT}}}}, {"A": 7, "a": {"b": 7}}, ("A",), None, 7),
        ({"properties": {"A": TEXT, "a": {"properties": {"b": ONE}}}}, {"A": 7, "a": {"b": 7}}, ("A",), None, 7),
        ({"properties": {"a": {"properties": {"b": False}}, "z": TEXT}}, {"a": {"b": 1}, "z": 7}, ("z",), None, 7),
        ({"properties": {"a": {"properties": {"b": False}}, "A": TEXT}}, {"a": {"b": 1}, "A": 7}, ("a", "b"), None, 1),
        (
            {"properties": {"a": {"properties": {"b": {"properties": {"c": False}}}}, "A": TEXT}},
            {"a": {"b": {"c": 1}}, "A": 7},
            ("A",),
            None,
            7,
        ),
        ({"properties": {"a": {"type": "integer"}}}, {"a": "\ud83d"}, ("a",), None, "\ud83d"),
        ({}, {}, (), "it does not match the schema", None),
    ],
)
def test_why_a_document_breaks_a_schema(
    schema: Mapping[str, Any], document: Any, path: tuple[str | int, ...], why: str | None, received: Any
) -> None:
    """Where, by what, and what stands there: the highest place, and the last of several as high.

    Of alternatives the nearest miss, and where they miss alike the first requirement of the first.
    """
    told = explain(jsonschema_rs.validator_for(schema), schema, document)
    assert (told[0], told[2]) == (path, received)
    assert why is None or told[1] == why


CHECKS = [check.at(version) for each in requirements().values() if (check := each.check) for version in DAEMONS]
SCHEMAS = [schema for check in CHECKS for schema in (check.must, check.should) if schema is not None]
VALUES = st.sampled_from([None, "", " ", "x" * 40, 7, -1, 1.5, True, [], {}, [7], {"a": None}, "default", "plugin"])
MEMBERS = sorted({str(name) for schema in SCHEMAS for name in re.findall(r'"([A-Za-z]\w*)": [{f]', json.dumps(schema))})


@given(st.sampled_from(SCHEMAS), st.dictionaries(st.sampled_from(MEMBERS), VALUES, max_size=8))
def test_the_place_of_a_breach_is_the_one_that_another_library_finds(schema: Any, body: dict[str, Any]) -> None:
    """What jsonschema takes for the best match, and below alternatives that miss alike the first member missing."""
    if jsonschema_rs.is_valid(schema, body):
        return
    error = best_match(Draft202012Validator(schema).iter_errors(body))
    assert error is not None
    if error.validator is None:
        return  # jsonschema does not say which member it is that a schema forbids by `false`
    path = [*error.absolute_path]
    while error.validator in ("anyOf", "oneOf") and error.context:
        error = error.context[0]
        path = [*error.absolute_path]
    if error.validator == "required":
        path.append(next(name for name in error.validator_value if name not in error.instance))
    assert explain(jsonschema_rs.validator_for(schema), schema, body)[0] == tuple(path)


def _start(**more: Any) -> Any:
    return {"request": {"method": "POST", "path": "/api/hooks/session-start", "body": {**KEYED, **more}}}


@pytest.mark.parametrize(
    ("harness", "message", "fold"),
    [
        (None, "harness is not as required: null is not of type", "session-start/harness"),
        ("", "harness is not as", ""),
        ({}, "harness is not as required: {} is not of type", ""),
    ],
)
def test_what_a_breach_tells(harness: Any, message: str, fold: str, tmp_path: Path) -> None:
    """The member, and what is wrong with it; breaches of one member of one operation are folded."""
    judgement = judge(build(tmp_path / "trace.jsonl", [_start(), _start(harness=harness)])).judgements["SIG-START-001"]
    (finding,) = judgement.findings
    assert finding.message.startswith(message)
    assert (finding.exchanges, finding.pointer) == ((2,), "/request/body/json/harness")
    assert finding.fold.startswith(fold)


def test_an_absent_member_is_named(tmp_path: Path) -> None:
    """It has no value that could be shown."""
    body = {name: value for name, value in KEYED.items() if name != "harness"}
    item = {"request": {"method": "POST", "path": "/api/hooks/session-start", "body": body}}
    (finding,) = judge(build(tmp_path / "trace.jsonl", [item])).judgements["SIG-START-001"].findings
    assert (finding.message, finding.received) == ("harness is absent", None)


def test_few_breaches_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is counted and folded: explaining is slow."""
    monkeypatch.setattr(fields, "MOST_EXPLAINED", 2)
    items = [_start(harness=7), _start(), *[_start(harness=7) for _ in range(3)]]
    judgement = judge(build(tmp_path / "trace.jsonl", items)).judgements["SIG-START-001"]
    assert (judgement.verdict, judgement.subjects) == (Verdict.FAIL, 5)
    assert [finding.exchanges for finding in judgement.findings] == [(1,), (3,), (4,), (5,)]
    assert [finding.message == "not as required" for finding in judgement.findings] == [False, False, True, True]


@pytest.mark.parametrize("broken", [{"harness": "\ud83d"}, {"harness": "x", "list": ["\ud83d", 7, ["\ud83d"]]}])
def test_half_an_emoji_is_text(broken: Any, tmp_path: Path) -> None:
    """A text that was cut in the middle of a character breaks no requirement on texts."""
    judgement = judge(build(tmp_path / "trace.jsonl", [_start(**broken)])).judgements["SIG-START-001"]
    assert judgement.verdict is Verdict.PASS


def test_a_body_that_was_cut_hides_no_other(tmp_path: Path) -> None:
    """It is undecided itself, and the next request is judged."""
    cut = {"cut": True, "size": 900000, "sha256": "9f" * 32, "text": "{"}
    request = {"method": "POST", "path": "/api/hooks/session-end", "raw_body": cut}
    ended = {"request": {"method": "POST", "path": "/api/hooks/session-end", "body": {**KEYED, "harness": 7}}}
    judgement = judge(build(tmp_path / "trace.jsonl", [{"request": request}, ended])).judgements["SIG-END-001"]
    assert (judgement.verdict, judgement.findings[0].exchanges) == (Verdict.FAIL, (2,))
