"""Requirements on session keys and the host's ids: a key follows a changed id, and two sessions share no key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from signet_conformance.facts import CHECKPOINT, END, OPENING, PROMPT, START, Call, HostId, Recording, plain
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, undecided
from signet_conformance.trace.marks import StepMark, StepName

_STARTED_IN = OPENING | {StepName.PROMPT}
"""The steps in which a session's start may come: a connector may wait for the first prompt."""


_BY_ID = frozenset({START, PROMPT, CHECKPOINT})
"""The hooks that have to use the current id of their session; an end may be that of a former id."""


def hooks_follow_the_host_id(recording: Recording) -> Iterator[Outcome]:
    """After the host has given a session another id, its hooks use that id."""
    for session in recording.timeline.host_ids.sessions:
        if len(recording.timeline.host_ids.of(session)) > 1:
            yield from _HostSession(recording.whole, session).outcomes()


class _HostSession:
    """Judges whether the hooks of one session of the host follow its id."""

    def __init__(self, recording: Recording, session: str) -> None:
        self._recording = recording
        self._timeline = recording.timeline
        self._session = session
        self._own = [call for call in recording.keyed_hooks if self._is_own(call)]
        self._keys: dict[str, dict[str, Call]] = {}
        """The keys of each id, each with the first hook that carried it."""
        self._changed: tuple[StepMark, HostId] | None = None
        """The step in which the id last changed, and the new id."""
        self._words: list[tuple[str, bool]] = []
        """The user's words until the last change, each with True if an accepted prompt held them."""

    def outcomes(self) -> Iterator[Outcome]:
        words: list[tuple[str, bool]] = []
        for step in self._timeline.steps_of(self._session):
            before = self._timeline.host_ids.at(self._session, step.seq)
            until = self._timeline.next_step(step)
            after = self._timeline.host_ids.at(self._session, until)
            calls = [call for call in self._own if step.seq < call.seq < until]
            if after is not None and before is not None and before.id != after.id:
                self._changed, self._words = (step, after), words.copy()
                yield from self._change(calls, before, after)
            elif after is not None:
                yield from self._go_on(calls, after)
            if step.text is not None:
                words.append((step.text, any(call.operation == PROMPT and call.accepted for call in calls)))

    def _is_own(self, call: Call) -> bool:
        owner = self._timeline.session_of(call.key)
        return owner in (None, self._session) and not self._timeline.is_unmarked_sub_agent(call.key)

    def _former(self, key: str, present: HostId) -> Call | None:
        """The first hook of a key, if the key belongs to another id than the present one."""
        return next((keys[key] for host_id, keys in self._keys.items() if host_id != present.id and key in keys), None)

    def _change(self, calls: Sequence[Call], before: HostId, after: HostId) -> Iterator[Outcome]:
        """Judge the step in which the id changes: a start after the end of the former session belongs to the new id."""
        ended: set[str | None] = set()
        for call in calls:
            if call.operation == END:
                ended.add(call.key)
            elif call.operation == START and (call.key in ended or call.key not in self._keys.get(before.id, ())):
                yield from self._judge(call, after)

    def _go_on(self, calls: Sequence[Call], present: HostId) -> Iterator[Outcome]:
        for call in calls:
            if call.operation in _BY_ID and not self._is_late(call):
                yield from self._judge(call, present)

    def _is_late(self, call: Call) -> bool:
        """Whether a prompt has the user's words from before the change, which no accepted prompt contained."""
        text = plain(call.text)
        return any(not accepted and plain(each) == text for each, accepted in self._words)

    def _judge(self, call: Call, present: HostId) -> Iterator[Outcome]:
        former = self._former(str(call.key), present)
        if former is None or self._changed is None:
            self._keys.setdefault(present.id, {}).setdefault(str(call.key), call)
            if self._changed is not None:
                yield PASS
            return
        step, _ = self._changed
        if (why := self._excuse(call, step, present)) is not None:
            yield undecided(call, former, message=f"{call.operation} uses the key of a former id, and {why}")
            return
        events = "" if not present.told_by else f", as {', '.join(present.told_by)} told the connector"
        yield breach_of(
            "SIG-SESS-004", "former id", call, former, received=call.key, present=present, step=step, events=events
        )

    def _excuse(self, call: Call, step: StepMark, present: HostId) -> str | None:
        if present.told_by == ():
            return "no known event of the host tells the connector the new id"
        disturbed = self._timeline.switches.any_between(step.seq, self._timeline.next_step(step))
        if disturbed or self._timeline.was_stopped_in(step):
            return f"step {step.index}, in which the id changed, was disturbed"
        if (now := self._timeline.step_at(call.seq)) is not None and self._recording.may_last(now):
            return "the host may change the id again at the end of the step, which the recording does not hold"
        if call.operation == START and not any(each.accepted for each in self._recording.earlier(call)):
            return "no call with that key was accepted before: this one may be late"
        following = next(iter(self._recording.later(call)), None)
        if call.operation == CHECKPOINT and following is not None and following.operation == END:
            return "the end of the former session follows it: a connector may hand over a transcript before an end"
        return None


