"""The requirement on injected text: text that the daemon injected is not sent back as words of the conversation.

A recording may inject thousands of texts: `Needles` finds any of them in the words that are sent, in linear time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import NamedTuple

from msgspec.structs import replace

from signet_conformance.contract import MUST, requirements
from signet_conformance.facts import LIFECYCLE, SAVES, Call, Recording, once_a_recording
from signet_conformance.rules.outcome import PASS, Outcome, fail, in_body, warn
from signet_conformance.rules.transcripts import said_in_lines
from signet_conformance.trace.marks import StepMark

SHORTEST_INJECT = 40
"""Injected text under this many characters is too common to be recognised when it comes back."""
SHORTEST_TRIMMED = 20
"""What is left of such a text without the white space around it; less would be found everywhere."""
_DATE_HEADING = "# Current Date & Time"
_FIRST_MARKS = ("\n", ".", "x")
"""Where nearly all injected texts are taken to pieces: they have several lines, or sentences, or are long."""
_INJECTABLE = ("userMessage", "userPrompt", "transcript", "summary", "content")


class Injects(NamedTuple):
    """What the answers of a recording inject: the number of the first that does, and how the texts are recognised."""

    since: int
    needles: Needles


class Noted(NamedTuple):
    """What the answers of a piece of a recording inject, and what its requests may repeat, in few words.

    `since` is the first exchange that injects; None where none does. `subjects` are the numbers of the calls that are
    looked at, and `pieces` the hashes of the long pieces of their texts between two marks, by mark.
    """

    since: int | None
    texts: Distants
    subjects: array[int]
    pieces: Mapping[str, array[int]]

    def may_repeat(self, injects: Injects) -> bool:
        """False only where no call of the piece can repeat an injected text."""
        return injects.needles.may_occur(self.pieces)


def injected_text_stays_out(recording: Recording) -> Iterator[Outcome]:
    """Text that the daemon injected is not sent back to it as if the user or the model had said it."""
    must = requirements()["SIG-PROMPT-007"].level_at(recording.daemon_version) == MUST
    injects = injects_of(recording)
    if injects is None:
        return
    in_one_line = _in_one_line(recording)
    for call, fields in _subjects(recording):
        if call.seq <= injects.since:
            continue
        hit = _find_injected(injects.needles, fields, call)
        if hit is None and in_one_line is not None:
            hit = _find_injected(in_one_line, ((name, _one_line(text)) for name, text in fields), call)
        if hit is None:
            yield PASS
        else:
            finding = (fail if must else warn)(
                call,
                message=f"text that the daemon injected comes back in {hit[0]}",
                pointer=in_body(hit[0]),
                expected="the conversation without injected text",
                received=f"the inject of #{hit[1]}",
                fold=hit[0],
            )
            yield replace(finding, exchanges=(call.seq, hit[1]))


def _find_injected(needles: Needles, fields: Iterable[tuple[str, str]], call: Call) -> tuple[str, int] | None:
    """The first text of a call that holds what was injected before, by its name, and the number of the answer."""
    found = ((name, needles.first_in(text, before=call.seq)) for name, text in fields)
    return next(((name, seq) for name, seq in found if seq is not None), None)


def _in_one_line(recording: Recording) -> Needles | None:
    """The injected texts, each in one line, where steps are marked: some connectors write a turn of a transcript so."""
    if not recording.is_held or not recording.marks(StepMark):
        return None
    since: dict[str, int] = {}
    for seq, inject in _injecting(recording):
        for text in map(_one_line, _recognisable(inject)):
            if len(text) >= SHORTEST_INJECT:
                since.setdefault(text, seq)
    return Needles(since)


def _one_line(text: str) -> str:
    return " ".join(text.split())


@once_a_recording
def injects_of(recording: Recording) -> Injects | None:
    """What the answers of a recording inject; None where they inject nothing that can be recognised."""
    since = next((seq for seq, _ in _injecting(recording)), None)
    if recording.is_held:
        return _held_injects(recording, since)
    return injects_noted(recording, since, _texts(_injecting(recording)))


def _subjects(recording: Recording) -> Iterator[tuple[Call, list[tuple[str, str]]]]:
    """The calls that may say what was injected, with their texts by name.

    Where steps are marked, lines of JSON are looked through as what they say: line breaks are escaped in them.
    """
    driven = bool(recording.marks(StepMark))
    for call in recording.calls:
        if call.operation in LIFECYCLE or call.operation in SAVES:
            fields = [(name, v) for name in _INJECTABLE if isinstance(v := call.body.get(name), str)]
            if driven:
                fields += [(name, spoken) for name, v in fields for spoken in said_in_lines(v)]
            if fields:
                yield call, fields


def _inject(source: Call) -> str | None:
    """The text that an answer injects, if it can be recognised when it comes back."""
    inject = source.answer_value("inject") if source.accepted else None
    return inject if isinstance(inject, str) and len(inject) >= SHORTEST_INJECT else None


def _held_injects(recording: Recording, first: int | None) -> Injects | None:
    if first is None:
        return None
    since: dict[str, int] = {}
    for seq, inject in _injecting(recording):
        for text in _recognisable(inject):
            since.setdefault(text, seq)
    return Injects(first, Needles(since))


def noted(piece: Recording) -> Noted:
    """What a piece of a recording injects and says."""
    subjects, pieces = array("q"), {mark: array("q") for mark in _FIRST_MARKS}
    for call, fields in _subjects(piece):
        subjects.append(call.seq)
        for _, text in fields:
            for mark, hashes in pieces.items():
                hashes.extend(hashes_of_pieces(text, mark))
    injecting = list(_injecting(piece))
    return Noted(injecting[0][0] if injecting else None, Distants(_texts(injecting)), subjects, pieces)


def _injecting(recording: Recording) -> Iterator[tuple[int, str]]:
    """The numbers of the exchanges whose answers inject something, each with what."""
    return ((call.seq, inject) for call in recording.calls if (inject := _inject(call)) is not None)


def _texts(injecting: Iterable[tuple[int, str]]) -> Iterator[Distant]:
    """By what the injected texts are recognised, in the order of the exchanges."""
    for seq, inject in injecting:
        for number, text in enumerate(_recognisable(inject)):
            yield Distant.of(text, seq * Needles.PLACES + number)


def injects_noted(recording: Recording, since: int | None, texts: Iterable[Distant]) -> Injects | None:
    """The same of a recording whose `texts` stand in its file, given in the order of their places."""
    if since is None:
        return None

    def fetch(place: int) -> str:
        seq, number = divmod(place, Needles.PLACES)
        return list(_recognisable(_inject(recording.by_seq[seq]) or ""))[number]

    return Injects(since, Needles({}, _first_of_each(texts), fetch))


def _first_of_each(texts: Iterable[Distant]) -> Iterator[Distant]:
    """The texts without those that an earlier answer injected already."""
    seen: set[int] = set()
    for text in texts:
        if text.told not in seen:
            seen.add(text.told)
            yield text


def _recognisable(inject: str) -> Iterator[str]:
    """The trimmed inject, and the whole of it without the date heading and the line after, where long enough.

    What follows a heading at the beginning is part of the whole, so the whole need not be looked for as well.
    """
    whole = inject.strip()
    lines = whole.split("\n")
    heading = next((index for index, line in enumerate(lines) if line.strip() == _DATE_HEADING), None)
    rest = "" if heading is None else "\n".join(lines[:heading] + lines[heading + 2 :]).strip()
    if is_known := len(rest) >= SHORTEST_INJECT:
        yield rest
    if len(whole) >= SHORTEST_TRIMMED and not (is_known and heading == 0):
        yield whole


_FEW = 12
_LONGEST_BLOCK = 24
_LAST_PIECES = 12
_MARKS = ("\n", ".", "x", "s ", "e ")
"""Where texts are taken to pieces, coarsest first: lines, sentences, a rare letter, and what most words end with."""


class Distant(NamedTuple):
    """A needle in a file: its place, its hash and its length.

    `piece` is the key of its index, as `longest_piece` returns it; a needle without one keeps its `text`.
    """

    place: int
    told: int
    length: int
    piece: tuple[str, int] | None
    text: str | None

    @classmethod
    def of(cls, needle: str, place: int) -> Distant:
        """Return the facts to keep about a needle at a place."""
        piece = longest_piece(needle)
        return cls(place, hash(needle), len(needle), piece, needle if piece is None else None)


class Distants:
    """Distant needles in columns: some thirty bytes each, for a large recording has as many as answers that inject."""

    def __init__(self, needles: Iterable[Distant]) -> None:
        self._places, self._told, self._lengths = array("q"), array("q"), array("i")
        self._marks = bytearray()
        """By which of the marks each is taken to pieces; one more than the last where it has no piece."""
        self._pieces = array("q")
        self._texts: dict[int, str] = {}
        for place, told, length, piece, text in needles:
            self._places.append(place)
            self._told.append(told)
            self._lengths.append(length)
            self._marks.append(len(_MARKS) if piece is None else _MARKS.index(piece[0]))
            self._pieces.append(0 if piece is None else piece[1])
            if text is not None:
                self._texts[place] = text

    def __iter__(self) -> Iterator[Distant]:
        columns = zip(self._places, self._told, self._lengths, self._marks, self._pieces, strict=True)
        for place, told, length, mark, piece in columns:
            indexed = None if mark == len(_MARKS) else (_MARKS[mark], piece)
            yield Distant(place, told, length, indexed, self._texts.get(place))


def longest_piece(needle: str) -> tuple[str, int] | None:
    """Return the mark that splits a needle, and the hash of its longest piece between two marks.

    A text that holds the needle holds that piece too. Returns None if no piece is long.
    """
    for mark in _MARKS:
        if mark not in needle:
            continue
        # Injected texts differ least at their beginnings; their last pieces mostly do.
        longest = max(needle.rsplit(mark, _LAST_PIECES)[1:-1], key=len, default="")
        if len(longest) < _LONGEST_BLOCK:
            longest = max(needle.split(mark)[1:-1], key=len, default="")
        if len(longest) >= _LONGEST_BLOCK:
            return mark, hash(longest)
    return None


def hashes_of_pieces(text: str, mark: str) -> list[int]:
    """The hashes of the pieces of a text between two marks which are as long as those that needles are indexed by."""
    # Before the first mark and after the last, a needle in the text would be cut: such pieces do not count.
    return [hash(piece) for piece in text.split(mark)[1:-1] if len(piece) >= _LONGEST_BLOCK]


class Needles:
    """Strings, each with the number from which it counts, and the search for any of them in a text.

    The search splits a text into blocks of n characters. Of n neighbouring offsets in a needle, one is where a block of
    a text begins that holds the needle. So the needle is indexed by its blocks at n such offsets, and one look-up for
    each block of a text finds every candidate, however many needles there are. Most needles are indexed by a line or a
    phrase of theirs instead, which costs less. For few needles a plain search is faster.

    `since` maps needles to their numbers. Needles of a recording that does not fit into memory come as `elsewhere`, in
    the order of their numbers. Each has a place, its number times PLACES plus a little, where `fetch` finds it again.
    Only those without such a line or phrase are kept in memory.
    """

    PLACES = 8

    def __init__(
        self, since: Mapping[str, int], elsewhere: Iterable[Distant] = (), fetch: Callable[[int], str] | None = None
    ) -> None:
        self._since = dict(sorted(since.items(), key=lambda item: item[1]))
        self._fetch = fetch
        self._least = min(map(len, since), default=0)
        self._by_piece: dict[str, dict[int, str | int | list[str | int]]] = {}
        known = iter(elsewhere)
        few = {each.text or self._fetched(each.place): each.place for each in islice(known, _FEW + 1)}
        self._since.update({needle: place // self.PLACES for needle, place in few.items()})
        since = self._since
        if len(since) > _FEW:
            since = {
                needle: seq
                for needle, seq in since.items()
                if not self._index(longest_piece(needle), len(needle), few.get(needle, needle))
            }
            for each in known:
                if not self._index(each.piece, each.length, each.place):
                    since[str(each.text)] = each.place // self.PLACES
        if fetch is not None:
            self._since = since
        self._few = since if len(since) <= _FEW else {}
        self._shortest = min(map(len, since), default=2)
        self._block = size = max(1, min(self._shortest // 2, _LONGEST_BLOCK))
        self._by_block: dict[str, tuple[int, str]] = {}
        self._others: dict[str, list[tuple[int, str]]] = {}
        if len(since) > _FEW:
            for needle, differs in _where_each_differs(sorted(since)):
                # Many needles share their headings: blocks around what sets one apart have few candidates.
                first = max(0, min(differs - size + 1, len(needle) - 2 * size + 1))
                for offset in range(first, first + size):
                    block, place = needle[offset : offset + size], (offset, needle)
                    # Hardly any block belongs to two needles: a list for each would cost most of the time.
                    if self._by_block.setdefault(block, place) is not place:
                        self._others.setdefault(block, []).append(place)

    def may_occur(self, hashes: Mapping[str, Sequence[int]]) -> bool:
        """False only where no needle from elsewhere occurs in texts whose long pieces have these hashes, by mark."""
        others = [longest_piece(needle) for needle in self._since]
        if any(piece is None or piece[0] not in hashes or piece[1] in hashes[piece[0]] for piece in others):
            return True
        return any(
            mark not in hashes or not known.keys().isdisjoint(hashes[mark]) for mark, known in self._by_piece.items()
        )

    def _fetched(self, place: int) -> str:
        return "" if self._fetch is None else self._fetch(place)

    def _index(self, piece: tuple[str, int] | None, length: int, place: str | int) -> bool:
        """Index a needle by a piece of it; whether there is any."""
        self._least = min(self._least, length) if self._least else length
        if piece is None:
            return False
        # Hardly any piece belongs to two needles, and one that another only hashes like is looked at closely.
        mark, key = piece
        pieces = self._by_piece.setdefault(mark, {})
        if (others := pieces.setdefault(key, place)) is not place:
            pieces[key] = [*(others if isinstance(others, list) else [others]), place]
        return True

    def first_in(self, text: str, before: int) -> int | None:
        """The number of a needle known before `before` that the text contains; None when it contains no needle."""
        if len(text) < self._least:
            return None
        for mark, pieces in self._by_piece.items():
            there = set(map(hash, text.split(mark)))
            if pieces.keys().isdisjoint(there):
                continue
            numbers = [
                seq
                for piece in pieces.keys() & there
                for seq, needle in self._needles_of(pieces[piece])
                if seq < before and needle() in text
            ]
            if numbers:
                return min(numbers)
        for needle, seq in self._few.items():
            if seq < before and needle in text:
                return seq
        if not self._by_block or len(text) < self._shortest:
            return None
        size = self._block
        starts = range(0, len(text) - size + 1, size)
        if self._by_block.keys().isdisjoint([text[start : start + size] for start in starts]):
            return None
        for start in starts:
            block = text[start : start + size]
            if block not in self._by_block:
                continue
            for offset, needle in (self._by_block[block], *self._others.get(block, ())):
                if start >= offset and self._since[needle] < before and text.startswith(needle, start - offset):
                    return self._since[needle]
        return None

    def _needles_of(self, places: str | int | list[str | int]) -> Iterator[tuple[int, Callable[[], str]]]:
        """The numbers of the needles at some places, each with what tells the needle."""
        for place in places if isinstance(places, list) else [places]:
            if isinstance(place, int) and self._fetch is not None:
                yield place // self.PLACES, partial(self._fetch, place)
            else:
                yield self._since[str(place)], partial(str, place)


def _where_each_differs(ordered: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Each of some sorted strings with the first offset at which it is unlike all others."""
    shared = [0, *(_shared_beginning(text, other) for text, other in pairwise(ordered)), 0]
    for place, needle in enumerate(ordered):
        yield needle, max(shared[place], shared[place + 1])


def _shared_beginning(text: str, other: str) -> int:
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low
