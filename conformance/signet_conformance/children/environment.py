"""The environment of a child process: ours without credentials; a tag in it, by which its descendants are ended."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from signet_conformance.children.watchdog_program import carriers

if TYPE_CHECKING:
    from collections.abc import Container

    import psutil

_INHERITED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "PYTHONPATH",
    "PYTHONHASHSEED",
    "VIRTUAL_ENV",
    "COVERAGE_PROCESS_START",
)
"""Our variables that a child may see: no credential, none of the user's own Signet settings."""


_TOOLCHAINS = {"RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo"}
"""Variable to folder below the home: where a user's Rust tools are installed, without which cargo starts nothing."""


def clean_environment(home: Path, **extra: str) -> dict[str, str]:
    """An environment for a child: a home of its own, no inherited credentials."""
    variables = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    places = {name: Path(os.environ.get(name) or Path.home() / folder) for name, folder in _TOOLCHAINS.items()}
    variables |= {name: str(place) for name, place in places.items() if place.is_dir()}
    return {**variables, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "NO_COLOR": "1", **extra}


def free_port() -> int:
    """A port of this machine for a child to listen on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def listens(url: str) -> bool:
    """Whether an address accepts connections; nothing is sent."""
    with suppress(OSError, ValueError):
        place = urlsplit(url)
        with socket.create_connection((place.hostname or "", place.port or 80), _LOOK_S):
            return True
    return False


_LOOK_S = 1.0

TAG = "SIGNET_CONFORMANCE_TAG"
"""The variable that carries a tag, a random word. Processes that a child starts inherit it."""
_GRACE_S = 2.0


def new_tag() -> str:
    """Return a tag for a child that is about to start."""
    return secrets.token_hex(16)


def tagged_ids(tag: str, besides: Container[int] = ()) -> list[int]:
    """Return the ids of the living processes of this user whose environment carries `tag`, without those `besides`."""
    return [process.pid for process in tagged_processes(tag, besides)]


def process_ids() -> Container[int]:
    """Return the ids of all processes of this machine."""
    import psutil

    return set(psutil.pids())


def end_tagged(tag: str) -> None:
    """End the tagged processes by SIGTERM, and after two seconds by SIGKILL."""
    import psutil

    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE_S
        signalled: set[psutil.Process] = set()
        while (left := tagged_processes(tag)) and (remaining_s := deadline - time.monotonic()) > 0:
            for process in [each for each in left if each not in signalled]:
                with suppress(psutil.Error):
                    process.send_signal(number)
            signalled.update(left)
            psutil.wait_procs(left[:1], remaining_s)


def tagged_processes(tag: str, besides: Container[int] = ()) -> list[psutil.Process]:
    """Return the living processes of this user whose environment carries `tag`, without those `besides`."""
    # Usually no process carries the tag. psutil takes five times as long, so it examines only those that may.
    on_linux = sys.platform == "linux"
    candidates = carriers(f"{TAG}={tag}".encode(), besides) if on_linux else None
    if candidates == []:
        return []
    import psutil

    found = []
    for pid in candidates or [each for each in psutil.pids() if each not in besides]:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            carries = on_linux or process.environ().get(TAG) == tag
            if carries and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
