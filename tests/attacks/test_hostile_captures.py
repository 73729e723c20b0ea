"""What a capture from a stranger may do to `convert`: a refusal with a place and a remedy, and no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import trace
from tests.support.command_line import Invoke


def har(**changed: Any) -> str:
    """A HAR file of one exchange, with members of it changed."""
    entry = {
        "startedDateTime": "2026-11-22T10:00:00Z",
        "time": 5,
        "request": {"method": "GET", "url": "http://127.0.0.1:3850/health", "headers": []},
        "response": {"status": 200, "headers": [], "content": {"text": "{}"}},
    }
    return json.dumps({"log": {"entries": [{**entry, **changed}]}})


@pytest.mark.parametrize("took", [1e17, 1e300, 3.2e14])
def test_a_time_that_no_trace_holds_is_refused(invoke: Invoke, tmp_path: Path, took: float) -> None:
    """Otherwise `check` would refuse what `convert` wrote."""
    (tmp_path / "a.har").write_text(har(time=took))
    done = invoke("convert", str(tmp_path / "a.har"), str(tmp_path / "a.jsonl"))
    assert done.exit_code == 2, done.output
    assert not (tmp_path / "a.jsonl").exists()


def test_a_flow_file_that_promises_too_much_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    """A length beyond all memory is damage of the file, not of the kit."""
    (tmp_path / "a.flow").write_bytes(b"999999999999:x")
    done = invoke("convert", str(tmp_path / "a.flow"), str(tmp_path / "a.jsonl"))
    assert done.exit_code == 2, done.output


def test_half_an_emoji_is_converted(invoke: Invoke, tmp_path: Path) -> None:
    """Wherever it stands; what comes of it can be read."""
    half = "a\ud83db"
    request = {
        "method": "POST",
        "url": f"http://127.0.0.1:3850/x?q={half}",
        "headers": [{"name": "x-a", "value": half}],
        "postData": {"mimeType": "text/plain", "text": half},
    }
    (tmp_path / "a.har").write_text(har(request=request))
    done = invoke("convert", str(tmp_path / "a.har"), str(tmp_path / "a.jsonl"))
    assert done.exit_code == 0, done.output
    assert len(trace.read(tmp_path / "a.jsonl").exchanges) == 1
