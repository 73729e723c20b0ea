"""Requirements on session-start: order, repeats, sub-agents, one session in place of another."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from signet_conformance.facts import COMPLETE, END, PARENT_MEMBERS, PROMPT, START, Call, Recording, text_or_none
from signet_conformance.files.json_values import text_in
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.excuses import lost_between
from signet_conformance.rules.fields import check_fields
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_if, subjects_of, undecided
from signet_conformance.trace.glance import normalised_key
from signet_conformance.trace.marks import FaultMark, StepMark, StepName

CLAIM_ONLY_SINCE = "0.182.2"
ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")
"""The beginning of an absolute path: on POSIX, on a Windows drive, or on another machine."""


def start_comes_first(recording: Recording) -> Iterator[Outcome]:
    """The first hook of a session key is its start."""
    for hooks in recording.hooks_of.values():
        first = hooks[0]
        if first.operation == START:
            yield PASS
        elif first.operation == END:
            yield undecided(first, message="a lone end: its session may have begun before the recording")
        elif first.operation != PROMPT:
            yield breach_of("SIG-START-004", "another hook first", first, received=first.operation)
        else:
            following = hooks[1] if len(hooks) > 1 else None
            if following is None and recording.may_go_on:
                yield undecided(first, message="a prompt comes first, and its start may follow")
                continue
            yield _judge_prompt_first(first, following, excused=recording.at_least("0.123.15"))


def _judge_prompt_first(first: Call, following: Call | None, *, excused: bool) -> Outcome:
    """Judge a prompt before its start. If `excused`, it conforms if the session was unknown and its start follows."""
    known = first.answer_value("sessionKnown") if first.accepted else None
    if known is not False:
        return undecided(first, message="a prompt comes first, and no answer says that the session was unknown")
    is_started = following is not None and following.operation == START
    if excused and is_started:
        return PASS
    return breach_of(
        "SIG-START-004",
        "prompt first",
        first,
        *(() if following is None else (following,)),
        received=None if following is None else following.operation,
        why="this release asks for the start before it" if is_started else "no session-start follows at once",
    )


def key_is_sent(recording: Recording) -> Iterator[Outcome]:
    """A start names its session; if the harness knew of none according to marks, a start without a key is undecided."""
    for outcome in check_fields("SIG-START-002")(recording):
        if outcome is not PASS and outcome.verdict is Verdict.WARN:
            start = recording.by_seq[outcome.exchanges[0]]
            if recording.timeline.is_sessionless(start):
                yield undecided(start, message="no key, in a turn for which the harness knows no session")
                continue
        yield outcome


def dedupe_key(call: Call) -> tuple[object, ...]:
    """The values by which the daemon recognises a repeated start of a session key: agent, harness and project."""
    return call.agent, call.body.get("harness"), text_in(call.body.get("project"))


def project_is_the_folder(recording: Recording) -> Iterator[Outcome]:
    """A start names the folder that the user works in, by an absolute path."""
    for outcome in check_fields("SIG-START-003")(recording):
        # With step marks, only the loop below lets a start pass.
        if isinstance(outcome, Finding) or not recording.timeline.steps:
            yield outcome
    for call in recording.of(START) if recording.timeline.steps else ():
        project = call.body.get("project")
        if not isinstance(project, str) or not ABSOLUTE.match(project):
            continue
        folder = recording.timeline.folder_of(call)
        if folder is None:
            yield undecided(call, message="no mark says in which folder the host ran, or which folder it passed on")
        else:
            yield pass_if(is_folder(project, folder)) or breach_of(
                "SIG-START-003", "another folder", call, folder=folder
            )


def start_is_not_repeated(recording: Recording) -> Iterator[Outcome]:
    """An open session is not started again with the same agent, harness, project and key."""
    for hooks in recording.hooks_of.values():
        # The last start whose context is still there, and whether the daemon has forgotten it.
        last: Call | None = None
        forgotten = False
        for call in hooks:
            if call.operation == START:
                clear = call.body.get("source") == "clear"
                if last is None or clear:
                    yield PASS
                elif not forgotten and _is_repeat(recording, last, call):
                    yield breach_of("SIG-START-005", "started again", call, last, source=call.body.get("source"))
                elif (why := _why_injected_again(recording, last, call)) is not None:
                    yield breach_of("SIG-START-005", "everything again", call, last, why=why)
                else:
                    yield PASS
                if call.accepted:
                    last, forgotten = call, False
                elif clear:
                    last = None
            elif call.operation == END or (call.operation == COMPLETE and call.accepted):
                last = None
            elif call.operation == PROMPT and call.accepted:
                forgotten = forgotten or call.answer_value("sessionKnown") is False


def _is_repeat(recording: Recording, last: Call, call: Call) -> bool:
    """Whether a start is answered as a repeat of the last one, and no restart of the host explains it."""
    is_repeat = call.accepted and call.is_stub and dedupe_key(last) == dedupe_key(call)
    return is_repeat and not _host_restarted(recording, last, call)


def _why_injected_again(recording: Recording, last: Call, call: Call) -> str | None:
    """The event after which a start injects everything again into a session that goes on; None if it does not.

    That is a restart of the daemon, which has forgotten the start before, or a restart of the host, after which the
    connector names itself or its folder differently. Before claimOnly was known, no other start was possible.
    """
    if not recording.at_least(CLAIM_ONLY_SINCE) or not call.accepted or call.body.get("claimOnly") is True:
        return None
    inject = call.answer_value("inject")
    if call.is_stub or not text_or_none(inject):
        return None
    is_same = dedupe_key(last) == dedupe_key(call)
    if is_same and any(mark.is_restart and last.seq < mark.seq < call.seq for mark in recording.marks(FaultMark)):
        return "after a restart of the daemon"
    if not is_same and _host_restarted(recording, last, call):
        return "after a restart of its host, with another agent, harness or project than before,"
    return None


def _host_restarted(recording: Recording, last: Call, call: Call) -> bool:
    """Whether the host was restarted between two starts of a key, so that its connector cannot know of the first."""
    return any(step.seq < call.seq for step in restarts_after(recording, last))


def restarts_after(recording: Recording, call: Call) -> Sequence[StepMark]:
    """The restarts of the host after a call, among the steps of its session."""
    timeline, session = recording.timeline, recording.timeline.session_of(call.key)
    restarts = (step for step in timeline.steps_of(session) if step.step == StepName.RESTART_HOST)
    return [step for step in restarts if session and step.seq > call.seq and not timeline.was_skipped(step)]


def native_agent_id_stays_apart(recording: Recording) -> Iterator[Outcome]:
    """The harness's own id of a sub-agent goes into harnessAgentId, never into agentId."""
    declared = set(recording.declared.agents)
    native = {n for c in recording.calls if (n := c.body_text("harnessAgentId")) is not None}
    # The native id may be the agentId of a call in any session.
    for call in subjects_of(recording.whole if native else recording, "SIG-START-007"):
        agent = call.body_text("agentId")
        foreign = agent is not None and agent not in declared
        if not call.names_sub_agent and not (foreign and agent in native):
            continue
        if foreign and not declared:
            yield undecided(
                call, message="no agent is declared: a native id cannot be distinguished from a Signet agent"
            )
        else:
            yield pass_if(not foreign) or breach_of("SIG-START-007", "native id", call, agents=sorted(declared))


