"""What the kit's own marks tell: which step the connector was performing, and when the model's turn began."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice, takewhile

from msgspec import Struct

from signet_conformance.facts import (
    AGENT_CALLS,
    END,
    GET,
    LIFECYCLE,
    PROMPT,
    SAVES,
    START,
    Call,
    Recording,
    text_or_none,
)
from signet_conformance.rules.disturbed import disturbed_between
from signet_conformance.rules.turns import plain
from signet_conformance.trace.marks import (
    ModelMark,
    ScenarioEndMark,
    SessionKeyMark,
    SkippedMark,
    StepMark,
    StepName,
    Switch,
)

SUB_AGENT_MEMBERS = ("harnessAgentId", "parentSessionKey", "parentKey", "parentId", "parentID")
"""The members by which a hook says that its session is a sub-agent's."""
OPENING = frozenset({StepName.START, StepName.RESUME, StepName.CLEAR})
_OF_TOOLS = (AGENT_CALLS | {GET}) - LIFECYCLE
"""What memory tools ask of the daemon."""
_ASKED_BY = {"memory_store": SAVES, "memory_get": frozenset({GET})}
"""What one of them asks of it; whose key a recall carries is SIG-REC-004's."""


def step_before(recording: Recording, seq: int) -> StepMark | None:
    """The last step mark before an exchange number; None in a recording without step marks."""
    steps = recording.marks(StepMark)
    index = bisect_left(steps, seq, key=lambda mark: mark.seq)
    return steps[index - 1] if index else None


def step_of(recording: Recording, hook: Call) -> StepMark | None:
    """The step that a hook belongs to: that in which it came, or an earlier one of its own session that asked for it.

    The second where the driver told whose the key is: a connector that sends from a queue may be late.
    """
    now = step_before(recording, hook.seq)
    owner, asking = told_sessions(recording).get(hook.key), _asking_for(hook)
    if owner is None:
        return now
    steps = recording.marks(StepMark)
    earlier = (steps[at] for at in reversed(range(bisect_left(steps, hook.seq, key=lambda mark: mark.seq))))
    last = next((mark for mark in earlier if mark.session == owner and mark.step in asking), None)
    # Most hooks come in the step that asked for them: nothing further is looked at for those.
    if last is None or last is now:
        return now
    between = (other for other in recording.hooks_of[str(hook.key)] if last.seq < other.seq < hook.seq)
    return now if any(other.operation == hook.operation for other in between) else last


def own_step(recording: Recording, hook: Call) -> StepMark | None:
    """The last step before a hook: of its own session, where the driver told whose its key is and another has a step.

    One that was skipped is then none: nothing came of it that could be late.
    """
    now, owner = step_before(recording, hook.seq), told_sessions(recording).get(hook.key)
    if owner is None or now is None or now.session == owner:
        return now
    skipped = skipped_steps(recording)
    own = [mark for mark in recording.marks(StepMark) if mark.session == owner and mark.index not in skipped]
    return next((mark for mark in reversed(own) if mark.seq < hook.seq), now)


def told_sessions(recording: Recording) -> Mapping[str | None, str]:
    """The session of each key of which the driver told that it is that session's, and no other's."""
    sessions: dict[str | None, str] | None = recording.memo.get(told_sessions)
    if sessions is None:
        told = _told_owners(recording)
        sessions = {key: next(iter(owners)) for key, owners in told.items() if len(owners) == 1}
        recording.memo[told_sessions] = sessions
    return sessions


def _told_owners(recording: Recording) -> Mapping[str | None, set[str]]:
    """The sessions of each key of which the driver told that it is theirs."""
    told: dict[str | None, set[str]] = {}
    for mark in recording.marks(SessionKeyMark):
        if mark.session is not None and mark.key is not None:
            told.setdefault(mark.key, set()).add(mark.session)
    return told


def session_of(recording: Recording, key: str | None) -> str | None:
    """The session, as marks name it, that a key belongs to: as the driver told, or that of the step of its first use.

    A connector that sends from a queue may use a key first in the step of another session. A key that the driver told
    of two sessions, and that was started in the steps of both, belongs to neither.
    """
    sessions: dict[str, str | None] | None = recording.memo.get(session_of)
    if sessions is None:
        sessions = {}
        told, owners = told_sessions(recording), _told_owners(recording)
        for name, hooks in recording.hooks_of.items():
            if name in told:
                sessions[name] = told[name]
                continue
            starts = [call for call in hooks if call.operation == START]
            first = starts[0] if starts else hooks[0]
            step = step_before(recording, first.seq)
            shared = name in owners and len(owners[name] & _sessions_of_steps(recording, starts)) > 1
            # An end may come late, in the step of another session.
            sessions[name] = None if step is None or first.operation == END or shared else step.session
        recording.memo[session_of] = sessions
    return None if key is None else sessions.get(key)


def _sessions_of_steps(recording: Recording, hooks: Sequence[Call]) -> set[str | None]:
    steps = (step_before(recording, hook.seq) for hook in hooks)
    return {step.session for step in steps if step is not None}


