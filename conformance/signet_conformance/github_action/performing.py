"""The run of a lane: pytest as a child in a process group of its own, its complaints kept, always reaped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from signet_conformance.children.signals import interrupted_by
from signet_conformance.errors import KitError
from signet_conformance.github_action.inputs import Inputs

_GRACE_S = 15.0
_KEPT_LINES = 40
_CANCELLING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A CI system that cancels sends SIGINT, then SIGTERM; a terminal that goes away, SIGHUP."""
CANCELLED = 130
"""The exit status of a lane that was interrupted."""


@dataclass(frozen=True, slots=True)
class Performed:
    """How the run ended: pytest's exit status, and what the kit said on the way why it could not go on."""

    status: int
    complaint: str

    @property
    def unreported(self) -> int:
        """The exit status of a run that left no report.

        What the kit did not say is pytest's own status, of the same numbers with other meanings: the kit failed.
        """
        return self.status if self.complaint or self.status == CANCELLED else KitError.exit_status


def command_line(inputs: Inputs) -> list[str]:
    """The pytest command of a lane, without the interpreter in front; it repeats the run in a folder like it."""
    words = [
        "pytest", "--signet-conformance",
        "--signet-target", inputs.target,
        "--signet-daemon", inputs.daemon,
        "--signet-seed", inputs.seed,
        "--signet-report", os.path.relpath(inputs.report, inputs.folder),
    ]  # fmt: skip
    if inputs.scenarios is not None:
        words += ["--signet-scenarios", inputs.scenarios]
    if inputs.contract is not None:
        words += ["--signet-contract", inputs.contract]
    if inputs.baseline is not None:
        words += ["--signet-baseline", os.path.relpath(inputs.baseline, inputs.folder)]
    return [*words, "--signet-strict"] if inputs.strict else words


def perform(inputs: Inputs, environment: Mapping[str, str]) -> Performed:
    """Perform the run; its output goes where ours goes. An interruption ends the run first, then us with 130."""
    said: deque[str] = deque(maxlen=_KEPT_LINES)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", *command_line(inputs)],
        cwd=inputs.folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="backslashreplace",
        start_new_session=True,
    )
    assert process.stderr is not None  # noqa: S101 - it was asked for
    reader = threading.Thread(target=_pass_on, args=(process.stderr, said), daemon=True)
    reader.start()
    try:
        with interrupted_by(*_CANCELLING):
            status = process.wait()
    except KeyboardInterrupt:
        _interrupt(process)
        status = CANCELLED
    finally:
        _kill_group(process)
        reader.join(_GRACE_S)
    if status < 0 and -status not in _CANCELLING:
        # Such as SIGKILL, where memory runs out: nobody cancelled that.
        return Performed(KitError.exit_status, f"the run was ended by {signal.Signals(-status).name}")
    complaint = next((line.removeprefix("error: ") for line in said if line.startswith("error: ")), "")
    return Performed(status if status >= 0 else CANCELLED, complaint.strip())


def _pass_on(stderr: IO[str], said: deque[str]) -> None:
    with stderr:
        for line in stderr:
            sys.stderr.write(line)
            sys.stderr.flush()
            said.append(line)


def _interrupt(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        # Not SIGINT: a shell that starts us in the background has it ignored, and children inherit that.
        os.kill(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)


def _kill_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
