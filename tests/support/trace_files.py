"""Small traces on disk for the tests of commands and reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Line = dict[str, Any]

KEY = "s-41c7"
HEADER: Line = {
    "kind": "header",
    "format": "signet-trace/1",
    "created": "2026-11-21T20:17:00Z",
    "daemon_version": "0.145.7",
    "declared": {"agents": ["atlas-agent"], "harness": "openclaw", "bounds_s": {"start": 15.0}},
}


def post(path: str, body: Any, *, status: int = 200, answer: Any = None, **more: Any) -> Line:
    """One POST on the plugin path, without number and times."""
    headers = [["content-type", "application/json"], ["x-signet-runtime-path", "plugin"]]
    return {
        "request": {"method": "POST", "path": path, "query": [], "headers": headers, "body": {"json": body}},
        "response": {"status": status, "headers": [], "body": {"json": {} if answer is None else answer}},
        **more,
    }


def health() -> Line:
    """The probe that comes first."""
    line = post(
        "/health", None, answer={"status": "healthy", "uptime": 12.5, "pid": 7, "version": "0.145.7", "db": True}
    )
    line["request"].update(method="GET", body=None)
    return line


def start(**more: Any) -> Line:
    """A session-start that conforms, but for what `more` replaces."""
    body = {"harness": "openclaw", "sessionKey": KEY, "agentId": "atlas-agent", "project": "/srv/atlas"}
    return post(
        "/api/hooks/session-start", {**body, **more}, answer={"identity": {"name": "Rig"}, "inject": "", "memories": []}
    )


def recall(**more: Any) -> Line:
    """A recall inside the session, as the agent `default` unless `more` names one."""
    meta = {"totalReturned": 0, "hasSupplementary": False, "noHits": True}
    answer = {"results": [], "query": "window", "method": "hybrid", "meta": meta}
    return post("/api/memory/recall", {"query": "window", "sessionKey": KEY, **more}, answer=answer)


def end(**more: Any) -> Line:
    """A session-end that conforms, but for what `more` replaces."""
    body = {
        "harness": "openclaw",
        "sessionKey": KEY,
        "agentId": "atlas-agent",
        "cwd": "/srv/atlas",
        "transcript": "User: Which database?\nAssistant: PostgreSQL 16.",
        "reason": "session_shutdown",
    }
    return post("/api/hooks/session-end", {**body, **more}, answer={"memoriesSaved": 0, "queued": True, "jobId": "j-1"})


CONFORMING = [health(), start(), recall(agentId="atlas-agent"), end()]
BREACHING = [health(), start(), recall(), recall(), end()]
"""Both recalls run as `default`: SIG-AGENT-002 fails twice, SIG-AGENT-001 once."""


def write(path: Path, exchanges: Sequence[Line], header: Line | None = None) -> Path:
    """Write a trace of these exchanges, numbered from 1; a line that has a kind is written as it is."""
    lines = [header or HEADER]
    for number, line in enumerate(exchanges, 1):
        numbered = {"seq": number, **line}
        if "kind" not in line:
            numbered = {"kind": "exchange", "conn": 1, "t0": number * 1.0, "t1": number * 1.0 + 0.01, **numbered}
        lines.append(numbered)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
