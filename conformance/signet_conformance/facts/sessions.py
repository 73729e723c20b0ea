"""The steps of a recording and their sessions: the keys of each, its ids at the host, agent and folder.

They follow from the kit's own marks. Without step marks, nothing shows the session of a key.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from functools import cached_property
from itertools import islice, pairwise, takewhile
from math import inf

from msgspec import Struct

from signet_conformance.facts.calls import (
    AGENT_CALLS,
    END,
    GET,
    LIFECYCLE,
    PROMPT,
    SAVES,
    START,
    Call,
    plain,
    text_or_none,
)
from signet_conformance.facts.steps import steps_for
from signet_conformance.trace import marks
from signet_conformance.trace.marks import KitMark, MarkT, StepMark, StepName, Switch

OPENING = steps_for(START)
"""The steps that open a session."""
_OF_TOOLS = (AGENT_CALLS | {GET}) - LIFECYCLE
_ASKED_BY = {"memory_store": SAVES, "memory_get": frozenset({GET})}
"""Operations of memory tools; the key of a recall is SIG-REC-004's."""
_FAR = 10**9


class HostId(Struct, frozen=True):
    """An id of a session at its host, from the mark with that number on.

    `told_by` are the events by which the host reported a change to the connector, None if they are not known.
    """

    id: str
    since: int
    told_by: tuple[str, ...] | None = None


class HostIds:
    """The ids of each session of a scenario, in order."""

    def __init__(self, key_marks: Iterable[marks.SessionKeyMark]) -> None:
        ids: dict[str, list[HostId]] = {}
        for mark in key_marks:
            if mark.session is not None and mark.key is not None:
                ids.setdefault(mark.session, []).append(HostId(mark.key, mark.seq, mark.told_by))
        self._ids: Mapping[str, Sequence[HostId]] = ids

    @property
    def sessions(self) -> Sequence[str]:
        """The sessions that the host has given an id, in the order in which it did."""
        return [*self._ids]

    def of(self, session: str | None) -> Sequence[HostId]:
        """The ids that a session has had, in order; the host may use one again."""
        return () if session is None else self._ids.get(session, ())

    def at(self, session: str | None, seq: float) -> HostId | None:
        """The id of a session just before a number; None before its first."""
        return next((each for each in reversed(self.of(session)) if each.since < seq), None)

    def span_of(self, session: str | None, key: str | None) -> range | None:
        """The numbers during which a key was the id of a session that has another id since; None if it still is.

        Also None for an id that the host has used again.
        """
        ids = self.of(session)
        places = [place for place, each in enumerate(ids) if each.id == key]
        if len(places) != 1 or places[0] == len(ids) - 1:
            return None
        return range(ids[places[0]].since, ids[places[0] + 1].since)


