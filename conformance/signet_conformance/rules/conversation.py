"""The requirement on the turns of a transcript: they took place, and are in the order of the conversation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from signet_conformance.facts import END, OPENING, PROMPT, REDACTION, START, Call, Recording, text_or_none
from signet_conformance.finding import Finding
from signet_conformance.rules.handlers import lost_turns, survived_clears
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, undecided
from signet_conformance.rules.transcripts import (
    SHORTEST_TEXT,
    Transcript,
    Turn,
    announces_a_cut,
    names_a_speaker,
    pairs_of,
    quoted_turns,
    transcripts_of,
    words_of,
)
from signet_conformance.trace.marks import StepName

MOST_TURNS = 12
"""From more turns than this, a connector may hand over only the latest."""
LONGEST_TEXT = 200
"""A longer text may be cut."""
_WORD = re.compile(r"[a-z]{5,}")
"""A word that no spelling of a transcript changes: no escape and no markup breaks it."""
_FEWEST_WORDS = 4
"""Fewer such words may be missing by chance."""
_FORGETS = OPENING | {StepName.COMPACT, StepName.PRE_COMPACTION, StepName.COMPACTION_COMPLETE}
"""Steps after which a transcript may lack the turns before them."""


class Conversations:
    """The conversation of each session of a recording, according to its step marks."""

    def __init__(self, recording: Recording) -> None:
        self._recording, self._timeline = recording, recording.timeline
        self._steps = self._timeline.steps
        # A turn that a handler took away has no answer.
        self._skipped = self._timeline.skipped | {turn.step.index for turn in lost_turns(recording)}
        self._turns: dict[str, Counter[Turn]] = {}
        self._quotations: dict[str, Counter[Turn]] = {}
        for mark in self._steps:
            if mark.session is None:
                continue
            turns = self._turns.setdefault(mark.session, Counter())
            quotations = self._quotations.setdefault(mark.session, Counter())
            for role, text in (("user", mark.text), ("assistant", mark.reply)):
                if (words := words_of(text)) and mark.step in (StepName.PROMPT, StepName.SESSIONLESS_PROMPT):
                    turns[role, words] += 1
                    quotations.update((speaker, words_of(quotation)) for speaker, quotation in quoted_turns(text))

    def differences(self, transcript: Transcript) -> Sequence[Finding]:
        """The differences between a transcript and the conversation, the first of each kind; empty if none is known."""
        call = transcript.call
        session = self._timeline.session_of(call.key)
        if session is None or session not in self._turns or self._timeline.is_unmarked_sub_agent(call.key):
            return []
        sent = [(role, words_of(text)) for role, text in transcript.turns]
        if not sent or self._only_quoted(sent, session):
            silent = self._has_no_words(call, session)
            return [] if silent is None else [silent]
        own: Counter[Turn] = Counter()
        for name, turns in self._turns.items():
            if self._timeline.are_related(name, session):
                own.update(turns + self._quotations[name])
        found = (
            self._foreign_turn(call, sent, own, session),
            # A turn with the wrong speaker is not also missing for its own speaker: that is one mistake.
            _turn_of_the_other_role(call, sent, own) or self._missing_turns(call, sent, session),
            _twice(call, sent, own),
            self._repeats_cleared_words(call, sent, session),
        )
        return [difference for difference in found if difference is not None]

    def _only_quoted(self, sent: Sequence[Turn], session: str) -> bool:
        """Whether each turn is a quotation in a text: a transcript that names no speakers itself has another shape."""
        quoted = [quote for quote in self._quotations[session] if quote[1]]
        return all(any(role == speaker and words.startswith(text) for speaker, text in quoted) for role, words in sent)

    def _foreign_turn(self, call: Call, sent: Sequence[Turn], own: Counter[Turn], session: str) -> Finding | None:
        known = {words for _, words in own}
        others = {
            words
            for name, turns in self._turns.items()
            if not self._timeline.are_related(name, session)
            for _, words in turns
            if words not in known and len(words) >= SHORTEST_TEXT
        }
        words = next((words for _, words in sent if words in others), None)
        if words is None:
            return None
        return breach_of("SIG-END-012", "foreign", call, received=words)

    def _missing_turns(self, call: Call, sent: Sequence[Turn], session: str) -> Finding | None:
        if call.operation != END or any(REDACTION in words for _, words in sent):
            return None
        so_far = self._reported_so_far(call)
        owed: Counter[Turn] = Counter()
        for role, words in self._owed_turns(call, session):
            owed[role, words] += 1
            missing = so_far[role].count(words) < owed[role, words]
            # Words that contain speakers' names are taken for turns if each line names its speaker.
            if missing and not (names_a_speaker(words) and words in self._transcripts_until(call)):
                if announces_a_cut(call.body.get("transcript")):
                    return None
                speaker = "user" if role == "user" else "model"
                return breach_of("SIG-END-012", "left out", call, speaker=speaker, words=words)
        return None

    def _has_no_words(self, call: Call, session: str) -> Finding | None:
        """The finding that a transcript holds none of the words that were said, such as `[object Object]`.

        A transcript of another shape that holds words of the conversation is not blamed, nor is one beside a path.
        """
        transcript, whole = call.body_text("transcript"), self._transcripts_until(call)
        is_alone = transcript is not None and call.body_text("transcriptPath") is None
        if call.operation != END or not is_alone or REDACTION in whole:
            return None
        owed = [*self._owed_turns(call, session)]
        words = {word for _, text in owed for word in _WORD.findall(text.casefold())}
        if len(words) < _FEWEST_WORDS or any(word in whole.casefold() for word in words):
            return None
        return breach_of("SIG-END-012", "nothing told", call, received=transcript, words=owed[0][1])

    def _repeats_cleared_words(self, call: Call, sent: Sequence[Turn], session: str) -> Finding | None:
        """The breach of a transcript with words from before a clear that an end under another key has already sent.

        What no step says, such as a greeting, may be in every transcript. This is judged only if something was said
        since, because a late end belongs to the conversation before. A transcript under the same key may be that of a
        file with both conversations.
        """
        now = self._timeline.step_at(call.seq)
        steps = self._timeline.steps_of(session, call.seq)
        # The transcript sent in the step of a clear is that of the conversation that ends there.
        clears = survived_clears(self._recording, session, call.seq)
        cleared = next((mark for mark in reversed(clears) if mark is not now), None)
        if cleared is None:
            return None
        since = {words_of(text) for mark in steps if mark.seq > cleared.seq for text in (mark.text, mark.reply)}
        before = {words_of(text) for mark in steps if mark.seq < cleared.seq for text in (mark.text, mark.reply)}
        said = {words for words in before - since if len(words) >= SHORTEST_TEXT}
        ended = {
            (role, words_of(text))
            for earlier in transcripts_of(self._recording)
            if cleared.seq < earlier.call.seq < call.seq
            and earlier.call.operation == END
            and earlier.call.accepted
            and earlier.call.key != call.key
            and self._timeline.session_of(earlier.call.key) == session
            for role, text in earlier.turns
        }
        turn = next((each for each in sent if each[1] in said and each in ended), None)
        if turn is None or not any(since):
            return None
        return breach_of("SIG-END-012", "cleared", call, received=turn[1])

    def _reported_so_far(self, call: Call) -> Mapping[str, str]:
        """Everything that each speaker said, according to the transcripts of a key up to one of them.

        A connector may send only what is new, and one reply in several turns.
        """
        words_of_role: dict[str, list[str]] = {"user": [], "assistant": []}
        for earlier in self._until(call):
            for role, text in earlier.turns:
                words_of_role[role].append(words_of(text))
        return {role: " ".join(words) for role, words in words_of_role.items()}

    def _transcripts_until(self, call: Call) -> str:
        """The transcripts of a key up to one of them, as they were sent."""
        return " ".join(words_of(earlier.call.body_text("transcript")) for earlier in self._until(call))

    def _until(self, call: Call) -> Iterator[Transcript]:
        transcripts = transcripts_of(self._recording)
        return (each for each in transcripts if each.call.key == call.key and each.call.seq <= call.seq)

    def _owed_turns(self, call: Call, session: str) -> Iterator[Turn]:
        """The turns that an end has to report: those since the session was opened or compacted, except the latest."""
        now = self._timeline.step_at(call.seq)
        if now is None or self._is_of_a_former_id(call, session):
            return
        before = self._timeline.steps_of(session, now.seq)
        since = max((place for place, mark in enumerate(before) if mark.step in _FORGETS), default=-1)
        own = self._timeline.asked_by(call)
        if own is not None and since >= 0 and own.seq <= before[since].seq:
            # The session was opened anew after it was cleared or ended, and this may be the end of the time before.
            return
        turns = [mark for mark in before[since + 1 :] if mark.step == StepName.PROMPT]
        if since < 0 or len(turns) > MOST_TURNS or self._timeline.start_was_disturbed(before[-1]):
            return
        for mark in turns:
            text, reply = words_of(mark.text), words_of(mark.reply)
            is_skipped = mark.index in self._skipped or self._timeline.was_disturbed_in(mark)
            if not is_skipped and text and reply and not text.startswith("/"):
                yield from ((role, words) for role, words in (("user", text), ("assistant", reply)) if _is_whole(words))

    def _is_of_a_former_id(self, end: Call, session: str) -> bool:
        """Whether the key of an end belongs to an id that the host has replaced since, so that the end comes late.

        A key of the connector's own belongs to the id that the session had when the key was last used.
        """
        ids = self._timeline.host_ids
        now = ids.at(session, end.seq)
        if now is None or now.id == end.key:
            return False
        if any(each.id == end.key for each in ids.of(session)):
            return True
        changed = self._timeline.step_at(now.since)
        used = next((c for c in reversed(self._recording.earlier(end)) if c.operation in (START, PROMPT)), None)
        if changed is None or used is None:
            return False
        before = ids.at(session, changed.seq)
        return before is not None and before.id != now.id and used.seq < changed.seq


def _is_whole(words: str) -> bool:
    return len(words) <= LONGEST_TEXT and REDACTION not in words


def _turn_of_the_other_role(call: Call, sent: Sequence[Turn], own: Counter[Turn]) -> Finding | None:
    other = {"user": "assistant", "assistant": "user"}
    for role, words in sent:
        if len(words) >= SHORTEST_TEXT and own[other[role], words] and not own[role, words]:
            return breach_of("SIG-END-012", "speaker", call, received=role, speaker=other[role], words=words)
    return None


def _twice(call: Call, sent: Sequence[Turn], own: Counter[Turn]) -> Finding | None:
    for turn, count in Counter(sent).items():
        if len(turn[1]) >= SHORTEST_TEXT and 0 < own[turn] < count:
            return breach_of("SIG-END-012", "twice", call, words=turn[1], count=count)
    return None


def turns_stand_in_order(recording: Recording) -> Iterator[Outcome]:
    """The turns of a transcript stand in the order of the conversation, and are those that took place."""
    marked, conversations = _MarkedOrder(recording), Conversations(recording)
    for transcript in transcripts_of(recording):
        differences = conversations.differences(transcript)
        if len(transcript.turns) < 2 and not differences:
            continue
        found = [*_in_opposite_order(recording, marked, transcript), *differences]
        if found:
            yield from found
        elif not marked.turns and _may_be_reversed(transcript.turns):
            why = "assistant first and user last throughout: the pairs may be reversed"
            yield undecided(transcript.call, message=why)
        else:
            yield PASS


def _in_opposite_order(recording: Recording, marked: _MarkedOrder, transcript: Transcript) -> Iterator[Finding]:
    """The turns that another transcript of the key, or else the marks, show the other way round."""
    call = transcript.call
    clash = _reversed_elsewhere(recording, marked, transcript)
    if clash is not None:
        yield breach_of("SIG-END-012", "opposite order", call, clash)
    elif (wrong := marked.out_of_order(transcript)) is not None:
        yield breach_of("SIG-END-012", "another order", call, first=wrong[0][1][:80], second=wrong[1][1][:80])


def _reversed_elsewhere(recording: Recording, marked: _MarkedOrder, transcript: Transcript) -> Call | None:
    pairs, once = pairs_of(recording, str(transcript.call.key)), transcript.once
    for turn, following in pairwise(transcript.turns):
        if (following, turn) in pairs and turn in once and following in once and not marked.repeats(turn, following):
            # In another transcript; in this one, each of them occurs only once, the other way round.
            return pairs[following, turn][0].call
    return None


class _MarkedOrder:
    """The order of turns according to marks, by their steps; a turn that took place twice proves nothing."""

    def __init__(self, recording: Recording) -> None:
        self._timeline = recording.timeline
        spoken = [
            ((role, text), mark.session)
            for mark in self._timeline.steps
            for role, words in (("user", mark.text), ("assistant", mark.reply))
            if (text := text_or_none(words)) is not None
        ]
        # A quotation in a text may be a turn in a transcript of lines, wherever it was said.
        quotations = (quote for (_, text), _ in spoken for quote in quoted_turns(text))
        counts = Counter([*(turn for turn, _ in spoken), *quotations])
        self.turns = {turn: (place, session) for place, (turn, session) in enumerate(spoken) if counts[turn] == 1}
        """Place and session of each turn."""
        self._twice = [words for _, words in counts if counts["user", words] + counts["assistant", words] > 1]

    def repeats(self, *turns: Turn) -> bool:
        """Whether one of these turns says words that were said more than once, whatever the harness put around them.

        A transcript from which a compaction removed the first such turn still has the second, after another neighbour.
        """
        return any(
            said == text or (said in text and len(said) >= SHORTEST_TEXT) for _, text in turns for said in self._twice
        )

    def out_of_order(self, transcript: Transcript) -> tuple[Turn, Turn] | None:
        """The first two turns of a transcript that took place in the opposite order, in their true order."""
        if not self.turns or self._timeline.is_unmarked_sub_agent(transcript.call.key):
            return None
        session = self._timeline.session_of(transcript.call.key)
        own = {
            turn: place
            for turn, (place, speaker) in self.turns.items()
            if session is None or self._timeline.are_related(speaker, session)
        }
        known = [turn for turn in transcript.turns if turn in own and turn in transcript.once]
        wrong = ((first, second) for first, second in pairwise(known) if own[first] > own[second])
        return next(((second, first) for first, second in wrong), None)


def _may_be_reversed(turns: Sequence[Turn]) -> bool:
    return (
        turns[0][0] == "assistant"
        and turns[-1][0] == "user"
        and all(turn[0] != following[0] for turn, following in pairwise(turns))
    )
