"""Facts about recalls, saves and ids that stand beside others, or whose session may have been opened unheard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from tests.support.case_traces import build

from .test_conversation import AWAY, Item, hook, judgement, step

START = hook("session-start")


def memory(method: str, path: str, **body: Any) -> Item:
    """A memory request, answered as the daemon does."""
    return {"request": {"method": method, "path": path, **({"body": body} if body else {})}}


def recall(key: str) -> Item:
    """A recall with a session key."""
    return memory("POST", "/api/memory/recall", query="ledger", sessionKey=key)


def save(content: str, status: int = 200) -> Item:
    """A save with an idempotency key."""
    saved = memory("POST", "/api/memory/remember", content=content, idempotencyKey="i-1")
    return {**saved, "response": {"status": status, "body": {"id": "m-1"}}}


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([START, recall("k-1")], ("PASS",)),
        ([START, recall("k-1"), recall("")], ("WARN", (3,))),
        ([START, recall("k-2")], ("WARN", (2,))),
        ([START, AWAY[0], step("start", "s2"), AWAY[1], step("prompt", "s2"), recall("k-2")], ("INCONCLUSIVE", (6,))),
        ([recall("k-1")], ("NOT-APPLICABLE",)),
    ],
)
def test_recall_in_an_open_session(tmp_path: Path, items: Sequence[Item], told: tuple[object, ...]) -> None:
    """Each carries a key that is open, or that may have been opened while nothing listened."""
    given = judgement(tmp_path, items, "SIG-REC-004")
    assert (given.verdict, *(finding.exchanges for finding in given.findings)) == told


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([save("one")], ("PASS",)),
        ([save("one"), save("one")], ("PASS",)),
        ([save("one"), save("two")], ("WARN", (2, 1))),
        ([save("one", 500), save("one")], ("PASS",)),
        ([save("one", 500), save("two")], ("WARN", (2, 1))),
        ([save("one"), save("one"), save("two")], ("WARN", (3, 1))),
    ],
)
def test_one_key_stands_for_one_content(tmp_path: Path, items: Sequence[Item], told: tuple[object, ...]) -> None:
    """However often it is sent, and whether the first was accepted or not."""
    given = judgement(tmp_path, items, "SIG-REM-002")
    assert (given.verdict, *(finding.exchanges for finding in given.findings)) == told


CUT = {"cut": True, "size": 900000, "sha256": "9f" * 32, "text": "{"}


@pytest.mark.parametrize(
    ("path", "status", "version", "expected"),
    [
        ("/api/memory/remember", 200, "0.58.1", "PASS"),
        ("/api/hooks/remember", 200, "0.58.1", "INCONCLUSIVE"),
        ("/api/hooks/remember", 200, "0.109.15", "PASS"),
        ("/api/memory/remember", 413, "0.109.15", "INCONCLUSIVE"),
    ],
)
def test_save_that_was_recorded_in_part(path: str, status: int, version: str, expected: str, tmp_path: Path) -> None:
    """It had content if it was taken by a daemon that refuses one without: the hook of a 0.58 takes any."""
    sent = {"request": {"method": "POST", "path": path, "raw_body": CUT}, "response": {"status": status, "body": {}}}
    trace = build(tmp_path / "trace.jsonl", [sent], {"daemon_version": version}, shared=False)
    assert judge(trace, frozenset({"SIG-REM-001"})).judgements["SIG-REM-001"].verdict == expected


def test_requests_without_an_id_end_no_look_at_the_next(tmp_path: Path) -> None:
    """What follows the route and is no id: a job, a history, another route."""
    paths = ["/api/memory/jobs/j-1", "/api/memory/m-1/history", "/api/memory/search", "/api/memory/undefined"]
    (finding,) = judgement(tmp_path, [memory("GET", path) for path in paths], "SIG-MEM-001").findings
    assert finding.exchanges == (4,)
