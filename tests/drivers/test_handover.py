"""What a host hands to the connector stands in the mark of the step, what the connector prints in a mark of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import trace
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.targets import Target, load
from signet_conformance.trace.marks import PrintedMark, StepMark, marks_of

from .conftest import FIXTURES, Made, recordings

SEARCH = {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "invoices", "limit": 3}}
GET = {"step": "tool", "session": "s1", "tool": "memory_get", "arguments": {"id": "m-1", "limit": 3}}
PROJECT = "/workspace/src/acme-api"
START = {"step": "start", "session": "s1", "agent": 0, "project": PROJECT}
END = {"step": "end", "session": "s1"}


@pytest.fixture
def performed(_shared: Any, tmp_path: Path) -> Any:
    """The recording of one scenario of these steps."""

    def perform(target: Target, *steps: Mapping[str, Any]) -> trace.Trace:
        recorded_daemon, _ = _shared
        recorded_daemon.target = target
        scenario = Scenario.from_json({"name": "handover", "title": "t", "steps": [*steps]}, "a test")
        (path,) = recordings(recorded_daemon, tmp_path / "traces", [scenario])
        return trace.read(path)

    return perform


def steps_of(recording: trace.Trace) -> list[StepMark]:
    """The marks of steps."""
    return list(marks_of(recording, StepMark))


def test_memory_server_is_given_what_its_schema_offers(made: Made, performed: Any) -> None:
    """The mark of a tool leaves out what the tool cannot be told; the server's folder is named after the project."""
    target = made("mcp", module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    start, tool, _ = steps_of(performed(target, START, SEARCH, END))
    assert tool.arguments == {"query": "invoices"}
    assert start.folder is not None
    assert Path(start.folder).name == "acme-api"
    assert start.project == PROJECT


def test_plugin_is_given_what_its_schema_offers(runtime: str, made: Made, performed: Any) -> None:
    """The mark comes before what the tool sends; its folder is the path that the host hands over."""
    target = made("openclaw", mode="prints", module=str(FIXTURES / "openclaw_plugin.mjs"), runtime=runtime)
    recording = performed(target, START, GET, END)
    start, tool, _ = steps_of(recording)
    assert (start.folder, tool.arguments) == (PROJECT, {"id": "m-1"})
    (printed,) = marks_of(recording, PrintedMark)
    assert (printed.index, printed.text) == (1, "[info] looking for m-1\nfound\n")


def test_driver_program_tells_what_it_hands_over(performed: Any) -> None:
    """The reference harness says so in the driver protocol, as a program of a user's may."""
    start, tool, _ = steps_of(performed(load("reference"), START, SEARCH, END))
    assert (start.folder, tool.arguments) == (PROJECT, {"query": "invoices", "limit": 3})


def test_nothing_is_told_of_a_tool_that_is_skipped(made: Made, performed: Any) -> None:
    """A connector without the tool was given nothing."""
    target = made("mcp", module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    _, tool, _ = steps_of(performed(target, START, GET, END))
    assert (tool.index, tool.arguments) == (1, None)


def test_provider_s_words_are_printed(made: Made, performed: Any) -> None:
    """What a provider in Python raises, logs or prints is told with the step."""
    target = made("hermes-agent", mode="throws", module=str(FIXTURES / "hermes_conforming" / "__init__.py"))
    prompt = {"step": "prompt", "session": "s1", "text": "Which database?", "reply": "PostgreSQL."}
    printed = [*marks_of(performed(target, START, prompt, END), PrintedMark)]
    assert any(mark.index == 1 and "no recall" in str(mark.text) for mark in printed)
