"""Rules on injected texts and summaries: each reaches its own session's model, as often and as long as it was given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from signet_conformance.facts import COMPLETE, END, PROMPT, START, Call, Recording
from signet_conformance.rules.model import given
from signet_conformance.rules.model.given import ExpectedText, InjectedText, Presence
from signet_conformance.rules.model.requests import (
    ModelCall,
    SaidPart,
    count_lines,
    marker_lines,
    occurrences,
    padded,
    plain_words,
    says,
)
from signet_conformance.rules.model.turns import TOLERANCE_S, ModelTurn, asking_turns, turns, turns_of
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_if, unclear
from signet_conformance.trace.marks import StepMark, StepName


def start_is_before_the_model(recording: Recording) -> Iterator[Outcome]:
    """The first request after session-start holds the text that it injected."""
    for text in (each for each in given.injected_texts(recording) if each.call.operation == START):
        turn = next((t for t in asking_turns(recording, text.session) if t.high > text.call.seq), None)
        if turn is None or _is_cleared(recording, text, turn):
            continue
        main = [request for request in turn.main if request.t0 >= text.call.t1 - TOLERANCE_S]
        if turn.main and not main:
            yield unclear(text.call, asked=turn.main, message="the session was started after the model had been asked")
            continue
        yield from _judge_first_request(recording, text, turn, main)


def prompt_context_is_before_the_model(recording: Recording) -> Iterator[Outcome]:
    """The first request of a turn holds the text that its prompt hook injected."""
    for text in (each for each in given.injected_texts(recording) if each.call.operation == PROMPT):
        turn = next((t for t in asking_turns(recording, text.session) if t.low < text.call.seq < t.high), None)
        if turn is not None and turn.is_contained_in(text.call):
            yield from _judge_first_request(recording, text, turn, turn.main)


def _is_cleared(recording: Recording, text: InjectedText, turn: ModelTurn) -> bool:
    """Whether the session was ended or its context cleared between a start and a turn."""
    later = (each for each in recording.of(START, END) if text.call.seq < each.seq < turn.low)
    own = (each for each in later if each.key == text.call.key)
    return any(each.operation == END or each.body.get("source") == "clear" for each in own)


def _judge_first_request(
    recording: Recording, text: InjectedText, turn: ModelTurn, main: Sequence[ModelCall]
) -> Iterator[Outcome]:
    """Judge a text that the first of the `main` requests should hold."""
    if not main:
        why = "was only partly recorded" if turn.unread else "was not recorded"
        yield unclear(text.call, asked=turn.asked, message=f"step {turn.step.index}: the request to the model {why}")
        return
    first = main[0]
    wanted = given.expect_injected(recording, text)
    here = wanted.presence_in(first)
    if here is Presence.UNDECIDABLE:
        return
    if here is Presence.PRESENT:
        yield PASS
    elif here is not Presence.ABSENT:
        yield unclear(text.call, asked=[first], message=wanted.describe(first, "what was injected"))
    elif turn.unread:
        yield unclear(text.call, asked=turn.asked, message="some requests of the turn were only partly recorded")
    elif recording.timeline.was_stopped(text.call.seq, turn.high, text.call.key):
        why = "the host stopped a handler before it had passed the text on, perhaps because the machine was busy"
        yield unclear(text.call, asked=[first], message=f"step {turn.step.index}: {why}")
    else:
        later = next((each for each in main[1:] if wanted.presence_in(each) is Presence.PRESENT), None)
        if later is not None and not later.continues(first):
            yield PASS
            return
        yield _breach_of(text, turn, first, later, wanted)


def _breach_of(
    text: InjectedText, turn: ModelTurn, first: ModelCall, later: ModelCall | None, wanted: ExpectedText
) -> Outcome:
    aside = [each for each in turn.asked if each not in turn.main and wanted.presence_in(each) is Presence.PRESENT]
    where = " in its first request, only later in the turn" if later is not None else ""
    if aside and later is None:
        where = ": it is in a request beside the turn's own, such as for a title"
    elif later is None and (member := wanted.member_in(first)) is not None:
        where = f": only {member} of the same answer is there"
    code = "absent" if later is None else "late"
    if not text.call.accepted:
        code = "given up"
        where = f": the connector gave it up after {text.call.t1 - text.call.t0:.1f} s, before its bound{where}"
    return breach_of(
        "SIG-MODEL-001" if text.call.operation == START else "SIG-MODEL-002",
        "not told",
        text.call,
        asked=[first, *([later] if later is not None else aside[:1])],
        received=first.excerpt,
        text=text,
        where=where,
        code=code,
    )


def injected_text_stands_once(recording: Recording) -> Iterator[Outcome]:
    """A request holds an injected text once for each time that it was given."""
    for session in dict.fromkeys(text.session for text in given.injected_texts(recording)):
        compacted = given.compacted_at(recording, session)
        for request in (each for turn in turns_of(recording, session) if turn.low <= compacted for each in turn.main):
            texts = [t for t in given.injected_texts(recording) if t.session == session and t.call.t0 <= request.t0]
            yield from _judge_repeats(texts, request)


def _judge_repeats(texts: Sequence[InjectedText], request: ModelCall) -> Iterator[Outcome]:
    for place, text in enumerate(texts):
        if any(other.lines == text.lines for other in texts[:place]) or count_lines(text.lines, request.context).absent:
            continue
        allowed = {line: sum(_count_in_text(line, other) for other in texts) for line in text.lines}
        counted = {line: occurrences(line, request.context) for line in text.lines}
        repeats = all(counted[line] > allowed[line] for line in text.lines)
        yield pass_if(not repeats) or breach_of(
            "SIG-MODEL-003",
            "more often than injected",
            text.call,
            asked=[request],
            text=text,
            allowed=_times(max(allowed.values())),
            found=_times(max(counted.values())),
        )


def _count_in_text(line: str, text: InjectedText) -> int:
    """Count a line in the whole of an injected text; at least 1 if it is there with other blanks in it."""
    whole = _in_plain_words(text.text)
    return max(occurrences(line, whole), 1) if says(line, whole) else 0


@lru_cache(maxsize=64)
def _in_plain_words(text: str) -> str:
    return "|".join(f" {plain_words(line)} " for line in text.splitlines())


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def model_works_with_the_told_summary(recording: Recording) -> Iterator[Outcome]:
    """After a compaction the model is given the summary that the daemon was told."""
    for call in recording.of(COMPLETE):
        summary = call.body.get("summary")
        session = recording.timeline.session_of(call.key) or recording.timeline.session_at(call.seq)
        lines = marker_lines(summary) if isinstance(summary, str) and session is not None else ()
        turn = next((turn for turn in asking_turns(recording, session) if turn.high > call.seq), None)
        if turn is None or session is None:
            continue
        # What the daemon has said itself reaches the model without the summary.
        answers = given.answers_before(recording, session, turn.began)
        lines = tuple(line for line in lines if not says(line, answers))
        if _was_reset(recording, session, call.seq, turn.low):
            continue
        cut = _judge_cut_summary(recording, call, turn)
        if cut is not None:
            yield cut
        elif lines:
            yield from _judge_summary(recording, call, session, turn, lines)


def _judge_summary(
    recording: Recording, call: Call, session: str, turn: ModelTurn, lines: tuple[str, ...]
) -> Iterator[Outcome]:
    summary = str(call.body.get("summary"))
    main = [request for request in turn.main if request.t0 >= call.t0]
    if not main or main[0].chained:
        yield unclear(call, asked=turn.asked, message="the request to the model after the compaction is not known")
        return
    first = main[0]
    wanted = given.expect_text(recording, session, call, summary, lines)
    here = wanted.presence_in(first)
    earlier = (turn_before for turn_before in turns_of(recording, session) if turn_before.high <= call.seq)
    if here is Presence.PRESENT:
        yield PASS
    elif here is not Presence.UNDECIDABLE and (here is not Presence.ABSENT or turn.unread):
        yield unclear(call, asked=[first], message=wanted.describe(first, "the summary"))
    elif here is Presence.ABSENT and any(says(plain_words(turn_before.text), first.users) for turn_before in earlier):
        yield unclear(call, asked=[first], message="the model still gets what was said before the compaction")
    elif here is Presence.ABSENT:
        said = summary.strip()[:200]
        yield breach_of(
            "SIG-MODEL-009", "without the summary", call, asked=[first], received=first.excerpt, summary=said
        )


def _judge_cut_summary(recording: Recording, call: Call, turn: ModelTurn) -> Outcome | None:
    """The breach of sending less than half of a step's summary, its beginning, while the model gets all of it."""
    step = recording.timeline.step_at(call.seq)
    whole = None if step is None else step.other.get("summary")
    summary = call.body.get("summary")
    first = next((request for request in turn.main if request.t0 >= call.t0), None)
    if not isinstance(whole, str) or not isinstance(summary, str) or first is None:
        return None
    sent, words = plain_words(summary), plain_words(whole)
    if not sent or not words.startswith(sent) or len(sent) * 2 >= len(words) or not says(words, first.everything):
        return None
    return breach_of("SIG-MODEL-009", "cut summary", call, asked=[first], received=summary, whole=whole[:400])


