"""Requirements on the switch from one session to another."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from signet_conformance.facts import END, PROMPT, START, Call, Recording
from signet_conformance.rules.excuses import lost_between
from signet_conformance.rules.outcome import PASS, Outcome, undecided, warn
from signet_conformance.trace.marks import StepMark


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
    troubled = [c.seq for c in recording.calls if c.fault is not None or c.error is not None]
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
                if (uses[old] and uses[old][-1] > call.seq) or recording.timeline.is_session_beside(turn, call):
                    parallel = True
                    continue
                first_end = next((c for c in recording.later(turn) if c.seq > call.seq), None)
                if first_end is None and recording.trace.growing:
                    yield undecided(turn, call, message="the old session is not ended yet: the recording still grows")
                elif first_end is None:
                    # An end that met nobody listening was never recorded: that it is not made up for is SIG-END-005's.
                    yield _never_ended(turn, call)
                    # Never seen again: each later start would say the same of it.
                    del open_turns[old]
                elif (
                    _any_between(uses[key], call.seq + 1, first_end.seq)
                    and not _any_between(troubled, turn.seq, first_end.seq + 1)
                    # An end that met nobody listening was never recorded; the one that follows makes up for it.
                    and lost_between(recording, turn.seq, call.seq, old) is None
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
            if not (marked and _was_never_let_in(recording, key)):
                open_turns[key] = call
        elif call.operation == END:
            open_turns.pop(key, None)
        previous = call


def _was_never_let_in(recording: Recording, key: str) -> bool:
    """Whether every start of a key was answered 409: after it SIG-HTTP-012 asks for silence, an end included."""
    starts = [hook for hook in recording.hooks_of[key] if hook.operation == START]
    return bool(starts) and all(start.status == 409 for start in starts)


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