def claim_only_is_recovery(recording: Recording) -> Iterator[Outcome]:
    """The claimOnly flag is sent only with a runtime path, and only for a key that was started before."""
    for call in recording.of(START):
        if call.body.get("claimOnly") is not True:
            continue
        started = call.key is not None and any(c.operation == START for c in recording.earlier(call))
        if call.runtime_path is None:
            yield breach_of("SIG-START-008", "no runtime path", call)
        else:
            yield pass_if(started) or breach_of("SIG-START-008", "unstarted key", call, received=call.key)


def old_key_ends_before_the_new_starts(recording: Recording) -> Iterator[Outcome]:
    """If a session replaces another, the old key is ended before the new one is started."""
    yield from _Replacements(recording).outcomes()
    yield from _starts_after_another_end(recording)


def _starts_after_another_end(recording: Recording) -> Iterator[Outcome]:
    """Yield a PASS for the first start of a key if the last hook of another key before it is an end."""
    started: set[str] = set()
    last: Call | None = None
    last_of_another: Call | None = None
    for call in recording.keyed_hooks:
        key = str(call.key)
        if call.operation == START and key not in started:
            before = last if last is not None and last.key != key else last_of_another
            if started and before is not None and before.operation == END:
                yield PASS
            started.add(key)
        if last is not None and last.key != key:
            last_of_another = last
        last = call


