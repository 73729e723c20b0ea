"""Differences between the requests of a played host to its model and those of the program that it plays.

Both performed the same scenario with the same connector. The texts that the daemon injected are compared in the first
request of each turn, and also in the last if the model called tools: their role, and their place relative to the user's
message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from signet_conformance.facts import Recording
from signet_conformance.rules.model.given import injected_texts
from signet_conformance.rules.model.requests import ModelCall, count_lines, padded, plain_words, says
from signet_conformance.rules.model.turns import ModelTurn, turns
from signet_conformance.targets.drift import Drift, join_names
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import ScenarioMark, SkippedMark, StepMark, StepName, marks_of

_CHANGING = (StepName.COMPACT, StepName.COMPACTION_COMPLETE, StepName.CLEAR, StepName.FORK, StepName.REOPEN)
_NAMES = {"session-start": "session-start", "user-prompt-submit": "the prompt hook"}


def is_played(trace: Trace) -> bool:
    """Whether a played host wrote the model's side of a recording."""
    return trace.model is not None and trace.model.header.played is True


def turns_compared(real: Sequence[Trace], played: Sequence[Trace]) -> int:
    """Count the turns that have a request in both recordings."""
    known = {_scenario(trace): trace for trace in played}
    pairs = [(trace, known[name]) for trace in real if (name := _scenario(trace)) in known]
    both = (pair for one, other in pairs for pair in _turns_of_both(Recording(one), Recording(other)))
    return sum(bool(turn.main and other.main) for turn, other in both)


def _turns_of_both(real: Recording, played: Recording) -> Iterator[tuple[ModelTurn, ModelTurn]]:
    """Yield the turns of both, up to a skipped step of the session that would have changed its history."""
    beside = {turn.step.index: turn for turn in turns(played)}
    skipped = {mark.index for mark in real.marks(SkippedMark)}
    lost = [mark for mark in real.marks(StepMark) if mark.index in skipped and mark.step in _CHANGING]
    for turn in turns(real):
        other = beside.get(turn.step.index)
        if other is not None and not any(mark.session == turn.session and mark.seq < turn.low for mark in lost):
            yield turn, other


def model_drifts(real: Sequence[Trace], played: Sequence[Trace]) -> Iterator[Drift]:
    """Yield where the program's requests differ from those of the host that played the same scenario."""
    known = {_scenario(trace): trace for trace in played}
    for trace in real:
        if (beside := known.get(_scenario(trace))) is not None and trace.model is not None:
            yield from _differences(Recording(trace), Recording(beside))


def _scenario(trace: Trace) -> str | None:
    return next((mark.name for mark in marks_of(trace, ScenarioMark)), None)


def _differences(real: Recording, played: Recording) -> Iterator[Drift]:
    for turn, other in _turns_of_both(real, played):
        if not (turn.main and other.main):
            if bool(turn.main) is not bool(other.main):
                requests_of = {True: "the model is asked", False: "the model is not asked"}
                yield Drift(f"step {turn.step.index}", requests_of[bool(other.main)], requests_of[bool(turn.main)])
            continue
        requests = {0: ""}
        if len(turn.main) > 1 and len(other.main) > 1:
            requests[-1] = " in the last request of the turn"
        for number, which in requests.items():
            theirs, ours = _places(real, turn, number), _places(played, other, number)
            for text in dict.fromkeys([*ours, *theirs]):
                if ours.get(text) != theirs.get(text):
                    about = f"step {turn.step.index}, place of the text that {text} injected{which}"
                    yield Drift(about, ours.get(text, "nowhere"), theirs.get(text, "nowhere"))


def _places(recording: Recording, turn: ModelTurn, number: int) -> Mapping[str, str]:
    """The place of each injected text in one of a turn's requests, or beside the first, by operation and step."""
    place_of: dict[str, str] = {}
    request = turn.main[number]
    aside = [each for each in turn.asked if each not in turn.main and each.whole and number == 0]
    for text in injected_texts(recording):
        step = recording.timeline.step_at(text.call.seq)
        if text.session != turn.session or text.call.seq > turn.high or step is None:
            continue
        places = [_place(request, part, turn) for part in _holding(request, text.lines)]
        places += ["in a request beside the turn's own" for each in aside if _holding(each, text.lines)][:1]
        if places:
            place_of[f"{_NAMES[str(text.call.operation)]} in step {step.index}"] = join_names(dict.fromkeys(places))
    return place_of


def _holding(request: ModelCall, lines: tuple[str, ...]) -> Sequence[int]:
    """The numbers of a request's parts that hold a text, except the model's own."""
    parts = [(number, part) for number, part in enumerate(request.parts) if part.role in ("system", "user")]
    return [number for number, part in parts if count_lines(lines, padded([part.text])).mostly]


def _place(request: ModelCall, number: int, turn: ModelTurn) -> str:
    words, parts = plain_words(turn.text), request.parts
    prompts = [n for n, part in enumerate(parts) if part.role == "user" and says(words, padded([part.text]))]
    where = "before" if prompts and number < prompts[-1] else "after"
    if prompts and number == prompts[-1]:
        where = "within"
    history = next((n for n, part in enumerate(parts) if part.role != "system"), len(parts))
    place = "in the system text" if number < history else f"{where} the user's message"
    return f"{place}, as {request.parts[number].role}"
