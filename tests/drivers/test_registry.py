"""What hosts of commands and of memory servers hold against the registry of their face."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.drivers.hosts.registry import (
    accept_tools,
    misplaced_servers,
    operations_of,
    output_objection,
    reads_as_context,
    unknown_events,
)
from signet_conformance.targets.face import FOLDER


def face(name: str) -> Mapping[str, Any]:
    """A shipped face, as a host reads it."""
    read: Mapping[str, Any] = json.loads((FOLDER / f"{name}.json").read_bytes())
    return read


CODEX, CLAUDE = face("codex-0.169"), face("claude-code-2.1")


@pytest.mark.parametrize(
    ("event", "commands", "operations"),
    [
        ("PreCompaction", ["signet hook pre-compaction -H claude-code"], ["pre-compaction"]),
        ("Nonesuch", ["signet hook session-end", "signet hook session-start"], ["session-start", "session-end"]),
        ("session:compact:before", [], ["pre-compaction"]),
        ("session:compact:after", [], ["compaction-complete"]),
        ("compaction_complete", [], ["compaction-complete"]),
        ("beforeSubmitPrompt", [], ["user-prompt-submit"]),
        ("agent_stop", [], ["session-end"]),
        ("SessionBegin", [], ["session-start"]),
        ("moonRise", ["signet remind"], []),
    ],
)
def test_what_a_hook_is_for(event: str, commands: Sequence[str], operations: Sequence[str]) -> None:
    """Its command names the operation, or else the name of its event suggests one."""
    assert list(operations_of(event, commands)) == operations


def test_events_that_the_harness_does_not_know() -> None:
    """Each is a row, which names a known event whose hook does the same."""
    commands = {
        "SessionStart": ["signet hook session-start"],
        "PreCompaction": ["signet hook pre-compaction"],
        "TurnEnd": ["signet hook session-end"],
        "Stop": ["signet hook session-end"],
        "WorktreeCreate": ["echo"],
    }
    told = {row["event"]: (row["operations"], row.get("elsewhere")) for row in unknown_events(commands, CLAUDE)}
    assert told == {"PreCompaction": (["pre-compaction"], None), "TurnEnd": (["session-end"], "Stop")}


GIVEN = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "Deploys are on Friday."}}


@pytest.mark.parametrize(
    ("event", "stdout", "objection", "read"),
    [
        ("SessionStart", "", None, True),
        ("SessionStart", "Deploys are on Friday.\n", None, True),
        ("SessionStart", json.dumps(GIVEN), None, True),
        ("SessionStart", '{"suppressOutput": true, "continue": true}', None, True),
        ("SessionStart", "[memory active | /remember]\nDeploys on Friday.", "begins with [ must be valid JSON", False),
        ("SessionStart", '{"inject": "Deploys are on Friday."}', "unknown field `inject`", False),
        ("SessionStart", '{"continue": ', "begins with { must be valid JSON", False),
        ("SessionStart", "[]", "begins with [ must be valid JSON", False),
        ("UserPromptSubmit", json.dumps(GIVEN), "(/hookSpecificOutput/hookEventName: ", False),
        ("Stop", "Saved.", "it expects a JSON object", False),
        ("Stop", "{}", None, True),
        ("PreCompact", "Keep what was decided.", None, False),
        ("PreCompact", json.dumps(GIVEN), "unknown field `hookSpecificOutput`", False),
        ("SessionEnd", "[", None, True),
    ],
)
def test_what_codex_reads_of_a_hook(event: str, stdout: str, objection: str | None, read: bool) -> None:
    """Plain text is context at a start and a prompt; what begins as JSON has to be an object of its form."""
    words = output_objection(event, stdout, CODEX)
    assert (words is None) is (objection is None)
    assert objection is None or (objection in str(words) and str(words).startswith("hook returned invalid "))
    assert reads_as_context(event, stdout, CODEX) is read


def test_a_harness_of_whose_output_nothing_is_known() -> None:
    """Nothing is refused, and all of it may be read."""
    assert output_objection("SessionStart", "[memory active]", CLAUDE) is None
    assert reads_as_context("SessionStart", "[memory active]", CLAUDE)


RULES = {
    "pattern": "[a-z_]+", "ill_formed": "{name} is ill-formed", "reserved": ["session_search"],
    "reserved_words": "{name} is a core tool", "schema_form": "json-schema", "schema_words": "{name} has no schema",
}  # fmt: skip
WHOLE = {"type": "object", "properties": {"query": {"type": "string"}}}


def test_tools_that_the_harness_does_not_offer() -> None:
    """Those of an ill-formed or reserved name and those without a schema are refused, a bare one is warned of."""
    bare = {"type": "object", "properties": {}}
    tools = {
        "recall": WHOLE,
        "a b": WHOLE,
        "session_search": WHOLE,
        "zod": {"_def": {}},
        "store": bare,
    }
    taken, told = accept_tools(tools, {"registry": {"tools": RULES}}, {"memory_store": "store"})
    assert list(taken) == ["recall", "store"]
    assert told["registered"] == [{"tools": 2, "refused": 3}]
    words = {row["file"]: row["words"] for row in told["installed"] if not row.get("minor")}
    assert words == {
        "the tool a b": "a b is ill-formed",
        "the tool session_search": "session_search is a core tool",
        "the tool zod": "zod has no schema",
    }
    assert [row["file"] for row in told["installed"] if row.get("minor")] == ["the tool store"]


def test_a_bare_tool_may_need_no_field() -> None:
    """One that lists, or that the contract does not know; one whose operation cannot go without is told."""
    bare = {"type": "object", "additionalProperties": True}
    tools = dict.fromkeys(("status", "secret_list", "agent_message_send", "memory_feedback"), bare)
    _, told = accept_tools(tools, {"registry": {"tools": RULES}}, {})
    assert [row["file"] for row in told["installed"]] == ["the tool agent_message_send", "the tool memory_feedback"]


NAMED = {"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {"type": "number"}}
"""A map from names to numbers, as a library writes its schema that gives the type of the names."""


@pytest.mark.parametrize(
    ("field", "told"),
    [
        (NAMED, True),
        ({"anyOf": [{"type": "null"}, NAMED]}, True),
        ({"type": "array", "items": {"type": "object", "properties": {"paths": NAMED}}}, True),
        ({"type": "object", "additionalProperties": NAMED}, True),
        ({"type": "object", "additionalProperties": {"type": "number"}}, False),
        ({"type": "object", "properties": {"propertyNames": {"type": "string"}}}, False),
        ({"type": "string", "description": "propertyNames", "enum": ["propertyNames"]}, False),
        ({"type": "object", "default": {"propertyNames": {}}}, False),
    ],
)
def test_a_keyword_that_models_refuse(field: Mapping[str, Any], told: bool) -> None:
    """The tool is taken, and warned of with the fields that say it; one whose field has that name says nothing."""
    tools = {"memory_feedback": {"type": "object", "properties": {"session_key": {"type": "string"}, "ratings": field}}}
    taken, said = accept_tools(tools, face("mcp-2025-06-18"), {})
    assert list(taken) == ["memory_feedback"]
    words = [row["words"] for row in said["installed"] if row["minor"]]
    assert [each.partition(",")[0] for each in words] == ["its schema says `propertyNames` (in ratings)"][:told]


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        (".claude/settings.json", '{"mcpServers": {"signet": {"command": "signet-mcp"}}}', True),
        (".codex/config.toml", "[mcp_servers.signet]\ncommand = 'signet-mcp'", True),
        (".claude/settings.json", '{"mcpServers": {"other": {"command": "other"}}}', False),
        (".claude/settings.json", '{"hooks": {}}', False),
        (".claude/settings.json", "{", False),
        (".claude.json", '{"mcpServers": {"signet": {"command": "signet-mcp"}}}', False),
    ],
)
def test_a_memory_server_where_the_harness_does_not_look(file: str, text: str, found: bool, tmp_path: Path) -> None:
    """The file is named, with the one that the harness reads."""
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    rows = list(misplaced_servers(tmp_path, CLAUDE, ["memory-recall"]))
    assert [row["file"] for row in rows] == ([file] if found else [])
    assert all(".claude.json" in row["words"] and row["operations"] == ["memory-recall"] for row in rows)
