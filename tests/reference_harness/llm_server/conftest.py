"""A scripted model server as a process; each test plays a script of its own on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .served import Serve, Served, started


@pytest.fixture(scope="session")
def scripted_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server without turns."""
    with started(tmp_path_factory.mktemp("script") / "script.json") as served:
        yield served


@pytest.fixture
def serve(scripted_model: Served) -> Serve:
    """Play a script, given as its members except `format`; requests of earlier tests are forgotten."""

    def play(**script: object) -> Served:
        scripted_model.play(**script)
        return scripted_model

    return play
