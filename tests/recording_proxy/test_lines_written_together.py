"""Exchanges that end in one turn of the loop are written at once, and nobody hears an end before its line is there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import trace
from signet_conformance.trace import Header
from signet_recording_proxy import recorder as recorder_module
from signet_recording_proxy.recorder import OngoingExchange, Recorder
from signet_recording_proxy.redaction.redactor import Redactor
from signet_recording_proxy.trace_file import TraceFile

LARGE = recorder_module._LARGE
Told = list[tuple[int, list[int]]]
"""Whose ends were heard, and what stood in the recording by then."""


class Recording:
    """A recorder, and what its clients heard."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recorder = Recorder(TraceFile(str(path), Header()), Redactor({}), 1 << 20)
        self.told: Told = []

    def begin(self) -> OngoingExchange:
        """A request has come."""
        return self.recorder.begin(1, "GET", "/", [])

    def end(self, exchange: OngoingExchange, body: bytes = b"{}") -> None:
        """Its answer has come."""
        exchange.begin_answer(200, []).body.feed(body)
        self.recorder.finish_before(exchange, lambda: self.told.append((exchange.seq, self.written())))

    def written(self) -> list[int]:
        """The numbers that stand in the recording."""
        return [exchange.seq for exchange in trace.read(self.path).exchanges]


def recorded(path: Path, work: Callable[[Recording], Awaitable[None]]) -> Recording:
    """What `work` leaves."""

    async def record() -> Recording:
        recording = Recording(path)
        await work(recording)
        return recording

    return asyncio.run(record())


def test_a_client_hears_the_end_when_the_lines_of_this_turn_are_written(tmp_path: Path) -> None:
    """While others are in flight: nothing is written before the turn is over, and nobody hears anything."""

    async def work(recording: Recording) -> None:
        exchanges = [recording.begin() for _ in range(3)]
        recording.end(exchanges[0])
        recording.end(exchanges[1])
        assert (recording.told, recording.written(), recording.recorder.file.written) == ([], [], 0)
        await asyncio.sleep(0)
        assert recording.recorder.in_flight == 1

    recording = recorded(tmp_path / "t", work)
    assert recording.told == [(1, [1, 2]), (2, [1, 2])]
    assert recording.recorder.file.written == 2


def test_the_last_one_in_flight_waits_for_nothing(tmp_path: Path) -> None:
    """Nor do those that waited; and nobody is told that all is quiet before they have their lines."""

    async def work(recording: Recording) -> None:
        first, second = recording.begin(), recording.begin()
        recording.end(first)
        assert recording.told == []
        recording.end(second)
        assert recording.told == [(1, [1, 2]), (2, [1, 2])]
        assert await recording.recorder.idle(0)

    assert recorded(tmp_path / "t", work).told


@pytest.mark.parametrize("most", [2, 5])
def test_no_more_lines_wait_than_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """They are held in memory."""
    monkeypatch.setattr(recorder_module, "_MOST_TOGETHER", most)

    async def work(recording: Recording) -> None:
        exchanges = [recording.begin() for _ in range(2 * most + 2)]
        for number, exchange in enumerate(exchanges[:-1], 1):
            recording.end(exchange)
            assert len(recording.told) == number // most * most
        await asyncio.sleep(0)
        assert len(recording.told) == 2 * most + 1

    recorded(tmp_path / "t", work)


def test_a_large_line_does_not_wait(tmp_path: Path) -> None:
    """Nor do those before it; while it is made, another line holds its place."""

    async def work(recording: Recording) -> None:
        first, second, _ = recording.begin(), recording.begin(), recording.begin()
        recording.end(first)
        recording.end(second, b'"%b"' % (b"x" * LARGE))
        assert recording.told == [(1, [1, 2]), (2, [1, 2])]
        assert recording.recorder.in_flight == 2
        await recording.recorder.wait_for_lines()

    recorded(tmp_path / "t", work)


def test_what_ends_otherwise_or_is_marked_takes_the_waiting_lines_along(tmp_path: Path) -> None:
    """In the order in which they ended."""

    async def work(recording: Recording) -> None:
        first, second, third, _ = (recording.begin() for _ in range(4))
        recording.end(first)
        recording.recorder.finish(second, "upstream_reset")
        assert (recording.told, recording.written()) == ([], [1, 2])
        recording.end(third)
        recording.recorder.mark("step", {})
        assert (recording.told, recording.written()) == ([], [1, 2, 3])
        await asyncio.sleep(0)

    assert recorded(tmp_path / "t", work).told == [(1, [1, 2, 3]), (3, [1, 2, 3])]


def test_each_line_goes_to_the_file_in_which_its_exchange_began(tmp_path: Path) -> None:
    """Another file takes what follows, and a recorder that ends leaves no line behind."""

    async def work(recording: Recording) -> None:
        first, second = recording.begin(), recording.begin()
        recording.end(first)
        recording.recorder.switch(str(tmp_path / "u"), Header())
        third, _ = recording.begin(), recording.begin()
        recording.end(second)
        recording.end(third)
        recording.recorder.abandon("the recorder ended")

    recording = recorded(tmp_path / "t", work)
    assert [number for number, _ in recording.told] == [1, 2, 1]
    assert recording.written() == [1, 2]
    assert [exchange.seq for exchange in trace.read(tmp_path / "u").exchanges] == [1, 2]


def test_an_exchange_that_has_ended_has_its_line_already(tmp_path: Path) -> None:
    """Whoever waits for it is told at once."""

    async def work(recording: Recording) -> None:
        exchange, _ = recording.begin(), recording.begin()
        recording.recorder.finish(exchange, "upstream_reset")
        recording.end(exchange)

    assert recorded(tmp_path / "t", work).told == [(1, [1])]


def test_a_recording_that_cannot_grow_is_told_and_holds_nobody_up(tmp_path: Path) -> None:
    """Whoever runs the recorder is told; its clients are not left waiting."""

    async def work(recording: Recording) -> None:
        first, second, _ = recording.begin(), recording.begin(), recording.begin()
        recording.recorder.file._fd = -1
        recording.end(first)
        recording.end(second)
        await asyncio.sleep(0)
        assert recording.recorder.failure.done()
        recording.recorder.failure.result()

    assert len(recorded(tmp_path / "t", work).told) == 2


def test_a_line_that_cannot_be_made_costs_no_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is named on standard error, the client hears its end, and the lines of the others are written."""

    async def work(recording: Recording) -> None:
        broken: Any = [("x-note", None)]
        recording.end(recording.recorder.begin(1, "GET", "/", broken))
        recording.end(recording.begin())

    recording = recorded(tmp_path / "t", work)
    assert recording.told == [(1, []), (2, [2])]
    assert (recording.recorder.in_flight, recording.recorder.internal_errors) == (0, 1)
    assert "the line of exchange 1 could not be made" in capfd.readouterr().err
