"""Requirements on what a connector does when the daemon is away, slow, failing or odd. Each needs a fault."""

from __future__ import annotations

from collections.abc import Iterator

from signet_conformance.facts import LIFECYCLE, PROMPT, START, Call, Recording
from signet_conformance.rules.outcome import PASS, Outcome, fail, undecided
from signet_conformance.rules.steps import switched_on

GRACE_S = 1.0


def turn_takes_place_without_daemon(recording: Recording) -> Iterator[Outcome]:
    """SIG-FAIL-001."""
    away = [
        c.seq
        for c in recording.calls
        if c.is_hook
        and (c.fault in ("reset", "refuse") or (c.fault is None and c.exchange.error in ("upstream_refused", "upstream_reset")))
    ]
    # Where the listener itself is closed nothing is recorded: the kit's own marks stand for the attempts.
    steps = [mark.seq for mark in recording.marks("step")]
    refused_since: int | None = None
    for mark in recording.marks("fault"):
        if mark.data.get("kind") != "refuse":
            continue
        if switched_on(mark):
            refused_since = mark.seq
        elif refused_since is not None:
            away += [s for s in steps if refused_since < s < mark.seq][:1]
            refused_since = None
    if not away:
        return
    prompts = recording.of(PROMPT, cut=True)
    if any(p.seq > min(away) for p in prompts):
        yield PASS
    else:
        yield undecided(message="the daemon was unreachable, and no prompt follows that would show the next turn")


def slow_call_is_abandoned(recording: Recording) -> Iterator[Outcome]:
    """SIG-FAIL-002."""
    bounds = recording.declared.bounds_s
    for call in recording.of(START, PROMPT, cut=True):
        if call.fault not in ("delay", "slow_body", "hang"):
            continue
        name = "start" if call.operation == START else "prompt"
        bound = bounds.get(name)
        duration = call.t1 - call.t0
        if bound is not None and duration > bound + GRACE_S:
            yield fail(
                call,
                message=f"{call.operation} waits {duration:.1f} s for a slow daemon: the user waits with it",
                pointer="/t1",
                expected=f"given up within {bound:g} s",
                received=f"{duration:.1f} s",
                fold=str(call.operation),
            )
        elif call.exchange.error == "client_closed":
            yield PASS
        else:
            yield undecided(
                call,
                message=f"no bound is declared for {name}" if bound is None else "the delay was shorter than the bound",
            )


def bad_answer_does_not_stop_hooks(recording: Recording) -> Iterator[Outcome]:
    """SIG-FAIL-003."""
    bad = [c for c in recording.calls if c.is_hook and c.delivered and _unusable(c)]
    if not bad:
        return
    last_hook = max((c.seq for c in recording.calls if c.operation in LIFECYCLE), default=-1)
    for call in bad:
        if last_hook > call.seq:
            yield PASS
        else:
            yield undecided(call, message="a bad answer, and no lifecycle hook follows")


def _unusable(call: Call) -> bool:
    if call.status is None:
        return False
    if 500 <= call.status <= 599 or call.fault in ("not_json", "empty"):
        return True
    return call.status == 200 and not call.readable


def bypass_is_silent(recording: Recording) -> Iterator[Outcome]:
    """SIG-FAIL-004."""
    if not any(switched_on(mark) for mark in recording.marks("bypass")):
        return
    hooks = [c for c in recording.calls if c.is_hook]
    if hooks:
        yield fail(
            *hooks[:20],
            message="hook requests are made although the bypass is set",
            pointer="/request/path",
            expected="no request to /api/hooks/",
            received=f"{len(hooks)} requests",
        )
    else:
        yield PASS


def odd_answer_is_tolerated(recording: Recording) -> Iterator[Outcome]:
    """SIG-FAIL-005."""
    odd = [c for c in recording.calls if c.is_hook and c.delivered and _odd(c)]
    if not odd:
        return
    last = max((c.seq for c in recording.calls if c.path.startswith("/api/")), default=-1)
    for call in odd:
        if last > call.seq:
            yield PASS
        else:
            yield undecided(call, message="an odd answer, and no request follows")


def _odd(call: Call) -> bool:
    if call.fault == "shape":
        return True
    answer = call.answer
    return (
        call.status == 200
        and answer is not None
        and any(answer.get(name) for name in ("skipped", "bypassed", "duplicateRuntimePath"))
    )
