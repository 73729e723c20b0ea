"""Text that databases, search and file systems stumble over, in every member of every request: no daemon fails."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest

from signet_conformance.daemon.http.app import ROUTES
from tests.daemon.conftest import Kit, clock, start

__all__ = ["clock", "start"]

TEXTS = [
    *(
        "a\0b",
        "\ud800",
        '"a" OR',
        "NEAR(",
        "a*",
        "^a:b",
        "' OR 1=1 --",
        "../../etc/passwd",
        "a" * 5000,
        "\u202e\r\n",
        "{}",
    ),
]
MEMBERS = (
    *(
        "harness",
        "sessionKey",
        "sessionId",
        "agentId",
        "project",
        "cwd",
        "userMessage",
        "userPrompt",
        "query",
        "content",
    ),
    *("transcript", "summary", "reason", "source", "tags", "who", "type", "scope", "visibility", "keyword_query", "id"),
    *("since", "until", "key", "value", "command", "message", "to", "from", "action", "hook", "title", "path", "name"),
)
ANSWERED_500 = {"/api/secrets/:name": "Invalid secret name", "/api/hooks/remember": "Internal Server Error"}
"""What real daemons answer so: a name that no secret can have, and a session key that no header can hold."""
LEFT_OUT = frozenset({"/api/secrets/exec", "/api/secrets/:name/exec", "/api/hooks/synthesis/complete"})
"""What a program makes of its command is its own affair, and nobody works at a synthesis."""


def filled(kit: Kit) -> None:
    """Give the daemon something to find."""
    kit.hook("session-start", sessionKey="s-1", agentId="default", project="/srv/atlas", path="plugin")
    kit.hook("user-prompt-submit", sessionKey="s-1", agentId="default", userMessage="When do we deploy?", path="plugin")
    kit.hook(
        "session-end", sessionKey="s-1", agentId="default", transcript="User: When?\nAssistant: Friday.", path="plugin"
    )
    kit.remember("Deploy window is Friday 16:00 UTC")


@pytest.mark.parametrize("version", ["0.58", "0.109", "0.145", "0.205", "0.237"])
def test_no_text_makes_it_fail(start: Callable[..., Kit], version: str) -> None:
    """Whatever the route: as each member, as the part of a path, as a field of a query."""
    kit = start(version=version)
    filled(kit)
    routes = {(route.method, route.path): route for route in ROUTES if route.path not in LEFT_OUT}
    for text in TEXTS:
        hostile = dict.fromkeys(MEMBERS, text)
        usual = {**hostile, "harness": "claude-code", "sessionKey": "s-2", "agentId": "default"}
        sent = text.encode("utf-8", "replace")[:2000]
        for method, path in routes:
            bodies = [hostile, usual] if method in ("POST", "PATCH", "DELETE") else [None]
            for body in bodies:
                answer = kit.send(
                    method.replace("*", "GET"),
                    re.sub(r":\w+", quote(sent, safe="") or "x", path),
                    content=b"" if body is None else json.dumps(body).encode(),
                    headers={"content-type": "application/json"},
                    params={"q": sent, "limit": "5"},
                )
                meant = path in ANSWERED_500 and ANSWERED_500[path] in answer.text
                assert answer.status_code < 500 or meant, (text[:40], method, path, answer.text[:300])
