"""SIG-PROMPT-012: a prompt brings the words of its turn unchanged, in the session in which the user said them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal

from signet_conformance.facts import PROMPT, REDACTION, Call, Recording, Turn, once_a_recording, plain
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, in_body, pass_if, undecided
from signet_conformance.rules.transcripts import SHORTEST_TEXT

_ALIKE = 0.6
"""The share of a text that is left if it was changed, and not replaced by another text."""
_COMPARED = 2000
"""How many characters of a text are compared one by one."""


def words_arrive_as_they_were_said(recording: Recording) -> Iterator[Outcome]:
    """A prompt holds all words of a turn of its own session, the first that was not reported yet."""
    yield from outcomes(recording).values()


@once_a_recording
def outcomes(recording: Recording) -> Mapping[int, Outcome]:
    """The outcome for the words of each accepted prompt, by its number."""
    return dict(_outcomes(recording.whole))


def loses_words(recording: Recording, call: Call) -> bool:
    """Whether the words of a prompt do not arrive as they were said."""
    if not recording.timeline.turns:
        return False
    outcome = outcomes(recording).get(call.seq)
    return isinstance(outcome, Finding) and outcome.verdict is Verdict.FAIL


def is_said(recording: Recording, text: str, wanted: str) -> bool:
    """Whether a text is equal to the plain text `wanted`, or is the declared cut of it."""
    sent, limit = plain(text), recording.declared.prompt_chars
    return sent == wanted or (limit is not None and _is_cut(sent, wanted, limit))


def _is_cut(text: str, whole: str, limit: int) -> bool:
    """Whether a text is another one cut at a number of characters, as Python or JavaScript counts."""
    units = whole.encode("utf-16-le", "surrogatepass")
    cut = units[: 2 * limit].decode("utf-16-le", "replace")
    return text in {whole[:limit].strip(), cut.strip(), cut.rstrip("\ufffd").strip()} and len(units) // 2 > limit


def _outcomes(recording: Recording) -> Iterator[tuple[int, Outcome]]:
    turns = recording.timeline.turns
    accepted: set[int] = set()
    for call in recording.of(PROMPT) if turns else ():
        if not call.accepted or not plain(call.text):
            continue
        session = recording.timeline.session_of_call(call)
        if session is None:
            yield call.seq, undecided(call, message="no mark says to which session the key of this prompt belongs")
            continue
        if recording.timeline.is_unmarked_sub_agent(call.key):
            yield call.seq, undecided(call, message="a sub-agent's prompt, whose words no mark contains")
            continue
        begun = [turn for turn in turns if turn.step.seq < call.seq]
        own = [turn for turn in begun if turn.step.session == session]
        same = _turns_in(recording, call, own)
        fresh = next((turn for turn in same if turn.step.seq not in accepted), None)
        if fresh is not None:
            accepted.add(fresh.step.seq)
            yield call.seq, PASS
        elif same:
            # If it is repeated in its own turn, it is a repeat (SIG-PROMPT-003), and its words are right.
            yield (
                call.seq,
                pass_if(same[-1] is own[-1])
                or breach_of("SIG-PROMPT-012", "stale", call, wanted=own[-1].text, place=text_pointer(call)),
            )
        else:
            yield call.seq, _judge_words_of_no_own_turn(recording, call, session, begun, own)


def _turns_in(recording: Recording, call: Call, own: Sequence[Turn]) -> Sequence[Turn]:
    """The turns of its session whose words a prompt holds; the host's envelope around them is SIG-PROMPT-010's."""
    text = plain(call.text)
    same = [turn for turn in own if is_said(recording, text, turn.plain_text)]
    if same or not own:
        return same
    if own[-1].plain_text in text:
        return own[-1:]
    return [turn for turn in own if len(turn.plain_text) >= SHORTEST_TEXT and turn.plain_text in text]


def _judge_words_of_no_own_turn(
    recording: Recording, call: Call, session: str, begun: Sequence[Turn], own: Sequence[Turn]
) -> Outcome:
    """The finding on a prompt that has the exact text of no turn of its session."""
    text = plain(call.text)
    elsewhere = [turn for turn in begun if turn.plain_text == text]
    if elsewhere:
        if any(recording.timeline.are_related(turn.step.session, session) for turn in elsewhere):
            return undecided(call, message="a turn of a related session: a sub-agent's or its parent's")
        if _may_be_started_late(recording, call, elsewhere[-1].step.session):
            return undecided(call, message="no start shows the key of the session that said it")
        wanted = own[-1].text if own else "the words of a turn of this session"
        return breach_of(
            "SIG-PROMPT-012",
            "another session",
            call,
            said=elsewhere[-1],
            session=session,
            wanted=wanted,
            place=text_pointer(call),
        )
    if not own:
        return undecided(call, message="no step of its session has said anything yet")
    current = own[-1].plain_text
    if REDACTION in text or REDACTION in current:
        return undecided(call, message="the text was redacted")
    if normal_form(text, current) is not None:
        # SIG-PROMPT-010's.
        return PASS
    if may_be_expanded(current):
        return undecided(call, message="the host decides what it makes of a command or a file name")
    change = damage(text, current)
    if change is None:
        return undecided(call, message="a text from no turn of its session: the host may have made it")
    return breach_of("SIG-PROMPT-012", "changed", call, change=change, wanted=own[-1].text, place=text_pointer(call))


def may_be_expanded(text: str) -> bool:
    """Whether a text is a command or names a file, so that a host may replace it by the prompt or the content."""
    return text.startswith("/") or re.search(r"(?:^|\s)@\S", text) is not None


def _may_be_started_late(recording: Recording, call: Call, speaker: str | None) -> bool:
    """Whether the key of a prompt may be that of the session that said it, started late in another one's step."""
    timeline = recording.timeline
    if call.key in timeline.reported_sessions or any(timeline.session_of(key) == speaker for key in recording.hooks_of):
        return False
    said = ((turn, prompt) for turn in timeline.turns for prompt in turn.prompts if prompt.key == call.key)
    return not any(turn.matches(prompt) and turn.step.session != speaker for turn, prompt in said)


