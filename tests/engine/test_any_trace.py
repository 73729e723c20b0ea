"""What holds over any trace, however hostile: it is judged, and what means nothing changes nothing."""

from __future__ import annotations

import base64
import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from signet_conformance.contract import requirements
from signet_conformance.engine import JudgedTrace, judge
from signet_conformance.finding import Verdict

from .generated import KEY_WORDS, TRACES, Line, as_trace

fewer_examples = settings(max_examples=40)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file that every example of a property writes anew."""
    return tmp_path_factory.mktemp("any") / "trace.jsonl"


def _outcome(judged: JudgedTrace) -> dict[str, tuple[Verdict, tuple[tuple[int, ...], ...]]]:
    return {name: (j.verdict, tuple(f.exchanges for f in j.findings)) for name, j in judged.judgements.items()}


def _judged(file: Path, lines: list[Line]) -> dict[str, Any]:
    return _outcome(judge(as_trace(file, lines)))


@settings(fewer_examples, max_examples=120)
@given(lines=TRACES)
def test_any_trace_is_judged(file: Path, lines: list[Line]) -> None:
    """Every requirement has a verdict, none because the kit broke, and findings point into the trace."""
    judged = judge(as_trace(file, lines))
    assert list(judged.judgements)[: len(requirements())] == list(requirements())
    numbers = {line["seq"] for line in lines[1:] if line["kind"] == "exchange"}
    for name, judgement in {**judged.judgements, **judged.daemon}.items():
        assert judgement.verdict is not Verdict.ERROR, f"{name}: {judgement.message}"
        assert all(set(finding.exchanges) <= numbers for finding in judgement.findings), name


@fewer_examples
@given(lines=TRACES)
def test_the_names_of_sessions_do_not_matter(file: Path, lines: list[Line]) -> None:
    """Session keys renamed alike everywhere leave every verdict and every finding as they are."""
    text = json.dumps(lines)
    for word in KEY_WORDS:
        text = text.replace(word, f"renamed-{word[::-1]}")
    assert _judged(file, json.loads(text)) == _judged(file, lines)


@fewer_examples
@given(lines=TRACES, seconds=st.integers(1, 100_000))
def test_the_hour_does_not_matter(file: Path, lines: list[Line], seconds: int) -> None:
    """The same recording begun later is judged alike."""
    moved = copy.deepcopy(lines)
    for line in moved[1:]:
        line.update({name: line[name] + seconds for name in ("t", "t0", "t1") if name in line})
    assert _judged(file, moved) == _judged(file, lines)


@fewer_examples
@given(lines=TRACES)
def test_unknown_fields_do_not_matter(file: Path, lines: list[Line]) -> None:
    """Members that no requirement speaks of, in lines, bodies, answers, headers and marks, change nothing."""
    widened = copy.deepcopy(lines)
    for line in widened[1:]:
        line["x-unknown"] = {"deep": [1]}
        if line["kind"] == "mark":
            line["data"]["x-unknown"] = 1
            continue
        line["request"]["headers"].append(["x-unknown", "1"])
        for message in (line["request"], line["response"]):
            if message and message["body"]:
                _widen(message["body"])
    assert _judged(file, widened) == _judged(file, lines)


def _widen(body: dict[str, Any]) -> None:
    """Add a member to a body that is a JSON object, also to one that is carried as bytes."""
    told = body.get("json")
    if "base64" in body:
        with suppress(ValueError):
            told = json.loads(base64.b64decode(body["base64"]))
    if isinstance(told, dict):
        told["x-unknown"] = 1
        if "base64" in body:
            body["base64"] = base64.b64encode(json.dumps(told).encode()).decode()


@fewer_examples
@given(lines=TRACES)
def test_judging_changes_nothing(file: Path, lines: list[Line]) -> None:
    """A trace may be judged again, whole or requirement by requirement, with the same outcome."""
    trace = as_trace(file, lines)
    whole = _outcome(judge(trace))
    assert _outcome(judge(trace)) == whole
    for name in ("SIG-END-010", "SIG-END-012", "SIG-PROMPT-003", "SIG-COV-001"):
        assert _outcome(judge(trace, frozenset({name}))) == {name: whole[name]}
