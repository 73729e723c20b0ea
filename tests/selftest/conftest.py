"""Fixtures of the selftest's own tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from signet_conformance.contracts import Answer, RecordingDaemon


class GatedDaemon(RecordingDaemon):
    """Answers with an empty object what it was told no answer to; while `gate` is clear it answers nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = threading.Event()
        """Set by the first request."""
        self.gate = threading.Event()
        self.gate.set()

    def answer_to(self, path: str) -> Answer:
        """Wait for the gate, then answer."""
        self.arrived.set()
        self.gate.wait(30)
        return self.always.get(path, Answer({}))


@pytest.fixture
def server() -> Iterator[GatedDaemon]:
    """A daemon that keeps what it is asked."""
    daemon = GatedDaemon()
    yield daemon
    daemon.gate.set()
    daemon.stop()
