"""What the kit's own marks tell: which step the connector was performing, and when the model's turn began."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from signet_conformance.facts import PROMPT, Call, Recording, text_or_none
from signet_conformance.trace.marks import (
    FaultMark,
    KitMark,
    ModelMark,
    OutageMark,
    ScenarioEndMark,
    StepMark,
    StepName,
    Switch,
)

_OPENING = frozenset({StepName.START, StepName.RESUME, StepName.CLEAR})
_OUTAGES = frozenset({"refuse", "reset", "hang"})


def step_before(recording: Recording, seq: int) -> StepMark | None:
    """The last step mark before an exchange number; None in a recording without step marks."""
    steps = recording.marks(StepMark)
    index = bisect_left(steps, seq, key=lambda mark: mark.seq)
    return steps[index - 1] if index else None


def _takes_daemon_away(mark: KitMark, kinds: Collection[str | None]) -> TypeGuard[Switch]:
    """Whether a mark switches on or off an outage, or a fault of one of these kinds."""
    return isinstance(mark, OutageMark) or (isinstance(mark, FaultMark) and mark.kind in kinds)


def outage_lasts(recording: Recording) -> bool:
    """Whether marks say that the daemon was away until the end of the recording."""
    outages = [mark for mark in recording.kit_marks if _takes_daemon_away(mark, _OUTAGES)]
    return bool(outages) and outages[-1].is_on


def closed_between(recording: Recording, low: int, high: int) -> bool:
    """Whether marks say that the daemon's listener was closed somewhere between two exchanges.

    What a connector tried then was never recorded.
    """
    closed_at: int | None = None
    for mark in recording.kit_marks:
        if _takes_daemon_away(mark, ("refuse",)):
            if mark.is_on:
                closed_at = mark.seq if closed_at is None else closed_at
            elif closed_at is not None:
                if closed_at < high and mark.seq > low:
                    return True
                closed_at = None
    return closed_at is not None and closed_at < high


def broken_off(recording: Recording) -> bool:
    """Whether a mark says that the connector did not live to perform the rest of its scenario."""
    return any(end.error is not None for end in recording.marks(ScenarioEndMark))


def is_another_session(recording: Recording, turn: Call, start: Call) -> bool:
    """Whether marks tell that the user went on with the session of `turn` beside the one that `start` begins."""
    old, new = (step_before(recording, call.seq) for call in (turn, start))
    if old is None or new is None or old.session in (None, new.session):
        return False
    steps = [mark for mark in recording.marks(StepMark) if mark.session == old.session]
    before = [mark for mark in steps if mark.seq < start.seq]
    return before[-1].step != StepName.END and any(mark.seq > start.seq for mark in steps)


def was_silent(recording: Recording, seq: int) -> bool:
    """Whether marks tell that the user said nothing in the session that an exchange belongs to, since it was opened."""
    step = step_before(recording, seq)
    if step is None or step.session is None:
        return False
    of_session = [mark.step for mark in recording.marks(StepMark) if mark.seq < seq and mark.session == step.session]
    opened = max((place for place, name in enumerate(of_session) if name in _OPENING), default=-1)
    return StepName.PROMPT not in of_session[opened + 1 :]


@dataclass(frozen=True, slots=True)
class PromptStep:
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
        if mark.step != StepName.PROMPT or text is None:
            continue
        end = steps[index + 1].seq if index + 1 < len(steps) else float("inf")
        model = next((seq for seq in models if mark.seq < seq < end), None)
        turns.append(PromptStep(text, mark, model, tuple(p for p in prompts if mark.seq < p.seq < end)))
    return turns


def marked_replies(recording: Recording) -> Mapping[str, str]:
    """What the model replied to each marked prompt text; a text that got several replies is left out."""
    replies: dict[str, set[str]] = {}
    for mark in recording.marks(StepMark):
        text, reply = text_or_none(mark.text), text_or_none(mark.reply)
        if text is not None and reply is not None:
            replies.setdefault(text, set()).add(reply)
    return {text: next(iter(given)) for text, given in replies.items() if len(given) == 1}
