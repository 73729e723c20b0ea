"""The process of a driver program, which performs steps that are handed to it as JSON lines (signet-driver/1).

    {"id": 1, "op": "hello", "events": [...]}      -> {"id": 1, "ok": true, "result": {"capabilities": [...]}}
    {"id": 2, "op": "step", "step": {...}}         -> {"id": 2, "ok": true, "ms": 8.4, "result": {...}}
    {"id": 3, "op": "flush"}                       -> answered when all background work is done
    {"id": 4, "op": "exit"}                        -> answered, then the process ends

While a step is under way the program may write `{"event": "model", "session": "s1"}`, which says that the
model's turn begins now, and then waits for `{"op": "go"}`: so the kit's mark precedes whatever follows. A
program whose answer to hello has `"tells": ["handover"]` begins a start or a tool with another event, `handover`, which
holds the `folder` or the `arguments` that it hands to the connector.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from signet_conformance.children.deadline import Deadline
from signet_conformance.children.environment import TAG, process_ids, tagged_ids
from signet_conformance.children.processes import ChildEndedError, ChildTimeoutError, LineProcess
from signet_conformance.drivers.hosts.protocol import PROTOCOL
from signet_conformance.errors import NothingTestedError, SignetConformanceError, TargetError, printable
from signet_conformance.files.json_values import list_in, object_in, pointer
from signet_conformance.targets import Target
from signet_conformance.trace.marks import StepName

if TYPE_CHECKING:
    from signet_recording_proxy.redaction.redactor import Redactor


@cache
def _redactor() -> Redactor:
    # Imported late: only failures need it.
    from signet_recording_proxy.redaction.redactor import Redactor

    return Redactor({})


def redact(text: str) -> str:
    """`text` as the recorder would write it into a trace; equal secrets get equal tokens."""
    return _redactor().text(text)


HANDOVER = "handover"
"""The event with the folder or arguments that a host is about to hand to the connector."""
HELLO_TIMEOUT_S = 30.0
FLUSH_TIMEOUT_S = 30.0
_LEAVING_S = 3.0
"""The most seconds that a step which leaves a session waits for the processes that the connector started in it."""
_MOST_CHARACTERS = 64 * 1024
"""How many characters of a program's message are read, for redaction; messages show a few hundred."""


class DriverFault(StrEnum):
    """How a driver program failed."""

    ENDED = "ended"
    SILENT = "silent"
    REFUSED = "refused"
    GARBLED = "garbled"
    DEFECT = "defect"


class BrokenOffError(TargetError):
    """Raised when a program fails: `how`, the `tail` of its standard error, and whether its process `ended`."""

    def __init__(self, how: DriverFault, failure: SignetConformanceError, tail: Sequence[str], *, ended: bool) -> None:
        super().__init__(failure.message, where=failure.where, remedy=failure.remedy)
        self.how = how
        self.tail = tuple(tail)
        self.ended = ended


class ConnectorNotLoadedError(TargetError):
    """Raised when the harness cannot load the connector: a finding, not a failure of the driver."""


Starting = Callable[[], AbstractContextManager[None]]
"""Makes a context around the start of a process, such as a stopwatch."""
OnEvent = Callable[[Mapping[str, Any]], None]


_PLAIN_ERRORS = ("Error", "StepError", "")
"""Types of errors that add nothing to the message."""


def _ignore(_event: Mapping[str, Any]) -> None:
    """Ignore an event outside a step."""


class ConnectorDriver(Protocol):
    """Performs steps: one connector process, or several behind one interface."""

    @property
    def tag(self) -> str:
        """The tag in the environment of all processes that the connector starts; empty without one."""

    def hello(self) -> Mapping[str, Any]:
        """Greet the connector, which may speak to the daemon from now on."""

    def perform(self, step: Mapping[str, Any], on_event: OnEvent) -> Mapping[str, Any]:
        """Hand one step over and return its result; raise TargetError when it cannot be performed."""

    def flush(self) -> None:
        """Wait until all background work is done."""

    def close(self) -> None:
        """End the connector and everything it started."""


