"""The same run under other circumstances: narrow, quiet, without colours, without a terminal plugin, hostile input."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.support import session_recordings
from tests.support.inner_pytest import command, environment
from tests.support.repository import Repository

from .conftest import JudgedRun


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        ((), {"NO_COLOR": "1", "TERM": "dumb"}),
        (("-qq", "--tb=no"), {}),
        (("-v",), {}),
        (("-p", "no:terminal"), {}),
        (("-p", "no:cacheprovider", "-p", "no:warnings", "-p", "no:junitxml", "-p", "no:xdist"), {}),
        ((), {"COLUMNS": "1"}),
        ((), {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ],
    ids=lambda value: " ".join(value if isinstance(value, tuple) else map("=".join, value.items())) or "plain",
)
def test_circumstances_do_not_change_the_status(
    repository: Repository, breaching: Path, arguments: tuple[str, ...], extra: dict[str, str]
) -> None:
    """Whatever is shown or left out, the run ends with the same status and without a crash."""
    done = repository.conform("--signet-trace", breaching, *arguments, **extra)
    assert done.status == 1, done.everything
    assert "Traceback" not in done.everything
    assert "INTERNALERROR" not in done.everything
    assert "\x1b[" not in done.out


def test_narrow_terminal_gets_narrow_text(repository: Repository, breaching: Path) -> None:
    """Under COLUMNS=40 the block of a failure keeps to forty columns, but for the commands that are to be pasted."""
    done = repository.conform("--signet-trace", breaching, "-k", "SIG-END-001", COLUMNS="40")
    block = done.out.partition("FAIL SIG-END-001 MUST")[2].partition("====")[0].splitlines()
    assert len(block) > 10
    assert [line for line in block if len(line) > 40 and not line.startswith(("  replay", "  page"))] == []


def test_terminal_shows_what_a_pipe_does(repository: Repository, breaching: Path) -> None:
    """On a terminal the run has the same verdicts and status, in colour."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command("--signet-conformance", "--signet-trace", breaching),
        cwd=repository.folder,
        env={**environment(TERM="xterm"), "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = bytearray()
        while chunk := _read(ours):
            shown += chunk
        assert process.wait() == 1
    os.close(ours)
    assert b"\x1b[3" in shown
    assert b"1 FAIL, 1 WARN; " in shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # Linux says so when the last one at the other side has gone.
        return b""


def test_hostile_recording_reaches_the_terminal_escaped(repository: Repository, tmp_path: Path) -> None:
    """Terminal escapes, bidirectional marks and lone surrogates of a recording are shown escaped."""
    method, path, sent, answered = session_recordings.NAMELESS_END
    hostile = {**(sent or {}), "harness": 7, "sessionKey": "\x1b]0;owned\x07\u202e\ud800"}
    recording = session_recordings.write(
        tmp_path / "hostile.jsonl", (session_recordings.START, (method, path, hostile, answered))
    )
    done = repository.conform("--signet-trace", recording, "-rA")
    assert done.status == 1, done.everything
    assert "\\x1b]0;owned" in done.out
    assert "\x1b" not in done.everything
    assert "\u202e" not in done.everything


def test_undecided_requirements_are_listed_when_quiet(repository: Repository, conforming_run: JudgedRun) -> None:
    """-q still lists each undecided requirement with its reason, and the counts."""
    done = repository.conform("--signet-trace", conforming_run.recording, "-q")
    undecided = [name for name, case in conforming_run.cases.items() if case.verdict == "INCONCLUSIVE"]
    assert undecided
    for name in undecided:
        assert f"{name} INCONCLUSIVE: " in done.out
    assert f"{len(undecided)} inconclusive" in done.out.splitlines()[-1]
