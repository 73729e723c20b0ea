"""What the daemon's hooks gave to inject: whether it is before the model, and not more often than it was given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from signet_conformance.facts import PROMPT, START, Recording, plain
from signet_conformance.rules.model.asked import Asked
from signet_conformance.rules.model.given import Given, given
from signet_conformance.rules.model.outcomes import breach, unclear
from signet_conformance.rules.model.standing import Sought, Standing, sought
from signet_conformance.rules.model.turns import TOLERANCE_S, Turn, turns_of
from signet_conformance.rules.model.wording import presence, says, times
from signet_conformance.rules.outcome import PASS, Outcome
from signet_conformance.trace.marks import StepMark, StepName

_COMPACTING = frozenset({StepName.COMPACT, StepName.COMPACTION_COMPLETE, StepName.CLEAR})


def start_is_before_the_model(recording: Recording) -> Iterator[Outcome]:
    """What session-start injected stands in the first request of the session to the model after it."""
    for text in (each for each in given(recording) if each.call.operation == START):
        turn = next((t for t in turns_of(recording, text.session) if t.high > text.call.seq), None)
        if turn is None or _given_up(recording, text, turn):
            continue
        main = [request for request in turn.main if request.t0 >= text.call.t1 - TOLERANCE_S]
        if turn.main and not main:
            yield unclear(text.call, asked=turn.main, message="the session was started when the model had been asked")
            continue
        yield from _in_first(recording, text, turn, main)


def prompt_context_is_before_the_model(recording: Recording) -> Iterator[Outcome]:
    """What the prompt hook injected stands in the first request of its turn to the model."""
    for text in (each for each in given(recording) if each.call.operation == PROMPT):
        turn = next((t for t in turns_of(recording, text.session) if t.low < text.call.seq < t.high), None)
        if turn is not None and plain(text.call.text or "") == plain(turn.text):
            yield from _in_first(recording, text, turn, turn.main)


def _given_up(recording: Recording, text: Given, turn: Turn) -> bool:
    """Whether the user took the context away between the start and the turn, or started once more."""
    later = (each for each in recording.of(START) if text.call.seq < each.seq < turn.low and each.key == text.call.key)
    return any(each.body.get("source") == "clear" for each in later)


def _in_first(recording: Recording, text: Given, turn: Turn, main: Sequence[Asked]) -> Iterator[Outcome]:
    """What to say of a text that the first of the `main` requests should hold."""
    if not main:
        why = "was recorded in part only" if turn.unread else "was not recorded"
        yield unclear(text.call, asked=turn.asked, message=f"step {turn.step.index}: what the model was asked {why}")
        return
    first = main[0]
    wanted = sought(recording, text.session, text.call, text.text, text.lines, text.memories)
    here = wanted.standing_in(first)
    if here is Standing.UNKNOWABLE:
        return
    if here is Standing.HELD:
        yield PASS
    elif here is not Standing.LACKED:
        yield unclear(text.call, asked=[first], message=wanted.in_words(first, "what was injected"))
    elif turn.unread:
        yield unclear(text.call, asked=turn.asked, message="some requests of the turn were recorded in part only")
    else:
        later = next((each for each in main[1:] if wanted.standing_in(each) is Standing.HELD), None)
        if later is not None and not later.continues(first):
            yield PASS
            return
        yield _lacked(text, turn, first, later, wanted)


def _lacked(text: Given, turn: Turn, first: Asked, later: Asked | None, wanted: Sought) -> Outcome:
    what = "session-start" if text.call.operation == START else "the prompt hook"
    aside = [each for each in turn.asked if each not in turn.main and wanted.standing_in(each) is Standing.HELD]
    where = " when it is first asked, only later in the turn" if later is not None else ""
    if aside and later is None:
        where = ", it went into a request beside the turn's own, such as for a title"
    return breach(
        text.call,
        asked=[first, *([later] if later is not None else aside[:1])],
        message=f"what {what} injected is not before the model{where}",
        expected=f"a request that holds {text.text.strip()[:200]!r}",
        received=first.excerpt,
        fold=f"{text.call.operation} {'absent' if later is None else 'late'}",
    )


def injected_text_stands_once(recording: Recording) -> Iterator[Outcome]:
    """A request holds an injected text once for each time that it was given."""
    for session in dict.fromkeys(text.session for text in given(recording)):
        compacted = _compacted_at(recording, session)
        for turn in turns_of(recording, session):
            for request in turn.main:
                texts = [t for t in given(recording) if t.session == session and t.call.t0 <= request.t0]
                if turn.low > compacted:
                    continue
                yield from _repeated(texts, request)


def _repeated(texts: Sequence[Given], request: Asked) -> Iterator[Outcome]:
    for place, text in enumerate(texts):
        if any(other.lines == text.lines for other in texts[:place]) or presence(text.lines, request.told).absent:
            continue
        allowed = {line: sum(_in_text(line, other) for other in texts) for line in text.lines}
        counted = {line: times(line, request.told) for line in text.lines}
        if all(counted[line] > allowed[line] for line in text.lines):
            most = max(counted.values())
            yield breach(
                text.call,
                asked=[request],
                message="an injected text stands before the model more often than it was given",
                expected=f"{text.text.strip()[:200]!r}, {_often(max(allowed.values()))}",
                received=f"{_often(most)} in one request",
                fold="more often than given",
            )
        else:
            yield PASS


def _in_text(line: str, text: Given) -> int:
    """How often a line stands in what was given: at least once where a longer line holds it."""
    whole = "|".join(f" {each} " for each in text.lines)
    return max(times(line, whole), 1) if says(line, whole) else 0


def _often(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _compacted_at(recording: Recording, session: str) -> float:
    """The number from which a summary in the session's history may quote what was injected before."""
    steps = (mark for mark in recording.marks(StepMark) if mark.session == session and mark.step in _COMPACTING)
    return min((mark.seq for mark in steps), default=inf)
