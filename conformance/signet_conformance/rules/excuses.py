"""The excuses of breaches: one table, applied to the findings of the rules on the connector.

A breach may rest on something that is not in the recording, because nothing listened or the host stopped a hook, or on
an answer of the daemon that itself breaks the contract. The breach is then undecided, and the excuse says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import inf

from msgspec import Struct

from signet_conformance.contract import UnreadHooks, requirements
from signet_conformance.facts import COMPLETE, END, LIFECYCLE, Call, Recording, once_a_recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.outcome import undecided
from signet_conformance.trace.marks import LoadedMark, ReinstalledMark, SessionKeyMark, StepMark, StepName


class Excuse(Struct, frozen=True):
    """A reason why a breach of a requirement may not be one.

    `why` looks at the calls that the finding names, in their order. `message` is that of the undecided finding, with
    `{why}` for the reason and `{breach}` for the message of the breach. If `of` names folds of breaches, other breaches
    of the requirement do not have this excuse. The undecided finding names only the calls at `names`.
    """

    why: Callable[[Recording, Sequence[Call]], str | None]
    message: str = "{why}"
    of: tuple[str, ...] = ()
    names: slice = slice(None)


def excuse_breach(requirement: str, finding: Finding, recording: Recording, broken: Mapping[int, str]) -> Finding:
    """`finding`, or an undecided one if something excuses the breach.

    `broken` maps an exchange number to the requirement on the daemon that its answer breaks.
    """
    entry = requirements().get(requirement)
    if entry is None or finding.verdict not in (Verdict.FAIL, Verdict.WARN):
        return finding
    compares_steps = entry.compares_steps or finding.fold in _FOLDS_COMPARING_STEPS
    if compares_steps and max(finding.exchanges, default=inf) > recording.timeline.first_after_lost_steps:
        message = f"{finding.message}; but marks of steps are missing in the recording"
        return undecided(*_calls_of(finding, recording), message=message, fold=finding.kind)
    if not finding.exchanges:
        return finding
    if entry.broken_by_repeats and (again := _sent_by_another_installation(finding, recording)) is not None:
        return again
    excuse = EXCUSES.get(requirement)
    calls = _calls_of(finding, recording)
    if excuse is not None and calls and (not excuse.of or finding.fold in excuse.of):
        why = excuse.why(recording, calls)
        if why is not None:
            message = excuse.message.format(why=why, breach=finding.message)
            return undecided(*calls[excuse.names], message=message, fold=finding.kind)
    if calls and entry.unread is not None and (unread := _unread_hook(entry.unread, calls, recording)) is not None:
        what = f"the body of #{unread.seq} ({unread.operation}) was not recorded whole, and it may be of this session"
        return undecided(*calls, message=f"{finding.message}; {what}", fold=finding.kind)
    if not broken or entry.rests_on is None:
        return finding
    return _resting_on_the_daemon(entry.rests_on, finding, recording, broken)


_FOLDS_COMPARING_STEPS = frozenset({"not cleared", "silent clear", "unheard clear"})


def _sent_by_another_installation(finding: Finding, recording: Recording) -> Finding | None:
    """An undecided finding on a hook that two installations sent: SIG-LOAD-005 alone is the breach."""
    again = {call.seq for _, call in sent_twice(recording)}
    calls = [call for call in _calls_of(finding, recording) if call.seq in again]
    if not calls:
        return None
    return undecided(*calls, message="each hook is sent twice, because two installations are active (SIG-LOAD-005)")


def _unread_hook(unread: UnreadHooks, calls: Sequence[Call], recording: Recording) -> Call | None:
    """A hook whose body was not recorded whole, and which would excuse the breach if it is of the same session.

    A hook in the step of another session is not of this one.
    """
    timeline, seqs = recording.timeline, [call.seq for call in calls]
    low, high = min(seqs) if unread.since_first else -inf, max(seqs) if unread.until_last else inf
    sessions = {timeline.session_of(call.key) for call in calls} - {None}
    for call in _unread_hooks(recording.whole):
        may_hold = call.operation in unread.operations and low < call.seq < high
        if may_hold or (call.operation in unread.later and call.seq > max(seqs)):
            step = timeline.step_at(call.seq)
            if step is None or not sessions or step.session in sessions:
                return call
    return None


@once_a_recording
def _unread_hooks(recording: Recording) -> Sequence[Call]:
    return [call for call in recording.of(*LIFECYCLE, cut=True) if call.cut]


def _resting_on_the_daemon(
    operations: Collection[str], finding: Finding, recording: Recording, broken: Mapping[int, str]
) -> Finding:
    """`finding`, or an undecided one if it rests on an answer that breaks the contract.

    An answer counts if the finding names it, or if it came before, in the same session, to an operation that the
    requirement rests on. A recording without step marks is judged by the letter, because an answer in it may have been
    shortened by hand.
    """
    if not recording.timeline.steps:
        return finding
    seq = next((s for s in broken if s in finding.exchanges or _concerns(operations, s, finding, recording)), None)
    if seq is None:
        return finding
    return undecided(
        *_calls_of(finding, recording),
        message=f"rests on the answer of #{seq}, which breaks {broken[seq]}: the daemon's breach, not the connector's",
        fold=finding.kind,
    )


def _concerns(operations: Collection[str], seq: int, finding: Finding, recording: Recording) -> bool:
    call = recording.by_seq[seq]
    if call.operation not in operations or seq > max(finding.exchanges):
        return False
    return call.key is None or any(named.key == call.key for named in _calls_of(finding, recording))


def _calls_of(finding: Finding, recording: Recording) -> Sequence[Call]:
    return [recording.by_seq[number] for number in finding.exchanges if number in recording.by_seq]


def lost_between(recording: Recording, low: int, high: int, key: str | None) -> str | None:
    """Why a hook of a key that was sent or due may be missing from the recording; None if none can be missing."""
    if recording.timeline.switches.closed_between(low, high):
        return "no daemon listened for a while in between"
    if recording.timeline.was_stopped(low, high, key):
        return "the host stopped a hook at its timeout in between"
    return None


def lost_start(recording: Recording, call: Call) -> str | None:
    """Why the start of the call's session may be lost; None if it would have been recorded.

    The last step that opened the session counts: nothing listened then, or the host stopped a handler for whatever
    reason.
    """
    step = recording.timeline.step_at(call.seq)
    opened = [] if step is None else recording.timeline.openings(step)
    if call.operation == END and opened[-1:] == [step]:
        # A session that ends by a clear was opened before the clear.
        opened.pop()
    for last in reversed(opened):
        if recording.timeline.was_closed_in(last):
            return "no daemon listened when the session was opened: its start may have been refused"
        if recording.timeline.was_stopped_in(last):
            return "the host stopped a hook when the session was opened: its start may be lost"
        if not recording.timeline.was_skipped(last):
            # A skipped step opened nothing, so the step before it counts.
            break
    return None


def end_may_be_lost(recording: Recording, key: str) -> bool:
    """Whether nothing listened when the user ended the session of a key, and its program sent nothing in a later step.

    Requests of a program that was started for a later session prove nothing: the program that owes the end is gone.
    """
    timeline, session = recording.timeline, recording.timeline.session_of(key)
    ended = [mark for mark in timeline.steps_of(session) if session is not None and mark.step == StepName.END]
    if not ended or not timeline.was_closed_in(ended[-1]):
        return False
    later = timeline.next_step(ended[-1])
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
    """Whether a call may still report the end of an earlier step of its session, in which nothing listened.

    That step has this kind, and no end of the key was recorded between it and the step of the call.
    """
    timeline, now = recording.timeline, recording.timeline.step_at(call.seq)
    if now is None or now.session is None:
        return False
    earlier = timeline.steps_of(now.session, now.seq)
    lost = [mark for mark in earlier if mark.step == kind and timeline.was_closed_in(mark)]
    ends = [c.seq for c in recording.hooks_of.get(str(call.key), ()) if c.operation == END]
    return bool(lost) and not any(lost[-1].seq < seq < now.seq for seq in ends)


def _lost_between_its_calls(recording: Recording, calls: Sequence[Call]) -> str | None:
    """Why a hook may be lost between the first of two or more calls and the call that followed it."""
    first, *others = sorted(call.seq for call in calls)
    return lost_between(recording, first, others[0], calls[0].key) if others else None


_LATE = 0.8
"""The part of its bound after which a connector may have given up although the answer was still delivered."""


def _may_be_given_up(recording: Recording, call: Call, bound: str) -> str | None:
    """That the connector may have given a call up before it read the answer; None if the answer came early enough."""
    bound_s = recording.declared.bounds_s.get(bound)
    waited_s = max(call.took_s, _idle_s(recording, call))
    if bound_s is None or waited_s < bound_s * _LATE:
        return None
    return f"the first {bound} took {waited_s:.1f} s, after which the connector may have given it up"


def _idle_s(recording: Recording, call: Call) -> float:
    """The seconds from a call of a step to the next mark: how late a busy connector may read its answer."""
    if recording.timeline.step_at(call.seq) is None:
        return 0.0
    return next((mark.t - call.t0 for mark in recording.trace.marks if mark.seq > call.seq), 0.0)


def _reset_is_unheard(recording: Recording, calls: Sequence[Call]) -> str | None:
    """Why the daemon may not have heard of a session's new beginning, or the connector of its start."""
    again, before = calls
    if (given_up := _may_be_given_up(recording, before, "start")) is not None:
        return given_up
    if (why := _lost_between_its_calls(recording, calls)) is not None:
        return f"{why}, and its end may be lost"
    between = (hook for hook in recording.earlier(again) if hook.seq > before.seq and hook.operation == COMPLETE)
    spoilt = any(hook.fault is not None and not hook.accepted for hook in between)
    return "a fault kept the compaction in between from the daemon" if spoilt else None


