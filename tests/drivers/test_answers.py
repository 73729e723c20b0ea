"""What became of handlers, read from a driver's answer: the troubled ones only, bounded, whatever the answer holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from signet_conformance import trace
from signet_conformance.drivers.answers import MAX_MARKS, MAX_TEXT, handler_marks, loaded_marks, tool_answer_mark
from signet_conformance.reports.remarks import remarks
from signet_conformance.trace import encode
from signet_conformance.trace.marks import KINDS, RemarkMark
from signet_conformance.trace.recordings import recordings_in

from .conftest import Broken, Made

PYTHON = """Traceback (most recent call last):
  File "/srv/hook.py", line 3, in <module>
    connect()
ConnectionRefusedError: [Errno 111] Connection refused
"""
NODE = """file:///srv/hook.mjs:3
throw new TypeError("boom");
^

TypeError: boom
    at file:///srv/hook.mjs:3:7
    at node:internal/main:1:1
"""


@pytest.mark.parametrize(
    ("member", "entry", "outcome"),
    [
        ("hooks", {"status": 2, "blocked": True}, "blocked"),
        ("hooks", {"status": None, "timed_out": True}, "timed_out"),
        ("hooks", {"status": 1}, "failed"),
        ("hooks", {"status": -9}, "failed"),
        ("calls", {"thrown": "Error: boom"}, "thrown"),
        ("calls", {"timed_out": True}, "timed_out"),
        ("calls", {"status": 500}, "failed"),
        ("calls", {"status": None, "thrown": "RemoteDisconnected: gone"}, "failed"),
    ],
)
def test_trouble_is_told_by_its_outcome(member: str, entry: Mapping[str, Any], outcome: str) -> None:
    """What blocked a turn is told as that, whatever else holds of it; then what timed out, threw, failed."""
    (told,) = handler_marks(1, {member: [{"event": "e", "ms": 1.5, **entry}]})
    assert (told.event, told.outcome, told.ms) == ("e", outcome, 1.5)


@pytest.mark.parametrize(
    "result",
    [
        {"hooks": [{"event": "e", "status": 0, "ms": 1.0, "stderr": "a warning"}]},
        {"calls": [{"event": "e", "ms": 1.0}, {"event": "e", "status": 204}, {"event": "e", "status": 404}]},
        {"calls": None, "hooks": "none"},
        {"calls": [None, 3, "x", [], {}]},
        {"calls": [{"event": "e", "status": True}, {"event": "e", "status": "500"}, {"event": "e", "blocked": 1}]},
        {"hooks": {"event": "e", "status": 1}},
        {"hooks": [{"event": "e", "status": float("nan")}, {"event": "e", "status": 10**400}]},
    ],
    ids=["fine hooks", "fine calls", "no lists", "no entries", "odd entries", "no list", "no numbers"],
)  # fmt: skip
def test_nothing_is_told_of_what_went_well_or_is_no_entry(result: Mapping[str, Any]) -> None:
    """Handlers that ended well leave no mark, and neither does an answer of another shape."""
    assert list(handler_marks(1, result)) == []


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"thrown": "Error: boom\n    at on (file:///srv/plugin.mjs:5:9)\n    at call"}, "Error: boom at on (file:///srv/plugin.mjs:5:9)"),
        ({"stderr": PYTHON}, "ConnectionRefusedError: [Errno 111] Connection refused"),
        ({"stderr": NODE}, "TypeError: boom at file:///srv/hook.mjs:3:7"),
        ({"stderr": "\n  memory is away\nreally"}, "memory is away"),
        ({"stderr": " \n", "stdout": '{"decision": "block"}'}, '{"decision": "block"}'),
        ({"stderr": "\x1b[31mred\x07"}, "\\x1b[31mred\\x07"),
        ({"stderr": 7}, None),
    ],
    ids=["thrown", "python", "node", "first line", "stdout", "escapes", "no text"],
)  # fmt: skip
def test_text_is_the_line_that_tells_the_error(said: Mapping[str, Any], text: str | None) -> None:
    """Of a trace of calls the error and its place, else the first line; harmless in a terminal."""
    (told,) = handler_marks(1, {"hooks": [{"event": "e", "status": 1, **said}]})
    assert told.text == text


@pytest.mark.parametrize(("said", "text"), [({}, None), ({"stderr": "waited for the daemon"}, "waited for the daemon")])
def test_answer_of_a_slow_handler_is_no_trouble(said: Mapping[str, Any], text: str | None) -> None:
    """Its standard output went to the harness; what it complains of is told."""
    entry = {"event": "e", "status": 0, "ms": 30_000.0, "stdout": "[signet active]", **said}
    (told,) = handler_marks(1, {"hooks": [entry]}, 5.0)
    assert told.text == text


def test_text_is_cut_between_words() -> None:
    """Half a secret would not be known for one, so a word that the limit cuts is left out."""
    words = "word " * 70 + "secret" * 20
    (told,) = handler_marks(1, {"calls": [{"event": "e", "thrown": words}]})
    assert told.text == ("word " * 70).strip()
    assert len(words) > MAX_TEXT


@pytest.mark.parametrize(
    ("ms", "bound_s", "outcomes"),
    [(30000.0, 5.0, ["slow"]), (5900.0, 5.0, []), (30000.0, None, []), ("long", 5.0, []), (float("inf"), 5.0, [])],
)
def test_handler_that_the_user_waits_for(ms: object, bound_s: float | None, outcomes: list[str]) -> None:
    """One that went well is told where it took longer than the target declares, and a second to start in."""
    entry = {"event": "UserPromptSubmit", "status": 0, "ms": ms}
    assert [call.outcome for call in handler_marks(1, {"hooks": [entry]}, bound_s)] == outcomes


def test_marks_of_a_step_are_bounded() -> None:
    """A handler in a loop does not fill the recording."""
    assert len(list(handler_marks(1, {"calls": [{"event": "e", "thrown": "x"}] * 5000}))) == MAX_MARKS


@pytest.mark.parametrize("event", [None, 7, "", ["e"]])
def test_entry_without_an_event_is_none_of_a_handler(event: object) -> None:
    """A driver may tell of its connector's requests in the same place: a status 500 among them is the daemon's."""
    entry = {"event": event, "operation": "user-prompt-submit", "status": 500, "thrown": "x", "blocked": True}
    assert list(handler_marks(1, {"calls": [entry]})) == []


def test_odd_measures_are_left_out() -> None:
    """What is no number or text is no reason to say nothing of the handler."""
    (told,) = handler_marks(1, {"calls": [{"event": "e", "thrown": True, "ms": "long"}]})
    assert told.data == {"index": 1, "event": "e", "outcome": "thrown"}


@pytest.mark.parametrize("value", [None, 7, "x", [], [7], {}, [[]], "\ud800"], ids=repr)
def test_whatever_is_told_of_a_connector_makes_marks(value: object) -> None:
    """A row may lack any member, and a member may have any type: it can be written, and be read again."""
    members = {field.name for kind in KINDS.values() for field in fields(kind)}
    for rows in ([{}], [dict.fromkeys(members, value)], [{"accepted": True, **dict.fromkeys(members, value)}], value):
        about = dict.fromkeys(("installed", "registered", "reinstalled", "observed", "unheard", "remarks"), rows)
        for mark in loaded_marks({**about, "printed": value}, {}):
            assert json.loads(encode({"data": mark.data}))


@pytest.mark.parametrize(
    ("steps", "remarks"),
    [
        (["start", "stopped_prompt", "attached_prompt", "restart_host"], []),
        (["checkpoint", "dance", 7], []),
        (["promt"], ["the driver lists the step promt, which no scenario has: did you mean prompt?"]),
        ("start", ['the driver\'s steps are "start", and no list: the kit tries them out']),
    ],
)
def test_a_misspelt_step_of_a_driver_is_remarked(steps: object, remarks: Sequence[str]) -> None:
    """A misspelt step is never sent, which nothing else would say."""
    marks = [mark for mark in loaded_marks({"steps": steps}, {}) if isinstance(mark, RemarkMark)]
    assert [mark.text for mark in marks] == remarks


def test_reference_is_not_remarked_on(made: Made, broken: Broken, tmp_path: Path) -> None:
    """Its answers tell of requests that a fault failed, which are no handlers of a connector."""
    assert broken(made("reference"), ("daemon-500", "daemon-refuses")) == {}
    assert list(remarks(trace.read(path) for path in recordings_in(tmp_path / "traces"))) == []


def test_lateness_of_the_drivers_timer_is_kept() -> None:
    """How late a timer of the driver was stands in the mark; what is no number does not."""
    calls = [{"event": "prompt", "ms": 5000, "late_ms": late} for late in (7.5, "soon")]
    assert [mark.late_ms for mark in handler_marks(1, {"calls": calls}, 1.0)] == [7.5, None]


@pytest.mark.parametrize(
    ("tool", "result", "done"),
    [
        ("memory_store", {"done": True}, True),
        ("memory_store", {"is_error": False, "content": {"id": "m-1"}}, True),
        ("memory_forget", {"is_error": False, "content": {"success": True}}, True),
        ("memory_modify", {"is_error": False, "content": {"updated": True}}, True),
        ("memory_forget", {"is_error": False, "content": {"id": "m-1"}}, False),
        ("memory_store", {"content": {"id": "m-1"}}, False),
        ("memory_store", {"done": True, "error": "offline"}, False),
        ("memory_store", {"done": True, "is_error": True}, False),
        ("memory_store", {"is_error": False, "content": {"id": "m-1", "success": False}}, False),
        ("memory_store", {"is_error": False, "content": {"id": "m-1", "error": "offline"}}, False),
        ("memory_store", {"is_error": False, "content": "stored"}, False),
        ("memory_search", {"done": True}, False),
    ],
)
def test_tool_that_says_it_is_done_is_marked(tool: str, result: dict[str, Any], done: bool) -> None:
    """A tool that does something is marked where it says that it did, and nothing it says is against it."""
    assert (tool_answer_mark(3, tool, result) is not None) is done
