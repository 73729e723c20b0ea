"""Requirements on who a call runs as and which session it belongs to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from signet_conformance import facts
from signet_conformance.facts import Call, Recording, text_or_none
from signet_conformance.files.json_values import only_text
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_if, subjects_of, undecided
from signet_conformance.trace.glance import normalised_key
from signet_conformance.trace.marks import StepMark, StepName

CONSTANT_KEYS = frozenset({"hermes-default", "default", "main", "session", "unknown", "none", "null", "undefined"})
NOISE_PATHS = ("/tmp/", "/private/tmp/")  # noqa: S108 - named by the law, not used
NOISE_KEYS = ("test-", "spec-", "fixture-", "synthetic-", "tmp-")


_AGENT_CALLS_BEFORE_0_109 = frozenset({facts.START, facts.PROMPT, facts.RECALL})


def _agent_calls(recording: Recording) -> list[Call]:
    """The calls that this release runs as an agent that the connector chooses."""
    reading = facts.AGENT_CALLS if recording.at_least("0.109") else _AGENT_CALLS_BEFORE_0_109
    return recording.of(*reading)


def _agent_of(recording: Recording, call: Call) -> str:
    """The agent as which this release runs a call; before 0.109, neither a key nor a header names one."""
    return call.agent if recording.at_least("0.109") else call.body_text("agentId") or "default"


def key_keeps_its_agent(recording: Recording) -> Iterator[Outcome]:
    """All calls of one session key run as the same agent."""
    calls_of: dict[str, list[Call]] = {}
    for call in _agent_calls(recording):
        if call.key is not None and call.operation != facts.SEARCH_SESSIONS:
            calls_of.setdefault(call.key, []).append(call)
    for calls in calls_of.values():
        if len(calls) < 2:
            continue
        owner = next((c for c in calls if c.operation == facts.START), calls[0])
        agents = {c.seq: _agent_of(recording, c) for c in calls}
        if len(set(agents.values())) == 1:
            yield PASS
            continue
        # If the kit asked for an agent, calls as another agent are wrong, even the start.
        wanted = recording.timeline.agent_for(owner) or agents[owner.seq]
        for call in (c for c in calls if agents[c.seq] != wanted):
            yield breach_of(
                "SIG-AGENT-001",
                "another agent in a session",
                call,
                *((owner,) if agents[owner.seq] == wanted else ()),
                received=_as_sent(call),
                wanted=wanted,
                agent=agents[call.seq],
            )


def _judge_agent(call: Call, agent: str, wanted: Collection[str]) -> Outcome | None:
    """Judge the agent as which a call runs. Return None if it is not one of the wanted ones."""
    if not wanted:
        return undecided(call, message="no agent is declared for the trace")
    if agent in wanted:
        return PASS
    if facts.REDACTION in agent or any(facts.REDACTION in other for other in wanted):
        return undecided(call, message="the agent id in the request was redacted, the declared one was not")
    return None


def _as_sent(call: Call) -> object:
    """The agent as the connector sent it, in the body or in a header, for the reader of a finding."""
    sent = call.body.get("agentId")
    if sent is None and (header := call.header(facts.AGENT_HEADER)) is not None:
        return f"only the header {facts.AGENT_HEADER}: {header}"
    return sent


def call_runs_as_the_declared_agent(recording: Recording) -> Iterator[Outcome]:
    """A call runs as the agent that is declared for its session, by the precedence that the daemon applies."""
    declared = set(recording.declared.agents)
    session_agent: dict[str, str] = {}
    for start in recording.of(facts.START):
        if start.key is not None and start.agent in declared:
            session_agent.setdefault(start.key, start.agent)
    for call in _agent_calls(recording):
        own = {session_agent[call.key]} if call.key in session_agent else declared
        agents = _wanted_agents(recording, call, own)
        wanted = " or ".join(sorted(agents))
        yield _judge_agent(call, call.agent, agents) or breach_of(
            "SIG-AGENT-002", "another agent", call, received=_as_sent(call), wanted=wanted
        )


def _wanted_agents(recording: Recording, call: Call, declared: Collection[str]) -> Collection[str]:
    """The agents as which a call may run: the one that steps name, or else the declared ones."""
    marked = recording.timeline.agent_for(call)
    return declared if marked is None else {marked}


def body_agent_agrees_with_the_key(recording: Recording) -> Iterator[Outcome]:
    """If the session key names an agent, the agentId of the body is the same or blank."""
    for call in _agent_calls(recording):
        named = facts.pattern_agent(call.raw_key)
        if named is None or str(call.raw_key).count(":") < 2:
            continue
        sent = call.body_text("agentId")
        yield pass_if(sent in (None, named)) or breach_of("SIG-AGENT-004", "two agents", call, named=named)


def agent_is_not_the_harness(recording: Recording) -> Iterator[Outcome]:
    """The agent id is not blank and not the name of the harness."""
    for call in recording.requests:
        if call.operation == facts.HEALTH:
            continue
        body, header = call.body.get("agentId"), call.header(facts.AGENT_HEADER)
        sent = [v for v in (body, header) if isinstance(v, str)]
        if not sent:
            continue
        harnesses = ("", recording.declared.harness, call.body.get("harness"))
        wrong = [v for v in sent if v.strip() in harnesses]
        if not wrong:
            yield PASS
            continue
        name = "harness name" if wrong[0].strip() else "blank"
        place = "body/json/agentId" if wrong[0] == body else "headers"
        yield breach_of("SIG-AGENT-005", name, call, received=wrong[0], place=place)


def memory_is_read_as_the_declared_agent(recording: Recording) -> Iterator[Outcome]:
    """A single memory is read as an agent that is declared."""
    declared = set(recording.declared.agents)
    if declared == {"default"}:
        return
    for call in recording.of(facts.GET):
        if call.memory_id.strip().lower() == "stats":
            continue
        agents = _wanted_agents(recording, call, declared)
        wanted = " or ".join(sorted(agents))
        yield _judge_agent(call, call.agent, agents) or breach_of(
            "SIG-AGENT-006", "another agent", call, received=call.query.get("agentId"), wanted=wanted
        )


def notifications_are_the_sessions(recording: Recording) -> Iterator[Outcome]:
    """Notifications in a session are asked for as the agent of that session."""
    timeline = recording.timeline
    for call in recording.of(facts.NOTIFY) if timeline.steps else ():
        key = normalised_key(only_text(call.body.get("sessionKey")))
        session = timeline.session_at(call.seq) if key is None else timeline.session_of(key)
        hooks = recording.hooks_of.get(key, ()) if key is not None else ()
        started = next((hook.agent for hook in hooks if hook.operation == facts.START), None)
        wanted = timeline.agent_of(session) or started
        if wanted is None:
            continue
        named = call.body_text("agentId") or facts.pattern_agent(only_text(call.body.get("sessionKey"))) or "default"
        if (outcome := _judge_agent(call, named, {wanted})) is not None:
            yield outcome
        elif key is None and any(mark.agent == named and mark.seq < call.seq for mark in timeline.steps):
            yield undecided(
                call, message="no key, and another session of this agent is open: the request may be its own"
            )
        else:
            yield breach_of("SIG-AGENT-007", "another agent", call, named=named, wanted=wanted)


def keys_are_distinct(recording: Recording) -> Iterator[Outcome]:
    """Different sessions have different keys, and no key is a constant."""
    clean = 0
    for key, hooks in recording.hooks_of.items():
        ids = _first_with("sessionId", hooks)
        projects = _first_with("project", [c for c in hooks if c.operation == facts.START])
        sessions = _sessions_started(recording, hooks)
        mixed: Mapping[str, Call] = {}
        if key.lower() in CONSTANT_KEYS:
            kind = "constant"
        elif len(ids) > 1:
            kind, mixed = "session ids", ids
        elif len(projects) > 1:
            kind, mixed = "projects", projects
        elif len(sessions) > 1 and _are_of_one_project(recording, sessions):
            kind, mixed = "sessions", sessions
        else:
            clean += 1
            continue
        calls, last = list(mixed.values()) or hooks, _quote_last(mixed)
        yield breach_of("SIG-SESS-001", kind, *calls[:20], received=key, key=key, number=len(mixed), last=last)
    if clean and len(recording.hooks_of) >= 2:
        yield PASS
    elif clean:
        yield undecided(message="only one session: whether keys differ is unknown")


def _are_of_one_project(recording: Recording, sessions: Collection[str]) -> bool:
    steps = recording.marks(StepMark)
    return len({step.project for step in steps if step.session in sessions and step.project is not None}) < 2


def _sessions_started(recording: Recording, hooks: Iterable[Call]) -> dict[str, Call]:
    """The first start of each session that marks name, the last session first."""
    started: dict[str, Call] = {}
    for call in hooks:
        step = recording.timeline.asked_by(call) if call.operation == facts.START else None
        if step is None or step.session is None or step.step not in (StepName.START, StepName.PROMPT):
            continue
        if not _has_a_key_of_its_own(recording, step.session, call):
            started.setdefault(step.session, call)
    return dict(reversed(started.items()))


def _has_a_key_of_its_own(recording: Recording, session: str, start: Call) -> bool:
    """Whether the driver reports a start's key as another session's, and the step's session was started with its own.

    A connector may start its session again, late, in the step of another.
    """
    reported = recording.timeline.reported_sessions
    if reported.get(start.key, session) == session:
        return False
    own = (key for key, owner in reported.items() if owner == session and key is not None)
    return any(
        hook.operation == facts.START and hook.seq < start.seq
        for key in own
        for hook in recording.hooks_of.get(key, ())
    )


def _first_with(member: str, hooks: Iterable[Call]) -> dict[str, Call]:
    """The first hook with each text of a member, the last text first, because that is where the key was used anew."""
    by_text: dict[str, Call] = {}
    for call in hooks:
        if (text := call.body_text(member)) is not None:
            by_text.setdefault(text, call)
    return dict(reversed(by_text.items()))


def _quote_last(values: Collection[str]) -> str:
    shown = [repr(value[:60]) for value in reversed([*values])]
    return " and ".join(shown[:2]) + (" …" if len(shown) > 2 else "")


def session_is_not_taken_for_noise(recording: Recording) -> Iterator[Outcome]:
    """Key and project are not of the kind that the daemon takes for a test and discards."""
    for call in recording.hooks:
        member = "cwd" if call.operation == facts.END else "project"
        path = call.body.get(member)
        if isinstance(path, str) and path.startswith(NOISE_PATHS):
            yield breach_of("SIG-SESS-002", "path", call, member=member)
        elif text_or_none(path) is None and call.operation in (facts.END, facts.COMPLETE) and _is_noise(call):
            yield breach_of("SIG-SESS-002", "key or harness", call, received=call.key, noise=", ".join(NOISE_KEYS))
        else:
            yield PASS


def _is_noise(call: Call) -> bool:
    return (call.key or "").lower().startswith(NOISE_KEYS) or call.body.get("harness") == "test"


def harness_is_constant(recording: Recording) -> Iterator[Outcome]:
    """Every call names the harness that is declared."""
    named = [
        (call, harness)
        for call in subjects_of(recording, "SIG-SESS-003")
        if isinstance(harness := call.body.get("harness"), str)
    ]
    if not named:
        return
    expected = recording.declared.harness if recording.declared.harness is not None else named[0][1]
    changes = len({harness for _, harness in named}) > 1
    for call, harness in named:
        yield pass_if(harness == expected) or breach_of(
            "SIG-SESS-003", "changed" if changes else "undeclared", call, expected=expected
        )
