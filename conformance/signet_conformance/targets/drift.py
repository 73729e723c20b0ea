"""Compare a face with recordings of the program that it plays: events, order, members, folder, environment.

A recording of a real program has a mark for each hook that the program ran, and for each event that its plugins got.
The events of a plugin are compared with those that the played host fires in the same steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any

from signet_conformance.targets.face_document import Action, FaceDocument, Fire, FireNextTurn, Quit, Renew
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import LoadedMark, ObservedMark, SkippedMark, StepMark, StepName, marks_of

_ANY_PROCESS = frozenset({"PWD", "OLDPWD", "SHLVL", "_", "PATH", "HOME"})
"""Variables that a shell sets by itself, or that the kit sets to observe a process."""
_OCCASIONS = ("source", "trigger", "reason")
"""Members of an event's JSON that say on which occasion it was fired."""

Events = Sequence[ObservedMark]


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference: its subject, with its state in the face and in the program."""

    about: str
    face: str
    program: str

    @property
    def words(self) -> str:
        """The difference as a line."""
        return f"{self.about}: face: {self.face}; program: {self.program}"


def recorded_release(traces: Iterable[Trace]) -> tuple[str, str] | None:
    """The harness and release that recordings name; None if they name none."""
    loaded = (mark for trace in traces for mark in marks_of(trace, LoadedMark))
    return next(((mark.host, mark.release) for mark in loaded if mark.host and mark.release), None)


def hooks_observed(traces: Iterable[Trace]) -> Sequence[ObservedMark]:
    """The marks of hooks and plugin events in recordings; not those of commands that no hook ran."""
    return [mark for trace in traces for mark in marks_of(trace, ObservedMark) if mark.event is not None]


def not_compared(face: FaceDocument, traces: Sequence[Trace]) -> Sequence[str]:
    """The events of the face that are in no recording: they have no hook, or were never fired."""
    return sorted(_events_of(face) - {str(mark.event) for mark in hooks_observed(traces)})


def drifts(face: FaceDocument, traces: Sequence[Trace]) -> Iterator[Drift]:
    """Yield where recordings of hooks differ from the face."""
    runs = [mark for mark in hooks_observed(traces) if mark.event not in face.unplayed]
    observed = {str(mark.event) for mark in runs}
    for trace in traces:
        yield from _order(face, trace, observed)
        yield from folder_drifts(trace)
    for event in sorted(observed):
        yield from _members(face, event, [mark for mark in runs if mark.event == event])
    yield from _environment(face, runs)
    yield from _durations(face, runs)


def _events_of(face: FaceDocument) -> set[str]:
    actions = [action for actions in face.steps.values() for action in actions] + [*face.turn_end]
    return {event for action in actions if (event := _event_of(action)) is not None}


def _event_of(action: Action) -> str | None:
    match action:
        case Fire(event=event) | FireNextTurn(next_turn=event) | Quit(quit=event):
            return event
    return None


def _label(event: str, occasion: object) -> str:
    return event if occasion is None else f"{event} {occasion}"


def _label_of(action: Action) -> str:
    more = action.model_extra or {}
    return _label(str(_event_of(action)), next((more[name] for name in _OCCASIONS if name in more), None))


def _order(face: FaceDocument, trace: Trace, observed: set[str]) -> Iterator[Drift]:
    """Compare the order of one recording's events with the order in which the face fires them."""
    of_calls = {event for action in face.steps.get("tool", ()) if (event := _event_of(action)) is not None}
    runs = [mark for mark in _of_performed_steps(trace, of_calls) if mark.event in observed]
    # The recordings of earlier releases of the kit have no occasions.
    has_occasions = any(mark.occasion is not None for mark in runs)
    interactive = {label.partition(" ")[0] for label in face.interactive}

    def compared(label: str) -> str:
        event = label.partition(" ")[0]
        return label if has_occasions and event not in interactive else event

    calls = [_label_of(action) for action in face.steps.get("tool", ()) if _event_of(action) in observed]
    expected = [compared(label) for label in _Play(face).labels(trace) if label.partition(" ")[0] in observed]
    expected = _without_repeats(expected, calls)
    fired = _without_repeats([compared(_label(str(mark.event), mark.occasion)) for mark in runs], calls)
    yield from _compare_order(expected, fired)


