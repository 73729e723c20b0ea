"""Data sets for the tests of audits: recordings of one session each, with the parts of a session as building blocks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.trace_files import HEADER, Line, end, health, post, start, write

PATH = {"runtimePath": "plugin"}


def prompt(key: str, text: str = "Which database?", *, known: bool = True) -> Line:
    """A prompt of a session."""
    body = {"harness": "openclaw", "sessionKey": key, "agentId": "atlas-agent", "userMessage": text, **PATH}
    answer = {"inject": "", "memoryCount": 0, "sessionKnown": known}
    return post("/api/hooks/user-prompt-submit", body, answer=answer)


def save(key: str, idempotency: str, content: str) -> Line:
    """A save with an idempotency key, inside a session."""
    body = {"content": content, "agentId": "atlas-agent", "sessionKey": key, "idempotencyKey": idempotency}
    return post("/api/memory/remember", body, answer={"id": "m-1", "type": "fact", "importance": 0.5, "pinned": False})


def begun(key: str, **more: Any) -> list[Line]:
    """The beginning of a session."""
    return [health(), start(sessionKey=key, **PATH, **more), prompt(key)]


def ended(key: str) -> list[Line]:
    """The end of a session."""
    return [end(sessionKey=key, **PATH)]


def header(recorder: str, minute: int, target: str = "openclaw", **more: Any) -> Line:
    """The header of a recording that a recorder began so many minutes after eight."""
    created = f"2026-11-21T{8 + minute // 60:02}:{minute % 60:02}:00Z"
    return {**HEADER, "target": target, "recorder": recorder, "created": created, "connector_release": "1.2.0", **more}


def put(folder: Path, name: str, head: Line, exchanges: Sequence[Line]) -> Path:
    """Write a recording of a data set."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return write(path, exchanges, head)


def conforming(folder: Path, count: int) -> Path:
    """A data set of so many sessions that conform, each with a key, a recording and a recorder of its own."""
    for number in range(count):
        key = f"s-{number:04}"
        put(folder, f"{number:04}.jsonl", header(f"r-{number:04}", number), [*begun(key), *ended(key)])
    return folder


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table of an audit."""
    return [json.loads(line) for line in (folder / "results" / f"{name}.jsonl").read_bytes().splitlines()]


def breached(folder: Path) -> set[tuple[str, str]]:
    """What an audit found breached: the requirement, and whether only several recordings show it."""
    return {
        (row["requirement"], "between" if row["between"] else "alone")
        for row in table(folder, "breaches")
        if row["verdict"] in ("FAIL", "WARN")
    }
