"""One line of a trace: an exchange or a mark.

msgspec checks all members of a line at once. A line that it refuses is read member by member: it may still be good
(headers that are null), and if it is not, the complaint names member and value.
"""

from __future__ import annotations

import json

from msgspec import MsgspecError, ValidationError, convert
from msgspec.json import Decoder
from msgspec.structs import force_setattr

from signet_conformance.errors import printable
from signet_conformance.files.json_values import only_text, text_in
from signet_conformance.trace import model
from signet_conformance.trace.parsing import JSONValue, NotJSONError, is_shallow, parse


class BrokenLineError(ValueError):
    """Why a line does not belong to a trace; the reader turns it into a TraceError with file and line."""


class LineReader:
    """Reads the lines of one trace. Equal headers, which most messages have, are kept once."""

    def __init__(self) -> None:
        self._headers: dict[model.Pairs, model.Pairs] = {}

    def entry(self, raw: bytes, line: int) -> model.Exchange | model.Mark:
        """Return the exchange or mark of a line, whose number in its file is `line`. Raises BrokenLineError.

        A pending line becomes an exchange with what was known when it was written.
        """
        entry: model.Exchange | model.Mark | None = _decoded(raw)
        pending = False
        if entry is None:
            value = parse_line(raw)
            if isinstance(value, dict) and value.get("kind") == model.PENDING:
                value, pending = {**value, "kind": "exchange"}, True
            entry = _at_once(value) or _member_by_member(value)
        # Entries are frozen for all others. `line`, `raw` and `pending` are never read from the line's members.
        force_setattr(entry, "line", line)
        if type(entry) is model.Exchange:
            force_setattr(entry, "raw", raw)
            force_setattr(entry, "pending", pending)
            if isinstance(entry.error, model.ErrorOfLine):
                force_setattr(entry, "error", entry.error.kind)
            self._share_headers(entry.request)
            if entry.response is not None:
                self._share_headers(entry.response)
        return entry

    def _share_headers(self, message: model.Message) -> None:
        force_setattr(message, "headers", self._headers.setdefault(message.headers, message.headers))


def parse_line(raw: bytes) -> JSONValue:
    """Return the JSON value of a line. Raises BrokenLineError."""
    try:
        return parse(raw)
    except NotJSONError as failure:
        raise BrokenLineError(str(failure)) from None


_EXCHANGE_LINE = b'{"kind":"exchange"'
_DECODER = Decoder(model.Exchange)


def _decoded(raw: bytes) -> model.Exchange | None:
    """Decode the exchange of an ordinary line; None where the line needs a closer look."""
    if not raw.startswith(_EXCHANGE_LINE) or not is_shallow(raw):
        return None
    try:
        entry = _DECODER.decode(raw)
    except (MsgspecError, UnicodeError, RecursionError):
        return None
    return entry if _has_known_forms(entry) else None


def _at_once(value: JSONValue) -> model.Exchange | model.Mark | None:
    kind = value.get("kind") if isinstance(value, dict) else None
    try:
        # One type at a time: msgspec would analyse a union anew for each line.
        entry = convert(value, model.Exchange) if kind == "exchange" else convert(value, model.Mark)
    except (ValidationError, UnicodeEncodeError):
        # UnicodeEncodeError: msgspec cannot quote a lone surrogate that stands where a number belongs.
        return None
    if type(entry) is model.Exchange and not _has_known_forms(entry):
        return None
    return entry


def _has_known_forms(exchange: model.Exchange) -> bool:
    """Whether what the types do not say holds: a method in upper case, a path without query, bodies of known kinds."""
    request, response = exchange.request, exchange.response
    if not request.method.isupper() or "?" in request.path or (request.body is not None and request.body.kind is None):
        return False
    return response is None or response.body is None or response.body.kind is not None


def _member_by_member(data: JSONValue) -> model.Exchange | model.Mark:
    if not isinstance(data, dict):
        raise BrokenLineError("not an object")
    kind = data.get("kind")
    if kind == "exchange":
        return _exchange(data)
    if kind == "mark":
        return _mark(data)
    raise BrokenLineError(f"kind is {printable(json.dumps(kind), 40)}, expected exchange or mark")


