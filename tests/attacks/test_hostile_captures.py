"""What a capture from a stranger may do to `convert`: a refusal with a place and a remedy, and no more."""

from __future__ import annotations

import json
import subprocess
import sys
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


PEAK = """
import os, resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "signet_conformance.cli", *sys.argv[1:]], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
sys.exit(done.returncode)
"""


def peak_mib(*words: object) -> int:
    """The most memory that a command line has held, in MiB."""
    command = [sys.executable, "-c", PEAK, *map(str, words)]
    return int(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)


def test_a_large_har_is_let_go_while_it_is_read(tmp_path: Path) -> None:
    """It costs some three times its size, and not seven."""
    entry = json.loads(har())["log"]["entries"][0]
    entry["response"]["content"]["text"] = "x y" * 10_000
    (tmp_path / "small.har").write_text(har())
    (tmp_path / "large.har").write_text(json.dumps({"log": {"entries": [entry] * 1000}}))
    size = (tmp_path / "large.har").stat().st_size // 2**20
    grown = peak_mib("convert", tmp_path / "large.har", tmp_path / "a.jsonl") - peak_mib(
        "convert", tmp_path / "small.har", tmp_path / "b.jsonl"
    )
    assert grown < 3.5 * size
