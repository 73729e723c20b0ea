"""Compares two recordings: matches sessions, aligns exchanges, names the requirements that read each difference."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from signet_conformance.contract import requirements
from signet_conformance.diff.alignment import Item, Pair, Session, SessionPair, align, match, sessions
from signet_conformance.diff.difference import Comparison, Difference, DifferenceKind, SideValue
from signet_conformance.diff.exchanges import ORDER, PRESENCE, ExchangePair, name_of, readers_of
from signet_conformance.diff.volatile import KeyNames, Links, VolatileClasses
from signet_conformance.facts import Call, Recording
from signet_conformance.files.json_values import ABSENT
from signet_conformance.reports.values import as_text

_HINTS = ("userMessage", "userPrompt", "content", "query", "summary", "command", "reason", "source", "mode", "hook")
"""Body members that distinguish calls of the same operation."""
_HINT_LENGTH = 300
_MOST_SENT = 300
_MAX_RACES = 200
"""This many moved exchanges are checked for a race, at most."""


def compare(first: Recording, second: Recording, volatile: VolatileClasses | None = None) -> Comparison:
    """List the differences from the first recording to the second, without marks, times and volatile values."""
    volatile = volatile or VolatileClasses()
    pairs = match(sessions(first), sessions(second))
    ours = KeyNames(_numbers(pairs, first=True), volatile)
    theirs = KeyNames(_numbers(pairs, first=False), volatile)
    within: list[Difference] = []
    shared: list[_SharedExchange] = []
    for pair in pairs:
        compared = _Pair(pair, volatile, ours, theirs)
        within += compared.differences()
        shared += compared.shared
    differences = [*_declared(first, second), *_interleaving(shared), *within]
    if not (first.timeline.steps and second.timeline.steps):
        differences = [replace(each, requirements=_judged_without_marks(each)) for each in differences]
    return Comparison(first, second, pairs, differences)


def _judged_without_marks(difference: Difference) -> tuple[str, ...]:
    """The readers of a difference that can judge a recording without step marks."""
    law = requirements()
    return tuple(name for name in difference.requirements if law[name].decides != "marks")


def _numbers(pairs: Sequence[SessionPair], *, first: bool) -> Mapping[str, int]:
    sides = ((pair.number, pair.first if first else pair.second) for pair in pairs)
    return {side.key: number for number, side in sides if side is not None and side.key is not None}


def _declared(first: Recording, second: Recording) -> Iterator[Difference]:
    ours, theirs = first.declared.to_json(), second.declared.to_json()
    for name in dict.fromkeys((*ours, *theirs)):
        # Each recording plants canaries of its own.
        if name != "canaries" and ours.get(name) != theirs.get(name):
            values = ours.get(name, ABSENT), theirs.get(name, ABSENT)
            readers = readers_of("declared", None, name).requirements()
            yield _of_header(f"declared {name}", f"/declared/{name}", *values, readers)
    if first.daemon_version != second.daemon_version:
        yield _of_header("daemon version", "/daemon_version", first.daemon_version, second.daemon_version)


def _of_header(member: str, pointer: str, ours: Any, theirs: Any, requirements: tuple[str, ...] = ()) -> Difference:
    sides = SideValue(None, pointer, ours), SideValue(None, pointer, theirs)
    return Difference(DifferenceKind.CHANGED, 0, "the header line", member, *sides, requirements)


_SharedExchange = tuple[int, int, int]
"""An exchange that both recordings have: its number in the first, in the second, and the number of its session."""


def _interleaving(shared: Sequence[_SharedExchange]) -> Iterator[Difference]:
    """A cosmetic difference if the sessions alternate in another order; only shared exchanges count."""
    ours = [session for _, _, session in sorted(shared)]
    theirs = [session for _, session in sorted((second, session) for _, second, session in shared)]
    if _turns(ours) != _turns(theirs):
        yield Difference(
            DifferenceKind.REORDERED, 0, "sessions", "the order between sessions", SideValue(), SideValue()
        )


def _turns(sessions: Sequence[int]) -> list[int]:
    """Session numbers without immediate repetitions."""
    return [*sessions[:1], *(number for before, number in pairwise(sessions) if number != before)]


class _Pair:
    """The differences of one matched pair of sessions. `differences` fills `met`."""

    def __init__(self, pair: SessionPair, volatile: VolatileClasses, ours: KeyNames, theirs: KeyNames) -> None:
        self._pair = pair
        self._volatile = volatile
        self._ours = pair.first.calls if pair.first is not None else []
        self._theirs = pair.second.calls if pair.second is not None else []
        self._links = Links(ours.plain, theirs.plain)
        self._operations = (_labels(pair.first), _labels(pair.second))
        self.shared: list[_SharedExchange] = []

    def differences(self) -> Iterator[Difference]:
        first = [self._item(call) for call in self._ours]
        second = [self._item(call) for call in self._theirs]
        pairs = align(first, second, self._full_content)
        moved = _moved(pairs, first, second)
        races = _Races(pairs, self._ours, self._theirs)
        arrived = set(moved.values())
        for index, other in pairs:
            if index is None:
                if other is not None and other not in arrived:
                    yield self._unpaired(DifferenceKind.ADDED, self._theirs[other])
            elif other is not None:
                yield from self._compare_pair(index, other)
            elif index in moved:
                yield self._reordered(index, moved[index], races)
                yield from self._compare_pair(index, moved[index])
            else:
                yield self._unpaired(DifferenceKind.MISSING, self._ours[index])

    def _compare_pair(self, index: int, other: int) -> Iterator[Difference]:
        first, second = self._ours[index], self._theirs[other]
        self.shared.append((first.seq, second.seq, self._pair.number))
        return ExchangePair(self._pair.number, self._volatile, self._links, first, second).differences()

    def _item(self, call: Call) -> Item:
        label = f"{call.method} {call.operation or self._volatile.plain(call.path).skeleton}"
        texts = (call.body.get(name) for name in _HINTS) if call.body else ()
        hint = "\n".join(self._volatile.plain(text[:_HINT_LENGTH]).skeleton for text in texts if isinstance(text, str))
        return Item(label, hint)

    def _full_content(self, side: int, index: int) -> str:
        """The whole call with its answer as text, without volatile values."""
        call = (self._ours, self._theirs)[side][index]
        body, error, fault = call.exchange.request.body, call.exchange.error, call.exchange.fault
        content = json.dumps(
            [None if body is None else body.value, call.status, error, fault], sort_keys=True, default=str
        )
        return f"{self._volatile.plain(call.path).skeleton} {self._volatile.plain(content).skeleton}"

    def _readers(self, call: Call) -> tuple[str, ...]:
        """The requirements that count this exchange: in a session every exchange counts, outside only some do."""
        readers = readers_of("exchange", call.operation)
        if counted := readers.requirements(ORDER):
            return counted
        on_both_sides = all(_label(call) in side for side in self._operations)
        return readers.requirements(PRESENCE) if call.key is not None or not on_both_sides else ()

    def _unpaired(self, kind: DifferenceKind, call: Call) -> Difference:
        here = SideValue(call.seq, "", ABSENT, as_text(dict(call.body), _MOST_SENT) if call.body else "")
        sides = (SideValue(), here) if kind is DifferenceKind.ADDED else (here, SideValue())
        return Difference(kind, self._pair.number, name_of(call), "", *sides, self._readers(call))

    def _reordered(self, index: int, other: int, races: _Races) -> Difference:
        first, second = self._ours[index], self._theirs[other]
        race = races.between(index, other)
        requirements = () if race else readers_of("exchange", first.operation).requirements(ORDER)
        if not requirements and not race and first.key is not None:
            requirements = readers_of("exchange", first.operation).requirements()
        note = "it ran at the same time as the exchanges that it passed" if race else ""
        sides = SideValue(first.seq), SideValue(second.seq)
        return Difference(DifferenceKind.REORDERED, self._pair.number, name_of(first), "", *sides, requirements, note)


def _label(call: Call) -> str:
    return f"{call.method} {call.operation or call.path}"


def _labels(session: Session | None) -> frozenset[str]:
    return frozenset(_label(call) for call in session.calls) if session is not None else frozenset()


def _moved(pairs: Sequence[Pair], first: Sequence[Item], second: Sequence[Item]) -> dict[int, int]:
    """Match exchanges without a counterpart to equal ones elsewhere on the other side."""
    waiting: dict[Item, list[int]] = {}
    for index, other in pairs:
        if index is None and other is not None:
            waiting.setdefault(second[other], []).append(other)
    matched: dict[int, int] = {}
    for index, other in pairs:
        if other is None and index is not None and (places := waiting.get(first[index])):
            matched[index] = places.pop(0)
    return matched


class _Races:
    """Finds moved exchanges that ran at the same time as those that they passed: their order means nothing."""

    def __init__(self, pairs: Sequence[Pair], ours: Sequence[Call], theirs: Sequence[Call]) -> None:
        self._aligned = [(i, j) for i, j in pairs if i is not None and j is not None]
        self._ours, self._theirs = ours, theirs
        self._checks = 0

    def between(self, index: int, other: int) -> bool:
        """Whether every exchange that the moved one passed overlaps it in both recordings."""
        self._checks += 1
        if self._checks > _MAX_RACES:
            return False
        passed = [(i, j) for i, j in self._aligned if (i < index) != (j < other)]
        return bool(passed) and all(
            _overlap(self._ours[index], self._ours[i]) and _overlap(self._theirs[other], self._theirs[j])
            for i, j in passed
        )


def _overlap(first: Call, second: Call) -> bool:
    return first.t0 < second.t1 and second.t0 < first.t1
