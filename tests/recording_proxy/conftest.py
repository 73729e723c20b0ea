"""A recorder and an upstream that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.recorder import CANARY, PATIENCE_S, RecorderProcess, Upstream


@pytest.fixture(scope="session")
def upstream() -> Iterator[Upstream]:
    """An upstream that lives as long as the tests do."""
    server = Upstream()
    yield server
    server.close()


@pytest.fixture(scope="session")
def shared_recorder(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecorderProcess]:
    """The recorder that most tests share; its canary is in SIGNET_TEST_CANARY."""
    recorder = RecorderProcess(
        *("--upstream", upstream.url, "--control", "--target", "shared", "--body-limit", "20000"),
        *("--canary-env", "SIGNET_TEST_CANARY", "--agent", "atlas-agent", "--bound", "start=15"),
        out=tmp_path_factory.mktemp("recorder") / "first.jsonl",
        environment={"SIGNET_TEST_CANARY": CANARY},
    )
    yield recorder
    recorder.close()


@pytest.fixture
def recorder(shared_recorder: RecorderProcess, upstream: Upstream, tmp_path: Path) -> Iterator[RecorderProcess]:
    """The shared recorder on a fresh trace, without faults, before an upstream without handlers."""
    shared_recorder.begin(tmp_path / "trace.jsonl")
    upstream.calls.clear()  # the recorder itself asked for /health when it began
    yield shared_recorder
    shared_recorder.command("fault_off", id=None)
    shared_recorder.command("idle", timeout_s=PATIENCE_S)
    upstream.handlers.clear()
    upstream.calls.clear()
