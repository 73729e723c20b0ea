"""Differences between what a played host and the program that it plays put before their models.

Both performed the same scenario with the same connector. The daemon's injected text is looked for in the first request
of each turn and, where its model calls tools, in the last: in whose role it stands there, where beside the user's
words, and how long it lasts.
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
    """Count the turns that have a request in a recording of both."""
    known = {_scenario(trace): trace for trace in played}
    pairs = [(trace, known[name]) for trace in real if (name := _scenario(trace)) in known]
    both = (pair for one, other in pairs for pair in _turns_of_both(Recording(one), Recording(other)))
    return sum(bool(turn.main and other.main) for turn, other in both)


def _turns_of_both(real: Recording, played: Recording) -> Iterator[tuple[ModelTurn, ModelTurn]]:
    """Yield the turns of both, up to a step in their session that the program left out and that changes its history."""
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
                asked = {True: "ask the model", False: "ask it nothing"}
                yield Drift(f"step {turn.step.index}", asked[bool(other.main)], asked[bool(turn.main)])
            continue
        requests = {0: ""}
        if len(turn.main) > 1 and len(other.main) > 1:
            requests[-1] = " in the last request of the turn"
        for number, which in requests.items():
            theirs, ours = _places(real, turn, number), _places(played, other, number)
            for text in dict.fromkeys([*ours, *theirs]):
                if ours.get(text) != theirs.get(text):
                    about = f"step {turn.step.index}, what {text} injected{which}"
                    yield Drift(about, f"put it {ours.get(text, 'nowhere')}", f"put it {theirs.get(text, 'nowhere')}")


def _places(recording: Recording, turn: ModelTurn, number: int) -> Mapping[str, str]:
    """Texts in one of a turn's requests, or beside its first, by operation and step, with their places."""
    found: dict[str, str] = {}
    request = turn.main[number]
    aside = [each for each in turn.asked if each not in turn.main and each.whole and number == 0]
    for text in injected_texts(recording):
        step = recording.timeline.step_at(text.call.seq)
        if text.session != turn.session or text.call.seq > turn.high or step is None:
            continue
        places = [_place(request, part, turn) for part in _holding(request, text.lines)]
        places += ["into a request beside the turn's own" for each in aside if _holding(each, text.lines)][:1]
        if places:
            found[f"{_NAMES[str(text.call.operation)]} in step {step.index}"] = join_names(dict.fromkeys(places))
    return found


def _holding(request: ModelCall, lines: tuple[str, ...]) -> Sequence[int]:
    """The numbers of a request's parts that hold a text, except those in which the model speaks."""
    parts = enumerate(request.parts)
    told = [(number, part) for number, part in parts if part.role in ("system", "user")]
    return [number for number, part in told if count_lines(lines, padded([part.text])).mostly]


def _place(request: ModelCall, number: int, turn: ModelTurn) -> str:
    words = plain_words(turn.text)
    said = [n for n, part in enumerate(request.parts) if part.role == "user" and says(words, padded([part.text]))]
    where = "before" if said and number < said[-1] else "after"
    if said and number == said[-1]:
        where = "within"
    begun = next((n for n, part in enumerate(request.parts) if part.role != "system"), len(request.parts))
    place = "into the system text" if number < begun else f"{where} the user's message"
    return f"{place}, as {request.parts[number].role}"
