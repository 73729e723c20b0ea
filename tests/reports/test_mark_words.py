"""Facts about marks in words: a reader needs no JSON, and what is not the kit's is shown as it is."""

from __future__ import annotations

from typing import Any

import pytest

from signet_conformance.reports.values import mark_words
from signet_conformance.trace import Mark


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("scenario", {"name": "plain", "title": "A turn"}, "scenario plain: A turn"),
        ("scenario_end", {"name": "plain", "error": None}, "scenario plain ends"),
        ("scenario_end", {"name": "plain", "error": "gone"}, "scenario plain broke off: gone"),
        ("step", {"index": 0, "step": "start", "agent": "ada", "session": "s1"}, "step 0: start in s1 as ada"),
        ("step", {"index": 1, "step": "prompt", "text": "Where?", "session": "s1"}, 'step 1: prompt in s1, "Where?"'),
        ("step", {"step": "tool", "tool": "memory_get"}, "step: tool memory_get"),
        ("skipped", {"index": 2, "reason": "no tools"}, "step 2 is skipped: no tools"),
        ("model", {"session": "s1"}, "the model is asked in s1"),
        ("handler", {"event": "start", "outcome": "failed", "status": 2}, "handler of start failed with status 2"),
        (
            "handler",
            {"event": "start", "outcome": "slow", "ms": 2100.4, "status": 0},
            "handler of start was slow after 2100 ms",
        ),
        (
            "handler",
            {"event": "prompt", "outcome": "thrown", "text": f"Error: {'x' * 150} at connector.py:14"},
            f"handler of prompt threw: Error: {'x' * 150} at connector.py:14",
        ),
        (
            "handler",
            {"event": "end", "outcome": "timed_out", "ms": 60000},
            "handler of end gave no answer after 60000 ms",
        ),
        ("sent", {"index": 1, "requests": [["POST", "/api/x", "a.ts:3"]]}, "sent /api/x by a.ts:3"),
        ("loaded", {"ok": True, "host": "pi", "release": "1.2"}, "the connector is loaded by pi 1.2"),
        ("loaded", {"ok": False, "words": "no such module"}, "the connector cannot be loaded: no such module"),
        (
            "stray",
            {"method": "GET", "path": "/", "address": "a:1"},
            "GET / went to a:1, not to the address that the connector was given",
        ),
        ("session_key", {"session": "s1", "key": "a-1"}, "the harness knows s1 as a-1"),
        ("unheard_port", {"words": "who holds it"}, "the default port is not observed: who holds it"),
        (
            "refused",
            {"origin": "null", "method": "GET", "path": "/health"},
            "GET /health was refused as a web page's (Origin: null)",
        ),
        ("no_request", {"conn": 1, "words": "9 bytes came"}, "no request: 9 bytes came"),
        ("remark", {"text": "loaded twice"}, "loaded twice"),
        ("offered", {"tools": {"memory_get": ["id"], "memory_list": []}}, "offers the tools memory_get, memory_list"),
        ("tool_answer", {"index": 3, "done": True}, "the tool tells the model that it is done"),
        ("reinstalled", {"how": "again"}, "installed again"),
        (
            "reinstalled",
            {"how": "over", "older": "0.9", "old": ["a.json: /x"], "twice": ["b", "c"], "changed": ["d"]},
            "installed over 0.9: 2 entries twice, 1 old, 1 of others changed",
        ),
        ("bypass", {"on": True}, "the user switches Signet off"),
        ("outage", {"on": True}, "the daemon is away"),
        ("outage", {"on": False}, "the daemon is back"),
        (
            "fault",
            {"on": True, "kind": "status", "match": {"path": "/api/x"}, "id": 6, "status": 409},
            "fault on: status (status 409) at /api/x",
        ),
        ("fault", {"on": False, "kind": "refuse", "match": {}, "id": 3}, "fault off: refuse at every request"),
        ("fault", {"kind": "restart"}, "the daemon is restarted"),
    ],
)
def test_a_mark_of_the_kit_is_a_sentence(name: str, data: dict[str, Any], words: str) -> None:
    """What the user did, what was switched, what became of it."""
    assert mark_words(Mark(seq=1, t=0.0, name=name, data=data)) == words


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("lunch", {"at": 12}, 'mark lunch {"at": 12}'),
        ("lunch", {}, "mark lunch"),
        ("step", {"step": 7}, 'mark step {"step": 7}'),
        ("handler", {"event": "start"}, 'mark handler {"event": "start"}'),
        ("loaded", {}, "mark loaded"),
        ("sent", {"requests": [["POST"]]}, 'mark sent {"requests": [["POST"]]}'),
        ("remark", {"text": ""}, 'mark remark {"text": ""}'),
        ("remark", {"text": 3}, 'mark remark {"text": 3}'),
        ("fault", {"on": True}, 'mark fault {"on": true}'),
    ],
)
def test_what_cannot_be_worded_is_shown_as_it_is(name: str, data: dict[str, Any], words: str) -> None:
    """Of another name, or without what it would say."""
    assert mark_words(Mark(seq=1, t=0.0, name=name, data=data)) == words


def test_hostile_text_is_harmless_and_short() -> None:
    """No escape sequence reaches a terminal, and a long text is cut."""
    words = mark_words(Mark(seq=1, t=0.0, name="step", data={"step": "prompt", "text": "\x1b[31m" + "a" * 900}), 80)
    assert "\x1b" not in words
    assert len(words) <= 90
