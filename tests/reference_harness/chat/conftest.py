"""A chat on a pseudo-terminal or in a pipe, with a scripted model and a recording daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reference_harness.llm_server.served import Served
from tests.reference_harness.run.conftest import project, scripted_model, serve
from tests.support import warm
from tests.support.pseudo_terminal import PseudoTerminal

__all__ = ["project", "scripted_model", "serve"]

COMMAND = (sys.executable, "-m", "signet_reference_harness.cli", "chat")
Chat = Callable[..., PseudoTerminal]
Pipe = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def chat(project: Path, scripted_model: Served) -> Chat:
    """Begins a chat on a terminal, in that project, with that model; the line editor is ready."""

    def begin(*options: str, columns: int = 80, rows: int = 24) -> PseudoTerminal:
        terminal = PseudoTerminal(
            [*COMMAND, *options], columns, rows, cwd=project, **provider(scripted_model.url), PYTHONFAULTHANDLER="1"
        )
        terminal.wait_for("atlas ")
        return terminal

    return begin


@pytest.fixture
def pipe(project: Path, scripted_model: Served) -> Pipe:
    """Holds a chat whose lines come from a pipe."""

    def run(lines: str, *options: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, **provider(scripted_model.url)}
        return warm.finished([*COMMAND, *options], project, environ, 60, lines)

    return run


def provider(url: str) -> dict[str, str]:
    """The environment that names the scripted model."""
    return {
        "SIGNET_HARNESS_PROVIDER": "ollama",
        "SIGNET_HARNESS_BASE_URL": url,
        "SIGNET_HARNESS_MODEL": "scripted",
    }
