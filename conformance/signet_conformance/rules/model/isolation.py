"""Whether what was injected into one session, or is another agent's, reaches a request of another session."""

from __future__ import annotations

from collections.abc import Iterator

from signet_conformance.facts import START, Recording
from signet_conformance.rules.model.asked import Asked
from signet_conformance.rules.model.given import Given, agent_and_project, given, heard_by
from signet_conformance.rules.model.outcomes import breach, unclear
from signet_conformance.rules.model.turns import TOLERANCE_S, Turn, turns
from signet_conformance.rules.model.wording import plain, says
from signet_conformance.rules.outcome import PASS, Outcome
from signet_conformance.trace.marks import StepMark

_LEAST_WORDS = 5
"""A shorter line may be a heading, which stands in anybody's prompt."""


def injected_text_stays_in_its_session(recording: Recording) -> Iterator[Outcome]:
    """What was injected into one session stands in no request of another one of the same agent and project."""
    yield from _strangers(recording, same=True)


def memory_stays_with_its_agent_and_project(recording: Recording) -> Iterator[Outcome]:
    """What was injected for another agent, or in another project, stands in no request of a session."""
    yield from _strangers(recording, same=False)


def _strangers(recording: Recording, *, same: bool) -> Iterator[Outcome]:
    """What to say of each turn's requests: the texts of sessions that are, or are not, of its agent and project."""
    branched = _branched(recording)
    for turn in turns(recording):
        session = turn.session
        if session is None or session in branched:
            continue
        mine = agent_and_project(recording, session)
        for text in given(recording):
            if text.session == session or text.call.seq > turn.high:
                continue
            if (agent_and_project(recording, text.session) == mine) is not same:
                continue
            for request in turn.main:
                if lines := _foreign_lines(recording, text, session, request.t0):
                    yield _judged(recording, turn, request, text, lines)


def _foreign_lines(recording: Recording, text: Given, session: str, before: float) -> tuple[str, ...]:
    """The memories in a text of another session that the daemon had not said to this one by an instant."""
    own = heard_by(recording, session, before + TOLERANCE_S)
    lines = text.memories if text.call.operation == START else text.lines
    return tuple(line for line in lines if line.count(" ") + 1 >= _LEAST_WORDS and not says(line, own))


def _judged(recording: Recording, turn: Turn, request: Asked, text: Given, lines: tuple[str, ...]) -> Outcome:
    line = next((line for line in lines if says(line, request.told)), None)
    if line is None:
        return PASS
    if _may_be_of(recording, text.session, turn):
        return unclear(text.call, asked=[request], message="which session the request belongs to is not certain")
    agent, project = agent_and_project(recording, text.session)
    return breach(
        text.call,
        asked=[request],
        message=f"what was injected into session {text.session} is before the model in session {turn.session}",
        expected=f"nothing of session {text.session} (agent {agent or 'not named'}, project {project or 'not named'})",
        received=line,
        fold="another session's text",
    )


def _may_be_of(recording: Recording, session: str, turn: Turn) -> bool:
    """Whether a request of a turn may be a late one of another session, in which the user said the same."""
    words = plain(turn.text)
    steps = (mark for mark in recording.marks(StepMark) if mark.session == session and mark.seq < turn.low)
    return any(words == plain(mark.text) for mark in steps if mark.text)


def _branched(recording: Recording) -> frozenset[str]:
    """The sessions that go on from another one: a sub-agent's, or one that took another's place."""
    steps = recording.marks(StepMark)
    return frozenset(
        mark.session
        for mark in steps
        if mark.session is not None and any(mark.other.get(name) for name in ("parent", "replaces"))
    )
