"""What excuses a breach: requests that were sent, or about to be, and are not in the recording."""

from __future__ import annotations

from math import inf

from signet_conformance.facts import END, Call, Recording
from signet_conformance.trace.marks import LoadedMark, StepMark, StepName


def lost_between(recording: Recording, low: int, high: int, key: str | None) -> str | None:
    """Why a hook of a key may have been sent, or was about to be, and is not in the recording; None where none may."""
    if recording.timeline.switches.closed_between(low, high):
        return "nothing listened for a while between"
    if recording.timeline.was_stopped(low, high, key):
        return "the host stopped a hook at its timeout between"
    return None


def lost_start(recording: Recording, call: Call) -> str | None:
    """Why the start of the call's session may be lost; None where it would have been recorded.

    The last step that opened the session counts: nothing listened then, or the host stopped a handler, whatever was
    in its way.
    """
    step = recording.timeline.step_at(call.seq)
    opened = [] if step is None else recording.timeline.openings(step)
    if call.operation == END and opened[-1:] == [step]:
        # What is ended by a clear was opened before it.
        opened.pop()
    for last in reversed(opened):
        if recording.timeline.was_closed_in(last):
            return "nothing listened when its session was opened: a start may have been refused"
        if recording.timeline.was_stopped_in(last):
            return "the host stopped a hook when its session was opened: its start may be lost"
        if last.index not in recording.timeline.skipped:
            # What was skipped opened nothing: the step before it counts then.
            break
    return None


def end_may_be_lost(recording: Recording, key: str) -> bool:
    """Whether nothing listened when the user ended the session of a key, and its program sent nothing in a later step.

    What a program sends that was started for a later session tells nothing: the one that owes the end is gone.
    """
    session = recording.timeline.session_of(key)
    steps = recording.marks(StepMark)
    ended = [mark for mark in steps if session is not None and mark.session == session and mark.step == StepName.END]
    if not ended or not recording.timeline.was_closed_in(ended[-1]):
        return False
    later = next((mark.seq for mark in steps if mark.seq > ended[-1].seq), inf)
    calls = (call for call in recording.calls if call.seq > later and call.delivered)
    return all(_is_of_a_later_program(recording, call, ended[-1]) for call in calls)


def _is_of_a_later_program(recording: Recording, call: Call, ended: StepMark) -> bool:
    """Whether the session of a call was opened after a step, by a program that was started for it."""
    step = recording.timeline.step_at(call.seq)
    opened = None if step is None else recording.timeline.last_opening(step)
    if opened is None or opened[0] < ended.seq:
        return False
    return any(opened[0] < mark.seq < opened[1] for mark in recording.marks(LoadedMark))


def end_is_owed(recording: Recording, call: Call, kind: StepName) -> bool:
    """Whether a call may still tell the end of an earlier step of its session, which met nobody listening.

    That step has this kind, and no end of the key was recorded between it and the step of the call.
    """
    now = recording.timeline.step_at(call.seq)
    if now is None or now.session is None:
        return False
    lost = [
        mark
        for mark in recording.marks(StepMark)
        if mark.session == now.session
        and mark.seq < now.seq
        and mark.step == kind
        and recording.timeline.was_closed_in(mark)
    ]
    ends = [c.seq for c in recording.hooks_of.get(str(call.key), ()) if c.operation == END]
    return bool(lost) and not any(lost[-1].seq < seq < now.seq for seq in ends)
