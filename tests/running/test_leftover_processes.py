"""What goes on after a harness: watched until it ends, or its time is over, and told in the recording."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from signet_conformance import trace
from signet_conformance.children.environment import MARK, marked_ids
from signet_conformance.running.leftover_processes import LeftBehind, end_left
from signet_conformance.trace.marks import LeftMark, marks_of
from tests.support.case_traces import build
from tests.support.processes import PATIENCE_S

WAITS = "import sys; sys.stdin.read()"
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process with a mark that goes on until its standard input ends."""
    started: list[subprocess.Popen[bytes]] = []

    def start(mark: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", WAITS, *words]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, MARK: mark})
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The recording of a scenario."""
    path = tmp_path / "plain.jsonl"
    build(
        path, [{"request": {"method": "GET", "path": "/health"}}, {"mark": "scenario_end", "data": {"name": "plain"}}]
    )
    return path


def left_in(out: Path) -> list[LeftMark]:
    """What a recording says of what was left."""
    return [*marks_of(trace.read(out), LeftMark)]


def test_nothing_left_is_said_at_once(out: Path) -> None:
    """Where nothing carries the mark, nothing was left."""
    assert LeftBehind().look(secrets.token_hex(8), out) == LeftMark()


def test_a_process_that_goes_on_is_told_and_ended(out: Path, start: Start) -> None:
    """Its command line and memory stand at the end of the recording, and it is ended."""
    mark = secrets.token_hex(8)
    child = start(mark, "signet-mcp")
    left = LeftBehind(0.1)
    assert left.look(mark, out) is None
    left.conclude()
    (told,) = left_in(out)
    assert str(told.command).endswith("signet-mcp")
    assert (told.memory_mb or 0) > 1
    assert told.after_s == 0.1
    assert child.wait(10) != 0
    assert max(mark.seq for mark in trace.read(out).marks) == told.seq == 3


def test_a_process_that_ends_in_time_is_none(out: Path, start: Start) -> None:
    """A process that ends while others are performed was not left."""
    mark = secrets.token_hex(8)
    child = start(mark)
    left = LeftBehind(60.0)
    assert left.left_s() == 0
    assert left.look(mark, out) is None
    assert 50 < left.left_s() <= 60
    assert child.stdin is not None
    child.stdin.close()
    left.conclude()
    assert [told.command for told in left_in(out)] == [None]


def test_few_scenarios_are_watched(out: Path, start: Start) -> None:
    """What further scenarios leave is ended at once: it would pile up."""
    left, marks = LeftBehind(60.0), [secrets.token_hex(8) for _ in range(3)]
    children = [start(mark) for mark in marks]
    assert [left.look(mark, out) for mark in marks] == [None] * 3
    # Killed is at once; gone it is when the machine has got to it.
    assert children[2].wait(PATIENCE_S) == -signal.SIGKILL
    assert [child.poll() for child in children[:2]] == [None, None]
    left.close()
    assert [child.wait(PATIENCE_S) for child in children[:2]] == [-signal.SIGKILL] * 2
    assert [*map(marked_ids, marks)] == [[], [], []]
    assert left_in(out) == []


def test_a_daemon_is_none(out: Path, start: Start) -> None:
    """A Signet daemon that the connector started is neither told nor ended."""
    mark = secrets.token_hex(8)
    child = start(mark, "/opt/signet/daemon.js")
    assert LeftBehind().look(mark, out) == LeftMark()
    end_left(mark)
    assert child.poll() is None
