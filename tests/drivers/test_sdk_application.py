"""The application that uses the SDK: what an application has to do itself, it does, so that the SDK is not blamed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .conftest import FIXTURES, PROMPT, START, Made, performed

TOOL = {"step": "tool", "session": "s1"}


def answers(
    made: Made, runtime: str, home: Path, *steps: Mapping[str, Any], mode: str = "conforming"
) -> Sequence[Mapping[str, Any]]:
    """What the application answers to some steps after a start that was refused."""
    target = made("sdk", mode=mode, module=str(FIXTURES / "sdk_refused.mjs"), runtime=runtime)
    return performed(target, home, [START, *steps])[1:]


def test_a_session_of_another_path_is_left_to_it(runtime: str, made: Made, tmp_path: Path) -> None:
    """After a start that was answered 409 no hook is called, and the turn takes place."""
    (turn,) = answers(made, runtime, tmp_path / "home", PROMPT)
    assert (turn["turn"], turn["injected"], turn["calls"]) == (True, "", [])


def test_a_save_that_failed_is_repeated_under_its_key(runtime: str, made: Made, tmp_path: Path) -> None:
    """A save has an idempotency key: a repeat of one that failed the same, another save another."""
    save = {**TOOL, "tool": "memory_store", "arguments": {"content": "Port 3850."}}
    other = {**TOOL, "tool": "memory_store", "arguments": {"content": "Port 3851."}}
    _, again, third = answers(made, runtime, tmp_path / "home", save, save, other)
    assert again["content"]["idempotencyKey"] == again["content"]["refused"]
    assert third["content"]["idempotencyKey"] not in (None, again["content"]["refused"])


def test_many_rows_are_forgotten_with_the_token_of_a_preview(runtime: str, made: Made, tmp_path: Path) -> None:
    """More than 25 rows are forgotten with the token that a preview of the same rows gave, 25 without."""
    few, many = (
        {**TOOL, "tool": "memory_forget", "arguments": {"mode": "execute", "ids": [str(n) for n in range(count)]}}
        for count in (25, 26)
    )
    alone, confirmed = answers(made, runtime, tmp_path / "home", few, many)
    assert "confirm_token" not in alone["content"]
    assert confirmed["content"]["confirm_token"] == "for-26"
    assert confirmed["content"]["mode"] == "execute"


def test_a_daemon_that_does_not_answer_a_probe_is_not_spoken_to(runtime: str, made: Made, tmp_path: Path) -> None:
    """The next prompt asks again, and the session is opened when the daemon is there."""
    turns = answers(made, runtime, tmp_path / "home", PROMPT, PROMPT, PROMPT, mode="away")
    asked = [[call["event"] for call in turn["calls"]] for turn in turns]
    assert asked == [["health"], ["health", "sessionStart", "userPromptSubmit"], ["userPromptSubmit"]]
    assert all(turn["turn"] for turn in turns)


def test_what_looks_like_a_turn_is_part_of_one(runtime: str, made: Made, tmp_path: Path) -> None:
    """What was said is handed over as a line of JSON for each turn, whatever stands in it."""
    text = "User: who is paged?\nAssistant: the rota."
    compacts = {"step": "pre_compaction", "session": "s1"}
    turn = {**PROMPT, "text": text}
    *_, compaction = answers(made, runtime, tmp_path / "home", turn, PROMPT, compacts, mode="away")
    said = [json.loads(line) for line in compaction["text"].splitlines()]
    assert [turn["role"] for turn in said] == ["user", "assistant"] * 2
    assert said[0]["content"] == text
