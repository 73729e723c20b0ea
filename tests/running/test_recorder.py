"""The recorder of a run as its client sees it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from signet_conformance.errors import NothingTestedError
from signet_conformance.running.recorder import RecorderClient
from signet_conformance.running.stopwatch import Stopwatch
from tests.support.recorder import Upstream


def test_recorder_that_nobody_can_reach_tests_nothing(tmp_path: Path) -> None:
    """A machine without loopback is told as that: the connector, whose calls are all lost, is not to blame."""
    recorder = RecorderClient("http://127.0.0.1:9", tmp_path, {}, Stopwatch())
    try:
        recorder.demand_reachable()
    finally:
        recorder.close()
    with pytest.raises(NothingTestedError, match="cannot be reached") as caught:
        recorder.demand_reachable()
    assert "loopback" in str(caught.value.remedy)


def worker_of(recorder: RecorderClient) -> psutil.Process:
    """The process that makes the lines of large bodies: a child of the one that listens."""
    port = urlsplit(recorder.url).port
    ours = psutil.Process().children(recursive=True)
    listening = next(one for one in ours if port in [each.laddr.port for each in one.net_connections()])
    (worker,) = listening.children()
    return worker


def test_failure_of_the_recorder_is_told_once(tmp_path: Path) -> None:
    """A line that it could not make is missing in the recording, and is no connector's silence."""
    large = json.dumps({"transcript": "Round half to even. " * 4000}).encode()
    with closing(Upstream()) as upstream, closing(RecorderClient(upstream.url, tmp_path, {}, Stopwatch())) as recorder:
        httpx.post(recorder.url, content=large, timeout=30, trust_env=False)
        recorder.wait_until_idle(30)
        assert recorder.new_failure() is None
        worker = worker_of(recorder)
        worker.suspend()
        httpx.post(recorder.url, content=large, timeout=30, trust_env=False)
        worker.kill()
        recorder.wait_until_idle(30)
        assert recorder.new_failure() == "the recorder failed 1 time: exchanges may be missing"
        assert recorder.new_failure() is None
