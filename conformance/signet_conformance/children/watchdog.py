"""A watchdog over what this process starts: killed by SIGKILL, we leave neither processes nor folders behind.

One small process a kit process, started with its first child. It has a session of its own and so survives
when our group is killed, and it acts once we are gone, however that came. A process that a watched one starts
has no watchdog of its own: it carries the same mark.
"""

from __future__ import annotations

import atexit
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from signet_conformance.children import watchdog_program

VARIABLE = watchdog_program.VARIABLE.decode("ascii")
_PATIENCE_S = 15.0
"""For its end at ours: it then looks for what is left over, and finds nothing as a rule."""

_lock = threading.Lock()
_process: subprocess.Popen[bytes] | None = None
_mark: str | None = None


def marked_environment(env: Mapping[str, str] | None) -> dict[str, str]:
    """The environment of a child (None: ours), with the mark by which the watchdog knows it; it runs from then on."""
    return {**(os.environ if env is None else env), VARIABLE: _start()}


def watch_group(group: int) -> None:
    """Have a process group ended when we are gone."""
    _start()
    _tell(f"group {group}")


def forget_group(group: int) -> None:
    """It has ended: its number may soon be another's."""
    _tell(f"ended group {group}")


def watch_folder(folder: Path) -> None:
    """Have a folder removed when we are gone."""
    _start()
    _tell(f"folder {os.fsencode(folder).hex()}")


def forget_folder(folder: Path) -> None:
    """It is no longer ours to remove."""
    _tell(f"ended folder {os.fsencode(folder).hex()}")


def _start() -> str:
    """The mark of what belongs to this process; the watchdog runs, unless another one's watches over us already."""
    global _process, _mark  # noqa: PLW0603 - one a process
    with _lock:
        if _mark is None:
            _mark = os.environ.get(VARIABLE)
        if _mark is None:
            _mark = secrets.token_hex(16)
            command = [sys.executable, "-I", "-S", watchdog_program.__file__, str(os.getpid()), _mark]
            # Without one a run is as good as ever, until it is killed.
            with suppress(OSError):
                _process = subprocess.Popen(
                    command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    cwd="/", start_new_session=True,
                )  # fmt: skip
        return _mark


def _tell(line: str) -> None:
    process = _process
    if process is not None and process.stdin is not None:
        with suppress(OSError, ValueError):
            process.stdin.write(f"{line}\n".encode("ascii"))


@atexit.register
def end() -> None:
    """Let the watchdog end what is left over, and itself; called at the end of this process, and before it by none."""
    process = _process
    if process is not None and process.stdin is not None:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)


def _forked() -> None:
    """Leave the watchdog to our parent: a forked process that starts children has one of its own."""
    global _lock, _process, _mark  # noqa: PLW0603 - one a process
    process, _process, _mark = _process, None, None
    _lock = threading.Lock()
    if process is not None and process.stdin is not None:
        process.stdin.close()
        # Not our child: nothing to be waited for.
        process.returncode = 0


os.register_at_fork(after_in_child=_forked)
