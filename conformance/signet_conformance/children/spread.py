"""Work on many items by forks of this process, which have all that it has read and imported.

Only on Linux: elsewhere forks are not safe, and this process does the work. The caller must have no other thread.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from signet_conformance.errors import KitError, SignetConformanceError

Item = TypeVar("Item")
Result = TypeVar("Result")

_HEAD = struct.Struct("!q")


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Generator[Result, None, None]:
    """Yield the result of `work` for each item, in the order of the items. Results are pickled, items are not.

    Raises KitError for a worker that was lost, and for an error in a worker that is not the kit's own.
    """
    if min(workers, len(items)) < 2 or sys.platform != "linux":
        yield from map(work, items)
        return
    with begun(work, items, workers) as results:
        yield from results


@contextmanager
def begun(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[Iterator[Result]]:
    """Start the forks, which work from the beginning of the block to its end; yield the results in order."""
    sys.stdout.flush()
    sys.stderr.flush()
    # What is there now is not collected until the pool is closed: a search for garbage would copy the shared memory.
    gc.freeze()
    forks: dict[socket.socket, int] = {}
    try:
        for _ in range(min(workers, len(items))):
            pid, pipe = _fork(work, items, list(forks))
            forks[pipe] = pid
        for item, pipe in enumerate(forks):
            pipe.sendall(_HEAD.pack(item))
        yield _in_order(forks, len(items))
    finally:
        gc.unfreeze()
        for pipe, pid in forks.items():
            pipe.close()
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _in_order(forks: dict[socket.socket, int], count: int) -> Iterator[Any]:
    """The results in the order of the items, as soon as they can be told; each fork works at one already."""
    waiting = iter(range(len(forks), count))
    done: dict[int, Any] = {}
    following = 0
    with selectors.DefaultSelector() as selector:
        for each in forks:
            selector.register(each, selectors.EVENT_READ, each)
        while following < count:
            for key, _ in selector.select():
                pipe: socket.socket = key.data
                message = _received(pipe)
                if message is None:
                    raise KitError(
                        "a worker process was lost",
                        remedy="if its memory was not enough, run it again with --workers 1",
                    )
                item, good, result = pickle.loads(message)  # noqa: S301 - from a fork of this very process
                if (new := next(waiting, None)) is not None:
                    pipe.sendall(_HEAD.pack(new))
                done[item] = good, result
            while following in done:
                good, result = done.pop(following)
                if not good:
                    raise result
                yield result
                following += 1


def _fork(
    work: Callable[[Any], Any], items: Sequence[Any], inherited: Sequence[socket.socket]
) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # A fork that kept the ends of the others' pipes would keep them from ending when this process is killed.
        for pipe in (ours, *inherited):
            pipe.close()
        _work(work, items, theirs)
        status = 0
    finally:
        # Nothing of what this process would do at its end is a fork's business.
        os._exit(status)


def _work(work: Callable[[Any], Any], items: Sequence[Any], pipe: socket.socket) -> None:
    """Do what the pipe asks for until it ends."""
    while (head := _exactly(pipe, _HEAD.size)) is not None:
        (item,) = _HEAD.unpack(head)
        answer: tuple[int, bool, Any]
        try:
            answer = item, True, work(items[item])
        except SignetConformanceError as failure:
            answer = item, False, failure
        except Exception as failure:  # noqa: BLE001 - whatever it is, the parent tells it
            answer = item, False, KitError(f"{type(failure).__name__}: {failure}"[:300], remedy="please report it")
        try:
            message = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        except Exception as failure:  # noqa: BLE001 - a rule of a user's own may yield anything
            lost = KitError(f"what was made cannot be handed on: {failure}"[:300], remedy="run it with --workers 1")
            message = pickle.dumps((item, False, lost))
        with suppress(BrokenPipeError):
            pipe.sendall(_HEAD.pack(len(message)) + message)


def _received(pipe: socket.socket) -> bytes | None:
    head = _exactly(pipe, _HEAD.size)
    return None if head is None else _exactly(pipe, _HEAD.unpack(head)[0])


def _exactly(pipe: socket.socket, size: int) -> bytes | None:
    """So many bytes; None where the other side ended before."""
    data = bytearray()
    while len(data) < size:
        try:
            more = pipe.recv(min(size - len(data), 1 << 20))
        except ConnectionResetError:
            return None
        if not more:
            return None
        data += more
    return bytes(data)
