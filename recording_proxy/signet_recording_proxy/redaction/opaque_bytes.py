"""Bytes that hide text from a search: compressed ones that no header announces, and UTF-16."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from signet_recording_proxy.body import parse_json
from signet_recording_proxy.content_coding import redo, undo

LIMIT = 2 * 1024 * 1024
_LAYERS = 3
_UTF_16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_CONTROLS = bytes({*range(0x20), 0x7F} - set(b"\t\r\n"))
_CODINGS = ("gzip", "zstd", "deflate", "br")


class _View(NamedTuple):
    """What bytes hold, the way back, and whether they hold more than was looked at."""

    content: bytes
    back: Callable[[bytes], bytes]
    more: bool


def is_text(raw: bytes) -> bool:
    """Whether bytes are text apart from some that are not UTF-8: JSON, or printable for the most part.

    Compressed data is not: a secret that stands legibly in it is found by searching the bytes.
    """
    if raw.translate(None, _CONTROLS) != raw:
        return False
    text = raw.decode("utf-8", "replace")
    return 4 * text.count("\ufffd") <= len(text) or parse_json(text)[0]


def recoded(raw: bytes, clean: Callable[[bytes], bytes], layers: int = _LAYERS) -> bytes:
    """`raw` with `clean` applied to it and to what it hides, in the coding that it has.

    The same bytes when nothing was to be cleaned. What a coding holds beyond 2 MiB is left out, for nobody has
    looked at it.
    """
    for view in _views(raw) if layers else ():
        cleaned = recoded(view.content, clean, layers - 1)
        if view.more or cleaned != view.content:
            return view.back(cleaned)
    # Last, for what a coding leaves legible could not be decoded again with a token in its middle.
    return clean(raw)


def _views(raw: bytes) -> Iterator[_View]:
    charset = _utf_16(raw)
    if charset is not None:
        text = raw[: len(raw) & ~1].decode(charset, "surrogatepass")
        rest = raw[len(raw) & ~1 :]
        yield _View(
            text.encode("utf-8", "surrogatepass"),
            lambda content: content.decode("utf-8", "replace").encode(charset, "surrogatepass") + rest,
            more=False,
        )
    for coding in _CODINGS:
        undone = undo(raw, coding, LIMIT)
        if undone is not None and undone[0]:
            back = partial(_coded, coding)
            yield _View(undone[0], back, more=not undone[1] and len(undone[0]) >= LIMIT)


def _coded(coding: str, content: bytes) -> bytes:
    return redo(content, coding) or b""


def _utf_16(raw: bytes) -> str | None:
    if raw[:2] in _UTF_16_MARKS:
        charset = _UTF_16_MARKS[raw[:2]]
    elif 3 * raw[1::2].count(0) > len(raw):
        charset = "utf-16-le"
    elif 3 * raw[::2].count(0) > len(raw):
        charset = "utf-16-be"
    else:
        return None
    try:
        raw[: len(raw) & ~1].decode(charset, "surrogatepass")
    except UnicodeDecodeError:
        return None
    return charset
