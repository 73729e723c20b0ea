"""Signals that end a program, taken as an interruption: what it started is then ended with it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interrupted_by(*numbers: signal.Signals) -> Iterator[None]:
    """Let each of these signals raise KeyboardInterrupt, as SIGINT does by itself.

    A SIGHUP that whoever started the program had it ignore (nohup) stays ignored. Outside the main thread, where
    Python takes no signals, nothing changes.
    """

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {}
    if threading.current_thread() is threading.main_thread():
        taken = [n for n in numbers if n != signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]
        before = {number: signal.signal(number, interrupt) for number in taken}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
