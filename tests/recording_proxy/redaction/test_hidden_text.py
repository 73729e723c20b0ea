"""Bytes that hide text are looked into, and keep the coding that they have."""

from __future__ import annotations

import base64
import gzip
import random
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given, strategies as st

from signet_recording_proxy.redaction import hidden_text
from signet_recording_proxy.redaction.hidden_text import MOST_DECODED, is_text, recode

CODERS: list[tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = [
    (gzip.compress, gzip.decompress),
    (zlib.compress, zlib.decompress),
    (brotli.compress, brotli.decompress),
    (zstandard.compress, zstandard.decompress),
    (lambda raw: raw.decode().encode("utf-16"), lambda raw: raw.decode("utf-16").encode()),
    (lambda raw: raw.decode().encode("utf-16-le"), lambda raw: raw.decode("utf-16-le").encode()),
    (lambda raw: raw.decode().encode("utf-16-be"), lambda raw: raw.decode("utf-16-be").encode()),
]


def without_secret(raw: bytes) -> bytes:
    """Takes the one secret of these tests out."""
    return raw.replace(b"a secret", b"<>")


@pytest.mark.parametrize(("code", "decode"), CODERS)
def test_a_secret_is_taken_out_of_what_is_coded(
    code: Callable[[bytes], bytes], decode: Callable[[bytes], bytes]
) -> None:
    """In one coding and in three, the content comes back cleaned in the same coding."""
    sent = "see a secret, thrice ä".encode()
    assert decode(recode(code(sent), without_secret)) == "see <>, thrice ä".encode()
    wrapped = gzip.compress(gzip.compress(code(sent)))
    assert decode(gzip.decompress(gzip.decompress(recode(wrapped, without_secret)))) == "see <>, thrice ä".encode()


@given(st.binary(max_size=200))
def test_bytes_without_a_secret_stay_as_they_are(raw: bytes) -> None:
    """Whatever they may be taken for."""
    assert recode(raw, without_secret) == raw


def test_utf_16_of_few_latin_letters() -> None:
    """A mark at the beginning tells it, where zeros do not."""
    sent = "一二三" * 20 + "a secret"
    assert recode(sent.encode("utf-16"), without_secret).decode("utf-16") == "一二三" * 20 + "<>"


def test_an_odd_byte_hides_nothing() -> None:
    """Nor does what follows the last whole unit of UTF-16 get lost."""
    assert recode("a secret".encode("utf-16-le") + b"\xff", without_secret) == "<>".encode("utf-16-le") + b"\xff"


def test_what_nobody_looked_at_is_left_out() -> None:
    """Behind the limit a secret would not be seen, so what a coding holds there is not kept."""
    kept = recode(gzip.compress(b"\1" * MOST_DECODED + b"a secret"), without_secret)
    assert gzip.decompress(kept) == b"\1" * MOST_DECODED


@pytest.mark.parametrize(
    "sent", [b'{"prompt":"caf\xe9"}', b'["\xe9\xe8\xff\xfe\xe0"]', b"a caf\xe9 in no JSON", b'{"broken":"caf\xe9"']
)
def test_text_with_a_byte_that_is_not_utf_8_is_text(sent: bytes) -> None:
    """JSON with any number of them, and running text with few."""
    assert is_text(sent)


@given(st.text(st.characters(codec="utf-8"), min_size=4, max_size=40).map(lambda text: text * 5))
def test_the_beginning_of_coded_text_tells_that_it_may_be_read(text: str) -> None:
    """No run is passed over that decodes to text, whatever its letters."""
    raw = text.encode()
    for coding, coded in zip(hidden_text._CODINGS, (raw.hex(), base64.b64encode(raw).decode()), strict=True):
        assert hidden_text._legible(coded, coding.decode) is None or coding.begins.match(coded) is not None


def test_hashes_do_not_begin_as_coded_text_does() -> None:
    """Of a thousand, few are decoded at all."""
    drawn = random.Random(3)
    for coding, code in zip(hidden_text._CODINGS, (bytes.hex, lambda raw: base64.b64encode(raw).decode()), strict=True):
        assert sum(coding.begins.match(code(drawn.randbytes(32))) is not None for _ in range(1000)) < 100


WORDS = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_", min_size=8, max_size=120)


@given(WORDS, st.sampled_from(["{}", '{{"token":"{}"}}', "password={}"]), st.integers(0, 11))
def test_what_is_compressed_is_not_text(secret: str, around: str, quality: int) -> None:
    """Unless its secret stands there legibly, where a search of the bytes finds it."""
    sent = around.format(secret).encode()
    for coded in (brotli.compress(sent, quality=quality), zstandard.compress(sent), zlib.compress(sent)):
        assert secret.encode() in coded or not is_text(coded)
