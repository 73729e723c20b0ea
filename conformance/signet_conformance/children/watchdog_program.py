"""The watchdog's program: when a kit process dies, it ends the processes and removes the folders that it left.

It runs by itself, without the kit's packages. Its arguments are the id of the kit process and the tag that the
process's children carry. The kit process writes lines to its standard input: `group ID` for a process group, `folder
PATH` (the path in hexadecimal), and `ended group ID` or `ended folder PATH` to stop watching one. That
input closes however the kit process ends, by SIGKILL too.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

WATCHDOG_VARIABLE = b"SIGNET_CONFORMANCE_RUN"
"""The environment variable in which every process of a run carries the tag of its watchdog."""
_TERMINATE_S = 2.0
_KILL_S = 10.0
_POLL_S = 0.02
"""The interval of polling: these processes are not our children, and process groups have no descriptor."""
_MOST_READS = 5
_PARENT_POLL_MS = 1000
_CHUNK_BYTES = 64 * 1024


def _wait_for_end(parent: int) -> set[tuple[str, str]]:
    """Wait until the kit process ends. Return what it left behind, as pairs of `group` or `folder` with a name."""
    poller = select.poll()
    poller.register(0, select.POLLIN | select.POLLHUP)
    parent_fd = None
    # A fork of the kit process may hold our input open: we also wait for the end of the process itself.
    with suppress(AttributeError, OSError):
        parent_fd = os.pidfd_open(parent)
        poller.register(parent_fd, select.POLLIN)
    left: set[tuple[str, str]] = set()
    partial_line = b""
    while True:
        events = dict(poller.poll(_PARENT_POLL_MS if parent_fd is None else None))
        chunk = os.read(0, _CHUNK_BYTES) if 0 in events else None
        *lines, partial_line = (partial_line + (chunk or b"")).split(b"\n")
        for line in lines:
            word, *names = line.decode("ascii").split(" ")
            if word == "ended":
                left.discard((names[0], names[1]))
            else:
                left.add((word, names[0]))
        if chunk == b"" or (chunk is None and (parent_fd in events or os.getppid() != parent)):
            return left


def carriers(entry: bytes, besides: Container[int] = ()) -> list[int]:
    """The living processes with this NAME=VALUE in their environment, without those `besides`.

    There are none where there is no /proc, as on macOS.
    """
    processes = []
    with suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - importing pathlib is most of the start
            if int(name) in besides:
                continue
            block = _environment_of(name)
            if entry in block and entry in block.split(b"\0"):
                processes.append(int(name))
    return processes


def _environment_of(process: str) -> bytes:
    """Read a process's environment; b"" if it has none, or may not be read.

    It is empty for a moment when a program takes the process over, and then it is read again.
    """
    with suppress(OSError):
        for _ in range(_MOST_READS):
            with open(f"/proc/{process}/environ", "rb", 0) as environment:  # noqa: PTH123 - as above
                block = environment.read()
            if block:
                return block
            os.readlink(f"/proc/{process}/exe")  # noqa: PTH115 - as above; fails for a zombie, which has no program
            time.sleep(_POLL_S)  # nothing announces that the program has begun
    return b""


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group (0 only probes). Return whether there is such a group of ours."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


def _send(number: int, groups: list[int], processes: list[int]) -> bool:
    """Send a signal to all of them. Return whether any of the groups exists."""
    exist = [signal_group(group, number) for group in groups]
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
    return any(exist)


def _end(groups: list[int], tag: bytes) -> None:
    """End the groups and all processes with the tag. SIGTERM comes first, so that they can write their buffers."""
    entry = WATCHDOG_VARIABLE + b"=" + tag
    _send(signal.SIGTERM, groups, carriers(entry))
    deadline = time.monotonic() + _TERMINATE_S
    while (_send(0, groups, []) or carriers(entry)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    deadline = time.monotonic() + _KILL_S
    # Killed more than once: a process may have started another just before it died.
    while True:
        tagged = carriers(entry)
        if not (_send(signal.SIGKILL, groups, tagged) or tagged) or time.monotonic() > deadline:
            return
        time.sleep(_POLL_S)


def main() -> None:
    """Wait until the kit process ends, end the processes that it left, then remove the folders."""
    parent, tag = int(sys.argv[1]), sys.argv[2].encode("ascii")
    left = _wait_for_end(parent)
    _end([int(name) for kind, name in left if kind == "group"], tag)
    watched = [os.fsdecode(bytes.fromhex(name)) for kind, name in left if kind == "folder"]
    folders = [folder for folder in watched if os.path.lexists(folder)]
    if folders:
        import shutil  # Slow to import and rarely needed: processes usually remove their folders when they end.

        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