def text_pointer(call: Call) -> str:
    """The JSON pointer to a prompt's words."""
    return in_body("userMessage" if call.body_text("userMessage") else "userPrompt")


def normal_form(text: str, wanted: str) -> str | None:
    """The name of the normalisation form that makes `wanted` equal to a text; None if no form does."""
    forms: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
    return next((form for form in forms if text == unicodedata.normalize(form, wanted)), None)


def damage(text: str, wanted: str) -> str | None:
    """The change to the words of a turn; None if a text has few of them."""
    if wanted.startswith(text):
        return f"only the first {len(text)} of {len(wanted)} characters of the prompt arrive"
    if text.casefold() == wanted.casefold():
        return "the prompt arrives in another case"
    if _is_replaced(text, wanted) or text in (_mojibake(wanted, "latin-1"), _mojibake(wanted, "cp1252")):
        return "the prompt arrives with characters replaced"
    if _likeness(text, wanted) < _ALIKE:
        return None
    lost = len(wanted) - len(text)
    change = f"{lost} characters missing" if lost > 0 else "other characters"
    return f"the prompt arrives with {change}"


def _is_replaced(text: str, wanted: str) -> bool:
    """Whether a text is another one with question marks, or U+FFFD, in place of characters."""
    pieces = [piece for piece in re.split("[?\ufffd]+", text) if piece]
    at = 0
    for piece in pieces:
        if (at := wanted.find(piece, at)) < 0:
            return False
        at += len(piece)
    is_as_long = len(text) >= _ALIKE * len(wanted)
    return is_as_long and ("?" in text or "\ufffd" in text)


def _mojibake(text: str, charset: str) -> str:
    return plain(text.encode("utf-8", "surrogatepass").decode(charset, "replace"))


def _likeness(text: str, wanted: str) -> float:
    """The share of the longer of two texts that both have, from 0 to 1."""
    longer = max(len(text), len(wanted))
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, wanted, strict=False)))
    ends = zip(text[:head:-1], wanted[:head:-1], strict=False)
    tail = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    if (head + tail) / longer >= _ALIKE:
        return (head + tail) / longer
    if longer <= _COMPARED:
        return SequenceMatcher(None, text, wanted, autojunk=False).ratio()
    words, others = Counter(text.split()), Counter(wanted.split())
    return (words & others).total() / max(words.total(), others.total(), 1)
