"""Finds secrets that an encoding hides: base64, hexadecimal, percent escapes, compression, UTF-16."""

from __future__ import annotations

import binascii
import re
import string
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple
from urllib.parse import unquote

from msgspec import Struct

from signet_recording_proxy.body import parse_json
from signet_recording_proxy.content_coding import redo, undo
from signet_recording_proxy.redaction.spans import Span, Token, flags_of, long_runs, replace_spans

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,16384}+={0,2}")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){12,8192}+(?![0-9A-Fa-f])")
_LONGEST_RUN = 16_384
_WORD = re.compile(r"[^\s\"'<>]{3,4096}+")
_SHORTEST = 24
_ESCAPED = re.compile(rb"%[0-9A-Fa-f]{2}")
_IN_RUN = bytes(byte if chr(byte) in "+/_-" or (chr(byte).isalnum() and byte < 128) else 0x20 for byte in range(256))
_LONGEST_WORD = 4096
_ESCAPED_TEXT = re.compile(r"%[0-9A-Fa-f]{2}")
_LAST_DELIMITER = re.compile(r"[\s\"'<>]")
_STANDARD = str.maketrans("-_", "+/")
_ESCAPE_DEPTH = 3
_DEPTH = 2
_DEEP_MOST = 16_384


def shows_escapes(raw: bytes) -> bool:
    """Whether there are percent escapes."""
    return b"%" in raw and _ESCAPED.search(raw) is not None


def may_hide(runs: list[bytes]) -> bool:
    """Whether one of these runs decodes to legible text; runs may contain characters that are not base64."""
    for run in b" ".join(runs).translate(_IN_RUN).split():
        if len(run) >= _SHORTEST:
            text = run.decode("ascii")
            if any(any(_legible_texts(begun)) for begun in {text, _LINE_PREFIX.sub("", text)}):
                return True
    return False


_LINE_PREFIX = re.compile(r"\A(?:[0-9]{1,6}-|[+-])")
"""A line number, or the sign of a changed line in a diff."""


class HiddenTextSearch(Struct, frozen=True):
    """Finds secrets in the encoded parts of a text; `shows_secret` searches what they decode to."""

    shows_secret: Callable[[str], bool]

    def replace(self, text: str, token: Token) -> str:
        """`text` with each encoded part that hides a secret replaced by its `token`."""
        if len(text) < _SHORTEST and "%" not in text:
            return text
        if "%" in text:
            words = list(_escaped_words(text))
            if words and self._hides_escaped(" ".join(dict.fromkeys([text[start:end] for start, end in words]))):
                text = replace_spans(text, words, lambda word: self._replace_escaped(word, token))
        raw = text.encode("ascii", "replace")
        for coding in _CODINGS:
            clean = replace_spans(
                text, _coded_spans(text, raw, coding), partial(self._replace_run, coding.decode, token)
            )
            if clean is not text:
                text, raw = clean, clean.encode("ascii", "replace")
        return text

    def _replace_escaped(self, escaped: str, token: Token) -> str:
        return token(escaped) if "%" in escaped and self._hides_escaped(escaped) else escaped

    def _hides_escaped(self, escaped: str) -> bool:
        plain = escaped
        for _ in range(_ESCAPE_DEPTH):
            unescaped = unquote(plain)
            if unescaped == plain:
                return False
            plain = unescaped
            if self.shows_secret(plain) or self._hides_coded(plain, _DEPTH):
                return True
        return False

    def _hides_coded(self, text: str, depth: int) -> bool:
        """Whether a part of a text decodes to a secret in at most `depth` steps."""
        return any(self._shows(plain, depth - 1) for plain in _legible_texts(text))

    def _shows(self, plain: str, depth: int) -> bool:
        """Whether decoded text contains a secret, or hides one in another encoding."""
        if self.shows_secret(plain):
            return True
        if depth <= 0 or len(plain) > _DEEP_MOST:
            return False
        return ("%" in plain and self._hides_escaped(plain)) or self._hides_coded(plain, depth)

    def _replace_run(self, decode: Callable[[str], bytes], token: Token, run: str) -> str:
        plain = _legible(run, decode)
        return token(run) if plain is not None and self._shows(plain, _DEPTH) else run


def _escaped_words(text: str) -> Iterator[Span]:
    """The words that hold a percent escape; a word ends at a blank, a quote or an angle bracket."""
    done = 0
    while (escape := _ESCAPED_TEXT.search(text, done)) is not None:
        first = max(done, escape.start() - _LONGEST_WORD)
        before = _LAST_DELIMITER.search(text[first : escape.start()][::-1])
        start = first if before is None else escape.start() - before.start()
        word = _WORD.match(text, start)
        done = escape.end() if word is None else word.end()
        if word is not None:
            yield word.span()


def _coded_spans(text: str, raw: bytes, coding: _Coding) -> Iterator[Span]:
    """The runs of a coding that are long enough to hide text. `raw` is the text with one byte for each character."""
    for start, end in long_runs(raw.translate(coding.flags), _SHORTEST):
        # Most runs are hashes or long names, which their first characters show. A longer run is decoded in parts.
        if end - start > _LONGEST_RUN or coding.begins.match(text, start, end) is not None:
            for match in coding.runs.finditer(text, start, min(len(text), end + 2)):
                yield match.span()


