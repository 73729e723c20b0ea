"""`python -m signet_reference_harness.bench.keeper COMMAND...`: runs a command that ends when standard input does.

So nothing that a run has started outlives it, however it was killed. The command has a process group of its own, which
is ended as a whole: first asked, after five seconds killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

GRACE_S = 5.0


def main(command: list[str]) -> int:
    """Run `command`; the exit status is its own, 127 when it cannot be started."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # The parent ends us by closing standard input; a Ctrl-C at the terminal is for them to answer. A signal that is
        # ignored would be ignored by the command too: it is handled, by nothing.
        signal.signal(number, _do_nothing)
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: cannot be started: {error.strerror or error}\n")
        return 127
    threading.Thread(target=_end_with_input, args=(child,), daemon=True).start()
    return child.wait()


def _do_nothing(_number: int, _frame: object) -> None:
    pass


def _end_with_input(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 65_536):
            pass
    _signal(child.pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.02)
    _signal(child.pid, signal.SIGKILL)


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
