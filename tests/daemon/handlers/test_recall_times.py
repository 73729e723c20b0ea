"""Recall of what belongs to a time: that of the request, or a day that the query names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.daemon.conftest import Kit

MARCH = {"start": "2026-03-01T00:00:00Z", "end": "2026-04-01T00:00:00Z"}
FACETS = ["session", "source", "occurred", "observed", "valid", "captured"]


@pytest.fixture
def kit(start: Callable[..., Kit]) -> Kit:
    """A daemon that knows when a few facts occurred."""
    kit = start()
    kit.remember("The Kestrel outage was fixed.", occurredAt="2026-03-14T10:00:00Z")
    kit.remember("The Heron migration ended.", occurredAt="2026-03-20T10:00:00Z")
    kit.remember("The Wombat audit ended.", occurredAt="2026-05-02T10:00:00Z")
    kit.remember("The Osprey key is good for a while.", validFrom="2026-02-01", validUntil="2026-03-10")
    return kit


def recall(kit: Kit, query: str, **fields: Any) -> dict[str, Any]:
    """The answer to a recall."""
    answer: dict[str, Any] = kit.post("/api/memory/recall", {"query": query, **fields}).json()
    return answer


def contents(answer: dict[str, Any]) -> list[str]:
    """The memories of an answer, without the articles."""
    return [row["content"].split()[1] for row in answer["results"]]


def test_a_time_finds_what_happened_in_it(kit: Kit) -> None:
    """The newest first; the row says which of its times it is found by, and the answer what was looked for."""
    answer = recall(kit, "what", time={**MARCH, "mode": "timeline"})
    assert contents(answer) == ["Heron", "Kestrel", "Osprey"]
    first = answer["results"][0]
    assert (first["temporal_facet"], first["source"]) == ("occurred", "temporal_occurred")
    assert first["temporal_start_at"] == "2026-03-20T10:00:00.000Z"
    span = {"start": "2026-03-01T00:00:00.000Z", "end": "2026-04-01T00:00:00.000Z"}
    said = {"mode": "timeline", "source": "request", "originalQuery": "what", "contentQuery": "what", "facets": FACETS}
    assert answer["meta"]["temporal"] == {**said, **span}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("what did I do on 2026-03-14", ["Kestrel"]),
        ("what did we do on March 20th, 2026", ["Heron"]),
        ("2026/5/2", ["Wombat"]),
        ("2026-03-15", []),
    ],
)
def test_a_day_in_the_query_is_a_time(kit: Kit, query: str, found: list[str]) -> None:
    """In numbers or with the name of its month; words such as `what did I do` say nothing beside it."""
    answer = recall(kit, query)
    assert contents(answer) == found
    assert answer["meta"]["temporal"]["source"] == "query"


def test_words_beside_a_time_choose_among_what_happened_in_it(kit: Kit) -> None:
    """With any word that counts the time only narrows the search."""
    answer = recall(kit, "the Heron migration", time=MARCH)
    assert contents(answer) == ["Heron"]
    assert answer["meta"]["temporal"]["mode"] == "filter"
    assert contents(recall(kit, "the Wombat audit", time=MARCH)) == []


def test_facets_choose_which_times_of_a_row_count(kit: Kit) -> None:
    """Without an end a time lasts a day."""
    asked = {"start": "2026-03-01", "mode": "timeline"}
    assert contents(recall(kit, "what", time={**asked, "facets": ["valid"]})) == ["Osprey"]
    assert contents(recall(kit, "what", time={**asked, "facets": ["occurred"]})) == []


def test_a_time_finds_memories_by_the_moment_they_were_saved_and_sessions(kit: Kit) -> None:
    """What a compaction left is found as a session, and as the memory that it became too."""
    kit.hook("compaction-complete", summary="Kites were built.", sessionKey="k", project="/srv/kites")
    today = {"start": "2026-11-21T00:00:00Z", "end": "2026-11-23T00:00:00Z", "mode": "timeline"}
    rows = recall(kit, "what", time=today, project="/srv/kites")["results"]
    assert [row["subject_type"] for row in rows] == ["session_summary", "memory"]
    assert rows[0]["session_id"] == "k"
    assert {row["content"] for row in rows} == {"Kites were built."}


@pytest.mark.parametrize(
    ("time", "error"),
    [
        ("today", "time must be an object"),
        ({}, "time.start is required when time is provided"),
        ({"start": "soon"}, "time.start must be a valid ISO timestamp"),
        ({"start": "2026-03-01", "end": "later"}, "time.end must be a valid ISO timestamp"),
        ({"start": "2026-03-02", "end": "2026-03-01"}, "time.end must be after time.start"),
        ({"start": "2026-03-01", "facets": "valid"}, "time.facets must be an array"),
        (
            {"start": "2026-03-01", "facets": ["dreamt"]},
            "time.facets entries must be one of: session, source, captured, observed, occurred, valid",
        ),
        ({"start": "2026-03-01", "mode": "all"}, "time.mode must be one of: auto, timeline, filter"),
    ],
)
def test_an_invalid_time_is_refused(kit: Kit, time: Any, error: str) -> None:
    """With the first thing that is wrong with it."""
    answer = kit.post("/api/memory/recall", {"query": "what", "time": time})
    assert (answer.status_code, answer.json()) == (400, {"error": error})