def _was_reset(recording: Recording, session: str, low: int, high: int) -> bool:
    """Whether the user cleared the context, or opened the session anew, before the turn."""
    opening = (StepName.CLEAR, StepName.START, StepName.COMPACT, StepName.COMPACTION_COMPLETE)
    return any(mark.seq > low and mark.step in opening for mark in recording.timeline.steps_of(session, high))


_LEAST_WORDS = 5
"""A shorter line may be a heading that any prompt has."""


def injected_text_stays_in_its_session(recording: Recording) -> Iterator[Outcome]:
    """No request holds a text that was injected into another session of the same agent and project."""
    yield from _judge_foreign_texts(recording, same=True)


def memory_stays_with_its_agent_and_project(recording: Recording) -> Iterator[Outcome]:
    """No request holds a text that was injected for another agent or in another project."""
    yield from _judge_foreign_texts(recording, same=False)


def _judge_foreign_texts(recording: Recording, *, same: bool) -> Iterator[Outcome]:
    """Judge each turn's requests by the texts of other sessions: those of its agent and project, or the others."""
    branched = _continuing_sessions(recording)
    for turn in turns(recording):
        session = turn.session
        if session is None or session in branched:
            continue
        mine = given.agent_and_project(recording, session)
        for text in given.injected_texts(recording):
            if text.session == session or text.call.seq > turn.high:
                continue
            if (given.agent_and_project(recording, text.session) == mine) is not same:
                continue
            for request in turn.main:
                if lines := _foreign_lines(recording, text, session, request.t0):
                    yield _judge_leak(recording, turn, request, text, lines, same=same)


