"""Facts about the line that stands for a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_conformance.facts import Recording
from signet_conformance.reports.excerpt import call_line
from signet_conformance.trace import read
from tests.support.trace_files import recall, write


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
