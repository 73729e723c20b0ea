"""The forms of a known secret."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from signet_recording_proxy.known_secrets import forms


def test_the_forms_of_a_secret() -> None:
    """As it is, JSON-escaped once and twice, URL-encoded in either case, in base64; the longest first."""
    found = forms('p"ä/x y')
    assert {'p"ä/x y', 'p\\"ä/x y', 'p\\\\\\"ä/x y', 'p\\"\\u00e4/x y', "p%22%C3%A4%2Fx%20y"} <= set(found)
    assert {"p%22%C3%A4%2Fx+y", "p%22%c3%a4%2fx+y", "p%22%C3%A4/x%20y"} <= set(found)
    assert [len(form) for form in found] == sorted((len(form) for form in found), reverse=True)


@given(st.text(min_size=8, max_size=40), st.binary(max_size=7), st.binary(max_size=7))
def test_base64_at_any_offset(secret: str, before: bytes, after: bytes) -> None:
    """Encoded in the middle of other bytes, in either alphabet, one of the forms is there."""
    raw = before + secret.encode("utf-8", "surrogatepass") + after
    for encoded in (base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()):
        assert any(form in encoded for form in forms(secret))
