"""What each call of a recording belongs to: its step, its session, its turn, and what disturbed it.

This follows from the kit's own marks: `sessions` has steps and sessions; this module has the switches, the user's
turns, and what each call belongs to. Without step marks, no call belongs to a step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from functools import cached_property
from math import inf

from msgspec import Struct

from signet_conformance.facts.calls import LIFECYCLE, PROMPT, Call, plain, text_or_none
from signet_conformance.facts.sessions import OPENING, Sessions
from signet_conformance.facts.steps import steps_for
from signet_conformance.trace import marks
from signet_conformance.trace.fault_kinds import AWAY, FAULT_KINDS
from signet_conformance.trace.marks import FaultMark, HandlerMark, KitMark, OutageMark, StepMark, StepName, Switch

Times = Sequence[tuple[int, float]]
"""Pairs of numbers between which something was on, in order; the end is infinite if it was never switched off."""


class Switches:
    """When something was on, according to the marks of a recording. Questions are about a time between two numbers."""

    def __init__(self, kit_marks: Iterable[KitMark]) -> None:
        self._marks = [mark for mark in kit_marks if isinstance(mark, Switch)]
        self._any = self._times(lambda _: True)
        self._slow = self._times(_is_slow)
        self._closed = self._times(_closes_listener)

    def any_at(self, seq: int) -> bool:
        """Whether anything was on at an exchange."""
        place = bisect_left(self._any, seq, key=lambda time: time[0])
        return place > 0 and seq < self._any[place - 1][1]

    def any_between(self, low: float, high: float) -> bool:
        """Whether anything was on at some time between."""
        return _overlap(self._any, low, high)

    def slow_between(self, low: float, high: float) -> bool:
        """Whether answers came slowly, or not at all, at some time between."""
        return _overlap(self._slow, low, high)

    def closed_between(self, low: float, high: float) -> bool:
        """Whether the daemon's listener was closed at some time between, so that attempts then were not recorded."""
        return _overlap(self._closed, low, high)

    def on_between(self, low: int, high: int) -> Sequence[Switch]:
        """The marks that had switched on what was on at some time between."""
        on: dict[str, Switch] = {}
        for mark in self._marks[: bisect_left(self._marks, high, key=lambda each: each.seq)]:
            if mark.is_on:
                on[_identity(mark)] = mark
            elif mark.seq < low:
                on.pop(_identity(mark), None)
        return [*on.values()]

    @cached_property
    def outage_lasts(self) -> bool:
        """Whether the daemon was away until the end of the recording."""
        return any(until == inf for _, until in self._times(_takes_daemon_away))

    @cached_property
    def was_bypassed(self) -> bool:
        """Whether the user set the connector's bypass at any time."""
        return any(isinstance(mark, marks.BypassMark) and mark.is_on for mark in self._marks)

    @cached_property
    def refusals(self) -> Times:
        """When the recorder's listener was closed by a fault."""
        return self._times(lambda mark: isinstance(mark, FaultMark) and mark.kind == "refuse")

    @cached_property
    def troubles(self) -> Times:
        """When a fault of the recorder or an outage was on."""
        return self._times(lambda mark: isinstance(mark, OutageMark) or _is_fault(mark))

    @cached_property
    def interruptions(self) -> Times:
        """When a fault, an outage or a restart of the daemon was on."""
        return self._times(lambda mark: isinstance(mark, OutageMark | FaultMark))

    def _times(self, counts: Callable[[Switch], bool]) -> Times:
        times: list[tuple[int, float]] = []
        since = 0
        on: set[str] = set()
        for mark in self._marks:
            if mark.is_on and counts(mark):
                since = since if on else mark.seq
                on.add(_identity(mark))
            elif not mark.is_on and _identity(mark) in on:
                on.discard(_identity(mark))
                if not on:
                    times.append((since, mark.seq))
        return [*times, (since, inf)] if on else times


def _identity(mark: Switch) -> str:
    """The values that distinguish one thing that is on from others."""
    return mark.identity if isinstance(mark, FaultMark) else mark.NAME


