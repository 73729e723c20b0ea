"""The texts that the daemon gave sessions to inject, and the lines that prove that a request holds one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cached_property
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.facts import BOUNDS, PARENT_MEMBERS, PROMPT, START, Call, Recording, once_a_recording
from signet_conformance.files.json_values import objects_in, texts_within
from signet_conformance.rules.model.requests import (
    ModelCall,
    count_lines,
    is_beginning,
    marker_lines,
    padded,
    plain_words,
    says,
    says_left_out,
)
from signet_conformance.rules.model.turns import TOLERANCE_S, ModelTurn, model_requests, session_asking, turns, turns_of
from signet_conformance.trace.marks import StepMark, StepName

_COMPACTING = frozenset({StepName.COMPACT, StepName.COMPACTION_COMPLETE, StepName.CLEAR})
_OK = 200
_OWN_MEMBERS = frozenset({"inject", "memories"})
_STUB = "stub"


class InjectedText(Struct, frozen=True, dict=True):
    """A text that an answer gave to inject. `lines` are those that identify it, as plain words."""

    call: Call
    session: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text as the daemon gave it."""
        return str(self.call.answer_value("inject"))

    @property
    def excerpt(self) -> str:
        """Its beginning, for a message."""
        return self.text.strip()[:200]

    @cached_property
    def memories(self) -> tuple[str, ...]:
        """The lines of a start that are memories; a program may read identity and instructions from files itself."""
        rows = objects_in(self.call.answer_value("memories") if self.call.operation == START else None)
        known = [plain_words(str(row.get("content", ""))) for row in rows]
        return tuple(
            line for line in self.lines if any(says(words, f" {line} ") or says(line, f" {words} ") for words in known)
        )

    @cached_property
    def repeated(self) -> Mapping[str, str]:
        """The lines that another member of the answer holds as well, to that member; memories are no such member."""
        members = {name: value for name, value in (self.call.answer or {}).items() if name not in _OWN_MEMBERS}
        held = {name: padded(texts_within(value, names=False)) for name, value in members.items()}
        return {line: name for name, words in held.items() for line in self.lines if says(line, words)}


@once_a_recording
def injected_texts(recording: Recording) -> Sequence[InjectedText]:
    """The texts that starts and prompts gave to inject, in order; none for sub-agents, whose turns have no marks."""
    return tuple(_distinct_texts(recording))


def turn_of_text(recording: Recording, text: InjectedText) -> ModelTurn | None:
    """The turn that a text was given for: the prompt's own turn, or the next one after a start."""
    after = (turn for turn in turns_of(recording, text.session) if turn.high > text.call.seq)
    turn = next(after, None)
    if turn is None or text.call.operation == START:
        return turn
    return turn if turn.low < text.call.seq and turn.is_contained_in(text.call) else None


def _distinct_texts(recording: Recording) -> Iterator[InjectedText]:
    texts = list(_read_texts(recording))
    lines_of = {
        kind: {line for text in texts if _kind(text.call) == kind for line in text.lines}
        for kind in (START, PROMPT, _STUB)
    }
    for text in texts:
        if (kind := _kind(text.call)) == _STUB:
            continue
        others = lines_of[PROMPT if kind == START else START] | lines_of[_STUB]
        # Both hooks may tell the day, for example: only lines of one hook prove that its text is there.
        own = tuple(line for line in text.lines if line not in others)
        yield replace(text, lines=own) if own else text


def _kind(call: Call) -> str:
    return _STUB if call.is_stub else str(call.operation)


def _read_texts(recording: Recording) -> Iterator[InjectedText]:
    for call in recording.of(START, PROMPT, cut=True):
        arrived = _came_in_time(recording, call) or (call.accepted and not _came_too_late(recording, call))
        inject = call.answer_value("inject") if arrived else None
        if not isinstance(inject, str) or any(map(call.body.get, PARENT_MEMBERS)):
            continue
        session = recording.timeline.session_of(call.key)
        # If others have keys, a hook without a session may have been sent while the connector was loaded.
        if session is None and not recording.keyed_hooks:
            session = recording.timeline.session_at(call.seq)
        lines = _unsaid_lines(recording, inject)
        if session is not None and lines:
            yield InjectedText(call, session, lines)


def _came_too_late(recording: Recording, call: Call) -> bool:
    """Whether the kit held an answer back beyond its declared bound: the reader may have continued before."""
    bound = recording.declared.bounds_s.get(BOUNDS[str(call.operation)])
    return call.fault in ("delay", "slow_body") and bound is not None and call.t1 - call.t0 > bound


