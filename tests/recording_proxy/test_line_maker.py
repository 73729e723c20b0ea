"""Lines of large bodies are made beside the recorder: no client waits for them, and a kill leaves a pending line."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from signet_conformance import trace
from signet_conformance.trace.model import NOT_WRITTEN
from signet_recording_proxy.body import DEFAULT_LIMIT
from tests.support.recorder import PATIENCE_S, RecorderProcess, Upstream

SECRET = "sk-proj-abcdefghij0123456789klmnopqrst"
LARGE = json.dumps({"transcript": f"{'Round half to even. ' * 4000} {SECRET}"}).encode()


@pytest.fixture
def recorder(upstream: Upstream, tmp_path: Path) -> Iterator[RecorderProcess]:
    """A recorder of its own."""
    process = RecorderProcess("--upstream", upstream.url, "--control", out=tmp_path / "t.jsonl")
    yield process
    process.close()


def worker_of(recorder: RecorderProcess) -> psutil.Process:
    """The process that makes lines, which the first large body starts."""
    assert recorder.request("POST", "/first", LARGE)[0] == 200
    recorder.trace()
    (worker,) = psutil.Process(recorder.process.pid).children()
    return worker


@contextmanager
def suspended(worker: psutil.Process) -> Iterator[None]:
    """Let a worker stand still in the block; a test that fails there leaves none behind that never ends."""
    worker.suspend()
    try:
        yield
    finally:
        with suppress(psutil.NoSuchProcess):
            worker.resume()


def test_large_and_small_bodies_share_their_tokens(recorder: RecorderProcess) -> None:
    """One secret has one token, wherever it is found first, and none stands in the file."""
    small = json.dumps({"a": SECRET, "password": "hunter2x"}).encode()
    for path, body in (
        ("/1", LARGE),
        ("/2", small),
        ("/3", LARGE[:-2] + b' password=hunter2x token=abcdefgh12345678"}'),
    ):
        recorder.request("POST", path, body, authorization="Bearer 0123456789abcdef")
    exchanges = recorder.trace().exchanges
    written = recorder.out.read_text()
    assert not any(secret in written for secret in (SECRET, "hunter2x", "abcdefgh12345678", "0123456789abcdef"))
    first, second, third = (exchange.request.body.object for exchange in exchanges if exchange.request.body)
    assert first
    assert second
    assert third
    assert first["transcript"].endswith(f" {second['a']}")
    assert f"{second['a']} password={second['password']} token=<redacted:" in third["transcript"]
    assert [exchange.seq for exchange in exchanges] == [1, 2, 3]


@pytest.mark.parametrize("length", [len(LARGE), 9_000_000])
def test_an_answer_does_not_wait_for_its_line(recorder: RecorderProcess, length: int) -> None:
    """While the worker stands still, clients are answered and nothing is idle; then the line follows."""
    worker = worker_of(recorder)
    with suspended(worker):
        assert recorder.request("POST", "/second", LARGE + b" " * (length - len(LARGE)))[0] == 200
        assert recorder.request("POST", "/small", b"{}")[0] == 200
        assert recorder.command("idle", timeout_s=0)["in_flight"] == 1
    read = recorder.trace()
    assert [exchange.request.path for exchange in read.exchanges] == ["/first", "/second", "/small"]
    assert [gap.why for gap in read.gaps] == ["over the limit"] * (length > DEFAULT_LIMIT)


def test_a_kill_leaves_a_line_that_says_what_it_lacks(recorder: RecorderProcess) -> None:
    """Of an exchange that was answered and whose line was not made: its head, and no secret."""
    worker = worker_of(recorder)
    with suspended(worker):
        recorder.request("POST", "/second?token=abcdefgh12345678", LARGE, authorization="Bearer 0123456789abcdef")
        recorder.kill()
    read = trace.read(recorder.out)
    *_, second = read.exchanges
    assert (second.request.path, second.response and second.response.status) == ("/second", 200)
    assert second.request.body is not None
    assert second.request.body.size == len(LARGE)
    assert [(gap.exchange, gap.side, gap.why) for gap in read.gaps] == [(2, "request", NOT_WRITTEN)]
    written = recorder.out.read_text()
    assert not any(secret in written for secret in (SECRET, "abcdefgh12345678", "0123456789abcdef"))


def test_a_recorder_that_ends_waits_for_its_lines(recorder: RecorderProcess) -> None:
    """And leaves no process behind."""
    worker = worker_of(recorder)
    with suspended(worker):
        recorder.request("POST", "/second", LARGE)
        recorder.process.send_signal(signal.SIGTERM)
    assert recorder.process.wait(PATIENCE_S) == 0
    assert trace.read(recorder.out).gaps == ()
    assert not worker.is_running()


def test_a_worker_that_is_killed_costs_its_lines_only(recorder: RecorderProcess) -> None:
    """They are named, the next large body gets another worker, and the recorder ends with 4."""
    worker = worker_of(recorder)
    with suspended(worker):
        recorder.request("POST", "/second", LARGE)
        worker.kill()
    assert recorder.request("POST", "/third", LARGE)[0] == 200
    read = recorder.trace()
    assert [(gap.exchange, gap.why) for gap in read.gaps] == [(2, NOT_WRITTEN)]
    recorder.process.send_signal(signal.SIGTERM)
    assert recorder.process.wait(PATIENCE_S) == 4
    assert "the line of exchange 2 could not be made: the process that made it ended" in recorder.stderr()


def test_the_worker_ends_with_the_recorder(recorder: RecorderProcess) -> None:
    """However that ends."""
    worker = worker_of(recorder)
    recorder.kill()
    worker.wait(PATIENCE_S)