def _foreign_lines(recording: Recording, text: InjectedText, session: str, before: float) -> tuple[str, ...]:
    """The memories in a text of another session that the daemon had not said to this one by an instant."""
    own = given.answers_before(recording, session, before + TOLERANCE_S)
    lines = text.memories if text.call.operation == START else text.lines
    return tuple(line for line in lines if line.count(" ") + 1 >= _LEAST_WORDS and not says(line, own))


def _judge_leak(
    recording: Recording, turn: ModelTurn, request: ModelCall, text: InjectedText, lines: tuple[str, ...], *, same: bool
) -> Outcome:
    line = next((line for line in lines if says(line, request.context)), None)
    if line is None:
        return PASS
    if _may_belong_to(recording, text.session, turn):
        return unclear(text.call, asked=[request], message="which session the request belongs to is not certain")
    agent, project = given.agent_and_project(recording, text.session)
    return breach_of(
        "SIG-MODEL-004" if same else "SIG-MODEL-005",
        "another session's text",
        text.call,
        asked=[request],
        received=line,
        text=text,
        turn=turn,
        agent=agent or "not named",
        project=project or "not named",
    )


def _may_belong_to(recording: Recording, session: str, turn: ModelTurn) -> bool:
    """Whether a request of a turn may be a late one of another session, in which the user said the same."""
    words = plain_words(turn.text)
    steps = recording.timeline.steps_of(session, turn.low)
    return any(words == plain_words(mark.text) for mark in steps if mark.text)