def _pairs(value: JSONValue, what: str) -> model.Pairs:
    if not isinstance(value, list):
        raise BrokenLineError(f"{what} is {printable(json.dumps(value), 60)}, expected a list of [name, value] pairs")
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise BrokenLineError(
                f"{what} holds {printable(json.dumps(pair), 60)}, expected a [name, value] pair of strings"
            )
    return tuple((name, text) for name, text in value)


def _body(value: JSONValue, what: str) -> model.Body | None:
    if value is None:
        return None
    if isinstance(value, dict):
        media_type = only_text(value.get("media_type"))
        if value.get("cut"):
            size = value["size"] if isinstance(value.get("size"), int) else None
            text, sha256 = text_in(value.get("text")), only_text(value.get("sha256"))
            undecoded = only_text(value.get("undecoded"))
            return model.Body(cut=True, text=text, media_type=media_type, size=size, sha256=sha256, undecoded=undecoded)
        if "json" in value:
            return model.Body(json=value["json"])
        if isinstance(value.get("text"), str):
            return model.Body(text=value["text"], media_type=media_type)
        if isinstance(value.get("base64"), str):
            return model.Body(base64=value["base64"], media_type=media_type)
    raise BrokenLineError(
        f"{what} is {printable(json.dumps(value), 80)}, expected null, or an object with json, text, base64 or cut"
    )


def _number(data: dict[str, JSONValue]) -> int:
    seq = data.get("seq")
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise BrokenLineError(f"seq is {printable(json.dumps(seq), 40)}, expected a whole number")
    return seq


def _exchange(data: dict[str, JSONValue]) -> model.Exchange:
    seq, t0, t1 = _number(data), data.get("t0"), data.get("t1")
    if not model.is_seconds(t0) or not model.is_seconds(t1):
        raise BrokenLineError(f"t0 and t1 are {printable(json.dumps([t0, t1]), 60)}, expected seconds")
    request = data.get("request")
    if not isinstance(request, dict):
        raise BrokenLineError("an exchange without its request object")
    method, path = request.get("method"), request.get("path")
    if not isinstance(method, str) or not isinstance(path, str):
        raise BrokenLineError("request.method and request.path must be strings")
    if "?" in path:
        raise BrokenLineError(f"request.path is {printable(json.dumps(path), 60)}, expected it without the query")
    response = data.get("response")
    answer: model.Response | None = None
    if response is not None:
        if not isinstance(response, dict) or not isinstance(response.get("status"), int):
            raise BrokenLineError("response is neither null nor an object with a status")
        answer = model.Response(
            headers=_pairs(response.get("headers") or [], "response.headers"),
            body=_body(response.get("body"), "response.body"),
            status=response["status"],
        )
    error = data.get("error")
    kind = error.get("kind") if isinstance(error, dict) else error
    if kind is not None and not isinstance(kind, str):
        raise BrokenLineError("error.kind must be a string")
    fault = data.get("fault")
    if fault is not None and not isinstance(fault, dict):
        raise BrokenLineError("fault must be an object with a kind")
    conn = data.get("conn")
    return model.Exchange(
        seq=seq,
        conn=conn if isinstance(conn, int) else None,
        t0=float(t0),  # type: ignore[arg-type]  # is_seconds has looked
        t1=float(t1),  # type: ignore[arg-type]
        request=model.Request(
            headers=_pairs(request.get("headers") or [], "request.headers"),
            body=_body(request.get("body"), "request.body"),
            method=method.upper(),
            path=path,
            query=_pairs(request.get("query") or [], "request.query"),
            incomplete=request.get("incomplete") is True,
        ),
        response=answer,
        error=kind,
        fault=fault,
        held_ms=float(held) if model.is_seconds(held := data.get("held_ms")) else None,  # type: ignore[arg-type]
    )


def _mark(data: dict[str, JSONValue]) -> model.Mark:
    seq, t, name, extra = _number(data), data.get("t", 0.0), data.get("name"), data.get("data")
    if not isinstance(name, str) or not model.is_seconds(t):
        raise BrokenLineError("a mark needs a name (string) and t (seconds)")
    return model.Mark(seq=seq, t=float(t), name=name, data=extra if isinstance(extra, dict) else {})