def _end_is_unheard(recording: Recording, calls: Sequence[Call]) -> str | None:
    """Why the connector may not have heard the answer of the first of two ends, or a hook in between may be lost."""
    lost = _lost_between_its_calls(recording, calls)
    return f"{lost}: it may be lost" if lost is not None else _may_be_given_up(recording, calls[1], "end")


def _lost_since_the_hook_before(recording: Recording, calls: Sequence[Call]) -> str | None:
    """Why a hook may be lost between a call and the previous hook of its key."""
    call = calls[0]
    earlier = recording.earlier(call)
    return lost_between(recording, earlier[-1].seq if earlier else 0, call.seq, call.key)


def _lost_start(recording: Recording, calls: Sequence[Call]) -> str | None:
    return lost_start(recording, calls[0])


def _end_is_unreported(recording: Recording, call: Call) -> str | None:
    """That the host reported no end of a call's session when the user began a new one; None if it reported it."""
    session = recording.timeline.session_at(call.seq)
    left = (mark for mark in recording.marks(SessionKeyMark) if mark.end_untold and mark.seq > call.seq)
    if recording.timeline.step_at(call.seq) is None or all(mark.session != session for mark in left):
        return None
    return "its host reports no end when the user begins a new session"


def _lost_or_unreported(recording: Recording, calls: Sequence[Call]) -> str | None:
    lost = _lost_between_its_calls(recording, calls)
    if lost is not None:
        return f"{lost}, before the new start: an end may have been lost"
    return _end_is_unreported(recording, min(calls, key=lambda call: call.seq))