def _continuing_sessions(recording: Recording) -> frozenset[str]:
    """The sessions that continue another one: a sub-agent's, or one that took another's place."""
    steps = recording.marks(StepMark)
    return frozenset(
        mark.session
        for mark in steps
        if mark.session is not None and any(mark.other.get(name) for name in ("parent", "replaces"))
    )


ONE_REQUEST = "request"
"""Note in the header of a host that keeps some texts of its connectors for one request only."""


def text_stands_through_its_turn(recording: Recording) -> Iterator[Outcome]:
    """A text injected for a turn is in each request of that turn, and not as the user's own words."""
    header = recording.trace.header
    for text in given.injected_texts(recording):
        turn = given.turn_of_text(recording, text)
        if turn is None or not turn.main or header.lasts is None:
            continue
        first, *later = turn.main
        wanted = given.expect_injected(recording, text)
        if wanted.presence_in(first) is not Presence.PRESENT:
            continue
        if header.in_prompt is False and any(_is_with_the_words_of(text, turn, part) for part in first.parts):
            yield breach_of("SIG-MODEL-011", "as the user's words", text.call, asked=[first], received=first.excerpt)
            continue
        following = [each for each in later if _continues_turn(each, first, turn)]
        if header.lasts == ONE_REQUEST or not following:
            continue
        lacking = [each for each in following if wanted.presence_in(each) is Presence.ABSENT]
        yield pass_if(not lacking) or breach_of(
            "SIG-MODEL-011", "dropped", text.call, asked=[first, lacking[0]], received=lacking[0].excerpt, text=text
        )


def _continues_turn(later: ModelCall, first: ModelCall, turn: ModelTurn) -> bool:
    """Whether a request repeats what the user said in the first one, up to the words of the turn.

    What follows these is context, which a host may ask for anew.
    """
    said, before = later.said_by_user, first.said_by_user
    newest = max(n for n, words in enumerate(before) if says(plain_words(turn.text), padded([words])))
    return not later.chained and said[: newest + 1] == before[: newest + 1]


def _is_with_the_words_of(text: InjectedText, turn: ModelTurn, part: SaidPart) -> bool:
    """Return True if a text is in the part that holds the user's words."""
    whole = padded([part.text])
    return part.role == "user" and says(plain_words(turn.text), whole) and count_lines(text.lines, whole).mostly


def untaken_text_stays_away(recording: Recording) -> Iterator[Outcome]:
    """A text injected for a turn without a request of its own is not in a request of the next turn."""
    for text in given.injected_texts(recording):
        turn = given.turn_of_text(recording, text) if text.call.operation == PROMPT else None
        if turn is None or turn.main or turn.unread or any(each.tools for each in turn.asked):
            continue
        later = next((each for each in turns_of(recording, text.session) if each.low > turn.low and each.main), None)
        if later is None or not (lines := _own_lines(recording, text, later.main[0])):
            continue
        asked = later.main[:1]
        yield pass_if(not _is_given_as_new(lines, later, later.main[0])) or breach_of(
            "SIG-MODEL-012", "of a turn before", text.call, asked=asked, received=text.excerpt, turn=turn, later=later
        )


def _own_lines(recording: Recording, text: InjectedText, request: ModelCall) -> tuple[str, ...]:
    """The lines of a text that no other answer to its session brings until a request."""
    others = padded(
        other.text
        for other in given.injected_texts(recording)
        if other.session == text.session and other is not text and other.call.t0 <= request.t0 + TOLERANCE_S
    )
    return tuple(line for line in text.lines if not says(line, others))


def _is_given_as_new(lines: Sequence[str], turn: ModelTurn, request: ModelCall) -> bool:
    """Whether a request holds one of the lines in its system text, or from the turn's own words on.

    What stands before these is history, where a host may keep a turn that was stopped.
    """
    words = plain_words(turn.text)
    said = [n for n, part in enumerate(request.parts) if part.role == "user" and says(words, padded([part.text]))]
    newest = said[-1] if said else len(request.parts)
    begun = next((n for n, part in enumerate(request.parts) if part.role != "system"), 0)
    new = padded(part.text for n, part in enumerate(request.parts) if n < begun or n >= newest)
    return any(says(line, new) for line in lines)
