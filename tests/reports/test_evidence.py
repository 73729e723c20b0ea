"""Facts about the line that stands for a call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.facts import Recording
from signet_conformance.reports.evidence import call_line, source_of
from signet_conformance.trace import read
from tests.support.command_line import Invoke
from tests.support.trace_files import recall, start, write


def line(folder: Path, status: int, body: object, **more: Any) -> str:
    """The line of a recall that was answered so."""
    exchange = {**recall(), **more}
    exchange["response"] = {**exchange["response"], "status": status, "body": {"json": body}}
    return call_line(Recording(read(write(folder / "a.jsonl", [exchange]))).calls[0])


@pytest.mark.parametrize(
    ("status", "body", "shown"),
    [
        (400, {"error": "query is required"}, '-> 400 "query is required"'),
        (400, {"error": {"code": 7, "why": "\x1b[31mred"}}, '-> 400 {"code": 7, "why": "\\u001b[31mred"}'),
        (503, {"error": "x" * 300}, f'-> 503 "{"x" * 98}…'),
        (404, {"message": "no such route"}, "-> 404"),
        (404, ["error"], "-> 404"),
        (200, {"error": "none"}, "-> 200"),
    ],
)
def test_the_reason_of_a_refusal_stands_behind_it(tmp_path: Path, status: int, body: object, shown: str) -> None:
    """In the daemon's words, on one line and cut; no other answer has one."""
    assert line(tmp_path, status, body).partition(" agent=default ")[2] == shown


def test_the_answer_of_a_fault_is_not_quoted(tmp_path: Path) -> None:
    """The kit gave it, and says which fault it was."""
    fault = {"id": "f1", "kind": "status"}
    assert line(tmp_path, 500, {"error": "injected"}, fault=fault).endswith("-> 500 [fault: status]")


RECALL = ["POST", "/api/memory/recall"]


def told(tmp_path: Path, requests: Sequence[Sequence[str]], calls: int = 2) -> list[Sequence[str]]:
    """The places of each recall, of a step that is marked to have sent `requests`."""
    mark: dict[str, Any] = {"kind": "mark", "name": "sent", "data": {"index": 0, "requests": requests}}
    recording = Recording(read(write(tmp_path / "t.jsonl", [start(), *(recall() for _ in range(calls)), mark])))
    seqs = [call.seq for call in recording.calls if call.path == RECALL[1]]
    return [[source.words for source in source_of(recording, seq)] for seq in seqs]


def test_requests_are_told_in_their_order(tmp_path: Path) -> None:
    """As many of one method and path as reached the recorder: the first is the first."""
    requests = [[*RECALL, "/x/a.ts:1:9", "/x/b.ts:2"], ["GET", "/health", "/x/c.ts:3"], [*RECALL, "/x/a.ts:4"]]
    assert told(tmp_path, requests) == [["/x/a.ts:1", "/x/b.ts:2"], ["/x/a.ts:4"]]


def test_a_file_below_the_folder_of_the_run_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a repository knows it."""
    monkeypatch.chdir(tmp_path)
    assert told(tmp_path, [[*RECALL, f"{tmp_path}/src/a.ts:1"]] * 2) == [["src/a.ts:1"]] * 2


def test_where_some_did_not_arrive_one_place_is_still_certain(tmp_path: Path) -> None:
    """Three were sent from one line, and two reached the recorder."""
    assert told(tmp_path, [[*RECALL, "/x/a.ts:1"]] * 3) == [["/x/a.ts:1"]] * 2


@pytest.mark.parametrize("lines", [[1], [1, 2, 3]])
def test_what_is_not_certain_is_not_told(tmp_path: Path, lines: Sequence[int]) -> None:
    """Fewer were told than were sent, or they came from several lines and not all arrived."""
    assert told(tmp_path, [[*RECALL, f"/x/a.ts:{line}"] for line in lines]) == [[], []]


@pytest.mark.parametrize("place", ["", "a.ts", "a.ts:0", "a.ts:x", ":1", "a.ts:99999999999"])
def test_a_place_without_a_line_is_passed_over(tmp_path: Path, place: str) -> None:
    """A mark may come from anybody."""
    assert told(tmp_path, [[*RECALL, place]] * 2) == [[], []]


def test_code_scanning_points_at_the_connector(invoke: Invoke, tmp_path: Path) -> None:
    """The place of a result is the line that sent the request; the recording's line is related to it."""
    requests = [[*RECALL, f"{tmp_path}/src/a.ts:7:2", f"{tmp_path}/src/b.ts:9"]]
    mark = {"kind": "mark", "name": "sent", "data": {"index": 0, "requests": requests}}
    write(tmp_path / "t.jsonl", [start(), recall(agentId="beacon"), mark])
    shown = invoke("check", "t.jsonl", "--sarif", "t.sarif", "--json", "--output", "t.json")
    assert shown.exit_code == 1
    results = json.loads((tmp_path / "t.sarif").read_text())["runs"][0]["results"]
    result = next(result for result in results if result["ruleId"] == "SIG-AGENT-002")
    places = [result["locations"][0], *result["relatedLocations"][:2]]
    told = [
        (place["physicalLocation"]["artifactLocation"]["uri"], place["physicalLocation"]["region"]["startLine"])
        for place in places
    ]
    assert told == [("src/a.ts", 7), ("src/b.ts", 9), ("t.jsonl", 3)]
    causes = json.loads((tmp_path / "t.json").read_text())["causes"]
    assert causes[0]["problems"][0]["sources"][0] == {"file": "src/a.ts", "line": 7}
    assert "sent by   src/a.ts:7, called at src/b.ts:9" in invoke("check", "t.jsonl").output
