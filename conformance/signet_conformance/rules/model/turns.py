"""The user's turns with their requests to the model, by the marks of both recordings; rules on when it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from statistics import median

from msgspec import Struct

from signet_conformance.facts import PROMPT, Call, Recording, once_a_recording, plain, text_or_none
from signet_conformance.rules.model.requests import ModelCall, plain_words, read_request, says
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_harness, unclear
from signet_conformance.rules.transcripts import SHORTEST_TEXT
from signet_conformance.trace.marks import StepMark, StepName, marks_of

TOLERANCE_S = 0.05
"""Two instants of the two recorders that are closer together may be in the wrong order."""


class ModelTurn(Struct, frozen=True, dict=True):
    """One turn of the user, with the requests to the model meanwhile.

    Its calls have numbers between `low` and `high` in the daemon's recording; at `over` the kit may already have
    switched a fault for the next step. `began` is when it was given, in seconds. `asked` are all requests from then
    on until the next step, of whatever session and for whatever purpose; `main` are those of the turn itself, without
    titles, summaries and warm-ups.
    """

    step: StepMark
    text: str
    low: int
    over: int
    high: float
    began: float
    asked: tuple[ModelCall, ...]
    main: tuple[ModelCall, ...]

    @property
    def session(self) -> str | None:
        """The session, as marks name it."""
        return self.step.session

    @property
    def stopped(self) -> bool:
        """Whether the user stopped it before the model was asked."""
        return self.step.other.get("stopped") is True

    @property
    def unread(self) -> bool:
        """Whether the turn's own request may be among those of which no text was recorded."""
        return any(not request.whole for request in self.asked)

    def is_contained_in(self, call: Call) -> bool:
        """Whether a prompt contains the words of this turn; a host may put other text around them."""
        sent, said = plain(call.text), plain(self.text)
        return sent == said or (len(said) >= SHORTEST_TEXT and said in sent)


@once_a_recording
def model_requests(recording: Recording) -> Sequence[ModelCall]:
    """The requests to the model in order, in the time of the daemon's recording."""
    model = recording.model
    if model is None:
        return ()
    shift = recording.trace.instant(model, 0.0)
    return tuple(each for exchange in model.exchanges if (each := read_request(exchange, shift)) is not None)


@once_a_recording
def turns(recording: Recording) -> Sequence[ModelTurn]:
    """The user's turns in order. None where the two recordings do not have the same steps."""
    return tuple(each for each in turns_with_tools(recording) if each.step.step == StepName.PROMPT)


@once_a_recording
def turns_with_tools(recording: Recording) -> Sequence[ModelTurn]:
    """The user's turns in order, and the tool steps after another kind of step, which have no text."""
    return tuple(_turns(recording))


def session_asking(recording: Recording, request: ModelCall) -> str | None:
    """The session in whose step a request to the model came; None before the first step."""
    steps = [] if recording.model is None else list(marks_of(recording.model, StepMark))
    return next((mark.session for mark in reversed(steps) if mark.seq < request.seq), None)


def turns_of(recording: Recording, session: str | None) -> Sequence[ModelTurn]:
    """The turns of one session."""
    return [turn for turn in turns(recording) if turn.session == session]


def asking_turns(recording: Recording, session: str | None) -> Sequence[ModelTurn]:
    """The turns of one session without those that the user stopped before the model was asked."""
    return [turn for turn in turns_of(recording, session) if not turn.stopped]


def _turns(recording: Recording) -> Iterator[ModelTurn]:
    model = recording.model
    steps = recording.marks(StepMark)
    model_steps = [] if model is None else list(marks_of(model, StepMark))
    if model is None or [_name(mark) for mark in steps] != [_name(mark) for mark in model_steps]:
        return
    requests = model_requests(recording)
    in_turn = -1
    for place, (step, other) in enumerate(zip(steps, model_steps, strict=True)):
        text = text_or_none(step.text)
        is_said = step.step == StepName.PROMPT and text is not None and not recording.timeline.was_skipped(step)
        if not is_said and (step.step != StepName.TOOL or place <= in_turn):
            continue
        last = place
        # The model's tools are steps of their own, and belong to the turn in which they are called.
        for mark in steps[place + 1 :]:
            if mark.step != StepName.TOOL or mark.session != step.session:
                break
            last += 1
        in_turn = last
        high = steps[last + 1].seq if last + 1 < len(steps) else inf
        until = model_steps[last + 1].seq if last + 1 < len(model_steps) else inf
        during = tuple(each for each in requests if other.seq < each.seq < until)
        over = recording.timeline.end_of(steps[last])
        main = during if not is_said or text is None else tuple(_main(during, text))
        yield ModelTurn(step, text or "", step.seq, over, high, recording.mark_times[step.seq], during, main)


