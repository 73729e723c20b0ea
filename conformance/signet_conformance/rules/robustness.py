"""Requirements on what a connector does when the daemon is away, slow, failing or odd. Each needs a fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from signet_conformance.facts import BOUNDS, END, LIFECYCLE, PROMPT, START, Call, Recording, plain
from signet_conformance.finding import Finding
from signet_conformance.rules.handlers import lost_turns
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, no_subject, pass_if, undecided
from signet_conformance.trace import fault_kinds, marks
from signet_conformance.trace.marks import StepMark, StepName

CLAIMED = 409
GRACE_S = 1.0
_AT_ONCE, _LATE, _STEPS = 0.25, 0.1, 3
"""Parts of a bound: within the first, requests count as answered at once; later than the second, a timer is late.

This many steps show that a handler is slow.
"""
_LONGEST_S = 10**9
_TURNS = 2
"""This many undisturbed turns without a hook show that a connector does not work again."""


def _silence_after(recording: Recording, requirement: str, name: str, seq: int, *calls: Call) -> Finding | None:
    """The breach by silence after a fault at `seq`; None if something else explains the silence, or nothing shows it.

    The kit's marks must say that every fault was switched off, and that the user then continued a session that had been
    opened before: the connector was given a prompt and an end, they were performed, and no hook followed.
    """
    times = recording.timeline.switches.troubles
    if not times or _may_be_silent(recording, recording.calls):
        return None
    # Nothing has to follow a fault that was never switched off.
    over = times[-1][1]
    if over < seq:
        return None
    performed = recording.timeline.performed
    # Only hooks that were sent before can stop: not those of a session that began in the outage.
    opening = [mark for mark in performed if mark.step in (StepName.START, StepName.RESUME)]
    began = {mark.session for mark in opening if seq <= mark.seq < over}
    steps: dict[str | None, list[str | None]] = {}
    for mark in performed:
        if mark.seq > over and mark.session not in began:
            steps.setdefault(mark.session, []).append(mark.step)
    hooks = [c for c in recording.calls if c.operation in LIFECYCLE]
    was_continued = any({StepName.PROMPT, StepName.END} <= set(names) for names in steps.values())
    if not was_continued or any(c.seq > over for c in hooks) or recording.timeline.was_stopped(over, inf):
        return None
    # A connector that sent nothing in the last turn before the fault was silent already.
    turns = [mark.seq for mark in performed if mark.step == StepName.PROMPT and mark.seq < seq]
    if turns and not any(turns[-1] < c.seq <= over for c in hooks):
        return None
    if not any(c.seq <= seq for c in hooks):
        return None
    received = f"none in {sum(map(len, steps.values()))} steps"
    return breach_of(requirement, name, *(calls or hooks[-1:]), received=received)


def _may_be_silent(recording: Recording, calls: Iterable[Call]) -> bool:
    """Whether the connector may be silent: bypassed, told to stop by an answer, or not recorded to the end."""
    return recording.may_go_on or recording.timeline.switches.was_bypassed or any(map(_asks_for_silence, calls))


def _asks_for_silence(call: Call) -> bool:
    if (call.is_hook and call.status == 409) or call.status in (401, 403):
        return True
    return any(call.answer_value(name) is True for name in ("bypassed", "skipped"))


def turn_takes_place_without_daemon(recording: Recording) -> Iterator[Outcome]:
    """The user's next turn takes place while the daemon cannot be reached."""
    for turn in lost_turns(recording):
        if turn.away:
            yield breach_of("SIG-FAIL-001", "turn lost", *turn.calls, received=turn.handler.text, turn=turn)
    away = [
        c.seq
        for c in recording.calls
        if c.is_hook
        and (c.fault in fault_kinds.AWAY or (c.fault is None and c.error in ("upstream_refused", "upstream_reset")))
    ]
    # While the listener is closed, nothing is recorded: the kit's own marks stand for the attempts.
    steps = [mark.seq for mark in recording.marks(StepMark)]
    for since, until in recording.timeline.switches.refusals:
        if until < inf:
            away += [seq for seq in steps if since < seq < until][:1]
    if not away:
        return
    recording = recording.whole
    prompts = recording.of(PROMPT, cut=True)
    if any(p.seq > min(away) for p in prompts):
        yield PASS
    else:
        silence = _silence_after(recording, "SIG-FAIL-001", "silent", min(away))
        yield silence or undecided(message="the daemon was unreachable, and no prompt follows to show the next turn")


