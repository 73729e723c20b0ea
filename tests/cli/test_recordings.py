"""Files on a command line that are no recordings: refused with a remedy, or passed over in a folder."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Invoke, Process
from tests.support.report_files import report
from tests.support.trace_files import CONFORMING, HEADER, health, write

AUDIT = '{"format": "signet-audit/1", "who": "ada"}\n'
HAR = '{"log": {"version": "1.2", "entries": []}}'


@pytest.mark.parametrize(
    ("name", "text", "what", "remedy"),
    [
        ("run.har", HAR, "is a HAR capture", "signet-conformance convert run.har run.jsonl"),
        ("run.jsonl", HAR, "is a HAR capture", "signet-conformance convert run.jsonl run.trace.jsonl --from har"),
        ("run.txt", HAR, "is a HAR capture", "signet-conformance convert run.txt run.jsonl --from har"),
        ("run.flow", "5:hello,", "is a flow capture", "signet-conformance convert run.flow run.jsonl"),
        ("r.json", '{\n "format": "signet-report/1"}', "is a signet-report file", "signet-conformance matrix r.json"),
        ("b.json", '{"format": "signet-baseline/1"}', "is a signet-baseline file", "--baseline"),
        ("a.audit.jsonl", AUDIT, "is a signet-audit file", "leave it out"),
    ],
)
@pytest.mark.parametrize("command", ["check", "show"])
def test_a_file_of_another_format_is_named_with_its_command(
    invoke: Invoke, tmp_path: Path, command: str, name: str, text: str, what: str, remedy: str
) -> None:
    """A file that is named itself must be a trace; the error names its format and the command that reads it."""
    (tmp_path / name).write_text(text)
    done = invoke(command, name)
    assert done.exit_code == 2
    assert f"error: {name}: {what}, no trace\ntry: " in done.stderr
    assert remedy in done.stderr


@pytest.mark.parametrize(
    "text", ["", "{", "5:hello,", '{"log": 7}', json.dumps({**HEADER, "format": "signet-trace/2"})]
)
def test_a_file_of_no_known_format_is_a_broken_trace(invoke: Invoke, tmp_path: Path, text: str) -> None:
    """Damaged and empty traces, and those of another version, are errors in a folder too, and never passed over."""
    (tmp_path / "odd.jsonl").write_text(text)
    for argument in ("odd.jsonl", "."):
        done = invoke("check", argument)
        assert done.exit_code == 2
        assert "odd.jsonl" in done.stderr
        assert "passed over" not in done.stderr


@pytest.mark.parametrize("argument", [".", "*.jsonl", "**"])
def test_a_folder_with_an_audit_is_checked_without_it(invoke: Invoke, tmp_path: Path, argument: str) -> None:
    """A file of another format is passed over with a note, which the report has too."""
    write(tmp_path / "a.jsonl", CONFORMING)
    (tmp_path / "known.json.audit.jsonl").write_text(AUDIT)
    done = invoke("check", argument, "--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert len(document["traces"]) == 1
    (note,) = document["warnings"]
    assert note.endswith("known.json.audit.jsonl is a signet-audit file: passed over")
    assert f"note: {note}\n" in done.stderr


def test_a_folder_with_nothing_else_holds_no_trace(invoke: Invoke, tmp_path: Path) -> None:
    """A folder in which every file is passed over ends with 2."""
    (tmp_path / "known.json.audit.jsonl").write_text(AUDIT)
    done = invoke("check", ".")
    assert done.exit_code == 2
    assert "holds no *.jsonl file" in done.stderr


@pytest.mark.parametrize("words", [("check",), ("show",), ("diff", "a.jsonl"), ("convert",)])
def test_a_pipe_is_refused_and_not_waited_for(process: Process, tmp_path: Path, words: tuple[str, ...]) -> None:
    """A pipe without a writer, and a device without an end, are refused at once."""
    write(tmp_path / "a.jsonl", CONFORMING)
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in ("pipe.jsonl", "/dev/zero"):
        rest = ("out.har", "--from", "trace") if words == ("convert",) else ()
        done = process(*words, path, *rest)
        assert done.returncode == 2
        assert f"error: {path}: is not a plain file" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("matrix", "PIPE"),
        ("compare", "a.json", "PIPE"),
        ("report-bug", "PIPE"),
        ("convert", "PIPE", "out.jsonl", "--from", "har"),
        ("convert", "PIPE", "out.jsonl", "--from", "flows"),
        ("check", "a.jsonl", "--baseline", "PIPE"),
    ],
)
def test_a_pipe_in_place_of_another_file_is_refused_and_not_waited_for(
    process: Process, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The error comes at once and names the pipe: nothing may ever write into it."""
    write(tmp_path / "a.jsonl", CONFORMING)
    report(tmp_path / "a.json")
    os.mkfifo(tmp_path / "pipe")
    for path in ("pipe", "/dev/zero"):
        done = process(*(path if word == "PIPE" else word for word in words))
        assert done.returncode == 2
        kind = "(is not a plain file|cannot be read: it is a (named pipe|device))"
        assert re.match(f"error: (--baseline )?{path}: {kind}", done.stderr)


def test_a_report_from_a_pipe_that_a_shell_opened_is_read(tmp_path: Path) -> None:
    """Such a pipe has its writer, whatever name the shell gives it."""
    report(tmp_path / "a.json")
    matrix = f"{shlex.quote(sys.executable)} -m signet_conformance.cli matrix"
    for line in (f"{matrix} <(cat a.json)", f"cat a.json | {matrix} /dev/stdin"):
        done = subprocess.run(["/bin/bash", "-c", line], cwd=tmp_path, capture_output=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_pipe_that_a_shell_opened_is_read(tmp_path: Path) -> None:
    """The output of a program in `<( )` is judged like a file."""
    path = write(tmp_path / "a.jsonl", [health()])
    line = f"{shlex.quote(sys.executable)} -m signet_conformance.cli check -q <(cat {shlex.quote(str(path))})"
    done = subprocess.run(["/bin/bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)
    assert "in 1 trace" in done.stdout, done.stderr


def test_a_pipe_in_a_folder_is_passed_over(process: Process, tmp_path: Path) -> None:
    """The recordings beside it are judged."""
    write(tmp_path / "a.jsonl", [health()])
    os.mkfifo(tmp_path / "pipe.jsonl")
    for argument in (".", "*.jsonl"):
        done = process("check", argument, "-q")
        assert "pipe.jsonl is not a plain file: passed over" in done.stderr
        assert "in 1 trace" in done.stdout
