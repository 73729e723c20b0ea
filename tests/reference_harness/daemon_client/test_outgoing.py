"""Injected text and credentials are taken out of what is sent."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from signet_reference_harness.daemon_client.restraint import EnvelopeGuard, without_date, without_tokens

ENVELOPE = (
    "[signet active]\n# Current Date & Time\nSaturday, 21 November 2026\nYou have persistent memory managed by Signet."
)


def test_envelope_is_removed_with_and_without_its_date() -> None:
    """Both forms of an injected text go; what stands around them stays."""
    guard = EnvelopeGuard()
    guard.remember(f"\n{ENVELOPE}\n")
    assert guard.remove(f"a {ENVELOPE} b {without_date(ENVELOPE)} c") == "a  b  c"


def test_short_envelope_is_left_alone() -> None:
    """Text of under 40 characters is too common to be taken for an injection."""
    guard = EnvelopeGuard()
    guard.remember("[memory active]")
    text = "say [memory active]"
    assert guard.remove(text) == text


@given(st.lists(st.text("ab", min_size=40, max_size=44), min_size=1, max_size=3), st.text("ab", max_size=200))
def test_no_envelope_survives(envelopes: list[str], text: str) -> None:
    """After stripping, no injected text is left, not even one put together by removing another."""
    guard = EnvelopeGuard()
    for envelope in envelopes:
        guard.remember(envelope)
    stripped = guard.remove(text + "".join(envelopes) + text)
    assert not any(envelope in stripped for envelope in envelopes)


@pytest.mark.parametrize(
    "secret",
    [
        "sig_sk_12345678",
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "Bearer abcdefghijklmnop",
        "<redacted:3>",
        "own token!",
    ],
)
def test_credentials_are_removed_at_any_depth(secret: str) -> None:
    """Token-shaped strings and the harness's own token go from names and values alike."""
    cleaned = without_tokens({"a": [f"x {secret} y"], f"k{secret}": 1}, ["own token!"])
    assert secret not in str(cleaned)
    assert cleaned["a"] == ["x [token removed] y"]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text("xyz"), st.lists))
def test_values_without_credentials_stay_equal(value: object) -> None:
    """Nothing but credentials is changed."""
    assert without_tokens(value, ()) == value
