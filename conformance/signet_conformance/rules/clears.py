"""Requirements on a cleared context: which start or end says that the user cleared it, and when it may say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from signet_conformance.facts import END, PROMPT, START, Call, Recording
from signet_conformance.rules.excuses import end_is_owed, lost_between
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_if, undecided
from signet_conformance.trace.marks import SessionKeyMark, StepMark, StepName


def cleared_context_is_said(recording: Recording) -> Iterator[Outcome]:
    """When the context of a key was discarded, the next start or the end before it says "clear"."""
    for hooks in recording.hooks_of.values():
        before: Call | None = None
        for call in hooks:
            if call.operation == START:
                source = call.body_text("source")
                if source == "clear":
                    yield _judge_claimed_clear(recording, call)
                elif before is None and (clear := _unreported_clear(recording, call)) is not None:
                    yield breach_of("SIG-START-006", "silent clear", call, clear=clear, recording=recording)
                elif before is not None and before.operation == END:
                    says_clear = before.body.get("reason") == "clear"
                    yield PASS if says_clear else _judge_restart(recording, call, before, source)
            elif call.operation == PROMPT and before is not None:
                yield from _breach_of_going_on(recording, hooks, before, call)
            before = call


def _opening_clear(recording: Recording, step: StepMark | None) -> StepMark | None:
    """The clear that opened the session of a step last; None if another step opened it."""
    openings = [] if step is None else recording.timeline.openings(step)
    opened = [mark for mark in openings if not recording.timeline.was_skipped(mark)]
    return opened[-1] if opened and opened[-1].step == StepName.CLEAR else None


def _breach_of_going_on(recording: Recording, hooks: Sequence[Call], before: Call, prompt: Call) -> Iterator[Outcome]:
    """The breach of a session that goes on after a clear as if nothing had happened: no end or start reports it."""
    timeline = recording.timeline
    step = timeline.own_step(prompt)
    clear = _opening_clear(recording, step)
    if step is None or step.step != StepName.PROMPT or clear is None:
        return
    starts = [call for call in hooks if call.operation == START and call.seq < clear.seq]
    is_open = bool(starts) and starts[-1].accepted and before.operation != END and before.seq < clear.seq
    if not is_open or timeline.session_of(prompt.key) != step.session or timeline.was_stopped_in(clear):
        return
    is_reported = any(clear.seq < call.seq < prompt.seq for call in recording.whole.of(START, END, cut=True))
    # If the connector keeps the former id after the host gave the session another, that is SIG-SESS-004's.
    former, now = (timeline.host_ids.at(step.session, seq) for seq in (clear.seq, timeline.next_step(clear)))
    is_renamed = former is not None and now is not None and former.id != now.id
    is_unannounced = now is not None and now.told_by == ()
    if is_reported or is_renamed or is_unannounced or timeline.switches.any_between(before.seq, prompt.seq):
        return
    yield breach_of("SIG-START-006", "unheard clear", prompt, before, clear=clear)


def _judge_claimed_clear(recording: Recording, call: Call) -> Outcome:
    """A start that says "clear": the user cleared its session after the last start that the daemon heard."""
    timeline, step = recording.timeline, recording.timeline.own_step(call)
    if step is None or step.session is None:
        return PASS
    # A key may be started in the step of another session.
    session = timeline.session_of(call.key) or step.session
    steps = timeline.steps_of(session, call.seq)
    # A start in the step of the clear itself may make up for an earlier one that no daemon heard.
    started = (c for c in recording.whole.of(START) if c.seq < call.seq and c.accepted)
    owned = [c for c in started if timeline.own_step(c) in steps and timeline.own_step(c) != step]
    since = owned[-1].seq if owned else -1
    clears = timeline.clears_of(session, call.seq)
    if step in clears or any(mark.seq > since for mark in clears):
        # A start that is sent twice in the step of the clear is SIG-START-005's.
        return PASS
    if owned and _is_ended_by_a_clear(recording, owned[-1], clears):
        # If a session is cleared before its first turn, a connector may first start it for the time before the clear.
        return PASS
    if timeline.switches.any_between(since, call.seq):
        return PASS
    return breach_of("SIG-START-006", "not cleared", call)


def _is_ended_by_a_clear(recording: Recording, start: Call, clears: Sequence[StepMark]) -> bool:
    """Whether a start was sent in the step of a clear, and its key ended in that step."""
    step = recording.timeline.own_step(start)
    ends = (call for call in recording.hooks_of.get(str(start.key), ()) if call.operation == END)
    return step in clears and any(end.seq > start.seq and recording.timeline.own_step(end) == step for end in ends)


def _unreported_clear(recording: Recording, call: Call) -> StepMark | None:
    """The clear before the first start of a key, if the host did not report the end that it made; else None."""
    clear = _opening_clear(recording, recording.timeline.own_step(call))
    if clear is None:
        return None
    left = (mark for mark in recording.marks(SessionKeyMark) if mark.end_untold and mark.session == clear.session)
    if not any(recording.timeline.step_at(mark.seq) == clear for mark in left):
        return None
    # A start or end since then may say it, or no daemon may have heard it.
    if any(clear.seq < other.seq < call.seq for other in recording.whole.of(START, END, cut=True)):
        return None
    return None if recording.timeline.switches.any_between(clear.seq, call.seq) else clear


def _judge_restart(recording: Recording, call: Call, end: Call, source: str | None) -> Outcome:
    """A start after an end of its key, if neither says "clear"."""
    step = recording.timeline.own_step(call)
    if step is None:
        if source is not None:
            return PASS
        return undecided(call, end, message="without a source it is unknown whether the context was cleared")
    clears = step.step == StepName.CLEAR and not recording.timeline.was_skipped(step)
    # The session may have been ended by a clear, and be opened anew only in a later step.
    clear = _opening_clear(recording, step)
    if not clears and (clear is None or recording.timeline.step_at(end.seq) != clear):
        return PASS
    if not clears and (why := lost_between(recording, end.seq, call.seq, call.key)):
        return undecided(call, end, message=f"{why}: a start may be lost")
    if end_is_owed(recording, call, StepName.END):
        return undecided(
            call, end, message="no daemon listened when the user ended it before; this end may be sent in its place"
        )
    if clears and _is_late(recording, call, step):
        return PASS
    return breach_of("SIG-START-006", "silent restart", call, end)


def _is_late(recording: Recording, start: Call, clear: StepMark) -> bool:
    """Whether a start is for the opening before the clear, which had no start, and a later hook reports the clear."""
    hooks = [hook for hook in recording.keyed_hooks if recording.timeline.session_of(hook.key) == clear.session]
    opened = recording.timeline.openings(clear)[:-1]
    if not opened or any(h.operation == START and opened[-1].seq < h.seq < start.seq for h in hooks):
        return False
    until = next((m.seq for m in recording.marks(StepMark) if m.seq > start.seq and m.session == clear.session), inf)
    members = {START: "source", END: "reason"}
    later = (hook for hook in hooks if start.seq < hook.seq < until and hook.operation in members)
    return any(hook.body.get(members[str(hook.operation)]) == "clear" for hook in later)


def clear_means_a_discarded_context(recording: Recording) -> Iterator[Outcome]:
    """An end gives the reason "clear" only when the context is discarded."""
    cleared = [call for call in recording.of(END) if call.body.get("reason") == "clear"]
    starts = recording.whole.of(START) if cleared else []
    last_start = starts[-1].seq if starts else -1
    for call in cleared:
        following = _after_its_repeats(recording, call)
        is_excused = (
            end_is_owed(recording, call, StepName.CLEAR)
            or _is_of_the_clear(recording, call)
            or _repeats_a_failed_one(recording, call)
        )
        if _is_ended_otherwise(recording, call) and not is_excused:
            yield breach_of("SIG-END-009", "ended otherwise", call)
        elif following is not None and following.operation != START:
            yield breach_of("SIG-END-009", "goes on", call, following, following=following)
        else:
            message = 'reason:"clear", and no start follows to show a fresh context'
            yield pass_if(last_start > call.seq) or undecided(call, message=message)


def _is_ended_otherwise(recording: Recording, end: Call) -> bool:
    """Whether an end came in a step in which the user ended or closed its session."""
    timeline, step = recording.timeline, recording.timeline.step_at(end.seq)
    if step is None or step.step not in (StepName.END, StepName.CLOSE) or timeline.was_skipped(step):
        return False
    return timeline.session_of(end.key) == step.session


def _after_its_repeats(recording: Recording, end: Call) -> Call | None:
    """The next hook of an end's key, after repeats of an end that failed or whose answer was lost."""
    for call in recording.later(end):
        if end.accepted or call.operation != END or call.body.get("reason") != end.body.get("reason"):
            return call
        end = call
    return None


