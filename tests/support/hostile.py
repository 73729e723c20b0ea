"""A trace that says hostile things wherever a trace says anything, for the tests of what is shown of it."""

from __future__ import annotations

from pathlib import Path

from tests.support.trace_files import HEADER, Line, health, post, recall, start, write

SCRIPT = "<script>owned()</script></script><!--<img src=x onerror=owned()>\"'><svg onload=owned()>]]>&lt;"
TERMINAL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x00\r\b\x7f"
BIDI = "\u202egnp.\u2066\u2069\u200f\u061c\u200b\ufeff\u2028"
MARKDOWN = "[x](javascript:owned()) ![i](http://owned.invalid/i.png) | `b` ``` ~~~ **o** # h @owned #1 {0} {{1}}"
FORMULA = "=HYPERLINK(\"http://owned.invalid\";1)+cmd|' /C owned'!A0"
HOSTILE = SCRIPT + TERMINAL + BIDI + MARKDOWN
LONG = "A" * 10_000_000
MOST = 3_000_000
"""Characters of an output: a text of ten million does not go through."""


def hostile_trace(path: Path, more: str = "") -> Path:
    """A trace that says hostile things wherever a trace says anything, and breaches requirements with them."""
    bad = FORMULA + HOSTILE + more
    declared = {"agents": [bad], "harness": bad, "capabilities": [bad, "session-start"], "canaries": {bad: bad}}
    exchanges: list[Line] = [
        health(),
        post(f"/api/hooks/{bad}", {"harness": bad, bad: bad}, fault={"kind": bad}),
        start(harness=bad, sessionKey=bad, agentId=bad, project=bad),
        {"kind": "mark", "t": 3.0, "name": bad, "data": {bad: bad}},
        recall(query=[7], agentId=bad, sessionKey=bad, limit=bad),
        post(
            "/api/hooks/user-prompt-submit", {"harness": bad, "sessionKey": bad, "userMessage": LONG, "userPrompt": bad}
        ),
        post("/api/hooks/session-end", {"harness": "", "sessionKey": bad, "transcript": [bad]}, answer={bad: bad}),
        post("/api/memory/remember", {"content": 7, "agentId": bad, bad: LONG}, status=500),
    ]
    exchanges[2]["request"]["query"] = [[bad, bad]]
    exchanges[2]["request"]["headers"] = [[bad, bad], ["x-signet-runtime-path", bad]]
    exchanges[5]["error"] = {"kind": bad}
    exchanges[6]["request"]["method"] = bad
    return write(path, exchanges, {**HEADER, "target": bad, "declared": declared, "daemon_version": f"0.145.7{bad}"})
