"""Which rows the model was given in a turn, and which of them its answer seems to rest on."""

from __future__ import annotations

from typing import Any

import pytest

from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.session.memory_effect import MemoryEffect, effect_of
from signet_reference_harness.tools import ToolResult


def found(*rows: dict[str, Any], **meta: Any) -> ToolResult:
    """The result of a search."""
    return ToolResult("memory_search", True, {}, reply=Reply("memory-recall", body={"results": list(rows), **meta}))


def effect(prompt: str, reply: str, *results: ToolResult, **more: Any) -> MemoryEffect:
    """The effect of these results, and of what a daemon injected."""
    given: dict[str, Any] = {"start_rows": [], "contexts": (), "submitted": "", "submission": None, **more}
    return effect_of(prompt, reply, results=results, **given)


@pytest.mark.parametrize(
    ("prompt", "reply", "words"),
    [
        ("Which port?", "It is 50051.", ("50051",)),
        ("Is it 50051?", "Yes, 50051.", ()),
        ("Who owns it?", "Robin does.", ("Robin",)),
        ("Which port?", "The service listens there.", ("service",)),
        ("Which port?", "The service is about billing.", ("service", "billing")),
        ("Which port?", "I cannot say that.", ()),
    ],
)
def test_words_of_the_answer_rest_on_a_row_that_holds_them(prompt: str, reply: str, words: tuple[str, ...]) -> None:
    """Not those that the prompt holds, and no common ones; one plain word alone is no use of the row."""
    row = {"id": "m1", "content": "The billing service of Robin talks on port 50051."}
    (kept,) = effect(prompt, reply, found(row)).rows
    assert kept.words == words
    assert kept.is_used == (words not in {(), ("service",)})


def test_rows_of_a_start_count_while_the_model_has_them() -> None:
    """A row that the injected text does not hold was not shown; one row that comes twice is one."""
    rows = [{"id": "m1", "content": "Robin prefers pytest."}, {"id": "m2", "content": "Unshown."}]
    made = effect("Hi.", "Hi.", found(rows[0]), start_rows=rows, contexts=("You know: Robin prefers pytest.",))
    assert [(row.id, row.source) for row in made.rows] == [("m1", "memory_search")]
    assert made.tokens == 13


@pytest.mark.parametrize("body", [{}, {"results": 5}, {"results": [1, {"id": 3, "content": None, "score": True}]}])
def test_any_answer_is_read(body: dict[str, Any]) -> None:
    """A daemon may answer with any JSON."""
    result = ToolResult("memory_search", True, {}, reply=Reply("memory-recall", body={**body, "meta": [], "method": 1}))
    assert effect("Hi.", "Hi.", result).suppressed == 0
