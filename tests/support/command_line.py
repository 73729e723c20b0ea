"""The command line as fixtures: a command line inside this process, and one in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from signet_conformance.cli.commands import commands
from signet_conformance.running import scenario_choice
from signet_conformance.scenarios.scenario import scripted
from tests.support import warm

Invoke = Callable[..., Result]
Process = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Invoke:
    """Run a command line inside this process, in an empty folder; its arguments are made strings."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Result:
        return CliRunner().invoke(commands, [str(word) for word in words])

    return run


@pytest.fixture
def few_scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs inside this process perform two of the scripted scenarios, where the number of them shows nothing."""
    few = [scenario for scenario in scripted() if scenario.name in ("plain", "resume")]
    monkeypatch.setattr(scenario_choice, "scripted", lambda: few)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Run a command line in a process of its own, in an empty folder."""

    def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "signet_conformance.cli", *map(str, words)]
        return warm.finished(line, tmp_path, {**_environment(), **environment}, 60)

    return run


def _environment() -> dict[str, str]:
    unwanted = {"COLUMNS", "NO_COLOR", "FORCE_COLOR", "PYTHONUNBUFFERED", "SIGNET_CONFORMANCE_TRACEBACK"}
    return {name: value for name, value in os.environ.items() if name not in unwanted}
