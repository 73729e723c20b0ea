"""What a glance at a line tells: the number of its exchange, the sessions that it may belong to, whether it went wrong.

Most of a line is passed over. What a glance does not take in at once (a body that is text, headers that name a session)
is told by the whole exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType
from msgspec.json import Decoder

from signet_conformance.trace.model import NOT_CARRIED, Exchange

SESSION_HEADER = "x-signet-session-key"
MOST_NUMBER = 2**63 - 1
"""No exchange of a large recording has a larger number."""
_SERVER_FAILED = 500


class Glance(NamedTuple):
    """The number of an exchange, the session keys that its request may mean, and whether it went wrong.

    `troubled`: it ended with an error, or with a status of 500 or more.
    """

    seq: int
    names: tuple[str, ...]
    troubled: bool


def normalised_key(raw_key: str | None) -> str | None:
    """The daemon's own key: trimmed, one leading `session:` removed; None when nothing is left."""
    if raw_key is None:
        return None
    return raw_key.strip().removeprefix("session:") or None


class _Members(Struct):
    sessionKey: Any = None  # noqa: N815 - as it stands in the line
    sessionId: Any = None  # noqa: N815 - the same


class _Body(Struct):
    json: _Members
    text: Raw | UnsetType = UNSET
    cut: bool = False


class _Request(Struct):
    headers: Raw
    body: _Body | None = None


class _AnswerBody(Struct):
    cut: bool = False


class _Response(Struct):
    status: int
    body: _AnswerBody | None = None


class _Line(Struct, tag_field="kind", tag="exchange"):
    seq: int
    request: _Request
    response: _Response | None = None
    error: Any = None


_DECODER = Decoder(_Line)


def glance(raw: bytes) -> Glance | None:
    """What a line tells at a glance; None where somebody has to look closer."""
    if not raw.endswith(b"}\n"):
        return None
    try:
        line = _DECODER.decode(raw)
    except (MsgspecError, UnicodeError, RecursionError):
        return None
    body, response = line.request.body, line.response
    if response is not None and response.body is not None and response.body.cut:
        return None
    if isinstance(line.error, dict) and line.error.get("kind") == NOT_CARRIED:
        return None
    if not 0 <= line.seq <= MOST_NUMBER:
        return None
    if _may_name_a_session(bytes(line.request.headers)) or (body is not None and (body.cut or body.text is not UNSET)):
        return None
    names = () if body is None else _names((body.json.sessionKey, body.json.sessionId))
    return Glance(line.seq, names, _is_troubled(line.error, response))


@lru_cache(256)
def _may_name_a_session(headers: bytes) -> bool:
    # An escape may stand for any letter of a header's name. Most requests have the headers of another.
    return b"\\" in headers or b"session" in headers.lower()


def glance_at(exchange: Exchange) -> Glance:
    """The same of an exchange that was read whole."""
    request = exchange.request
    members: Mapping[str, Any] = (None if request.body is None else request.body.object) or {}
    named = (request.header(SESSION_HEADER), members.get("sessionKey"), members.get("sessionId"))
    return Glance(exchange.seq, _names(named), _is_troubled(exchange.error, exchange.response))


def _names(values: Iterable[Any]) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    for value in values:
        if isinstance(value, str) and (key := normalised_key(value)) is not None:
            names += (key,)
    return names


def _is_troubled(error: object, response: Any) -> bool:
    return error is not None or (response is not None and response.status >= _SERVER_FAILED)