def _is_fault(mark: Switch) -> bool:
    return isinstance(mark, FaultMark) and not mark.is_restart


def _takes_daemon_away(mark: Switch) -> bool:
    return isinstance(mark, OutageMark) or (isinstance(mark, FaultMark) and mark.kind in AWAY | {"hang"})


def _is_slow(mark: Switch) -> bool:
    kind = FAULT_KINDS.get(mark.kind or "") if isinstance(mark, FaultMark) else None
    return kind is not None and kind.slow


def _overlap(times: Iterable[tuple[int, float]], low: float, high: float) -> bool:
    return any(since < high and until > low for since, until in times)


def _closes_listener(mark: Switch) -> bool:
    return isinstance(mark, OutageMark) or (isinstance(mark, FaultMark) and mark.kind == "refuse")


class Turn(Struct, frozen=True, dict=True):
    """One turn of the user: its step, its text, where the model's turn began, and the prompts sent in it."""

    text: str
    step: StepMark
    model_seq: int | None
    prompts: tuple[Call, ...]

    @cached_property
    def plain_text(self) -> str:
        """The text without the parts that a connector may leave out."""
        return plain(self.text)

    def matches(self, call: Call) -> bool:
        """Whether a prompt holds the words of this turn and no others."""
        return plain(call.text) == self.plain_text


