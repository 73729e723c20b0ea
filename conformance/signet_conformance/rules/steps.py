"""What the kit's own marks tell: which step the connector was performing, and when the model's turn began."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from signet_conformance.facts import PROMPT, Call, Recording, text_or_none
from signet_conformance.trace import Mark

_OPENING = frozenset({"start", "resume", "clear"})
_OUTAGES = frozenset({"refuse", "reset", "hang"})


def step_before(recording: Recording, seq: int) -> Mark | None:
    """The last step mark before an exchange number; None in a recording without step marks."""
    steps = recording.marks("step")
    index = bisect_left([mark.seq for mark in steps], seq)
    return steps[index - 1] if index else None


def switched_on(mark: Mark) -> bool:
    """Whether a fault or bypass mark says 'on'. A mark that does not say is one."""
    for name in ("on", "enabled", "active", "value"):
        if name in mark.data:
            return mark.data[name] not in (False, 0, None, "off", "0", "false")
    return mark.data.get("state", "on") not in ("off", "end", "ended", "stop", False)


def outage_lasts(recording: Recording) -> bool:
    """Whether marks say that the daemon was away until the end of the recording."""
    lasting = False
    for mark in recording.trace.marks:
        if mark.name == "outage" or (mark.name == "fault" and str(mark.data.get("kind")) in _OUTAGES):
            lasting = switched_on(mark)
    return lasting


def closed_between(recording: Recording, low: int, high: int) -> bool:
    """Whether marks say that the daemon's listener was closed somewhere between two exchanges.

    What a connector tried then was never recorded.
    """
    closed_at: int | None = None
    for mark in recording.trace.marks:
        if mark.name == "outage" or (mark.name == "fault" and mark.data.get("kind") == "refuse"):
            if switched_on(mark):
                closed_at = mark.seq if closed_at is None else closed_at
            elif closed_at is not None:
                if closed_at < high and mark.seq > low:
                    return True
                closed_at = None
    return closed_at is not None and closed_at < high


def broken_off(recording: Recording) -> bool:
    """Whether a mark says that the connector did not live to perform the rest of its scenario."""
    return any(mark.data.get("error") is not None for mark in recording.marks("scenario_end"))


def is_another_session(recording: Recording, turn: Call, start: Call) -> bool:
    """Whether marks tell that the user went on with the session of `turn` beside the one that `start` begins."""
    old, new = (step_before(recording, call.seq) for call in (turn, start))
    if old is None or new is None or old.data.get("session") in (None, new.data.get("session")):
        return False
    steps = [mark for mark in recording.marks("step") if mark.data.get("session") == old.data["session"]]
    before = [mark for mark in steps if mark.seq < start.seq]
    return before[-1].data.get("step") != "end" and any(mark.seq > start.seq for mark in steps)


def was_silent(recording: Recording, seq: int) -> bool:
    """Whether marks tell that the user said nothing in the session that an exchange belongs to, since it was opened."""
    step = step_before(recording, seq)
    if step is None or step.data.get("session") is None:
        return False
    of_session = [
        str(mark.data.get("step"))
        for mark in recording.marks("step")
        if mark.seq < seq and mark.data.get("session") == step.data["session"]
    ]
    opened = max((place for place, kind in enumerate(of_session) if kind in _OPENING), default=-1)
    return "prompt" not in of_session[opened + 1 :]


@dataclass(frozen=True, slots=True)
class PromptStep:
    """One marked user turn: its text, where it ends, where the model's turn began, the prompts sent in it."""

    text: str
    mark: Mark
    model_seq: int | None
    prompts: tuple[Call, ...]


def prompt_steps(recording: Recording) -> list[PromptStep]:
    """The marked user turns with the prompts that were sent during each."""
    steps = recording.marks("step")
    models = [mark.seq for mark in recording.marks("model")]
    prompts = recording.of(PROMPT)
    found: list[PromptStep] = []
    for index, mark in enumerate(steps):
        text = text_or_none(mark.data.get("text"))
        if mark.data.get("step") != "prompt" or text is None:
            continue
        end = steps[index + 1].seq if index + 1 < len(steps) else float("inf")
        model = next((seq for seq in models if mark.seq < seq < end), None)
        found.append(PromptStep(text, mark, model, tuple(p for p in prompts if mark.seq < p.seq < end)))
    return found


def marked_replies(recording: Recording) -> Mapping[str, str]:
    """What the model replied to each marked prompt text; a text that got several replies is left out."""
    replies: dict[str, set[str]] = {}
    for mark in recording.marks("step"):
        text, reply = text_or_none(mark.data.get("text")), text_or_none(mark.data.get("reply"))
        if text is not None and reply is not None:
            replies.setdefault(text, set()).add(reply)
    return {text: next(iter(found)) for text, found in replies.items() if len(found) == 1}
