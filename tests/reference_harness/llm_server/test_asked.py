"""Requests of all interfaces are read into one form, whatever they contain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from signet_reference_harness.llm_server.playback import ScriptedRequest
from signet_reference_harness.llm_server.protocols import APIS

from .served import Serve
from .test_vendor_types import PATHS

CALL_ID = "call_1"
FUNCTION = {"name": "recall", "arguments": "{}"}
TALKS: dict[str, dict[str, Any]] = {
    "anthropic-messages": {
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": CALL_ID, "name": "recall", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": CALL_ID, "content": [{"type": "text", "text": "three"}]},
                    {"type": "text", "text": "and?"},
                ],
            },
        ],
        "tools": [{"name": "recall"}],
    },
    "openai-completions": {
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "tool_calls": [{"id": CALL_ID, "type": "function", "function": FUNCTION}]},
            {"role": "tool", "tool_call_id": CALL_ID, "content": "three"},
            {"role": "user", "content": "and?"},
        ],
        "tools": [{"type": "function", "function": {"name": "recall"}}],
    },
    "openai-responses": {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "call_id": CALL_ID, **FUNCTION},
            {"type": "function_call_output", "call_id": CALL_ID, "output": "three"},
            {"type": "message", "role": "user", "content": "and?"},
        ],
        "tools": [{"type": "function", "name": "recall"}],
    },
    "ollama-chat": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "recall", "arguments": {}}}]},
            {"role": "tool", "tool_call_id": CALL_ID, "content": "three"},
            {"role": "user", "content": "and?"},
        ],
        "tools": [{"type": "function", "function": {"name": "recall"}}],
    },
}
NAMES = (
    "content function id input instructions messages model name role stream summary system text tool_calls tools type"
)
MEMBERS = st.sampled_from(NAMES.split())
WORDS = st.sampled_from(["user", "tool_result", "function_call_output", "reasoning", "x_call", "\ud83d", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.NAME)
def test_a_talk_reads_alike_in_every_interface(api: Any) -> None:
    """System prompt, conversation, tool call and result have the same order and names."""
    asked: ScriptedRequest = api.parse({"model": "m", "stream": True, **TALKS[api.NAME]})
    assert [(message.role, message.text) for message in asked.messages] == [
        ("system", "Be brief."),
        ("user", "hi"),
        ("assistant", ""),
        ("tool", "three"),
        ("user", "and?"),
    ]
    assert [message.tool_calls for message in asked.messages if message.role == "assistant"] == [("recall",)]
    assert [message.tool_call_id for message in asked.messages if message.role == "tool"] == [CALL_ID]
    assert (asked.model, asked.stream, asked.tools) == ("m", True, ("recall",))


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.NAME)
@given(body=st.dictionaries(MEMBERS, VALUES, max_size=5))
def test_an_odd_request_is_read_as_far_as_it_goes(api: Any, body: dict[str, Any]) -> None:
    """No request crashes the reader."""
    asked = api.parse(body)
    assert asked.api == api.NAME


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("content", ['{"model": "\\ud83d", "stream": false, "input": "\\ud83d"}', '{"model": NaN}'])
def test_what_no_text_can_hold_is_kept_and_shown(serve: Serve, api: str, content: str) -> None:
    """Half an emoji is answered in JSON and shown; NaN, which is not JSON, is refused and shown as text."""
    served = serve(turns=[{"content": "Hi"}])
    answer = served.http.post(PATHS[api], content=content)
    (kept,) = served.requests()
    assert answer.status_code == (400 if "NaN" in content else 200)
    assert (kept["body"] is None) == ("NaN" in content)
    answer.json()
