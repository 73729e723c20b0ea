"""What the recorder could not carry or decode stands in the trace as its gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_conformance.trace import Gap, read, reading
from tests.support.trace_files import health, post, start, write

CUT = {"cut": True, "size": 9, "sha256": "0" * 64, "text": ""}
UNDECODED = {**CUT, "undecoded": "br"}


def _line(body: Any = None, answer: Any = None, error: Any = None) -> dict[str, Any]:
    line = post("/api/hooks/session-end", {})
    if body is not None:
        line["request"]["body"] = body
    if answer is not None:
        line["response"]["body"] = answer
    if error is not None:
        line.update(response=None, error=error)
    return line


@pytest.mark.parametrize("held_bytes", [reading.HELD_BYTES, 0], ids=["held", "read from the file"])
def test_gaps_of_a_recording(held_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The body of an answer over the limit is none, nor is a daemon that went away."""
    monkeypatch.setattr(reading, "HELD_BYTES", held_bytes)
    lines = [
        health(),
        start(),
        _line(body=UNDECODED),
        _line(answer=UNDECODED),
        _line(body=CUT, answer=CUT),
        _line(error={"kind": "not_carried", "note": "more than one Host"}),
        _line(error={"kind": "not_carried"}),
        _line(error={"kind": "upstream_reset", "note": "the daemon closed the connection"}),
    ]
    path = "/api/hooks/session-end"
    assert read(write(tmp_path / "a.jsonl", lines)).gaps == (
        Gap(3, "POST", path, "request", "br"),
        Gap(4, "POST", path, "answer", "br"),
        Gap(5, "POST", path, "request", "over the limit"),
        Gap(6, "POST", path, None, "more than one Host"),
        Gap(7, "POST", path, None, "the recording does not say why"),
    )
