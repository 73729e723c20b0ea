"""Makes the `body` member of a trace line from the bytes of a message: decoded, and cut if it is too large."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from email.message import Message
from typing import Any

import msgspec
from msgspec import Struct

from signet_recording_proxy.content_coding import not_installed, undo

DEFAULT_LIMIT = 8 * 1024 * 1024
"""How many bytes of a body are kept, unless the user says otherwise."""
MAX_JSON_DEPTH = 100
MAX_ENCODED = 24 * 1024 * 1024
"""How many bytes of a trace line one body may take: a line holds two bodies, and readers bound its length."""
_SURELY_SHALLOW = 2 * MAX_JSON_DEPTH
_ENCODER = msgspec.json.Encoder()
_RAW_JSON = msgspec.json.Decoder(msgspec.Raw)
_SURELY_SMALL = MAX_ENCODED // 24
# In JSON a character takes six bytes at most, as NUL does: `\u0000`.
_MAX_BYTES_PER_CHARACTER = 6
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_AS_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_JSON_STARTS = frozenset('{["-0123456789tfn')
_SINGLE_BYTE_CHARSETS = frozenset({"iso-8859-1", "latin-1", "latin1", "windows-1252", "cp1252"})


class KeptBody(Struct):
    """The bytes of one message as they passed: all of them up to `limit`, then only size and SHA-256."""

    limit: int
    size: int = 0
    _chunks: list[bytes] = []
    _digest: Any = None
    _sealed: str | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        before, self.size = self.size, self.size + len(data)
        if self._digest is not None:
            self._digest.update(data)
            return
        if self.size <= self.limit:
            self._chunks.append(data)
            return
        self._digest = hashlib.sha256()
        for chunk in self._chunks:
            self._digest.update(chunk)
        self._digest.update(data)
        self._chunks.append(data[: self.limit - before])

    def seal(self) -> None:
        """Note that no more bytes come, so that the rest can be sent to another process."""
        if self._digest is not None:
            self._sealed, self._digest = self._digest.hexdigest(), None

    def forget(self) -> None:
        """Drop the bytes once the line is written, even if the exchange is still referenced."""
        self._chunks.clear()

    @property
    def is_cut(self) -> bool:
        """Whether more bytes passed than were kept."""
        return self._digest is not None or self._sealed is not None

    def kept_bytes(self) -> bytes:
        """The first `limit` bytes."""
        return b"".join(self._chunks)

    def sha256(self) -> str:
        """The SHA-256 of everything that passed, in hexadecimal."""
        return self._sealed or str((self._digest or hashlib.sha256(self.kept_bytes())).hexdigest())


def describe(body: KeptBody, media_type: str | None, content_encoding: str | None) -> dict[str, Any] | None:
    """The `body` member of a trace line, or None when no byte was sent.

    The content coding is undone; a body in one that is not installed here is cut to its size and SHA-256. A body over
    the limit, as carried or once decoded, keeps the size and SHA-256 of what was carried, and the text of its
    beginning; so does one that would take more than MAX_ENCODED bytes of a line.
    """
    if not body.size:
        return None
    described = _body_of(body, media_type, content_encoding)
    if body.size <= _SURELY_SMALL and not content_encoding:
        return described
    if _encoded_length(described) <= MAX_ENCODED:
        return described
    text = body.kept_bytes()[: MAX_ENCODED // _MAX_BYTES_PER_CHARACTER].decode("utf-8", "replace")
    return {
        "cut": True,
        "size": body.size,
        "sha256": body.sha256(),
        "text": "" if content_encoding else text,
        "media_type": media_type,
    }


def _encoded_length(described: dict[str, Any]) -> int:
    try:
        return len(_ENCODER.encode(described))
    except UnicodeEncodeError:  # a lone surrogate
        return len(json.dumps(described, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def undecoded(size: int, sha256: str, media_type: str | None, coding: str) -> dict[str, Any]:
    """A body in a coding that cannot be undone here. Its bytes are not kept, since no secret can be found in them."""
    return {"cut": True, "size": size, "sha256": sha256, "text": "", "media_type": media_type, "undecoded": coding}


def unwritten(size: int | None, media_type: str | None, why: str) -> dict[str, Any]:
    """A body that was sent, but is not in the trace; `why` is a reason of `trace.model`, `size` None if unknown."""
    return {"cut": True, "size": size, "sha256": None, "text": "", "media_type": media_type, "undecoded": why}


def as_carried(body: KeptBody) -> dict[str, Any] | None:
    """The `body` member of JSON in no content coding, byte for byte as carried; None if `describe` has to decode it.

    The JSON is checked and not decoded. Its numbers may be beyond a float.
    """
    data = body.kept_bytes()
    if body.is_cut or body.size > _SURELY_SMALL:
        return None
    if body.size > _SURELY_SHALLOW and _openings(data) > MAX_JSON_DEPTH:
        return None
    try:
        if not data.isascii():
            data.decode("utf-8")  # the decoder below does not check it
        return {"json": _RAW_JSON.decode(data)}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _openings(data: bytes) -> int:
    # Removing a rare byte takes a sixth of the time of counting it.
    return 2 * len(data) - len(data.replace(b"[", b"")) - len(data.replace(b"{", b""))


def _body_of(body: KeptBody, media_type: str | None, content_encoding: str | None) -> dict[str, Any]:
    data, whole = body.kept_bytes(), not body.is_cut
    if content_encoding and (coding := not_installed(content_encoding)):
        return undecoded(body.size, body.sha256(), media_type, coding)
    if content_encoding:
        undone = undo(data, content_encoding, body.limit)
        if undone is None:
            if whole:
                return _binary(data, media_type)
            data = b""
        else:
            data, complete = undone
            # Encoded data that ends early was broken by its sender. As the recorder did not cut it, it counts as whole.
            whole = whole and (complete or len(data) < body.limit)
    if not whole:
        text = data.decode("utf-8", "replace")
        return {"cut": True, "size": body.size, "sha256": body.sha256(), "text": text, "media_type": media_type}
    decoded = _text(data, media_type)
    if decoded is None:
        return _binary(data, media_type)
    is_json, value = parse_json(decoded)
    return {"json": value} if is_json else {"text": decoded, "media_type": media_type}


def parse_json(text: str) -> tuple[bool, Any]:
    """Whether `text` is JSON that a trace can hold, and its value.

    A trace holds no number that JSON cannot write and nothing nested deeper than 100 levels.
    """
    start = text.lstrip("\ufeff \t\r\n")[:1]
    if not start or start not in _JSON_STARTS:
        return False, None
    if len(text) > _SURELY_SHALLOW and text.count("[") + text.count("{") > MAX_JSON_DEPTH and _too_deep(text):
        return False, None
    try:
        return True, msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        pass  # the slower parser takes lone surrogates and a byte order mark, and notices numbers beyond a float
    try:
        return True, json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        return False, None


def _finite(literal: str) -> float:
    number = float(literal)
    if math.isinf(number):
        raise ValueError(literal)
    return number


def _refuse_constant(literal: str) -> float:
    raise ValueError(literal)


def _too_deep(text: str) -> bool:
    """Whether brackets are nested deeper than 100 levels, or do not match, in which case the text is not JSON at all.

    Works level by level from the innermost, a hundred times as fast as a loop over the brackets: a connector that sends
    megabytes of them must not hold up the others.
    """
    brackets = _STRING.sub(b"", text.encode("utf-8", "surrogatepass")).translate(_AS_ONE_KIND, _NO_BRACKETS)
    for _ in range(MAX_JSON_DEPTH):
        left = brackets.replace(b"[]", b"")
        if len(left) == len(brackets):
            break
        brackets = left
    return bool(brackets)


def _binary(data: bytes, media_type: str | None) -> dict[str, Any]:
    return {"base64": base64.b64encode(data).decode("ascii"), "media_type": media_type}


def _text(data: bytes, media_type: str | None) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        if not media_type or "charset" not in media_type.lower():
            return None
    header = Message()
    header["content-type"] = media_type
    charset = header.get_content_charset()
    return data.decode("latin-1") if charset in _SINGLE_BYTE_CHARSETS else None
