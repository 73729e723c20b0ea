"""Facts about `signet-conformance report-bug`."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from signet_conformance.trace import encode
from tests.support.command_line import Invoke
from tests.support.evidence import TRACES

SMALL, LARGE = "pi-lifecycle.jsonl", "oh-my-pi-lifecycle.jsonl"


@pytest.fixture
def reported(tmp_path: Path, invoke: Invoke) -> Path:
    """The folder of a run, with two recordings and their report."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in (SMALL, LARGE):
        shutil.copy(TRACES / name, folder / name)
    invoke("check", folder / SMALL, folder / LARGE, "--json", "--output", folder / "report.json")
    return folder


def test_it_packs_one_recording_with_what_is_needed(reported: Path, invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "signet-conformance.toml").write_text(
        '[targets.mine]\nenv = {API_TOKEN = "sk-live-0123456789abcdefghij"}\n'
    )
    done = invoke("report-bug", reported, "-k", "SIG-AGENT-001", "--yes")
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile("signet-bug.zip") as packed:
        assert sorted(packed.namelist()) == ["about.json", "recording.jsonl", "settings.toml"]
        about = json.loads(packed.read("about.json"))
        lines = packed.read("recording.jsonl").decode().splitlines()
        settings = packed.read("settings.toml").decode()
    assert (about["requirement"], about["verdict"]["verdict"]) == ("SIG-AGENT-001", "FAIL")
    assert json.loads(lines[0])["format"] == "signet-trace/1"
    assert "sk-live-0123456789abcdefghij" not in settings
    assert "recording.jsonl holds" in done.output


def test_the_smallest_recording_with_the_verdict_is_taken(reported: Path, invoke: Invoke) -> None:
    report = json.loads((reported / "report.json").read_text("utf-8"))
    showing = [
        reported / Path(trace["file"]).name
        for trace in report["traces"]
        if trace["verdicts"]["SIG-AGENT-001"]["verdict"] == "FAIL"
    ]
    invoke("report-bug", reported, "-k", "SIG-AGENT-001", "--yes")
    smallest = min(showing, key=lambda path: path.stat().st_size)
    with zipfile.ZipFile("signet-bug.zip") as packed:
        assert len(packed.read("recording.jsonl").splitlines()) == len(smallest.read_text("utf-8").splitlines())


@pytest.mark.parametrize("odd", ["half a character \ud83d", "two\u2028lines, \u0085three"], ids=ascii)
def test_what_is_packed_is_the_recording(reported: Path, invoke: Invoke, odd: str) -> None:
    """Whatever its texts hold, the packed lines are those of the recording, and can be read."""
    lines = [json.loads(line) for line in (reported / SMALL).read_bytes().splitlines()]
    lines[0]["target"] = odd
    for line in lines:
        if line["kind"] == "exchange" and line["request"]["body"] is not None:
            line["request"]["body"]["json"]["odd"] = odd
    (reported / SMALL).write_bytes(b"".join(map(encode, lines)))
    (reported / LARGE).unlink()
    invoke("check", reported / SMALL, "--json", "--output", reported / "report.json", "--force")
    done = invoke("report-bug", reported, "-k", "SIG-AGENT-001", "--yes")
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile("signet-bug.zip") as packed:
        assert [json.loads(line) for line in packed.read("recording.jsonl").splitlines()] == lines


def test_without_a_terminal_nothing_is_written(reported: Path, invoke: Invoke) -> None:
    done = invoke("report-bug", reported)
    assert done.exit_code == 2
    assert "--yes" in done.stderr
    assert not Path("signet-bug.zip").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-k", "SIG-NOPE-001"), "SIG-NOPE-001"),
        (("-k", "SIG-HTTP-004", "--settings", "missing.toml"), "missing.toml"),
    ],
)
def test_what_cannot_be_packed_is_reported(reported: Path, invoke: Invoke, words: tuple[str, ...], says: str) -> None:
    done = invoke("report-bug", reported, *words, "--yes")
    assert done.exit_code == 2
    assert says in done.stderr
    assert "try: " in done.stderr


def test_nothing_is_replaced(reported: Path, invoke: Invoke) -> None:
    Path("signet-bug.zip").write_text("kept")
    assert invoke("report-bug", reported, "--yes").exit_code == 2
    assert Path("signet-bug.zip").read_text() == "kept"


def test_a_file_that_cannot_be_made_is_reported(reported: Path, invoke: Invoke, tmp_path: Path) -> None:
    """Here it is a dangling link; another run may also create the file in the meantime."""
    (tmp_path / "bug.zip").symlink_to("nowhere")
    done = invoke("report-bug", reported, "--yes", "--out", "bug.zip")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: bug.zip: cannot be written: File exists\ntry: name a new file with --out")
