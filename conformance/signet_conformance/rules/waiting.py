"""Requirements on repeats: how long a connector waits before it sends again what was refused for a while."""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import parsedate_to_datetime

from signet_conformance.facts import Call, Recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.outcome import PASS, Outcome, fail, route_of, undecided, warn
from signet_conformance.rules.prompt import submitted_twice

TIGHT_LOOP_S = 0.05
SURELY_A_PAUSE_S = 0.5
"""A first repeat after less than this may have been a tight loop on a slow machine."""
_CLOCK_S = 0.05
"""How much earlier than asked a repeat may seem: the end of an answer is noted after the client had it."""


def backs_off_after_503(recording: Recording) -> Iterator[Outcome]:
    """After a 503 the connector waits as long as it says, or longer before each repeat, or does not repeat it."""
    refused = [c for c in recording.calls if c.delivered and c.status == 503]
    if not refused:
        return
    recording = recording.whole
    routes = {(c.method, c.path) for c in refused}
    twice = _prompts_submitted_twice(recording)
    rows: dict[object, tuple[Call, float | None]] = {}
    passing = dict.fromkeys(c.seq for c in refused)
    for call in recording.calls:
        if (call.method, call.path) not in routes:
            continue
        identity = call.identity
        row, gap = rows.get(identity), None
        # No repeat: under way before the 503 arrived, a prompt of two handlers, or what the user asked for again.
        repeats = row is not None and call.t0 >= row[0].t1 and call.seq not in twice
        if row is not None and repeats and not recording.timeline.is_asked_for_twice(row[0], call):
            before, gap_before = row
            gap = call.t0 - before.t1
            outcome = _repeated(call, before, gap, gap_before)
            if outcome is not None:
                yield outcome
                if outcome.verdict is not Verdict.FAIL:
                    passing.pop(before.seq, None)
        if call.delivered and call.status == 503:
            rows[identity] = (call, gap)
        else:
            rows.pop(identity, None)
    yield from [PASS] * len(passing)


def _repeated(call: Call, before: Call, gap: float, gap_before: float | None) -> Finding | None:
    """What to say of a repeat that comes `gap` seconds after a 503; None where it came late enough."""
    asked = _retry_after(before)
    if asked is not None:
        if gap >= asked - _CLOCK_S:
            return None
        return fail(
            call,
            before,
            message="repeated before the time that Retry-After names",
            expected=f"not before {asked:g} s after the 503, or not at all",
            received=f"{gap:.3f} s after it",
            fold=route_of(call),
        )
    if gap < TIGHT_LOOP_S or (gap_before is not None and gap <= gap_before):
        return fail(
            call,
            before,
            message="repeated too soon after a 503",
            expected=f"later than {max(TIGHT_LOOP_S, gap_before or 0.0):.3f} s after it, or not at all",
            received=f"{gap:.3f} s after it",
            fold=route_of(call),
        )
    if gap_before is None and gap < SURELY_A_PAUSE_S:
        return undecided(
            call, before, message=f"repeated {gap:.2f} s after a 503: a short pause and a slow machine look alike"
        )
    return None


def _retry_after(call: Call) -> float | None:
    """The seconds that an answer asks the client to wait; None where it does not say so in a readable way."""
    response = call.exchange.response
    said = None if response is None else response.header("retry-after")
    if said is None:
        return None
    try:
        seconds = float(said)
    except ValueError:
        return _until(said, response.header("date") if response is not None else None)
    return seconds if 0 <= seconds < 1e9 else None


def _until(moment: str, now: str | None) -> float | None:
    """The seconds from one HTTP date to another."""
    if now is None:
        return None
    try:
        # Dates are whole seconds: the answer may have been made up to one later than it says.
        return max(0.0, (parsedate_to_datetime(moment) - parsedate_to_datetime(now)).total_seconds() - 1.0)
    except (TypeError, ValueError):
        return None


def _prompts_submitted_twice(recording: Recording) -> frozenset[int]:
    return frozenset(finding.exchanges[0] for finding in submitted_twice(recording))


def waits_after_429(recording: Recording) -> Iterator[Outcome]:
    """After a 429 with Retry-After the identical request does not come before that time."""
    refused = {
        c.seq: s for c in recording.calls if c.delivered and c.status == 429 and (s := _retry_after(c)) is not None
    }
    if not refused:
        return
    recording = recording.whole
    twice = _prompts_submitted_twice(recording)
    routes = {(c.method, c.path) for c in map(recording.by_seq.__getitem__, refused)}
    rows: dict[object, Call] = {}
    for call in recording.calls:
        if (call.method, call.path) not in routes:
            continue
        identity = call.identity
        before = rows.get(identity)
        repeats = before is not None and call.t0 >= before.t1 and call.seq not in twice
        if before is not None and repeats and not recording.timeline.is_asked_for_twice(before, call):
            gap, asked = call.t0 - before.t1, refused[before.seq]
            if gap < asked - _CLOCK_S:
                yield warn(
                    call,
                    before,
                    message="repeated after a 429 before the time that Retry-After names",
                    expected=f"not before {asked:g} s after the 429, or not at all",
                    received=f"{gap:.3f} s after it",
                    fold=route_of(call),
                )
        if call.seq in refused:
            rows[identity] = call
            yield PASS
        else:
            rows.pop(identity, None)
