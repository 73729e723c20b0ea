"""What a real 0.58.1 answered beyond the recorded tables, asked of the embedded daemon of contract 0.58."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers.hooks.compaction import save_summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.daemon.conftest import Kit

FACTS = (
    "Kestrel builds run on the blue runner.",
    "Kestrel deploys run nightly.",
    "Kestrel cache lives in redis.",
    "Heron likes fish and the blue sky.",
    "[deploy,friday]: no deploys after noon",
    "critical: never force-push main",
    "Wombat ledger is frozen until spring.",
)


@pytest.fixture
def kit(start: Callable[..., Kit]) -> Kit:
    """A daemon of 0.58 that knows a few facts."""
    kit = start(version="0.58")
    for fact in FACTS:
        kit.post("/api/memory/remember", {"content": fact})
    return kit


@pytest.mark.parametrize(
    ("fields", "scores"),
    [
        ({"query": "kestrel"}, [1, 0.67, 0.33]),
        ({"query": "kestrel runner"}, [1]),
        ({"query": "heron OR wombat"}, [1, 0.5]),
        ({"query": "kestrel NOT blue"}, [1, 0.5]),
        ({"query": "kest*"}, []),
        ({"query": "zzz", "keywordQuery": "heron"}, [1]),
        ({"query": "kestrel", "keywordQuery": ""}, []),
        ({"query": "deploys", "tags": "fri"}, [1]),
        ({"query": "kestrel", "pinned": "x"}, []),
        ({"query": "kestrel", "importance_min": 0.9}, []),
        ({"query": "kestrel", "importance_min": "0.9"}, [1, 0.67, 0.33]),
        ({"query": "kestrel", "limit": True}, [1]),
        ({"query": "kestrel", "limit": {"a": 1}}, []),
        ({"query": "kestrel", "who": ["a"]}, []),
    ],
)
def test_a_recall_scores_by_place(kit: Kit, fields: dict[str, Any], scores: list[float]) -> None:
    """All words must occur, capital operators count, and a row's score is its place among the rows."""
    assert [row["score"] for row in kit.post("/api/memory/recall", fields).json()["results"]] == scores


@pytest.mark.parametrize("fields", [{"tags": ["friday"]}, {"keywordQuery": 5}])
def test_a_recall_fails_on_words_that_are_no_text(kit: Kit, fields: dict[str, Any]) -> None:
    """Tags or keywords of another type make the recall fail."""
    answer = kit.post("/api/memory/recall", {"query": "kestrel", **fields})
    assert (answer.status_code, answer.json()) == (500, {"error": "Recall failed", "results": []})


@pytest.mark.parametrize(
    ("message", "last", "terms", "rows"),
    [
        ("Which runner do Kestrel builds use?", None, "runner kestrel builds", 1),
        ("Kestrel builds", None, "kestrel builds", 3),
        ("what about it", "Wombat ledger is the thing that matters", "wombat ledger", 1),
        ("kestrel", "alpha1 beta2 gamma3 delta4", "kestrel alpha1 beta2", 3),
        ("zebra only", None, None, 0),
    ],
)
def test_a_prompt_finds_rows_by_any_word(kit: Kit, message: str, last: str | None, terms: str, rows: int) -> None:
    """A prompt's words, and some of the answer before it, find rows; the answer names them and its engine."""
    body = kit.hook("user-prompt-submit", userMessage=message, lastAssistantMessage=last).json()
    assert (body.get("queryTerms"), body["memoryCount"], body.get("engine")) == (
        terms,
        rows,
        "hybrid" if rows else None,
    )


def test_a_session_is_shown_a_row_once(kit: Kit) -> None:
    """What a session's prompts showed is not shown again until a compaction."""
    asked = {"userMessage": "Which runner do Kestrel builds use?", "sessionKey": "k"}
    assert [kit.hook("user-prompt-submit", **asked).json()["memoryCount"] for _ in range(2)] == [1, 0]
    kit.hook("compaction-complete", summary="s", sessionKey="k")
    assert kit.hook("user-prompt-submit", **asked).json()["memoryCount"] > 0


@pytest.mark.parametrize("fields", [{"harness": {"a": 1}, "summary": "s"}, {"harness": "codex", "summary": ["s"]}])
def test_a_summary_that_is_no_text_is_refused_before_the_database(kit: Kit, fields: dict[str, Any]) -> None:
    """The caller gets the 500 that real daemons give to a harness of another type."""
    with pytest.raises(js.ScriptError):
        save_summary(kit.app.daemon, fields)
    answer = kit.post("/api/hooks/compaction-complete", fields)
    assert (answer.status_code, answer.json()) == (500, {"error": "Failed to save summary"})


