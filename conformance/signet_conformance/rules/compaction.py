"""Requirements on pre-compaction, compaction-complete and the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from signet_conformance.facts import CHECKPOINT, COMPLETE, END, PRE, PROMPT, START, Call, Recording
from signet_conformance.rules.excuses import end_is_owed, is_boundary
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_if, undecided
from signet_conformance.trace.marks import LoadedMark, ModelMark, StepName

CHECKPOINTS_SINCE = "0.181.4"
"""From this release on, an end without a boundary reason closes no session."""


def complete_follows_pre(recording: Recording) -> Iterator[Outcome]:
    """Every compaction-complete follows a pre-compaction of its key. Hooks without a key count as one key."""
    prepared: set[str | None] = set()
    for call in _compactions(recording):
        if call.operation == PRE:
            prepared.add(call.key)
            continue
        yield pass_if(call.key in prepared) or breach_of("SIG-CMP-003", "unprepared", call)
        if call.accepted:
            prepared.discard(call.key)


def _compactions(recording: Recording) -> list[Call]:
    """The compaction hooks in order: all of the recording if one has no key, since then all count as one key."""
    calls = recording.of(PRE, COMPLETE)
    return recording.whole.of(PRE, COMPLETE) if any(call.key is None for call in calls) else calls


def one_complete_a_pre(recording: Recording) -> Iterator[Outcome]:
    """At most one compaction-complete is accepted for each pre-compaction. Hooks without a key count as one key."""
    stored: dict[str | None, Call] = {}
    for call in _compactions(recording):
        if call.operation == PRE:
            stored.pop(call.key, None)
            continue
        yield pass_if(call.key not in stored) or breach_of("SIG-CMP-004", "second", call, stored[call.key])
        if call.accepted and not call.answer_value("skipped"):
            stored.setdefault(call.key, call)


def compaction_lies_inside_the_session(recording: Recording) -> Iterator[Outcome]:
    """Compaction hooks lie between the start and the end of their session."""
    for call in recording.of(PRE, COMPLETE):
        if call.key is None:
            continue
        if recording.is_open(call.key, call.seq):
            yield PASS
        elif earlier := recording.earlier(call):
            yield breach_of("SIG-CMP-007", "outside its session", call, earlier[-1], before=earlier[-1].operation)
        else:
            yield undecided(call, message="the session of this key was not seen before")


def pre_is_completed(recording: Recording) -> Iterator[Outcome]:
    """A pre-compaction is completed before its key's next prompt, end, or start after a compaction."""
    for hooks in recording.hooks_of.values():
        waiting: list[Call] = []
        for call in hooks:
            if call.operation == PRE:
                waiting.append(call)
            elif call.operation == COMPLETE:
                yield from [PASS] * len(waiting)
                waiting = []
            elif call.operation in (PROMPT, END) or (call.operation == START and call.body.get("source") == "compact"):
                for pre in waiting:
                    yield breach_of("SIG-CMP-008", "not completed", pre, call, received=call.operation, later=call)
                waiting = []
        for pre in waiting:
            yield undecided(pre, message="nothing after the pre-compaction shows whether it was completed")
    yield from _ended_by_a_compaction(recording)


def pre_is_answered_first(recording: Recording) -> Iterator[Outcome]:
    """The hook before a compaction is answered before the model writes the summary, and before the hook after it."""
    if not any(mark.awaits_compaction for mark in recording.marks(LoadedMark)):
        return
    asked = [(mark.seq, mark.t) for mark in recording.trace.marks if mark.name == ModelMark.NAME]
    for hooks in recording.hooks_of.values():
        for place, complete in enumerate(hooks):
            pre = next((hook for hook in reversed(hooks[:place]) if hook.operation in (PRE, COMPLETE)), None)
            if complete.operation != COMPLETE or pre is None or pre.operation != PRE:
                continue
            if not pre.delivered or (pre.fault is not None and not pre.accepted):
                continue
            step = recording.timeline.step_at(pre.seq)
            until = complete.seq if step is None else min(complete.seq, recording.timeline.end_of(step))
            early = any(pre.seq < seq < until and t < pre.t1 for seq, t in asked)
            took_s = pre.t1 - pre.t0
            if complete.t0 < pre.t1:
                yield breach_of("SIG-CMP-009", "complete", complete, pre, took_s=took_s)
            elif early and step is not None and step.step in _COMPACTS:
                yield breach_of("SIG-CMP-009", "summary", pre, complete, took_s=took_s)
            else:
                yield PASS


_COMPACTS = frozenset({StepName.COMPACT, StepName.PRE_COMPACTION, StepName.COMPACTION_COMPLETE})


def _ended_by_a_compaction(recording: Recording) -> Iterator[Outcome]:
    """The ends in a step of a compaction after which the session keeps its id, and so goes on."""
    timeline = recording.timeline
    for call in recording.of(END):
        step, session = timeline.step_at(call.seq), timeline.session_of(call.key)
        if step is None or step.step not in _COMPACTS or session != step.session or timeline.was_skipped(step):
            continue
        # A sub-agent may write the summary: its key says so, or is first used in the step.
        if timeline.is_unmarked_sub_agent(call.key) or recording.hooks_of[str(call.key)][0].seq > step.seq:
            continue
        # From then on, an end without a boundary reason is a turn's checkpoint.
        if recording.at_least(CHECKPOINTS_SINCE) and not is_boundary(call):
            continue
        before, after = (timeline.host_ids.at(session, seq) for seq in (step.seq, timeline.end_of(step)))
        if before is None or after is None or before.id != after.id:
            continue
        if recording.may_last(step):
            yield undecided(call, message="the host may give the session another id, and the recording is not complete")
            continue
        # An end that reached no daemon when the user closed or cleared the session may be sent when it continues.
        if any(end_is_owed(recording, call, kind) for kind in (StepName.END, StepName.CLOSE, StepName.CLEAR)):
            continue
        ends = (timeline.step_at(each.seq) for each in recording.hooks_of[str(call.key)] if each.operation == END)
        if any(each is not None and each.step in (StepName.PROMPT, StepName.TOOL) for each in ends):
            yield undecided(call, message="the connector ends its sessions with each turn, and this may be such an end")
            continue
        yield breach_of("SIG-CMP-008", "ended", call, received=call.body.get("reason"))


def checkpoint_is_whole(recording: Recording) -> Iterator[Outcome]:
    """A checkpoint has a harness, a session key, a transcript or the path of one, and lies inside its session."""
    for call in recording.of(CHECKPOINT):
        missing = next((name for name in ("harness", "sessionKey") if call.body_text(name) is None), None)
        if missing is not None:
            yield breach_of("SIG-CKPT-001", "refused", call, missing=missing)
        elif call.body_text("transcript") is None and call.body_text("transcriptPath") is None:
            yield breach_of("SIG-CKPT-001", "without a transcript", call)
        else:
            yield pass_if(recording.is_open(call.key, call.seq)) or breach_of(
                "SIG-CKPT-001", "outside its session", call, received=call.key
            )
