"""A watchdog over what this process starts: killed by SIGKILL, we leave neither processes nor folders behind.

The watchdog is a small process. Each kit process starts one with its first child. It has a session of its own, so it
survives when our process group is killed, and it acts when we end, for whatever reason. A process that a watched one
starts has no watchdog of its own: it carries the same tag.
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

WATCHDOG_VARIABLE = watchdog_program.WATCHDOG_VARIABLE.decode("ascii")
_WATCHDOG_END_S = 15.0
"""How long we wait at our end for that of the watchdog, which usually finds nothing left to end."""

_lock = threading.Lock()
_process: subprocess.Popen[bytes] | None = None
_tag: str | None = None


def watched_environment(env: Mapping[str, str] | None) -> dict[str, str]:
    """Start the watchdog if needed. Return the environment `env` (None: ours) with its tag, for a child."""
    return {**(os.environ if env is None else env), WATCHDOG_VARIABLE: _start()}


def watch_group(group: int) -> None:
    """Let the watchdog end a process group when we end."""
    _start()
    _tell(f"group {group}")


def forget_group(group: int) -> None:
    """Stop watching a group that has ended: the system may give its id to another."""
    _tell(f"ended group {group}")


def watch_folder(folder: Path) -> None:
    """Let the watchdog remove a folder when we end."""
    _start()
    _tell(f"folder {os.fsencode(folder).hex()}")


def forget_folder(folder: Path) -> None:
    """Stop watching a folder that was removed or handed on."""
    _tell(f"ended folder {os.fsencode(folder).hex()}")


def _start() -> str:
    """Start the watchdog unless one already watches over us. Return the tag of our children."""
    global _process, _tag  # noqa: PLW0603 - one a process
    with _lock:
        if _tag is None:
            _tag = os.environ.get(WATCHDOG_VARIABLE)
        if _tag is None:
            _tag = secrets.token_hex(16)
            command = [sys.executable, "-I", "-S", watchdog_program.__file__, str(os.getpid()), _tag]
            # Without a watchdog a run still works; it only leaves processes behind if it is killed.
            with suppress(OSError):
                _process = subprocess.Popen(
                    command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    cwd="/", start_new_session=True,
                )  # fmt: skip
        return _tag


def _tell(line: str) -> None:
    process = _process
    if process is not None and process.stdin is not None:
        with suppress(OSError, ValueError):
            process.stdin.write(f"{line}\n".encode("ascii"))


@atexit.register
def end() -> None:
    """Let the watchdog end the remaining processes, and itself. Called only at the end of this process."""
    process = _process
    if process is not None and process.stdin is not None:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_WATCHDOG_END_S)


def _forked() -> None:
    """Leave the watchdog to our parent: a forked process that starts children has one of its own."""
    global _lock, _process, _tag  # noqa: PLW0603 - one a process
    process, _process, _tag = _process, None, None
    _lock = threading.Lock()
    if process is not None and process.stdin is not None:
        process.stdin.close()
        # Not our child: nothing to be waited for.
        process.returncode = 0


os.register_at_fork(after_in_child=_forked)
