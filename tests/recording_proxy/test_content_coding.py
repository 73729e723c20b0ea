"""Content codings are undone, within a limit."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given, strategies as st

from signet_recording_proxy.content_coding import undo


def bare_deflate(data: bytes) -> bytes:
    """Deflate without the zlib frame, as some servers send it."""
    return zlib.compress(data)[2:-4]


CODERS: dict[str, list[Callable[[bytes], bytes]]] = {
    "gzip": [gzip.compress],
    "deflate": [zlib.compress, bare_deflate],
    "br": [brotli.compress],
    "zstd": [zstandard.ZstdCompressor().compress],
    "identity": [bytes],
}
ALL = [(coding, coder) for coding, coders in CODERS.items() for coder in coders]


@pytest.mark.parametrize(("coding", "coder"), ALL)
@given(data=st.binary(max_size=500))
def test_what_was_coded_comes_back(coding: str, coder: Callable[[bytes], bytes], data: bytes) -> None:
    """Each coding is undone, in any case of its name."""
    assert undo(coder(data), coding.upper(), 1000) == (data, True)


def test_codings_on_top_of_each_other() -> None:
    """A list of codings is undone from its end."""
    assert undo(brotli.compress(gzip.compress(b"hello")), "gzip, br", 1000) == (b"hello", True)


def test_two_gzip_members() -> None:
    """Gzip data may consist of several members."""
    assert undo(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", 1000) == (b"ab", True)


def test_a_great_many_gzip_members() -> None:
    """Data of tiny members takes time in proportion to its length; otherwise this would not end."""
    assert undo(gzip.compress(b"") * 400_000 + gzip.compress(b"a"), "gzip", 1000) == (b"a", True)


def test_a_gzip_member_that_ends_anywhere() -> None:
    """Where one member ends and the next begins has no weight."""
    for size in range(1000, 1060):
        first = bytes(range(256)) * (size // 256) + b"\0" * (size % 256)
        sent = gzip.compress(first, compresslevel=0) + gzip.compress(b"b")
        assert undo(sent, "gzip", 10_000) == (first + b"b", True)
    assert undo(gzip.compress(b"abc")[:-6], "gzip", 1000) == (b"abc", False)


def test_a_list_of_codings_that_nobody_would_send() -> None:
    """More than eight of them are not undone."""
    assert undo(b"a", ",".join(["identity"] * 8), 1000) == (b"a", True)
    assert undo(b"a", ",".join(["identity"] * 9), 1000) is None


@pytest.mark.parametrize(("coding", "coder"), [pair for pair in ALL if pair[0] != "identity"])
def test_a_bomb_stays_within_the_limit(coding: str, coder: Callable[[bytes], bytes]) -> None:
    """What would be too large is decoded up to the limit, and said to be incomplete."""
    assert undo(coder(b"\0" * 3_000_000), coding, 1000) == (b"\0" * 1000, False)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "unheard-of"])
def test_what_cannot_be_undone(coding: str) -> None:
    """An unknown coding, or data that is not in it, gives None."""
    assert undo(b"\x07 no such data at all", coding, 1000) is None
