"""Text that an encoding hides from a search: base64, hexadecimal, percent escapes; compressed bytes; UTF-16."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple
from urllib.parse import unquote

from msgspec import Struct

from signet_recording_proxy.body import parse_json
from signet_recording_proxy.content_coding import redo, undo

Token = Callable[[str], str]

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,16384}+={0,2}")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){12,8192}+(?![0-9A-Fa-f])")
_WORD = re.compile(r"[^\s\"'<>]{3,4096}+")
_SHORTEST = 24
_ESCAPED = re.compile(rb"%[0-9A-Fa-f]{2}")
_IN_RUN = bytes(byte if chr(byte) in "+/_-" or (chr(byte).isalnum() and byte < 128) else 0x20 for byte in range(256))
_STANDARD = str.maketrans("-_", "+/")
_ESCAPE_DEPTH = 3


def shows_escapes(raw: bytes) -> bool:
    """Whether there are percent escapes."""
    return b"%" in raw and _ESCAPED.search(raw) is not None


def may_hide(runs: list[bytes]) -> bool:
    """Whether any of these runs, of what base64 is made of and perhaps of more, decodes to legible text."""
    for run in b" ".join(runs).translate(_IN_RUN).split():
        if len(run) >= _SHORTEST:
            text = run.decode("ascii")
            if any(_legible(f[0], decode) is not None for pattern, decode in _CODINGS for f in pattern.finditer(text)):
                return True
    return False


class Hidden(Struct, frozen=True):
    """Secrets that show when an encoding is undone; `shows_secret` looks at what then shows."""

    shows_secret: Callable[[str], bool]

    def replace(self, text: str, token: Token) -> str:
        """`text` with the encoded text that hides a secret replaced by what `token` gives for it."""
        if "%" in text and self._hides_escaped(" ".join([word for word in _WORD.findall(text) if "%" in word])):
            text = _WORD.sub(lambda match: self._unescaped(match[0], token), text)
        for pattern, decode in _CODINGS:
            text = pattern.sub(partial(self._decoded, decode, token), text)
        return text

    def _unescaped(self, escaped: str, token: Token) -> str:
        return token(escaped) if "%" in escaped and self._hides_escaped(escaped) else escaped

    def _hides_escaped(self, escaped: str) -> bool:
        plain = escaped
        for _ in range(_ESCAPE_DEPTH):
            undone = unquote(plain)
            if undone == plain:
                return False
            plain = undone
            if self.shows_secret(plain) or self._hides_coded(plain):
                return True
        return False

    def _hides_coded(self, text: str) -> bool:
        """Whether what stood between escapes decodes to a secret: `%20` before it would be taken for a part of it."""
        runs = ((match[0], decode) for pattern, decode in _CODINGS for match in pattern.finditer(text))
        return any((plain := _legible(*run)) is not None and self.shows_secret(plain) for run in runs)

    def _decoded(self, decode: Callable[[str], bytes], token: Token, run: re.Match[str]) -> str:
        plain = _legible(run[0], decode)
        return token(run[0]) if plain is not None and self.shows_secret(plain) else run[0]


def _legible(run: str, decode: Callable[[str], bytes]) -> str | None:
    """The text that a run decodes to; None where it cannot be decoded, or not to printable text."""
    try:
        plain = decode(run).decode()
    except (ValueError, binascii.Error):
        return None
    return plain if plain.isprintable() or plain.translate(_BREAKS).isprintable() else None


_BREAKS = dict.fromkeys(map(ord, "\r\n\t"))


def _from_base64(run: str) -> bytes:
    standard = run.rstrip("=").translate(_STANDARD)
    return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)


_CODINGS: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = ((_HEX, bytes.fromhex), (_BASE64, _from_base64))


MOST_DECODED = 2 * 1024 * 1024
_LAYERS = 3
_UTF_16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_CONTROLS = bytes({*range(0x20), 0x7F} - set(b"\t\r\n"))
_COMPRESSED = ("gzip", "zstd", "deflate", "br")


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


def recode(raw: bytes, clean: Callable[[bytes], bytes], layers: int = _LAYERS) -> bytes:
    """Apply `clean` to `raw` and to the text that it hides, and keep its coding.

    Return equal bytes if there was nothing to clean and nothing was cut. Content beyond 2 MiB is cut, since it was not
    searched.
    """
    for view in _views(raw) if layers else ():
        cleaned = recode(view.content, clean, layers - 1)
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
    for coding in _COMPRESSED:
        undone = undo(raw, coding, MOST_DECODED)
        if undone is not None and undone[0]:
            back = partial(_coded, coding)
            yield _View(undone[0], back, more=not undone[1] and len(undone[0]) >= MOST_DECODED)


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
