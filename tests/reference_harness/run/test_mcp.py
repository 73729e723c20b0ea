"""MCP servers in a headless task: named in agent.yaml and in the registry, told of to the model and the person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.recording_daemon import END, REGISTRY, Answer, RecordingDaemon

from .conftest import Do

KEY = "sesame-opens-9c"
ROW = {
    "id": "tickets",
    "enabled": True,
    "config": {"transport": "stdio", "command": "sh", "args": ["-c", "exit 9"], "env": {"KEY": KEY}},
}


def test_servers_that_cannot_be_used_are_told_of_and_the_task_is_done(
    do: Do, serve: Serve, daemon: RecordingDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model reads why beside its prompt, the person in a note, and what is secret of them stands nowhere."""
    monkeypatch.setenv("MCP_KEY", KEY)
    script = 'test "$PWD" = "$1" && echo it is $KEY >&2; exit 8'
    files = {"command": "sh", "args": ["-c", script, "sh", str(tmp_path / "acme")], "env": {"KEY": "${MCP_KEY}"}}
    off = {"command": "sh", "enabled": False}
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "agent.yaml").write_text(json.dumps({"runtime": {"mcp_servers": {"files": files, "off": off}}}))
    daemon.always[REGISTRY] = Answer({"servers": [ROW, {**ROW, "id": "off"}], "count": 2})
    served = serve(turns=[{"content": "Done."}])
    done = do(prompt="Go.", api="anthropic-messages", base_url=served.url, model="m", api_key="x")
    why = "it ended with exit status 8 (its last words: it is [key])"
    notices = [
        f"The MCP server files of {workspace / 'agent.yaml'} cannot be used: {why}.",
        "The MCP server tickets of the daemon's registry cannot be used: it ended with exit status 9.",
    ]
    assert (done.status, done.out) == (0, "Done.\n")
    assert sorted(line for line in done.err.splitlines() if "MCP" in line) == [f"note: {each}" for each in notices]
    (request,) = served.requests()
    assert all(notice in json.dumps(request["body"]["messages"][-1]) for notice in notices)
    asked = next(each for each in daemon.requests if each.path == REGISTRY)
    assert (asked.query["harness"], asked.query["scoped"]) == ("reference", "1")
    assert len(daemon.bodies(END)) == 1
    kept = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not [
        data for data in [*kept, done.err.encode(), json.dumps(served.requests()).encode()] if KEY.encode() in data
    ]


def test_a_registry_that_is_not_wanted_is_not_asked(
    do: Do, serve: Serve, daemon: RecordingDaemon, tmp_path: Path
) -> None:
    """With `mcp_registry: false` the daemon is not asked, and nothing that it holds is run."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "agent.yaml").write_text("runtime:\n  mcp_registry: false\n")
    url = serve(turns=[{"content": "Done."}]).url
    assert do(prompt="Go.", api="anthropic-messages", base_url=url, model="m", api_key="x").status == 0
    assert REGISTRY not in {request.path for request in daemon.requests}
