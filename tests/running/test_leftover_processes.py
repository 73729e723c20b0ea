"""What goes on after a harness: watched until it ends, or its time is over, and told."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from subprocess import PIPE
from typing import IO, cast

import psutil
import pytest

from signet_conformance.children.environment import TAG
from signet_conformance.running import leftover_processes
from signet_conformance.running.leftover_processes import LeftBehind, end_left, latest_request
from signet_conformance.trace.marks import LeftMark
from tests.support.processes import PATIENCE_S
from tests.support.trace_parts import exchange, trace

pytestmark = pytest.mark.waits

WAITS = "import sys; print(flush=True); sys.stdin.read()"
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process with a tag that goes on until its standard input ends."""
    started: list[subprocess.Popen[bytes]] = []

    def start(tag: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", WAITS, *words]
        child = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, env={**os.environ, TAG: tag})
        started.append(child)
        # Popen returns a moment before the system shows the environment of the new program.
        cast("IO[bytes]", child.stdout).readline()
        return child

    yield start
    for child in started:
        with child:
            child.kill()


def no_request() -> float:
    """The time of the newest request where none was made since the harness ended."""
    return 0.0


def test_nothing_left_is_said_at_once() -> None:
    """Where nothing carries the tag, nothing was left."""
    assert LeftBehind().conclude(secrets.token_hex(8), no_request) == [LeftMark()]


def test_a_process_that_goes_on_is_told_and_ended(start: Start) -> None:
    """Its command line and memory are told, and it is ended."""
    tag = secrets.token_hex(8)
    child = start(tag, "signet-mcp")
    (told,) = LeftBehind(0.1).conclude(tag, no_request)
    assert str(told.command).endswith("signet-mcp")
    assert (told.memory_mb or 0) > 1
    assert told.after_s == 0.1
    assert child.wait(10) != 0


def test_many_that_sleep_are_looked_at_together(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred of them, one after the other, would cost a run two minutes."""
    processes = [psutil.Process(start(secrets.token_hex(8)).pid) for _ in range(4)]
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)
    leftover_processes._is_any_working(processes)
    assert len(naps) <= leftover_processes._LOOKS


def test_a_process_that_ends_in_time_is_none(start: Start) -> None:
    """A process that ends while it is watched was not left; of the long wait the user hears."""
    tag, waits = secrets.token_hex(8), list[float]()
    child = start(tag)
    left = LeftBehind(600.0)

    def end(left_s: float) -> None:
        waits.append(left_s)
        assert child.stdin is not None
        child.stdin.close()

    left.note = end
    assert left.conclude(tag, no_request) == [LeftMark()]
    assert [500 < left_s <= 600 for left_s in waits] == [True]


def test_few_scenarios_are_watched(start: Start) -> None:
    """What further scenarios leave is ended soon, undecided: its time would be spent once for each."""
    left, tags = LeftBehind(0.1), [secrets.token_hex(8) for _ in range(3)]
    children = [start(tag) for tag in tags]
    told = [left.conclude(tag, no_request) for tag in tags]
    assert [len(each) for each in told] == [1, 1, 0]
    assert [child.wait(PATIENCE_S) for child in children] == [-signal.SIGKILL] * 3


@pytest.mark.parametrize("late", [True, False])
def test_what_comes_late_once_has_its_time_again(start: Start, late: bool) -> None:
    """A scenario that is not watched waits as long as the late requests of those before it need."""
    left, tags = LeftBehind(0.1, 1), [secrets.token_hex(8) for _ in range(2)]
    children = [start(tag) for tag in tags]
    assert len(left.conclude(tags[0], lambda: time.monotonic() + 600 if late else 0.0)) == 1
    ended = threading.Event()
    told: list[LeftMark] = []

    def conclude() -> None:
        told.extend(left.conclude(tags[1], no_request))
        ended.set()

    threading.Thread(target=conclude, daemon=True).start()
    if late:
        assert not ended.wait(2.0)
        assert children[1].stdin is not None
        children[1].stdin.close()
    assert ended.wait(PATIENCE_S)
    assert told == ([LeftMark()] if late else [])


def test_what_polls_the_daemon_is_not_waited_for() -> None:
    """A memory server that never exits asks for tools for ever: its newest save is late, not its polls."""
    told = [exchange(3, "/api/hooks/session-end"), exchange(5, "/api/memory/remember", content="Late.")]
    polls = [
        exchange(8, "/health", "GET"),
        exchange(20, "/api/marketplace/mcp/tools", "GET"),
        exchange(25, "/api/diagnostics/openclaw/heartbeat"),
    ]
    assert latest_request(trace(*told, *polls)) == told[-1].t1
    assert latest_request(trace(*polls)) == 0.0


def test_nobody_waits_for_what_is_hurried(start: Start) -> None:
    """A run that ends early decides nothing, and ends what is there."""
    tag = secrets.token_hex(8)
    child = start(tag)
    left = LeftBehind(600.0)
    left.is_hurried = lambda: True
    assert list(left.conclude(tag, no_request)) == []
    assert child.wait(PATIENCE_S) == -signal.SIGKILL


def test_a_daemon_is_none(start: Start) -> None:
    """A Signet daemon that the connector started is neither told nor ended."""
    tag = secrets.token_hex(8)
    child = start(tag, "/opt/signet/daemon.js")
    assert LeftBehind().conclude(tag, no_request) == [LeftMark()]
    end_left(tag)
    assert child.poll() is None
