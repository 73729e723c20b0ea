"""Where `signet-conformance check` writes: files that replace nothing without --force, pipes that close."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Invoke
from tests.support.trace_files import BREACHING, CONFORMING, write


def test_output_takes_the_report(invoke: Invoke, tmp_path: Path) -> None:
    """--output writes the report to a new file; the terminal shows the closing line and the file's name."""
    done = invoke("check", write(tmp_path / "a.jsonl", BREACHING), "--json", "--output", "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["exit"] == 1
    assert done.stdout.endswith("report: report.json\n")


def test_output_replaces_nothing_without_force(invoke: Invoke, tmp_path: Path) -> None:
    """An existing file stays and the run ends with 2; --force replaces the whole file."""
    trace = write(tmp_path / "a.jsonl", BREACHING)
    report = tmp_path / "report.txt"
    report.write_text("mine")
    refused = invoke("check", trace, "--output", report)
    assert (refused.exit_code, report.read_text()) == (2, "mine")
    assert "exists already" in refused.stderr
    assert "--force" in refused.stderr
    assert invoke("check", trace, "--output", report, "--force").exit_code == 1
    assert report.read_text().startswith(str(trace))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "report.txt"]


@pytest.mark.parametrize("output", ["no/such/folder.txt", "."])
def test_an_output_that_cannot_be_written_exits_2(invoke: Invoke, tmp_path: Path, output: str) -> None:
    """A missing folder, or a folder in the file's place, is an error and leaves nothing behind."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), "--output", output, "--force")
    assert done.exit_code == 2
    assert f"error: {output}: cannot be written" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_report_is_not_left_half_written(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the run is interrupted, --output leaves no file and the exit status is 130."""
    trace = write(tmp_path / "a.jsonl", CONFORMING)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("signet_conformance.cli.checking.read_recording", interrupt)
    done = invoke("check", trace, "--output", "report.txt")
    assert done.exit_code == 130
    assert not (tmp_path / "report.txt").exists()


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path) -> None:
    """A pipe that is closed early ends the run quietly, with the status that a shell expects."""
    trace = write(tmp_path / "a.jsonl", BREACHING * 60)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "signet_conformance.cli", "check", str(trace)],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_report_is_not_blamed_for_a_reader_that_leaves(tmp_path: Path) -> None:
    """If a report is written beside the output, a closed pipe has the same status, and no incomplete report stays."""
    trace, page = write(tmp_path / "a.jsonl", BREACHING * 60), tmp_path / "page.html"
    reading, writing = os.pipe()
    os.close(reading)
    # Unbuffered: the pipe is found closed while the report is being written.
    words = [sys.executable, "-u", "-m", "signet_conformance.cli", "check", str(trace), "--html", str(page)]
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr, page.exists()) == (141, b"", False)


@pytest.mark.parametrize("option", ["--html", "--sarif", "--output", "--write-baseline"])
def test_a_report_never_replaces_what_is_judged(invoke: Invoke, tmp_path: Path, option: str) -> None:
    """Not even with --force, by whatever path it is named: a recording cannot be made again."""
    trace = write(tmp_path / "a.jsonl", BREACHING)
    before = trace.read_bytes()
    (tmp_path / "folder").mkdir()
    done = invoke(
        "check", "a.jsonl", "--force", "--reason", "r", "--write-baseline", "b.json", option, "folder/../a.jsonl"
    )
    assert (done.exit_code, trace.read_bytes() == before) == (2, True)


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "an empty name does not name a file"), ("-", "a dash does not name a file, which this report needs")],
)
@pytest.mark.parametrize("option", ["--html", "--output", "--write-baseline"])
def test_an_empty_name_and_a_dash_are_no_files(
    invoke: Invoke, tmp_path: Path, option: str, name: str, said: str
) -> None:
    """An unset shell variable and a dash name no report; the error comes before anything is judged."""
    trace = write(tmp_path / "a.jsonl", CONFORMING)
    done = invoke("check", trace, *(("--reason", "r") if option == "--write-baseline" else ()), option, name)
    assert (done.exit_code, done.stdout, done.stderr.splitlines()[0]) == (2, "", f"error: {said}")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize(("lines", "status"), [(CONFORMING, 0), (BREACHING, 1)], ids=["conforming", "breaching"])
def test_a_closed_stdout_changes_no_status(tmp_path: Path, lines: list[dict[str, Any]], status: int) -> None:
    """A program started without stdout and stderr prints nothing, and its exit status is the same."""
    trace = write(tmp_path / "a.jsonl", lines)
    command = f"{shlex.join([sys.executable, '-m', 'signet_conformance.cli', 'check', str(trace)])} >&- 2>&-"
    assert subprocess.run(["/bin/sh", "-c", command], check=False, timeout=60).returncode == status


def test_reports_are_written_beside_the_output(invoke: Invoke, tmp_path: Path) -> None:
    """Markdown, SARIF and a page are written beside the text or the JSON report, and named below the closing line."""
    write(tmp_path / "a.jsonl", BREACHING)
    done = invoke("check", "a.jsonl", "--markdown", "r.md", "--sarif", "r.sarif", "--html", "r.html")
    assert done.exit_code == 1
    assert done.stdout.endswith("report: r.md\nreport: r.sarif\nreport: r.html\n")
    assert (tmp_path / "r.md").read_text().startswith("## Signet conformance")
    assert json.loads((tmp_path / "r.sarif").read_bytes())["version"] == "2.1.0"
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "r.html").stat().st_mode & 0o077 == 0, "it holds bodies, and traces are private"
    assert json.loads(invoke("check", "a.jsonl", "--json", "--html", "r2.html").stdout)["exit"] == 1


def test_a_report_replaces_nothing_and_shares_no_file(invoke: Invoke, tmp_path: Path) -> None:
    """An existing file, or one file for two reports, ends the run with 2 before anything is judged."""
    write(tmp_path / "a.jsonl", BREACHING)
    (tmp_path / "r.md").write_text("theirs")
    done = invoke("check", "a.jsonl", "--markdown", "r.md", "--sarif", "new.sarif")
    assert (done.exit_code, (tmp_path / "r.md").read_text()) == (2, "theirs")
    assert "exists already" in done.stderr
    assert not (tmp_path / "new.sarif").exists()
    done = invoke("check", "a.jsonl", "--html", "same", "--sarif", "./same")
    assert (done.exit_code, "two reports go to one file" in done.stderr) == (2, True)
    assert invoke("check", "a.jsonl", "--markdown", "r.md", "--force", "-q").exit_code == 1
    assert (tmp_path / "r.md").read_text().startswith("## Signet")
