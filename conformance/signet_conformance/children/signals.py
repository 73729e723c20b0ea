"""Signals that end a program, taken as an interruption: what it started is then ended with it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def interrupted_by(*numbers: signal.Signals) -> Iterator[None]:
    """Let the first of these signals raise KeyboardInterrupt, as SIGINT does by itself; later ones disturb nothing.

    A SIGHUP that whoever started the program had it ignore (nohup) stays ignored. Outside the main thread, where
    Python takes no signals, nothing changes.
    """
    before: dict[signal.Signals, signal.Handlers | Callable[[int, FrameType | None], Any] | int | None] = {}

    def interrupt(_number: int, _frame: object) -> None:
        # Whoever cancels sends one signal after the other, and what was started is still being ended.
        for number in before:
            signal.signal(number, lambda _number, _frame: None)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        taken = [n for n in numbers if n != signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]
        before.update((number, signal.signal(number, interrupt)) for number in taken)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
