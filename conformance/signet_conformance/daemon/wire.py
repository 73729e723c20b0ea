"""Request and answer as the daemon's handlers see them, independent of the web framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from signet_conformance.daemon import js

FAR_FUTURE: Final = 2**31 - 1
"""The expiry, in epoch seconds, of a credential that never expires."""


@dataclass(frozen=True)
class Claims:
    """The claims of a credential about its bearer."""

    subject: str
    role: str
    scope: dict[str, str] = field(default_factory=dict)
    permissions: tuple[str, ...] = ()
    issued: int = 0
    expires: int = FAR_FUTURE

    def to_wire(self) -> dict[str, Any]:
        """The claims as JSON members of an answer."""
        members = {"sub": self.subject, "scope": self.scope, "role": self.role, "iat": self.issued, "exp": self.expires}
        return {**members, **({"permissions": list(self.permissions)} if self.permissions else {})}


@dataclass(frozen=True)
class DaemonRequest:
    """One request. `path` is decoded except for its reserved characters; `params` are the path's variable segments."""

    method: str
    path: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    params: Mapping[str, str] = field(default_factory=dict)
    claims: Claims | None = None
    peer: str = ""

    def header(self, name: str) -> str | None:
        """The header `name` (lower case), else None."""
        return self.headers.get(name)

    def json(self) -> Any:
        """The body's JSON value. Raises `UnreadableJsonError`."""
        return js.parse_json(self.body)

    def json_or_empty(self) -> Any:
        """The body's JSON value; an empty object if the body is not JSON."""
        try:
            return self.json()
        except js.UnreadableJsonError:
            return {}

    def json_record(self, error: str = "Invalid JSON body", *, optional: bool = False) -> dict[str, Any]:
        """The body's JSON object; if `optional`, an empty one for a blank body.

        Raises `RefusedError` with the text `error` for anything else.
        """
        if optional and not self.body.strip():
            return {}
        try:
            body = self.json()
        except js.UnreadableJsonError:
            body = None
        if not isinstance(body, dict):
            raise RefusedError(refusal(400, error))
        return body


@dataclass(frozen=True)
class DaemonAnswer:
    """One response: `body` is a JSON value, or with `text` set the plain text of the answer."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    bare: bool = False
    """Whether it is sent without the CORS headers, as where the real daemon loses its own answer."""


def refusal(status: int, error: str, **more: Any) -> DaemonAnswer:
    """An error answer: an object with `error` first."""
    return DaemonAnswer({"error": error, **more}, status)


class RefusedError(Exception):
    """Ends a request with `answer`, mostly an error, in place of the handler's return value."""

    def __init__(self, answer: DaemonAnswer) -> None:
        super().__init__(answer.body)
        self.answer = answer


def demand(condition: object, error: str, status: int = 400) -> None:
    """Raise `RefusedError` unless the `condition` is true."""
    if not condition:
        raise RefusedError(refusal(status, error))


def plain(status: int, text: str) -> DaemonAnswer:
    """A plain text answer, as for unknown routes and for crashes of the daemon."""
    return DaemonAnswer(None, status, text=text)


def present(**fields: Any) -> dict[str, Any]:
    """`fields` without those that are None: the daemon leaves undefined fields out of its answers."""
    return {name: value for name, value in fields.items() if value is not None}