def agent_of_session(recording: Recording, session: str | None) -> str | None:
    """The agent that the marks name for a session; None where they name none or several."""
    agents: dict[str, set[str]] | None = recording.memo.get(agent_of_session)
    if agents is None:
        agents = {}
        for mark in recording.marks(StepMark):
            if mark.session is not None and (agent := text_or_none(mark.agent)) is not None:
                agents.setdefault(mark.session, set()).add(agent)
        recording.memo[agent_of_session] = agents
    named = () if session is None else agents.get(session, ())
    return next(iter(named)) if len(named) == 1 else None


def project_of_session(recording: Recording, key: str | None) -> str | None:
    """The project that the marks name for the session of a key; None where they name none or several."""
    projects: dict[str | None, set[str]] | None = recording.memo.get(project_of_session)
    if projects is None:
        projects = {}
        for mark in recording.marks(StepMark):
            if (project := text_or_none(mark.project)) is not None:
                projects.setdefault(mark.session, set()).add(project)
        recording.memo[project_of_session] = projects
    session = session_of(recording, key)
    named = () if session is None else projects.get(session, ())
    return next(iter(named)) if len(named) == 1 else None


def marked_agent(recording: Recording, call: Call) -> str | None:
    """The agent that the marks name for the session of a call: by its key, a call of a tool also by its step."""
    step = step_before(recording, call.seq)
    if call.key is not None and call.key in recording.hooks_of and not _has_the_key_of_another(recording, call, step):
        return agent_of_session(recording, session_of(recording, call.key))
    if step is None or step.step not in (StepName.TOOL, StepName.SESSIONLESS_PROMPT):
        return None
    return agent_of_session(recording, step.session)


def tool_of(recording: Recording, call: Call) -> object:
    """The tool that the model called in the step of a call; None in another step."""
    step = step_before(recording, call.seq)
    return None if step is None or step.step != StepName.TOOL else step.other.get("tool")


def _has_the_key_of_another(recording: Recording, call: Call, step: StepMark | None) -> bool:
    """Whether a call is what a step asked for, though its key belongs to another session.

    A turn without a session is known by its text. A tool's call must fit the tool and be alone in the step, and the
    other session must not have called a tool before: what comes late from there is no answer to this step.
    """
    if step is None:
        return False
    if step.step == StepName.SESSIONLESS_PROMPT:
        return call.operation == PROMPT and plain(call.text or "") == plain(step.text or "") != ""
    owner = another_session(recording, call)
    if owner is None or call.operation not in _ASKED_BY.get(str(step.other.get("tool")), ()):
        return False
    if step.index in skipped_steps(recording):
        return False
    tools = (mark for mark in recording.marks(StepMark) if mark.step == StepName.TOOL and mark.session == owner)
    if any(mark.seq < step.seq for mark in tools):
        return False
    return all(each.seq == call.seq or each.operation not in _OF_TOOLS for each in calls_in(recording, step))


def calls_in(recording: Recording, step: StepMark) -> Iterator[Call]:
    """The calls that came during a step."""
    until = step_end(recording, step)
    first = bisect_left(recording.calls, step.seq, key=lambda each: each.seq)
    return takewhile(lambda each: each.seq < until, islice(recording.calls, first, None))


def is_sessionless(recording: Recording, call: Call) -> bool:
    """Whether marks tell that the harness knew of no session in the turn of a call."""
    step = step_before(recording, call.seq)
    return step is not None and step.step == StepName.SESSIONLESS_PROMPT


def another_session(recording: Recording, call: Call) -> str | None:
    """The session that marks name for the key of a tool's call, where it is not that of the step, nor related to it."""
    step = step_before(recording, call.seq)
    owner = session_of(recording, call.key)
    if step is None or step.step != StepName.TOOL or owner is None or owner == step.session:
        return None
    return None if are_related(recording, owner, step.session) else owner


def are_related(recording: Recording, one: str | None, other: str | None) -> bool:
    """Whether one of two sessions is the other, or works in it as a sub-agent, at whatever depth."""
    return one == other or one in [*_sessions_above(recording, other)] or other in [*_sessions_above(recording, one)]


def _sessions_above(recording: Recording, session: str | None) -> Iterator[str]:
    """The session that a sub-agent works in, the one that this works in, and so on; each once."""
    parents: dict[str | None, str] | None = recording.memo.get(are_related)
    if parents is None:
        marks = recording.marks(StepMark)
        parents = {mark.session: parent for mark in marks if isinstance(parent := mark.other.get("parent"), str)}
        recording.memo[are_related] = parents
    met = {session}
    while (session := parents.get(session)) is not None and session not in met:
        met.add(session)
        yield session


def is_unmarked_sub_agent(recording: Recording, key: str | None) -> bool:
    """Whether the hooks of a key say that a sub-agent works under it, while marks know of no sub-agent there.

    A harness may hand the step of a tool to a sub-agent: its session has its own key, and none of what the user said.
    """
    hooks = recording.hooks_of.get(key or "", ())
    says_so = any(text_or_none(hook.body.get(name)) is not None for hook in hooks for name in SUB_AGENT_MEMBERS)
    return says_so and not any(_sessions_above(recording, session_of(recording, key)))


