"""Requirements on session-end and on what may follow it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from signet_conformance.facts import (
    END,
    PROMPT,
    START,
    Call,
    Recording,
    text_or_none,
)
from signet_conformance.finding import Verdict
from signet_conformance.rules.fields import check_fields
from signet_conformance.rules.outcome import PASS, Outcome, fail, in_body, undecided, warn
from signet_conformance.rules.steps import (
    broken_off,
    end_may_be_lost,
    is_another_session,
    outage_lasts,
    session_of,
    step_before,
    was_silent,
)
from signet_conformance.rules.transcripts import Transcript, pairs_of, transcripts_of
from signet_conformance.rules.turns import Turn
from signet_conformance.trace.marks import StepMark, StepName

_BOUNDARY_REASONS = frozenset(
    {
        "clear",
        "session.deleted",
        "session_branch",
        "session_fork",
        "session_shutdown",
        "session_switch",
        "stale-session-sweep",
    }
)


def end_names_the_started_session(recording: Recording) -> Iterator[Outcome]:
    """An end names the session that was started, by sessionKey or sessionId."""
    starts = recording.of(START)
    any_started = any(c.key is not None for c in starts)
    first_keyless = min((c.seq for c in starts if c.key is None), default=None)
    for call in recording.of(END):
        if call.key is None:
            if first_keyless is not None and first_keyless < call.seq:
                if any_started:
                    yield undecided(call, message="an end without a key, after a start without one")
            elif recording.any_open(call.seq):
                yield fail(
                    call,
                    message="an end without a key while a keyed session is open: its claim lingers for hours",
                    pointer=in_body("sessionKey"),
                    expected="sessionKey or sessionId of the started session",
                    received=call.body.get("sessionKey"),
                )
        elif recording.earlier(call):
            yield PASS
        elif recording.abandoned_since < call.seq:
            yield fail(
                call,
                message="the end names a key that was never used, while an open session is never ended",
                pointer=in_body("sessionKey"),
                expected="the key of the started session",
                received=call.key,
            )
        else:
            yield undecided(call, message="a lone end: its session may have begun before the recording")


def transcript_is_sent(recording: Recording) -> Iterator[Outcome]:
    """An end brings a transcript or the path of one; where marks say that nothing was said, it may be empty."""
    for outcome in check_fields("SIG-END-003")(recording):
        if outcome is not PASS and outcome.verdict is Verdict.WARN and was_silent(recording, outcome.exchanges[0]):
            (end,) = (recording.by_seq[seq] for seq in outcome.exchanges)
            yield undecided(end, message="no transcript, of a session in which nothing was said")
        else:
            yield outcome


def working_directory_is_the_project(recording: Recording) -> Iterator[Outcome]:
    """The working directory of an end is the project that the session was started with."""
    projects: dict[str, str] = {}
    for call in recording.hooks:
        if call.operation == START and call.key is not None:
            project = call.body.get("project")
            if isinstance(project, str) and project.strip():
                projects[call.key] = project
        elif call.operation == END:
            cwd = call.body.get("cwd")
            if text_or_none(cwd) is None:
                yield warn(
                    call,
                    message="session-end without cwd",
                    pointer=in_body("cwd"),
                    expected="cwd: the project of the session",
                    received=cwd,
                )
            elif call.key in projects and cwd != projects[call.key]:
                yield warn(
                    call,
                    message="cwd is not the project that the session was started for",
                    pointer=in_body("cwd"),
                    expected=projects[call.key],
                    received=cwd,
                )
            else:
                yield PASS


def started_key_is_ended(recording: Recording) -> Iterator[Outcome]:
    """Every session key that was started is ended, and nothing uses it afterwards."""
    for hooks in recording.hooks_of.values():
        start = next((c for c in hooks if c.operation == START), None)
        if start is None:
            continue
        last_end = max((i for i, c in enumerate(hooks) if c.operation == END), default=None)
        if last_end is None:
            if outage_lasts(recording):
                yield undecided(start, message="no end, and the daemon was away until the recording's end")
            elif end_may_be_lost(recording, str(start.key)):
                yield undecided(start, message="nothing listened when the user ended it, and nothing was sent since")
            elif broken_off(recording):
                yield undecided(start, message="no end, and the scenario was broken off")
            elif all(call.status == 409 for call in hooks if call.operation == START):
                yield undecided(
                    start, message="another path holds the key: SIG-HTTP-012 asks for silence after its 409"
                )
            else:
                yield warn(
                    start, message="started and never ended", expected="a session-end of this key", fold="no end"
                )
        elif last_end + 1 < len(hooks):
            yield warn(
                *hooks[last_end + 1 : last_end + 11],
                hooks[last_end],
                start,
                message="used again after its last end, and never ended since",
                pointer="/request/path",
                expected="a session-end after the last hook of this key",
                received=hooks[last_end + 1].operation,
                fold="used after end",
            )
        else:
            yield PASS


def end_is_not_repeated(recording: Recording) -> Iterator[Outcome]:
    """A session is not ended twice without another hook in between."""
    for hooks in recording.hooks_of.values():
        ended: Call | None = None
        for call in hooks:
            if call.operation != END:
                ended = None
                continue
            if ended is not None:
                yield warn(
                    call,
                    ended,
                    message="a second end with no hook between: the daemon drops it with its transcript",
                    pointer="/request/path",
                    expected="one end after the last hook of the key",
                    received=END,
                    fold="second end",
                )
            else:
                yield PASS
            if call.accepted and call.answer is not None and not call.answer.get("skipped"):
                ended = call


def nothing_but_a_turn_follows_the_last_end(recording: Recording) -> Iterator[Outcome]:
    """After the last end of a key, only a start or a prompt may use it."""
    for hooks in recording.hooks_of.values():
        last_end = max((i for i, c in enumerate(hooks) if c.operation == END), default=None)
        if last_end is None:
            continue
        stray: list[Call] = []
        for call in hooks[last_end + 1 :]:
            if call.operation in (START, PROMPT):
                break
            stray.append(call)
        if stray:
            yield warn(
                *stray[:20],
                hooks[last_end],
                message=f"{stray[0].operation} after the last end claims an ended session again",
                pointer="/request/path",
                expected="only a start or a prompt after the end",
                received=stray[0].operation,
            )
        else:
            yield PASS


def boundary_reason_is_given(recording: Recording) -> Iterator[Outcome]:
    """The last end of a key gives a reason that closes the session for good."""
    for hooks in recording.hooks_of.values():
        last_turn = max((i for i, c in enumerate(hooks) if c.operation in (START, PROMPT)), default=-1)
        last_bounded = max((i for i, c in enumerate(hooks) if c.operation == END and _is_boundary(c)), default=-1)
        for index, call in enumerate(hooks):
            if call.operation != END:
                continue
            if index < last_turn:
                if not _is_boundary(call):
                    yield PASS
            elif index <= last_bounded:
                yield PASS
            else:
                yield warn(
                    call,
                    message="the last end of its session carries no boundary reason: it counts as a turn's checkpoint",
                    pointer=in_body("reason"),
                    expected=f"one of {', '.join(sorted(_BOUNDARY_REASONS))}",
                    received=call.body.get("reason"),
                )


def _is_boundary(end: Call) -> bool:
    reason = end.body.get("reason")
    return isinstance(reason, str) and reason in _BOUNDARY_REASONS


def clear_means_a_discarded_context(recording: Recording) -> Iterator[Outcome]:
    """An end gives the reason "clear" only when the context is discarded."""
    starts = recording.of(START)
    last_start = starts[-1].seq if starts else -1
    for call in recording.of(END):
        if call.body.get("reason") != "clear":
            continue
        following = next(iter(recording.later(call)), None)
        step = step_before(recording, call.seq)
        if step is not None and step.step == StepName.END and session_of(recording, call.key) == step.session:
            yield fail(
                call,
                message='reason:"clear", of a session that the user ended otherwise: nothing was summarised',
                pointer=in_body("reason"),
                expected="another reason: the context was not discarded",
                received="clear",
            )
        elif following is not None and following.operation != START:
            yield fail(
                call,
                following,
                message=f'reason:"clear", and the session goes on with {following.operation}: nothing was summarised',
                pointer=in_body("reason"),
                expected="a start next, or another reason",
                received="clear",
            )
        elif last_start > call.seq:
            yield PASS
        else:
            yield undecided(call, message='reason:"clear", and no start follows that would show a fresh context')


def old_key_ends_before_the_new_starts(recording: Recording) -> Iterator[Outcome]:
    """Where one session takes the place of another, the old key is ended before the new one is started."""
    yield from _switches(recording)
    yield from _first_starts(recording)


def _first_starts(recording: Recording) -> Iterator[Outcome]:
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


def _switches(recording: Recording) -> Iterator[Outcome]:
    several_agents = len(recording.declared.agents) > 1
    marked = bool(recording.marks(StepMark))
    troubled = [c.seq for c in recording.calls if c.fault is not None or c.exchange.error is not None]
    uses = {k: [c.seq for c in hooks if c.operation != END] for k, hooks in recording.hooks_of.items()}
    # The last turn of each key (its last start or prompt so far) while its session is open, oldest first.
    open_turns: dict[str, Call] = {}
    previous: Call | None = None
    for call in recording.keyed_hooks:
        key = str(call.key)
        if call.operation == START and previous is not None and previous.key != key:
            parallel = False
            unclear: Call | None = None
            for old, turn in list(open_turns.items()):
                if old == key or turn.body.get("harness") != call.body.get("harness"):
                    continue
                if several_agents and turn.agent != call.agent:
                    continue
                if (uses[old] and uses[old][-1] > call.seq) or (marked and is_another_session(recording, turn, call)):
                    parallel = True
                    continue
                first_end = next((c for c in recording.later(turn) if c.seq > call.seq), None)
                if first_end is None:
                    yield _never_ended(turn, call)
                    # Never seen again: each later start would say the same of it.
                    del open_turns[old]
                elif _any_between(uses[key], call.seq + 1, first_end.seq) and not _any_between(
                    troubled, turn.seq, first_end.seq + 1
                ):
                    yield _ended_late(first_end, call)
                else:
                    unclear = first_end
            if parallel:
                yield PASS
            if unclear is not None:
                yield undecided(
                    call, unclear, message="the old session's end follows the new start at once or was in trouble"
                )
        if call.operation in (START, PROMPT):
            open_turns[key] = call
        elif call.operation == END:
            open_turns.pop(key, None)
        previous = call


def _any_between(seqs: Sequence[int], low: int, high: int) -> bool:
    """Whether one of some ascending numbers is at least `low` and below `high`."""
    at = bisect_left(seqs, low)
    return at < len(seqs) and seqs[at] < high


def _never_ended(turn: Call, start: Call) -> Outcome:
    return warn(
        turn,
        start,
        message="a new session starts, and the old one is never ended nor used again",
        expected="session-end of the old key before the new start",
        received=f"start of {start.key!r}",
        fold="never ended",
    )


def _ended_late(end: Call, start: Call) -> Outcome:
    return warn(
        end,
        start,
        message="the old session is ended only after the new one was started and used",
        expected="session-end of the old key before the new start",
        received=f"end after #{start.seq}",
        fold="late end",
    )


def turns_stand_in_order(recording: Recording) -> Iterator[Outcome]:
    """The turns of a transcript stand in the order of the conversation."""
    marked = _MarkedOrder(recording)
    for transcript in transcripts_of(recording):
        call = transcript.call
        if len(transcript.turns) < 2:
            continue
        clash = _reversed_elsewhere(recording, transcript)
        if clash is not None:
            yield warn(
                call,
                clash,
                message="two transcripts of one session show the same two turns in opposite order",
                pointer=in_body("transcript"),
                expected="turns in the order of the conversation",
                fold="opposite order",
            )
        elif (wrong := marked.out_of_order(transcript)) is not None:
            yield warn(
                call,
                message="the transcript shows turns in another order than they took place",
                pointer=in_body("transcript"),
                expected=f"{wrong[0][1][:80]!r} before {wrong[1][1][:80]!r}",
                received="the other way round",
                fold="opposite order",
            )
        elif not marked.turns and _may_be_reversed(transcript.turns):
            yield undecided(call, message="assistant first and user last throughout: the pairs may be reversed")
        else:
            yield PASS


def _reversed_elsewhere(recording: Recording, transcript: Transcript) -> Call | None:
    pairs, once = pairs_of(recording, str(transcript.call.key)), transcript.once
    for turn, following in pairwise(transcript.turns):
        if turn[0] != following[0] and (following, turn) in pairs and turn in once and following in once:
            return next((place.call for place in pairs[following, turn] if place.call is not transcript.call), None)
    return None


class _MarkedOrder:
    """The turns as marks tell them, in the order of the steps; a turn that took place twice says nothing."""

    def __init__(self, recording: Recording) -> None:
        turns: list[Turn] = []
        for mark in recording.marks(StepMark):
            text, reply = text_or_none(mark.text), text_or_none(mark.reply)
            turns += [("user", text)] if text is not None else []
            turns += [("assistant", reply)] if text is not None and reply is not None else []
        seen = Counter(turns)
        self.turns = {turn: place for place, turn in enumerate(turns) if seen[turn] == 1}

    def out_of_order(self, transcript: Transcript) -> tuple[Turn, Turn] | None:
        """The first two turns of a transcript that took place the other way round, in their true order."""
        known = [turn for turn in transcript.turns if turn in self.turns and turn in transcript.once]
        wrong = ((first, second) for first, second in pairwise(known) if self.turns[first] > self.turns[second])
        return next(((second, first) for first, second in wrong), None)


def _may_be_reversed(turns: Sequence[Turn]) -> bool:
    return (
        turns[0][0] == "assistant"
        and turns[-1][0] == "user"
        and all(turn[0] != following[0] for turn, following in pairwise(turns))
    )
