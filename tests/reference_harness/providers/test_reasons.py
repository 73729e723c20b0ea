"""The published table of reasons, row by row, and the page that shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from signet_reference_harness.providers import APIS, TABLE, ReasonRow, StopReason, reason_of, reason_of_error
from signet_reference_harness.providers.answer import AnswerInProgress

PAGE = Path(__file__).parents[3] / "docs/harness/reasons.md"
RAW = {
    "anthropic-messages": {
        "end_turn", "stop_sequence", "max_tokens", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded",
    },
    "openai-completions": {"stop", "length", "tool_calls", "function_call", "content_filter"},
    "openai-responses": {
        "completed", "failed", "cancelled", "incomplete: max_output_tokens", "incomplete: content_filter",
    },
    "ollama-chat": {"stop", "length", "load", "unload", None},
}  # fmt: skip
"""The vendors' words that the harness promises to know."""


def identify(row: ReasonRow) -> str:
    """A row as a test's name."""
    return f"{row.api}-{row.raw}-{row.beside or row.place}"


@pytest.mark.parametrize("row", TABLE, ids=identify)
def test_each_row_maps_its_word_to_its_reason(row: ReasonRow) -> None:
    """Its word means its reason: in an answer with the parts of `beside`, or in an error."""
    if row.place == "reason":
        told = reason_of(row.api, row.raw, tool_calls=row.beside == "tool calls", refusal=row.beside == "refusal")
    else:
        assert row.raw is not None
        words, message = ((row.raw,), "") if row.place == "error" else ((), f"So: {row.raw.capitalize()}!")
        told = reason_of_error(row.api, words, message)
    assert told is row.reason


@pytest.mark.parametrize("api", APIS)
def test_the_promised_words_are_in_the_table(api: str) -> None:
    """Exactly these."""
    assert {row.raw for row in TABLE if row.api == api and row.place == "reason"} == RAW[api]


def test_no_two_rows_say_different_things_of_one_word() -> None:
    """API, place, word and `beside` identify a row."""
    keys = [(row.api, row.place, row.raw, row.beside) for row in TABLE]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("api", APIS)
def test_an_unknown_word_is_an_error_with_its_text(api: str) -> None:
    """It is never a normal end."""
    answer = AnswerInProgress(api=api, longest=99, raw_reason="END_TURN")
    result = answer.result()
    assert (result.stop_reason, result.raw_reason) == (StopReason.ERROR, "END_TURN")
    assert "'END_TURN' is not in the table" in result.detail


def test_an_answer_that_is_done_without_a_word_is_malformed() -> None:
    """Ollama sends done without a reason when its runner has ended."""
    result = AnswerInProgress(api="ollama-chat", longest=99, done=True).result()
    assert (result.stop_reason, result.raw_reason) == (StopReason.MALFORMED, None)


def test_a_reason_to_use_tools_without_a_tool_is_malformed() -> None:
    """Otherwise the loop would have nothing to do, for ever."""
    result = AnswerInProgress(api="anthropic-messages", longest=99, raw_reason="tool_use").result()
    assert result.stop_reason is StopReason.MALFORMED
    assert "no tool is called" in result.detail


def test_the_page_shows_the_table() -> None:
    """docs/harness/reasons.md has the rows, in their order, and no others."""
    lines = PAGE.read_text().splitlines()
    shown = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("| `")]
    assert shown == [as_shown(row) for row in TABLE]
    named = set(re.findall(r"^- `(\w+)`", PAGE.read_text(), re.MULTILINE))
    assert named == set(StopReason)


def as_shown(row: ReasonRow) -> tuple[str, str, str, str]:
    """A row as the page has it."""
    places = {"reason": "reason", "error": "code or type of an error", "message": "within an error's message"}
    where = f"{places[row.place]}, with {row.beside}" if row.beside else places[row.place]
    return f"`{row.api}`", f"`{row.raw}`" if row.raw else "none, but done", where, f"`{row.reason}`"
