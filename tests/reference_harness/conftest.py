"""Fixtures of the harness's tests: a recording daemon, settings for it, and a host that is closed again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.session.host import SessionHost

from .recording_daemon import RecordingDaemon


@pytest.fixture(scope="package", autouse=True)
def _no_certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nobody is trusted over TLS: all that is spoken to is on this machine, without it.

    Each client of a model reads the certificates that are trusted, which takes longer than most of its test.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("SSL_CERT_FILE", raising=False)
        patched.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("no-certificates")))
        yield


@pytest.fixture
def daemon() -> Iterator[RecordingDaemon]:
    """A recording daemon for one test."""
    recording = RecordingDaemon()
    yield recording
    recording.stop()


@pytest.fixture
def config(daemon: RecordingDaemon) -> HarnessConfig:
    """Settings for that daemon, with deadlines long enough for a busy machine."""
    return HarnessConfig(
        origin=daemon.origin, timeouts_s={"health": 5.0, "session-start": 5.0, "user-prompt-submit": 5.0}
    )


@pytest.fixture
def hosted(config: HarnessConfig) -> Callable[..., Any]:
    """Runs a coroutine function with a session host, on the usual settings or others, and closes the host."""

    def run(work: Callable[[SessionHost], Awaitable[Any]], settings: HarnessConfig = config) -> Any:
        async def closed() -> Any:
            host = SessionHost(settings)
            try:
                return await work(host)
            finally:
                await host.client.aclose()

        return asyncio.run(closed())

    return run
