"""From bytes to the body of a trace line."""

from __future__ import annotations

import gzip
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from signet_conformance.trace import encode
from signet_recording_proxy.body import KeptBody, describe


def described(data: bytes, media_type: str | None = None, coding: str | None = None, limit: int = 1000) -> Any:
    """The body member for these bytes."""
    body = KeptBody(limit)
    body.feed(data)
    return describe(body, media_type, coding)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (b"null", {"json": None}),
        (b"false", {"json": False}),
        (b' {"a": 1.5} ', {"json": {"a": 1.5}}),
        (b"\xef\xbb\xbf[1]", {"json": [1]}),
        (b'"\\ud800"', {"json": "\ud800"}),
        (b"7", {"json": 7}),
        (b"plain", {"text": "plain", "media_type": None}),
        (b"{broken", {"text": "{broken", "media_type": None}),
        (b"[NaN]", {"text": "[NaN]", "media_type": None}),
        (b"[-Infinity]", {"text": "[-Infinity]", "media_type": None}),
        (b"[1e999]", {"text": "[1e999]", "media_type": None}),
        (b" ", {"text": " ", "media_type": None}),
        (b"\xff\x00", {"base64": "/wA=", "media_type": None}),
    ],
)
def test_the_kind_follows_the_bytes(data: bytes, expected: Any) -> None:
    """JSON when it is JSON that a trace can hold, text when it is text, base64 else, None when nothing was sent."""
    assert described(data) == expected


def test_json_is_json_whatever_the_media_type() -> None:
    """The daemon does not look at the media type either."""
    assert described(b"[1]", "text/plain") == {"json": [1]}


def test_nesting() -> None:
    """100 levels are JSON, 101 are text; brackets in strings are no levels."""
    assert "json" in described(b"[" * 100 + b"]" * 100)
    assert "text" in described(b"[" * 101 + b"]" * 101)
    assert "text" in described(b"[" * 100_000, limit=200_000)
    assert "json" in described(json.dumps(["[" * 500, '"{' * 300]).encode(), limit=5000)


def test_single_byte_charsets() -> None:
    """A declared single-byte charset is text, an undeclared one is not."""
    assert described(b"caf\xe9", "text/plain; charset=ISO-8859-1")["text"] == "café"
    assert "base64" in described(b"caf\xe9", "text/plain")
    assert "base64" in described(b"caf\xe9", "text/plain; charset=utf-8")


@pytest.mark.parametrize("size", [1000, 1001, 5000])
def test_the_limit(size: int) -> None:
    """What is over the limit is cut, with the size and SHA-256 of everything."""
    data = b"x" * size
    body = described(data, "text/plain")
    if size <= 1000:
        assert body == {"text": "x" * size, "media_type": "text/plain"}
    else:
        digest = hashlib.sha256(data).hexdigest()
        assert body == {"cut": True, "size": size, "sha256": digest, "text": "x" * 1000, "media_type": "text/plain"}


def test_a_body_that_grows_when_decoded_is_cut() -> None:
    """The limit holds for what is decoded; size and SHA-256 are those of what was carried."""
    carried = gzip.compress(b"x" * 1_000_000)
    body = described(carried, coding="gzip", limit=5000)
    assert (body["cut"], body["size"], body["text"]) == (True, len(carried), "x" * 5000)
    assert body["sha256"] == hashlib.sha256(carried).hexdigest()


def test_a_coding_that_is_not_what_it_says() -> None:
    """Bytes that are not in the coding they claim are kept as they are."""
    assert described(b"plain", coding="gzip")["base64"] == "cGxhaW4="
    assert described(b"plain", coding="rot13")["base64"] == "cGxhaW4="
    assert described(b"x" * 2000, coding="gzip")["text"] == ""


def test_a_coded_body_that_ends_early() -> None:
    """What came is decoded as far as it goes."""
    assert described(gzip.compress(b"hello world" * 20)[:-9], coding="gzip")["text"].startswith("hello")


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(0, 400))
def test_pieces_do_not_matter(pieces: list[bytes], limit: int) -> None:
    """However a body is divided, it is described the same."""
    whole = b"".join(pieces)
    body = KeptBody(limit)
    for piece in pieces:
        body.feed(piece)
    assert describe(body, None, None) == described(whole, limit=limit)
    assert body.sha256() == hashlib.sha256(whole).hexdigest()


@given(st.binary(max_size=200), st.sampled_from([None, "text/plain; charset=latin-1", "application/json"]))
def test_any_bytes_can_be_written(data: bytes, media_type: str | None) -> None:
    """Whatever is sent, its body can stand in a trace line and be read again."""
    body = described(data, media_type)
    assert json.loads(encode({"body": body})) == {"body": body}
