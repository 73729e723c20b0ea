"""The built-in tools are those of the daemon's own MCP endpoint."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from signet_conformance.daemon.http.app import create_app
from signet_conformance.daemon.state import DaemonSettings
from signet_reference_harness.tools import DEFINITIONS, READS, UNASKED
from signet_reference_harness.tools.built_in import BUILT_IN
from tests.support.evidence import MCP_TOOLS, json_lines

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
SAID_BY_THE_HARNESS = {"session_key", "agent_id"}


def bare(value: Any) -> Any:
    """A schema without what only describes: the descriptions of its fields."""
    if isinstance(value, list):
        return [bare(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: bare(item) for name, item in value.items() if name not in {"description", "properties"}}
    if "properties" in value:
        kept["properties"] = {
            name: bare(schema) for name, schema in value["properties"].items() if name not in SAID_BY_THE_HARNESS
        }
    return kept


def listed_by_the_daemon(workspace: Path, version: str) -> list[dict[str, Any]]:
    """What an embedded daemon of that version answers to tools/list."""

    async def ask() -> Any:
        app = create_app(DaemonSettings(workspace=workspace, version=version))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:3850") as client:
            answer = await client.post(
                "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=HEADERS
            )
        await app.daemon.close()
        return answer.json()["result"]["tools"]

    tools: list[dict[str, Any]] = asyncio.run(ask())
    return tools


@pytest.mark.parametrize("version", ["0.145", "0.205"])
def test_names_and_schemas_are_those_of_the_mcp_endpoint(tmp_path: Path, version: str) -> None:
    """Each has the name and the input schema that the daemon lists, but for the fields that the harness itself says."""
    ours = {tool.name: bare(tool.definition.input_schema) for tool in BUILT_IN}
    assert ours == {tool["name"]: bare(tool["inputSchema"]) for tool in listed_by_the_daemon(tmp_path, version)}
    assert ours == {row["name"]: bare(row["inputSchema"]) for row in json_lines(MCP_TOOLS)}


def test_no_tool_lets_the_model_name_a_session_or_an_agent() -> None:
    """Whose call it is, the harness says; and each field of the daemon that is left out is one of these."""
    for tool in BUILT_IN:
        assert not SAID_BY_THE_HARNESS & set(tool.definition.input_schema["properties"])


def test_only_what_writes_files_or_runs_commands_is_asked_for() -> None:
    """A change of a memory can be taken back: the daemon keeps each version."""
    assert sorted(DEFINITIONS.keys() - UNASKED) == ["file_write", "secret_exec"]
    assert sorted(UNASKED - READS) == ["memory_forget", "memory_modify", "memory_store"]
