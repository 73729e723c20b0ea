"""Whether a daemon is there, and which version it says it is."""

from __future__ import annotations

import asyncio

import pytest

from signet_recording_proxy.health import ask
from signet_recording_proxy.upstream import Upstream
from tests.support import recorder


@pytest.mark.parametrize(
    ("answer", "version", "odd"),
    [
        (recorder.HEALTH, "0.145.7", ""),
        (b"<html>", None, "with status 200 and no JSON object"),
        (b"[]", None, "with status 200 and no JSON object"),
        (b'{"version": 3}', None, ""),
        (b"[" * 100_000, None, "with status 200 and no JSON object"),
        (b"\xff", None, "with status 200 and no JSON object"),
        (b"", None, "with status 200 and no JSON object"),
    ],
)
def test_any_answer_is_an_answer(answer: bytes, version: str | None, odd: str) -> None:
    """Somebody is there whatever they answer; the version is known when it is said, and what no daemon says is odd."""
    daemon = recorder.Upstream()
    daemon.handlers["/health"] = lambda call: call.answer(answer)
    assert asyncio.run(ask(Upstream(daemon.url))) == (True, version, odd)
    daemon.close()


def test_nobody_is_there() -> None:
    """A refused connection and one that is cut off are no answers."""
    daemon = recorder.Upstream()
    daemon.handlers["/health"] = lambda call: call.reset()
    assert asyncio.run(ask(Upstream(daemon.url))) == (False, None, "")
    daemon.close()
    assert asyncio.run(ask(Upstream(daemon.url))) == (False, None, "")
