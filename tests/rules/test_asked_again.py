"""Facts about what a user asks for twice: two requests, and no repeat of one that was refused for a while."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from tests.support.case_traces import DECLARED, KEYED, build

Item = Mapping[str, Any]


def step(kind: str, index: int) -> Item:
    """A step that was given to the connector."""
    return {"mark": "step", "data": {"step": kind, "session": "s1", "index": index}}


def end(status: int) -> Item:
    """An end, answered with a status and a pause that the client shall make."""
    headers = {} if status == 200 else {"retry-after": "30"}
    body = {"memoriesSaved": 0, "queued": True, "jobId": "job-1"} if status == 200 else {"error": "busy"}
    request = {"method": "POST", "path": "/api/hooks/session-end", "body": dict(KEYED)}
    return {"request": request, "response": {"status": status, "body": body, "headers": headers}}


@pytest.mark.parametrize(
    ("requirement", "status", "breach"), [("SIG-HTTP-011", 503, "FAIL"), ("SIG-HTTP-015", 429, "WARN")]
)
@pytest.mark.parametrize("asked_again", [True, False])
def test_second_end_of_the_user_is_no_repeat(
    tmp_path: Path, requirement: str, status: int, breach: str, asked_again: bool
) -> None:
    """Where steps tell that the user ended the session twice, the second request does not come too soon."""
    between = [step("resume", 2), step("end", 3)] if asked_again else []
    items = [step("start", 0), step("end", 1), end(status), *between, end(200)]
    judged = judge(build(tmp_path / "trace.jsonl", items))
    assert judged.judgements[requirement].verdict == ("PASS" if asked_again else breach)


def hook(operation: str, status: int = 200, **more: Any) -> Item:
    """A hook of the session, answered as the daemon does."""
    body: Mapping[str, Any] = {"error": "no"}
    if status == 200:
        body = {"inject": "", "memories": []} if operation == "session-start" else {"inject": "", "memoryCount": 0}
    request = {"method": "POST", "path": f"/api/hooks/{operation}", "body": {**KEYED, **more}}
    return {"request": request, "response": {"status": status, "body": body}}


def said(index: int, text: str) -> Item:
    """A user turn that took place."""
    told = {"step": "prompt", "session": "s1", "index": index, "text": text, "reply": "Understood."}
    return {"mark": "step", "data": told}


@pytest.mark.parametrize(("refused", "expected"), [(True, "PASS"), (False, "WARN")])
def test_session_that_may_not_be_started_again_owes_no_prompt(tmp_path: Path, refused: bool, expected: str) -> None:
    """A start that was refused with 401 may not come again, so a later resume may stay silent; others may not."""
    first = [step("start", 0), hook("session-start"), said(1, "a"), hook("user-prompt-submit", userMessage="a")]
    resumed = [step("end", 2), end(200), step("resume", 3), hook("session-start", 401 if refused else 200, source="r")]
    again = [step("end", 4), end(200), step("clear", 5), hook("session-start", source="clear")]
    closing = [step("end", 6), end(200), step("resume", 7), said(8, "c"), step("end", 9)]
    header = {"declared": {**DECLARED, "capabilities": ["session-start", "user-prompt-submit", "session-end"]}}
    judged = judge(build(tmp_path / "trace.jsonl", [*first, *resumed, *again, *closing], header))
    assert judged.judgements["SIG-PROMPT-011"].verdict == expected


def answered(status: int, path: str, **body: Any) -> Item:
    """A request, refused with a pause that the client shall make, or accepted."""
    prompted = {"inject": "", "memoryCount": 0, "sessionKnown": True}
    saved = {"id": "m-1", "type": "fact", "tags": "", "pinned": False, "importance": 0.8, "content": "Deploys."}
    saved |= {"embedded": False, "entities_linked": 0, "hints_written": 0, "structured": False}
    answer = prompted if path.endswith("submit") else saved
    headers = {} if status == 200 else {"retry-after": "30"}
    response = {"status": status, "body": answer if status == 200 else {"error": "no"}, "headers": headers}
    return {"request": {"method": "POST", "path": path, "body": {**KEYED, **body}}, "response": response}


@pytest.mark.parametrize("said_again", [True, False])
def test_prompt_that_is_sent_again_in_the_next_turn_is_a_repeat(tmp_path: Path, said_again: bool) -> None:
    """A prompt that was refused is repeated where the next turn sends it again, unless the user said it again."""
    path, second = "/api/hooks/user-prompt-submit", "And who owns it?"
    first = [said(1, "Where is the plan?"), answered(401, path, userMessage="Where is the plan?")]
    next_turn = said(2, "Where is the plan?" if said_again else second)
    turn = [next_turn, answered(200, path, userMessage="Where is the plan?")]
    judged = judge(build(tmp_path / "trace.jsonl", [step("start", 0), hook("session-start"), *first, *turn]))
    assert judged.judgements["SIG-HTTP-010"].verdict == ("PASS" if said_again else "WARN")


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("memory_store", {"content": "Deploys are on Friday."}, "PASS"),
        ("memory_store", {"content": "Mira owns it."}, "FAIL"),
        ("memory_search", {"query": "deploys"}, "FAIL"),
        ("memory_get", {"id": "m-2"}, "PASS"),
    ],
)
def test_save_that_another_tool_sends_again_is_a_repeat(
    tmp_path: Path, tool: str, given: Mapping[str, str], expected: str
) -> None:
    """A save that was answered 503 is repeated where a tool sends it again that was given something else to say."""

    def called(index: int, name: str, arguments: Mapping[str, str]) -> Item:
        told = {"step": "tool", "session": "s1", "index": index, "tool": name, "arguments": dict(arguments)}
        return {"mark": "step", "data": told}

    stored = {"content": "Deploys are on Friday."}
    items = [
        *(step("start", 0), hook("session-start")),
        *(called(1, "memory_store", stored), answered(503, "/api/hooks/remember", **stored)),
        *(called(2, tool, given), answered(200, "/api/hooks/remember", **stored)),
    ]
    judged = judge(build(tmp_path / "trace.jsonl", items))
    assert judged.judgements["SIG-HTTP-011"].verdict == expected
