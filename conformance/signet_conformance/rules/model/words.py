"""The rule on the user's words: they reach the model as they were said, and once."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile

from signet_conformance.facts import Recording
from signet_conformance.rules.model.given import answers_before, compacted_at
from signet_conformance.rules.model.requests import ModelCall, plain_words, says_left_out
from signet_conformance.rules.model.turns import ModelTurn, turns
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, unclear

_LEAST_WORDS = 3
_HALF = 0.5
_MOST_WORDS = 2000


def words_reach_the_model(recording: Recording) -> Iterator[Outcome]:
    """The turn's own request holds the user's words, each time that they were said and no more."""
    for turn in turns(recording):
        if turn.main:
            yield _judge_repetition(recording, turn, turn.main[0]) or PASS
        elif not turn.unread and (outcome := _judge_changed_words(recording, turn)) is not None:
            yield outcome


def _judge_repetition(recording: Recording, turn: ModelTurn, request: ModelCall) -> Outcome | None:
    """The breach of a request that repeats the user's words; None if it does not, or if that cannot be decided."""
    lines = _lines(turn.text)
    if turn.session is None or turn.low > compacted_at(recording, turn.session):
        return None
    user_texts = [part.text for part in request.parts if part.role == "user"]
    counted = sum(_count(lines, _lines(text)) for text in user_texts)
    if counted < 2:
        return None
    # The user may say it again; model, summary and daemon may quote it.
    steps = recording.timeline.steps_of(turn.session, turn.high)
    known = [text for mark in steps for text in (mark.text, mark.reply, mark.other.get("summary"))]
    allowed = sum(_count(lines, _lines(text)) for text in known if isinstance(text, str))
    answers = answers_before(recording, turn.session, request.t0)
    if counted <= allowed or f" {' '.join(words for words, _ in lines)} " in answers:
        return None
    return breach_of(
        "SIG-MODEL-010",
        "words doubled",
        asked=[request],
        received=request.excerpt,
        turn=turn,
        counted=counted,
        often="once" if allowed == 1 else f"{allowed} times",
        said=turn.text.strip()[:200],
    )


def _lines(text: str) -> Sequence[tuple[str, str]]:
    """The lines that have words: in plain wording, and as they are."""
    return [(words, line.strip()) for line in text.splitlines() if (words := plain_words(line))]


def _count(lines: Sequence[tuple[str, str]], text: Sequence[tuple[str, str]]) -> int:
    """Count the lines of a prompt, in a row, among those of a text; a host may put a stamp before the first."""
    (first, as_said), *rest = lines
    following = _places([words for words, _ in rest], [words for words, _ in text])
    before = (text[place - 1] for place in following if place > 0)
    return sum(words == first or line.endswith(f" {as_said}") for words, line in before)


def _places(part: Sequence[str], whole: Sequence[str]) -> Iterator[int]:
    """Yield where a part begins in a whole, overlaps included, by Knuth, Morris and Pratt: prompts may be logs."""
    if not part:
        yield from range(len(whole) + 1)
        return
    # For each beginning of the part: the length of the longest shorter one that it ends with.
    borders = [0] * len(part)
    matched = 0
    for place in range(1, len(part)):
        while matched and part[matched] != part[place]:
            matched = borders[matched - 1]
        matched += part[matched] == part[place]
        borders[place] = matched
    matched = 0
    for place, each in enumerate(whole):
        while matched and (matched == len(part) or part[matched] != each):
            matched = borders[matched - 1]
        matched += part[matched] == each
        if matched == len(part):
            yield place + 1 - matched


def _judge_changed_words(recording: Recording, turn: ModelTurn) -> Outcome | None:
    """The breach of a turn whose own request holds some of the user's words, and not all of them.

    A request with less than half of them counts only if the kit wrote it: a program may ask something else meanwhile.
    """
    own = next((request for request in turn.asked if request.tools), None)
    said = _words(turn.text)
    if own is None or len(said) < _LEAST_WORDS:
        return None
    newest = [part.text for part in takewhile(lambda part: part.role not in ("assistant", "result"), own.parts[::-1])]
    newest_text = "\n".join(newest[::-1])
    sent = _words(newest_text)
    matching = SequenceMatcher(None, said[:_MOST_WORDS], sent[:_MOST_WORDS], autojunk=False).get_matching_blocks()
    share = sum(block.size for block in matching) / len(said[:_MOST_WORDS])
    if share == 1:
        return PASS
    if share < _HALF and not (recording.model is not None and recording.model.header.played):
        return None
    if says_left_out(newest_text, map(plain_words, turn.text.splitlines()), turn.text):
        return unclear(asked=[own], message=f"step {turn.step.index}: the host says that it left something out")
    return breach_of(
        "SIG-MODEL-010", "words changed", asked=[own], received=own.excerpt, turn=turn, said=turn.text.strip()[:200]
    )


def _words(text: str) -> Sequence[str]:
    return plain_words(unicodedata.normalize("NFKC", text)).split()