def coded_places(text: str) -> Iterator[int]:
    """The beginnings of parts that may hide text."""
    raw = text.encode("ascii", "replace")
    yield from (match.start() for match in _ESCAPED.finditer(raw))
    for coding in _CODINGS:
        yield from (start for start, _ in _coded_spans(text, raw, coding))


def _legible_texts(text: str) -> Iterator[str]:
    """The decoded parts of a text that are text themselves."""
    for coding in _CODINGS:
        for match in coding.runs.finditer(text):
            if (plain := _legible(match[0], coding.decode)) is not None:
                yield plain


def _legible(run: str, decode: Callable[[str], bytes]) -> str | None:
    """The text that a run decodes to; None if it cannot be decoded, or not to printable text."""
    try:
        if len(run) > _GLANCE and _CONTROL.search(decode(run[:_GLANCE])) is not None:
            return None
        plain = decode(run).decode()
    except (ValueError, binascii.Error):
        return None
    return plain if plain.isprintable() or plain.translate(_BREAKS).isprintable() else None


_GLANCE = 32
"""How many characters are decoded first, to whole bytes in either coding. A control character in them is no text."""
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BREAKS = dict.fromkeys(map(ord, "\r\n\t"))


def _from_base64(run: str) -> bytes:
    standard = run.rstrip("=")
    if "-" in standard or "_" in standard:
        standard = standard.translate(_STANDARD)
    return binascii.a2b_base64(standard + "==="[: -len(standard) % 4], strict_mode=True)


class _Coding(NamedTuple):
    """A way to write bytes as text: its runs, its decoder, its characters in the form of `flags_of`.

    `begins` matches the beginning of every run that decodes to legible text, and of few others.
    """

    runs: re.Pattern[str]
    decode: Callable[[str], bytes]
    flags: bytes
    begins: re.Pattern[str]


_LATER = "[89abAB]."
"""A continuation byte of UTF-8, in hexadecimal."""
_BEGINS_IN_HEX = re.compile(
    r"(?:0[9aAdD]|[2-6].|7[^fF]"
    rf"|[cC][^01]{_LATER}|[dD].{_LATER}|[eE].(?:{_LATER}){{2}}|[fF][0-4](?:{_LATER}){{3}}){{3}}"
)


def _sextets(allowed: Callable[[int], bool]) -> str:
    """A class of the characters of base64 whose six bits are `allowed`."""
    alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
    spelled = {62: r"+\-", 63: "/_"}
    return "[" + "".join(spelled.get(bits, alphabet[bits]) for bits in range(64) if allowed(bits)) + "]"


def _begins_in_base64() -> re.Pattern[str]:
    """The beginnings of legible text in base64: four characters hold three bytes, six bits each."""
    ascii_first = _sextets(lambda bits: bits in (2, 3) or 8 <= bits < 32)
    ascii_then = _sextets(lambda bits: bits % 16 != 1 and not 8 <= bits % 16 < 12)
    opens, later = _sextets(lambda bits: 48 <= bits < 62), _sextets(lambda bits: 8 <= bits % 16 < 12)
    first = f"{ascii_first}{ascii_then}|{opens}{later}"
    continuation = _sextets(lambda bits: 32 <= bits < 48) + _sextets(lambda bits: bits % 16 != 1)
    return re.compile(f"(?:{first})..(?:(?:{first}|{continuation})..){{{_SHORTEST // 4 - 1}}}")


_CODINGS = (
    _Coding(_HEX, bytes.fromhex, flags_of(string.hexdigits), _BEGINS_IN_HEX),
    _Coding(_BASE64, _from_base64, flags_of(string.ascii_letters + string.digits + "+/_-"), _begins_in_base64()),
)


MOST_DECODED = 2 * 1024 * 1024
_LAYERS = 3
_UTF_16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_CONTROLS = bytes({*range(0x20), 0x7F} - set(b"\t\r\n"))
_COMPRESSED = ("gzip", "zstd", "deflate", "br")


class _View(NamedTuple):
    """The decoded content of bytes, the function that encodes it again, and whether more was not decoded."""

    content: bytes
    encode: Callable[[bytes], bytes]
    more: bool


def is_text(raw: bytes) -> bool:
    """Whether bytes are text, with some that may not be UTF-8: JSON, or mostly printable.

    Compressed data is not text; a search of its bytes finds the secrets that are legible in it.
    """
    if raw.translate(None, _CONTROLS) != raw:
        return False
    text = raw.decode("utf-8", "replace")
    return 4 * text.count("\ufffd") <= len(text) or parse_json(text)[0]


def recode(raw: bytes, clean: Callable[[bytes], bytes], layers: int = _LAYERS) -> bytes:
    """Apply `clean` to `raw` and to the content that it encodes; return the result in the same coding.

    The result is equal to `raw` if there was nothing to clean. Content beyond 2 MiB is not searched, so it is cut.
    """
    for view in _views(raw) if layers else ():
        cleaned = recode(view.content, clean, layers - 1)
        if view.more or cleaned != view.content:
            return view.encode(cleaned)
    # Last: with a token in it, the encoded content could not be decoded any more.
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
            encode = partial(_encode, coding)
            yield _View(undone[0], encode, more=not undone[1] and len(undone[0]) >= MOST_DECODED)


def _encode(coding: str, content: bytes) -> bytes:
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