def slow_call_is_abandoned(recording: Recording) -> Iterator[Outcome]:
    """A call that hangs is given up within the time that the target declares, and no handler takes longer by itself."""
    bounds = recording.declared.bounds_s
    yield from _slow_handlers(recording)
    for call in recording.of(*BOUNDS, cut=True):
        name = BOUNDS[str(call.operation)]
        bound = bounds.get(name)
        if call.fault not in fault_kinds.SLOW or (bound is None and call.operation not in (START, PROMPT)):
            continue
        duration = call.took_s
        if bound is not None and duration > bound + GRACE_S:
            if (reason := _why_undecided(recording, call, duration - bound - GRACE_S)) is not None:
                yield undecided(call, message=f"{call.operation} waits {duration:.1f} s, but {reason}")
                continue
            yield breach_of("SIG-FAIL-002", "waited for", call, duration=duration, bound=bound)
        else:
            why = f"no bound is declared for {name}" if bound is None else "the delay was shorter than the bound"
            yield pass_if(call.error == "client_closed") or undecided(call, message=why)


def _why_undecided(recording: Recording, call: Call, over_s: float) -> str | None:
    """Describe how the machine may have made a call `over_s` too long. Return None if nothing says so."""
    if (step := recording.timeline.step_at(call.seq)) is None:
        return None
    late_s = max((mark.late_ms or 0.0 for of, mark in recording.timeline.handlers if of is step), default=0.0) / 1000
    if late_s >= over_s:
        return f"the machine was busy, and delayed the connector or its driver by {late_s:.1f} s"
    return "the driver has not said yet how busy the machine was" if recording.may_last(step) else None


def _slow_handlers(recording: Recording) -> Iterator[Outcome]:
    """Warn of handlers over the bound of their step in three steps, although their requests were answered at once.

    Do not warn if a timer of the driver was late in one of them, or if that is not known: the machine may have been
    slow.
    """
    slow: dict[str | None, list[tuple[StepMark, marks.HandlerMark, float]]] = {}
    for step, mark in recording.timeline.handlers:
        bound = None if step is None else recording.declared.bounds_s.get(str(step.step))
        if mark.outcome != marks.SLOW or step is None or bound is None or recording.timeline.was_disturbed_in(step):
            continue
        if sum(call.t1 - call.t0 for call in recording.timeline.calls_in(step)) < bound * _AT_ONCE:
            slow.setdefault(mark.event, []).append((step, mark, bound))
    if slow:
        recording = recording.whole
    for event, found in slow.items():
        on_time = all(mark.late_ms is not None and mark.late_ms <= bound * 1000 * _LATE for _, mark, bound in found)
        if len({step.seq for step, _, _ in found}) < _STEPS or not on_time:
            continue
        took_s = min((mark.ms or 0.0) / 1000 for _, mark, _ in found)
        step, _, bound = found[0]
        calls = recording.timeline.calls_in(step)
        yield breach_of("SIG-FAIL-002", "slow", *calls, event=event, took_s=took_s, steps=len(found), bound=bound)


def bad_answer_does_not_stop_hooks(recording: Recording) -> Iterator[Outcome]:
    """A 5xx, or an answer that cannot be read, does not stop the hooks after it."""
    for turn in lost_turns(recording):
        if turn.faults and not turn.away:
            faults = ", ".join(sorted(turn.faults))
            received = turn.handler.text
            yield breach_of("SIG-FAIL-003", "turn lost", *turn.calls, received=received, turn=turn, faults=faults)
    bad = [c for c in recording.calls if c.is_hook and c.delivered and _is_unusable(c)]
    if not bad:
        return
    recording = recording.whole
    last_hook = max((c.seq for c in recording.calls if c.operation in LIFECYCLE), default=-1)
    for call in bad:
        if last_hook > call.seq:
            yield PASS
        else:
            silence = _silence_after(recording, "SIG-FAIL-003", "silent", call.seq, call)
            yield silence or undecided(call, message="a bad answer, and no lifecycle hook follows")


def _is_unusable(call: Call) -> bool:
    """Whether an answer is a failure, or a success without an object or list: empty, a page, null, a number."""
    if call.fault in fault_kinds.UNREADABLE or call.is_answered(500, 1000):
        return True
    if call.status != 200 or call.readable:
        return False
    # The connector may have read what the recorder could not decode.
    answer = call.exchange.response
    return answer is None or answer.body is None or answer.body.undecoded is None


def bypass_is_silent(recording: Recording) -> Iterator[Outcome]:
    """While the bypass is switched on, the connector sends no hooks."""
    if recording.declared.bypass == "application":
        yield no_subject("the application that uses the connector owns the bypass")
        return
    bypass = next((mark for mark in recording.marks(marks.BypassMark) if mark.is_on), None)
    if bypass is None:
        return
    code = "" if bypass.variable in (None, "SIGNET_BYPASS") else bypass.variable
    hooks = [c for c in recording.calls if c.is_hook]
    yield pass_if(not hooks) or breach_of(
        "SIG-FAIL-004", "hooks are sent", *hooks[:20], name=code or "the bypass", count=len(hooks), code=code
    )


