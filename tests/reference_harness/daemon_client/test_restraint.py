"""Repeats that the daemon has forbidden, by its status."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.daemon_client.restraint import REMEMBERED, RepeatGuard, identity_of


def answered(status: int, retry_after_s: float = 0.0) -> Reply:
    """A reply with that status."""
    return Reply("recall", status=status, retry_after_s=retry_after_s)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422])
def test_refused_request_is_never_repeated(status: int) -> None:
    """A 4xx holds for good."""
    restraint = RepeatGuard()
    restraint.note("a", answered(status), 0.0, 1.0)
    assert restraint.reason_to_wait("a", 1e9)
    assert restraint.reason_to_wait("b", 1.0) is None


@pytest.mark.parametrize("status", [200, 202, 307, 408, 425, 500, 502])
def test_other_answers_do_not_restrain(status: int) -> None:
    """A success, a server error or an invited repeat leaves the request free."""
    restraint = RepeatGuard()
    restraint.note("a", answered(status), 0.0, 1.0)
    assert restraint.reason_to_wait("a", 1.0) is None


@pytest.mark.parametrize("status", [429, 503])
def test_busy_daemon_is_asked_again_after_its_own_delay(status: int) -> None:
    """Retry-After is kept to."""
    restraint = RepeatGuard()
    restraint.note("a", answered(status, 10.0), 0.0, 1.0)
    assert restraint.reason_to_wait("a", 10.9)
    assert restraint.reason_to_wait("a", 11.1) is None


@given(st.lists(st.floats(0.0, 5.0), min_size=2, max_size=8))
def test_each_gap_after_503_is_longer_than_the_one_before(delays: list[float]) -> None:
    """However long the caller dawdles, an allowed repeat comes later each time, and never at once."""
    restraint = RepeatGuard()
    now, before = 0.0, 0.05
    restraint.note("a", answered(503), now, now)
    for delay in delays:
        ended = now
        now += delay
        while restraint.reason_to_wait("a", now):
            now += 0.25
        assert now - ended > before
        before = now - ended
        restraint.note("a", answered(503), now, now)


def test_answer_of_another_kind_lifts_the_wait() -> None:
    """After a success the row of gaps begins anew."""
    restraint = RepeatGuard()
    restraint.note("a", answered(503), 0.0, 0.0)
    restraint.note("a", answered(200), 9.0, 9.0)
    assert restraint.reason_to_wait("a", 9.0) is None


def test_memory_is_bounded() -> None:
    """The oldest refusals are forgotten."""
    restraint = RepeatGuard()
    for number in range(REMEMBERED + 1):
        restraint.note(str(number), answered(404), 0.0, 0.0)
    assert restraint.reason_to_wait("0", 0.0) is None
    assert restraint.reason_to_wait("1", 0.0)


def test_identity_tells_method_target_and_body_apart() -> None:
    """Requests share an identity only when all three are equal."""
    assert identity_of("GET", "/a", b"") == identity_of("GET", "/a", b"")
    assert len({identity_of("GET", "/a", b""), identity_of("POST", "/a", b""), identity_of("GET", "/a", b"x")}) == 3
