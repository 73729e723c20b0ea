"""Requirements on refused requests: whether and when one may be sent again, and which are never refused."""

from __future__ import annotations

from collections.abc import Container, Iterator
from email.utils import parsedate_to_datetime

from signet_conformance.facts import EXEC, EXEC_JOB, GET, HEALTH, START, Call, Recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_if, subjects_of, undecided
from signet_conformance.rules.prompt import repeated_prompts
from signet_conformance.trace.marks import StepName

RETRYABLE_4XX = frozenset({408, 425, 429})
CONFLICT = 409
_REFUSED = frozenset({400, 404, 405, 413, 415, 422})
TIGHT_LOOP_S = 0.05
SURELY_A_PAUSE_S = 0.5
"""A first repeat after less than this may come from a tight loop on a slow machine."""
_CLOCK_S = 0.05
"""How much too early a repeat may seem: the end of an answer is noted after the client had it."""


def refused_request_is_not_repeated(recording: Recording) -> Iterator[Outcome]:
    """A request that was refused with a 4xx is not sent again unchanged, unless its kind has succeeded since."""
    refused = [c for c in recording.calls if c.delivered and c.is_answered(400, 500) and c.status not in RETRYABLE_4XX]
    if not refused:
        return
    recording = recording.whole
    routes = {(c.method, c.path) for c in refused}
    refusals: dict[object, Call] = {}
    subjects = {c.seq for c in refused}
    for call in recording.requests:
        if (call.method, call.path) not in routes:
            continue
        identity = call.identity
        earlier = refusals.get(identity)
        # Not a repeat: a request that was under way before the refusal arrived, or that the user asks for again.
        if earlier is not None and (call.t0 < earlier.t1 or _is_asked_for_again(recording, earlier, call)):
            earlier = None
        if earlier is not None:
            yield breach_of("SIG-HTTP-010", "repeated", call, earlier, earlier=earlier)
        if call.seq in subjects:
            refusals[identity] = call
            if earlier is None:
                yield PASS
        elif call.delivered and call.is_answered(0, 400):
            refusals.pop(identity, None)


def _is_asked_for_again(recording: Recording, earlier: Call, call: Call) -> bool:
    """Whether the user asked for the same once more. A user who searches or saves does not look up an id for that."""
    if recording.timeline.is_asked_for_twice(earlier, call):
        return not (call.operation == GET and _tool_of(recording, call) in ("memory_search", "memory_store"))
    turn = recording.timeline.step_at(call.seq)
    if turn is None or turn.step != StepName.PROMPT or turn.seq < earlier.seq:
        return False
    # A probe changes nothing, and a connector learns only by a request at the user's next turn that all is well.
    if call.operation == HEALTH:
        return True
    # The turn needs its session opened. As with a probe, only by asking does a connector learn that a fault is over; a
    # session that another path holds is to be left alone.
    return call.operation == START and earlier.fault == "status" and (earlier.status != CONFLICT or call.fault is None)


def _tool_of(recording: Recording, call: Call) -> object:
    """The tool that the model called in the step of a call; None in another step."""
    step = recording.timeline.step_at(call.seq)
    return None if step is None or step.step != StepName.TOOL else step.tool


def stops_after_conflict(recording: Recording) -> Iterator[Outcome]:
    """After a 409 on a start, no lifecycle hook of that key follows on the same runtime path."""
    for start in recording.of(START):
        if start.key is None or not start.delivered or start.status != CONFLICT:
            continue
        later = [c for c in recording.later(start) if c.runtime_path == start.runtime_path]
        yield pass_if(not later) or breach_of("SIG-HTTP-012", "hooks go on", *later[:20], start, count=len(later))


def backs_off_after_503(recording: Recording) -> Iterator[Outcome]:
    """After a 503 the connector waits as long as the answer says, or longer before each repeat, or never repeats it."""
    refused = {c.seq for c in recording.calls if c.delivered and c.status == 503}
    gaps: dict[int, float] = {}
    passing = dict.fromkeys(refused)
    for before, call in _repeats(recording, refused):
        gaps[call.seq] = gap = call.t0 - before.t1
        outcome = _judge_repeat(call, before, gap, gaps.get(before.seq))
        if outcome is not None:
            yield outcome
            if outcome.verdict is not Verdict.FAIL:
                passing.pop(before.seq, None)
    yield from [PASS] * len(passing)


