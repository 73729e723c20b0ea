"""The requirement on slow answers: those that come within the declared bound are awaited and used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set as AbstractSet
from typing import Any

from msgspec import Struct

from signet_conformance.facts import BOUNDS, PROMPT, START, Call, Recording
from signet_conformance.rules.model.given import InjectedText, Presence, expect_injected, injected_texts, turn_of_text
from signet_conformance.rules.outcome import Outcome, breach_of, pass_if, undecided
from signet_conformance.trace import fault_kinds
from signet_conformance.trace.marks import TIMED_OUT, HandlerMark, StepMark

_LATE_ANSWER, _LATE_REQUEST = 0.8, 0.25
"""Beyond these parts of a bound, a busy machine may explain a late answer, or a late request."""
_CLOCK_S = 0.25


class _Slow(Struct, frozen=True):
    """A start or prompt whose answer was held back, with its step, the declared bound, and the handlers in the step.

    `held_s` is None if the answer came beyond any bound. `asked_s` is the time from the beginning of the step, or from
    the request before it, until the call was sent. `stopped` are the handlers of its operation that the host stopped.
    """

    call: Call
    step: StepMark
    bound_s: float
    held_s: float | None
    asked_s: float
    stopped: tuple[HandlerMark, ...]

    @property
    def lasted_s(self) -> float:
        """How long the exchange took."""
        return self.call.t1 - self.call.t0


def answer_in_time_is_used(recording: Recording) -> Iterator[Outcome]:
    """An answer that comes within the declared bound is used."""
    unused = _unused_answers(recording)
    for slow in _slow_calls(recording):
        if slow.held_s is None:
            yield from _judge_stopped(slow)
        else:
            yield from _judge_in_time(slow, slow.held_s, unused=slow.call.seq in unused)


def _slow_calls(recording: Recording) -> Iterator[_Slow]:
    for call in recording.of(START, PROMPT, cut=True):
        bound_s = recording.declared.bounds_s.get(BOUNDS[str(call.operation)])
        step = recording.timeline.step_at(call.seq)
        if call.fault not in fault_kinds.SLOW or bound_s is None or step is None:
            continue
        before = (each.t1 for each in recording.calls if step.seq < each.seq < call.seq)
        later = (mark for of, mark in recording.timeline.handlers if of is step and mark.seq > call.seq)
        handlers = tuple(mark for mark in later if mark.outcome == TIMED_OUT and _sends(mark, call))
        held_s = _held_s(call.exchange.fault or {}, bound_s)
        yield _Slow(call, step, bound_s, held_s, call.t0 - max([recording.mark_times[step.seq], *before]), handlers)


def _sends(handler: HandlerMark, call: Call) -> bool:
    """Whether a handler sends calls of this operation, by the name of its event."""
    return BOUNDS[str(call.operation)] in str(handler.event).lower()


def _held_s(fault: Mapping[str, Any], bound_s: float) -> float | None:
    """How long a fault holds back an answer that shall come in time; None for any other fault."""
    delay_s = fault.get("delay_s")
    if fault.get("kind") != "delay" or not isinstance(delay_s, int | float):
        return None
    return float(delay_s) if delay_s < bound_s * _LATE_ANSWER else None


def _judge_in_time(slow: _Slow, held_s: float, *, unused: bool) -> Iterator[Outcome]:
    """Judge the use of an answer that was held back for half of the time that the connector has."""
    call, limit_s = slow.call, 2 * held_s
    text = f"{call.operation}, whose answer came after {held_s:.1f} s of {slow.bound_s:g} s that the connector declares"
    if slow.asked_s > limit_s * _LATE_REQUEST:
        yield undecided(call, message=f"{text}: it was sent {slow.asked_s:.1f} s after the step began")
    elif call.error == "client_closed" and slow.lasted_s < held_s - _CLOCK_S:
        yield breach_of("SIG-FAIL-006", "given up", call, slow=slow, text=text)
    elif slow.lasted_s < held_s - _CLOCK_S:
        yield undecided(call, message=f"{text}: the fault ended after {slow.lasted_s:.1f} s, when the step was over")
    elif slow.lasted_s > limit_s * _LATE_ANSWER:
        yield undecided(call, message=f"{text}: it left the recorder after {slow.lasted_s:.1f} s")
    elif slow.stopped:
        event, after_s = slow.stopped[0].event, (slow.stopped[0].ms or 0.0) / 1000
        if after_s - slow.asked_s - slow.lasted_s < max(2 * slow.asked_s, limit_s * _LATE_REQUEST):
            yield undecided(call, message=f"{text}: the machine was too busy to show why the host stopped {event}")
        else:
            yield breach_of("SIG-FAIL-006", "stopped", call, slow=slow, text=text, event=event, after_s=after_s)
    elif call.error == "client_closed":
        yield undecided(call, message=f"{text}: the connector gave up at the moment when it came")
    else:
        yield pass_if(not unused) or breach_of("SIG-FAIL-006", "not used", call, slow=slow, text=text)


def _judge_stopped(slow: _Slow) -> Iterator[Outcome]:
    """Judge a hook that its host stopped while the connector still waited for a slow answer."""
    for handler in slow.stopped:
        after_s = (handler.ms or 0.0) / 1000
        waited_to_the_end = slow.call.error == "client_closed" and slow.lasted_s + slow.asked_s > after_s - 1.0
        if not 0 < after_s < slow.bound_s - 2 * _CLOCK_S or not waited_to_the_end:
            continue
        if slow.asked_s > after_s * _LATE_REQUEST:
            yield undecided(
                slow.call, message=f"{slow.call.operation} was sent {slow.asked_s:.1f} s after its step began"
            )
            continue
        event = handler.event
        yield breach_of("SIG-FAIL-006", "stopped by its timeout", slow.call, slow=slow, event=event, after_s=after_s)
        return


def _unused_answers(recording: Recording) -> AbstractSet[int]:
    """The calls whose texts are missing where texts of undelayed calls of the same operation are."""
    if recording.model is None:
        return frozenset()
    standing = [(text, _standing(recording, text)) for text in injected_texts(recording)]
    usual = {text.call.operation for text, here in standing if text.call.fault is None and here is Presence.PRESENT}
    return {text.call.seq for text, here in standing if here is Presence.ABSENT and text.call.operation in usual}


def _standing(recording: Recording, text: InjectedText) -> Presence | None:
    """Look for a text in the first request of its turn; None if that request was not recorded."""
    turn = turn_of_text(recording, text)
    if turn is None or not turn.main or turn.unread:
        return None
    return expect_injected(recording, text).presence_in(turn.main[0])
