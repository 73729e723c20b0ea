"""Programs that tests run by the hundred, as forks of a process that has imported what they need.

Each is still a process of its own, with an environment, a folder and an end of its own; only its imports are done.
What is about imports, or about how Python starts, is tested with a plain start.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from signet_conformance.children.forks import Forks

# Not the hooks, which pytest wants to see first, nor what only a run that drives imports.
_PYTEST: Final = (
    "pytest",
    *(f"_pytest.{name}" for name in ("cacheprovider", "capture", "doctest", "faulthandler", "junitxml", "legacypath")),
    *(f"_pytest.{name}" for name in ("logging", "pastebin", "setuponly", "skipping", "stepwise", "terminal")),
    *(f"_pytest.{name}" for name in ("threadexception", "unraisableexception", "warnings")),
    "signet_conformance.engine",
    "signet_conformance.pytest_plugin.run",
    "signet_conformance.pytest_plugin.summary",
    "signet_conformance.rules",
    "signet_conformance.running.performance",
)
_CLI: Final = (
    "signet_conformance.cli.check",
    "signet_conformance.cli.commands",
    "signet_conformance.cli.run",
    "signet_conformance.engine",
    "signet_conformance.rules",
)
_HARNESS: Final = (
    "signet_reference_harness.cli.servers",
    "signet_reference_harness.llm_server",
    "signet_reference_harness.local_server",
)
PROGRAMS: Final = {"pytest": _PYTEST, "signet_conformance.cli": _CLI, "signet_reference_harness.cli": _HARNESS}

_forks = Forks()
held = _forks.held


def finished(
    words: Sequence[str], folder: Path, env: Mapping[str, str], patience_s: float
) -> subprocess.CompletedProcess[str]:
    """A program run to its end in `folder` with nothing to read: a fork where it may be one, else a plain process.

    Raises subprocess.TimeoutExpired, once the program and its group are killed.
    """
    forked = _forks.start(words, env, folder, PROGRAMS)
    if forked is None:
        return subprocess.run(
            words,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience_s,
            check=False,
        )
    forked.stdin.close()
    said = [b"", b""]

    def read(place: int) -> None:
        with (forked.stdout, forked.stderr)[place] as stream:
            said[place] = stream.read()

    readers = [threading.Thread(target=read, args=(place,), daemon=True) for place in (0, 1)]
    for reader in readers:
        reader.start()
    try:
        status = forked.wait(patience_s)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(forked.pid, signal.SIGKILL)
        raise
    for reader in readers:
        reader.join(patience_s)
    out, err = (text.decode().replace("\r\n", "\n") for text in said)
    return subprocess.CompletedProcess(words, status, out, err)
