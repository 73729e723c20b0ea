"""The program of the watchdog: it ends all that a kit process started, once that process is gone without doing so.

It runs by itself, without the kit's packages. Its arguments are the id of the process that it watches over and a
mark; its standard input tells what was started: `group ID`, `folder PATH` (in hexadecimal), and `ended ...` when the
kit has seen to it. A kit process that ends in any way, by SIGKILL too, closes that input.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

VARIABLE = b"SIGNET_CONFORMANCE_RUN"
"""The variable in which every process of a run carries the mark of its watchdog."""
_GRACE_S = 2.0
_KILLING_S = 10.0
_LOOK_S = 0.02
_ASK_PARENT_MS = 1000
_CHUNK_BYTES = 64 * 1024


def _listen(parent: int) -> set[tuple[str, str]]:
    """Wait for the end of the kit process; return what it left as (kind, name)."""
    ready = select.poll()
    ready.register(0, select.POLLIN | select.POLLHUP)
    gone = None
    # Whatever the kit process forked holds our input open: its own end counts as well.
    with suppress(AttributeError, OSError):
        gone = os.pidfd_open(parent)
        ready.register(gone, select.POLLIN)
    started: set[tuple[str, str]] = set()
    rest = b""
    while True:
        events = dict(ready.poll(_ASK_PARENT_MS if gone is None else None))
        chunk = os.read(0, _CHUNK_BYTES) if 0 in events else None
        *lines, rest = (rest + (chunk or b"")).split(b"\n")
        for line in lines:
            word, *about = line.decode("ascii").split(" ")
            if word == "ended":
                started.discard((about[0], about[1]))
            else:
                started.add((word, about[0]))
        if chunk == b"" or (chunk is None and (gone in events or os.getppid() != parent)):
            return started


def _marked(mark: bytes) -> list[int]:
    """The living processes that carry the mark, wherever they went; only Linux shows them."""
    wanted = VARIABLE + b"=" + mark
    processes = []
    with suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - importing pathlib is most of the start
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as environment:  # noqa: PTH123 - as above
                if wanted in environment.read().split(b"\0"):
                    processes.append(int(name))
    return processes


def _tell(groups: list[int], processes: list[int], number: int) -> bool:
    """Send a signal to all; whether any of the groups is there."""
    there = False
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
            there = True
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
    return there


def _end(groups: list[int], mark: bytes) -> None:
    """End all: those that heed it have two seconds for what they still have to write."""
    _tell(groups, _marked(mark), signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_S
    while (_tell(groups, [], 0) or _marked(mark)) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    deadline = time.monotonic() + _KILLING_S
    # More than once: what is killed may just have started something.
    while _tell(groups, left := _marked(mark), signal.SIGKILL) or left:
        if time.monotonic() > deadline:
            return
        time.sleep(_LOOK_S)


def main() -> None:
    """Wait for the end of the kit process; then end processes first, and remove folders after that."""
    parent, mark = int(sys.argv[1]), sys.argv[2].encode("ascii")
    started = _listen(parent)
    _end([int(name) for kind, name in started if kind == "group"], mark)
    watched = [os.fsdecode(bytes.fromhex(name)) for kind, name in started if kind == "folder"]
    # Most of them are gone: their makers have removed them.
    folders = [folder for folder in watched if os.path.lexists(folder)]
    if folders:
        import shutil  # Rarely needed, and slow to import.

        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