def _of_performed_steps(trace: Trace, of_calls: Collection[str] = ()) -> Iterator[ObservedMark]:
    """Yield the observed events, without those of skipped steps, which the program began and did not finish.

    In the skipped step of a tool, only the events `of_calls` are left out: a model may have made a call to look up its
    tools.
    """
    skipped = {mark.index for mark in marks_of(trace, SkippedMark)}
    marks: list[StepMark | ObservedMark] = [*marks_of(trace, StepMark), *marks_of(trace, ObservedMark)]
    skipped_step: str | None = None
    for mark in sorted(marks, key=lambda mark: mark.seq):
        if isinstance(mark, StepMark):
            skipped_step = mark.step if mark.index in skipped else None
        elif skipped_step is None or (skipped_step == StepName.TOOL and mark.event not in of_calls):
            yield mark


def _compare_order(
    expected: Sequence[str], fired: Sequence[str], beside: Mapping[str, int] | None = None
) -> Iterator[Drift]:
    """Yield where `fired` differs from `expected`. An event in `beside` may be fired that often anywhere."""
    left = Counter(beside)
    for change, low, high, first, last in SequenceMatcher(None, expected, fired, autojunk=False).get_opcodes():
        if change == "insert" and not (more := Counter(fired[first:last])) - left:
            left -= more
        elif change != "equal":
            place = f"after {expected[low - 1]}" if low else "first"
            yield Drift(f"events {place}", join_names(expected[low:high]), join_names(fired[first:last]))


def _sessions_begun(trace: Trace) -> int:
    begins = (StepName.START, StepName.CLEAR, StepName.FORK)
    return sum(mark.step in begins for mark in marks_of(trace, StepMark))


def _without_repeats(labels: Sequence[str], calls: Sequence[str]) -> list[str]:
    """Keep one of several identical tool calls in a row: a step may be more than one call."""
    result: list[str] = []
    place = 0
    while place < len(labels):
        if calls and labels[place : place + len(calls)] == calls == result[-len(calls) :]:
            place += len(calls)
        else:
            result.append(labels[place])
            place += 1
    return result


class _Play:
    """The events that a face fires in a recording's steps, if no hook blocks and each session has its own program."""

    def __init__(self, face: FaceDocument) -> None:
        self._face = face
        self._due: dict[str | None, str] = {}
        self._threads: Counter[str | None] = Counter()
        self._in_turn: set[str | None] = set()

    def labels(self, trace: Trace) -> Iterator[str]:
        """Yield the events in order, each with its occasion."""
        skipped = {mark.index for mark in marks_of(trace, SkippedMark)}
        for step in marks_of(trace, StepMark):
            session, more = step.session, bool(step.other.get("more"))
            if step.index not in skipped:
                yield from self._step(step)
            elif step.step != StepName.TOOL or session not in self._in_turn:
                continue
            if step.step in (StepName.PROMPT, StepName.TOOL) and not more:
                self._in_turn.discard(session)
                yield from (_label_of(action) for action in self._face.turn_end)

    def _step(self, step: StepMark) -> Iterator[str]:
        session = step.session
        if step.step == StepName.START:
            self._due.pop(session, None)
            self._threads[session] = 1
        if step.step == StepName.PROMPT:
            self._in_turn.add(session)
            if (due := self._due.pop(session, None)) is not None:
                yield due
        for action in self._face.steps.get(str(step.step), ()):  # type: ignore[call-overload]  # any word of a mark
            match action:
                case Renew():
                    self._due.pop(session, None)
                    self._threads[session] += 1
                case FireNextTurn():
                    self._due[session] = _label_of(action)
                case Quit():
                    yield from [_label_of(action)] * self._threads[session]
                    self._threads[session] = 1
                case Fire():
                    yield _label_of(action)


