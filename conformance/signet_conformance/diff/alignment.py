"""Which sessions and which calls of two recordings correspond.

Aligning is never quadratic: common ends are stripped, items that occur once on both sides split the rest, and only a
short remainder is compared item by item.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct, field

from signet_conformance.facts import Call, Recording

MAX_CELLS = 40_000
"""The largest remainder, as items of one side times items of the other, that is compared cell by cell."""
_WINDOW = 120
_NEVER = 1 << 30


class Item(Struct, frozen=True):
    """What alignment reads of an exchange: its kind, and its content. Equal labels may match, equal items do."""

    label: str
    hint: str


Pair = tuple[int | None, int | None]
"""Indexes of an aligned pair; None where the side has no counterpart."""


Content = Callable[[int, int], str]
"""The full content of the item at an index of a side (0 or 1); called only to tell equal items apart."""


def align(first: Sequence[Item], second: Sequence[Item], content: Content = lambda _side, _index: "") -> list[Pair]:
    """The pairs, in an order that both sides keep. An item without a counterpart stands where it happened."""
    pairs = list(_Alignment(first, second).pairs(0, len(first), 0, len(second)))
    return list(_realign(pairs, first, second, content))


class _Alignment(Struct, frozen=True):
    """Aligns parts of two sides: the items from `low` to `high` of the first, from `start` to `stop` of the second."""

    first: Sequence[Item]
    second: Sequence[Item]

    def pairs(self, low: int, high: int, start: int, stop: int) -> Iterator[Pair]:
        """The pairs of these parts, in order."""
        first, second = self.first, self.second
        while low < high and start < stop and first[low] == second[start]:
            yield low, start
            low, start = low + 1, start + 1
        tail = 0
        while low < high - tail and start < stop - tail and first[high - 1 - tail] == second[stop - 1 - tail]:
            tail += 1
        inner = (low, high - tail, start, stop - tail)
        if low == high - tail or start == stop - tail:
            yield from _unpaired(*inner)
        elif (high - tail - low) * (stop - tail - start) <= MAX_CELLS:
            yield from self._cell_by_cell(*inner)
        else:
            yield from self._split_at_anchors(*inner)
        yield from ((high - tail + index, stop - tail + index) for index in range(tail))

    def _split_at_anchors(self, low: int, high: int, start: int, stop: int) -> Iterator[Pair]:
        anchors = self._anchors(low, high, start, stop)
        if not anchors:
            yield from self._in_windows(low, high, start, stop)
            return
        for index, other in [*anchors, (high, stop)]:
            yield from self.pairs(low, index, start, other)
            if index < high:
                yield index, other
            low, start = index + 1, other + 1

    def _anchors(self, low: int, high: int, start: int, stop: int) -> list[tuple[int, int]]:
        """The longest run of items that occur once on each side and keep their order."""
        places = _unique(self.first, low, high)
        others = _unique(self.second, start, stop)
        candidates = [(index, others[item]) for item, index in places.items() if item in others]
        tops: list[int] = []
        ends: list[int] = []
        before: list[int] = []
        for number, (_, other) in enumerate(candidates):
            place = bisect_left(tops, other)
            before.append(ends[place - 1] if place else -1)
            if place == len(tops):
                tops.append(other)
                ends.append(number)
            else:
                tops[place], ends[place] = other, number
        chain: list[tuple[int, int]] = []
        at = ends[-1] if ends else -1
        while at >= 0:
            chain.append(candidates[at])
            at = before[at]
        return chain[::-1]

    def _in_windows(self, low: int, high: int, start: int, stop: int) -> Iterator[Pair]:
        """Align a long remainder of repeats in windows: the first half of each is kept, the rest is aligned again."""
        while low < high and start < stop:
            last = high - low <= _WINDOW and stop - start <= _WINDOW
            window = self._cell_by_cell(low, min(high, low + _WINDOW), start, min(stop, start + _WINDOW))
            half, other_half = low + _WINDOW // 2, start + _WINDOW // 2
            for index, other in window:
                yield index, other
                low = low if index is None else index + 1
                start = start if other is None else other + 1
                if not last and (low >= half or start >= other_half):
                    break
        yield from _unpaired(low, high, start, stop)

    def _cell_by_cell(self, low: int, high: int, start: int, stop: int) -> Iterator[Pair]:
        """The cheapest alignment: a gap costs 2, the same call with other content 1 unless that content only moved."""
        first, second = self.first, self.second
        rows, columns = high - low, stop - start
        surplus = Counter(first[low:high])
        surplus.subtract(second[start:stop])

        def meeting(item: Item, other: Item) -> int:
            if item.hint == other.hint:
                return 0
            return 1 if surplus[item] > 0 > surplus[other] else _NEVER

        costs = [[0] * (columns + 1) for _ in range(rows + 1)]
        for column in range(columns + 1):
            costs[rows][column] = 2 * (columns - column)
        for row in range(rows - 1, -1, -1):
            item, line, below = first[low + row], costs[row], costs[row + 1]
            line[columns] = 2 * (rows - row)
            for column in range(columns - 1, -1, -1):
                best = min(below[column], line[column + 1]) + 2
                other = second[start + column]
                if item.label == other.label:
                    best = min(best, below[column + 1] + meeting(item, other))
                line[column] = best
        row = column = 0
        while row < rows and column < columns:
            item, other = first[low + row], second[start + column]
            if item.label == other.label and costs[row][column] == costs[row + 1][column + 1] + meeting(item, other):
                yield low + row, start + column
                row, column = row + 1, column + 1
            elif costs[row][column] == costs[row + 1][column] + 2:
                yield low + row, None
                row += 1
            else:
                yield None, start + column
                column += 1
        yield from _unpaired(low + row, high, start + column, stop)


def _unpaired(low: int, high: int, start: int, stop: int) -> Iterator[Pair]:
    yield from ((index, None) for index in range(low, high))
    yield from ((None, index) for index in range(start, stop))


def _unique(items: Sequence[Item], low: int, high: int) -> dict[Item, int]:
    seen: dict[Item, int] = {}
    repeated: set[Item] = set()
    for index in range(low, high):
        if items[index] in seen:
            repeated.add(items[index])
        seen[items[index]] = index
    return {item: index for item, index in seen.items() if item not in repeated}


def _realign(pairs: Sequence[Pair], first: Sequence[Item], second: Sequence[Item], content: Content) -> Iterator[Pair]:
    """In a row of equal items with too few counterparts, pair those that agree in every detail."""

    def item(place: int) -> object:
        index, other = pairs[place]
        if index is not None and other is not None and first[index] != second[other]:
            return place
        return first[index] if index is not None else second[other or 0]

    for _, places in groupby(range(len(pairs)), item):
        row = [pairs[place] for place in places]
        ours = [index for index, _ in row if index is not None]
        theirs = [other for _, other in row if other is not None]
        if len(ours) == len(theirs) == len(row) or not ours or not theirs:
            yield from row
        elif len(ours) <= len(theirs):
            matched = _places_in([content(0, i) for i in ours], [content(1, j) for j in theirs])
            yield from zip(_row_with(ours, matched, len(theirs)), theirs, strict=True)
        else:
            matched = _places_in([content(1, j) for j in theirs], [content(0, i) for i in ours])
            yield from zip(ours, _row_with(theirs, matched, len(ours)), strict=True)


def _row_with(few: Sequence[int], places: Sequence[int], length: int) -> list[int | None]:
    """A row of `length` with the few at their places, None elsewhere."""
    row: list[int | None] = [None] * length
    for place, index in zip(places, few, strict=True):
        row[place] = index
    return row


def _places_in(few: Sequence[str], many: Sequence[str]) -> list[int]:
    """Where in `many` each of `few` goes, in order, so that most are equal; if several places do as well, the first.

    A repeat comes after what it repeats, so the last one is left without a counterpart.
    """
    spare = len(many) - len(few)
    if len(few) * (spare + 1) > MAX_CELLS:
        return list(range(len(few)))
    # equal[n][k]: how many of few[n:] are equal at best when k of the spare places have been passed over before.
    equal = [[0] * (spare + 1) for _ in range(len(few) + 1)]
    for number in range(len(few) - 1, -1, -1):
        best = -1
        for passed in range(spare, -1, -1):
            best = max(best, (few[number] == many[number + passed]) + equal[number + 1][passed])
            equal[number][passed] = best
    places: list[int] = []
    passed = 0
    for number, call in enumerate(few):
        while (call == many[number + passed]) + equal[number + 1][passed] != equal[number][passed]:
            passed += 1
        places.append(number + passed)
    return places


_ALIKE = 0.5
"""Two sessions without a common name match if at least this share of their calls is the same."""
_MAX_COMPARED = 10_000


class Session(Struct):
    """The calls of one key in order; `key` is None for the calls without a key."""

    key: str | None
    calls: list[Call] = field(default_factory=list)

    @property
    def harness(self) -> str | None:
        """The first harness that a call names."""
        return self._first("harness")

    @property
    def agent(self) -> str | None:
        """The agent that the first call runs as."""
        return self.calls[0].agent if self.calls else None

    @property
    def project(self) -> str | None:
        """The first project or cwd that a call names."""
        return self._first("project") or self._first("cwd")

    def _first(self, member: str) -> str | None:
        return next((text for call in self.calls if (text := call.body_text(member))), None)

    @property
    def identity(self) -> Hashable:
        """Whose session it is: harness, agent and project."""
        return self.harness, self.agent, self.project

    @property
    def signature(self) -> tuple[str, ...]:
        """Its operations in order."""
        return tuple(call.operation or call.path for call in self.calls)


class SessionPair(Struct, frozen=True):
    """A session of the first recording with its counterpart; one of them may be None. `number` counts from 1."""

    number: int
    first: Session | None
    second: Session | None

    @property
    def any(self) -> Session:
        """The side that exists; the first recording's if both do."""
        session = self.first or self.second
        if session is None:
            raise ValueError("a pair without a session")
        return session


