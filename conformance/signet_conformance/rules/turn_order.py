"""Requirements on the order of the turns in a transcript."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from signet_conformance.facts import Call, Recording, text_or_none
from signet_conformance.finding import Finding
from signet_conformance.rules.conversation import Conversations
from signet_conformance.rules.outcome import PASS, Outcome, in_body, undecided, warn
from signet_conformance.rules.transcripts import Transcript, pairs_of, transcripts_of
from signet_conformance.rules.turns import SHORTEST_TEXT, Turn, quoted_turns


def turns_stand_in_order(recording: Recording) -> Iterator[Outcome]:
    """The turns of a transcript stand in the order of the conversation, and are those that took place."""
    marked, conversations = _MarkedOrder(recording), Conversations(recording)
    for transcript in transcripts_of(recording):
        told_otherwise = conversations.differences(transcript)
        if len(transcript.turns) < 2 and not told_otherwise:
            continue
        found = [*_in_opposite_order(recording, marked, transcript)]
        found += [
            warn(
                transcript.call,
                message=told.message,
                pointer=in_body("transcript"),
                expected=told.expected,
                received=told.received,
                fold=told.fold,
            )
            for told in told_otherwise
        ]
        if found:
            yield from found
        elif not marked.turns and _may_be_reversed(transcript.turns):
            why = "assistant first and user last throughout: the pairs may be reversed"
            yield undecided(transcript.call, message=why)
        else:
            yield PASS


def _in_opposite_order(recording: Recording, marked: _MarkedOrder, transcript: Transcript) -> Iterator[Finding]:
    """What another transcript of the key, or else the marks, show the other way round."""
    call = transcript.call
    clash = _reversed_elsewhere(recording, marked, transcript)
    if clash is not None:
        yield warn(
            call,
            clash,
            message="two transcripts of one session show the same two turns in opposite order",
            pointer=in_body("transcript"),
            expected="turns in the order of the conversation",
            fold="opposite order",
        )
    elif (wrong := marked.out_of_order(transcript)) is not None:
        yield warn(
            call,
            message="the transcript shows turns in another order than they took place",
            pointer=in_body("transcript"),
            expected=f"{wrong[0][1][:80]!r} before {wrong[1][1][:80]!r}",
            received="the other way round",
            fold="opposite order",
        )


def _reversed_elsewhere(recording: Recording, marked: _MarkedOrder, transcript: Transcript) -> Call | None:
    pairs, once = pairs_of(recording, str(transcript.call.key)), transcript.once
    for turn, following in pairwise(transcript.turns):
        if (following, turn) in pairs and turn in once and following in once and not marked.repeat(turn, following):
            # In another transcript: in this one each of them stands but once, the other way round.
            return pairs[following, turn][0].call
    return None


class _MarkedOrder:
    """The turns as marks tell them, in the order of the steps; a turn that took place twice says nothing."""

    def __init__(self, recording: Recording) -> None:
        self._timeline = recording.timeline
        turns: list[Turn] = []
        for mark in self._timeline.steps:
            text, reply = text_or_none(mark.text), text_or_none(mark.reply)
            turns += [("user", text)] if text is not None else []
            turns += [("assistant", reply)] if reply is not None else []
        # What a text quotes may stand in a transcript of lines as a turn, wherever it was said.
        seen = Counter([*turns, *(quoted for _, text in turns for quoted in quoted_turns(text))])
        self.turns = {turn: place for place, turn in enumerate(turns) if seen[turn] == 1}
        self._twice = [said for _, said in seen if seen["user", said] + seen["assistant", said] > 1]

    def repeat(self, *turns: Turn) -> bool:
        """Whether one of these turns says what was said more than once, with whatever the harness put around it.

        A transcript from which a compaction took the first such turn still has the second, behind another neighbour.
        """
        return any(
            said == text or (said in text and len(said) >= SHORTEST_TEXT) for _, text in turns for said in self._twice
        )

    def out_of_order(self, transcript: Transcript) -> tuple[Turn, Turn] | None:
        """The first two turns of a transcript that took place the other way round, in their true order."""
        if self._timeline.is_unmarked_sub_agent(transcript.call.key):
            return None
        known = [turn for turn in transcript.turns if turn in self.turns and turn in transcript.once]
        wrong = ((first, second) for first, second in pairwise(known) if self.turns[first] > self.turns[second])
        return next(((second, first) for first, second in wrong), None)


def _may_be_reversed(turns: Sequence[Turn]) -> bool:
    return (
        turns[0][0] == "assistant"
        and turns[-1][0] == "user"
        and all(turn[0] != following[0] for turn, following in pairwise(turns))
    )
