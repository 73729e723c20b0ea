"""Fixtures of the selftest's own tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .recording_server import RecordingServer


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    """A server that keeps what it is asked."""
    with RecordingServer() as running:
        yield running
