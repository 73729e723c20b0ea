"""Decodes gzip, deflate, br and zstd up to a given size, since traffic may be hostile; encodes content again."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

_PACKAGES = {"br": "brotli", "zstd": "zstandard"}
"""Codings whose packages are an extra, and come with mitmproxy."""
_PIECE = 1024
_MOST_CODINGS = 8

Undone = tuple[bytes, bool]
"""The decoded bytes, and whether they are the whole content."""


@cache
def not_installed(codings: str) -> str | None:
    """The first coding of a `Content-Encoding` value that could be undone if its package were installed."""
    names = (name.strip().lower() for name in codings.split(","))
    return next((name for name in names if name in _PACKAGES and find_spec(_PACKAGES[name]) is None), None)


def all_installed() -> bool:
    """Whether data in every known coding can be recognised and decoded."""
    return not any(map(not_installed, _PACKAGES))


def undo(data: bytes, codings: str, limit: int) -> Undone | None:
    """Undo the `Content-Encoding` value `codings` on `data`, up to `limit` bytes of content.

    None when a coding is unknown or the data is not in it. Data that ends early gives what it holds.
    """
    content, whole = data, True
    names = [name.strip().lower() for name in codings.split(",", _MOST_CODINGS)]
    if len(names) > _MOST_CODINGS:
        return None
    for coding in reversed(names):
        if coding in ("", "identity"):
            continue
        decoder = _DECODERS.get(coding)
        if decoder is None or not_installed(coding):
            return None
        try:
            content, complete = decoder(content, limit)
        except (zlib.error, _NotInTheCodingError):
            return None
        whole = whole and complete
    return content, whole


def _gzip(data: bytes, limit: int) -> Undone:
    out = bytearray()
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
    # zlib copies the data after each member. There may be many tiny members, so it gets small pieces.
    for start in range(0, len(data), _PIECE):
        piece = data[start : start + _PIECE]
        while piece:
            if decoder.eof:
                decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
            out += decoder.decompress(piece, limit + 1 - len(out))
            if len(out) > limit:
                return bytes(out[:limit]), False
            piece = decoder.unused_data
    return bytes(out), decoder.eof


def _deflate(data: bytes, limit: int) -> Undone:
    # Servers send either the zlib form the standard asks for, or the bare form.
    try:
        return _inflate(data, limit, zlib.MAX_WBITS)
    except zlib.error:
        return _inflate(data, limit, -zlib.MAX_WBITS)


def _inflate(data: bytes, limit: int, bits: int) -> Undone:
    decoder = zlib.decompressobj(bits)
    out = decoder.decompress(data, limit + 1)
    return out[:limit], decoder.eof and len(out) <= limit


def _brotli(data: bytes, limit: int) -> Undone:
    import brotli

    decoder = brotli.Decompressor()
    out = bytearray()
    try:
        # The decoder has no output limit of its own: in small steps, hostile data cannot expand far beyond the limit.
        for start in range(0, len(data), 256):
            out += decoder.process(data[start : start + 256])
            if len(out) > limit:
                return bytes(out[:limit]), False
    except brotli.error as failure:
        raise _NotInTheCodingError from failure
    return bytes(out), bool(decoder.is_finished())


def _zstd(data: bytes, limit: int) -> Undone:
    import zstandard

    try:
        out = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read(limit + 1)
    except zstandard.ZstdError as failure:
        raise _NotInTheCodingError from failure
    return out[:limit], len(out) <= limit


class _NotInTheCodingError(ValueError):
    """The data is not in the coding that it claims."""


def _to_brotli(content: bytes) -> bytes:
    import brotli

    return bytes(brotli.compress(content))


def _to_zstd(content: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(content)


def redo(content: bytes, codings: str) -> bytes | None:
    """Put content into the codings of a `Content-Encoding` value that `undo` has undone; None when one is unknown."""
    for coding in codings.split(","):
        name = coding.strip().lower()
        if name in ("", "identity"):
            continue
        encoder = _ENCODERS.get(name)
        if encoder is None or not_installed(name):
            return None
        content = encoder(content)
    return content


_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda content: zlib.compress(content, wbits=zlib.MAX_WBITS | 16),
    "x-gzip": lambda content: zlib.compress(content, wbits=zlib.MAX_WBITS | 16),
    "deflate": zlib.compress,
    "br": _to_brotli,
    "zstd": _to_zstd,
}
_DECODERS: dict[str, Callable[[bytes, int], Undone]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