def folder_drifts(trace: Trace, ignored: Collection[str] = ()) -> Iterator[Drift]:
    """Yield hooks that ran outside the folder of their session's project, judged by the folder's name.

    The `ignored` events come at any time and may belong to an earlier session.
    """
    project: dict[str | None, str] = {}
    session_of: str | None = None
    marks: list[StepMark | ObservedMark] = [*marks_of(trace, StepMark), *marks_of(trace, ObservedMark)]
    for mark in sorted(marks, key=lambda mark: mark.seq):
        if isinstance(mark, StepMark):
            session_of = mark.session
            if mark.project is not None:
                project[session_of] = mark.project
        elif mark.event is not None and mark.event not in ignored and mark.cwd and session_of in project:
            wanted = project[session_of].rsplit("/", 1)[-1]
            if mark.cwd.rstrip("/").rsplit("/", 1)[-1] != wanted:
                yield Drift(f"working folder of {mark.event}", f"the project's, {wanted}", mark.cwd)


def _members(face: FaceDocument, event: str, runs: Events) -> Iterator[Drift]:
    if event not in face.events:
        yield Drift(event, "not fired", f"fired {len(runs)} times")
        return
    members = set(face.events[event])
    yield from _compare_members(event, members, members, runs, set(face.sometimes.get(event, ())))


def _compare_members(
    event: str, always: set[str], ever: set[str], runs: Events, sometimes: set[str]
) -> Iterator[Drift]:
    """Yield the members that the face `always` has and no run has, and those that all runs have and the face never has.

    `ever` are the members that the face has at least once.
    """
    sent_always, sent_ever = _always_and_ever(runs)
    if never := always - sent_ever - sometimes:
        yield Drift(f"members of {event}", join_names(sorted(never)), "never sent")
    if more := sent_always - ever - sometimes:
        yield Drift(f"members of {event}", "never sent", join_names(sorted(more)))


def _always_and_ever(marks: Events) -> tuple[set[str], set[str]]:
    """The members that all of the events have, and those that at least one has."""
    members = [set(mark.members) for mark in marks]
    return set.intersection(*members), set.union(*members)


def _environment(face: FaceDocument, runs: Sequence[ObservedMark]) -> Iterator[Drift]:
    """Compare the variables that hooks inherit with those in the face."""
    always = set.intersection(*(set(run.env) for run in runs)) if runs else set()
    lacking = set(face.project_variables) - always if runs else set()
    if lacking:
        is_ever_set = any(lacking.intersection(run.env) for run in runs)
        program = "set for some hooks only" if is_ever_set else "not set"
        yield Drift("environment of hooks", join_names(sorted(lacking)), program)
    if face.environment is not None and (more := always - set(face.environment) - _ANY_PROCESS):
        yield Drift("environment of hooks", f"{join_names(face.environment)} and no other", join_names(sorted(more)))


def _durations(face: FaceDocument, runs: Sequence[ObservedMark]) -> Iterator[Drift]:
    """Yield the longest hook if it took longer than the face allows and was not ended by the program."""
    longest = max((run.ms or 0.0 for run in runs if run.status is not None), default=0.0) / 1000
    if face.default_timeout_s is not None and longest > face.default_timeout_s:
        yield Drift("longest run of a hook", f"{face.default_timeout_s:g} s", f"{longest:.1f} s")


def update_face(face: Mapping[str, Any], traces: Sequence[Trace], release: str) -> dict[str, Any]:
    """Return the face's document with each event's members as recorded.

    The order of events is not changed, since a step's actions hold more than event names.
    """
    events = dict(face.get("events", {}))
    for event, runs in _by_name([hooks_observed(traces)]).items():
        events[event] = _members_as_sent(events.get(event, ()), [set(mark.members) for mark in runs])
    checked = f"members of each hook's stdin, against a recording of {face['harness']} {release}"
    return {**face, "version": release, "checked": checked, "events": events}


