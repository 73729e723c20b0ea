"""Recordings for the plugin's tests, written line by line: one that conforms, and the ways it is spoilt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from signet_conformance.trace import FORMAT, encode

SESSION: Mapping[str, Any] = {
    "harness": "openclaw",
    "sessionKey": "s-41c7",
    "agentId": "atlas-agent",
    "runtimePath": "plugin",
}
HEALTH = ("GET", "/health", None, {"status": "healthy", "version": "0.145.7"})
START = ("POST", "/api/hooks/session-start", {**SESSION, "project": "/srv/atlas"}, {"inject": ""})
PROMPT = (
    "POST",
    "/api/hooks/user-prompt-submit",
    {**SESSION, "userPrompt": "Which database?"},
    {"inject": "", "sessionKnown": True},
)
END = (
    "POST",
    "/api/hooks/session-end",
    {**SESSION, "cwd": "/srv/atlas", "transcript": "User: Which database?\nAssistant: PostgreSQL 16."},
    {"queued": True},
)
NAMELESS_END = (*END[:2], {name: value for name, value in END[2].items() if name != "harness"}, *END[3:])

PROJECTLESS_START = (*START[:2], SESSION, *START[3:])

CONFORMING = (HEALTH, START, PROMPT, END)
IMPERFECT = (HEALTH, PROJECTLESS_START, PROMPT, END)
"""Breaches SIG-START-003, a SHOULD, with exchange 2, and nothing else."""
BREACHING = (HEALTH, PROJECTLESS_START, PROMPT, NAMELESS_END)
"""Breaches SIG-END-001, a MUST, with exchange 4; and SIG-START-003."""

Call = tuple[str, str, Mapping[str, Any] | None, Mapping[str, Any]]


def write(file: Path, calls: Iterable[Call], declared: Mapping[str, Any] | None = None) -> Path:
    """A recording of these calls, numbered from 1; each begins at the second of its number."""
    lines: list[dict[str, Any]] = [
        {
            "kind": "header",
            "format": FORMAT,
            "daemon_version": "0.145.7",
            "declared": {"agents": ["atlas-agent"], "harness": "openclaw"} if declared is None else dict(declared),
        }
    ]
    lines += [_exchange(number, *call) for number, call in enumerate(calls, start=1)]
    file.write_bytes(b"".join(encode(line) for line in lines))
    return file


def _exchange(
    number: int, method: str, path: str, sent: Mapping[str, Any] | None, answered: Mapping[str, Any]
) -> dict[str, Any]:
    headers = [["content-type", "application/json"]]
    return {
        "kind": "exchange",
        "seq": number,
        "conn": 1,
        "t0": number,
        "t1": number + 0.01,
        "request": {
            "method": method,
            "path": path,
            "query": [],
            "headers": headers if sent is not None else [],
            "body": None if sent is None else {"json": sent},
        },
        "response": {"status": 200, "headers": headers, "body": {"json": answered}},
    }
