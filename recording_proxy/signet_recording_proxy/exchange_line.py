"""The line of an exchange that has ended, made from what both sides sent."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from msgspec import Struct

from signet_conformance.trace.model import NOT_WRITTEN, PENDING
from signet_conformance.trace.reading import MAX_LINE_BYTES
from signet_recording_proxy.body import KeptBody, as_carried, describe, unwritten
from signet_recording_proxy.redaction.redactor import Ready, Redactor

Headers = list[tuple[str, str]]
# Of a head that no line could hold: what a server takes at most is a fraction of it.
_LONGEST_KEPT = 8192
_MOST_KEPT = 200
_LARGE = 16 * 1024
"""A line with larger bodies is searched at once: a look at whether it holds a secret at all would be one more."""
_SMALL = 2048
"""A larger body is not searched for secrets while a client waits."""


class SentMessage(Struct, eq=False):
    """What one side has sent so far."""

    headers: Headers
    body: KeptBody

    def header(self, name: str) -> str | None:
        """The first value of the header with this lower-case name."""
        return next((value for key, value in self.headers if key == name), None)

    def body_json(self, *, closely: bool) -> dict[str, Any] | None:
        """The `body` member of the trace line: JSON as it was carried, decoded only where `closely` is set."""
        if not self.body.size:
            return None
        media_type, codings = None, []
        for name, value in self.headers:
            if name == "content-type" and media_type is None:
                media_type = value
            elif name == "content-encoding":
                codings.append(value)
        if not closely and not codings:
            carried = as_carried(self.body)
            if carried is not None:
                return carried
        return describe(self.body, media_type, ",".join(codings))


class EndedExchange(Struct, eq=False):
    """An exchange that has ended. `frame` has the members before the request, `outcome` those after the response.

    `status` and `response` are None where no answer came.
    """

    frame: dict[str, Any]
    method: str
    target: str
    request: SentMessage
    incomplete: bool
    status: int | None
    response: SentMessage | None
    outcome: dict[str, Any]

    @property
    def size(self) -> int:
        """The bytes of its bodies that were kept."""
        return sum(min(sent.body.size, sent.body.limit) for sent in (self.request, self.response) if sent is not None)

    def line(self, redactor: Redactor, ready: Ready | None = None) -> bytes:
        """The line, without its secrets; `ready` is its request where that was made ahead."""
        encoded = None
        if self.size > _LARGE:
            encoded = redactor.exchange(self._members(), is_long=True)
            return encoded if len(encoded) <= MAX_LINE_BYTES else redactor.exchange(self._shorten(self._members()))
        rest = self._rest(closely=False)
        if ready is not None:
            encoded = redactor.completed(self.frame, ready, rest)
        else:
            encoded = redactor.unsuspected({**self.frame, "request": self.request_member(closely=False), **rest})
        if encoded is None:
            encoded = redactor.exchange(self._members())
        if len(encoded) <= MAX_LINE_BYTES:
            return encoded
        # Tokens may be longer than what they stand for, and heads have no bound of their own.
        return redactor.exchange(self._shorten(self._members()))

    def pending_line(self, redactor: Redactor) -> bytes:
        """The line that holds the place until the whole one is made: what is cheap to tell, without large bodies."""
        members = {
            **self.frame,
            "kind": PENDING,
            "request": self._request(_small_body(self.request)),
            **self._answer(None if self.response is None else _small_body(self.response)),
        }
        return redactor.exchange(self._shorten(members, bodies=False))

    def forget(self) -> None:
        """Drop the bodies once the line is written."""
        self.request.body.forget()
        if self.response is not None:
            self.response.body.forget()

    def request_member(self, *, closely: bool) -> dict[str, Any]:
        """The `request` member of the line."""
        return self._request(self.request.body_json(closely=closely))

    def _request(self, body: dict[str, Any] | None) -> dict[str, Any]:
        path, _, query = self.target.partition("?")
        told: dict[str, Any] = {
            "method": self.method,
            "path": path,
            "query": parse_qsl(query, keep_blank_values=True) if query else [],
            "headers": self.request.headers,
            "body": body,
        }
        if self.incomplete:
            told["incomplete"] = True
        return told

    def _members(self) -> dict[str, Any]:
        return {**self.frame, "request": self.request_member(closely=True), **self._rest(closely=True)}

    def _rest(self, *, closely: bool) -> dict[str, Any]:
        """The members of a line after the request."""
        return self._answer(None if self.response is None else self.response.body_json(closely=closely))

    def _answer(self, body: dict[str, Any] | None) -> dict[str, Any]:
        rest: dict[str, Any] = {"response": None}
        if self.response is not None:
            rest["response"] = {"status": self.status, "headers": self.response.headers, "body": body}
        if self.outcome:
            rest.update(self.outcome)
        return rest

    def _shorten(self, line: dict[str, Any], *, bodies: bool = True) -> dict[str, Any]:
        """A line with the beginnings of what is long in the heads, and without the `bodies`."""
        request, response = line["request"], line["response"]
        for message, sent in ((request, self.request), (response, self.response)):
            if message is None or sent is None:
                continue
            message["headers"] = [
                (name[:_LONGEST_KEPT], value[:_LONGEST_KEPT]) for name, value in message["headers"][:_MOST_KEPT]
            ]
            if bodies and message["body"] is not None:
                kept = sent.body
                message["body"] = {
                    "cut": True, "size": kept.size, "sha256": kept.sha256(), "text": "", "media_type": None
                }  # fmt: skip
        request["path"], request["method"] = request["path"][:_LONGEST_KEPT], request["method"][:_LONGEST_KEPT]
        query = request["query"][:_MOST_KEPT]
        request["query"] = [(name[:_LONGEST_KEPT], value[:_LONGEST_KEPT]) for name, value in query]
        return line


def _small_body(sent: SentMessage) -> dict[str, Any] | None:
    """The `body` member of a pending line."""
    if sent.body.size <= _SMALL and sent.header("content-encoding") is None:
        return sent.body_json(closely=True)
    return unwritten(sent.body.size, sent.header("content-type"), NOT_WRITTEN)