class Timeline(Sessions):
    """The steps, sessions and turns of a recording, and the times at which it was disturbed."""

    def __init__(
        self, kit_marks: Sequence[KitMark], calls: Sequence[Call], hooks_of: Callable[[], Mapping[str, Sequence[Call]]]
    ) -> None:
        super().__init__(kit_marks, calls, hooks_of)
        self.switches = Switches(kit_marks)

    # Steps that ask for calls, and sessions side by side

    def start_was_disturbed(self, step: StepMark) -> bool:
        """Whether a fault, an outage, a restart or the bypass met the last opening of a step's session."""
        opened = self.last_opening(step)
        return opened is not None and self.switches.any_between(*opened)

    def asked_by(self, call: Call) -> StepMark | None:
        """The step that asked for a call: the one in which it came, or an earlier one of its own session.

        An earlier one only if the driver reported the owner of the key: a connector that sends from a queue may be
        late.
        """
        now = self.step_at(call.seq)
        owner, asking = self.reported_sessions.get(call.key), _kinds_asking_for(call)
        if owner is None:
            return now
        last = next((step for step in reversed(self.steps_of(owner, call.seq)) if step.step in asking), None)
        # Most hooks come in the step that asked for them, and need no further look.
        if last is None or last is now:
            return now
        between = (hook for hook in self._hooks_of()[str(call.key)] if last.seq < hook.seq < call.seq)
        return now if any(hook.operation == call.operation for hook in between) else last

    def own_step(self, call: Call) -> StepMark | None:
        """The last step before a call. If the driver reported another session for the key, the last step of that one.

        Skipped steps of that session do not count: they caused nothing that could be late.
        """
        now, owner = self.step_at(call.seq), self.reported_sessions.get(call.key)
        if owner is None or now is None or now.session == owner:
            return now
        own = self.steps_of(owner, call.seq)
        return next((step for step in reversed(own) if not self.was_skipped(step)), now)

    def is_asked_for_twice(self, earlier: Call, call: Call) -> bool:
        """Whether the user asked for the same again: two steps that ask for it, with a call in each."""
        before, after = (self.step_at(each.seq) for each in (earlier, call))
        if before is None or after is None or before.seq == after.seq or _has_only_words_of_first(call, before, after):
            return False
        # Tools may call operations that are no hooks, and a connector may look something up at every turn.
        is_of_any_step = call.operation not in LIFECYCLE
        return {before.step, after.step} <= _kinds_asking_for(call) or (is_of_any_step and before.step == after.step)

    def is_session_beside(self, turn: Call, start: Call) -> bool:
        """Whether the user continued the session of `turn` beside the one that `start` begins."""
        old, new = self.asked_by(turn), self.asked_by(start)
        if old is None or new is None or old.session in (None, new.session):
            return False
        steps = self.steps_of(old.session)
        before = [step for step in steps if step.seq < start.seq]
        return before[-1].step != StepName.END and steps[-1].seq > start.seq

    # Turns

    @cached_property
    def turns(self) -> Sequence[Turn]:
        """The user's turns, in order."""
        models = [mark.seq for mark in self._marks_of(marks.ModelMark)]
        prompts = [call for call in self._calls if call.operation == PROMPT and not call.cut]
        turns: list[Turn] = []
        for step, following in zip(self.steps, [*self.steps[1:], None], strict=False):
            text = text_or_none(step.text)
            if step.step not in (StepName.PROMPT, StepName.SESSIONLESS_PROMPT) or text is None:
                continue
            end = inf if following is None else following.seq
            model = next((seq for seq in models if step.seq < seq < end), None)
            turns.append(Turn(text, step, model, tuple(p for p in prompts if step.seq < p.seq < end)))
        return turns

    def turn_of(self, call: Call) -> Turn | None:
        """The turn in which a prompt was sent."""
        return next((turn for turn in self.turns if any(call.seq == prompt.seq for prompt in turn.prompts)), None)

    # Disturbances

    def is_disturbed(self, call: Call) -> bool:
        """Whether a fault met the call, it ended with an error, or something was switched on meanwhile."""
        return call.fault is not None or call.error is not None or self.switches.any_at(call.seq)

    def was_disturbed_in(self, step: StepMark) -> bool:
        """Whether a fault, an outage, a restart or the bypass was on at some time in a step."""
        return self.switches.any_between(step.seq, self.end_of(step))

    def was_closed_in(self, step: StepMark) -> bool:
        """Whether the daemon's listener was closed at some time in a step."""
        return self.switches.closed_between(step.seq, self.end_of(step))

    @cached_property
    def handlers(self) -> Sequence[tuple[StepMark | None, HandlerMark]]:
        """The handlers that did not end well, each with its step."""
        handlers = ((self.step_at(mark.seq), mark) for mark in self._marks_of(HandlerMark))
        return [
            (None if step is None or mark.index not in (None, step.index) else step, mark) for step, mark in handlers
        ]

    def _stopped(self) -> Iterator[tuple[StepMark, HandlerMark]]:
        """The handlers that the host stopped at their timeout."""
        return ((step, mark) for step, mark in self.handlers if step is not None and mark.outcome == marks.TIMED_OUT)

    def was_stopped_in(self, step: StepMark) -> bool:
        """Whether the host stopped a handler at its timeout in a step, for whatever reason."""
        return any(stopped_in == step for stopped_in, _ in self._stopped())

    def was_stopped(self, low: float, high: float, key: str | None = None) -> bool:
        """Whether the host stopped a handler at its timeout between two numbers, although answers came at once.

        On a busy machine the time may be over before a program has sent anything. With `key`, only handlers of that
        key's session count.
        """
        session = self.session_of(key)
        return any(
            step.seq < high and handler.seq > low and not self.switches.slow_between(step.seq, handler.seq)
            for step, handler in self._stopped()
            if session is None or step.session in (None, session)
        )


def _has_only_words_of_first(call: Call, before: StepMark, after: StepMark) -> bool:
    """Whether a call has the words of the first of two steps, and not those of the second, in which it is sent."""
    text = plain(call.text or text_or_none(call.body.get("content")) or text_or_none(call.body.get("query")))
    first, second = (plain(_words_of(step)) for step in (before, after))
    return first != "" and first in text and second not in text


def _words_of(step: StepMark) -> str | None:
    """The user's words in a step, or the text that a tool is to store or to look for."""
    given = step.arguments or {}
    return step.text or text_or_none(given.get("content")) or text_or_none(given.get("query"))


def _kinds_asking_for(call: Call) -> AbstractSet[str]:
    """The kinds of steps that cause such a call.

    Operations other than hooks are called when a session is opened, as a memory server asks for its tools when it
    starts.
    """
    return steps_for(str(call.operation)) if call.operation in LIFECYCLE else OPENING
