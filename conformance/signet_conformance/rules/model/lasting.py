"""Rules on how long an injected text stands before the model: through its turn, and in no other one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from signet_conformance.facts import PROMPT, START, Recording, plain
from signet_conformance.rules.model.given import InjectedText, Standing, expect_text, injected_texts
from signet_conformance.rules.model.requests import ModelCall, SaidPart, padded, plain_words, presence, says
from signet_conformance.rules.model.turns import TOLERANCE_S, ModelTurn, breach, turns_of
from signet_conformance.rules.outcome import PASS, Outcome

ONE_REQUEST = "request"
"""Note in the header of a host that keeps some texts of its connectors for one request only."""


def text_stands_through_its_turn(recording: Recording) -> Iterator[Outcome]:
    """Texts of a turn are before the model in each request of it, and not as the user's own words."""
    header = recording.trace.header
    for text in injected_texts(recording):
        turn = _turn_of(recording, text)
        if turn is None or not turn.main or header.lasts is None:
            continue
        first, *later = turn.main
        wanted = expect_text(recording, text.session, text.call, text.text, text.lines, text.memories)
        if wanted.standing_in(first) is not Standing.HELD:
            continue
        if header.in_prompt is False and any(_is_among(text, turn, part) for part in first.parts):
            yield breach(
                text.call,
                asked=[first],
                message="what was injected stands before the model as the user's own words",
                expected="it where the host has a place for context",
                received=first.excerpt,
                fold="as the user's words",
            )
            continue
        following = [each for each in later if each.continues(first) and not each.chained]
        if header.lasts == ONE_REQUEST or not following:
            continue
        lacking = next((each for each in following if wanted.standing_in(each) is Standing.LACKED), None)
        if lacking is None:
            yield PASS
        else:
            yield breach(
                text.call,
                asked=[first, lacking],
                message="what was injected for a turn is before the model when it is first asked, and no longer in the"
                " same turn",
                expected=f"each request of the turn to hold {text.text.strip()[:200]!r}",
                received=lacking.excerpt,
                fold=f"{text.call.operation} dropped",
            )


def _turn_of(recording: Recording, text: InjectedText) -> ModelTurn | None:
    """The turn that a text was given for: of a start the next one."""
    if text.call.operation == START:
        return next((turn for turn in turns_of(recording, text.session) if turn.high > text.call.seq), None)
    turn = next((each for each in turns_of(recording, text.session) if each.low < text.call.seq < each.high), None)
    return turn if turn is not None and plain(text.call.text or "") == plain(turn.text) else None


def _is_among(text: InjectedText, turn: ModelTurn, part: SaidPart) -> bool:
    """Return True if a text is in the part that holds the user's words."""
    whole = padded([part.text])
    return part.role == "user" and says(plain_words(turn.text), whole) and presence(text.lines, whole).mostly


def untaken_text_stays_away(recording: Recording) -> Iterator[Outcome]:
    """A text injected for a turn without a request of its own is not before the model in the next one."""
    for text in injected_texts(recording):
        turn = _turn_of(recording, text) if text.call.operation == PROMPT else None
        if turn is None or turn.main or turn.unread or any(each.tools for each in turn.asked):
            continue
        later = next((each for each in turns_of(recording, text.session) if each.low > turn.low and each.main), None)
        lines = () if later is None else _own_lines(recording, text, later.main[0])
        if later is None or not lines:
            continue
        if _stands_as_new(lines, later, later.main[0]):
            yield breach(
                text.call,
                asked=[later.main[0]],
                message=f"what was injected for step {turn.step.index}, in which the model was never asked, is before"
                f" the model in step {later.step.index} as if it belonged there",
                expected="nothing of a turn that was stopped or failed",
                received=text.text.strip()[:200],
                fold="of a turn before",
            )
        else:
            yield PASS


def _own_lines(recording: Recording, text: InjectedText, request: ModelCall) -> tuple[str, ...]:
    """The lines of a text that no other answer to its session brings until a request."""
    others = padded(
        other.text
        for other in injected_texts(recording)
        if other.session == text.session and other is not text and other.call.t0 <= request.t0 + TOLERANCE_S
    )
    return tuple(line for line in text.lines if not says(line, others))


def _stands_as_new(lines: Sequence[str], turn: ModelTurn, request: ModelCall) -> bool:
    """Whether a request holds one of the lines in its system text, or from the turn's own words on.

    What stands before these is history, where a host may keep a turn that was stopped.
    """
    words = plain_words(turn.text)
    said = [n for n, part in enumerate(request.parts) if part.role == "user" and says(words, padded([part.text]))]
    newest = said[-1] if said else len(request.parts)
    begun = next((n for n, part in enumerate(request.parts) if part.role != "system"), 0)
    told = padded(part.text for n, part in enumerate(request.parts) if n < begun or n >= newest)
    return any(says(line, told) for line in lines)