def _members_as_sent(known: Sequence[str], sent: Sequence[set[str]]) -> list[str]:
    """Keep the known members that were ever sent, in their order, and add those that were always sent."""
    still_sent = [name for name in known if name in set.union(*sent)]
    return [*still_sent, *sorted(set.intersection(*sent) - set(still_sent))]


def join_names(names: Iterable[str]) -> str:
    """Join the names with commas; `nothing` for an empty list."""
    return ", ".join(names) or "nothing"


def unplayed(face: FaceDocument, traces: Sequence[Trace]) -> Sequence[str]:
    """The events in the recordings that the face does not play, as it declares."""
    return sorted({str(mark.event) for mark in hooks_observed(traces)} & set(face.unplayed))


def plugin_drifts(face: FaceDocument, traces: Sequence[Trace], played: Sequence[Events]) -> Iterator[Drift]:
    """Yield where recordings of plugin events differ from the events that the played host fired in the same steps."""
    recorded = [
        [mark for mark in _of_performed_steps(trace) if mark.event is not None and mark.event not in face.unplayed]
        for trace in traces
    ]
    real, host = _by_name(recorded), _by_name(played)
    host = {event: marks for event, marks in host.items() if event not in face.interactive}
    for event in sorted(real.keys() - host.keys()):
        yield Drift(event, "not fired", f"fired {len(real[event])} times")
    for event in sorted(host.keys() - real.keys()):
        yield Drift(event, f"fired {len(host[event])} times", "not fired")
    both = real.keys() & host.keys()
    regular = both - set(face.irregular)
    for trace, of_program, of_host in zip(traces, recorded, played, strict=True):
        beside = Counter(dict.fromkeys(face.beside_turns, _sessions_begun(trace)))
        # The host waits for hooks, but not for events, so there is an order only among hooks, and among events.
        for names in (regular & set(face.hooks), regular - set(face.hooks)):
            yield from _compare_order(_labels(of_host, names), _labels(of_program, names), beside)
    for event in sorted(both):
        yield from _compare_members(
            event, *_always_and_ever(host[event]), real[event], set(face.sometimes.get(event, ()))
        )
    for trace in traces:
        yield from folder_drifts(trace, {*face.unplayed, *face.irregular})


def update_plugin_face(
    face: Mapping[str, Any], traces: Sequence[Trace], played: Sequence[Events], release: str
) -> dict[str, Any]:
    """Return the face's document with members as recorded, and with the events that it does not play.

    The order of events is not part of it, but of the host's code.
    """
    real, host = _by_name([hooks_observed(traces)]), _by_name(played)
    tables = {table: {**face[table]} for table in ("events", "hooks") if table in face}
    for table in tables.values():
        for event in table.keys() & real.keys():
            sent = [{name for name in mark.members if not name.startswith("output.")} for mark in real[event]]
            table[event] = _members_as_sent(table[event], sent)
    beyond = sorted({*face.get("unplayed", ()), *(real.keys() - host.keys())})
    checked = f"events, their order and members, against a recording of {face['harness']} {release}"
    return {**face, "version": release, "checked": checked, **({"unplayed": beyond} if beyond else {}), **tables}


def _by_name(recordings: Iterable[Events]) -> dict[str, list[ObservedMark]]:
    names: dict[str, list[ObservedMark]] = {}
    for mark in (mark for marks in recordings for mark in marks):
        names.setdefault(str(mark.event), []).append(mark)
    return names


def _labels(marks: Events, names: set[str]) -> Sequence[str]:
    """The labels of the named events. Repeats in a row count once."""
    each = (" ".join((str(mark.event), *mark.args)) for mark in marks if mark.event in names)
    return [label for label, _ in groupby(each)]
