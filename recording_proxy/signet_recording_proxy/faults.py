"""Faults: what the recorder does to an exchange on purpose, and to which exchanges.

A fault never hides: an exchange that it changed or answered carries it in the trace, and a mark
stands where it was switched on and off.
"""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from signet_conformance.errors import UsageError, printable

KINDS: Mapping[str, frozenset[str]] = {
    "refuse": frozenset(),
    "reset": frozenset(),
    "hang": frozenset(),
    "delay": frozenset({"delay_s"}),
    "slow_body": frozenset({"delay_s"}),
    "status": frozenset({"status", "retry_after_s", "body"}),
    "not_json": frozenset(),
    "empty": frozenset(),
    "truncated": frozenset(),
    "shape": frozenset({"body"}),
    "extra_fields": frozenset({"fields"}),
}
"""Each kind of fault with the parameters that it knows beside `kind`."""

_STATUS_ERRORS = {
    400: "Invalid JSON body",
    401: "authentication required",
    403: "forbidden",
    404: "not found",
    409: "session claimed by plugin path",
    413: "payload too large",
    429: "rate limit exceeded",
    500: "Hook execution failed",
    503: "shutting down",
}
_WRONG_SHAPE = {"inject": 42, "memories": "none", "results": {"0": None}, "success": "perhaps", "id": ["x"]}
_UNKNOWN_MEMBERS = {"unknownMember": {"nested": [1, None, "x"]}, "unknown_flag": True}
_NOT_JSON = "<!doctype html><title>Bad gateway</title><p>This is not JSON.\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that a fault gives itself. `body` None means no body; `promised` is a content-length that lies."""

    status: int
    media_type: str | None = "application/json"
    json: Any = None
    text: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    promised: int | None = None


@dataclass(slots=True)
class Fault:
    """One fault that was switched on.

    `left` counts the exchanges it still serves (None: no end); `off` is set when it is switched off,
    which ends the waiting of exchanges that it holds.
    """

    id: int
    spec: Mapping[str, Any]
    method: str | None = None
    path: str | None = None
    left: int | None = None
    match: Mapping[str, Any] = field(default_factory=dict)
    off: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return str(self.spec["kind"])

    @property
    def delay_s(self) -> float:
        """Seconds of a `delay` or a `slow_body`."""
        return float(self.spec.get("delay_s", 0.0))

    def matches(self, method: str, path: str) -> bool:
        """Whether the fault is for a request of this method and path (without its query)."""
        if self.method is not None and self.method != method.upper():
            return False
        return self.path is None or fnmatch.fnmatchcase(path, self.path)

    def answer(self) -> Answer | None:
        """What the fault answers without asking the daemon, or None when it does not answer."""
        match self.kind:
            case "status":
                return self._status()
            case "not_json":
                return Answer(200, "text/html; charset=utf-8", text=_NOT_JSON)
            case "empty":
                return Answer(200, None, text="")
            case "truncated":
                text = '{"inject":"","memories":[{"id":"m-1","content":"the rest of this ans'
                return Answer(200, text=text, headers=(("connection", "close"),), promised=len(text) + 400)
            case "shape":
                return Answer(200, json=self.spec.get("body", _WRONG_SHAPE))
            case _:
                return None

    def unknown_members(self) -> Mapping[str, Any]:
        """The members that `extra_fields` adds to the daemon's true answer."""
        fields: Mapping[str, Any] = self.spec.get("fields", _UNKNOWN_MEMBERS)
        return fields

    def _status(self) -> Answer:
        status = int(self.spec["status"])
        body = self.spec.get("body", {"error": _STATUS_ERRORS.get(status, f"status {status} for a test")})
        retry = self.spec.get("retry_after_s")
        return Answer(status, json=body, headers=() if retry is None else (("retry-after", f"{retry:g}"),))


def parse(number: int, fault: object, match: object, count: object) -> Fault:
    """The fault that a control command asks for; raise UsageError saying which member is off."""
    kind = fault.get("kind") if isinstance(fault, dict) else None
    if not isinstance(fault, dict) or not isinstance(kind, str) or kind not in KINDS:
        raise UsageError(f"fault.kind is {printable(repr(kind), 60)}", remedy=f"one of: {', '.join(KINDS)}")
    for member in fault.keys() - KINDS[kind] - {"kind"}:
        known = ", ".join(sorted(KINDS[kind])) or "none"
        raise UsageError(f"fault.{printable(member, 60)} means nothing to {kind}", remedy=f"its parameters: {known}")
    if "delay_s" in KINDS[kind] and not _number(fault.get("delay_s"), 0, 86400):
        raise UsageError(f"{kind} needs delay_s, seconds from 0 to 86400", remedy='such as {"delay_s": 2.5}')
    if kind == "status" and not (isinstance(fault.get("status"), int) and _number(fault["status"], 200, 599)):
        raise UsageError("status needs status, a whole number from 200 to 599", remedy='such as {"status": 503}')
    if "retry_after_s" in fault and not _number(fault["retry_after_s"], 0, 86400):
        raise UsageError("fault.retry_after_s is no number of seconds", remedy='such as {"retry_after_s": 1}')
    if "fields" in fault and not isinstance(fault["fields"], dict):
        raise UsageError("fault.fields is no object", remedy='such as {"fields": {"novel": true}}')
    return _targeted(number, fault, {} if match is None else match, count)


def _targeted(number: int, fault: dict[str, Any], match: object, count: object) -> Fault:
    if not isinstance(match, dict) or match.keys() - {"method", "path"}:
        raise UsageError("match is off", remedy='such as {"method": "POST", "path": "/api/hooks/*"}, both may lack')
    method, path = match.get("method"), match.get("path")
    if not (method is None or isinstance(method, str)) or not (path is None or isinstance(path, str)):
        raise UsageError("match.method and match.path are strings", remedy='such as {"path": "/api/hooks/*"}')
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise UsageError("count is neither null nor a whole number from 1", remedy="leave it out for: until fault_off")
    if fault["kind"] == "refuse" and (method or path or count):
        raise UsageError(
            "refuse closes the listener, so it can have neither match nor count",
            remedy="leave both out, or use the fault reset for single operations",
        )
    return Fault(number, fault, method.upper() if method else None, path, count, match)


def _number(value: object, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
