"""When a failed call is tried again, and after which wait: the whole policy, without a clock."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from signet_reference_harness.providers.agent_file import RetryPolicy
from signet_reference_harness.providers.failures import CallFailure, FailureKind

SWITCHES = {
    FailureKind.NETWORK: "network",
    FailureKind.TIMEOUT: "timeouts",
    FailureKind.RATE_LIMIT: "rate_limits",
    FailureKind.SERVER: "server_errors",
}


def follows(
    kind: FailureKind = FailureKind.SERVER,
    requested_s: float | None = None,
    *,
    attempt: int = 1,
    elapsed_s: float = 0.0,
    chance: float = 0.5,
    policy: RetryPolicy | None = None,
) -> float | None:
    """The wait after a failure; None if it is not tried again."""
    failure = CallFailure(kind, "failed", requested_wait_s=requested_s)
    return (policy or RetryPolicy()).wait_s(failure, attempt=attempt, elapsed_s=elapsed_s, chance=chance)


def test_the_policy_is_what_the_documentation_says() -> None:
    """3 attempts, 60 s in all, 20 s for one wait, 0.5 to 8 s, all switches on, deferred beyond."""
    policy = RetryPolicy()
    assert (policy.attempts, policy.total_s, policy.longest_wait_s) == (3, 60.0, 20.0)
    assert (policy.shortest_wait_s, policy.longest_backoff_s, policy.too_long) == (0.5, 8.0, "deferred")
    assert all(policy.covers(kind) for kind in SWITCHES)


@pytest.mark.parametrize("kind", SWITCHES)
def test_each_kind_can_be_switched_off(kind: FailureKind) -> None:
    """The others are still tried again."""
    policy = RetryPolicy(**{SWITCHES[kind]: False})
    assert follows(kind, policy=policy) is None
    assert None not in [follows(other, policy=policy) for other in SWITCHES if other is not kind]


@pytest.mark.parametrize("kind", [FailureKind.REFUSED, FailureKind.MALFORMED])
def test_what_would_be_said_again_is_not_tried_again(kind: FailureKind) -> None:
    """Whatever wait the provider requests."""
    assert follows(kind, 1.0) is None


@pytest.mark.parametrize(("attempt", "longest"), [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (9, 8.0)])
def test_waits_double_up_to_the_longest(attempt: int, longest: float) -> None:
    """From half a second, at random between that and the ceiling."""
    policy = RetryPolicy(attempts=10)
    assert follows(attempt=attempt, chance=0.0, policy=policy) == 0.5
    assert follows(attempt=attempt, chance=1.0, policy=policy) == longest


def test_a_wait_that_is_asked_for_is_kept_to_exactly() -> None:
    """Even one shorter than our own shortest wait."""
    assert follows(FailureKind.RATE_LIMIT, 20.0) == 20.0
    assert follows(FailureKind.SERVER, 0.0) == 0.0


@pytest.mark.parametrize(("requested_s", "elapsed_s"), [(20.5, 0.0), (15.0, 50.0)])
def test_a_wait_that_is_too_long_is_told(requested_s: float, elapsed_s: float) -> None:
    """Longer than a single wait may be, or beyond the total time."""
    assert follows(FailureKind.RATE_LIMIT, requested_s, elapsed_s=elapsed_s) is None
    assert RetryPolicy().is_too_long(CallFailure(FailureKind.RATE_LIMIT, "x", requested_wait_s=requested_s), elapsed_s)


def test_the_last_attempt_is_the_last() -> None:
    """The last attempt is not followed by a wait. A requested wait that is too long is still reported."""
    assert follows(attempt=3) is None
    assert follows(requested_s=5.0, attempt=3) is None
    assert not RetryPolicy().is_too_long(CallFailure(FailureKind.SERVER, "x", requested_wait_s=5.0), 0.0)
    assert RetryPolicy().is_too_long(CallFailure(FailureKind.SERVER, "x", requested_wait_s=500.0), 0.0)


@settings(deadline=None)  # also where the profile of all tests is not loaded
@given(
    kind=st.sampled_from(sorted(FailureKind)),
    requested_s=st.none() | st.floats(0, 1e6),
    attempt=st.integers(1, 30),
    elapsed_s=st.floats(0, 1e4),
    chance=st.floats(0, 1),
)
def test_no_wait_is_beyond_its_bounds(
    kind: FailureKind, requested_s: float | None, attempt: int, elapsed_s: float, chance: float
) -> None:
    """No wait is longer than allowed, ends after the total time, or follows the last attempt."""
    policy = RetryPolicy()
    wait_s = follows(kind, requested_s, attempt=attempt, elapsed_s=elapsed_s, chance=chance, policy=policy)
    if wait_s is not None:
        assert attempt < policy.attempts
        assert 0 <= wait_s <= (policy.longest_backoff_s if requested_s is None else policy.longest_wait_s)
        assert elapsed_s + wait_s <= policy.total_s