class DriverProcess:
    """One driver program, with the connector in it; past `step_timeout_s` in a step it counts as hung."""

    def __init__(
        self,
        target: Target,
        env: Mapping[str, str],
        cwd: str,
        step_timeout_s: float,
        starting: Starting = contextlib.nullcontext,
    ) -> None:
        self._target = target
        self._starting = starting
        self._timeout_s = step_timeout_s
        self._next_id = 0
        self._owes_answer = False
        self._tells: tuple[Any, ...] = ()
        self.tag = env.get(TAG, "")
        with starting():
            self._process = LineProcess(
                f"target {target.name}", target.command, env=env, cwd=cwd, error=TargetError, redacted=redact
            )

    def hello(self) -> Mapping[str, Any]:
        """Greet the program and return its description of itself.

        Raises NothingTestedError when it ends instead, ConnectorNotLoadedError when it cannot load the connector.
        """
        try:
            with self._starting():
                about = self._ask({"op": "hello", "events": ["model", HANDOVER]}, self._bound(HELLO_TIMEOUT_S), _ignore)
        except BrokenOffError as failure:
            if failure.how is not DriverFault.ENDED or not failure.ended:
                raise
            raise NothingTestedError(failure.message, where=failure.where, remedy=failure.remedy) from failure
        if about.get("protocol") not in (None, PROTOCOL):
            raise self._broken(DriverFault.GARBLED, self._foreign(about["protocol"]))
        if about.get("loaded") is False:
            words = printable(redact(str(about.get("words") or "its harness does not say why")[:_MOST_CHARACTERS]), 600)
            raise ConnectorNotLoadedError(words, remedy="fix the connector at the place that the message names")
        self._tells = tuple(list_in(about.get("tells")))
        return about

    def perform(self, step: Mapping[str, Any], on_event: OnEvent) -> Mapping[str, Any]:
        """Hand one step over and return its result; raise BrokenOffError when the program cannot perform it."""
        # Programs that send `handover` send it at a start and at a tool only.
        if HANDOVER not in self._tells or step.get("step") in ("resume", "restart_host"):
            on_event({"event": HANDOVER})
        leaves = step.get("step") in (StepName.CLOSE, StepName.END) and self.tag
        before = process_ids() if leaves else ()
        answer = self._ask({"op": "step", "step": dict(step)}, self._timeout_s, on_event)
        # A user goes on later, when a process that the connector left the end to has sent it. That process need not be
        # our child: only another look shows that it has ended.
        deadline = time.monotonic() + _LEAVING_S
        while leaves and tagged_ids(self.tag, besides=before) and time.monotonic() < deadline:
            time.sleep(0.02)
        # As null or false it says that nothing was skipped: drivers in some languages write every member.
        performed = answer.get("skipped", True) in (None, False)
        return {name: answer[name] for name in answer if name != "skipped"} if performed else answer

    def flush(self) -> None:
        """Wait until the program has finished what it does in the background."""
        self._ask({"op": "flush"}, self._bound(FLUSH_TIMEOUT_S), _ignore)

    def _bound(self, seconds: float) -> float:
        """Return `seconds`, or the timeout of a step for a real program, which may be installed or ended meanwhile."""
        return seconds if self._target.real is None else self._timeout_s

    def kill(self) -> None:
        """Kill the program and everything that it started."""
        self._process.kill()

    def close(self) -> None:
        """Let the program quit as its harness does; end it, and everything that it started."""
        if self._owes_answer:  # it does not look at its input
            self._process.terminate()
        # Its answer is not read: the end of input, which follows, ends it too.
        self._process.send_last({"id": self._next_id + 1, "op": "exit"})
        self._process.close()

    def _ask(self, request: Mapping[str, Any], timeout_s: float, on_event: OnEvent) -> Mapping[str, Any]:
        self._next_id += 1
        self._owes_answer = True
        self._send({"id": self._next_id, **request})
        deadline = self._process.deadline(timeout_s)
        while "event" in (answer := self._receive(deadline)):
            on_event(answer)
            self._send({"op": "go"})
            if not deadline.left_s():  # events alone would otherwise keep this loop running for ever
                raise self._broken(DriverFault.SILENT, self._process.overdue(deadline))
        self._owes_answer = False
        if answer.get("id") != self._next_id:
            # It is not a late answer: a program is ended once a request has timed out.
            raise self._broken(DriverFault.GARBLED, self._confusion(answer))
        if answer.get("ok") is not True:
            place = None if self._target.kind.own_program else object_in(answer.get("error")).get("at")
            how = DriverFault.REFUSED if place is None else DriverFault.DEFECT
            raise self._broken(how, self._refusal(request, answer, place))
        return object_in(answer.get("result"))

    def _send(self, request: Mapping[str, Any]) -> None:
        with self._breaking_off():
            self._process.send(request)

    def _receive(self, deadline: Deadline) -> Mapping[str, Any]:
        with self._breaking_off():
            message = self._process.receive(deadline)
        if (odd := next(_odd_numbers(message), None)) is not None:
            raise self._broken(DriverFault.GARBLED, self._no_json(message, *odd))
        return message

    @contextlib.contextmanager
    def _breaking_off(self) -> Iterator[None]:
        """Turn the errors of the process into BrokenOffError, which says how the program broke off."""
        try:
            yield
        except ChildTimeoutError as failure:
            raise self._broken(DriverFault.SILENT, failure) from None
        except ChildEndedError as failure:
            raise self._broken(DriverFault.ENDED, failure) from None
        except TargetError as failure:
            raise self._broken(DriverFault.GARBLED, failure) from None

    def _foreign(self, protocol: object) -> TargetError:
        return TargetError(
            f"{self._process.name} speaks {printable(json.dumps(protocol), 60)}, this kit speaks {PROTOCOL}",
            remedy=f'let it answer hello with "protocol": "{PROTOCOL}", or upgrade the kit: docs/driver-protocol.md',
        )

    def _no_json(self, message: Mapping[str, Any], place: str, number: float) -> TargetError:
        event = message.get("event")
        message_name = f"answer {message.get('id')}" if event is None else f"event {printable(event, 40)}"
        number_text = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(number, "NaN")
        return TargetError(
            f"{self._process.name} wrote no JSON: in its {message_name}, {printable(place, 200)} is {number_text}",
            remedy="write null, or leave the member out: JSON has no such number",
        )

    def _confusion(self, answer: Mapping[str, Any]) -> TargetError:
        actual = f"id {printable(json.dumps(answer['id']), 40)}" if "id" in answer else "without an id"
        error = f" ({_describe_error(answer.get('error'))})" if answer.get("error") else ""
        return TargetError(
            f"{self._process.name} answered {actual}, asked {self._next_id}{error}",
            remedy="give each answer the id of its request: docs/driver-protocol.md",
        )

    def _refusal(self, request: Mapping[str, Any], answer: Mapping[str, Any], place: object) -> TargetError:
        """The error for a refusing answer; `place` is where in the kit's host it arose, None if not there."""
        error = _describe_error(answer.get("error"), typed=True)
        is_own_program = self._target.kind.own_program
        step = request.get("step")
        what = "begin" if request["op"] == "hello" else f"answer {request['op']}"
        if step is not None:
            what = f"perform the step {printable(step.get('step'), 40)}"
        if place is not None:
            error += f", at {printable(place, 80)} of the kit's host"
            remedy = "report this as a defect of the kit"
        elif step is None:
            remedy = "fix what it names" + (": the driver program reports this" if is_own_program else "")
        else:
            remedy = (
                "let the driver program survive exceptions of the connector, as its harness does, and report them;"
                " answer a step that it cannot play with skipped: docs/driver-protocol.md"
                if is_own_program
                else "fix the connector if it is named; otherwise report it: the kit's host performs the steps"
            )
        return TargetError(f"{self._process.name} cannot {what}: {error}", remedy=remedy)

    def _broken(self, how: DriverFault, failure: SignetConformanceError) -> BrokenOffError:
        return BrokenOffError(how, failure, self._process.tail(), ended=self._process.returncode is not None)


def _odd_numbers(message: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers in a message that JSON does not have, such as NaN, each with its pointer."""
    # Without recursion: a driver may nest as deep as it likes.
    queue: list[tuple[tuple[str | int, ...], object]] = [((), message)]
    while queue:
        place, value = queue.pop()
        if isinstance(value, float) and not math.isfinite(value):
            yield pointer(*place), value
        parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        queue += (((*place, name), part) for name, part in parts)


def _describe_error(error: object, *, typed: bool = False) -> str:
    """Describe the error of an answer in one line, since it may be a whole traceback; `typed` adds its type."""
    message = error.get("message") if isinstance(error, dict) else error
    kind = error.get("type") if isinstance(error, dict) and typed else None
    if isinstance(kind, str) and kind not in _PLAIN_ERRORS and message is not None and kind not in str(message):
        message = f"{kind}: {message}"
    if message is None:
        return 'its answer has neither "ok": true nor an error'
    lines = (line.strip() for line in redact(str(message)[:_MOST_CHARACTERS]).splitlines())
    return printable("; ".join(line for line in lines if line), 600)
