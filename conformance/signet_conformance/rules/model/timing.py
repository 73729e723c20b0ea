"""When the model is asked: after the prompt hook, and in spite of a daemon that is away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from statistics import median

from signet_conformance.facts import PROMPT, Recording, plain
from signet_conformance.finding import Verdict
from signet_conformance.rules.model.outcomes import breach, remarked, unclear
from signet_conformance.rules.model.turns import TOLERANCE_S, Turn, turns
from signet_conformance.rules.outcome import PASS, Outcome

CLOCK_S = 0.001
"""What is lost of an instant where it is written down."""
GRACE_S = 1.0
"""What a turn may take beyond the declared bounds, as with SIG-FAIL-002."""


def prompt_hook_comes_first(recording: Recording) -> Iterator[Outcome]:
    """The prompt hook has ended when the model is asked, or its declared bound has passed."""
    bound = recording.declared.bounds_s.get("prompt")
    for turn in turns(recording):
        hooks = [c for c in recording.of(PROMPT) if turn.low < c.seq < turn.high]
        hook = next((c for c in hooks if plain(c.text or "") == plain(turn.text)), None)
        if hook is None or not turn.main:
            continue
        first = turn.main[0]
        early = hook.t1 - first.t0
        # Both recorders read one clock, and a harness that waits cannot ask before its own hook has begun, however
        # quick everything is; only the end of an answer may be noted late.
        began = first.t0 < hook.t0 - CLOCK_S
        if not began and (early <= TOLERANCE_S or (bound is not None and first.t0 >= hook.t0 + bound - TOLERANCE_S)):
            yield PASS
        elif bound is None and first.t0 >= hook.t0:
            yield unclear(hook, asked=[first], message="how long the harness waits for the prompt hook is not declared")
        else:
            yield breach(
                hook,
                asked=[first],
                message="the model is asked before the prompt hook has "
                + ("ended" if first.t0 >= hook.t0 else "begun"),
                expected="the answer of the prompt hook before the model is asked"
                + ("" if bound is None else f", or {bound:g} s of waiting for it"),
                received=f"asked {early:.2f} s before its end",
                fold="asked too early",
            )


def turn_is_answered_without_the_daemon(recording: Recording) -> Iterator[Outcome]:
    """The model answers the user's turn while the daemon is away, and no later than the declared bounds allow."""
    away = [turn for turn in turns(recording) if _is_away(recording, turn)]
    undisturbed = _undisturbed(recording)
    bounds = recording.declared.bounds_s
    for turn in away:
        wait = _waited(turn)
        if wait is None:
            usually = any(_waited(other) is not None for other in undisturbed)
            yield _unanswered(turn, usual=usually, growing=recording.trace.growing)
            continue
        # A program takes its time for the first turn of a session, whatever the daemon does.
        alike = [other for other in undisturbed if _is_first(recording, other) is _is_first(recording, turn)]
        usual = [other_wait for other in alike if (other_wait := _waited(other)) is not None]
        late = wait - median(usual) if usual else None
        allowed = bounds["prompt"] + bounds.get("start", 0.0) + GRACE_S if "prompt" in bounds else None
        if late is not None and allowed is not None and late > allowed:
            yield breach(
                asked=turn.main,
                message=f"step {turn.step.index}: with the daemon away the model is asked {late:.1f} s later than else",
                expected=f"at most {allowed:g} s, by the declared bounds",
                received=round(late, 2),
                fold="late",
            )
        elif late is not None:
            yield remarked(asked=turn.main, message=f"with the daemon away asked {max(late, 0):.1f} s later than else")
        else:
            yield PASS


def _unanswered(turn: Turn, *, usual: bool, growing: bool) -> Outcome:
    what = f"step {turn.step.index}: with the daemon away the model "
    if growing and turn.high == inf:
        return unclear(asked=turn.asked, message=f"{what}may still be asked: the recording grows")
    if not usual or turn.unread:
        return unclear(asked=turn.asked, message=f"{what}may have been asked what was not recorded")
    return breach(
        asked=turn.asked,
        message=f"{what}{'does not answer' if turn.main else 'is never asked'} in the user's turn",
        expected=f"an answer to {turn.text[:200]!r}",
        received=None,
        fold="no answer",
        verdict=Verdict.FAIL,
    )


def _waited(turn: Turn) -> float | None:
    """Seconds from the user's turn to the model's first request that was answered; None when no request was."""
    first = next((request for request in turn.main if request.answered), None)
    return None if first is None else max(first.t0 - turn.began, 0.0)


def _is_away(recording: Recording, turn: Turn) -> bool:
    """Whether nobody listened at the daemon's address somewhere in the turn."""
    lost = (
        call.error in ("upstream_refused", "upstream_reset") or call.fault in ("refuse", "reset", "hang")
        for call in recording.calls
        if turn.low < call.seq < turn.over
    )
    return recording.timeline.switches.closed_between(turn.low, turn.over) or any(lost)


def _is_first(recording: Recording, turn: Turn) -> bool:
    """Whether the user says something in the session for the first time: many a program starts only then."""
    return not any(other.session == turn.session and other.low < turn.low for other in turns(recording))


def _undisturbed(recording: Recording) -> Sequence[Turn]:
    return [turn for turn in turns(recording) if not recording.timeline.switches.any_between(turn.low, turn.over)]
