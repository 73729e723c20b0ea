"""Changing one message: a member, a header, the path, the whole body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from signet_conformance.files.json_values import ABSENT, put, take, value_at
from signet_conformance.selftest.memory import Memory
from signet_conformance.selftest.messages import Heard, Outgoing, encoded
from signet_conformance.selftest.mutants import Change
from signet_conformance.selftest.rewriters import REWRITERS


def edited_request(request: Outgoing, change: Change, memory: Memory) -> Outgoing:
    """The request as an `edit` makes it."""
    headers = dict(request.headers)
    for name, value in change.get("headers", {}).items():
        headers.pop(name, None)
        if value is not None:
            headers[name] = memory.filled(value, request)
    query = {**request.query, **memory.filled(change.get("query", {}), request)}
    for name in change.get("remove_query", ()):
        query.pop(name, None)
    return replace(
        request,
        method=change.get("method", request.method),
        path=memory.filled(change.get("path", request.path), request),
        query=query,
        headers=headers,
        content=_content(request.content, request.json, change, lambda t, p: memory.filled(t, request, p)),
    )


def edited_answer(answer: Heard, change: Change, request: Outgoing, memory: Memory) -> Heard:
    """The answer as an `answer` makes it."""
    if "text" in change:
        headers = {**answer.headers, "content-type": "text/plain"}
        return Heard(change.get("status", answer.status), headers, change["text"].encode())
    content = _content(answer.content, answer.json, change, lambda t, p: memory.filled(t, request, p))
    return replace(answer, status=change.get("status", answer.status), content=content)


def _content(content: bytes, body: Any, change: Change, filled: Callable[[Any, str], Any]) -> bytes:
    if "body" in change and change["body"] is None:
        return b""
    if "body" in change:
        return encoded(filled(change["body"], ""))
    before = encoded(body)
    for source, target in change.get("rename", {}).items():
        if (value := take(body, source)) is not ABSENT:
            put(body, target, value)
    for pointer in change.get("remove", ()):
        take(body, pointer)
    for pointer, value in change.get("set", {}).items():
        put(body, pointer, filled(value, pointer))
    for pointer, value in change.get("replace", {}).items():
        if value_at(body, pointer) is not ABSENT:
            put(body, pointer, filled(value, pointer))
    for pointer, name in change.get("rewrite", {}).items():
        if isinstance(value := value_at(body, pointer), str):
            put(body, pointer, REWRITERS[name](value))
    return content if encoded(body) == before else encoded(body)
