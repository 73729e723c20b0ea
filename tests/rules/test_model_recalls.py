"""Facts about which result belongs to which call of a memory tool, and how a result that shows otherwise is worded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from .model_requests import ASKED, Item, model
from .model_turns import FACT, MEMORY, OPEN, PASS, WARN, asks, call, only, said, start, step, verdicts

QUERY, OTHER = "Atlas deploys", "refunds over 500 EUR"
NONE = "No memories found."
FAILED: Mapping[str, Any] = {"response": {"status": 500, "body": {"error": "no"}}}


def recall(query: str | None = QUERY, content: str = MEMORY, **more: Any) -> Item:
    """A recall by the daemon's memory."""
    return call("/api/memory/recall", {"query": query}, {"results": [{"content": content}]}, **more)


TWO = call("/api/memory/recall", {"query": QUERY}, {"results": [{"content": MEMORY}, {"content": FACT}]})


def save(content: str, **more: Any) -> Item:
    """A memory that is to be kept."""
    return call("/api/memory/remember", {"content": content}, {"id": "m-1"}, **more)


def results(*told: tuple[str, str], said_between: str = "", failed: object = None, **more: Any) -> Item:
    """A request that holds calls of a tool, each by its query and its result."""
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    for number, (query, result) in enumerate(told):
        use = {"type": "tool_use", "id": f"c{number}", "name": "memory_search", "input": {"query": query}}
        flag = {} if failed is None else {"is_error": failed}
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": said_between}, use]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": result} | flag],
            },
        ]
    return asks(messages=messages, **more)


HEAD = [step("start"), start("", "k1"), said(), asks()]
CASES: Mapping[str, tuple[Sequence[Item], list[object]]] = {
    "told": ([*HEAD, recall(), results((QUERY, MEMORY))], [PASS]),
    "told of none": ([*HEAD, recall(), results((QUERY, NONE))], [WARN]),
    "told of none, but the model spoke of it": (
        [*HEAD, recall(), results((QUERY, NONE), said_between=MEMORY)], [WARN]
    ),
    "told, but the model spoke of none": ([*HEAD, recall(), results((QUERY, MEMORY), said_between=NONE)], [PASS]),
    "told of another query": ([*HEAD, recall(), results((OTHER, NONE))], []),
    "asked for with more words": ([*HEAD, recall(), results((f"{QUERY} on Friday", NONE))], [WARN]),
    "asked for by the stem of a word": ([*HEAD, recall("Atlas deploy"), results((QUERY, NONE))], [WARN]),
    "asked for in letters beyond the first 65536": (
        [*HEAD, recall("\U00020b9f\U00020bb7 hours"), results(("\U00020b9f\U00020bb7 hours", NONE))], [WARN]
    ),
    "never told": ([*HEAD, recall()], []),
    "told before": ([*HEAD, results((QUERY, NONE)), recall()], []),
    "told as it was asked": ([*HEAD, recall(t0=5.0, t1=5.0), results((QUERY, NONE), t0=5.0)], [WARN]),
    "told before, too, by an equal call": ([*HEAD, results((QUERY, NONE)), recall(), results((QUERY, MEMORY))], [PASS]),
    "without a query": ([*HEAD, recall(None), results((QUERY, NONE))], []),
    "without a query, then with one": ([*HEAD, recall(None), recall(), results((QUERY, NONE))], [WARN]),
    "two tools of one query": ([*HEAD, recall(), results((QUERY, NONE), (QUERY, NONE))], []),
    "two queries": (
        [*HEAD, recall(), recall(OTHER, FACT), results((QUERY, NONE), (OTHER, FACT))], [WARN, PASS]
    ),
    "two queries, the first told": (
        [*HEAD, recall(OTHER, FACT), recall(), results((OTHER, FACT), (QUERY, NONE))], [PASS, WARN]
    ),
    "again after a failure": ([*HEAD, recall(**FAILED), recall(), results((QUERY, MEMORY))], [PASS]),
    "again, and the second fails": ([*HEAD, recall(), recall(**FAILED), results((QUERY, "Error: 500"))], [PASS]),
    "again as the model is told": (
        [*HEAD, recall(t0=5.0, **FAILED), recall(t0=6.0), results((QUERY, MEMORY), t0=6.0)], [PASS]
    ),
    "again after the model was told": (
        [*HEAD, recall(**FAILED), results((QUERY, NONE)), recall(), asks(text=ASKED)], [WARN]
    ),
    "in the turn before": ([*HEAD, recall(), said("Go on."), results((QUERY, NONE))], []),
    "before the turn": ([step("start"), recall(), said(), results((QUERY, NONE))], []),
    "after the turn": ([*HEAD, results((QUERY, NONE), t0=9.0), said("Go on."), recall(t0=8.0)], []),
    "by a search": (
        [*HEAD, {"request": {"method": "GET", "path": "/api/memory/search", "query": {"q": QUERY}},
         "response": {"status": 200, "body": {"results": [{"content": MEMORY}]}}}, results((QUERY, NONE))], [WARN],
    ),
    "by a search, its body says something else": (
        [*HEAD, {"request": {"method": "GET", "path": "/api/memory/search", "query": {"q": QUERY}},
         "response": {"status": 200, "body": {"results": [{"content": MEMORY}]}}}, results((OTHER, NONE))], [],
    ),
    "a recall that has a q, too": (
        [*HEAD, {**recall(), "request": {**recall()["request"], "query": {"q": OTHER}}}, results((QUERY, NONE))], [WARN]
    ),
    "memories by another name": (
        [*HEAD, call("/api/hooks/recall", {"query": QUERY}, {"memories": [{"content": MEMORY}]}),
         results((QUERY, NONE))], [WARN],
    ),
    "an answer without memories": ([*HEAD, call("/api/memory/recall", {"query": QUERY}, {}), results((QUERY, NONE))],
                                   [OPEN]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_which_result_tells_of_which_call(case: str, tmp_path: Path) -> None:
    """That of the one tool with the call's query in the first request after it; of equal calls the last one counts."""
    items, expected = CASES[case]
    assert verdicts(tmp_path, 7, items) == expected


@pytest.mark.parametrize(("failed", "expected"), [(True, PASS), (False, OPEN), (None, OPEN)])
def test_a_result_may_be_flagged_as_failed(failed: object, expected: object, tmp_path: Path) -> None:
    """Anthropic's flag tells a failure whatever the text says."""
    items = [*HEAD, recall(**FAILED), results((QUERY, "Hm."), failed=failed)]
    assert verdicts(tmp_path, 7, items) == [expected]


CHAT = [
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": NONE, "tool_calls": [{"function": {"name": "f", "arguments": {"query": QUERY}}}]},
    {"role": "tool", "content": "Hm."},
]
RESPONSES = [
    {"role": "user", "content": ASKED},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": f'{{"query": "{QUERY}"}}'},
    {"type": "function_call_output", "call_id": "c1", "output": "Hm."},
]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"messages": CHAT}, "/v1/chat/completions"),
        ({"messages": CHAT}, "/api/chat"),
        ({"input": RESPONSES}, "/v1/responses"),
    ],
)
def test_other_formats_have_no_flag(body: object, path: str, tmp_path: Path) -> None:
    """There only the text tells whether the tool failed, and the model's own words are none of it."""
    assert verdicts(tmp_path, 7, [*HEAD, recall(**FAILED), model(body, path)]) == [OPEN]


