"""What one exchange means to the daemon: key, agent, runtime path, acceptance, operation; the law's tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.facts import Call, Recording, pattern_agent, text_or_none
from signet_conformance.trace.glance import normalised_key
from tests.support.case_traces import build

HOOKS = {
    "session-start": "/api/hooks/session-start",
    "user-prompt-submit": "/api/hooks/user-prompt-submit",
    "session-end": "/api/hooks/session-end",
    "pre-compaction": "/api/hooks/pre-compaction",
    "compaction-complete": "/api/hooks/compaction-complete",
    "session-checkpoint-extract": "/api/hooks/session-checkpoint-extract",
    "skill-invocation": "/api/hooks/skill-invocation",
    "hooks-remember": "/api/hooks/remember",
    "hooks-recall": "/api/hooks/recall",
}
POSTED = {
    **HOOKS,
    "memory-remember": "/api/memory/remember",
    "memory-recall": "/api/memory/recall",
    "sessions-search": "/api/sessions/search",
    "memory-feedback": "/api/memory/feedback",
    "memory-modify": "/api/memory/modify",
    "memory-forget": "/api/memory/forget",
}
READ = {"memory-get": "/api/memory/m-1", "memory-search": "/api/memory/search"}

Source = tuple[str, str]
"""Part of the request (body, query, header) and the name in it."""

BODY_AGENT, BODY_AGENT_SNAKE = ("body", "agentId"), ("body", "agent_id")
QUERY_AGENT, QUERY_AGENT_SNAKE = ("query", "agentId"), ("query", "agent_id")
HEADER_AGENT, HEADER_KEY = ("header", "x-signet-agent-id"), ("header", "x-signet-session-key")
BODY_KEY, BODY_ID, CURRENT_KEY = ("body", "sessionKey"), ("body", "sessionId"), ("body", "currentSessionKey")
QUERY_KEY, QUERY_KEY_SNAKE = ("query", "sessionKey"), ("query", "session_key")
KEYS = {BODY_KEY, BODY_ID, CURRENT_KEY, HEADER_KEY, QUERY_KEY, QUERY_KEY_SNAKE}
SOURCES = KEYS | {BODY_AGENT, BODY_AGENT_SNAKE, QUERY_AGENT, QUERY_AGENT_SNAKE, HEADER_AGENT}

AGENT_ROWS: dict[str, Sequence[Source]] = {
    "session-start": (BODY_AGENT, BODY_KEY),
    "user-prompt-submit": (BODY_AGENT, BODY_KEY),
    "session-end": (BODY_AGENT, BODY_KEY, BODY_ID),
    "pre-compaction": (BODY_AGENT, BODY_KEY),
    "compaction-complete": (BODY_AGENT, BODY_KEY),
    "session-checkpoint-extract": (BODY_AGENT, BODY_KEY),
    "skill-invocation": (BODY_AGENT, BODY_KEY, BODY_ID),
    "memory-remember": (BODY_AGENT, HEADER_KEY),
    "hooks-remember": (BODY_AGENT, HEADER_KEY, BODY_KEY),
    "memory-recall": (BODY_AGENT, BODY_KEY, HEADER_KEY),
    "hooks-recall": (BODY_AGENT, HEADER_AGENT, BODY_KEY),
    "sessions-search": (BODY_AGENT, BODY_AGENT_SNAKE, QUERY_AGENT_SNAKE, CURRENT_KEY, BODY_KEY),
    "memory-feedback": (BODY_AGENT,),
    "memory-get": (QUERY_AGENT, QUERY_AGENT_SNAKE, HEADER_AGENT, HEADER_KEY),
    "memory-search": (QUERY_AGENT, QUERY_AGENT_SNAKE, HEADER_AGENT, HEADER_KEY, QUERY_KEY, QUERY_KEY_SNAKE),
    "memory-modify": (),
    "memory-forget": (),
}
"""The law's table (c): where each operation's agent comes from, the first that is not blank."""

KEY_ROWS: dict[str, Sequence[Source]] = {
    **dict.fromkeys(HOOKS, (BODY_KEY,)),
    "session-end": (BODY_KEY, BODY_ID),
    "skill-invocation": (BODY_KEY, BODY_ID),
    "hooks-remember": (HEADER_KEY, BODY_KEY),
    "memory-remember": (HEADER_KEY, BODY_KEY),
    "memory-recall": (BODY_KEY, HEADER_KEY),
    "memory-feedback": (BODY_KEY, HEADER_KEY),
    "sessions-search": (BODY_KEY,),
    "memory-get": (BODY_KEY, HEADER_KEY),
    "memory-search": (BODY_KEY, HEADER_KEY),
    "memory-modify": (),
    "memory-forget": (),
}
"""The law's term 'raw key': where each operation's key comes from, the first that is not blank."""

BLANKS: list[Any] = [None, "", " \t", 7, ["agent:x"], {"agent": "x"}, True]


def _call(folder: Path, operation: str, values: dict[Source, Any], **outcome: Any) -> Call:
    body = {name: value for (part, name), value in values.items() if part == "body"}
    request = {
        "method": "POST" if operation in POSTED else "GET",
        "path": POSTED.get(operation) or READ[operation],
        "query": {name: value for (part, name), value in values.items() if part == "query"},
        "headers": {name: value for (part, name), value in values.items() if part == "header"},
        **({"body": body} if body or operation in POSTED else {}),
    }
    [call] = Recording(build(folder / "trace.jsonl", [{"request": request, **outcome}])).calls
    assert call.operation == operation
    return call


def _agent_of(source: Source) -> str:
    return f"{source[0]}-{source[1]}"


def _value(source: Source) -> str:
    return f"agent:{_agent_of(source)}:k1" if source in KEYS else _agent_of(source)


@pytest.mark.parametrize("operation", AGENT_ROWS)
def test_an_operation_takes_its_agent_from_the_first_source(operation: str, tmp_path: Path) -> None:
    """Each source of the row counts once those before it are absent, and default at last."""
    row = AGENT_ROWS[operation]
    for place in range(len(row)):
        values: dict[Source, Any] = {source: _value(source) for source in row[place:]}
        assert _call(tmp_path, operation, values).agent == _agent_of(row[place])
    assert _call(tmp_path, operation, {}).agent == "default"


@pytest.mark.parametrize("operation", AGENT_ROWS)
def test_no_other_source_names_the_agent(operation: str, tmp_path: Path) -> None:
    """What the row does not name is not read."""
    others = {source: _value(source) for source in SOURCES - set(AGENT_ROWS[operation])}
    if operation in READ:
        others = {source: value for source, value in others.items() if source[0] != "body"}
    assert _call(tmp_path, operation, others).agent == "default"


@pytest.mark.parametrize("operation", [name for name, row in AGENT_ROWS.items() if len(row) > 1])
def test_a_blank_agent_leaves_the_next_source(operation: str, tmp_path: Path) -> None:
    """White space and values that are no string are absent."""
    first, second, *_ = AGENT_ROWS[operation]
    for blank in BLANKS if first[0] == "body" else ["", " \t"]:
        values = {first: blank, second: _value(second)}
        assert _call(tmp_path, operation, values).agent == _agent_of(second), blank


@pytest.mark.parametrize("operation", ["session-end", "skill-invocation"])
def test_a_plain_key_hides_the_pattern_of_the_id(operation: str, tmp_path: Path) -> None:
    """The pattern is the raw key's, and the raw key is the first that is not blank."""
    assert _call(tmp_path, operation, {BODY_KEY: "s1", BODY_ID: "agent:a:s1"}).agent == "default"


