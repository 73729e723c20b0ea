"""The rule on starts and prompts that were late or unheard: the model is told nothing else of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from signet_conformance.facts import PROMPT, START, Call, Recording
from signet_conformance.rules.model.given import heard_by
from signet_conformance.rules.model.requests import ModelCall, padded, plain_words, says
from signet_conformance.rules.model.turns import ModelTurn, breach, turns_of
from signet_conformance.rules.outcome import PASS, Outcome
from signet_conformance.trace.marks import StepMark

_OFFLINE = re.compile(r"\b(?:offline|not running|unreachable|not reachable|(?:is|seems) down)\b")
_OF_MEMORY = re.compile(r"\b(?:signet|daemon|memory)\b")
_HEADING = re.compile(r"^#+\s+(.+?)\s*$", re.MULTILINE)
_IDENTITY = ("agent instructions", "identity", "soul")
"""The headings under which an answer to a start, and a program that had none, tell whose agent it is."""


def unheard_start_is_told_as_that(recording: Recording) -> Iterator[Outcome]:
    """After a start or prompt that was late or unheard, the model hears neither of an absence nor of another agent."""
    for call in recording.of(START, PROMPT, cut=True):
        session = recording.timeline.session_of(call.key)
        if session is None or (call.accepted and call.error is None and call.fault is None):
            continue
        later = [turn for turn in turns_of(recording, session) if turn.high > call.seq]
        request = next((each for turn in later[:1] for each in turn.main if each.t0 >= call.t0), None)
        if request is None or later[0].low > _next_heard(recording, call):
            continue
        yield _offline(recording, later[0], call, request) or _another(recording, call, request) or PASS


def _next_heard(recording: Recording, call: Call) -> int:
    """The number of the next answered start of the same session: from then on the model may know better."""
    starts = (each.seq for each in recording.of(START) if each.key == call.key and each.accepted and each.fault is None)
    return min((seq for seq in starts if seq > call.seq), default=call.seq + 10**9)


def _offline(recording: Recording, turn: ModelTurn, call: Call, request: ModelCall) -> Outcome | None:
    if call.status is None or not 200 <= call.status < 300:
        return None  # nobody answered, or what a daemon answers that has trouble
    said = [mark.text for mark in recording.marks(StepMark) if mark.session == turn.session and mark.text]
    known = f"{heard_by(recording, str(turn.session), request.t0)}|{padded(said)}"
    told = [part.text for part in request.parts if part.role in ("system", "user")]
    for line in (line for text in told for line in text.splitlines()):
        words = plain_words(line)
        if _OFFLINE.search(words) and _OF_MEMORY.search(words) and not says(words, known):
            return breach(
                call,
                asked=[request],
                message="the model is told that the daemon is away, which answered late or oddly",
                expected="nothing of an absence, or that the answer was of no use",
                received=line.strip()[:200],
                fold="told as offline",
            )
    return None


def _another(recording: Recording, call: Call, request: ModelCall) -> Outcome | None:
    """The breach of a request that tells another identity than the daemon tells of the same agent."""
    starts = [each for each in recording.of(START) if each.accepted and each.fault is None and each.agent == call.agent]
    known = {
        heading: words
        for each in starts
        for heading, words in _sections(str((each.answer or {}).get("inject", ""))).items()
    }
    for part in request.parts:
        for heading, lines in _sections(part.text).items() if part.role in ("system", "user") else ():
            if heading in known and known[heading] and lines and not set(known[heading]) & set(lines):
                return breach(
                    call,
                    asked=[request],
                    message="the model is told another identity than that of the agent's workspace",
                    expected=f"what the daemon tells under {heading!r}: {known[heading][0][:200]!r}",
                    received=lines[0][:200],
                    fold="another identity",
                )
    return None


def _sections(text: str) -> dict[str, Sequence[str]]:
    """The lines under each heading that tells an identity, in plain words."""
    found: dict[str, Sequence[str]] = {}
    headings = list(_HEADING.finditer(text))
    for place, match in enumerate(headings):
        heading = plain_words(match[1])
        end = headings[place + 1].start() if place + 1 < len(headings) else len(text)
        lines = [words for line in text[match.end() : end].splitlines() if (words := plain_words(line))]
        if heading in _IDENTITY and lines:
            found[heading] = lines
    return found
