"""Requests and answers as changes see them, whole and without a transport, and the memory of earlier ones."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from signet_conformance.contract import route_table
from signet_conformance.files.json_values import ABSENT, member_of, object_in, only_text, value_at

_FRAMING = frozenset({"content-length", "transfer-encoding", "connection"})
"""Headers of one transport, which the next one writes itself."""
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request. `headers` have lower-case names."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes

    @classmethod
    async def of(cls, request: httpx.Request) -> Outgoing:
        """Read a request of httpx."""
        headers = {name.lower(): value for name, value in request.headers.items() if name.lower() not in _FRAMING}
        path = request.url.raw_path.partition(b"?")[0].decode("ascii")
        return cls(request.method, path, dict(request.url.params), headers, await request.aread())

    def to_httpx(self, like: httpx.Request) -> httpx.Request:
        """Return the request for httpx, with the address of `like`."""
        url = like.url.copy_with(raw_path=self.path.encode("ascii"))
        return httpx.Request(
            self.method,
            url.copy_merge_params(self.query) if self.query else url,
            headers=dict(self.headers),
            content=self.content or None,
            extensions=like.extensions,
        )

    @property
    def operation(self) -> str | None:
        """The operation of method and path in the newest contract; None without one."""
        route = route_table("0.237").find(self.method, self.path)
        return None if route is None else route.operation

    @property
    def json(self) -> Any:
        """The body's JSON value, a new one each time, or None without a body."""
        return _parsed(self.content)


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """One answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @classmethod
    async def of(cls, response: httpx.Response) -> WholeAnswer:
        """Read an answer of httpx."""
        try:
            content = b"".join([piece async for piece in response.aiter_raw()])
        finally:
            await response.aclose()
        headers = {name.lower(): value for name, value in response.headers.items() if name.lower() not in _FRAMING}
        return cls(response.status_code, headers, content)

    @classmethod
    def of_json(cls, status: int, body: Any) -> WholeAnswer:
        """Make an answer in place of the daemon's."""
        return cls(status, {"content-type": JSON_TYPE}, encoded(body))

    def to_httpx(self, request: httpx.Request) -> httpx.Response:
        """Return the answer for httpx, not read yet."""
        headers = {**self.headers, "content-length": str(len(self.content))}
        return httpx.Response(self.status, headers=headers, stream=httpx.ByteStream(self.content), request=request)

    @property
    def json(self) -> Any:
        """The body's JSON value, a new one each time, or None without a body."""
        return _parsed(self.content)


def encoded(body: Any) -> bytes:
    """Return a JSON value as a body."""
    return json.dumps(body, separators=(",", ":")).encode("ascii")


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


class Memory:
    """Fills the placeholders of a change, `{{name}}` in any of its strings, from earlier messages.

    Names: path, key, text, agent, project (of the request and its session), other_key, other_agent (of another
    session), token, secret, inject (the newest injected text), previous (the value of this member in the previous
    request of the operation), value (that in this request). A placeholder without a value is left.
    """

    def __init__(self, secret: str | None = None) -> None:
        self._sessions: dict[str, dict[str, str]] = {}
        self._previous: dict[str, Any] = {}
        self._known: dict[str, str] = {} if secret is None else {"secret": secret}

    def note_request(self, request: Outgoing) -> None:
        """Take in a request, after its own placeholders are filled."""
        body = request.json
        if request.operation is not None:
            self._previous[request.operation] = body
        if request.path.startswith("/api/secrets/") and isinstance(body, dict) and isinstance(body.get("value"), str):
            self._known["secret"] = body["value"]
        if token := request.headers.get("authorization", "").removeprefix("Bearer "):
            self._known["token"] = token
        key = self.key_of(request)
        if key is None or not isinstance(body, dict):
            return
        session = self._sessions.setdefault(key, {})
        for name, member in (("agent", "agentId"), ("project", "project"), ("project", "cwd")):
            if isinstance(body.get(member), str):
                session.setdefault(name, body[member])

    def note_answer(self, answer: WholeAnswer) -> None:
        """Take in an answer."""
        body = answer.json
        if isinstance(body, dict) and isinstance(body.get("inject"), str) and body["inject"]:
            self._known["inject"] = body["inject"]

    def key_of(self, request: Outgoing) -> str | None:
        """Return the session key of a request; None without one."""
        return only_text(member_of(request.json, "sessionKey"))

    def place_of(self, request: Outgoing) -> int | None:
        """Return the number of a request's session, from 1 in the order of their first requests; None without one."""
        key = self.key_of(request)
        if key is None:
            return None
        return [*self._sessions, key].index(key) + 1

    def fill(self, template: Any, request: Outgoing, pointer: str = "") -> Any:
        """Return `template` with its placeholders replaced; `pointer` is the member of the body that it is for."""
        if isinstance(template, dict):
            return {name: self.fill(value, request, pointer) for name, value in template.items()}
        if isinstance(template, list):
            return [self.fill(value, request, pointer) for value in template]
        if not isinstance(template, str) or "{{" not in template:
            return template
        known = self._names(request, pointer)
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None and whole[1] in known:
            return known[whole[1]]
        return _PLACEHOLDER.sub(lambda match: str(known.get(match[1], match[0])), template)

    def _names(self, request: Outgoing, pointer: str) -> dict[str, Any]:
        key = self.key_of(request)
        own = self._sessions.get(key, {}) if key is not None else {}
        names: dict[str, Any] = {**self._known, **_said_by(request), **own, "path": request.path}
        if key is not None:
            names["key"] = key
        for other, session in self._sessions.items():
            if other != key:
                names["other_key"] = other
                if "agent" in session:
                    names["other_agent"] = session["agent"]
        previous = self._previous.get(request.operation or "")
        for name, document in (("value", request.json), ("previous", previous)):
            if pointer and (value := value_at(document, pointer)) is not ABSENT:
                names[name] = value
        return names


def _said_by(request: Outgoing) -> dict[str, str]:
    body = object_in(request.json)
    said = {
        "agent": body.get("agentId", request.query.get("agentId")),
        "text": body.get("userMessage"),
        "project": body.get("project"),
    }
    return {name: value for name, value in said.items() if isinstance(value, str)}
