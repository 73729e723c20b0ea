"""The client of the recorder process: starts it, and sends commands to its control channel."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from signet_conformance import trace
from signet_conformance.children.environment import clean_environment
from signet_conformance.children.processes import LineProcess
from signet_conformance.errors import KitError, NothingTestedError, counted, os_errors, printable
from signet_conformance.outcome.time_spent import TimePart
from signet_conformance.running.stopwatch import Stopwatch
from signet_conformance.trace.marks import KitMark
from signet_conformance.trace.recordings import MODEL, MODEL_SUFFIX, model_side

READY_TIMEOUT_S = 60.0
CONTROL_TIMEOUT_S = 30.0
CANARY_VARIABLE = "SIGNET_CONFORMANCE_CANARY"
"""The name of the planted secret. The recorder redacts a secret with a name wherever it occurs."""


_BOTH = ("trace", "mark", "idle")
"""The commands for both recorders."""


class _Recorder:
    """A recorder process."""

    def __init__(self, name: str, upstream: str, out: Path, secrets: Mapping[str, str], *more: str) -> None:
        command = [sys.executable, "-P", "-m", "signet_recording_proxy", "--upstream", upstream, "--out", str(out)]
        command += ["--control", "--unwatched", *(f"--canary-env={secret}" for secret in secrets), *more]
        self._process = LineProcess(name, command, env=clean_environment(out.parent, **secrets))
        self.url = str(self._process.receive(READY_TIMEOUT_S)["url"])

    def close(self) -> None:
        """End it."""
        self._process.close()


class RecorderClient(_Recorder):
    """The recorder process and its control channel.

    `secrets` are the names and values that it watches for. `model` records the harness's model: each new file begins
    there too, beside this one, and each mark is written into both.
    """

    def __init__(
        self,
        upstream: str,
        folder: Path,
        secrets: Mapping[str, str],
        stopwatch: Stopwatch,
        model: ModelRecorder | None = None,
    ) -> None:
        self._model = model
        self._stopwatch = stopwatch
        self._failures = 0
        """How many of its own errors have been reported."""
        with stopwatch.on(TimePart.RECORDER_START):
            super().__init__("the recorder", upstream, folder / "before.jsonl", secrets)

    def ask(
        self, *commands: Mapping[str, Any], timeout_s: float = CONTROL_TIMEOUT_S, part: TimePart = TimePart.RECORDER
    ) -> Sequence[Mapping[str, Any]]:
        """Send commands at once and return all answers. Raises KitError if the recorder refuses one.

        The time counts as `part` of the run.
        """
        if not commands:
            return []
        with self._stopwatch.on(part):
            answers = _ask(self._process, commands, timeout_s)
            if self._model is not None:
                self._model.follow(commands, timeout_s)
        return answers

    def demand_reachable(self) -> None:
        """Raise NothingTestedError if it cannot be reached: every call of a connector would be lost."""
        address = urlsplit(self.url)
        message = f"the recorder at {self.url} cannot be reached"
        remedy = "let programs of this machine reach each other on loopback; in a container: ip link set lo up"
        with os_errors(message, remedy=remedy, error=NothingTestedError):
            socket.create_connection((address.hostname, address.port), CONTROL_TIMEOUT_S).close()

    def mark(self, kit_mark: KitMark) -> None:
        """Write a mark into the trace."""
        self.ask(mark_command(kit_mark))

    def wait_until_idle(self, at_most_s: float) -> None:
        """Wait until no request is open, at most `at_most_s` seconds."""
        idle = {"op": "idle", "timeout_s": at_most_s}
        with contextlib.suppress(KitError):
            self.ask(idle, timeout_s=at_most_s + CONTROL_TIMEOUT_S, part=TimePart.OPEN_REQUESTS)

    def new_failure(self) -> str | None:
        """Return the recorder's own errors since the last call as a text; None if it had none."""
        (counts,) = self.ask({"op": "counts"})
        new, self._failures = counts["internal_errors"] - self._failures, counts["internal_errors"]
        return f"the recorder failed {counted(new, 'time')}: exchanges may be missing" if new else None


class ModelRecorder(_Recorder):
    """The recorder in front of the harness's model at `upstream`; it follows the daemon's recorder."""

    def __init__(self, upstream: str, folder: Path, secrets: Mapping[str, str]) -> None:
        out = folder / f"before{MODEL_SUFFIX}"
        super().__init__("the recorder of the model", upstream, out, secrets, "--side", MODEL)

    def follow(self, commands: Iterable[Mapping[str, Any]], timeout_s: float) -> None:
        """Repeat the commands for both sides: begin a file beside the other one, write a mark, wait until idle."""
        _ask(self._process, [_for_model_recorder(command) for command in commands if command["op"] in _BOTH], timeout_s)


def _for_model_recorder(command: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**command, "out": model_side(command["out"])} if command["op"] == "trace" else command


def _ask(process: LineProcess, commands: Sequence[Mapping[str, Any]], timeout_s: float) -> Sequence[Mapping[str, Any]]:
    for command in commands:
        process.send(command)
    # Read every answer before checking one: a later command would get the unread ones.
    answers = [process.receive(timeout_s) for _ in commands]
    for command, answer in zip(commands, answers, strict=True):
        if answer.get("ok") is not True:
            raise KitError(
                f"{process.name} refused {command['op']}: {printable(answer.get('error'), 300)}",
                remedy=answer.get("remedy"),
            )
    return answers


def mark_command(kit_mark: KitMark) -> dict[str, Any]:
    """The recorder's command for a mark."""
    return {"op": "mark", "name": kit_mark.NAME, "data": kit_mark.data}


def model_command(request: Mapping[str, Any]) -> dict[str, Any]:
    """The recorder's command for a request of a played host to its model."""
    return {"op": "asked", **request}


def append_marks(out: Path, marks: Sequence[KitMark]) -> None:
    """Append marks to a recording that the recorder has finished."""
    recording = trace.read(out)
    numbers = [*(mark.seq for mark in recording.marks), *(exchange.seq for exchange in recording.exchanges)]
    number = max(numbers, default=0)
    at = max((mark.t for mark in recording.marks), default=0.0)
    lines = (
        {"kind": "mark", "seq": number + place, "t": at, "name": mark.NAME, "data": mark.data}
        for place, mark in enumerate(marks, 1)
    )
    with out.open("ab") as file:
        file.write(b"".join(map(trace.encode, lines)))