SUB_AGENTS_KEY = "sub-agent's key"
"""The kind of breach in which a sub-agent's session has the key of the one that called it."""


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
            whose = f"{_describe(recording, first)} and {_describe(recording, other)},"
            name = SUB_AGENTS_KEY if recording.timeline.are_related(first.session, other.session) else "one key"
            yield breach_of("SIG-SESS-005", name, other.call, first.call, received=key, whose=whose)
    yield from [PASS] * len(sessions - mixed)


def _ids(recording: Recording, session: str) -> set[str]:
    return {each.id for each in recording.timeline.host_ids.of(session)}


def _describe(recording: Recording, use: _Use) -> str:
    host_id = recording.timeline.host_ids.of(use.session)[0].id
    return f"{use.session} ({host_id[:60]})"


def _uses(recording: Recording) -> Iterator[_Use]:
    """The keys of each session: those of the starts in its steps, and of the prompts with its words.

    If a session has several keys, a start under the key of a session that was opened before is late or repeated, and
    does not count.
    """
    named: dict[str, dict[str, _Use]] = {}
    for use in sorted([*_starts(recording), *_prompts(recording)], key=lambda use: use.call.seq):
        keys = named.setdefault(use.session, {})
        known = keys.setdefault(str(use.call.key), use)
        if use.by_prompt and not known.by_prompt:
            keys[str(use.call.key)] = _Use(use.session, known.call, by_prompt=True)
    first = _first_users(recording, named)
    for uses in named.values():
        for key, use in uses.items():
            is_own = first[key] == use.session and not _is_late_start(recording, use, named)
            if use.by_prompt or len(uses) == 1 or is_own:
                yield use


def _is_late_start(recording: Recording, start: _Use, named: Mapping[str, Mapping[str, _Use]]) -> bool:
    """Whether the words of another session, opened by then, were submitted under the key of a start.

    A connector that sends from a queue may start that session in a step of this one.
    """
    return any(
        key == start.call.key and use.by_prompt and _is_open(recording, session, start.call)
        for session, uses in named.items()
        for key, use in uses.items()
    )


def _is_open(recording: Recording, session: str, call: Call) -> bool:
    return any(step.step in OPENING for step in recording.timeline.steps_of(session, call.seq))


def _first_users(recording: Recording, named: Mapping[str, Mapping[str, _Use]]) -> Mapping[str, str]:
    """For each key the session that was opened first; its calls may come late, in the steps of another."""
    sessions = dict.fromkeys(step.session for step in recording.timeline.steps)
    return {key: str(session) for session in reversed(sessions) for key in named.get(str(session), ())}


def _starts(recording: Recording) -> Iterator[_Use]:
    for call in recording.of(START):
        step = recording.timeline.step_at(call.seq) if call.accepted and call.key is not None else None
        if step is not None and step.session is not None and step.step in _STARTED_IN:
            yield _Use(step.session, call, by_prompt=False)


def _prompts(recording: Recording) -> Iterator[_Use]:
    """The prompts whose words only one session has got so far; others may be late."""
    session_of: dict[str, str | None] = {}
    for turn in recording.timeline.turns:
        session = turn.step.session
        if session is None or session_of.setdefault(turn.text.strip(), session) != session:
            continue
        if turn.step.step == StepName.PROMPT:
            prompts = (call for call in turn.prompts if call.accepted and call.key is not None)
            yield from (_Use(session, call, by_prompt=True) for call in prompts if turn.matches(call))