@pytest.mark.parametrize(
    ("answer", "content", "result", "expected"),
    [
        ({"success": True}, FACT, "Saved.", PASS),
        ({"success": False}, FACT, "Saved.", WARN),
        ({"success": None}, FACT, "Saved.", PASS),
        (None, FACT, "Saved.", WARN),
        ({"id": "m-1"}, "the build failed on Friday", "memory: the build failed on Friday", PASS),
        ({"success": False}, "the build was recorded", "memory: the build was recorded", OPEN),
    ],
)
def test_whether_the_daemon_kept_a_memory(
    answer: object, content: str, result: str, expected: object, tmp_path: Path
) -> None:
    """It did unless it says that it had no success, or says nothing; what was kept is no word of the result's."""
    items = [*HEAD, {**save(content), "response": {"status": 200, "body": answer}}, results((content, result))]
    assert verdicts(tmp_path, 7, items) == [expected]


def test_a_result_that_tells_otherwise_is_told_in_words(tmp_path: Path) -> None:
    """The finding says what the daemon did, what the model is told of it, and quotes the result."""
    long = f"{NONE} " + "We looked everywhere for them. " * 12
    for asked_for, query, result, message, wanted in (
        (recall(), QUERY, long, "the daemon answered with 1 memory, but the model gets no memory",
         "memories of memory-recall"),
        (TWO, QUERY, NONE, "the daemon answered with 2 memories, but the model gets no memory",
         "memories of memory-recall"),
        (recall(**FAILED), QUERY, NONE, "the daemon answered 500, but the model is told that nothing is known",
         "failure of memory-recall"),
        (save(FACT, **FAILED), FACT, "Saved.", "the daemon answered 500, but the model is told that it was done",
         "failure of memory-remember"),
        (save(FACT), FACT, "It failed.", "the daemon stored it, but the model is told that it failed",
         "success of memory-remember"),
    ):  # fmt: skip
        finding = only(tmp_path, 7, [*HEAD, asked_for, results((query, result))])
        assert (finding.verdict, finding.message) == (WARN, message)
        assert finding.expected == f"a result that shows the {wanted}"
        assert (finding.received, finding.exchanges, finding.model) == (result[:300], (5,), (6,))
        assert finding.fold == f"{wanted.rpartition(' ')[2]} told otherwise"
