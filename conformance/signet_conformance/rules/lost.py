"""What may have been sent and is not in the recording: to nobody listening, or by a hook that its host stopped."""

from __future__ import annotations

from math import inf

from signet_conformance.facts import (
    END,
    Call,
    Recording,
)
from signet_conformance.rules.disturbed import held_up_between, switched_on, was_on_between
from signet_conformance.rules.steps import last_opening, openings, session_of, skipped_steps, step_before, step_end
from signet_conformance.trace.marks import (
    TIMED_OUT,
    FaultMark,
    HandlerMark,
    LoadedMark,
    OutageMark,
    StepMark,
    StepName,
    Switch,
)

_OUTAGES = frozenset({"refuse", "reset", "hang"})


def _takes_daemon_away(mark: Switch) -> bool:
    return isinstance(mark, OutageMark) or (isinstance(mark, FaultMark) and mark.kind in _OUTAGES)


def _closes_listener(mark: Switch) -> bool:
    return isinstance(mark, OutageMark) or (isinstance(mark, FaultMark) and mark.kind == "refuse")


def outage_lasts(recording: Recording) -> bool:
    """Whether marks say that the daemon was away until the end of the recording."""
    return any(until == inf for _, until in switched_on(recording, _takes_daemon_away))


def closed_between(recording: Recording, low: int, high: int) -> bool:
    """Whether marks say that the daemon's listener was closed somewhere between two exchanges.

    What a connector tried then was never recorded.
    """
    return was_on_between(recording, _closes_listener, low, high)


def stopped_between(recording: Recording, low: float, high: float, key: str | None = None) -> bool:
    """Whether the host stopped a handler at its timeout, somewhere between two numbers, and answers came at once.

    On a busy machine the time may be over before a program has sent anything. With `key` only handlers count of the
    session that marks name for it.
    """
    session = session_of(recording, key)
    return any(
        step.seq < high and handler.seq > low and not held_up_between(recording, step.seq, handler.seq)
        for step, handler in _stopped(recording)
        if session is None or step.session in (None, session)
    )


def _stopped(recording: Recording) -> list[tuple[StepMark, HandlerMark]]:
    """The handlers that the host stopped at their timeout, each with its step."""
    stopped: list[tuple[StepMark, HandlerMark]] | None = recording.memo.get(_stopped)
    if stopped is None:
        stopped = []
        for handler in recording.marks(HandlerMark):
            step = step_before(recording, handler.seq) if handler.outcome == TIMED_OUT else None
            if step is not None and handler.index in (None, step.index):
                stopped.append((step, handler))
        recording.memo[_stopped] = stopped
    return stopped


def lost_between(recording: Recording, low: int, high: int, key: str | None) -> str | None:
    """Why a hook of a key may have been sent, or was about to be, and is not in the recording; None where none may."""
    if closed_between(recording, low, high):
        return "nothing listened for a while between"
    if stopped_between(recording, low, high, key):
        return "the host stopped a hook at its timeout between"
    return None


def lost_start(recording: Recording, call: Call) -> str | None:
    """Why the start of the call's session may be lost; None where it would have been recorded.

    The last step that opened the session counts: nothing listened then, or the host stopped a handler, whatever was
    in its way.
    """
    step = step_before(recording, call.seq)
    opened = [] if step is None else openings(recording, step)
    if call.operation == END and opened[-1:] == [step]:
        # What is ended by a clear was opened before it.
        opened.pop()
    for last in reversed(opened):
        if closed_between(recording, last.seq, step_end(recording, last)):
            return "nothing listened when its session was opened: a start may have been refused"
        if any(stopped == last for stopped, _ in _stopped(recording)):
            return "the host stopped a hook when its session was opened: its start may be lost"
        if last.index not in skipped_steps(recording):
            # What was skipped opened nothing: the step before it counts then.
            break
    return None


def end_may_be_lost(recording: Recording, key: str) -> bool:
    """Whether nothing listened when the user ended the session of a key, and its program sent nothing in a later step.

    What a program sends that was started for a later session tells nothing: the one that owes the end is gone.
    """
    session = session_of(recording, key)
    steps = recording.marks(StepMark)
    ended = [mark for mark in steps if session is not None and mark.session == session and mark.step == StepName.END]
    if not ended or not closed_between(recording, ended[-1].seq, step_end(recording, ended[-1])):
        return False
    later = next((mark.seq for mark in steps if mark.seq > ended[-1].seq), inf)
    calls = (call for call in recording.calls if call.seq > later and call.delivered)
    return all(_is_of_a_later_program(recording, call, ended[-1]) for call in calls)


def _is_of_a_later_program(recording: Recording, call: Call, ended: StepMark) -> bool:
    """Whether the session of a call was opened after a step, by a program that was started for it."""
    step = step_before(recording, call.seq)
    opened = None if step is None else last_opening(recording, step)
    if opened is None or opened[0] < ended.seq:
        return False
    return any(opened[0] < mark.seq < opened[1] for mark in recording.marks(LoadedMark))


def end_is_owed(recording: Recording, call: Call, kind: StepName) -> bool:
    """Whether a call may still tell the end of an earlier step of its session, which met nobody listening.

    That step has this kind, and no end of the key was recorded between it and the step of the call.
    """
    now = step_before(recording, call.seq)
    if now is None or now.session is None:
        return False
    lost = [
        mark
        for mark in recording.marks(StepMark)
        if mark.session == now.session
        and mark.seq < now.seq
        and mark.step == kind
        and closed_between(recording, mark.seq, step_end(recording, mark))
    ]
    ends = [c.seq for c in recording.hooks_of.get(str(call.key), ()) if c.operation == END]
    return bool(lost) and not any(lost[-1].seq < seq < now.seq for seq in ends)
