"""Facts about what the model cannot reach through a connector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.outcome.reach import ReachMeter, UnreachableParts
from tests.support.case_traces import build

SEARCH = {
    "request": {"method": "POST", "path": "/api/memory/recall", "body": {"query": "x", "limit": 5, "pinned": True}}
}


def offered(**tools: list[str]) -> dict[str, Any]:
    """The mark of a step that has called a tool."""
    return {"mark": "offered", "data": {"tools": tools}}


def reach(folder: Path, *items: dict[str, Any]) -> UnreachableParts | None:
    """What cannot be reached by one recording."""
    meter = ReachMeter()
    meter.add(judge(build(folder / "trace.jsonl", items)))
    return meter.reach()


def test_a_field_is_reached_by_a_schema_or_by_what_is_sent(tmp_path: Path) -> None:
    """A field counts as reached if a tool offers it, in any spelling, or if the connector fills it in itself."""
    found = reach(tmp_path, offered(memory_search=["query", "limit", "keyword_query", "include-recalled"]), SEARCH)
    assert found is not None
    fields = found.fields["memory_search"]
    assert {"aggregate", "since", "until"} <= set(fields)
    assert not {"query", "limit", "pinned", "keywordQuery", "includeRecalled", "agentId", "sessionKey"} & set(fields)


def test_a_tool_that_is_not_offered_is_not_reached(tmp_path: Path) -> None:
    """One is enough: it is offered, under a prefix too, or its operation was called."""
    found = reach(tmp_path, offered(signet_session_search=["query"]), SEARCH)
    assert found is not None
    assert {"secret_exec_status", "memory_store"} <= set(found.tools)
    assert not {"session_search", "memory_search"} & set(found.tools)


def test_tools_beside_memories_belong_to_the_contract(tmp_path: Path) -> None:
    """Those that the daemon serves to other agents, to sessions and to its graph; each has a name of its own."""
    beside = {"session_bypass", "knowledge_expand", "lcm_expand", "agent_peers", "agent_message_send"}
    found = reach(tmp_path, offered(memory_search=["query"], agent_peers=["limit"]), SEARCH)
    assert found is not None
    assert beside - set(found.tools) == {"agent_peers"}


def test_a_tool_whose_schema_names_nothing_that_it_needs_cannot_be_filled(tmp_path: Path) -> None:
    """Without members, or with others than its operation needs; a tool that needs none is none."""
    tools = offered(secret_exec_status=[], memory_get=["reason"], memory_modify=["id"], secret_list=[])
    found = reach(tmp_path, tools)
    assert found is not None
    assert found.unfillable == ("memory_get", "secret_exec_status")


def stored(body: dict[str, Any], **arguments: Any) -> list[dict[str, Any]]:
    """A step that stores something by a tool with two fields, and the request that it causes."""
    step = {"index": 0, "step": "tool", "session": "s1", "tool": "memory_store", "arguments": arguments}
    return [
        {"mark": "step", "data": step},
        {"request": {"method": "POST", "path": "/api/memory/remember", "body": body}},
        offered(memory_store=["content", "type", "tags"]),
    ]


def test_a_field_that_a_tool_offers_and_never_passes_on_is_not_reached(tmp_path: Path) -> None:
    """Of what a step gave it, neither the name nor the value stands in a request; what none gave is taken to be."""
    given = {"content": "Numbered per year.", "type": "decision", "tags": "billing"}
    found = reach(tmp_path, *stored({"content": "[billing]: Numbered per year."}, **given))
    assert found is not None
    assert found.dropped == {"memory_store": ("type",)}
    assert "type" in found.fields["memory_store"]
    assert "tags" not in found.fields["memory_store"]
    assert "memory_store offers type but sends it in no request" in found.words
    assert "memory_store.type" in found.points


def test_a_value_that_two_fields_have_shows_of_neither_that_it_is_passed_on(tmp_path: Path) -> None:
    """A text that stands for a required member as well says nothing of it; one with a value of its own does."""
    alike = stored({"content": "Numbered."}, content="Numbered.", tags=["Numbered."])
    found = reach(tmp_path, *alike, *stored({"content": "Agreed."}, content="Agreed.", tags=["billing"]))
    assert found is not None
    assert found.dropped == {"memory_store": ("tags",)}


@pytest.mark.parametrize(
    "body",
    [
        {"type": "decision"},
        {"memory_type": "decision"},
        {"metadata": {"type": "decision"}},
        {"type": "fact"},
    ],
    ids=["alike", "renamed", "deeper", "mapped"],
)
def test_a_field_may_be_passed_on_otherwise(body: dict[str, Any], tmp_path: Path) -> None:
    """Under another name, within another member, or with another value."""
    found = reach(tmp_path, *stored({"content": "Numbered.", **body}, content="Numbered.", type="decision"))
    assert found is not None
    assert found.dropped == {}


def test_one_request_that_carries_a_field_shows_that_it_is_passed_on(tmp_path: Path) -> None:
    """A connector may leave it out of another one."""
    bodies = ({"content": "One."}, {"content": "Two.", "type": "decision"})
    found = reach(tmp_path, *(item for body in bodies for item in stored(body, content="x", type="decision")))
    assert found is not None
    assert found.dropped == {}


@pytest.mark.parametrize(("release", "version"), [("0.112.0", "0.145"), ("0.109.15", None), (None, None)])
def test_what_the_next_contract_has_besides(release: str | None, version: str | None, tmp_path: Path) -> None:
    """Apart from what its own lacks already, and only for a release between two contracts."""
    meter = ReachMeter(release)
    offering = offered(memory_search=["query", "limit", "time"])
    meter.add(judge(build(tmp_path / "trace.jsonl", [offering, SEARCH], {"daemon_version": "0.109.15"})))
    found = meter.reach()
    assert found is not None
    assert "session_search" not in found.tools
    assert found.version == version
    if version is None:
        assert found.later is None
        return
    assert found.later is not None
    assert found.later.tools == ("session_search", "secret_exec_status")
    assert "includeRecalled" in found.later.fields["memory_search"]
    assert not {"time", "who"} & set(found.later.fields["memory_search"])
    assert "who" in found.fields["memory_search"]
    assert "; of contract 0.145: memory_search: " in found.words


def test_where_no_tool_is_known_nothing_is_said(tmp_path: Path) -> None:
    """A recording without the mark, and so every passive one."""
    assert reach(tmp_path, SEARCH) is None


def test_the_line_names_the_first_of_many() -> None:
    """Six names of each part; the report has them all."""
    found = UnreachableParts(("secret_exec",), {"memory_search": tuple("abcdefgh")}, ("memory_get",))
    assert found.words == (
        "memory_search: a, b, c, d, e, f and 2 more; tools: secret_exec; schema without the needed fields: memory_get"
    )
    assert {"memory_search.a", "secret_exec", "memory_get"} <= found.points
    assert UnreachableParts().words == ""