def start_was_disturbed(recording: Recording, step: StepMark) -> bool:
    """Whether a fault, an outage, a restart or the bypass met the last start step of a step's session."""
    opened = last_opening(recording, step)
    return opened is not None and disturbed_between(recording, *opened)


def step_end(recording: Recording, step: StepMark) -> int:
    """The number at which a step is over: the next step, or what the kit switches after it."""
    marks = recording.kit_marks
    place = bisect_left(marks, step.seq + 1, key=lambda mark: mark.seq)
    return next((mark.seq for mark in marks[place:] if isinstance(mark, StepMark | Switch)), step.seq + 10**9)


def openings(recording: Recording, step: StepMark) -> list[StepMark]:
    """The steps in which the session of a step was opened, up to that step."""
    return [
        mark
        for mark in recording.marks(StepMark)
        if mark.seq <= step.seq and mark.session == step.session is not None and mark.step in OPENING
    ]


def skipped_steps(recording: Recording) -> AbstractSet[int | None]:
    """The numbers of the steps that have no counterpart in the connector or its harness."""
    return {mark.index for mark in recording.marks(SkippedMark)} - {None}


def last_opening(recording: Recording, step: StepMark) -> tuple[int, int] | None:
    """The numbers between which the session of a step was opened last, up to that step."""
    opening = openings(recording, step)
    return (opening[-1].seq, step_end(recording, opening[-1])) if opening else None


def of_another_step(recording: Recording, earlier: Call, call: Call) -> bool:
    """Whether marks tell that the user asked for the same once more: two steps that ask for it, a call in each."""
    before, after = (step_before(recording, each.seq) for each in (earlier, call))
    if before is None or after is None or before.seq == after.seq:
        return False
    return before.step == after.step or {before.step, after.step} <= _asking_for(call)


def _asking_for(call: Call) -> AbstractSet[str]:
    """The steps of several kinds that ask for the same: who clears a session ends it, and opens it anew.

    What is no hook is looked up where a session is opened, as a memory server asks for its tools when it comes up.
    """
    if call.operation == END:
        return {StepName.CLEAR, StepName.END}
    return OPENING if call.operation == START or call.operation not in LIFECYCLE else frozenset()


def is_of_one_turn(recording: Recording, earlier: Call, call: Call) -> bool:
    """Whether marks tell that two prompts were submitted in one turn of the user: that is SIG-PROMPT-003's."""
    before, after = (step_before(recording, hook.seq) for hook in (earlier, call))
    return before is not None and before is after and before.step == StepName.PROMPT


def broken_off(recording: Recording) -> bool:
    """Whether a mark says that the connector did not live to perform the rest of its scenario."""
    return any(end.error is not None for end in recording.marks(ScenarioEndMark))


def is_another_session(recording: Recording, turn: Call, start: Call) -> bool:
    """Whether marks tell that the user went on with the session of `turn` beside the one that `start` begins."""
    old, new = (step_of(recording, call) for call in (turn, start))
    if old is None or new is None or old.session in (None, new.session):
        return False
    steps = [mark for mark in recording.marks(StepMark) if mark.session == old.session]
    before = [mark for mark in steps if mark.seq < start.seq]
    return before[-1].step != StepName.END and any(mark.seq > start.seq for mark in steps)


def was_silent(recording: Recording, end: Call) -> bool:
    """Whether marks tell that the user said nothing in the session that an end belongs to, since it was opened."""
    step = step_of(recording, end)
    if step is None or step.session is None:
        return False
    skipped = skipped_steps(recording)
    of_session = [
        mark.step
        for mark in recording.marks(StepMark)
        if mark.seq <= step.seq
        and mark.session == step.session
        and not (mark.step == StepName.PROMPT and mark.index in skipped)
    ]
    if of_session[-1:] == [StepName.CLEAR]:
        # What is ended there was said before it.
        of_session.pop()
    opened = max((place for place, name in enumerate(of_session) if name in OPENING), default=-1)
    return StepName.PROMPT not in of_session[opened + 1 :]


class PromptStep(Struct, frozen=True):
    """One marked user turn: its text, where it ends, where the model's turn began, the prompts sent in it."""

    text: str
    mark: StepMark
    model_seq: int | None
    prompts: tuple[Call, ...]


def prompt_steps(recording: Recording) -> list[PromptStep]:
    """The marked user turns with the prompts that were sent during each."""
    steps = recording.marks(StepMark)
    models = [mark.seq for mark in recording.marks(ModelMark)]
    prompts = recording.of(PROMPT)
    turns: list[PromptStep] = []
    for index, mark in enumerate(steps):
        text = text_or_none(mark.text)
        if mark.step not in (StepName.PROMPT, StepName.SESSIONLESS_PROMPT) or text is None:
            continue
        end = steps[index + 1].seq if index + 1 < len(steps) else float("inf")
        model = next((seq for seq in models if mark.seq < seq < end), None)
        turns.append(PromptStep(text, mark, model, tuple(p for p in prompts if mark.seq < p.seq < end)))
    return turns