def _is_of_the_clear(recording: Recording, end: Call) -> bool:
    """Whether an end in the step of the user's own end reports the clear before it.

    No earlier end reported the clear, and another end follows.

    A connector that sends from a queue reports both in the last step, in any order if they have two keys. The end of an
    earlier key may report an earlier clear.
    """
    step = recording.timeline.step_at(end.seq)
    clear = _opening_clear(recording, step)
    if step is None or clear is None:
        return False
    ends = [call for call in recording.of(END) if recording.timeline.session_of(call.key) == step.session]
    was_reported = any(clear.seq < call.seq < step.seq and call.key == end.key for call in ends)
    until = recording.timeline.end_of(step)
    own = (call for call in ends if step.seq < call.seq < until and (call.seq > end.seq or call.key != end.key))
    return not was_reported and any(call.body.get("reason") != "clear" for call in own)


def _repeats_a_failed_one(recording: Recording, end: Call) -> bool:
    """Whether an end for a clear failed, or its answer was lost, and only starts that also failed came since.

    A connector may repeat it when it next works for the session, which may be at the user's own end.
    """
    for call in reversed(recording.earlier(end)):
        if call.accepted or call.operation not in (START, END):
            return False
        if call.operation == END:
            return bool(call.body.get("reason") == "clear")
    return False
