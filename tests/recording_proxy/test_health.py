"""Whether a daemon is there, and which version it says it is."""

from __future__ import annotations

import asyncio

import pytest

from signet_recording_proxy.health import ask
from signet_recording_proxy.upstream import Upstream
from tests.support import recorder


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        (recorder.HEALTH, "0.145.7"),
        (b"<html>", None),
        (b"[]", None),
        (b'{"version": 3}', None),
        (b"[" * 100_000, None),
        (b"\xff", None),
        (b"", None),
    ],
)
def test_any_answer_is_an_answer(answer: bytes, version: str | None) -> None:
    """The daemon is there whatever it answers; its version is known when it says one."""
    daemon = recorder.Upstream()
    daemon.handlers["/health"] = lambda call: call.answer(answer)
    assert asyncio.run(ask(Upstream(daemon.url))) == (True, version)
    daemon.close()


def test_nobody_is_there() -> None:
    """A refused connection and one that is cut off are no answers."""
    daemon = recorder.Upstream()
    daemon.handlers["/health"] = lambda call: call.reset()
    assert asyncio.run(ask(Upstream(daemon.url))) == (False, None)
    daemon.close()
    assert asyncio.run(ask(Upstream(daemon.url))) == (False, None)
