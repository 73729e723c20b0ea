"""Facts about how much a finding shows: of many exchanges the first twenty, of a long text its beginning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import Finding
from tests.support.case_traces import KEYED, build

Item = Mapping[str, Any]
LONG = "".join(f"{number:03} " for number in range(100))
"""Four hundred characters, no two parts of which are alike."""


def hook(operation: str, status: int = 200, answer: Any = None, **more: Any) -> Item:
    """A hook of the usual session."""
    request = {"method": "POST", "path": f"/api/hooks/{operation}", "body": {**KEYED, **more}}
    return {"request": request, "response": {"status": status, "body": answer or {}}}


def step(kind: str, **more: Any) -> Item:
    """A step that was given to the connector."""
    return {"mark": "step", "data": {"step": kind, "session": "s1", **more}}


def finding(folder: Path, requirement: str, items: Sequence[Item], **header: Any) -> Finding:
    """The first finding of a requirement over these items."""
    judged = judge(build(folder / "trace.jsonl", items, header, shared=False), frozenset({requirement}))
    return {**judged.daemon, **judged.judgements}[requirement].findings[0]


START, PROMPT = hook("session-start"), hook("user-prompt-submit", userMessage="Which one?")
CHECKPOINT = hook("session-checkpoint-extract", transcript="User: Which one?")
BYPASS = {"mark": "bypass", "data": {"on": True}}


@pytest.mark.parametrize(
    ("requirement", "items", "exchanges"),
    [
        ("SIG-END-007", [START, hook("session-end"), *[CHECKPOINT] * 30], (*range(3, 23), 2)),
        ("SIG-HTTP-012", [hook("session-start", 409), *[PROMPT] * 30], (*range(2, 22), 1)),
        ("SIG-FAIL-004", [BYPASS, *[PROMPT] * 30], tuple(range(2, 22))),
        ("SIG-PROMPT-003", [hook("user-prompt-submit", userMessage=f"{n}?") for n in range(30)], tuple(range(1, 21))),
        ("SIG-PROMPT-010", [PROMPT] * 30, tuple(range(1, 21))),
        ("SIG-SESS-001", [hook("session-start", sessionKey="default")] * 30, tuple(range(1, 21))),
        ("SIG-END-005", [START, hook("session-end"), *[PROMPT] * 30], (*range(3, 13), 2, 1)),
    ],
)
def test_of_many_exchanges_the_first_are_named(
    requirement: str, items: Sequence[Item], exchanges: tuple[int, ...], tmp_path: Path
) -> None:
    """A reader needs few, and beside them the one that they follow."""
    assert finding(tmp_path, requirement, items).exchanges == exchanges


def test_beginning_of_a_turn_that_was_not_submitted_is_shown(tmp_path: Path) -> None:
    """Two hundred characters of what the user said."""
    turns = [step("prompt", text="Which one?", reply="This."), PROMPT, step("prompt", text=LONG, reply="That.")]
    capable = {"declared": {"capabilities": ["user-prompt-submit"]}}
    shown = finding(tmp_path, "SIG-PROMPT-011", [step("start"), START, *turns], **capable).expected
    assert shown == f"user-prompt-submit with {LONG[:200]!r}"


def test_beginnings_of_turns_in_the_wrong_order_are_shown(tmp_path: Path) -> None:
    """Eighty characters of each."""
    first, second = f"First {LONG}", f"Second {LONG}"
    told = f"User: {second}\nAssistant: Yes.\nUser: {first}\nAssistant: No."
    turns = [step("prompt", text=first), step("prompt", text=second)]
    items = [step("start"), START, *turns, step("end"), hook("session-end", transcript=told)]
    shown = finding(tmp_path, "SIG-END-012", items)
    assert shown.expected == f"{first[:80]!r} before {second[:80]!r}"


def test_beginning_of_a_context_that_came_again_is_shown(tmp_path: Path) -> None:
    """Eighty characters of what the daemon injected a second time."""
    start = hook("session-start", answer={"inject": LONG, "memories": [], "identity": {"name": "Rig"}})
    items = [step("start"), start, start]
    assert finding(tmp_path, "SIG-DAEMON-004", items, daemon_version="0.145.7").received == LONG[:80]


def test_beginning_of_what_is_no_memory_id_is_shown(tmp_path: Path) -> None:
    """Sixty characters of it."""
    items = [{"request": {"method": "GET", "path": f"/api/memory/{LONG.replace(' ', '%20')}"}}]
    assert finding(tmp_path, "SIG-MEM-001", items).message == f"{LONG[:60]!r} is not a memory id"


@pytest.mark.parametrize(
    ("ids", "named"),
    [(["b", "a"], "2 session ids, 'b' and 'a'"), (["c", "b", "a"], "3 session ids, 'c' and 'b' …")],
)
def test_two_of_what_shares_a_key_are_named(ids: Sequence[str], named: str, tmp_path: Path) -> None:
    """The first two, sixty characters of each."""
    items = [hook("session-start", sessionId=name) for name in ids]
    assert finding(tmp_path, "SIG-SESS-001", items).message.startswith(f"one key for {named}: sessions")
    items = [hook("session-start", sessionId=f"{name}{LONG}") for name in ids]
    assert f"ids, {ids[0] + LONG[:59]!r} and {ids[1] + LONG[:59]!r}" in finding(tmp_path, "SIG-SESS-001", items).message
