"""Requirements on user-prompt-submit: one per turn, before the model, of a started session, free of injected text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set as AbstractSet
from itertools import pairwise

from signet_conformance.facts import PROMPT, START, Call, Recording, Turn, once_a_recording, plain
from signet_conformance.finding import Finding
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_if, undecided
from signet_conformance.rules.transcripts import pairs_of
from signet_conformance.trace.marks import StepName

MAX_IN_FLIGHT = 8


def one_submission_before_the_model(recording: Recording) -> Iterator[Outcome]:
    """Each of the user's turns is submitted once, before the model runs."""
    prompts = recording.of(PROMPT)
    judged: set[int] = set()
    for repeated in repeated_prompts(recording):
        judged.update(repeated.exchanges)
        yield repeated
    for late, transcript, _ in prompts_answered_before(recording):
        if is_in_its_turn(recording, late):
            continue
        judged.add(late.seq)
        yield breach_of("SIG-PROMPT-003", "after its answer", late, transcript, received=late.text)
    repeats = frozenset(judged)
    for turn in recording.timeline.turns:
        for outcome in _judge_turn(recording, turn):
            if isinstance(outcome, Finding):
                if outcome.fold == "twice" and repeats.issuperset(outcome.exchanges):
                    continue
                judged.update(outcome.exchanges)
            yield outcome
        judged.update(p.seq for p in turn.prompts)
    rest = [p for p in prompts if p.seq not in judged]
    if rest:
        yield undecided(*rest[:20], message="without step marks it is unknown when the model's turn began")


def repeated_prompts(recording: Recording) -> Iterator[Finding]:
    """Prompts of a key that repeat the prompt before them, with no hook in between.

    If marks show that the user said it again, it is no repeat.
    """
    said_in = {call.seq: turn for turn in recording.timeline.turns for call in turn.prompts if turn.matches(call)}
    for hooks in recording.hooks_of.values():
        for before, call in pairwise(hooks):
            first, second = said_in.get(before.seq), said_in.get(call.seq)
            said_again = first is not None and second is not None and first is not second
            if before.operation == call.operation == PROMPT and call.says_again(before) and not said_again:
                yield breach_of("SIG-PROMPT-003", "twice in a row", call, before, received=call.text)


@once_a_recording
def prompts_answered_before(recording: Recording) -> Sequence[tuple[Call, Call, bool]]:
    """Prompts that a later transcript shows with their reply, that transcript, and whether newer user turns follow."""
    return tuple(_prompts_answered_before(recording))


def _prompts_answered_before(recording: Recording) -> Iterator[tuple[Call, Call, bool]]:
    for key, hooks in recording.hooks_of.items():
        for prompt in hooks:
            if prompt.operation != PROMPT or "lastAssistantMessage" not in prompt.body:
                continue
            reply, text = prompt.body.get("lastAssistantMessage"), prompt.text
            if text is None or not isinstance(reply, str) or not reply.strip():
                continue
            asked, answered = ("user", text.strip()), ("assistant", reply.strip())
            for place in pairs_of(recording, key).get((asked, answered), ()):
                if place.call.seq > prompt.seq:
                    yield prompt, place.call, place.newer_user_turn
                    break


def is_in_its_turn(recording: Recording, call: Call) -> bool:
    """Whether marks show that a prompt was sent in the turn of its text, before the model was asked.

    A transcript may then show an earlier turn of the same words.
    """
    turn = recording.timeline.turn_of(call)
    if turn is None or turn.model_seq is None or call.seq > turn.model_seq:
        return False
    return turn.plain_text in plain(call.text)


def _judge_turn(recording: Recording, turn: Turn) -> Iterator[Outcome]:
    accepted: Call | None = None
    for call in turn.prompts:
        if (own := _submission_in_own_session(recording, turn, call)) is not None:
            yield breach_of("SIG-PROMPT-003", "two sessions", call, own, received=call.key)
        elif accepted is not None and accepted.key == call.key and _same_text(accepted, call):
            yield breach_of("SIG-PROMPT-003", "twice", call, accepted, received=call.text)
        elif (earlier := _earlier_turn(recording, turn, call)) is not None:
            yield breach_of("SIG-PROMPT-003", "late words", call, received=call.text, earlier=earlier)
        elif turn.model_seq is not None and call.seq > turn.model_seq:
            yield breach_of("SIG-PROMPT-003", "late", call, received=call.text)
        elif turn.model_seq is None:
            yield undecided(call, message="no mark says when the model's turn began")
        else:
            yield PASS
        if call.accepted:
            accepted = call


def _earlier_turn(recording: Recording, turn: Turn, call: Call) -> Turn | None:
    """The one earlier turn whose words a prompt has, although nothing kept it from being submitted in time."""
    timeline, text = recording.timeline, plain(call.text)
    if not text or turn.plain_text in text:
        return None
    own = [t for t in timeline.turns if t.step.seq < turn.step.seq and t.step.session == timeline.session_of(call.key)]
    said = [each for each in own if each.matches(call)]
    if len(said) != 1 or any(said[0].matches(prompt) for prompt in said[0].prompts):
        return None
    step, until = said[0].step, turn.step.seq
    disturbed = timeline.switches.any_between(step.seq, until) or timeline.start_was_disturbed(step)
    if disturbed or timeline.was_stopped(step.seq, until) or said[0].model_seq is None:
        return None
    return said[0]


