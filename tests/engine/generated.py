"""Traces as Hypothesis draws them: shaped like Signet traffic, with every kind of nonsense in every place.

Drawn as the objects of their lines, so that a property can change them before they are written and read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from signet_conformance.contract import document
from signet_conformance.trace import FORMAT, Trace, encode, read

Line = dict[str, Any]

KEYS = ("k-first", "k-second", "session:k-first", "agent:atlas-agent:k-third", "agent:k-other:k-third", " k-first ")
"""Session keys, none a constant or noise, each made of words that occur nowhere else."""
KEY_WORDS = ("k-first", "k-second", "k-third")

_TEXTS = (
    "",
    " ",
    "one",
    "two",
    "# Current Date & Time\nFriday\nDeploy window is Friday 16:00 UTC; ask before a schema change.",
    "Deploy window is Friday 16:00 UTC; ask before a schema change.",
    "User: one\nAssistant: two",
    "Assistant: two\nUser: one",
    '{"role":"user","content":"one"}\n{"role":"assistant","content":"two"}',
    '{"role":',
    "sig_sk_0123456789",
    "<redacted:1>",
    "half an emoji \ud83d",
    "\ufeff",
    "\x1b[31m\u202e",
)
_NONSENSE: list[Any] = [
    None, True, False, 0, -1, 1.5, 10**30, float("nan"), float("inf"), [], [[]], ["one"], {}, {"a": {}},
]  # fmt: skip
_ODD = st.sampled_from(_NONSENSE)
_JUNK = st.recursive(_ODD | st.sampled_from(_TEXTS), lambda inner: st.lists(inner, max_size=2), max_leaves=3)


def _field(*values: object) -> st.SearchStrategy[Any]:
    """Mostly one of the values that mean something, sometimes anything at all."""
    return st.sampled_from(values) | st.sampled_from(values) | _JUNK


_BODY = {
    "harness": _field("openclaw", "test", ""),
    "sessionKey": _field(*KEYS),
    "sessionId": _field(*KEYS),
    "currentSessionKey": _field(*KEYS),
    "agentId": _field("atlas-agent", "default", "openclaw"),
    "agent_id": _field("atlas-agent"),
    "harnessAgentId": _field("native-1", "atlas-agent"),
    "parentSessionKey": _field(*KEYS),
    "runtimePath": _field("plugin", "legacy", "cli"),
    "project": _field("/srv/atlas", "/tmp/atlas"),
    "cwd": _field("/srv/atlas", "/tmp/atlas"),
    "source": _field("clear", "compact", "resume"),
    "reason": _field("clear", "session_shutdown", "a typo"),
    "claimOnly": _field(True),
    "userMessage": _field(*_TEXTS),
    "userPrompt": _field(*_TEXTS),
    "lastAssistantMessage": _field("two"),
    "transcript": _field(*_TEXTS),
    "transcriptPath": _field("/srv/atlas/s.jsonl"),
    "summary": _field(*_TEXTS),
    "capturedAt": _field("2026-06-01T12:00:00Z", "2026-06-01T12:00:00Z\n", "٢٠٢٦-06-01T12:00:00Z"),
    "createdAt": _field("2026-06-01", "2026-06-01\n"),
    "memory_feedback": _field({"m-1": 1}, {"m-1": "1"}),
    "query": _field("one"),
    "limit": _field(5, 500),
    "aggregateBudget": _field("small", "huge"),
    "content": _field(*_TEXTS),
    "idempotencyKey": _field("i-1", "i-2"),
    "metadata": _field({"idempotency_key": "i-1"}, {"idempotency_key": []}),
    "tags": _field("one", ["one"]),
    "structured": _field({"entities": []}, {"hints": 1}),
    "mode": _field("execute", "preview"),
    "ids": _field(["m-1"] * 30),
    "confirm_token": _field("c-1"),
    "if_version": _field(1, "1"),
    "patches": _field([{"id": "m-1", "content": "one", "if_version": []}]),
    "command": _field("npm publish"),
    "secrets": _field({"TOKEN": "npm-token"}),
    "hook": _field("stop"),
}
_ANSWER = {
    "sessionKnown": _field(True, False),
    "skipped": _field(True),
    "bypassed": _field(True),
    "duplicateRuntimePath": _field("legacy"),
    "inject": _field(*_TEXTS, "[memory active | /remember]"),
    "memories": _field([]),
    "identity": _field({"name": "Agent"}),
    "id": _field("j-1"),
    "status": _field("completed", "running"),
    "confirmToken": _field("c-1"),
    "requiresConfirm": _field(True),
}
_HEADERS = {
    "x-signet-runtime-path": ("plugin", "legacy", "", "cli"),
    "x-signet-session-key": (*KEYS, ""),
    "x-signet-agent-id": ("atlas-agent", "openclaw", " "),
    "x-signet-no-hooks": ("1", "0"),
    "authorization": ("Bearer <redacted:1>", "Basic x", "", "\ud800"),
    "Content-Type": ("application/json", "text/plain", ""),
}
_ROUTES = [
    (route["method"].replace("*", "GET"), route["path"].replace(":jobId", "j-1").replace(":id", "m-1"))
    for route in document("routes/0.205.json")["routes"]
    if route.get("operation")
]
_HOOKS = [route for route in _ROUTES if route[1].startswith("/api/hooks/")]
_ODD_ROUTES = [
    ("GET", "/api/memory/undefined"),
    ("DELETE", "/api/memory/%ff%20\ud800"),
    ("PATCH", "/api/memory/a/b/c"),
    ("PUT", ""),
    ("BREW", "//"),
    ("HEAD", "/health"),
    ("OPTIONS", "/api/hooks/session-start"),
]


def _some(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Line]:
    names = st.lists(st.sampled_from(sorted(fields)), max_size=9, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: fields[name] for name in chosen}))


def _fixed(needed: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[Line]:
    return st.fixed_dictionaries(needed, optional=optional)


def _bodies(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Line | None]:
    whole = st.fixed_dictionaries({"json": _some(fields)})
    return st.one_of(
        whole,
        whole,
        whole,
        st.none(),
        st.fixed_dictionaries({"json": _JUNK}),
        st.fixed_dictionaries({"text": st.sampled_from([*_TEXTS, '{"sessionKey":"k-first"}', '{"a":"\ud800"}'])}),
        st.fixed_dictionaries({"base64": st.just("e30=")}),
        st.fixed_dictionaries({"cut": st.just(True), "text": st.sampled_from(_TEXTS), "size": _JUNK, "sha256": _JUNK}),
    )


def _pairs(values: Mapping[str, Sequence[str]]) -> st.SearchStrategy[list[list[str]]]:
    pairs = [[name, value] for name, known in values.items() for value in known]
    return st.lists(st.sampled_from(pairs), max_size=4)


_STATUSES = [200, 200, 202, 204, 400, 404, 409, 500, 503, -1]
_FAULTS = ("reset", "refuse", "hang", "delay", "status", "shape", "not_json")
_VERSIONS = [None, "0.58.1", "0.145.7", "0.150", "0.189.0", "0.237.5", "9.9", "main", "\x1b"]
_TICKS: st.SearchStrategy[Any] = st.integers(0, 4_000).map(lambda tick: tick / 64)
"""Seconds without a rounding error, so that adding whole seconds moves them exactly."""
_EXCHANGES: st.SearchStrategy[Line] = _fixed(
    {
        "kind": st.just("exchange"),
        "t0": _TICKS,
        "t1": _TICKS,
        "request": st.tuples(
            st.sampled_from(_HOOKS) | st.sampled_from(_HOOKS) | st.sampled_from([*_ROUTES, *_ODD_ROUTES]),
            _pairs({"agentId": ("atlas-agent", ""), "q": ("one", " "), "if_version": ("1", "x"), "session_key": KEYS}),
            _pairs(_HEADERS),
            _bodies(_BODY),
            st.sampled_from([{}, {}, {}, {}, {}, {"incomplete": True}, {"incomplete": 1}]),
        ).map(lambda r: {"method": r[0][0], "path": r[0][1], "query": r[1], "headers": r[2], "body": r[3], **r[4]}),
        "response": st.none() | st.fixed_dictionaries({"status": st.sampled_from(_STATUSES), "body": _bodies(_ANSWER)}),
    },
    {
        "error": st.sampled_from(["client_closed", "upstream_refused", "upstream_reset", "\x07", ""]),
        "fault": st.fixed_dictionaries({"kind": _field(*_FAULTS)}),
    },
)
_MARKS = st.fixed_dictionaries(
    {
        "kind": st.just("mark"),
        "t": _TICKS,
        "name": st.sampled_from(["step", "model", "fault", "bypass", "outage", "scenario_end", "session_key", "other"]),
        "data": st.fixed_dictionaries(
            {},
            optional={
                "step": _field("prompt", "clear", "start"),
                "text": _field("one"),
                "reply": _field("two"),
                "kind": _field("refuse", "hang"),
                "on": _field(True, False),
                "state": _field("off"),
                "error": _field(None),
                "session": _field("s1", "s2"),
                "key": _field(*KEYS),
            },
        ),
    }
)
_HEADER = st.fixed_dictionaries(
    {
        "kind": st.just("header"),
        "format": st.just(FORMAT),
        "daemon_version": st.sampled_from(_VERSIONS),
        "declared": st.fixed_dictionaries(
            {},
            optional={
                "agents": st.sampled_from([["atlas-agent"], ["default"], ["atlas-agent", "default"], []]),
                "harness": st.sampled_from(["openclaw", ""]),
                "bounds_s": st.sampled_from([{"start": 15, "prompt": 5}, {"prompt": 0.5}, {}]),
                "capabilities": st.sampled_from([["session-start"], []]),
                "token": st.just(True),
                "canaries": st.sampled_from([{"<redacted:1>": "a"}, {"": "b"}, {"\ud83d": "c"}, {"one": "d"}]),
            },
        ),
    }
)
TRACES: st.SearchStrategy[list[Line]] = st.builds(
    lambda header, lines: [header, *(line | {"seq": n} for n, line in enumerate(lines, start=1))],
    _HEADER,
    st.lists(st.one_of(_EXCHANGES, _EXCHANGES, _EXCHANGES, _MARKS), max_size=10),
)
"""The lines of a trace: a header, then up to ten exchanges and marks, numbered from 1."""


def as_trace(file: Path, lines: list[Line]) -> Trace:
    """The trace of some lines, by way of a real file."""
    file.write_bytes(b"".join(encode(line) for line in lines))
    return read(file)
