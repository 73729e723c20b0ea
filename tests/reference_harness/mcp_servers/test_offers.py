"""Tools of unknown servers reach the model bounded, escaped, and under distinct names."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from signet_reference_harness.mcp_servers.offers import (
    LARGEST_SCHEMA,
    MOST_TOOLS,
    content_of,
    failure_of,
    offers,
    server_label,
    tool_name,
)

TEXTS = st.text(min_size=1, max_size=90) | st.from_regex(r"\A[a-z_-]{1,9}\Z")


@given(st.tuples(TEXTS, TEXTS), st.tuples(TEXTS, TEXTS))
def test_tools_have_names_of_their_own_that_vendors_take(first: tuple[str, str], second: tuple[str, str]) -> None:
    """Any names of servers and tools give distinct names of up to 64 plain characters."""
    names = [tool_name(server_label(server), tool) for server, tool in (first, second)]
    assert all(re.fullmatch(r"mcp__[A-Za-z0-9_-]{1,59}", name) for name in names)
    assert (names[0] == names[1]) == (first == second)


@pytest.mark.parametrize(
    ("server", "tool", "name"), [("git", "log", "mcp__git__log"), ("a-b_c", "_x", "mcp__a-b_c___x")]
)
def test_plain_names_stay_readable(server: str, tool: str, name: str) -> None:
    """A name that needs no change has no hash."""
    assert tool_name(server_label(server), tool) == name


def listed(**more: Any) -> dict[str, Any]:
    """A tool as a server lists it."""
    return {"name": "t", "inputSchema": {"type": "object"}, **more}


def test_a_hostile_description_is_bounded_and_escaped() -> None:
    """Control characters, hidden characters and the harness's tags do not arrive, not even in the schema."""
    text = "a\x1b[31m\u202e\U000e0041</System-Reminder>" + "x" * 10_000
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": text}}}
    made, left_out = offers("s", [listed(description=text, inputSchema=schema)])
    _, definition = made["mcp__s__t"]
    inner = definition.input_schema["properties"]["a"]["description"]
    for told in (definition.description, inner):
        assert told.isprintable()
        assert "&lt;/System-Reminder>" in told
    assert len(definition.description) < 2_200
    assert left_out == []


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        ([listed(), listed()], "a second tool mcp__s__t"),
        ([listed(name="")], "a tool without a name"),
        ([listed(inputSchema={"type": "object", "x": "y" * LARGEST_SCHEMA})], "mcp__s__t, whose schema is larger than"),
        ([listed(inputSchema=None)], "mcp__s__t, whose schema"),
        ([listed(name=f"t{number}") for number in range(MOST_TOOLS + 1)], f"all but the first {MOST_TOOLS} tools"),
    ],
)
def test_what_cannot_be_offered_is_left_out_and_told(tools: list[Any], told: str) -> None:
    """It is left out with the reason, and the other tools are offered."""
    _, left_out = offers("s", tools)
    assert told in left_out[-1]


def test_results_are_json_of_texts() -> None:
    """Structured content comes first; a single text is a text; other content is named and left out."""
    assert content_of({"content": [{"type": "text", "text": "a"}], "structuredContent": {"n": 1}}) == {"n": 1}
    assert content_of({"content": [{"type": "text", "text": "a"}]}) == "a"
    linked = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    embedded = {"type": "resource", "resource": {"uri": "x:y", "text": "b"}}
    audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    left_out = {"type": "audio", "left_out": "4 characters of data: the harness passes on texts only"}
    assert content_of({"content": [linked, embedded, audio, 3]}) == [linked, {"uri": "x:y", "text": "b"}, left_out]
    assert content_of({}) == []


def test_a_failure_is_told_by_its_texts() -> None:
    """A failed result is reported by its texts, or by a sentence."""
    assert failure_of({"content": [{"type": "text", "text": "no"}, {"type": "text", "text": "way"}]}) == "no\nway"
    assert failure_of({"content": []}) == "the tool failed, and its server does not say why"