class Sessions:
    """The steps of a scenario, and the session of each key."""

    def __init__(
        self, kit_marks: Sequence[KitMark], calls: Sequence[Call], hooks_of: Callable[[], Mapping[str, Sequence[Call]]]
    ) -> None:
        self._marks = kit_marks
        self._calls = calls
        self._hooks_of = hooks_of
        """The hooks of each key, read on demand: a piece of a recording may not have them all."""
        self.steps: Sequence[StepMark] = self._marks_of(StepMark)
        self._seqs = [step.seq for step in self.steps]

    # Steps

    def _marks_of(self, kind: type[MarkT]) -> Sequence[MarkT]:
        return [mark for mark in self._marks if isinstance(mark, kind)]

    def step_at(self, seq: int) -> StepMark | None:
        """The last step before an exchange number; None before the first."""
        index = bisect_left(self._seqs, seq)
        return self.steps[index - 1] if index else None

    def session_at(self, seq: int) -> str | None:
        """The session of the last step before an exchange number."""
        step = self.step_at(seq)
        return None if step is None else step.session

    def end_of(self, step: StepMark) -> int:
        """The number at which a step is over: the next step, or what the kit switches after it."""
        later = self._marks[bisect_left(self._marks, step.seq + 1, key=lambda mark: mark.seq) :]
        return next((mark.seq for mark in later if isinstance(mark, StepMark | Switch)), step.seq + _FAR)

    def next_step(self, step: StepMark) -> float:
        """The number of the step after a step, whatever is switched meanwhile."""
        index = bisect_left(self._seqs, step.seq + 1)
        return self._seqs[index] if index < len(self._seqs) else inf

    def steps_of(self, session: str | None, before: float = inf) -> Sequence[StepMark]:
        """The steps of a session that came before a number, in order."""
        return [step for step in self.steps if step.session == session and step.seq < before]

    def clears_of(self, session: str | None, before: float = inf) -> Sequence[StepMark]:
        """The clears of a session that came before a number and were not skipped, in order."""
        steps = self.steps_of(session, before)
        return [step for step in steps if step.step == StepName.CLEAR and not self.was_skipped(step)]

    def calls_in(self, step: StepMark) -> Iterator[Call]:
        """The calls that came during a step."""
        calls, until = self._calls, self.end_of(step)
        first = bisect_left(calls, step.seq, key=lambda each: each.seq)
        return takewhile(lambda each: each.seq < until, islice(calls, first, None))

    @cached_property
    def skipped(self) -> AbstractSet[int | None]:
        """The numbers of the steps that have no counterpart in the connector or its harness."""
        return {mark.index for mark in self._marks_of(marks.SkippedMark)} - {None}

    @property
    def performed(self) -> Sequence[StepMark]:
        """The steps that were not skipped."""
        return [step for step in self.steps if not self.was_skipped(step)]

    def was_skipped(self, step: StepMark) -> bool:
        """Whether a step has no counterpart in the connector or its harness."""
        return step.index in self.skipped

    @cached_property
    def is_broken_off(self) -> bool:
        """Whether the connector ended before the rest of its scenario, or the recording ends before that."""
        ends = self._marks_of(marks.ScenarioEndMark)
        return any(end.error is not None for end in ends) or len(ends) < len(self._marks_of(marks.ScenarioMark))

    @cached_property
    def first_after_lost_steps(self) -> float:
        """The number of the first step before which marks of steps are missing; infinite if none are.

        A scenario's own switches are steps without such a mark. Marks that were written by hand may be numbered
        differently: for those, only the beginning counts.
        """
        switches = [mark.seq for mark in self._marks_of(Switch)]
        numbered = [(step.index, step.seq) for step in self.steps if step.index is not None]
        if len(numbered) < len(self.steps):
            return inf
        for (before, low), (index, seq) in pairwise([(0, -1), *numbered]):
            if index > before + 1 + bisect_left(switches, seq) - bisect_left(switches, low):
                return seq
            if not self._marks_of(marks.ScenarioMark):
                break
        return inf

    def openings(self, step: StepMark) -> list[StepMark]:
        """The steps in which the session of a step was opened, up to that step."""
        if step.session is None:
            return []
        return [mark for mark in self.steps_of(step.session, step.seq + 1) if mark.step in OPENING]

    def last_opening(self, step: StepMark) -> tuple[int, int] | None:
        """The numbers between which the session of a step was opened last, up to that step."""
        opening = self.openings(step)
        return (opening[-1].seq, self.end_of(opening[-1])) if opening else None

    # Sessions

    @cached_property
    def host_ids(self) -> HostIds:
        """The ids that the host gives to the sessions."""
        return HostIds(self._marks_of(marks.SessionKeyMark))

    @cached_property
    def reported_owners(self) -> Mapping[str | None, set[str]]:
        """The sessions that the driver reported as owners of each key."""
        owners: dict[str | None, set[str]] = {}
        for mark in self._marks_of(marks.SessionKeyMark):
            if mark.session is not None and mark.key is not None:
                owners.setdefault(mark.key, set()).add(mark.session)
        return owners

    @cached_property
    def reported_sessions(self) -> Mapping[str | None, str]:
        """The one session that the driver reported as owner of each key."""
        return {key: next(iter(owners)) for key, owners in self.reported_owners.items() if len(owners) == 1}

    def session_of(self, key: str | None) -> str | None:
        """The session of a key: the one that the driver reported, or that of the step in which the key was first used.

        A connector that sends from a queue may use a key first in the step of another session. A key that the driver
        reported for two sessions, and that was started in the steps of both, belongs to neither.
        """
        return None if key is None else self._sessions.get(key)

    def session_of_call(self, call: Call) -> str | None:
        """The session of a call: that of its key or, without a key, that of its step."""
        if call.key is not None:
            return self.session_of(call.key)
        return self.session_at(call.seq)

    def may_be_of(self, call: Call, session: str | None) -> bool:
        """Whether the key of a call belongs to a session, or the call came in a step of it."""
        return session in (self.session_of(call.key), self.session_at(call.seq))

    @cached_property
    def _sessions(self) -> Mapping[str, str | None]:
        sessions: dict[str, str | None] = {}
        for key, hooks in self._hooks_of().items() if self._marks else ():
            if key in self.reported_sessions:
                sessions[key] = self.reported_sessions[key]
                continue
            starts = [call for call in hooks if call.operation == START]
            first = starts[0] if starts else hooks[0]
            started_in = {step.session for start in starts if (step := self.step_at(start.seq)) is not None}
            is_shared = len(self.reported_owners.get(key, set()) & started_in) > 1
            step = self.step_at(first.seq)
            # An end may come late, in the step of another session.
            sessions[key] = None if step is None or first.operation == END or is_shared else step.session
        return sessions

    def agent_of(self, session: str | None) -> str | None:
        """The agent that the steps of a session name; None if they name none or several."""
        return _only(step.agent for step in self.steps_of(session)) if session is not None else None

    def project_of(self, key: str | None) -> str | None:
        """The project that the steps name for the session of a key; None if they name none or several."""
        session = self.session_of(key)
        return _only(step.project for step in self.steps_of(session)) if session is not None else None

    def folder_of(self, call: Call) -> str | None:
        """The folder that the host ran in or passed on at the last opening of a call's session before the call.

        None if no mark shows the session or the folder.
        """
        session = self.session_of_call(call)
        folders = [mark.folder for mark in self.steps_of(session, call.seq) if mark.folder is not None]
        return folders[-1] if session is not None and folders else None

    def agent_for(self, call: Call) -> str | None:
        """The agent that steps name for a call's session: by its key, and for a call of a tool also by its step."""
        step = self.step_at(call.seq)
        if call.key is not None and call.key in self._hooks_of() and not self._has_a_foreign_key(call, step):
            return self.agent_of(self.session_of(call.key))
        if step is None or step.step not in (StepName.TOOL, StepName.SESSIONLESS_PROMPT):
            return None
        return self.agent_of(step.session)

    def _has_a_foreign_key(self, call: Call, step: StepMark | None) -> bool:
        """Whether a call is what a step asked for, although its key belongs to another session.

        A turn without a session is recognised by its text. A tool's call must fit the tool and be alone in the step,
        and the other session must not have called a tool before, since its call could come late.
        """
        if step is None:
            return False
        if step.step == StepName.SESSIONLESS_PROMPT:
            return call.operation == PROMPT and plain(call.text) == plain(step.text) != ""
        owner = self.foreign_session(call)
        if owner is None or call.operation not in _ASKED_BY.get(str(step.tool), ()):
            return False
        earlier = (mark for mark in self.steps_of(owner, step.seq) if mark.step == StepName.TOOL)
        if self.was_skipped(step) or any(earlier):
            return False
        return all(each.seq == call.seq or each.operation not in _OF_TOOLS for each in self.calls_in(step))

    def foreign_session(self, call: Call) -> str | None:
        """The session of the key of a tool's call, if it is neither the step's nor related to it."""
        step, owner = self.step_at(call.seq), self.session_of(call.key)
        if step is None or step.step != StepName.TOOL or owner is None or owner == step.session:
            return None
        return None if self.are_related(owner, step.session) else owner

    @cached_property
    def _parents(self) -> Mapping[str | None, str]:
        return {step.session: parent for step in self.steps if isinstance(parent := step.other.get("parent"), str)}

    def _sessions_above(self, session: str | None) -> Iterator[str]:
        """The session in which a sub-agent works, the one in which that works, and so on; each once."""
        visited = {session}
        while (session := self._parents.get(session)) is not None and session not in visited:
            visited.add(session)
            yield session

    def are_related(self, one: str | None, other: str | None) -> bool:
        """Whether one of two sessions is the other, or works in it as a sub-agent, at whatever depth."""
        return one == other or one in [*self._sessions_above(other)] or other in [*self._sessions_above(one)]

    def is_sub_agent(self, session: str | None) -> bool:
        """Whether steps say that a session is a sub-agent's."""
        return session in self._parents

    def is_unmarked_sub_agent(self, key: str | None) -> bool:
        """Whether the hooks of a key report a sub-agent under it, while marks know of none there.

        A harness may hand the step of a tool to a sub-agent: its session has its own key, and none of the user's words.
        """
        says_so = key in self._sub_agents
        session = self.session_of(key)
        if not says_so or not any(self._sessions_above(session)):
            return says_so
        # A sub-agent below a marked one has a key beside that which the driver reported for the session.
        reported = [own for own, owner in self.reported_sessions.items() if owner == session]
        return key not in reported and any(own in self._hooks_of() for own in reported)

    @cached_property
    def _sub_agents(self) -> AbstractSet[str]:
        """The keys under which a sub-agent works, according to hooks."""
        return {key for key, hooks in self._hooks_of().items() if any(hook.names_sub_agent for hook in hooks)}

    def is_sessionless(self, call: Call) -> bool:
        """Whether the harness knew of no session in the turn of a call."""
        step = self.step_at(call.seq)
        return step is not None and step.step == StepName.SESSIONLESS_PROMPT


def _only(values: Iterable[str | None]) -> str | None:
    """The only text among some values, or None if they hold no text or several."""
    named = {text_or_none(value) for value in values} - {None}
    return named.pop() if len(named) == 1 else None