def _came_in_time(recording: Recording, call: Call) -> bool:
    """Whether the kit delayed an answer by less than its declared bound, and the connector hung up before it came."""
    bound = recording.declared.bounds_s.get(BOUNDS[str(call.operation)])
    delay_s = (call.exchange.fault or {}).get("delay_s")
    if call.fault != "delay" or call.status != _OK:
        return False
    return bound is not None and isinstance(delay_s, int | float) and delay_s < bound


def _unsaid_lines(recording: Recording, text: str) -> tuple[str, ...]:
    """The lines that identify a text, without those that the user or the model says in a step."""
    return tuple(line for line in marker_lines(text) if not says(line, _said_in_steps(recording)))


@once_a_recording
def _said_in_steps(recording: Recording) -> str:
    return padded(words for step in recording.marks(StepMark) for words in (step.text, step.reply) if words)


def agent_and_project(recording: Recording, session: str) -> tuple[str | None, str | None]:
    """The agent and the project that a session was opened with, by its marks or else its first start."""
    steps = recording.timeline.steps_of(session)
    starts = [call for call in recording.of(START) if recording.timeline.session_of(call.key) == session]
    agent = next((mark.agent for mark in steps if mark.agent), starts[0].agent if starts else None)
    project = next((mark.project for mark in steps if mark.project), starts[0].body.get("project") if starts else None)
    return agent, project


def answers_before(recording: Recording, session: str, before: float) -> str:
    """The daemon's answers to one session before an instant, as plain words: its model may know them."""
    known: dict[str, Sequence[tuple[float, str]]] = recording.memo.setdefault(answers_before, {})
    if session not in known:
        known[session] = tuple(_answers(recording, session))
    return "|".join(text for at, text in known[session] if at <= before)


def _answers(recording: Recording, session: str) -> Iterator[tuple[float, str]]:
    for call in recording.calls:
        if recording.timeline.may_be_of(call, session):
            yield call.t1, padded(texts_within(call.answer, names=False))


_DROPPING = frozenset({StepName.COMPACT, StepName.COMPACTION_COMPLETE, StepName.CLEAR, StepName.START})
"""Steps after which the history of a session is gone from its requests."""


class Presence(Enum):
    """How much of a text a request holds."""

    PRESENT = auto()
    PARTIAL = auto()
    AMBIGUOUS = auto()
    """The lines that it holds may have another source."""
    ABSENT = auto()
    UNDECIDABLE = auto()
    """It would hold the lines of the text even without the text."""


class ExpectedText(Struct, frozen=True):
    """A text that a request should hold.

    `lines` are those that identify it, `unique` those that can come from no other source, `memories` those that
    matter most, if there are any. `repeated` are those in other members of the answer, which a connector may have used.
    """

    text: str
    lines: tuple[str, ...]
    unique: tuple[str, ...]
    memories: tuple[str, ...] = ()
    repeated: Mapping[str, str] = {}

    def presence_in(self, request: ModelCall) -> Presence:
        """How much of the text a request holds. Half of its lines are enough, or one beside a note of an omission."""
        if not self.unique and self._holds(request, self.lines):
            return Presence.UNDECIDABLE
        here = count_lines(self.unique, request.everything)
        if here.absent:
            if self._is_cut_in(request):
                return Presence.PARTIAL
            return Presence.AMBIGUOUS if self._may_be_there(request) else Presence.ABSENT
        if self._is_shortened_in(request):
            return Presence.PRESENT
        if not here.mostly:
            return Presence.ABSENT if self.member_in(request) is not None else Presence.PARTIAL
        return Presence.PRESENT if not self.memories or self._holds(request, self.memories) else Presence.AMBIGUOUS

    def member_in(self, request: ModelCall) -> str | None:
        """The member of the answer whose lines a request holds in place of the text; None without one."""
        own = tuple(line for line in self.unique if line not in self.repeated)
        if not own or self._holds(request, own) or self._is_cut_in(request):
            return None
        return next((name for line, name in self.repeated.items() if self._holds(request, (line,))), None)

    def describe(self, request: ModelCall, name: str) -> str:
        """Say why it is undecided whether a request holds the text, which messages call `name`."""
        here = count_lines(self.unique, request.everything)
        if here.absent and self._is_cut_in(request):
            return f"only the beginning of {name} reaches the model"
        if here.mostly:
            return f"the model gets no memory of {name}, only lines that a program may know by itself"
        return f"only {here.present} of {here.total} lines of {name} reach the model"

    def _may_be_there(self, request: ModelCall) -> bool:
        """Whether a request holds other lines of the text, and too few are left to call it missing."""
        if not self._holds(request, self.lines):
            return False
        decisive = any(line in self.unique for line in self.memories) or 2 * len(self.unique) >= len(self.lines)
        return not decisive or self._is_shortened_in(request)

    def _is_cut_in(self, request: ModelCall) -> bool:
        """Return True if a request shows a line cut by its host: the beginning, and nothing after it.

        Tool results and replies do not count, since they may begin alike.
        """
        given = (part.text for part in request.parts if part.role not in ("assistant", "result"))
        shown = [plain_words(line) for text in given for line in text.splitlines()]
        return any(is_beginning(words, line) for line in self.unique for words in shown)

    def _is_shortened_in(self, request: ModelCall) -> bool:
        return any(says_left_out(part.text, self.lines, self.text) for part in request.parts)

    @staticmethod
    def _holds(request: ModelCall, lines: Sequence[str]) -> bool:
        return any(says(line, request.everything) for line in lines)


