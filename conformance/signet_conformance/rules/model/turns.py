"""Which request to the model belongs to which turn of the user, by the marks that both recordings share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from msgspec import Struct

from signet_conformance.facts import Recording, text_or_none
from signet_conformance.rules.model.asked import Asked, asked
from signet_conformance.rules.model.wording import plain, says
from signet_conformance.trace.marks import StepMark, StepName, marks_of

TOLERANCE_S = 0.05
"""How far apart two instants of the two recorders may be told in the wrong order."""


class Turn(Struct, frozen=True, dict=True):
    """One turn of the user, with what the model was asked meanwhile.

    `low` and `high` are the numbers between which it lies in the daemon's recording; at `over` the kit may already have
    switched a fault for the next step. `began` is when it was given, in seconds. `asked` are all requests from then on
    until the next step, of whatever session and for whatever purpose; `main` are those of the turn itself, without
    titles, summaries and warm-ups.
    """

    step: StepMark
    text: str
    low: int
    over: int
    high: float
    began: float
    asked: tuple[Asked, ...]
    main: tuple[Asked, ...]

    @property
    def session(self) -> str | None:
        """The session, as marks name it."""
        return self.step.session

    @property
    def unread(self) -> bool:
        """Whether the turn's own request may be among those of which no text was recorded."""
        return any(not request.whole for request in self.asked)


def model_requests(recording: Recording) -> Sequence[Asked]:
    """The requests to the model in order, in the time of the daemon's recording."""
    known: tuple[Asked, ...] | None = recording.memo.get(model_requests)
    if known is None:
        model = recording.model
        shift = 0.0 if model is None else recording.trace.instant(model, 0.0)
        exchanges = () if model is None else model.exchanges
        known = tuple(each for exchange in exchanges if (each := asked(exchange, shift)) is not None)
        recording.memo[model_requests] = known
    return known


def turns(recording: Recording) -> Sequence[Turn]:
    """The user's turns in order. None where the two recordings do not have the same steps."""
    known: tuple[Turn, ...] | None = recording.memo.get(turns)
    if known is None:
        known = tuple(_turns(recording))
        recording.memo[turns] = known
    return known


def session_asking(recording: Recording, request: Asked) -> str | None:
    """The session in whose step a request to the model came; None before the first step."""
    steps = [] if recording.model is None else list(marks_of(recording.model, StepMark))
    return next((mark.session for mark in reversed(steps) if mark.seq < request.seq), None)


def turns_of(recording: Recording, session: str | None) -> Sequence[Turn]:
    """The turns of one session."""
    return [turn for turn in turns(recording) if turn.session == session]


def _turns(recording: Recording) -> Iterator[Turn]:
    model = recording.model
    steps = recording.marks(StepMark)
    beside = [] if model is None else list(marks_of(model, StepMark))
    if model is None or [_name(mark) for mark in steps] != [_name(mark) for mark in beside]:
        return
    skipped = recording.timeline.skipped
    times = {mark.seq: mark.t for mark in recording.trace.marks}
    requests = model_requests(recording)
    for place, (step, other) in enumerate(zip(steps, beside, strict=True)):
        text = text_or_none(step.text)
        if step.step != StepName.PROMPT or text is None or step.index in skipped:
            continue
        last = place
        # The model's tools are steps of their own, and belong to the turn in which they are called.
        while last + 1 < len(steps) and (steps[last + 1].step, steps[last + 1].session) == (
            StepName.TOOL,
            step.session,
        ):
            last += 1
        high = steps[last + 1].seq if last + 1 < len(steps) else inf
        until = beside[last + 1].seq if last + 1 < len(beside) else inf
        during = tuple(each for each in requests if other.seq < each.seq < until)
        over = recording.timeline.end_of(steps[last])
        yield Turn(step, text, step.seq, over, high, times[step.seq], during, tuple(_main(during, text)))


def _name(mark: StepMark) -> tuple[object, ...]:
    return mark.index, mark.step, mark.session


def _main(requests: Sequence[Asked], text: str) -> list[Asked]:
    """The requests that hold what the user said; where some of them offer tools, those alone.

    Titles and topics are asked for with the user's text, too, and without tools.
    """
    words = plain(text)
    about = [each for each in requests if each.whole and words and says(words, each.users)]
    return [each for each in about if each.tools] or about