def _name(mark: StepMark) -> tuple[object, ...]:
    return mark.index, mark.step, mark.session


def _main(requests: Sequence[ModelCall], text: str) -> list[ModelCall]:
    """The requests that hold what the user said; only those with tools, if there are any.

    Titles and topics are asked for with the user's text, too, and without tools.
    """
    words = plain_words(text)
    about = [each for each in requests if each.whole and words and says(words, each.users)]
    return [each for each in about if each.tools] or about


CLOCK_S = 0.001
"""The precision of a written instant."""
GRACE_S = 1.0
"""Time that a turn may take beyond the declared bounds, as with SIG-FAIL-002."""


def prompt_hook_comes_first(recording: Recording) -> Iterator[Outcome]:
    """The prompt hook has ended when the model is asked, or its declared bound has passed."""
    bound = recording.declared.bounds_s.get("prompt")
    for turn in turns(recording):
        hooks = [c for c in recording.of(PROMPT) if turn.low < c.seq < turn.high]
        hook = next(filter(turn.is_contained_in, hooks), None)
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
            what = "ended" if first.t0 >= hook.t0 else "begun"
            wait = "" if bound is None else f", or {bound:g} s of waiting"
            yield breach_of("SIG-MODEL-006", "asked too early", hook, asked=[first], what=what, wait=wait, early=early)


def turn_is_answered_without_the_daemon(recording: Recording) -> Iterator[Outcome]:
    """The model answers the user's turn while the daemon is away, and no later than the declared bounds allow."""
    away = [turn for turn in turns(recording) if _is_away(recording, turn) and not turn.stopped]
    undisturbed = [
        turn for turn in turns(recording) if not recording.timeline.switches.any_between(turn.low, turn.over)
    ]
    bounds = recording.declared.bounds_s
    for turn in away:
        wait = _wait_s(turn)
        if wait is None:
            usually = any(_wait_s(other) is not None for other in undisturbed)
            yield _unanswered(turn, usual=usually, goes_on=recording.may_go_on)
            continue
        # A program takes its time for the first turn of a session, whatever the daemon does.
        alike = [other for other in undisturbed if _is_first(recording, other) is _is_first(recording, turn)]
        usual = [other_wait for other in alike if (other_wait := _wait_s(other)) is not None]
        late = wait - median(usual) if usual else None
        allowed = bounds["prompt"] + bounds.get("start", 0.0) + GRACE_S if "prompt" in bounds else None
        if late is not None and allowed is not None and late > allowed:
            yield breach_of(
                "SIG-MODEL-008", "late", asked=turn.main, received=round(late, 2), turn=turn, late=late, allowed=allowed
            )
        elif late is not None:
            yield pass_harness(
                asked=turn.main,
                message=f"while the daemon does not run, asked {max(late, 0):.1f} s later than otherwise",
            )
        else:
            yield PASS


def _unanswered(turn: ModelTurn, *, usual: bool, goes_on: bool) -> Outcome:
    what = f"step {turn.step.index}: while the daemon does not run, the model "
    if goes_on and turn.high == inf:
        return unclear(asked=turn.asked, message=f"{what}may still be asked: the recording is not complete")
    if not usual or turn.unread:
        return unclear(asked=turn.asked, message=f"{what}may have been asked in a request that was not recorded")
    problem = "does not answer" if turn.main else "is never asked"
    return breach_of("SIG-MODEL-008", "no answer", asked=turn.asked, turn=turn, problem=problem, said=turn.text[:200])


def _wait_s(turn: ModelTurn) -> float | None:
    """Seconds from the user's turn to the model's first request that was answered; None when no request was."""
    first = next((request for request in turn.main if request.is_answered), None)
    return None if first is None else max(first.t0 - turn.began, 0.0)


def _is_away(recording: Recording, turn: ModelTurn) -> bool:
    """Whether the daemon was unreachable during a part of the turn."""
    lost = (
        call.error in ("upstream_refused", "upstream_reset") or call.fault in ("refuse", "reset", "hang")
        for call in recording.calls
        if turn.low < call.seq < turn.over
    )
    return recording.timeline.switches.closed_between(turn.low, turn.over) or any(lost)


def _is_first(recording: Recording, turn: ModelTurn) -> bool:
    """Whether the user says something in the session for the first time: many a program starts only then."""
    return not any(other.session == turn.session and other.low < turn.low for other in turns(recording))