def sessions(recording: Recording) -> list[Session]:
    """The sessions in order of appearance; the calls without a key form a session, which comes first."""
    sessions: dict[str | None, Session] = {}
    for call in recording.calls:
        sessions.setdefault(call.key, Session(call.key)).calls.append(call)
    return sorted(sessions.values(), key=lambda session: session.key is not None)


def match(first: list[Session], second: list[Session]) -> list[SessionPair]:
    """Each session once, in the first recording's order; those that only the second has come last.

    Equal keys match; then, in order of appearance, sessions of one harness, agent and project, those with the
    same operations before the others; at last sessions that have the same operations, or half of them.
    """
    counterparts: dict[int, Session] = {}
    left = list(second)
    for name in _NAMES:
        waiting: dict[Hashable, deque[Session]] = {}
        for session in left:
            waiting.setdefault(name(session), deque()).append(session)
        for index, session in enumerate(first):
            if index not in counterparts and (queue := waiting.get(name(session))):
                counterparts[index] = queue.popleft()
        left = [session for queue in waiting.values() for session in queue]
        left.sort(key=lambda session: session.calls[0].seq)
    unmatched = [index for index in range(len(first)) if index not in counterparts]
    if len(unmatched) * len(left) <= _MAX_COMPARED:
        for index in unmatched:
            alike = next((other for other in left if _alike(first[index], other)), None)
            if alike is not None:
                counterparts[index] = alike
                left.remove(alike)
    pairs: list[tuple[Session | None, Session | None]] = [(each, counterparts.get(n)) for n, each in enumerate(first)]
    pairs += [(None, session) for session in left]
    return [SessionPair(number, *pair) for number, pair in enumerate(pairs, 1)]


def _keyed(name: Callable[[Session], Hashable]) -> Callable[[Session], Hashable]:
    """A name that only a session with a key has: the calls without a key match nothing else."""
    return lambda session: ("", None) if session.key is None else ("key", name(session))


_NAMES: tuple[Callable[[Session], Hashable], ...] = (
    lambda session: session.key,
    _keyed(lambda session: (session.identity, session.signature)),
    _keyed(lambda session: session.identity),
    _keyed(lambda session: session.signature),
)


def _alike(first: Session, second: Session) -> bool:
    if first.key is None or second.key is None:
        return False
    shared = (Counter(first.signature) & Counter(second.signature)).total()
    return shared >= _ALIKE * max(len(first.calls), len(second.calls))