def _submission_in_own_session(recording: Recording, turn: Turn, call: Call) -> Call | None:
    """The submission in the turn's own session that a call repeats in an unrelated one, whose user did not say it."""
    owner = recording.timeline.session_of(call.key)
    if owner is None or recording.timeline.are_related(owner, turn.step.session) or not turn.matches(call):
        return None
    if any(plain(mark.text) == turn.plain_text for mark in recording.timeline.steps_of(owner)):
        return None
    own = (other for other in turn.prompts if recording.timeline.session_of(other.key) == turn.step.session)
    return next((other for other in own if _same_text(other, call)), None)


def _same_text(first: Call, second: Call) -> bool:
    return plain(first.text) == plain(second.text)


def _known_keys(recording: Recording) -> AbstractSet[str | None]:
    """The keys whose first prompt answered with sessionKnown got true."""
    first_answers: dict[str | None, object] = {}
    for call in recording.of(PROMPT):
        if call.accepted and call.answer_value("sessionKnown") is not None:
            first_answers.setdefault(call.key, call.answer_value("sessionKnown"))
    return {key for key, answer in first_answers.items() if answer is True}


def prompt_uses_a_started_key(recording: Recording) -> Iterator[Outcome]:
    """A prompt uses a session key that was started."""
    starts = recording.of(START)
    started = {c.key for c in starts if c.key is not None}
    known = _known_keys(recording)
    first_keyless = min((c.seq for c in starts if c.key is None), default=None)
    for call in recording.of(PROMPT, cut=True):
        if call.cut:
            yield undecided(call, message="only a part of the body was recorded")
        elif call.key is None:
            yield from _judge_keyless(recording, call, bool(started), first_keyless)
        elif started:
            if call.key in started:
                yield PASS
            elif call.key in known:
                yield undecided(call, message="the daemon knew the session: it began before the recording")
            elif recording.may_go_on and recording.hooks_of[call.key][-1] is call:
                yield undecided(call, message="its start may follow")
            else:
                yield breach_of("SIG-PROMPT-005", "unstarted key", call, received=call.key)


def _judge_keyless(recording: Recording, call: Call, any_started: bool, first_keyless: int | None) -> Iterator[Outcome]:
    if recording.timeline.is_sessionless(call):
        yield undecided(call, message="without a key, in a turn for which the harness knows no session")
    elif any_started and (start := _start_of_its_turn(recording, call)) is not None:
        yield breach_of("SIG-PROMPT-005", "keyless turn", call, start, start=start)
    elif first_keyless is not None and first_keyless < call.seq:
        if any_started:
            yield undecided(call, message="without a key, after a start without a key: its session is unknown")
    elif recording.any_open(call.seq):
        yield breach_of("SIG-PROMPT-005", "no key", call)


def _start_of_its_turn(recording: Recording, call: Call) -> Call | None:
    """The start of the session that a prompt without a key belongs to, or None if the marks name no session.

    A prompt belongs to a turn if it has the user's words there, and no prompt of that turn has a key.
    """
    turn = recording.timeline.turn_of(call)
    if turn is None or turn.step.session is None or not turn.matches(call):
        return None
    if any(each.key is not None for each in turn.prompts):
        return None
    started = (c for c in recording.of(START) if c.seq < call.seq and recording.is_open(c.key, call.seq))
    return next((c for c in started if recording.timeline.reported_sessions.get(c.key) == turn.step.session), None)


def unknown_session_is_started(recording: Recording) -> Iterator[Outcome]:
    """After the answer sessionKnown: false the key is started before its next prompt."""
    for hooks in recording.hooks_of.values():
        pending: Call | None = None
        for call in hooks:
            if pending is not None and call.operation == PROMPT and is_of_one_turn(recording, pending, call):
                continue
            if pending is not None and call.operation in (START, PROMPT):
                yield pass_if(call.operation == START) or breach_of("SIG-PROMPT-006", "not started", pending, call)
                pending = None
            unknown = call.accepted and call.answer_value("sessionKnown") is False
            if call.operation == PROMPT and unknown and not call.answer_value("skipped"):
                pending = call
        if pending is not None:
            yield undecided(pending, message="answered sessionKnown:false, and no call of the key follows")


def is_of_one_turn(recording: Recording, earlier: Call, call: Call) -> bool:
    """Whether marks show that two prompts were submitted in one turn of the user, which is SIG-PROMPT-003's."""
    before, after = (recording.timeline.step_at(prompt.seq) for prompt in (earlier, call))
    return before is not None and before is after and before.step == StepName.PROMPT


def few_prompts_in_flight(recording: Recording) -> Iterator[Outcome]:
    """At most eight prompts wait for an answer at the same time."""
    prompts = recording.of(PROMPT, cut=True)
    ends: list[float] = []
    for call in sorted(prompts, key=lambda c: c.t0):
        ends = [t for t in ends if t > call.t0]
        ends.append(call.t1)
        yield pass_if(len(ends) <= MAX_IN_FLIGHT) or breach_of(
            "SIG-PROMPT-008", "in flight", call, received=len(ends), most=MAX_IN_FLIGHT
        )
