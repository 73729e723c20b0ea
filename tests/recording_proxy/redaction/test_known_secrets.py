"""The forms of a known secret."""

from __future__ import annotations

import base64
import json

from hypothesis import given, strategies as st

from signet_recording_proxy.redaction.known_secrets import REMEMBERED, KnownSecrets, forms


def test_the_forms_of_a_secret() -> None:
    """As it is, JSON-escaped, URL-encoded in either case, in hexadecimal; the longest first."""
    spellings = forms('p"ä/x y')
    assert {'p"ä/x y', 'p\\"ä/x y', 'p\\\\\\"ä/x y', 'p\\"\\u00e4/x y', "p%22%C3%A4%2Fx%20y"} <= set(spellings)
    assert {"p%22%C3%A4%2Fx+y", "p%22%c3%a4%2fx+y", "p%22%C3%A4/x%20y"} <= set(spellings)
    assert {"%70%22%C3%A4%2F%78%20%79", "7022c3a42f782079", "7022C3A42F782079", "\\u0070\\u0022\\u00e4"} <= {
        form[:24] if form[0] == "%" else form[:18] if form[0] == "\\" else form for form in spellings
    }
    assert [len(form) for form in spellings] == sorted((len(form) for form in spellings), reverse=True)


@given(st.text(min_size=8, max_size=40), st.binary(max_size=7), st.binary(max_size=7))
def test_base64_at_any_offset(secret: str, before: bytes, after: bytes) -> None:
    """Encoded in the middle of other bytes, in either alphabet, one of the forms is there."""
    raw = before + secret.encode("utf-8", "surrogatepass") + after
    for encoded in (base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()):
        assert any(form in encoded for form in forms(secret))


@given(st.text(min_size=8, max_size=20), st.integers(1, 4), st.booleans())
def test_json_in_strings(secret: str, depth: int, ascii_only: bool) -> None:
    """Nested up to four strings deep, one of the forms is there, quotes and backslashes or not."""
    written = secret
    for _ in range(depth):
        written = json.dumps(written, ensure_ascii=ascii_only)
    assert any(form in written for form in forms(secret))


def test_utf_16_that_passed_for_text() -> None:
    """With zeros between its characters, in either order of bytes."""
    for charset in ("utf-16-le", "utf-16-be"):
        assert any(form in "a secret".encode(charset).decode() for form in forms("a secret"))


def test_many_secrets_are_all_found() -> None:
    """However many are known: in a line, in bytes, behind an escape, several in one."""
    known = KnownSecrets()
    for number in range(300):
        known.add(f"secret-{number:04d}", f"<{number}>")
    line = json.dumps({"a": "x\nsecret-0007y", "b": b"secret-0299".hex()}).encode()
    assert {token for _, token in known.in_line(line)} == {"<7>", "<299>"}
    assert known.replace_in_bytes(b"secret-0000, secret-0150") == b"<0>, <150>"


WITH_HALVES = "ab1é☃\ud83d\udcff"


@given(st.text(WITH_HALVES), st.text(WITH_HALVES, min_size=8, max_size=20), st.text(WITH_HALVES))
def test_halves_of_characters_hide_no_secret(before: str, secret: str, after: str) -> None:
    """JSON can write half of a surrogate pair, and stray bytes of headers become such: beside a secret, or in it."""
    known = KnownSecrets()
    known.add(secret, "<1>")
    assert secret not in known.replace_in(f"{before} {secret} {after}").replace("<1>", "")


def test_the_oldest_that_was_learned_is_given_up() -> None:
    """Memory is bounded; what was planted is looked for as long as the recorder lives."""
    known = KnownSecrets()
    known.add("planted-secret", "<p>", permanent=True)
    for number in range(REMEMBERED + 1):
        known.add(f"secret-{number:05d}", f"<{number}>")
    assert "planted-secret" in known
    assert "secret-00000" not in known
    place = known.in_line(b"secret-00000 secret-00001 planted-secret")
    assert {token for _, token in place} == {"<p>", "<1>"}


def test_what_begins_at_the_end_of_text() -> None:
    """The longest beginning counts; a secret of one word is not asked for."""
    known = KnownSecrets()
    known.add("a canary of words", "<1>")
    known.add("one-word-only", "<2>")
    known.add("f, which begins as that ends", "<3>")
    assert known.partial_at_end("see a canary of") == len("a canary of")
    assert known.partial_at_end("see one-word") == 0