def test_agents_are_trimmed(tmp_path: Path) -> None:
    """White space around an agent id is not part of it, wherever it stands."""
    assert _call(tmp_path, "session-start", {BODY_AGENT: " atlas "}).agent == "atlas"
    assert _call(tmp_path, "hooks-recall", {HEADER_AGENT: " atlas "}).agent == "atlas"
    assert _call(tmp_path, "session-start", {BODY_KEY: "agent: atlas :k1"}).agent == "atlas"


@pytest.mark.parametrize("operation", KEY_ROWS)
def test_an_operation_takes_its_key_from_the_first_source(operation: str, tmp_path: Path) -> None:
    """Each source of the row counts once those before it are blank; others are not read."""
    row = KEY_ROWS[operation]
    for place, source in enumerate(row):
        values: dict[Source, Any] = {**dict.fromkeys(row[:place], " "), **{s: f"k-{s[1]}" for s in row[place:]}}
        assert _call(tmp_path, operation, values).key == f"k-{source[1]}"
    others: dict[Source, Any] = dict.fromkeys(KEYS - set(row), "k")
    assert _call(tmp_path, operation, others).key is None


@pytest.mark.parametrize("value", BLANKS)
def test_a_key_is_a_string_that_is_not_blank(value: Any, tmp_path: Path) -> None:
    """Nothing else is a key, not even a number."""
    assert _call(tmp_path, "session-start", {BODY_KEY: value}).key is None


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        (None, None),
        ("s1", "s1"),
        (" s1\t", "s1"),
        ("session:s1", "s1"),
        (" session:s1 ", "s1"),
        ("session:session:s1", "session:s1"),
        ("session:", None),
        ("Session:s1", "Session:s1"),
        ("my-session:s1", "my-session:s1"),
        ("session", "session"),
        ("agent:a:s1", "agent:a:s1"),
    ],
)
def test_a_key_is_normalised(raw: str | None, key: str | None) -> None:
    """White space around it and one prefix `session:` are no part of a key; case is."""
    assert normalised_key(raw) == key


