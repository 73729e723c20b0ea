"""Small recordings in memory for the tests of the diff."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.diff.difference import Comparison, Difference
from signet_conformance.diff.recordings import compare
from signet_conformance.diff.volatile import VolatileClasses
from signet_conformance.facts import Recording
from signet_conformance.trace import read

Line = dict[str, Any]
KEY = "1f6f0e0c-2b57-4a7e-9d56-0b6c1c2a9f01"
OTHER_KEY = "77c1a6a4-93a5-4f1e-8a53-5d3a0e7b2c02"
Compare = Callable[..., Comparison]


def call(
    method: str, path: str, body: Any = None, *, answer: Any = None, headers: dict[str, str] | None = None, **more: Any
) -> Line:
    """One exchange without number and times."""
    sent = {"content-type": "application/json", "x-signet-runtime-path": "plugin", **(headers or {})}
    return {
        "request": {
            "method": method,
            "path": path,
            "query": [],
            "headers": [[name, value] for name, value in sent.items() if value],
            "body": None if body is None else {"json": body},
        },
        "response": {"status": 200, "headers": [], "body": {"json": {} if answer is None else answer}},
        **more,
    }


def hook(name: str, key: str = KEY, **body: Any) -> Line:
    """A lifecycle hook of a session."""
    members = {"harness": "openclaw", "agentId": "atlas-agent", "sessionKey": key, **body}
    return call("POST", f"/api/hooks/{name}", {n: v for n, v in members.items() if v is not None})


def session(key: str = KEY, project: str = "/srv/atlas") -> list[Line]:
    """A start, two prompts and an end."""
    return [
        hook("session-start", key, project=project),
        hook("user-prompt-submit", key, userMessage="Which database?"),
        hook("user-prompt-submit", key, userMessage="Which window?"),
        hook("session-end", key, cwd=project, transcript="User: Which database?", reason="session_shutdown"),
    ]


def recording(path: Path, lines: Sequence[Line], **header: Any) -> Recording:
    """The recording of these exchanges, numbered from 1 and one second apart."""
    head = {"kind": "header", "format": "signet-trace/1", "daemon_version": "0.145.7", "declared": {}, **header}
    numbered = [
        {"kind": "exchange", "seq": n, "conn": None, "t0": n * 1.0, "t1": n + 0.5, **line}
        for n, line in enumerate(lines, 1)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in (head, *numbered)))
    return Recording(read(path))


def compared(
    folder: Path, first: Sequence[Line], second: Sequence[Line], volatile: VolatileClasses | None = None
) -> Comparison:
    """The comparison of two recordings."""
    return compare(recording(folder / "a.jsonl", first), recording(folder / "b.jsonl", second), volatile)


def edited(lines: Sequence[Line], place: int, **body: Any) -> list[Line]:
    """A copy in which the body of one exchange has other members; None takes one out."""
    copied = copy.deepcopy(list(lines))
    members = copied[place]["request"]["body"]["json"]
    for name, value in body.items():
        members[name] = value
        if value is None:
            del members[name]
    return copied


def told(differences: Sequence[Difference]) -> list[tuple[str, bool, str]]:
    """Kind, relevance and member of each."""
    return [(d.kind.value, d.relevant, d.member) for d in differences]
