"""Writes heads and chunks as bytes, and converts header fields to those of the recorder."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from signet_recording_proxy.faults import MadeUpAnswer
from signet_recording_proxy.trace_file import Headers

Fields = list[tuple[bytes, bytes]]
"""Names and values as they were sent, in their order."""

LAST_CHUNK = b"0\r\n\r\n"
_OFFER = (b"upgrade", b"http2-settings")
_MOST_KNOWN, _LONGEST_KNOWN = 4096, 256
_known_fields: dict[tuple[bytes, bytes], tuple[str, str]] = {}
"""Fields that were decoded before: most messages repeat them."""


def headers(fields: Fields) -> Headers:
    """The fields as the recorder keeps them: names in lower case."""
    known = _known_fields
    return [known.get(field) or _decode(field) for field in fields]


def _decode(field: tuple[bytes, bytes]) -> tuple[str, str]:
    name, value = field
    header = name.decode("utf-8", "surrogateescape").lower(), value.decode("utf-8", "surrogateescape")
    if len(name) + len(value) <= _LONGEST_KNOWN:
        if len(_known_fields) == _MOST_KNOWN:
            _known_fields.clear()
        _known_fields[field] = header
    return header


def without_blanks(name: bytes, value: bytes) -> bytes:
    """A value without trailing blanks, which are not part of it (RFC 9110, 5.5); llhttp drops leading ones.

    A transfer coding keeps its blanks and is then refused: a parser that ignores them and one that does not would
    disagree on where the body ends.
    """
    return value if name.lower() == b"transfer-encoding" else value.rstrip(b" \t")


def without_offer(fields: Fields) -> Fields:
    """The fields of a request without the offer of another protocol, which is hop-by-hop (RFC 9110)."""
    kept: Fields = []
    for name, value in fields:
        if name.lower() == b"connection":
            words = [word.strip() for word in value.split(b",")]
            if left := [word for word in words if word.lower() not in _OFFER]:
                kept.append((name, b", ".join(left)))
        elif name.lower() not in _OFFER:
            kept.append((name, value))
    return kept


def head(first_line: bytes, fields: Fields) -> bytes:
    """A whole head. llhttp has refused line breaks and other control characters in it."""
    return b"\r\n".join([first_line, *map(b": ".join, fields), b"\r\n"])


def chunks(pieces: Sequence[bytes]) -> list[bytes]:
    """Each piece as a chunk."""
    return [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]


def last_chunk(trailers: Fields) -> bytes:
    """The end of a chunked body."""
    return head(b"0", trailers) if trailers else LAST_CHUNK


def status_line(status: int) -> bytes:
    """The first line of an answer that the recorder makes up."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    return f"HTTP/1.1 {status} {reason}".encode()


def fields_and_body(answer: MadeUpAnswer) -> tuple[Fields, bytes]:
    """Fields and body of an answer that the recorder makes up."""
    return [(name.encode(), value.encode()) for name, value in answer.fields], answer.body