@pytest.mark.parametrize(
    ("raw", "agent"),
    [
        (None, None),
        ("agent:atlas", "atlas"),
        ("agent:atlas:s1", "atlas"),
        ("agent:atlas:a:b", "atlas"),
        ("agent:", None),
        ("agent::s1", None),
        ("agent: :s1", None),
        ("agent", None),
        ("Agent:atlas:s1", None),
        ("session:agent:atlas:s1", None),
        ("my-agent:atlas", None),
        ("s1", None),
    ],
)
def test_a_key_may_name_an_agent(raw: str | None, agent: str | None) -> None:
    """Only a raw key that begins `agent:` and has a name there."""
    assert pattern_agent(raw) == agent


@pytest.mark.parametrize(
    ("header", "body", "path"),
    [
        ("plugin", None, "plugin"),
        (None, "legacy", "legacy"),
        ("legacy", "plugin", "legacy"),
        ("", "plugin", "plugin"),
        ("cli", "plugin", None),
        ("Plugin", None, None),
        (None, "cli", None),
        (None, "", None),
        (None, 1, None),
        (None, ["plugin"], None),
        (None, None, None),
    ],
)
def test_the_runtime_path_of_a_call(header: str | None, body: Any, path: str | None, tmp_path: Path) -> None:
    """The header counts if it is not empty, known or not; anything but the two words is not a path."""
    values = {("header", "x-signet-runtime-path"): header, ("body", "runtimePath"): body}
    assert _call(tmp_path, "session-start", values).runtime_path == path


