"""Limits and waits in headers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from signet_reference_harness.providers.failures import requested_wait

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z


def test_anthropic_tells_times_of_day() -> None:
    """A time of reset becomes seconds from now; scopes may hold hyphens."""
    headers = {
        "Anthropic-RateLimit-Input-Tokens-Limit": "40000",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2023-11-14T22:13:50Z",
    }
    assert requested_wait(headers, NOW) == 30.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1.0), ("6m0s", 360.0), ("20ms", 0.02), ("1h2m3.5s", 3723.5), ("1d", 86400.0), ("12", 12.0), ("soon", None)],
)
def test_openai_tells_durations(text: str, seconds: float | None) -> None:
    """Days to milliseconds; unreadable values are ignored."""
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": text}
    assert requested_wait(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:32 GMT"}, 12.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
        ({"retry-after": "later"}, None),
        ({"retry-after": "-4"}, None),
        ({"retry-after": " 7 "}, 7.0),
        ({"retry-after": "7\x1f"}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "9s"}, 9.0),
        ({"x-ratelimit-remaining-tokens": "1", "x-ratelimit-reset-tokens": "9s"}, None),
        ({}, None),
    ],
)
def test_a_wait_is_read(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds go before seconds or a date, and these before the reset of a used-up limit."""
    assert requested_wait(headers, NOW) == seconds


@settings(deadline=None)  # also where the profile of all tests is not loaded
@given(
    st.dictionaries(
        st.sampled_from(
            [
                *("retry-after", "retry-after-ms", "x-ratelimit-reset-a", "x-ratelimit-remaining-a"),
                *("anthropic-ratelimit-a-reset", "anthropic-ratelimit-a-remaining"),
            ]
        ),
        st.text(max_size=40),
    )
)
def test_no_header_raises(headers: dict[str, str]) -> None:
    """A server may write anything."""
    asked = requested_wait(headers, NOW)
    assert asked is None or 0 <= asked < float("inf")
