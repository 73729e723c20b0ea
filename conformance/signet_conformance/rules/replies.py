"""The requirement on lastAssistantMessage: it is the newest reply of its session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from signet_conformance.facts import END, PROMPT, REDACTION, Call, Recording, plain
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, undecided
from signet_conformance.rules.transcripts import SHORTEST_TEXT, without_cut_marks
from signet_conformance.rules.words import is_said
from signet_conformance.trace.marks import ModelMark, StepMark, StepName

_CUT_BEFORE = ("\u2026", "...")
_LEAST = 3
"""A shorter text may be the beginning of another one by chance."""


_CHANGES = frozenset({StepName.CLEAR, StepName.FORK, StepName.REOPEN})
"""The steps in which the user begins anew, or goes to another conversation."""


class _Reply(Struct, frozen=True, eq=False):
    """A turn of a session, and what the model said in it; None if the mark does not say it, or if nothing was said.

    The summary of a compaction is also the model's, but does not answer the user.
    """

    mark: StepMark
    words: str | None
    previous: _Reply | None
    """The reply before it in its conversation: a clear begins a new one, and the user may return to an old one."""
    is_summary: bool = False


def last_message_is_the_newest_reply(recording: Recording) -> Iterator[Outcome]:
    """The member lastAssistantMessage holds the newest reply of the session when its prompt begins."""
    timeline = recording.timeline
    replies: dict[str, list[_Reply]] = {}
    for reply in _replies(recording):
        replies.setdefault(str(reply.mark.session), []).append(reply)
    for call in recording.of(PROMPT, END) if replies else ():
        sent = plain(call.body_text("lastAssistantMessage"))
        session = None if timeline.is_unmarked_sub_agent(call.key) else timeline.session_of_call(call)
        own = [reply for reply in replies.get(str(session), ()) if reply.mark.seq < call.seq]
        if sent and session is not None and any(reply.words for reply in own):
            others = [reply for name, replies_there in replies.items() if name != session for reply in replies_there]
            before = [each for each in others if each.mark.seq < call.seq]
            if (outcome := _judge(recording, call, sent, own, before)) is not None:
                yield outcome


def _replies(recording: Recording) -> Iterator[_Reply]:
    """Replies of the model, turn by turn."""
    timeline = recording.timeline
    has_model_marks = bool(recording.marks(ModelMark))
    took_place = {turn.step.seq for turn in timeline.turns if turn.model_seq is not None}
    newest: dict[str | None, _Reply | None] = {}
    newest_of_id: dict[tuple[str | None, str], _Reply | None] = {}
    for mark in timeline.steps:
        if timeline.was_skipped(mark):
            continue
        session = mark.session
        if mark.step in _CHANGES:
            before, after = (timeline.host_ids.at(session, seq) for seq in (mark.seq, timeline.next_step(mark)))
            if before is not None:
                newest_of_id[session, before.id] = newest.get(session)
            if mark.step == StepName.CLEAR:
                newest[session] = None
            elif after is not None:
                newest[session] = newest_of_id.get((session, after.id), newest.get(session))
        if mark.step == StepName.PROMPT:
            was_asked = mark.seq in took_place or not has_model_marks
            reply = _Reply(mark, plain(mark.reply) or None if was_asked else None, newest.get(session))
        elif isinstance(summary := mark.other.get("summary"), str) and plain(summary):
            reply = _Reply(mark, plain(summary), newest.get(session), is_summary=True)
        else:
            continue
        newest[session] = reply
        yield reply


def _judge(
    recording: Recording, call: Call, sent: str, own: Sequence[_Reply], others: Sequence[_Reply]
) -> Outcome | None:
    turn = _turn_of(recording, call, own)
    last = own[-1] if turn is None else turn.previous
    # An end in the step of a turn may come before or after what the model says in it.
    accepted = [*_newest(own[-1] if call.operation == END else last), *(_newest(last) if call.operation == END else ())]
    if any(_is_reply(sent, reply.words) for reply in accepted):
        return PASS
    if call.operation == PROMPT and turn is not None and _is_reply(sent, turn.words):
        # SIG-PROMPT-003 judges the reply to this very prompt.
        return None
    before = own if turn is None else own[: own.index(turn)]
    if not before or not (accepted or last is None):
        return None
    silent = own[-1].words is None if call.operation == END else last is not None and last.words is None
    if any(REDACTION in each for each in (sent, *(reply.words or "" for reply in accepted))):
        return undecided(call, message="the reply was redacted")
    related = [each for each in others if recording.timeline.are_related(each.mark.session, own[0].mark.session)]
    if any(_is_reply(sent, each.words) for each in related):
        return undecided(call, message="a reply of a related session: a sub-agent's or its parent's")
    foreign = next((each for each in others if _is_reply(sent, each.words)), None)
    older = next((each for each in before if _is_reply(sent, each.words)), None)
    if foreign is None and older is None and silent:
        return undecided(call, message="what the model said in the turn before is not marked")
    if not accepted and older is None and foreign is None:
        return None
    wanted = (accepted[-1].words or "") if accepted else "nothing: the model has said nothing yet"
    kind = "another session" if foreign is not None else "not said"
    if older is not None:
        kind = "older" if accepted else "cleared"
    return breach_of("SIG-PROMPT-013", kind, call, wanted=wanted, foreign=foreign)


def _turn_of(recording: Recording, call: Call, own: Sequence[_Reply]) -> _Reply | None:
    """The turn of a prompt, which may be earlier than the latest; None for an end outside a turn."""
    if call.operation == END:
        step = recording.timeline.step_at(call.seq)
        return own[-1] if step is not None and own[-1].mark.seq == step.seq else None
    text = call.text or ""
    turns = (each for each in own if not each.is_summary)
    said = [each for each in turns if is_said(recording, text, plain(each.mark.text))]
    return said[-1] if said else own[-1]


def _newest(reply: _Reply | None) -> Iterator[_Reply]:
    """The newest reply; after turns without one, the reply before them; or a summary that was written since."""
    while reply is not None:
        if reply.words:
            yield reply
            if not reply.is_summary:
                return
        reply = reply.previous


def _is_reply(sent: str, words: str | None) -> bool:
    """Whether a text is a reply, or the beginning or end of a reply that was cut."""
    if words is None:
        return False
    text, whole = " ".join(sent.split()), " ".join(words.split())
    if text == whole:
        return True
    rest = text
    for mark in _CUT_BEFORE:
        rest = rest.removeprefix(mark).lstrip()
    text = without_cut_marks(text)
    if rest == whole:
        return True
    is_beginning = len(text) >= _LEAST and whole.startswith(text)
    return is_beginning or (len(rest) >= SHORTEST_TEXT and whole.endswith(rest))
