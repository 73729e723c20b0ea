"""The outcome of one operation: :class:`Reply`, its classes of failure, and the members that a usable answer needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.messages import objects

OK: Final = range(200, 300)
REFUSALS: Final = frozenset({401, 403, 409})
"""The token is refused, or the session is claimed by another runtime path."""
NO_DAEMON: Final = frozenset({401, 403, 404, *range(300, 400)})
"""Statuses at which this harness has no daemon: its token is refused, or another program listens there."""


class FailureClass(StrEnum):
    """Why an operation returned nothing usable. None of them stops the user's turn."""

    OFFLINE = "offline"
    """Nothing listens there, or the connection broke before an answer began."""
    TIMEOUT = "timeout"
    """The whole exchange took longer than the operation's deadline, even if bytes kept arriving."""
    HTTP = "http"
    """The answer's status is not 2xx."""
    BODY_READ = "body-read"
    """The answer began and broke off, or is larger than the harness reads."""
    INVALID_JSON = "invalid-json"
    """The answer's body is not JSON."""
    SHAPE = "shape"
    """The answer is JSON of another shape than the operation's."""
    HELD_BACK = "held-back"
    """No request was made, because it would have broken the contract or could not have succeeded."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of one operation. `body` is the JSON object of a 2xx answer, else empty.

    `error` is the daemon's own `error` text of a refused call. `sent` is true if part of the request may have reached
    the daemon, `reached` if it certainly did; only `sent` is true if a kept connection turned out to be dead.
    """

    operation: str
    status: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    failure: FailureClass | None = None
    detail: str = ""
    error: str = ""
    sent: bool = False
    reached: bool = False
    retry_after_s: float = 0.0
    is_object: bool = False

    @property
    def accepted(self) -> bool:
        """True for a 2xx answer whose body is a JSON object, of whatever shape."""
        return self.is_object and self.status in OK

    @property
    def is_settled(self) -> bool:
        """True if the daemon accepted the call and did not skip it for another runtime path."""
        return self.accepted and self.body.get("skipped") is not True

    @property
    def shows_no_daemon(self) -> bool:
        """Whether this harness has no daemon there: none listens, it refuses the token, or another program answers."""
        answered_otherwise = self.failure is FailureClass.SHAPE and not self.is_object
        no_daemon = self.failure in {FailureClass.OFFLINE, FailureClass.INVALID_JSON} or answered_otherwise
        return no_daemon or (self.failure is FailureClass.HTTP and self.status in NO_DAEMON)

    def describe_no_daemon(self, origin: str) -> str:
        """Describe a reply that :attr:`shows_no_daemon` at this origin."""
        if self.status in REFUSALS:
            return f"the daemon at {origin} refuses this harness: {self.in_brief}"
        if self.failure is FailureClass.OFFLINE:
            return f"no daemon answers at {origin}: {self.detail}"
        return f"the program that answers at {origin} is not a daemon: {self.in_brief}"

    @property
    def in_brief(self) -> str:
        """The failure in one line, for a reply that has one."""
        status = "" if self.status is None else f" {self.status}"
        return f"{self.operation}: {self.failure}{status}: {self.detail or self.error}"

    def text(self, name: str) -> str:
        """The string at `name` in the body; empty when it is absent or of another type."""
        value = self.body.get(name)
        return value if isinstance(value, str) else ""


def held_back(operation: str, reason: str) -> Reply:
    """Make the reply for a call that was not made, with the reason."""
    return Reply(operation, failure=FailureClass.HELD_BACK, detail=reason)


def memory_rows(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The memories of an answer: those that it lists, or the single one that it is."""
    rows = [*objects(body.get("results")), *objects(body.get("memories"))]
    return [*rows, body] if isinstance(body.get("content"), str) else rows


def suppressed_rows(body: Mapping[str, Any]) -> int:
    """How many rows a recall left out because the session already has them."""
    meta = body.get("meta")
    dedupe = meta.get("dedupe") if isinstance(meta, Mapping) else None
    count = dedupe.get("suppressed") if isinstance(dedupe, Mapping) else None
    return count if isinstance(count, int) else 0


OPERATIONS: Final[Mapping[str, Mapping[str, Any]]] = json.loads(
    Path(__file__).with_name("operations.json").read_bytes()
)
"""By operation: its request, the types of the members that an answer must have, and whether a hello declares it.

An operation marked `unseen` is tried even while the daemon does not answer.
"""
TYPES: Final[Mapping[str, type]] = {"string": str, "array": list, "integer": int, "boolean": bool}
NOTHING_DONE: Final = ("bypassed", "skipped")
"""An answer with one of these set to true may lack all else: the daemon did nothing, on purpose."""


def check_shape(reply: Reply) -> Reply:
    """`reply`, with a failure of shape if its body is not a usable answer of its operation.

    The reply keeps its body and stays accepted, since the daemon accepted the call.
    """
    if not reply.accepted or any(reply.body.get(name) is True for name in NOTHING_DONE):
        return reply
    if reply.operation == "hooks-remember" and isinstance(reply.body.get("ids"), list):
        # Long content is stored in pieces, and the answer then lists their ids.
        return reply
    for name, wanted in OPERATIONS[reply.operation]["answers"].items():
        value: Any = reply.body.get(name)
        if not isinstance(value, TYPES[wanted]) or (wanted == "integer" and isinstance(value, bool)):
            detail = f"{name!r} is {type(value).__name__}, not {TYPES[wanted].__name__}"
            return replace(reply, failure=FailureClass.SHAPE, detail=detail)
    return reply
