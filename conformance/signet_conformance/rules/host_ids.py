"""Requirements on what becomes at the daemon of the ids that the host gives to its sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from signet_conformance.facts import OPENING, START, Call, Recording
from signet_conformance.rules.outcome import PASS, Outcome, fail, in_body
from signet_conformance.trace.marks import StepName

_STARTED_IN = OPENING | {StepName.PROMPT}
"""The steps in which a session's own start may come: a connector may wait for the first prompt."""


class _Use(Struct, frozen=True):
    """The use of a key for a session: the first start or prompt of the session's own that carries it."""

    session: str
    call: Call
    by_prompt: bool


def sessions_of_host_are_apart(recording: Recording) -> Iterator[Outcome]:
    """Two sessions of the host are never one at the daemon."""
    host_ids = recording.timeline.host_ids
    if len(host_ids.sessions) < 2:
        return
    by_key: dict[tuple[str, str | None], list[_Use]] = {}
    for use in _uses(recording.whole):
        if host_ids.of(use.session):
            # From 0.183 the daemon knows a session by its agent too.
            agent = use.call.agent if recording.at_least("0.183") else None
            by_key.setdefault((str(use.call.key), agent), []).append(use)
    sessions = {use.session for uses in by_key.values() for use in uses}
    if len(sessions) < 2:
        return
    mixed: set[str] = set()
    for (key, _), (first, *others) in by_key.items():
        for other in others:
            if _ids(recording, first.session) & _ids(recording, other.session):
                continue
            mixed |= {first.session, other.session}
            yield fail(
                other.call,
                first.call,
                message=f"two sessions of the host, {_named(recording, first)} and {_named(recording, other)}, have one"
                " key: at the daemon they are one session, with one transcript",
                pointer=in_body("sessionKey"),
                expected="a key of its own for each session of the host",
                received=key,
                fold="one key",
            )
    yield from [PASS] * len(sessions - mixed)


def _ids(recording: Recording, session: str) -> set[str]:
    return {each.id for each in recording.timeline.host_ids.of(session)}


def _named(recording: Recording, use: _Use) -> str:
    host_id = recording.timeline.host_ids.of(use.session)[0].id
    return f"{use.session} ({host_id[:60]})"


def _uses(recording: Recording) -> Iterator[_Use]:
    """The keys of each session: of the starts in its own steps, and of the prompts that say what it was told.

    A start in its steps under the key of another session, used before, is late or repeated where the session has a key
    beside it.
    """
    named: dict[str, dict[str, _Use]] = {}
    for use in sorted([*_starts(recording), *_prompts(recording)], key=lambda use: use.call.seq):
        known = named.setdefault(use.session, {}).get(str(use.call.key))
        if known is None or (use.by_prompt and not known.by_prompt):
            named[use.session][str(use.call.key)] = use
    first = _first_users(named)
    for uses in named.values():
        for key, use in uses.items():
            if use.by_prompt or len(uses) == 1 or first[key] == use.session:
                yield use


def _first_users(named: Mapping[str, Mapping[str, _Use]]) -> Mapping[str, str]:
    uses = sorted((use for keys in named.values() for use in keys.values()), key=lambda use: use.call.seq, reverse=True)
    return {str(use.call.key): use.session for use in uses}


def _starts(recording: Recording) -> Iterator[_Use]:
    for call in recording.of(START):
        step = recording.timeline.step_at(call.seq)
        own = step is not None and step.session is not None and step.step in _STARTED_IN
        if own and step is not None and call.accepted and call.key is not None:
            yield _Use(str(step.session), call, by_prompt=False)


def _prompts(recording: Recording) -> Iterator[_Use]:
    """The prompts of turns whose words only one session has heard so far: others may be late."""
    heard: dict[str, str | None] = {}
    for turn in recording.timeline.turns:
        session = turn.step.session
        if session is None or heard.setdefault(turn.text.strip(), session) != session:
            continue
        if turn.step.step == StepName.PROMPT:
            said = (call for call in turn.prompts if call.accepted and call.key is not None and turn.is_said_by(call))
            yield from (_Use(session, call, by_prompt=True) for call in said)