@pytest.mark.parametrize(
    ("fields", "row"),
    [
        ({"content": "[a, b]: hr 6"}, {"content": "hr 6", "tags": "a, b", "importance": 0.8, "pinned": 0}),
        ({"content": "critical: [a]: hr 7"}, {"content": "hr 7", "tags": "a", "importance": 1, "pinned": 1}),
        ({"content": "[a]:"}, {"content": "", "tags": "a"}),
        ({"content": "hr 2", "project": 5}, {"project": "5"}),
        ({"content": "hr 1", "who": {}}, None),
        ({"content": "hr 8", "runtimePath": {}}, None),
    ],
)
def test_the_hook_saves_a_row_of_its_own(kit: Kit, fields: dict[str, Any], row: dict[str, Any] | None) -> None:
    """hooks/remember reads critical and tags at the beginning; what cannot be stored is ``saved: false``, with 200."""
    said = kit.hook("remember", **fields).json()
    if row is None:
        assert said == {"saved": False, "id": ""}
    else:
        assert kit.get(f"/api/memory/{said['id']}").json().items() >= row.items()


def test_a_save_makes_blanks_one(kit: Kit) -> None:
    """memory/remember stores each run of blanks as one; hooks/remember stores the text as it came."""
    assert kit.post("/api/memory/remember", {"content": "A  b\n\nc\td"}).json()["content"] == "A b c d"
    row = kit.hook("remember", content="A  b\n\nc").json()["id"]
    assert kit.get(f"/api/memory/{row}").json()["content"] == "A  b\n\nc"


def test_a_row_of_the_hook_is_no_duplicate(kit: Kit) -> None:
    """memory/remember looks for duplicates among its own rows only."""
    kit.hook("remember", content="Plover fact.")
    assert "deduped" not in kit.post("/api/memory/remember", {"content": "Plover fact."}).json()
    assert kit.post("/api/memory/remember", {"content": "plover  FACT"}).json()["deduped"] is True


@pytest.mark.parametrize(
    ("content", "lengths"),
    [
        (f"{'y' * 599}. End it. {'w' * 700}. Small. {'Then more words. ' * 10}", [600, 7, 300, 101, 176]),
        ("Head\n\n" + "para one " * 40 + "\n\n" + "- item\n" * 50, [299, 298, 116]),
        ("A" * 501, [501]),
    ],
)
def test_long_texts_are_cut_into_short_pieces(kit: Kit, content: str, lengths: list[int]) -> None:
    """Pieces hold about 300 characters, and one that is stored already is left out."""
    ids = kit.post("/api/memory/remember", {"content": content}).json()["ids"]
    assert [len(kit.get(f"/api/memory/{row}").json()["content"]) for row in ids] == lengths
    assert kit.post("/api/memory/remember", {"content": content}).json()["chunk_count"] == 0


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"query": "kestrel zzz"}, 3),
        ({"query": "estre"}, 3),
        ({"query": ["kestrel"]}, 3),
        ({"query": {}}, 0),
        ({"query": "%%%"}, 7),
        ({"query": "AND OR"}, 1),
        ({"query": "kestrel", "limit": "2"}, 2),
        ({"query": "kestrel", "limit": "x"}, 0),
        ({"query": "kestrel", "limit": -1}, 3),
        ({"query": "kestrel", "project": "/p"}, 0),
    ],
)
def test_the_hook_recalls_by_any_word_or_part(kit: Kit, fields: dict[str, Any], count: int) -> None:
    """hooks/recall finds rows with one of the words, else those that contain the query."""
    assert kit.hook("recall", **fields).json()["count"] == count


@pytest.mark.parametrize(("key", "second"), [(5, 409), (True, 409), ({"a": 1}, 200), ([1], 200)])
def test_keys_that_are_no_text_name_sessions(kit: Kit, key: object, second: int) -> None:
    """Numbers are keys; an object or a list is a new one each time."""
    assert kit.hook("session-start", path="legacy", sessionKey=key).status_code == 200
    assert kit.hook("session-start", path="plugin", sessionKey=key).status_code == second
    assert kit.hook("session-end", sessionKey=key).status_code == 500
