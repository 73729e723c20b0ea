"""How long a child is waited for, by a clock and a count of waiting that the tests set themselves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from signet_conformance.children import deadline
from signet_conformance.children.deadline import (
    IDLE_S,
    MOST_TIMES,
    Deadline,
    cpu_of,
    cpu_with_descendants,
    waited_for_a_processor,
)

SECONDS = 30.0


@dataclass
class Machine:
    """What a deadline asks: the clock, what the child worked, and the system's count of waiting."""

    pressure: Path
    now: float = 100.0
    worked: float = 0.0

    def deadline(self) -> Deadline:
        """One of SECONDS that begins now."""
        return Deadline(SECONDS, lambda: self.worked, lambda: self.now)

    def wait(self, seconds: float, *, busy: bool = True, working: bool = True) -> None:
        """Let some seconds pass, all of them with a program that waits for a processor or none."""
        self.now += seconds
        self.worked += 0.01 * working
        if busy:
            self.count(waited() + seconds)

    def count(self, seconds: float) -> None:
        """Let the system have counted so many seconds of waiting."""
        self.pressure.write_text(f"some avg10=0.00 avg60=0.00 avg300=0.00 total={int(seconds * 1e6)}\nfull total=0\n")


def waited() -> float:
    """What the system has counted."""
    told = waited_for_a_processor()
    assert told is not None
    return told


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine whose system counts waiting, from 7 seconds on."""
    monkeypatch.setattr(deadline, "PRESSURE", tmp_path / "cpu")
    deadline._waited_at.cache_clear()
    machine = Machine(tmp_path / "cpu")
    machine.count(7.0)
    yield machine
    deadline._waited_at.cache_clear()


def test_an_idle_machine_gives_the_seconds_that_were_asked_for(machine: Machine) -> None:
    """However much the child works."""
    ends = machine.deadline()
    machine.wait(SECONDS - 1, busy=False)
    assert ends.left_s() == pytest.approx(1.0)
    machine.wait(1, busy=False)
    assert ends.left_s() == 0
    assert ends.words() == "within 30 s"


def test_a_busy_machine_gives_the_time_of_waiting_once_more(machine: Machine) -> None:
    """To a child that works: as long as others wait all the time, until MOST_TIMES the seconds are over."""
    ends = machine.deadline()
    machine.wait(SECONDS)
    assert ends.left_s() == pytest.approx(SECONDS)
    while machine.now < 100 + MOST_TIMES * SECONDS:
        assert ends.left_s() > 0
        machine.wait(2)
    assert ends.left_s() == 0
    assert ends.words() == "within 30 s, nor in 90 s more, which it got because the machine is busy"


def test_waiting_that_is_over_gives_no_more_than_it_took(machine: Machine) -> None:
    """Ten seconds of waiting are ten seconds more."""
    ends = machine.deadline()
    machine.wait(10)
    machine.wait(SECONDS - 10, busy=False)
    assert ends.left_s() == pytest.approx(10)
    machine.wait(10, busy=False)
    assert ends.left_s() == 0


def test_a_child_that_does_nothing_is_given_a_moment_only(machine: Machine) -> None:
    """One that waits for something other than a processor waits for it on an idle machine too."""
    ends = machine.deadline()
    machine.wait(SECONDS)
    assert ends.left_s() > 0
    machine.wait(IDLE_S / 2, working=False)
    assert ends.left_s() > 0
    machine.wait(IDLE_S, working=False)
    assert ends.left_s() == 0


@pytest.mark.parametrize("told", [None, "", "some avg10=0.00\n", "some total=many\n"])
def test_nothing_is_given_where_nobody_counts(machine: Machine, told: str | None) -> None:
    """On a system without the count, or with one of another form."""
    machine.pressure.unlink()
    if told is not None:
        machine.pressure.write_text(told)
    ends = machine.deadline()
    machine.now += SECONDS
    assert ends.left_s() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process took")
def test_work_counts_with_that_of_those_below() -> None:
    """A child of a child counts, wherever its group."""
    inner = "for _ in range(2 * 10**6): pass\nprint(flush=True)\ninput()"
    outer = "import subprocess, sys\nsubprocess.run([sys.executable, '-ISc', sys.argv[1]], process_group=0)"
    command = [sys.executable, "-ISc", outer, inner]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        assert cpu_with_descendants(child.pid) > cpu_of(child.pid)
        child.stdin.close()
