"""Where a face of plugins differs from the program that it plays.

What the program told a plugin stands in recordings of the real lane. The same plugin heard the played host in the same
steps, so both tell alike: which events, in which order, of which kind, with which members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import TYPE_CHECKING, Any

from signet_conformance.targets.drift import Drift, folders, hooks_observed, listed
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import ObservedMark

if TYPE_CHECKING:
    from signet_conformance.targets.face_document import FaceDocument

Events = Sequence[ObservedMark]


def unplayed(face: FaceDocument, traces: Sequence[Trace]) -> Sequence[str]:
    """The events that the recordings show and that the face says it does not play."""
    return sorted({str(mark.event) for mark in hooks_observed(traces)} & set(face.unplayed))


def plugin_drifts(face: FaceDocument, traces: Sequence[Trace], played: Sequence[Events]) -> Iterator[Drift]:
    """What the recordings show of the program otherwise than the played host did in the steps of each."""
    done = [[mark for mark in hooks_observed([trace]) if mark.event not in face.unplayed] for trace in traces]
    real, host = _by_name(done), _by_name(played)
    host = {event: marks for event, marks in host.items() if event not in face.interactive}
    for event in real.keys() - host.keys():
        yield Drift(event, "nothing of it", f"fire it {len(real[event])} times")
    for event in host.keys() - real.keys():
        yield Drift(event, f"it is fired {len(host[event])} times", "nothing of it")
    both = real.keys() & host.keys()
    regular = both - set(face.irregular)
    for of_program, of_host in zip(done, played, strict=True):
        # A hook is waited for, an event is not: only those of one sort have an order.
        for names in (regular & set(face.hooks), regular - set(face.hooks)):
            yield from _order(_labels(of_host, names), _labels(of_program, names))
    for event in sorted(both):
        yield from _members(event, real[event], host[event], set(face.sometimes.get(event, ())))
    for trace in traces:
        yield from folders(trace, {*face.unplayed, *face.irregular})


def updated_plugin_face(
    face: Mapping[str, Any], traces: Sequence[Trace], played: Sequence[Events], release: str
) -> dict[str, Any]:
    """The face's document with the members that the recordings show, and the events that it does not play.

    The order of events is left as it is: the host's code has it.
    """
    real, host = _by_name([hooks_observed(traces)]), _by_name(played)
    told = {table: {**face[table]} for table in ("events", "hooks") if table in face}
    for table in told.values():
        for event in table.keys() & real.keys():
            sent = [{name for name in mark.members if not name.startswith("output.")} for mark in real[event]]
            ever, always = set.union(*sent), set.intersection(*sent)
            kept = [name for name in table[event] if name in ever]
            table[event] = [*kept, *sorted(always - set(kept))]
    beyond = sorted({*face.get("unplayed", ()), *(real.keys() - host.keys())})
    checked = f"events, their order and members, against a recording of {face['harness']} {release}"
    return {**face, "version": release, "checked": checked, **({"unplayed": beyond} if beyond else {}), **told}


def _by_name(recordings: Iterable[Events]) -> dict[str, list[ObservedMark]]:
    names: dict[str, list[ObservedMark]] = {}
    for mark in (mark for marks in recordings for mark in marks):
        names.setdefault(str(mark.event), []).append(mark)
    return names


def _labels(marks: Events, names: set[str]) -> Sequence[str]:
    """The events of these names with their kinds; what comes several times in a row counts once."""
    each = (" ".join((str(mark.event), *mark.args)) for mark in marks if mark.event in names)
    return [label for label, _ in groupby(each)]


def _order(expected: Sequence[str], done: Sequence[str]) -> Iterator[Drift]:
    for how, low, high, first, last in SequenceMatcher(None, expected, done, autojunk=False).get_opcodes():
        if how != "equal":
            before = f" after {expected[low - 1]}" if low else " first"
            yield Drift(f"events{before}", listed(expected[low:high]), listed(done[first:last]))


def _members(event: str, real: Events, host: Events, sometimes: set[str]) -> Iterator[Drift]:
    """Members that every one has, and the other side's never."""
    always, ever = _always_and_ever(real)
    played, played_ever = _always_and_ever(host)
    if never := played - ever - sometimes:
        yield Drift(f"members of {event}", listed(sorted(never)), "leave them out")
    if more := always - played_ever - sometimes:
        yield Drift(f"members of {event}", "nothing of them", f"send {listed(sorted(more))}")


def _always_and_ever(marks: Events) -> tuple[set[str], set[str]]:
    members = [set(mark.members) for mark in marks]
    return set.intersection(*members), set.union(*members)
