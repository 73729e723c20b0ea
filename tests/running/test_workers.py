"""Who does which job of a run: the workers share them, and what mostly waits is done beside them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_conformance.children.foreground import interrupted_by
from signet_conformance.running.recorded_daemon import RecordedDaemon
from signet_conformance.running.workers import Job, RunWorkers, in_threads
from signet_conformance.targets import load
from signet_conformance.targets.program import INSTALLED, PLACE_VARIABLE
from signet_conformance.targets.real import HarnessChoice, with_harness

PATIENCE_S = 180.0


@pytest.mark.parametrize(("processors", "at_once"), [(1, 1), (2, 2), (3, 3), (16, 4)])
def test_no_more_gateways_than_processors_are_started_at_once(
    processors: int, at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes one for itself while it starts, also in a scenario that mostly waits; four are always enough."""
    monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path))
    monkeypatch.setattr("os.cpu_count", lambda: processors)
    (tmp_path / "openclaw" / "2026.6.1").mkdir(parents=True)
    (tmp_path / "openclaw" / "2026.6.1" / INSTALLED).touch()
    target = with_harness(load("openclaw"), HarnessChoice("real"), "--harness")
    meeting = threading.Barrier(at_once)

    def waits(_recorded_daemon: RecordedDaemon) -> bool:
        meeting.wait(PATIENCE_S)
        return True

    with RunWorkers(target, tmp_path / "traces") as workers:
        assert len(workers.recorded_daemons) == at_once
        assert list(workers.work([waits] * at_once, [lambda _: True])) == [True] * (at_once + 1)


def test_jobs_that_wait_are_done_beside_the_others(tmp_path: Path) -> None:
    """While every worker is busy, a job that mostly waits is done all the same."""
    done = threading.Event()

    def busy(_recorded_daemon: RecordedDaemon) -> bool:
        return done.wait(PATIENCE_S)

    def idle(_recorded_daemon: RecordedDaemon) -> bool:
        done.set()
        return True

    with RunWorkers(load("reference"), tmp_path / "traces") as workers:
        assert list(workers.work([busy, busy], [idle])) == [True, True, True]


def test_jobs_that_wait_are_done_beside_each_other(tmp_path: Path) -> None:
    """Two jobs that mostly wait are under way at once, while the workers are busy."""
    meeting = threading.Barrier(2)
    met = threading.Event()

    def busy(_recorded_daemon: RecordedDaemon) -> bool:
        return met.wait(PATIENCE_S)

    def idle(_recorded_daemon: RecordedDaemon) -> bool:
        meeting.wait(PATIENCE_S)
        met.set()
        return True

    with RunWorkers(load("reference"), tmp_path / "traces") as workers:
        assert all(workers.work([busy] * 5, [idle, idle]))


def test_no_more_jobs_wait_at_once_than_asked_for(tmp_path: Path) -> None:
    """Two jobs that mostly wait share the one worker beside the others."""
    waited: list[RecordedDaemon] = []
    both = threading.Event()

    def busy(_recorded_daemon: RecordedDaemon) -> bool:
        return both.wait(PATIENCE_S)

    def idle(recorded_daemon: RecordedDaemon) -> bool:
        waited.append(recorded_daemon)
        if len(waited) == 2:
            both.set()
        return True

    with RunWorkers(load("reference"), tmp_path / "traces") as workers:
        assert all(workers.work([busy] * 5, [idle, idle], at_once=1))
    assert len(set(map(id, waited))) == 1


def test_one_worker_alone_does_every_job(tmp_path: Path) -> None:
    """Where the number of workers is given, none comes beside them: what waits is done last."""

    def named(name: str) -> Job[tuple[str, RecordedDaemon]]:
        return lambda recorded_daemon: (name, recorded_daemon)

    with RunWorkers(load("reference"), tmp_path / "traces", count=1) as workers:
        done = list(workers.work([named("first"), named("second")], [named("waits")]))
        assert done == [(name, workers.recorded_daemons[0]) for name in ("first", "second", "waits")]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only /proc tells whether a thread sleeps")
def test_a_signal_that_another_thread_took_ends_the_wait_for_results() -> None:
    """The system gives a signal of a process to any of its threads; Python handles it in the main one."""
    over, ended = threading.Event(), threading.Event()
    stat = Path(f"/proc/self/task/{threading.main_thread().native_id}/stat")

    def waits(_look: int) -> bool:
        return stat.read_text().rpartition(")")[2].split()[0] == "S"

    def work(_place: None) -> Iterator[bool]:
        # Also who waits for the interpreter sleeps, but not for that many looks, each of which lets go of it.
        while not all(map(waits, range(100))):
            pass
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        over.wait(30)
        ended.set()
        yield True

    try:
        with interrupted_by(signal.SIGTERM), pytest.raises(KeyboardInterrupt):
            list(in_threads(work, [None]))
        assert not ended.is_set()
    finally:
        over.set()
