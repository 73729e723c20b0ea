"""What the daemon gave a session to put before the model: the texts that its hooks were answered with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.facts import PROMPT, START, Call, Recording
from signet_conformance.rules.model.wording import marker_lines, padded, plain, says
from signet_conformance.trace.marks import StepMark

_STUB = "stub"
_PARENTS = ("parentSessionKey", "parentKey", "parentId", "parentID")


class Given(Struct, frozen=True, dict=True):
    """A text that an answer gave to inject. `lines` are those that it is known by, in plain wording."""

    call: Call
    session: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text as the daemon gave it."""
        return str((self.call.answer or {}).get("inject", ""))

    @cached_property
    def memories(self) -> tuple[str, ...]:
        """Of a start the lines that are memories: identity and instructions a program may read from their files."""
        rows = (self.call.answer or {}).get("memories") if self.call.operation == START else None
        contents = [plain(str(row.get("content", ""))) for row in _objects(rows)]
        known = [words for words in contents if words]
        return tuple(
            line for line in self.lines if any(says(words, f" {line} ") or says(line, f" {words} ") for words in known)
        )


def given(recording: Recording) -> Sequence[Given]:
    """What starts and prompts were given, in order; without what a sub-agent was, whose turns no mark names."""
    known: tuple[Given, ...] | None = recording.memo.get(given)
    if known is None:
        known = tuple(_given(recording))
        recording.memo[given] = known
    return known


def _given(recording: Recording) -> Iterator[Given]:
    texts = list(_texts_given(recording))
    lines_of = {
        kind: {line for text in texts if _kind(text.call) == kind for line in text.lines}
        for kind in (START, PROMPT, _STUB)
    }
    for text in texts:
        if (kind := _kind(text.call)) == _STUB:
            continue
        others = lines_of[PROMPT if kind == START else START] | lines_of[_STUB]
        # Both hooks tell the day, say: only what is its own tells that a text is there.
        own = tuple(line for line in text.lines if line not in others)
        yield replace(text, lines=own) if own else text


def _kind(call: Call) -> str:
    return _STUB if _is_stub(call) else str(call.operation)


def _texts_given(recording: Recording) -> Iterator[Given]:
    for call in recording.of(START, PROMPT, cut=True):
        inject = (call.answer or {}).get("inject") if call.accepted else None
        if not isinstance(inject, str) or any(call.body.get(name) for name in _PARENTS):
            continue
        session = recording.timeline.session_of(call.key)
        if session is None and recording.keyed_hooks:
            continue  # of no session: a connector may ask while it is loaded
        if session is None:
            step = recording.timeline.step_at(call.seq)
            session = None if step is None else step.session
        lines = _own_lines(recording, inject)
        if session is not None and lines:
            yield Given(call, session, lines)


def _is_stub(call: Call) -> bool:
    """Whether a start was answered that all was said before: the harness has it, and may leave the reminder out."""
    answer = call.answer or {}
    marked = str(answer.get("inject", "")).startswith("[memory active")
    return call.operation == START and not answer.get("memories") and marked


def _own_lines(recording: Recording, text: str) -> tuple[str, ...]:
    """The lines of a text by which it is known, without those that the user or the model says in a step."""
    said: str | None = recording.memo.get(_own_lines)
    if said is None:
        steps = recording.marks(StepMark)
        said = padded(words for step in steps for words in (step.text, step.reply) if words)
        recording.memo[_own_lines] = said
    return tuple(line for line in marker_lines(text) if not says(line, said))


def agent_and_project(recording: Recording, session: str) -> tuple[str | None, str | None]:
    """The agent and the project that a session was opened with, by its marks or else its first start."""
    steps = [mark for mark in recording.marks(StepMark) if mark.session == session]
    starts = [call for call in recording.of(START) if recording.timeline.session_of(call.key) == session]
    agent = next((mark.agent for mark in steps if mark.agent), starts[0].agent if starts else None)
    project = next((mark.project for mark in steps if mark.project), starts[0].body.get("project") if starts else None)
    return agent, project


def heard_by(recording: Recording, session: str, before: float) -> str:
    """What the daemon had said to one session by an instant, in plain wording: its model may know that."""
    known: dict[str, Sequence[tuple[float, str]]] = recording.memo.setdefault(heard_by, {})
    if session not in known:
        known[session] = tuple(_answers(recording, session))
    return "|".join(text for at, text in known[session] if at <= before)


def _answers(recording: Recording, session: str) -> Iterator[tuple[float, str]]:
    for call in recording.calls:
        step = recording.timeline.step_at(call.seq)
        ours = recording.timeline.session_of(call.key) if call.key is not None else None
        if session in (ours, None if step is None else step.session) and call.exchange.response is not None:
            yield call.t1, padded(_strings(call.answer))


def _objects(value: object) -> list[dict[str, object]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
