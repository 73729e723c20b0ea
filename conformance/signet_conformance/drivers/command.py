"""The driver `command`: a program that performs steps handed to it as JSON lines (signet-driver/1).

    {"id": 1, "op": "hello", "events": ["model"]}  -> {"id": 1, "ok": true, "result": {"capabilities": [...]}}
    {"id": 2, "op": "step", "step": {...}}         -> {"id": 2, "ok": true, "ms": 8.4, "result": {...}}
    {"id": 3, "op": "flush"}                       -> answered when all background work is done
    {"id": 4, "op": "exit"}                        -> answered, then the process ends

While a step is under way the program may write `{"event": "model", "session": "s1"}`, which says that the
model's turn begins now, and then waits for `{"op": "go"}`: so the kit's mark stands before whatever follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from signet_conformance.errors import NothingTestedError, TargetError, printable
from signet_conformance.processes import ChildEndedError, LineProcess
from signet_conformance.targets import Target

HELLO_TIMEOUT_S = 30.0
FLUSH_TIMEOUT_S = 30.0

OnEvent = Callable[[Mapping[str, Any]], None]


def _ignored(_event: Mapping[str, Any]) -> None:
    """Nothing that happens outside a step is marked."""


class CommandDriver:
    """One connector process. `step_timeout_s` bounds every step: past it the connector counts as hung."""

    def __init__(self, target: Target, env: Mapping[str, str], cwd: str, step_timeout_s: float) -> None:
        self._target = target
        self._timeout_s = step_timeout_s
        self._next_id = 0
        self._process = LineProcess(f"target {target.name}", target.command, env=env, cwd=cwd, error=TargetError)

    def hello(self) -> Mapping[str, Any]:
        """Greet the program; what it says of itself. Raise NothingTestedError when it ends instead of answering."""
        try:
            return self._ask({"op": "hello", "events": ["model"]}, HELLO_TIMEOUT_S, _ignored)
        except ChildEndedError as failure:
            if self._process.returncode is None:
                raise
            raise NothingTestedError(failure.message, where=failure.where, remedy=failure.remedy) from None

    def perform(self, step: Mapping[str, Any], on_event: OnEvent) -> Mapping[str, Any]:
        """Hand one step over and return its result; raise TargetError when the program cannot perform it."""
        return self._ask({"op": "step", "step": dict(step)}, self._timeout_s, on_event)

    def flush(self) -> None:
        """Wait until the program has finished what it does in the background."""
        self._ask({"op": "flush"}, FLUSH_TIMEOUT_S, _ignored)

    def close(self) -> None:
        """End the program and everything it started."""
        self._process.close()

    def _ask(self, request: Mapping[str, Any], timeout_s: float, on_event: OnEvent) -> Mapping[str, Any]:
        self._next_id += 1
        self._process.send({"id": self._next_id, **request})
        deadline = time.monotonic() + timeout_s
        while True:
            answer = self._process.receive(max(0.0, deadline - time.monotonic()))
            if "event" in answer:
                on_event(answer)
                self._process.send({"op": "go"})
                continue
            if answer.get("id") != self._next_id:
                continue
            if answer.get("ok") is True:
                result = answer.get("result")
                return result if isinstance(result, dict) else {}
            error = answer.get("error")
            message = error.get("message") if isinstance(error, dict) else error
            raise TargetError(
                f"cannot perform {printable(request.get('step') or request['op'], 200)}: {printable(message, 400)}",
                where=f"target {self._target.name}",
                remedy="make the driver program answer this step, or take its operation out of the capabilities",
            )