def odd_answer_is_tolerated(recording: Recording) -> Iterator[Outcome]:
    """The connector goes on after an answer that is unusual and still valid."""
    odd = [c for c in recording.calls if c.is_hook and c.delivered and _is_odd(c)]
    if not odd:
        return
    recording = recording.whole
    last = max((c.seq for c in recording.calls if c.path.startswith("/api/")), default=-1)
    for call in odd:
        if last > call.seq:
            yield PASS
        else:
            is_shape = call.fault == "shape"
            silence = _silence_after(recording, "SIG-FAIL-005", "silent", call.seq, call) if is_shape else None
            yield silence or undecided(call, message="an unexpected answer, and no request follows")


def _is_odd(call: Call) -> bool:
    if call.fault == "shape":
        return not _is_unusable(call)
    return call.status == 200 and any(map(call.answer_value, ("skipped", "bypassed", "duplicateRuntimePath")))


def works_again_after_trouble(recording: Recording) -> Iterator[Outcome]:
    """When a fault, an outage or a refusal is over, the connector works again."""
    timeline = recording.timeline
    periods = timeline.switches.interruptions
    # A second end is also answered as skipped, which says nothing about the session.
    asked = (c for c in recording.calls if c.fault is None and c.operation != END and c.status != CLAIMED)
    if not periods or _may_be_silent(recording, asked):
        return
    recording = recording.whole
    for session in dict.fromkeys(step.session for step in timeline.steps):
        for _, over in periods:
            if over == inf:
                continue
            # Attempts while nothing listened were not recorded; in other trouble, the requests are.
            until = next(
                (low for low, high in periods if low > over and timeline.switches.closed_between(low, high)), inf
            )
            outcome = _recovery(recording, session, int(over), until)
            if outcome is not None:
                yield outcome
                if outcome is not PASS:
                    break


def _recovery(recording: Recording, session: str | None, over: int, until: float) -> Outcome | None:
    """Judge one session after trouble; None if the connector had not used it, or if the user did not continue it."""
    timeline = recording.timeline
    hooks = [call for call in recording.calls if call.operation in LIFECYCLE and timeline.may_be_of(call, session)]
    opened_anew = any(over < mark.seq < until for mark in recording.marks(marks.LoadedMark))
    claimed = any(call.operation == START and call.status == CLAIMED for call in hooks)
    if claimed or opened_anew or not any(call.seq < over for call in hooks):
        return None
    later = [step for step in timeline.steps_of(session, until) if step.seq > over and not timeline.was_skipped(step)]
    turns = [step for step in later if _is_reported_turn(step) and not timeline.was_disturbed_in(step)]
    if len(turns) < _TURNS:
        return None
    hooks_since = [call for call in hooks if call.seq > turns[0].seq]
    if hooks_since:
        return PASS
    if not _reached_connector(recording, turns):
        return None
    waited_s = _passed_s(recording, over)
    recovers_s = recording.declared.recovers_s or 0.0
    last = hooks[-1]
    if timeline.was_stopped(over, inf, last.key):
        return undecided(last, message="the host stopped one of its hooks at its timeout, after the trouble was over")
    if waited_s < recovers_s:
        why = f"the recording ends {waited_s:.0f} s after the trouble was over; the target declares {recovers_s:g} s"
        return undecided(last, message=f"no hook of {session} since; {why}")
    trouble = _trouble_before(recording, over)
    delay = f", {recovers_s:g} s later" if recovers_s else ""
    return breach_of("SIG-FAIL-007", "not again", last, trouble=trouble, turns=len(turns), session=session, delay=delay)


def _is_reported_turn(step: StepMark) -> bool:
    """Whether a step is a turn that the host reports to its connector."""
    text = plain(step.text or "x")
    return step.step == StepName.PROMPT and bool(text) and not text.startswith("/")


def _reached_connector(recording: Recording, turns: Sequence[StepMark]) -> bool:
    """Whether the host told the connector of turns; with a real program, only observations prove it."""
    capabilities = recording.declared.capabilities
    if capabilities is not None and PROMPT not in capabilities:
        return False
    observed = [mark for mark in recording.marks(marks.ObservedMark) if mark.seq > turns[0].seq]
    return len(observed) >= _TURNS or not any(mark.real for mark in recording.marks(marks.LoadedMark))


def _passed_s(recording: Recording, over: int) -> float:
    """The seconds from the end of the trouble to the end of the recording, including those that the scenario waited."""
    times = recording.mark_times
    last = max([*times.values(), *(call.t1 for call in recording.calls)])
    steps = (step for step in recording.timeline.steps if step.seq > over and not recording.timeline.was_skipped(step))
    waits = (step.other.get("seconds") for step in steps)
    passed = (seconds for seconds in waits if isinstance(seconds, int | float))
    # A larger number is a mistake in the scenario, and may not fit into a float.
    return last - times[over] + sum(min(seconds, _LONGEST_S) for seconds in passed)


def _trouble_before(recording: Recording, over: int) -> str:
    kinds = [mark for mark in recording.marks(marks.FaultMark) if mark.seq == over]
    if not kinds or kinds[0].is_restart:
        return "an outage"
    status = kinds[0].other.get("status")
    return f"the fault {kinds[0].kind}" if status is None else f"the refusal with {status}"
