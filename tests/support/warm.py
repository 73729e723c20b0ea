"""Programs that tests run by the hundred, as forks of a process that has imported what they need.

Each is still a process of its own, with an environment, a folder and an end of its own; only its imports are done.
What is about imports, or about how Python starts, is tested with a plain start.
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from signet_conformance import rules
from signet_conformance.children import forks
from signet_conformance.children.forks import ForkedProcess, Forks

# A rule is imported with the first recording that is judged.
_RULES: Final = tuple(module.name for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."))
# What a run that drives imports, and what shows its end.
_DRIVING: Final = (
    "encodings.idna",
    "psutil",
    "rich.progress",
    "signet_conformance.reports.run_text",
    "signet_conformance.reports.terminal",
    "signet_conformance.reports.text",
    "signet_conformance.running.performance",
    "signet_conformance.running.run",
    "signet_conformance.targets.profile",
    # What such a run starts.
    *(module for modules in forks.PROGRAMS.values() for module in modules),
)
# Not the hooks, which pytest wants to see first.
_PYTEST: Final = (
    "execnet.multi",
    "pytest",
    *(f"_pytest.{name}" for name in ("cacheprovider", "capture", "doctest", "faulthandler", "helpconfig", "junitxml")),
    *(f"_pytest.{name}" for name in ("legacypath", "logging", "pastebin", "setuponly", "setupplan", "skipping")),
    *(f"_pytest.{name}" for name in ("stepwise", "terminal", "threadexception", "unittest", "unraisableexception")),
    "_pytest.warnings",
    "signet_conformance.engine",
    "signet_conformance.pytest_plugin.run",
    *_DRIVING,
    *_RULES,
)
_CLI: Final = (
    "signet_conformance.cli.check",
    "signet_conformance.cli.check_text",
    "signet_conformance.cli.checking",
    "signet_conformance.cli.commands",
    "signet_conformance.cli.record",
    "signet_conformance.cli.run",
    "signet_conformance.cli.run_lines",
    "signet_conformance.engine",
    *_DRIVING,
    *_RULES,
)
_HARNESS: Final = (
    "signet_reference_harness.chat",
    "signet_reference_harness.cli.servers",
    "signet_reference_harness.cli.sessions",
    "signet_reference_harness.llm_server",
    "signet_reference_harness.local_server",
    "signet_reference_harness.providers.ollama",
    "signet_reference_harness.run",
)
PROGRAMS: Final = {"pytest": _PYTEST, "signet_conformance.cli": _CLI, "signet_reference_harness.cli": _HARNESS}

_WITH_SERVER: Final = str(Path(__file__).with_name("warm_program.py"))

_forks = Forks()
server = _forks.server


def _start(words: Sequence[str], folder: Path, env: Mapping[str, str]) -> ForkedProcess | None:
    """A program as a fork that has a fork server of its own; None where it may not be one."""
    python, option, program, *arguments = words
    if option != "-m" or program not in PROGRAMS:
        return None
    return _forks.start([python, _WITH_SERVER, program, *arguments], env, folder, {_WITH_SERVER: PROGRAMS[program]})


class Fork:
    """A fork that a test follows; more of what `subprocess.Popen` has, under the same names."""

    def __init__(self, forked: ForkedProcess) -> None:
        self._forked = forked
        self.pid, self.stdin, self.stdout, self.stderr = forked.pid, forked.stdin, forked.stdout, forked.stderr
        self.wait = forked.wait

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


Begun = Fork | subprocess.Popen[bytes]


def begin(words: Sequence[str], env: Mapping[str, str]) -> Begun:
    """One of these programs, or of those that a run starts, in a session of its own: a fork where it may be one."""
    forked = _forks.start(words, env, None, {**forks.PROGRAMS, **PROGRAMS})
    if forked is not None:
        return Fork(forked)
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True)


def end(process: Begun, patience_s: float) -> int:
    """Close a program's streams, its standard input first, so that it ends; its exit status."""
    streams = [stream for stream in (process.stdin, process.stdout, process.stderr) if stream is not None]
    with contextlib.suppress(OSError):
        streams[0].close()
    try:
        return process.wait(patience_s)
    finally:
        for stream in streams:
            with contextlib.suppress(OSError):
                stream.close()


def finished(
    words: Sequence[str], folder: Path, env: Mapping[str, str], patience_s: float, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """A program run to its end in `folder`, which reads what is `given`: a fork where it may be one, else plainly.

    Raises subprocess.TimeoutExpired, once the program and its group are killed.
    """
    forked = _start(words, folder, env)
    if forked is None:
        return subprocess.run(
            words,
            cwd=folder,
            env=env,
            input=given,
            capture_output=True,
            text=True,
            timeout=patience_s,
            check=False,
        )
    said = [b"", b""]

    def read(place: int) -> None:
        with (forked.stdout, forked.stderr)[place] as stream:
            said[place] = stream.read()

    readers = [threading.Thread(target=read, args=(place,), daemon=True) for place in (0, 1)]
    for reader in readers:
        reader.start()
    with forked.stdin as stream, contextlib.suppress(BrokenPipeError):
        stream.write(given.encode())
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
