"""pytest runs that tests start: in a process of their own, and without the plugins of whoever runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import warm

PATIENCE_S = 300.0

# What a machine does with Python, which no test is about.
_HABITS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")

# What the pytest that runs these tests has put there, and what decides how a terminal is written to.
_LEFT_OUT = ("PYTEST_", "HYPOTHESIS_", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", *_HABITS)

# The kit's plugin, and xdist; one that shuffles or repeats would decide what a test sees. pytest would rewrite the
# assertions of a plugin named by its entry point, and complains where the kit was imported before.
_PLUGINS = "-p signet_conformance.pytest_plugin.hooks -p xdist"


@dataclass(frozen=True)
class Finished:
    """What a program left behind."""

    status: int
    out: str
    err: str

    @property
    def everything(self) -> str:
        """All that it printed."""
        return self.out + self.err


def environment(**extra: str) -> dict[str, str]:
    """Our environment as a shell would have it, with `extra`; any pytest started in it has just our plugins."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
    options = " ".join(filter(None, [_PLUGINS, extra.pop("PYTEST_ADDOPTS", "")]))
    return {**inherited, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": options, **extra}


def command(*words: str | Path) -> list[str]:
    """The words that run pytest with the Python at hand."""
    return [sys.executable, "-m", "pytest", *map(str, words)]


def finished(words: Sequence[str], folder: Path, *, patience_s: float = PATIENCE_S, **extra: str) -> Finished:
    """A program run to its end in `folder`, `extra` in its environment."""
    done = warm.finished(words, folder, environment(**extra), patience_s)
    return Finished(done.returncode, done.stdout, done.stderr)


def run(folder: Path, *words: str | Path, **extra: str) -> Finished:
    """A pytest run in `folder`."""
    return finished(command(*words), folder, **extra)


def run_plainly(folder: Path, *words: str | Path) -> Finished:
    """A pytest run in `folder` that imports everything itself."""
    done = subprocess.run(command(*words), cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    return Finished(done.returncode, done.stdout, done.stderr)


def begin(words: Sequence[str], folder: Path, **extra: str) -> subprocess.Popen[str]:
    """A program run in `folder` that the test follows while it goes on."""
    return subprocess.Popen(
        words,
        cwd=folder,
        env=environment(**extra),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