class _Replacements:
    """The starts of a recording after a hook of another key, each compared with the sessions that are open then."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._several_agents = len(recording.declared.agents) > 1
        self._troubled = [c.seq for c in recording.calls if c.fault is not None or c.error is not None]
        self._uses = {k: [c.seq for c in hooks if c.operation != END] for k, hooks in recording.hooks_of.items()}
        self._open_turns: dict[str, Call] = {}
        """The last turn of each key (its last start or prompt so far) while its session is open, oldest first."""

    def outcomes(self) -> Iterator[Outcome]:
        marked = bool(self._recording.marks(StepMark))
        previous: Call | None = None
        for call in self._recording.keyed_hooks:
            key = str(call.key)
            if call.operation == START and previous is not None and previous.key != key:
                yield from self._judge(call)
            if call.operation in (START, PROMPT):
                # A session whose every start was refused must stay silent, even at its end, so none is due.
                if not (marked and was_always_refused(self._recording.hooks_of[key])):
                    self._open_turns[key] = call
            elif call.operation == END:
                self._open_turns.pop(key, None)
            previous = call

    def _judge(self, start: Call) -> Iterator[Outcome]:
        """Judge a start by the end of each session that it may have replaced."""
        parallel = False
        unclear: Call | None = None
        for old, turn in self._sessions_left_by(start):
            if self._uses[old][-1] > start.seq or self._recording.timeline.is_session_beside(turn, start):
                parallel = True
                continue
            # Only ends follow: the last other hook of the old session came before the start.
            end = next((call for call in self._recording.later(turn) if call.seq > start.seq), None)
            if end is None:
                yield self._judge_unended(old, turn, start)
            elif _works_inside(self._recording, start, old, end):
                yield undecided(start, end, message="the new session is a sub-agent's, and ended before the old one")
            elif self._is_late(old, turn, start, end):
                yield breach_of("SIG-END-010", "late end", end, start, start=start)
            else:
                unclear = end
        if parallel:
            yield PASS
        if unclear is not None:
            message = "the old session's end follows the new start at once, or was disturbed"
            yield undecided(start, unclear, message=message)

    def _sessions_left_by(self, start: Call) -> Sequence[tuple[str, Call]]:
        """The open sessions of the same harness under other keys; of several agents, only those of the same agent."""
        return [
            (old, turn)
            for old, turn in self._open_turns.items()
            if old != start.key
            and turn.body.get("harness") == start.body.get("harness")
            and (turn.agent == start.agent or not self._several_agents)
        ]

    def _judge_unended(self, old: str, turn: Call, start: Call) -> Outcome:
        if self._recording.may_go_on:
            return undecided(turn, start, message="the old session is not ended yet: the recording is not complete")
        if was_always_refused(self._recording.hooks_of[old]):
            message = "every start of the old key was answered 409: SIG-HTTP-012 requires silence after it"
            return undecided(turn, start, message=message)
        # Never seen again: each later start would repeat the same finding.
        del self._open_turns[old]
        # An end for which nothing listened was never recorded; SIG-END-005 judges whether it is made up for.
        return breach_of("SIG-END-010", "never ended", turn, start, start=start)

    def _is_late(self, old: str, turn: Call, start: Call, end: Call) -> bool:
        """Whether the new session was used before the old one ended, and nothing was in the way of an end."""
        return (
            _any_between(self._uses[str(start.key)], start.seq + 1, end.seq)
            and not _any_between(self._troubled, turn.seq, end.seq + 1)
            # An end for which nothing listened was never recorded; the next one makes up for it.
            and lost_between(self._recording, turn.seq, start.seq, old) is None
        )


def _works_inside(recording: Recording, start: Call, old: str, end: Call) -> bool:
    """Whether a start is that of a sub-agent of an open session, and has ended before it: it replaces no session.

    A sub-agent with an id at its harness need not name the session for which it works.
    """
    is_sub_agent = start.body_text("harnessAgentId") is not None
    parents = [parent for name in PARENT_MEMBERS if (parent := start.body_text(name)) is not None]
    later = recording.later(start)
    ended = any(hook.operation == END for hook in later)
    is_inside = old in map(normalised_key, parents) if parents else is_sub_agent
    return is_inside and ended and all(hook.seq < end.seq for hook in later)


def was_always_refused(hooks: Sequence[Call]) -> bool:
    """Whether every answered start of a key was answered 409; SIG-HTTP-012 then asks for silence, even at the end."""
    answers = [hook.status for hook in hooks if hook.operation == START and hook.delivered]
    return bool(answers) and all(status == 409 for status in answers)


def _any_between(seqs: Sequence[int], low: int, high: int) -> bool:
    """Whether one of some ascending numbers is at least `low` and below `high`."""
    at = bisect_left(seqs, low)
    return at < len(seqs) and seqs[at] < high


_REAL_ROOT = "/private"
"""What macOS puts before the resolved paths below /tmp, /var and /etc."""


def is_folder(sent: str, folder: str) -> bool:
    """Whether a path names a folder, resolved or with a slash at its end; a different case names another folder."""
    is_on_a_drive = not folder.startswith("/")
    given, wanted = (_normal(path.replace("\\", "/") if is_on_a_drive else path) for path in (sent, folder))
    return given == wanted or given == _REAL_ROOT + wanted or wanted == _REAL_ROOT + given


def _normal(path: str) -> str:
    return posixpath.normpath(path.strip())
