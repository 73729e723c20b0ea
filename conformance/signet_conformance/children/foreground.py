"""Runs a user's command in our terminal, in its own process group. Apart from that, lets signals interrupt us."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from signet_conformance.children import watchdog
from signet_conformance.children.watchdog_program import signal_group
from signet_conformance.errors import NothingTestedError, os_errors, printable

_GRACE_S = 10.0
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_PASSED_ON = (signal.SIGINT, *_ENDING)
_WANTS_TERMINAL = (signal.SIGTTIN, signal.SIGTTOU)
"""These suspend a process in the background that uses the terminal."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended: its exit status, as a shell reports it. `interrupted`: SIGTERM or SIGHUP asked us to end."""

    status: int
    interrupted: bool


def run_in_foreground(command: Sequence[str], env: Mapping[str, str]) -> CommandEnd:
    """Run a command with our standard streams until it ends; then kill what is left of its process group.

    SIGINT, SIGTERM and SIGHUP are passed on to its group. After SIGTERM or SIGHUP it has ten seconds to end.
    Raises NothingTestedError when it cannot be started.
    """
    where, remedy = printable(command[0], 400), "check that the program is installed and on PATH"
    with os_errors("the command cannot be started", where=where, remedy=remedy, error=NothingTestedError):
        process = subprocess.Popen(command, env=dict(env), process_group=0)
    watchdog.watch_group(process.pid)
    interrupted = False

    def pass_on(number: int, _frame: object) -> None:
        nonlocal interrupted
        interrupted = interrupted or number in _ENDING
        signal_group(process.pid, number)
        if number in _ENDING:
            # A suspended process handles the signal only once it continues.
            signal_group(process.pid, signal.SIGCONT)
            if kill_later.ident is None:
                kill_later.start()

    kill_later = threading.Timer(_GRACE_S, signal_group, (process.pid, signal.SIGKILL))
    kill_later.daemon = True
    # A signal that our parent had us ignore (nohup) stays ignored.
    handled = [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, pass_on) for number in handled}
    try:
        with _terminal_of(process.pid) as terminal:
            status = _wait(process.pid, terminal)
    finally:
        kill_later.cancel()
        signal_group(process.pid, signal.SIGKILL)
        watchdog.forget_group(process.pid)
        for number, handler in before.items():
            signal.signal(number, handler)
    process.returncode = status
    return CommandEnd(status if status >= 0 else 128 - status, interrupted)


def _wait(pid: int, terminal: int | None) -> int:
    """Wait until the child ends; return its exit status, negative for a signal.

    With a terminal, Ctrl-Z suspends us too. A child that was suspended because it had used the terminal before it was
    given to it gets it again, and continues.
    """
    if terminal is None:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        if os.WSTOPSIG(status) not in _WANTS_TERMINAL:
            # Ctrl-Z: we take the terminal and suspend our own group; the shell continues it in the foreground.
            _give_terminal(terminal, os.getpgrp())
            os.kill(0, signal.SIGSTOP)
        _give_terminal(terminal, pid)
        signal_group(pid, signal.SIGCONT)


@contextlib.contextmanager
def _terminal_of(group: int) -> Iterator[int | None]:
    """Give our terminal to a process group. Yield its descriptor, or None if we are not in its foreground."""
    terminal = None
    with contextlib.suppress(OSError, ValueError, AttributeError):
        descriptor = sys.stdin.fileno()
        if os.isatty(descriptor) and os.tcgetpgrp(descriptor) == os.getpgrp():
            terminal = descriptor
    if terminal is None:
        yield None
        return
    _give_terminal(terminal, group)
    # It may have used the terminal before that, and so have been suspended.
    signal_group(group, signal.SIGCONT)
    try:
        yield terminal
    finally:
        _give_terminal(terminal, os.getpgrp())


def _give_terminal(terminal: int, group: int) -> None:
    # Called in the background, tcsetpgrp raises SIGTTOU, which would suspend us.
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(terminal, group)
    finally:
        signal.signal(signal.SIGTTOU, before)


@contextlib.contextmanager
def interrupted_by(*numbers: signal.Signals) -> Iterator[None]:
    """Let the first of these signals raise KeyboardInterrupt, as SIGINT does by itself; ignore later ones.

    A SIGHUP that the parent had us ignore (nohup) stays ignored. Outside the main thread, where
    Python takes no signals, nothing changes.
    """
    before: dict[signal.Signals, signal.Handlers | Callable[[int, FrameType | None], Any] | int | None] = {}

    def interrupt(_number: int, _frame: object) -> None:
        # A cancelled job gets one signal after the other, while we are still ending our children.
        for number in before:
            signal.signal(number, lambda _number, _frame: None)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        handled = [n for n in numbers if n != signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]
        before.update((number, signal.signal(number, interrupt)) for number in handled)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
