"""Faults: errors that the recorder makes on purpose, and the exchanges that they affect.

The trace shows them: the line of an exchange that a fault changed or answered names it, and marks say when it was
switched on and off.
"""

from __future__ import annotations

import asyncio
import fnmatch
import json
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from signet_conformance.errors import UsageError, printable
from signet_conformance.trace.fault_kinds import FAULT_KINDS
from signet_recording_proxy.body import parse_json

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


class MadeUpAnswer(Struct, frozen=True):
    """An answer by the recorder. `text`, or else `json`, is its body; `promised` is a false content-length."""

    status: int
    media_type: str | None = "application/json"
    json: Any = None
    text: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    promised: int | None = None

    @property
    def body(self) -> bytes:
        """The bytes of its body."""
        return (json.dumps(self.json) if self.text is None else self.text).encode()

    @property
    def fields(self) -> list[tuple[str, str]]:
        """All its headers."""
        length = len(self.body) if self.promised is None else self.promised
        typed = [] if self.media_type is None else [("content-type", self.media_type)]
        return [*typed, ("content-length", str(length)), *self.headers]


class Fault(Struct, eq=False):
    """One fault that was switched on.

    `left` counts the exchanges that it still affects (None: no end), `met` those that it has affected; `off` is set
    when it is switched off, which releases the exchanges that it delays.
    """

    id: int
    spec: Mapping[str, Any]
    method: str | None = None
    path: str | None = None
    left: int | None = None
    met: int = 0
    match: Mapping[str, Any] = {}
    off: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def kind(self) -> str:
        """One of FAULT_KINDS."""
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

    @property
    def keeps_the_request(self) -> bool:
        """Whether the daemon does not get the request: the fault answers it, or no answer comes."""
        return self.kind in ("reset", "hang") or self.kind in _ANSWERS

    def answer(self) -> MadeUpAnswer | None:
        """The fault's own answer; None if it has none."""
        make = _ANSWERS.get(self.kind)
        return None if make is None else make(self.spec)

    def unknown_members(self) -> Mapping[str, Any]:
        """The members that `extra_fields` adds to the daemon's answer."""
        fields: Mapping[str, Any] = self.spec.get("fields", _UNKNOWN_MEMBERS)
        return fields

    def with_unknown_members(self, content: bytes) -> bytes | None:
        """An answer's content with the members that `extra_fields` adds; None if it is not a JSON object."""
        try:
            is_json, value = parse_json(content.decode())
        except UnicodeDecodeError:
            return None
        if not is_json or not isinstance(value, dict):
            return None
        return json.dumps({**value, **self.unknown_members()}, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _status(spec: Mapping[str, Any]) -> MadeUpAnswer:
    status = int(spec["status"])
    body = spec.get("body", {"error": _STATUS_ERRORS.get(status, f"status {status} for a test")})
    retry = spec.get("retry_after_s")
    return MadeUpAnswer(status, json=body, headers=() if retry is None else (("retry-after", f"{retry:g}"),))


def _truncated(_spec: Mapping[str, Any]) -> MadeUpAnswer:
    text = '{"inject":"","memories":[{"id":"m-1","content":"the rest of this ans'
    return MadeUpAnswer(200, text=text, headers=(("connection", "close"),), promised=len(text) + 400)


_ANSWERS: Mapping[str, Callable[[Mapping[str, Any]], MadeUpAnswer]] = {
    "status": _status,
    "not_json": lambda _: MadeUpAnswer(200, "text/html; charset=utf-8", text=_NOT_JSON),
    "empty": lambda _: MadeUpAnswer(200, None, text=""),
    "truncated": _truncated,
    "shape": lambda spec: MadeUpAnswer(200, json=spec.get("body", _WRONG_SHAPE)),
}
"""The kinds that answer without asking the daemon."""


def _number(value: object, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


_PARAMETERS: Mapping[str, tuple[Callable[[object], bool], str, str]] = {
    "delay_s": (lambda value: _number(value, 0, 86400), "seconds from 0 to 86400", 'such as {"delay_s": 2.5}'),
    "status": (
        lambda value: isinstance(value, int) and _number(value, 200, 599),
        "a whole number from 200 to 599",
        'such as {"status": 503}',
    ),
    "retry_after_s": (
        lambda value: _number(value, 0, 86400),
        "seconds from 0 to 86400",
        'such as {"retry_after_s": 1}',
    ),
    "fields": (lambda value: isinstance(value, dict), "an object", 'such as {"fields": {"novel": true}}'),
}
"""Each parameter: its condition, in code and in words, and an example. `body` may be any JSON value."""


def parse(number: int, fault: object, match: object, count: object) -> Fault:
    """The fault that a control command asks for. Raises UsageError that names a wrong member."""
    name = fault.get("kind") if isinstance(fault, dict) else None
    kind = FAULT_KINDS.get(name) if isinstance(name, str) else None
    if not isinstance(fault, dict) or kind is None:
        raise UsageError(f"fault.kind is {printable(repr(name), 60)}", remedy=f"one of: {', '.join(FAULT_KINDS)}")
    for member in fault.keys() - {"kind", *kind.parameters}:
        known = ", ".join(sorted(kind.parameters)) or "none"
        raise UsageError(
            f"fault.{printable(member, 60)} is not a parameter of {name}", remedy=f"its parameters: {known}"
        )
    for parameter, (is_right, expected, remedy) in _PARAMETERS.items():
        if (parameter in kind.needs or parameter in fault) and not is_right(fault.get(parameter)):
            raise UsageError(f"fault.{parameter} of {name} is not {expected}", remedy=remedy)
    return _make_fault(number, fault, {} if match is None else match, count)


def _make_fault(number: int, fault: dict[str, Any], match: object, count: object) -> Fault:
    if not isinstance(match, dict) or match.keys() - {"method", "path"}:
        raise UsageError("match is not an object with method or path", remedy='such as {"path": "/api/hooks/*"}')
    method, path = match.get("method"), match.get("path")
    if not (method is None or isinstance(method, str)) or not (path is None or isinstance(path, str)):
        raise UsageError("match.method or match.path is not a string", remedy='such as {"path": "/api/hooks/*"}')
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise UsageError(
            "count is neither null nor a whole number from 1", remedy="leave it out to keep it until fault_off"
        )
    if fault["kind"] == "refuse" and (method or path or count):
        raise UsageError(
            "refuse closes the listener, so it can have neither match nor count",
            remedy="leave both out, or use the fault reset for single operations",
        )
    return Fault(number, fault, method.upper() if method else None, path, count, match=match)
