"""Tool steps in the terms of a connector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from signet_conformance.drivers.hosts.protocol import Skipped
from signet_conformance.drivers.hosts.tools import SECRET_EXEC, SECRET_STATUS, tool_calls, use_tool

STEP = {"step": "tool", "tool": SECRET_EXEC, "arguments": {"command": "true"}}
TOOLS = {SECRET_EXEC: None, SECRET_STATUS: None}


@pytest.mark.parametrize(
    ("answer", "polls"), [({"jobId": "j1"}, ["j1"]), ({"id": "j2"}, ["j2"]), ({"stdout": "done"}, []), ({"id": 7}, [])]
)
def test_only_a_job_that_was_named_is_asked_for(answer: Mapping[str, Any], polls: list[str]) -> None:
    """A command that is answered at once has no job, and no model asks for the job `None`."""
    asked: list[str] = []

    def run(name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        if name == SECRET_EXEC:
            return json.dumps(answer), False
        asked.append(arguments["jobId"])
        return json.dumps({"status": "succeeded"}), False

    use_tool(STEP, TOOLS, {}, run, lambda _session, _arguments: None)
    assert asked == polls


def schema(*members: str, **more: Any) -> Mapping[str, Any]:
    """The schema of a tool that offers these members, texts all of them."""
    return {"type": "object", "properties": {name: {"type": "string"} for name in members}, **more}


IDS = {"mode": "execute", "ids": ["a", "b"], "reason": "old"}


@pytest.mark.parametrize(
    ("tool", "arguments", "offered", "told", "calls"),
    [
        ("memory_get", {"id": "a", "tags": "t"}, schema("id"), {"id": "a"}, [{"id": "a"}]),
        ("memory_get", {"id": "a", "tags": "t"}, None, {"id": "a", "tags": "t"}, [{"id": "a", "tags": "t"}]),
        ("memory_get", {"id": "a"}, schema(additionalProperties=True), {"id": "a"}, [{"id": "a"}]),
        ("memory_get", {}, schema("id", required=["id"]), {"id": "billing"}, [{"id": "billing"}]),
        (
            "memory_get", {}, {"properties": {"form": {"enum": ["text", "json"]}}, "required": ["form"]},
            {"form": "text"}, [{"form": "text"}],
        ),
        ("memory_forget", IDS, schema("id"), {"ids": ["a", "b"]}, [{"id": "a"}, {"id": "b"}]),
        (
            "memory_forget", IDS, schema("id", "reason"), {"ids": ["a", "b"], "reason": "old"},
            [{"id": "a", "reason": "old"}, {"id": "b", "reason": "old"}],
        ),
        ("memory_forget", IDS, schema("ids"), {"ids": ["a", "b"]}, [{"ids": ["a", "b"]}]),
        ("memory_forget", {"query": "q", "limit": 3}, schema("query"), {"query": "q"}, [{"query": "q"}]),
        (
            "memory_store", {"content": "c", "tags": "t"}, schema("text", "tags", required=["text"]),
            {"text": "c", "tags": "t"}, [{"text": "c", "tags": "t"}],
        ),
        (
            "memory_forget", {"id": "a", "reason": "old"}, schema("memory", required=["memory"]),
            {"memory": "a"}, [{"memory": "a"}],
        ),
        (
            "memory_modify", {"patches": [{"id": "a", "pinned": True}, {"id": "b", "type": "t"}]}, schema("id", "type"),
            {"id": "b", "type": "t"}, [{"id": "b", "type": "t"}],
        ),
        (
            "memory_modify", {"patches": [{"id": "a", "pinned": True}, {"id": "b"}]}, schema("id", "pinned"),
            {"patches": [{"id": "a", "pinned": True}, {"id": "b"}]}, [{"id": "a", "pinned": True}, {"id": "b"}],
        ),
    ],
)  # fmt: skip
def test_what_a_tool_is_given_is_told_before(
    tool: str, arguments: Mapping[str, Any], offered: Any, told: Mapping[str, Any], calls: list[Mapping[str, Any]]
) -> None:
    """Of the step's arguments those that the schema offers, and what it requires; of several calls all together."""
    happened: list[Any] = []

    def run(_name: str, given: Mapping[str, Any]) -> tuple[str, bool]:
        happened.append(given)
        return "", False

    step = {"step": "tool", "session": "s1", "tool": tool, "arguments": arguments}
    use_tool(step, {tool: offered}, {}, run, lambda *given: happened.append(given))
    assert happened == [("s1", told), *calls]


@pytest.mark.parametrize(
    ("schema", "handed"),
    [
        ({"type": "string"}, "billing, invoices"),
        ({"type": "array", "items": {"type": "string"}}, ["billing", "invoices"]),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, "billing, invoices"),
    ],
)
def test_tags_are_given_in_the_form_that_the_tool_wants(schema: Mapping[str, Any], handed: Any) -> None:
    """A model writes a list where the schema says so."""
    offered = {"type": "object", "properties": {"content": {"type": "string"}, "tags": schema}}
    step = {"tool": "memory_store", "arguments": {"content": "Numbered.", "tags": "billing, invoices"}}
    assert tool_calls(step, {"memory_store": offered}, {}) == [
        ("memory_store", {"content": "Numbered.", "tags": handed})
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "offered"),
    [
        ("memory_forget", {"query": "q"}, schema("id")),
        ("memory_forget", {"query": "q", "reason": "old"}, schema("id", "reason", required=["id"])),
        ("memory_modify", {"id": "a", "content": "c"}, schema("id", "text", required=["id", "text"])),
        ("memory_store", {"content": "c", "tags": "t"}, schema("tags")),
        ("memory_get", {"id": "a"}, schema("memory")),
    ],
)
def test_a_tool_is_not_called_for_what_it_cannot_do(tool: str, arguments: Mapping[str, Any], offered: Any) -> None:
    """No model calls it with what its schema leaves of the step, such as a reason and nothing to forget."""
    step = {"step": "tool", "tool": tool, "arguments": arguments}
    with pytest.raises(Skipped, match=f"{tool} takes none of the arguments that the step is about: "):
        use_tool(step, {tool: offered}, {}, lambda *_: ("", False), lambda *_: None)


def test_a_step_tells_what_the_tools_offer() -> None:
    """The members of each tool's schema, under the scenarios' own names; a tool without a schema offers none."""
    schemas = {"acme_get": {"properties": {"id": {}, "fields": {}}}, "acme_list": None}
    step = {"step": "tool", "session": "s1", "tool": "memory_get", "arguments": {"id": "m1"}}
    told = use_tool(step, schemas, {"memory_get": "acme_get"}, lambda *_: ("", False), lambda *_: None)
    assert told["offered"] == {"memory_get": ["id", "fields"], "acme_list": []}
