"""Facts about tools that tell the model that something is done, and of which the daemon heard nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from tests.support.case_traces import KEYED, build

Item = Mapping[str, Any]
TEXT = "Deploys go out on Fridays at four."


def step(index: int, kind: str, **more: Any) -> Item:
    """A step that was given to the connector."""
    return {"mark": "step", "data": {"index": index, "step": kind, "session": "s1", **more}}


def tool(index: int, name: str, **given: Any) -> Item:
    """A step in which the model calls a tool."""
    return step(index, "tool", tool=name, arguments=given)


def done(index: int) -> Item:
    """What the tool of a step told the model."""
    return {"mark": "tool_answer", "data": {"index": index, "done": True}}


def call(method: str, path: str, answer: Mapping[str, Any], **body: Any) -> Item:
    """A request, answered."""
    request = {"method": method, "path": path, **({"body": body} if method == "POST" else {})}
    return {"request": request, "response": {"status": 200, "body": answer}}


def save(text: str) -> Item:
    """A memory that is stored."""
    return call("POST", "/api/memory/remember", {"id": "m-1", "type": "fact"}, content=text, agentId="atlas-agent")


def forget(**choice: Any) -> Item:
    """Memories that are forgotten."""
    return call("POST", "/api/memory/forget", {"deleted": 1}, mode="execute", reason="old", **choice)


def change(**members: Any) -> Item:
    """A memory that is changed."""
    patches = [{"id": "m-1", "reason": "moved", **members}]
    return call("POST", "/api/memory/modify", {"results": [{"id": "m-1", "status": "updated"}]}, patches=patches)


START = call("POST", "/api/hooks/session-start", {"inject": "", "memories": []}, **KEYED)
STORED = tool(1, "memory_store", content=TEXT)
CHANGED = tool(1, "memory_modify", id="m-1", importance=0.5)
FORGOTTEN = tool(1, "memory_forget", ids=["m-1"], mode="execute")
BY_QUERY = tool(1, "memory_forget", query="deploys", mode="execute")
FAULT = {"mark": "fault", "data": {"kind": "status", "status": 503, "on": True}}
WELL = {"mark": "fault", "data": {"kind": "status", "status": 503, "on": False}}
CUT = {"cut": True, "size": 900000, "sha256": "9f" * 32, "text": "{"}
IN_PART = {"request": {"method": "POST", "path": "/api/memory/remember", "raw_body": CUT}}
SILENT: Mapping[str, Sequence[Item]] = {
    "a memory": [STORED, done(1), step(2, "end")],
    "a memory, and another is stored later": [STORED, done(1), step(2, "end"), save("Refunds need two people.")],
    "a change": [CHANGED, done(1), step(2, "end")],
    "a change, and the memory is changed otherwise later": [CHANGED, done(1), step(2, "end"), change(importance=0.9)],
    "a change, and another memory is changed so later": [
        CHANGED, done(1), step(2, "end"), change(id="m-2", importance=0.5)
    ],
    "a change that was made once, and undone": [
        tool(0, "memory_modify", id="m-1", importance=0.5), change(importance=0.5),
        tool(0, "memory_modify", id="m-1", importance=0.9), change(importance=0.9),
        CHANGED, done(1), step(2, "end"),
    ],
    "memories to forget": [FORGOTTEN, done(1), step(2, "end")],
    "memories to forget, and another is forgotten later": [FORGOTTEN, done(1), step(2, "end"), forget(ids=["m-2"])],
    "memories to forget by a query": [BY_QUERY, done(1), step(2, "end")],
    "memories to forget by a query, and one is stored later": [BY_QUERY, done(1), step(2, "end"), save(TEXT)],
    "memories to forget by a query that chose others before": [
        tool(0, "memory_forget", query="deploys", mode="execute"), forget(query="deploys"),
        BY_QUERY, done(1), step(2, "end"),
    ],
}  # fmt: skip
NO_BREACH: Mapping[str, Sequence[Item]] = {
    "a tool that does not say so": [STORED, step(2, "end")],
    "a tool that says otherwise": [
        STORED, {"mark": "tool_answer", "data": {"index": 1, "done": False}}, step(2, "end")
    ],
    "a tool of another step": [STORED, done(7), step(2, "end")],
    "a session whose start was disturbed": [
        FAULT, step(1, "resume"), START, WELL, tool(2, "memory_store", content=TEXT), done(2), step(3, "end")
    ],
    "a memory that is stored later": [STORED, done(1), step(2, "end"), save(TEXT)],
    "a memory that was stored before": [
        tool(0, "memory_store", content=TEXT), save(TEXT), STORED, done(1), step(2, "end")
    ],
    "a memory that is looked up": [STORED, call("GET", "/api/memory/m-1", {"id": "m-1"}), done(1), step(2, "end")],
    "a change that is sent later": [CHANGED, done(1), step(2, "end"), change(importance=0.5)],
    "a preview": [tool(1, "memory_forget", query="deploys", mode="preview"), done(1), step(2, "end")],
    "memories that are forgotten later": [FORGOTTEN, done(1), step(2, "end"), forget(ids=["m-1"])],
    "memories that were forgotten before": [
        tool(0, "memory_forget", ids=["m-1"], mode="execute"), forget(ids=["m-1"]), FORGOTTEN, done(1), step(2, "end")
    ],
    "memories by a query that are forgotten later": [BY_QUERY, done(1), step(2, "end"), forget(query="deploys")],
    "a memory, and a save whose body was recorded in part comes later": [STORED, done(1), step(2, "end"), IN_PART],
    "a tool that was given nothing": [tool(1, "memory_store"), done(1), step(2, "end")],
    "a tool of which no arguments are known": [step(1, "tool", tool="memory_store"), done(1), step(2, "end")],
    "a step that a fault disturbs": [STORED, FAULT, done(1), WELL, step(2, "end")],
    "a step that was skipped": [
        STORED, done(1), {"mark": "skipped", "data": {"index": 1, "reason": "no tool"}}, step(2, "end")
    ],
    "the harness's own memory": [tool(1, "memory", action="add", content=TEXT), done(1), step(2, "end")],
}  # fmt: skip


def fold(folder: Path, items: Sequence[Item]) -> set[str | None]:
    """The kinds of breaches of SIG-MEM-006 over a session with these items."""
    trace = build(folder / "trace.jsonl", [step(0, "start"), START, *items], shared=False)
    found = judge(trace, frozenset({"SIG-MEM-006"})).judgements["SIG-MEM-006"]
    assert found.verdict != "ERROR", found.message
    return {finding.fold for finding in found.findings if finding.verdict == "FAIL"}


@pytest.mark.parametrize("name", SILENT)
def test_claimed_deed_that_no_request_tells_is_a_breach(name: str, tmp_path: Path) -> None:
    assert fold(tmp_path, SILENT[name]) == {"nothing sent"}


@pytest.mark.parametrize("name", NO_BREACH)
def test_deed_that_another_request_tells_or_nobody_claims_is_none(name: str, tmp_path: Path) -> None:
    assert fold(tmp_path, NO_BREACH[name]) == set()
