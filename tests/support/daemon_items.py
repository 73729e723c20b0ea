"""Exchanges of one session with the daemon's answers, as cases about the daemon's side are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.engine import JudgedTrace, judge
from tests.support.case_traces import KEYED, build

FULL = {"inject": "[memory] Friday", "memories": [], "identity": {"name": "Rig"}}
STUB = {"inject": "[memory active]", "memories": [], "identity": {"name": "Agent"}}
PROMPTED = {"inject": "", "memoryCount": 0, "sessionKnown": True}
ENDED = {"memoriesSaved": 0, "queued": True}
DROPPED = {"memoriesSaved": 0, "skipped": True, "duplicateSessionEnd": True, "endedBy": "plugin"}
SKIPPED = {"skipped": True, "duplicateRuntimePath": True, "claimedBy": "plugin", "inject": "", "memoryCount": 0}
SAVED = {
    "id": "m-1", "type": "fact", "tags": None, "pinned": False, "importance": 0.8, "content": "x", "embedded": False,
    "entities_linked": 0, "hints_written": 0, "structured": False,
}  # fmt: skip
ROW = {
    "id": "m-1", "content": "x", "type": "fact", "tags": None, "who": None, "project": None, "importance": 0.8,
    "created_at": "2026-06-01T00:00:00Z", "updated_at": "2026-06-01T00:00:00Z", "pinned": 0, "is_deleted": 0,
    "version": 1, "sourcePath": None, "runtimePath": None, "idempotencyKey": None,
}  # fmt: skip
JOB = {"id": "job-1", "status": "queued", "createdAt": "2026-06-01T00:00:00Z", "timeoutMs": 1000}
HEALTH = {
    "status": "healthy", "uptime": 1, "pid": 1, "version": "0.145.7", "port": 3850, "db": True, "shuttingDown": False,
    "updateAvailable": False, "pendingRestart": False, "pipeline": {}, "resources": {},
}  # fmt: skip
STEP = {"mark": "step", "data": {"step": "start", "session": "s1"}}
RESTART = {"mark": "fault", "data": {"kind": "restart", "on": True}}
Item = Mapping[str, Any]


def call(method: str, path: str, body: Any, status: int, answer: Any, **more: Any) -> dict[str, Any]:
    """One exchange; `query` and `headers` belong to the request."""
    request = {"method": method, "path": path, "body": body}
    request |= {name: more.pop(name) for name in ("query", "headers") if name in more}
    return {"request": request, "response": {"status": status, "body": answer}, **more}


def hook(operation: str, answer: Any, status: int = 200, **fields: Any) -> dict[str, Any]:
    """A hook of the usual session with other fields."""
    return call("POST", f"/api/hooks/{operation}", {**KEYED, **fields}, status, answer)


def start(answer: Any = FULL, status: int = 200, **fields: Any) -> dict[str, Any]:
    """A session-start."""
    return hook("session-start", answer, status, **{"source": "startup", **fields})


def prompt(answer: Any = PROMPTED, status: int = 200, **fields: Any) -> dict[str, Any]:
    """A user-prompt-submit."""
    return hook("user-prompt-submit", answer, status, userMessage="Which Postgres?", **fields)


def end(answer: Any = ENDED, **fields: Any) -> dict[str, Any]:
    """A session-end."""
    return hook("session-end", answer, cwd="/srv/atlas", **fields)


def read(answer: Any, status: int = 200, agent: str = "atlas-agent") -> dict[str, Any]:
    """GET memory/m-1 as an agent."""
    return call("GET", "/api/memory/m-1", None, status, answer, query={"agentId": agent})


def poll(answer: Any, status: int = 200) -> dict[str, Any]:
    """A look at job-1."""
    return call("GET", "/api/secrets/exec/job-1", None, status, answer)


def ran(output: str) -> dict[str, Any]:
    """A look at job-1 when it is over."""
    return poll({**JOB, "status": "completed", "result": {"stdout": output, "stderr": "", "code": 0}})


def modify(results: Any) -> dict[str, Any]:
    """Two patches with the results of the answer."""
    patches = [{"id": "m-1", "pinned": True, "reason": "r"}, {"id": "m-2", "pinned": True, "reason": "r"}]
    answer = {"total": 2, "updated": 2, "results": results}
    return call("POST", "/api/memory/modify", {"patches": patches}, 200, answer)


EXEC_BODY = {"command": "true", "secrets": {"A": "B"}}
EXEC = call("POST", "/api/secrets/exec", EXEC_BODY, 202, JOB)
PRIVATE = hook("remember", SAVED, content="x", visibility="private")
RECALLED = call("POST", "/api/memory/recall", {"query": "x", "agentId": "beacon-agent"}, 200, {"results": [ROW]})
BOTH = [{"id": "m-1", "status": "updated"}, {"id": "m-2", "status": "updated"}]
LEGACY = {"runtimePath": "legacy"}
CLAIMED = {"error": "session claimed by plugin path"}


def judged(folder: Path, items: Sequence[Item], **header: Any) -> JudgedTrace:
    """A recording of these items, judged."""
    return judge(build(folder / "trace.jsonl", items, {"daemon_version": "0.145.7", **header}, shared=False))
