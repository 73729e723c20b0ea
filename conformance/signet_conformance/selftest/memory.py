"""What passes by, kept for changes that need it: sessions, earlier requests, injected text, credentials."""

from __future__ import annotations

import re
from typing import Any

from signet_conformance.files.json_values import ABSENT, value_at
from signet_conformance.selftest.messages import Heard, Outgoing

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


class Memory:
    """Fills the placeholders of a change: `{{name}}` in any of its strings.

    path, key, text, agent, project (of the request and its session), other_key, other_agent (of another session),
    token, secret, inject (the last injected text), previous (the same member in the previous request of the operation),
    value (what the member holds). A name that nothing is known of stays as it is.
    """

    def __init__(self, secret: str | None = None) -> None:
        self._sessions: dict[str, dict[str, str]] = {}
        self._previous: dict[str, Any] = {}
        self._known: dict[str, str] = {} if secret is None else {"secret": secret}

    def sent(self, request: Outgoing) -> None:
        """Take a request into account, once everything that concerns it has been filled."""
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

    def heard(self, answer: Heard) -> None:
        """Take an answer into account."""
        body = answer.json
        if isinstance(body, dict) and isinstance(body.get("inject"), str) and body["inject"]:
            self._known["inject"] = body["inject"]

    def key_of(self, request: Outgoing) -> str | None:
        """The session key of a request, if it has one."""
        body = request.json
        key = body.get("sessionKey") if isinstance(body, dict) else None
        return key if isinstance(key, str) else None

    def place_of(self, request: Outgoing) -> int | None:
        """Which session, counted from 1 in the order of their first requests, a request belongs to."""
        key = self.key_of(request)
        if key is None:
            return None
        return [*self._sessions, key].index(key) + 1

    def filled(self, template: Any, request: Outgoing, pointer: str = "") -> Any:
        """`template` with its placeholders replaced; `pointer` is the member of the body that it is for."""
        if isinstance(template, dict):
            return {name: self.filled(value, request, pointer) for name, value in template.items()}
        if isinstance(template, list):
            return [self.filled(value, request, pointer) for value in template]
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
    """Agent, project and text, as the request itself says them."""
    body = request.json if isinstance(request.json, dict) else {}
    said = {
        "agent": body.get("agentId", request.query.get("agentId")),
        "text": body.get("userMessage"),
        "project": body.get("project"),
    }
    return {name: value for name, value in said.items() if isinstance(value, str)}
