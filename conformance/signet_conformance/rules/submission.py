"""The requirement that each of the user's turns is submitted, unless something prevents it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from signet_conformance.facts import HEALTH, PROMPT, START, Call, Recording, plain, text_or_none
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, undecided
from signet_conformance.trace.marks import SentMark, StepMark, StepName

_REFUSED = (401, 403, 409)
_SLOW_PROBE_S = 0.5
_SLOW_TURN_S = 1.0
"""Connectors wait one or two seconds for a probe. If the probe alone took half a second, or the turn a second until the
answer to the probe in it, the machine may be too slow."""


def every_turn_is_submitted(recording: Recording) -> Iterator[Outcome]:
    """Each user turn that takes place in a session is submitted, unless something prevents it."""
    if PROMPT not in (recording.declared.capabilities or ()):
        return
    timeline = recording.timeline
    prompts = recording.of(PROMPT, cut=True)
    given = [(step, _prompts_in(recording, prompts, step)) for step in _prompts_given(recording)]
    any_submitted = any(_may_be_of(recording, inside, step) for step, inside in given)
    failed: set[tuple[str | None, str]] = set()
    for step, inside in given:
        text, end = plain(step.text), timeline.next_step(step)
        is_repeat = (step.session, text) in failed
        if text_or_none(step.reply) is None:
            failed.add((step.session, text))
        if timeline.was_skipped(step) or not _could_be_submitted(recording, step):
            continue
        if _may_be_of(recording, inside, step):
            yield PASS
        elif recording.may_last(_last_step(recording, step)):
            yield undecided(message=f"step {step.index}: it may still be submitted: the recording is not complete")
        elif not text or text.startswith("/") or is_repeat:
            yield undecided(message=f"step {step.index}: a turn that the host may not pass on")
        elif any(timeline.are_related(timeline.session_of(prompt.key), step.session) for prompt in inside):
            # A sub-agent's turn is submitted as its parent's, or the other way round.
            yield undecided(message=f"step {step.index}: submitted under the key of a related session")
        elif _is_a_sub_agent_without_hooks(recording, step):
            yield undecided(message=f"step {step.index}: a turn of a sub-agent for which the connector sends nothing")
        elif _may_be_of(recording, [p for p in prompts if p.seq > end and plain(p.text) == text], step):
            yield undecided(message=f"step {step.index}: its text is submitted later")
        elif not recording.calls:
            yield undecided(message=f"step {step.index}: the recording holds no request at all")
        elif timeline.was_stopped(step.seq, end):
            yield undecided(
                message=f"step {step.index}: the host stopped a handler, perhaps because the machine was busy"
            )
        elif (waited_s := _time_beyond_bounds(recording, step, end)) is not None:
            why = f"the turn took {waited_s:.1f} s, so the connector may have given up at its declared bound"
            yield undecided(message=f"step {step.index}: {why}; the machine may be too slow")
        elif (probed := _slow_probe(recording, step, end)) is not None:
            yield undecided(message=f"step {step.index}: {probed}; the machine may be too slow")
        elif not any_submitted:
            yield undecided(message="no prompt of the trace is submitted; only a whole run can judge that")
        else:
            yield _judge_missing_prompt(recording, inside, step, end)


def _is_a_sub_agent_without_hooks(recording: Recording, step: StepMark) -> bool:
    """Whether a step's session is a sub-agent's without any hook; a model wrote its prompts, not the user."""
    timeline = recording.timeline
    hooks = (hook for hook in recording.hooks if timeline.session_of(hook.key) == step.session)
    return timeline.is_sub_agent(step.session) and not any(hooks)


def _time_beyond_bounds(recording: Recording, step: StepMark, end: float) -> float | None:
    """The seconds that a turn took, if longer than the connector waits for start or prompt; else None."""
    declared = recording.declared.bounds_s
    bounds = [declared[name] for name in (StepName.START, StepName.PROMPT) if name in declared]
    times = [mark.t for mark in recording.trace.marks if step.seq <= mark.seq <= end]
    took_s = times[-1] - times[0]
    return took_s if bounds and took_s >= min(bounds) else None


def _slow_probe(recording: Recording, step: StepMark, end: float) -> str | None:
    """Say which probe the connector may have given up before or in a turn, though no fault was on; else None."""
    calls = [call for call in recording.calls if call.seq < end]
    before = next((call for call in reversed(calls) if call.seq < step.seq), None)
    if before is not None and _is_plain_probe(before) and (took_s := before.t1 - before.t0) >= _SLOW_PROBE_S:
        return f"the probe before it took {took_s:.1f} s, so the connector may have given it up"
    if calls and calls[-1].seq > step.seq and _is_plain_probe(calls[-1]):
        # On a busy machine a probe may be late before it is on its way.
        took_s = calls[-1].t1 - next(mark.t for mark in recording.trace.marks if mark.seq == step.seq)
        if took_s >= _SLOW_TURN_S:
            return f"the probe in it took {took_s:.1f} s, so the connector may have given it up"
    sent = [mark for mark in recording.marks(SentMark) if mark.seq < end and mark.requests]
    asked_in = recording.timeline.step_at(sent[-1].seq) if sent else None
    if asked_in is None or any(recording.timeline.calls_in(asked_in)):
        return None
    is_probe = any(request[:2] == ("GET", "/health") for request in sent[-1].requests)
    return "a probe was sent and did not arrive" if is_probe else None


def _is_plain_probe(call: Call) -> bool:
    return call.operation == HEALTH and call.fault is None


def turns_to_submit(recording: Recording) -> int:
    """The number of the user's turns that could be submitted, including those that the driver skipped."""
    turns = ((step, plain(step.text)) for step in _prompts_given(recording))
    return sum(_could_be_submitted(recording, step) for step, text in turns if text and not text.startswith("/"))


