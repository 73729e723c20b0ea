"""Facts about prompts that are submitted late, twice or without a start: one of them hides no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import Finding
from tests.support.case_traces import KEYED, build

Item = Mapping[str, Any]


def hook(operation: str, **more: Any) -> Item:
    """A hook of the session."""
    return {"request": {"method": "POST", "path": f"/api/hooks/{operation}", "body": {**KEYED, **more}}}


def prompt(text: str, reply: Any = None) -> Item:
    """A submission, with the reply of the model where it came too late."""
    more = {} if reply is None else {"lastAssistantMessage": reply}
    return hook("user-prompt-submit", userMessage=text, **more)


def told(*turns: tuple[str, str]) -> Item:
    """An end that tells what was said and answered."""
    return hook("session-end", transcript="\n".join(f"User: {text}\nAssistant: {reply}" for text, reply in turns))


def step(text: str) -> Item:
    """A user turn that was given to the connector."""
    return {"mark": "step", "data": {"step": "prompt", "session": "s1", "text": text, "reply": "so"}}


MODEL = {"mark": "model", "data": {"session": "s1"}}
START = hook("session-start")


def findings(folder: Path, requirement: str, items: Sequence[Item]) -> Sequence[Finding]:
    """What a requirement says of these items, which are numbered from 1."""
    trace = build(folder / "trace.jsonl", items, shared=False)
    return judge(trace, frozenset({requirement})).judgements[requirement].findings


LATE: Mapping[str, tuple[Sequence[Item], list[tuple[int, ...]]]] = {
    "after one in its turn": (
        [START, step("a"), prompt("a", "one"), MODEL, step("b"), MODEL, prompt("b", "two"),
         told(("a", "one"), ("b", "two"))],
        [(7, 8), (7,)],
    ),
    "with the text of the next turn": (
        [step("a"), MODEL, prompt("a", "one"), step("a"), prompt("a"), MODEL, told(("a", "one"))], [(3, 7), (3,)],
    ),
    "in the turn of another text": ([step("b"), prompt("a", "one"), MODEL, told(("a", "one"))], [(2, 4)]),
    "after one whose reply is no text": (
        [prompt("a", 42), prompt("b", "two"), told(("a", "42"), ("b", "two"))], [(2, 3)],
    ),
    "after one whose reply is blank": (
        [prompt("a", " "), prompt("b", "two"), told(("a", ""), ("b", "two"))], [(2, 3)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LATE)
def test_prompt_that_a_transcript_shows_answered(name: str, tmp_path: Path) -> None:
    """It is late, unless it came in the turn of its text before the model was asked; the transcript is named."""
    items, exchanges = LATE[name]
    late = [finding for finding in findings(tmp_path, "SIG-PROMPT-003", items) if finding.fold == "late"]
    assert [finding.exchanges for finding in late] == exchanges


TOLD = {"mark": "session_key", "data": {"session": "s1", "key": KEYED["sessionKey"]}}
AWAY = {"mark": "fault", "data": {"kind": "refuse", "on": True}}
BACK = {"mark": "fault", "data": {"kind": "refuse", "on": False}}
IN_THE_NEXT_TURN: Mapping[str, tuple[Sequence[Item], list[tuple[int, ...]]]] = {
    "alone": ([prompt("Where is it?")], [(6,)]),
    "beside its own": ([prompt("Where is it?"), prompt("Who has it?")], [(6,)]),
    "in a text with its own": ([prompt("Where is it? Who has it?")], []),
    "in another case": ([prompt("WHERE IS IT?")], []),
}


@pytest.mark.parametrize("name", IN_THE_NEXT_TURN)
def test_prompt_with_the_words_of_the_turn_before(name: str, tmp_path: Path) -> None:
    """It is late, where the turn of its words was told nothing and the connector sends them in the next one."""
    sent, exchanges = IN_THE_NEXT_TURN[name]
    items = [START, TOLD, step("Where is it?"), MODEL, step("Who has it?"), *sent, MODEL]
    found = findings(tmp_path, "SIG-PROMPT-003", items)
    assert [finding.exchanges for finding in found if finding.fold == "late"] == exchanges


@pytest.mark.parametrize(
    "between",
    [[prompt("Where is it?"), MODEL], [AWAY, MODEL, BACK]],
    ids=["told in its turn", "told to nobody"],
)
def test_prompt_that_is_told_again_is_not_late(between: Sequence[Item], tmp_path: Path) -> None:
    """Words that were told in their turn, or met nobody then, are not told late in the next one."""
    items = [START, TOLD, step("Where is it?"), *between, step("Who has it?"), prompt("Where is it?"), MODEL]
    assert not [f for f in findings(tmp_path, "SIG-PROMPT-003", items) if f.fold == "late"]


def test_repeat_hides_no_late_submission(tmp_path: Path) -> None:
    """A prompt that is submitted twice is told once, and the next one of its turn is judged."""
    items = [START, step("a"), prompt("a"), prompt("a"), MODEL, prompt("b")]
    told = [(finding.fold, finding.exchanges) for finding in findings(tmp_path, "SIG-PROMPT-003", items)]
    assert told == [("twice", (4, 3)), ("late", (6,))]


def test_second_submission_of_a_turn_hides_no_later_prompt(tmp_path: Path) -> None:
    """An unknown session is to be started before the next turn, however often this one was submitted."""
    unknown = {**prompt("a"), "response": {"status": 200, "body": {"sessionKnown": False}}}
    items = [step("a"), unknown, prompt("a"), step("b"), prompt("b")]
    assert [finding.exchanges for finding in findings(tmp_path, "SIG-PROMPT-006", items)] == [(2, 5)]