def _repeats(recording: Recording, refused: Container[int]) -> Iterator[tuple[Call, Call]]:
    """Pairs of a refused request and the next identical one, in order.

    Not repeats: a request that was under way before the refusal arrived, a prompt of two handlers, and what the user
    asked for again.
    """
    routes = {(c.method, c.path) for c in recording.calls if c.seq in refused}
    if not routes:
        return
    recording = recording.whole
    twice = {finding.exchanges[0] for finding in repeated_prompts(recording)}
    refusals: dict[object, Call] = {}
    for call in recording.calls:
        if (call.method, call.path) not in routes:
            continue
        identity = call.identity
        before = refusals.pop(identity, None)
        repeats = before is not None and call.t0 >= before.t1 and call.seq not in twice
        if before is not None and repeats and not recording.timeline.is_asked_for_twice(before, call):
            yield before, call
        if call.seq in refused:
            refusals[identity] = call


def _judge_repeat(call: Call, before: Call, gap: float, gap_before: float | None) -> Finding | None:
    """The finding on a repeat that comes `gap` seconds after a 503; None if it came late enough."""
    wait_s, least_s = _retry_after(before), max(TIGHT_LOOP_S, gap_before or 0.0)
    if wait_s is not None:
        if gap < wait_s - _CLOCK_S:
            return breach_of("SIG-HTTP-011", "before its time", call, before, wait_s=wait_s, gap=gap)
    elif gap < TIGHT_LOOP_S or (gap_before is not None and gap <= gap_before):
        return breach_of("SIG-HTTP-011", "too soon", call, before, least_s=least_s, gap=gap)
    if wait_s is None and gap_before is None and gap < SURELY_A_PAUSE_S:
        return undecided(
            call, before, message=f"repeated {gap:.2f} s after a 503: a short pause and a slow machine look alike"
        )
    return None


def _retry_after(call: Call) -> float | None:
    """The seconds that an answer asks the client to wait; None without a readable number or date."""
    response = call.exchange.response
    if response is None or (value := response.header("retry-after")) is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _until(value, response.header("date"))
    return seconds if 0 <= seconds < 1e9 else None


def _until(moment: str, now: str | None) -> float | None:
    """The seconds from one HTTP date to another."""
    if now is None:
        return None
    try:
        # Dates are whole seconds: the answer may have been made up to one second later than it says.
        return max(0.0, (parsedate_to_datetime(moment) - parsedate_to_datetime(now)).total_seconds() - 1.0)
    except (TypeError, ValueError):
        return None


def waits_after_429(recording: Recording) -> Iterator[Outcome]:
    """After a 429 with Retry-After the identical request does not come before that time."""
    refused = {
        c.seq: s for c in recording.calls if c.delivered and c.status == 429 and (s := _retry_after(c)) is not None
    }
    for before, call in _repeats(recording, refused):
        gap, wait_s = call.t0 - before.t1, refused[before.seq]
        if gap < wait_s - _CLOCK_S:
            yield breach_of("SIG-HTTP-015", "too early", call, before, wait_s=wait_s, gap=gap)
    yield from [PASS] * len(refused)


def undisturbed_call_is_accepted(recording: Recording) -> Iterator[Outcome]:
    """A hook, save or recall that nothing disturbs is accepted by the daemon."""
    reported: set[int] = set()
    for call in subjects_of(recording, "SIG-HTTP-014", cut=True):
        status = call.status
        if not call.delivered or status is None or recording.timeline.is_disturbed(call):
            continue
        refused = status in _REFUSED or (status >= 500 and status != 503)
        if call.answer_value("requiresConfirm") is True:
            # SIG-MEM-005 judges it.
            continue
        if status == 500 and call.operation == EXEC and EXEC_JOB not in recording.routes.operations:
            # Releases without jobs answer this way if a secret is unknown, which the user has to fix.
            continue
        # If the route is served, a 404 is about an id.
        if refused and not (status == 404 and (call.served or not recording.routes.complete)):
            # Each status is reported once in a recording.
            if status not in reported:
                recording = recording.whole
                reported.add(status)
                yield breach_of("SIG-HTTP-014", "refused", call, received=status, status=status)
        elif call.accepted:
            yield PASS