def _could_be_submitted(recording: Recording, step: StepMark) -> bool:
    """Whether no fault was on in a turn, and nothing prevented the start of its session."""
    timeline = recording.timeline
    disturbed = timeline.switches.any_between(step.seq, timeline.end_of(_last_step(recording, step)))
    spoilt = any(call.fault is not None for call in timeline.calls_in(step))
    return not disturbed and not spoilt and _could_start(recording, step)


def _judge_missing_prompt(recording: Recording, inside: Sequence[Call], step: StepMark, end: float) -> Outcome:
    """The outcome of a turn without a prompt of its session; a prompt of another session may have its text."""
    expected = f"user-prompt-submit with {(step.text or '')[:200]!r}"
    elsewhere = next((prompt for prompt in inside if plain(prompt.text) == plain(step.text)), None)
    if elsewhere is not None:
        if not any(recording.timeline.session_of(start.key) == step.session for start in recording.of(START, cut=True)):
            # The place of a start shows whose key it is. This session may have been started late, in a step of
            # another, or share its key (SIG-SESS-001).
            return undecided(elsewhere, message=f"step {step.index}: no start shows the key of its session")
        return breach_of(
            "SIG-PROMPT-011", "another session", elsewhere, received=elsewhere.key, step=step, expected=expected
        )
    before = [call for call in recording.calls if call.seq < end]
    return breach_of("SIG-PROMPT-011", "never submitted", *before[-1:], step=step, expected=expected)


def _prompts_given(recording: Recording) -> Sequence[StepMark]:
    return [step for step in recording.timeline.steps if step.step == StepName.PROMPT]


def _prompts_in(recording: Recording, prompts: Sequence[Call], step: StepMark) -> Sequence[Call]:
    """The prompts that were sent in a step, including cut ones."""
    until = recording.timeline.next_step(step)
    return [prompt for prompt in prompts if step.seq < prompt.seq < until]


def _may_be_of(recording: Recording, prompts: Sequence[Call], step: StepMark) -> bool:
    """Whether any of the prompts may belong to the session of a step."""
    return any(recording.timeline.session_of(prompt.key) in (None, step.session) for prompt in prompts)


def _last_step(recording: Recording, step: StepMark) -> StepMark:
    """The last step of a prompt's turn: a connector may submit the prompt after the model's tool calls."""
    own = (mark for mark in recording.timeline.steps_of(step.session) if mark.seq > step.seq)
    return [step, *takewhile(lambda mark: mark.step == StepName.TOOL, own)][-1]


def _could_start(recording: Recording, step: StepMark) -> bool:
    """Whether nothing prevented the start of a step's session, by its latest start."""
    timeline = recording.timeline
    before = (call for call in recording.of(START, cut=True) if call.seq < step.seq)
    starts = [call for call in before if timeline.session_of(call.key) == step.session]
    opened = timeline.last_opening(step)
    if not starts:
        return not any(timeline.was_disturbed_in(mark) for mark in timeline.openings(step))
    if opened is not None and starts[-1].seq <= opened[0]:
        # Opened again but not started again: a start that was refused must not be repeated (SIG-HTTP-010), and a start
        # was not possible if nothing answered at that time.
        refused = any(call.status in _REFUSED for call in starts)
        return starts[-1].accepted and not refused and not timeline.switches.any_between(*opened)
    return starts[-1].accepted