def _end_is_unseen(recording: Recording, calls: Sequence[Call]) -> str | None:
    """Why the recording cannot show whether the session of a start was ended; None if it would show the end.

    An outage to the recording's end excuses a session without an end, but not one that is used after its end.
    """
    start = calls[-1]
    hooks = recording.hooks_of[str(start.key)]
    ended = any(hook.operation == END for hook in hooks)
    if recording.may_go_on:
        return "the recording is not complete"
    if not ended and (unreported := _end_is_unreported(recording, start)) is not None:
        return unreported
    if recording.timeline.switches.outage_lasts and not ended:
        return "the daemon did not run until the end of the recording"
    if end_may_be_lost(recording, str(start.key)):
        return "no daemon listened when the user ended it, and its program sent nothing later"
    if recording.timeline.was_stopped(hooks[-1].seq, inf, start.key):
        return "the host stopped one of its hooks at its timeout, after the last hook that was sent"
    return None


EXCUSES: Mapping[str, Excuse] = {
    "SIG-START-004": Excuse(_lost_start, names=slice(1)),
    "SIG-START-005": Excuse(_reset_is_unheard, "{breach}; {why}"),
    "SIG-PROMPT-005": Excuse(_lost_start, of=("unstarted key", "no key")),
    "SIG-PROMPT-006": Excuse(_lost_between_its_calls, "{why}: a start may be lost"),
    "SIG-END-002": Excuse(_lost_start, of=("unused key",)),
    "SIG-END-005": Excuse(_end_is_unseen, "not ended, and {why}", names=slice(-1, None)),
    "SIG-END-006": Excuse(_end_is_unheard),
    "SIG-END-007": Excuse(_lost_between_its_calls, "{why}: a start may be lost"),
    "SIG-END-009": Excuse(_lost_between_its_calls, "{why}: a start may be lost"),
    "SIG-END-010": Excuse(_lost_or_unreported, of=("never ended",)),
    "SIG-CKPT-001": Excuse(_lost_start, of=("outside its session",)),
    "SIG-CMP-003": Excuse(_lost_since_the_hook_before, "{why}: a pre-compaction may be lost"),
    "SIG-CMP-004": Excuse(_lost_between_its_calls, "{why}: a pre-compaction may be lost"),
    "SIG-CMP-007": Excuse(_lost_start, names=slice(1)),
    "SIG-CMP-008": Excuse(_lost_between_its_calls, "{why}: it may be lost"),
    "SIG-REC-004": Excuse(_lost_start, of=("no open session",)),
}
"""The excuses by requirement id."""


@once_a_recording
def sent_twice(recording: Recording) -> Sequence[tuple[Call, Call]]:
    """Pairs of lifecycle hooks of one step that say the same, if a mark reports entries that are installed twice."""
    is_doubled = any(mark.twice or mark.old for mark in recording.marks(ReinstalledMark))
    return list(_pairs_of_hooks(recording)) if is_doubled else []


def _pairs_of_hooks(recording: Recording) -> Iterator[tuple[Call, Call]]:
    before: dict[tuple[object, ...], Call] = {}
    for call in recording.of(*LIFECYCLE, cut=True):
        step = recording.timeline.step_at(call.seq)
        content = (None if step is None else step.seq, call.identity)
        if (first := before.pop(content, None)) is not None:
            yield first, call
        else:
            before[content] = call


BOUNDARY_REASONS = frozenset(
    {
        "clear",
        "session.deleted",
        "session_branch",
        "session_fork",
        "session_shutdown",
        "session_switch",
        "stale-session-sweep",
    }
)


def is_boundary(end: Call) -> bool:
    """Whether an end gives a reason that closes its session for good."""
    reason = end.body.get("reason")
    return isinstance(reason, str) and reason in BOUNDARY_REASONS
