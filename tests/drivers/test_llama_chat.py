"""The chat program of llama.cpp: a terminal in front of it, a scripted model behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance.errors import TargetError
from signet_conformance.finding import Verdict

from .conftest import FIXTURES, PROMPT, START, Broken, Made, of_the_host, performed

MODULE = str(FIXTURES / "chat_program.mjs")
PROMPT_TEXT = {"SIG-PROMPT-001": Verdict.FAIL, "SIG-PROMPT-002": Verdict.FAIL}
SEARCH = {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "pgbouncer"}}


@pytest.mark.parametrize(
    ("mode", "runtime"), [("conforming", "node"), ("conforming", "bun"), ("misnames", "node")], indirect=["runtime"]
)
def test_a_conforming_chat_program_passes_and_a_broken_one_fails(
    mode: str, runtime: str, made: Made, broken: Broken
) -> None:
    """A program that conforms breaks nothing; one that sends the prompt under a wrong name is found out."""
    target = made("llama-cpp", mode=mode, module=MODULE, runtime=runtime, token=True)
    assert broken(target, ("plain", "several-prompts")) == ({} if mode == "conforming" else PROMPT_TEXT)


def test_model_calls_the_tool_of_a_step(runtime: str, made: Made, tmp_path: Path) -> None:
    """A turn with a tool ends after the tool; what the tool gave back is the step's answer."""
    target = made("llama-cpp", module=MODULE, runtime=runtime)
    steps = [START, {**PROMPT, "more": True}, SEARCH, {"step": "clear", "session": "s1"}, PROMPT]
    _, turn, called, cleared, after = performed(target, tmp_path / "home", steps)
    assert turn["turn"] is after["turn"] is True
    assert called["content"] == {"query": "pgbouncer", "memories": []}
    assert cleared == {"opened": True}


@of_the_host
def test_prompt_of_several_lines_is_skipped(runtime: str, made: Made, tmp_path: Path) -> None:
    """The program takes each line for a prompt: the words of the user would not arrive as they were said."""
    target = made("llama-cpp", module=MODULE, runtime=runtime)
    steps = [START, {**PROMPT, "text": "Which database?\nAnd since when?", "more": True}, SEARCH, PROMPT]
    _, several, called, after = performed(target, tmp_path / "home", steps)
    assert several == {"skipped": "a user of the chat program types one line"}
    assert called == {"skipped": "the model calls tools only in a user's turn"}
    assert after["turn"] is True


@of_the_host
def test_tools_that_the_program_lacks_are_skipped(runtime: str, made: Made, tmp_path: Path) -> None:
    """A tool that the model is not offered, or that no turn of the user leads to, is skipped, and the turn ends."""
    target = made("llama-cpp", module=MODULE, runtime=runtime)
    steps = [START, SEARCH, {**PROMPT, "more": True}, {**SEARCH, "tool": "memory_get"}, PROMPT]
    _, outside, _, lacking, after = performed(target, tmp_path / "home", steps)
    assert outside == {"skipped": "the model calls tools only in a user's turn"}
    assert lacking == {"skipped": "the connector has no tool memory_get"}
    assert after["turn"] is True


def test_program_that_ends_is_the_scenario_s_error(runtime: str, made: Made, tmp_path: Path) -> None:
    """A program that ends in the middle of a turn is an error with its status."""
    target = made("llama-cpp", mode="dies", module=MODULE, runtime=runtime)
    with pytest.raises(TargetError, match="the chat program ended with status 5"):
        performed(target, tmp_path / "home", [START, PROMPT])