ACCEPTED: dict[str, tuple[dict[str, Any], bool]] = {
    "200 with an object": ({}, True),
    "202 with an object": ({"response": {"status": 202, "body": {}}}, True),
    "an object as text": ({"response": {"status": 200, "raw_body": {"text": "{}"}}}, True),
    "500": ({"response": {"status": 500, "body": {}}}, False),
    "302": ({"response": {"status": 302, "body": {}}}, False),
    "no answer": ({"response": None, "error": {"kind": "upstream_reset"}}, False),
    "nobody heard it": ({"error": {"kind": "client_closed"}}, False),
    "no body": ({"response": {"status": 204, "body": None}}, False),
    "a list": ({"response": {"status": 200, "raw_body": {"json": []}}}, False),
    "HTML": ({"response": {"status": 200, "raw_body": {"text": "<html>"}}}, False),
    "a cut answer": ({"response": {"status": 200, "raw_body": {"cut": True, "size": 9, "sha256": ""}}}, False),
    **{
        f"fault {kind}": ({"fault": {"kind": kind}}, False)
        for kind in ("reset", "refuse", "hang", "status", "not_json", "empty", "shape")
    },
    **{
        f"fault {kind}": ({"fault": {"kind": kind}}, True) for kind in ("delay", "slow_body", "extra_fields", "restart")
    },
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_when_a_call_is_accepted(name: str, tmp_path: Path) -> None:
    """A 2xx with a readable object that somebody heard and no fault made up; late answers count."""
    outcome, accepted = ACCEPTED[name]
    assert _call(tmp_path, "session-start", {}, **outcome).accepted is accepted


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), ("", None), (" \n", None), (7, None), (["a"], None), (True, None), (" a ", "a"), ("a b", "a b")],
)
def test_what_is_blank(value: Any, text: str | None) -> None:
    """Absent, no string, empty or white space."""
    assert text_or_none(value) == text


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("POST", "/api/memory/save", "memory-remember"),
        ("POST", "/api/hook/remember", "memory-remember"),
        ("GET", "/api/memory/recall", "memory-get"),
        ("GET", "/api/memory/search", "memory-search"),
        ("DELETE", "/api/memory/search", "memory-delete"),
        ("GET", "/api/memories", "memories-list"),
        ("GET", "/api/secrets/exec/j-1", "secrets-exec-job"),
        ("HEAD", "/health", None),
        ("OPTIONS", "/api/hooks/session-start", None),
        ("GET", "/api/hooks/session-start", None),
        ("POST", "/api/hooks/session-start/", None),
        ("GET", "/api/status", None),
    ],
)
def test_the_operation_of_a_request(method: str, path: str, operation: str | None, tmp_path: Path) -> None:
    """Method and path decide; a preflight or a HEAD is no call of the operation."""
    [call] = Recording(build(tmp_path / "t.jsonl", [{"request": {"method": method, "path": path}}])).calls
    assert call.operation == operation


def test_a_cut_body_has_no_field(tmp_path: Path) -> None:
    """Key, agent and text of a body that was kept in part are unknown, whatever text was kept."""
    cut = {"cut": True, "size": 99, "sha256": "ab", "text": '{"sessionKey":"s1","agentId":"atlas"}'}
    request = {"method": "POST", "path": HOOKS["session-start"], "raw_body": cut}
    recording = Recording(build(tmp_path / "t.jsonl", [{"request": request}]))
    [call] = recording.calls
    assert (call.cut, call.key, call.agent, call.text, call.body) == (True, None, "default", None, {})
    assert recording.of("session-start") == []
    assert recording.of("session-start", cut=True) == [call]
    assert recording.hooks == []


def test_the_text_of_a_prompt(tmp_path: Path) -> None:
    """`userMessage` if it is not blank, else `userPrompt`, as sent."""
    message, prompt = ("body", "userMessage"), ("body", "userPrompt")
    for values, text in (
        ({message: " a ", prompt: "b"}, " a "),
        ({message: " ", prompt: "b"}, "b"),
        ({message: 7, prompt: "b"}, "b"),
        ({message: "", prompt: None}, None),
    ):
        assert _call(tmp_path, "user-prompt-submit", dict(values)).text == text


def test_queries_and_headers_count_once(tmp_path: Path) -> None:
    """Of a name that stands twice the first value counts."""
    request = {
        "method": "GET",
        "path": "/api/memory/m-1",
        "query": [["agentId", "one"], ["agentId", "two"]],
        "headers": [["X-Signet-Session-Key", "k1"], ["x-signet-session-key", "k2"]],
    }
    [call] = Recording(build(tmp_path / "t.jsonl", [{"request": request}])).calls
    assert (call.agent, call.key) == ("one", "k1")
