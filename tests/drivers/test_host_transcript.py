"""The transcripts that Claude Code and Codex keep, as they are played."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from signet_conformance.drivers.hosts.host_transcript import HostTranscript


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("claude", [("assistant", "tool_use"), ("user", "tool_result")]),
        ("codex", [("response_item", "function_call"), ("response_item", "function_call_output")]),
    ],
)
def test_the_transcript_holds_calls_of_tools(
    kind: str, expected: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude Code writes what a tool gave back as a message of the user, which no user has said."""
    monkeypatch.setenv("HOME", str(tmp_path))
    transcript = HostTranscript(kind, "s-1", tmp_path)
    transcript.add_call("memory_search", {"query": "exports"}, "call_1", "Nothing found.")
    *_, call, result = [json.loads(line) for line in transcript.path.read_text().splitlines()]
    parts = [(line.get("payload") or line["message"]["content"][0])["type"] for line in (call, result)]
    assert [*zip((call["type"], result["type"]), parts, strict=True)] == expected
    assert ("exports" in json.dumps(call), "Nothing found." in json.dumps(result)) == (True, True)