def expect_text(
    recording: Recording, session: str, call: Call, text: str, lines: tuple[str, ...], memories: tuple[str, ...] = ()
) -> ExpectedText:
    """Choose the lines of a call's text that prove its presence: not those that the model was shown without that call.

    A program may know by itself what is in the system text of each session. Where no other line is left, those that
    the daemon had given to each session count, unless they are identity.
    """
    before = _requests_before(recording, session, call)
    new = [line for line in lines if not any(says(line, request.everything) for request in before)]
    unique = [line for line in new if not _is_common(recording, line)]
    if not unique:
        candidates = memories if call.operation == START else new
        unique = [line for line in new if line in candidates and _was_given(recording, line)]
    return ExpectedText(text, lines, tuple(unique), memories)


def expect_injected(recording: Recording, text: InjectedText) -> ExpectedText:
    """Choose the lines of an injected text that prove its presence."""
    expected = expect_text(recording, text.session, text.call, text.text, text.lines, text.memories)
    return replace(expected, repeated={line: name for line, name in text.repeated.items() if line in expected.unique})


def _requests_before(recording: Recording, session: str, call: Call) -> Sequence[ModelCall]:
    """Return the requests before a call: those before the first step, and a session's own from its newest turn on."""
    steps = recording.timeline.steps_of(session, call.seq)
    dropped = max((recording.mark_times[mark.seq] for mark in steps if mark.step in _DROPPING), default=-inf)
    early = [each for each in model_requests(recording) if each.t0 < call.t0]
    before_steps = [each for each in early if session_asking(recording, each) is None]
    own = [each for each in early if session_asking(recording, each) == session and each.t0 >= dropped]
    main = {each.seq for turn in turns_of(recording, session) for each in turn.main}
    newest = max((each.t0 for each in own if each.seq in main), default=-inf)
    return [*before_steps, *(each for each in own if each.t0 >= newest)]


def _is_common(recording: Recording, line: str) -> bool:
    """Whether the system texts of all sessions hold a line, in a recording of several."""
    sessions = _main_requests(recording).values()
    return len(sessions) > 1 and all(any(says(line, each.system) for each in requests) for requests in sessions)


def _was_given(recording: Recording, line: str) -> bool:
    """Whether the daemon had given a line to each session before its system text held it."""
    for session, requests in _main_requests(recording).items():
        first = next(each for each in requests if says(line, each.system))
        if not says(line, answers_before(recording, session, first.t0 + TOLERANCE_S)):
            return False
    return True


@once_a_recording
def _main_requests(recording: Recording) -> Mapping[str, Sequence[ModelCall]]:
    """The main requests of each session's turns."""
    requests: dict[str, list[ModelCall]] = {}
    for turn in turns(recording):
        if turn.session is not None and turn.main:
            requests.setdefault(turn.session, []).extend(turn.main)
    return requests


def compacted_at(recording: Recording, session: str) -> float:
    """The `seq` from which a summary in the session's history may quote earlier injections; inf without a summary."""
    steps = recording.timeline.steps_of(session)
    return next((mark.seq for mark in steps if mark.step in _COMPACTING), inf)
