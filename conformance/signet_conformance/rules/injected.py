"""The rule SIG-PROMPT-007: a connector does not send injected text back as if it were part of the conversation.

A recording may inject thousands of texts. `Needles` finds any of them in what the connector sends, in linear time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from signet_conformance.contract import MUST, requirements
from signet_conformance.facts import LIFECYCLE, SAVES, Call, Recording, once_a_recording
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, in_body
from signet_conformance.rules.transcripts import said_in_lines
from signet_conformance.trace.marks import StepMark

SHORTEST_INJECT = 40
"""Injected text of fewer characters is too common to be recognised when it comes back."""
SHORTEST_TRIMMED = 20
"""An injected text that is shorter after trimming is not searched for either: it would be found everywhere."""
_DATE_HEADING = "# Current Date & Time"
_MAIN_DELIMITERS = ("\n", ".", "x")
"""The delimiters that split nearly all injected texts: they have several lines, several sentences, or are long."""
_INJECTABLE = ("userMessage", "userPrompt", "transcript", "summary", "content")


class Injects(NamedTuple):
    """What the answers of a recording inject: the first exchange that injects, and a search for the injected texts."""

    first_seq: int
    needles: Needles


class PieceInjects(NamedTuple):
    """What a piece of a large recording injects and sends, in a compact form.

    `first_seq` is the first exchange that injects; None without one. `subjects` are the numbers of the calls that the
    rule checks, `pieces` the hashes of the pieces of their texts, by the delimiter that splits the texts.
    """

    first_seq: int | None
    needles: StoredNeedles
    subjects: array[int]
    pieces: Mapping[str, array[int]]

    def may_repeat(self, injects: Injects) -> bool:
        """Return False only if no call of the piece can repeat an injected text."""
        return injects.needles.may_occur(self.pieces)


def injected_text_stays_out(recording: Recording) -> Iterator[Outcome]:
    """Text that the daemon injected is not sent back as if the user or the model had said it."""
    must = requirements()["SIG-PROMPT-007"].level_at(recording.daemon_version) == MUST
    injects = injects_of(recording)
    if injects is None:
        return
    one_line_needles = _one_line_needles(recording)
    for call, fields in _subjects(recording):
        if call.seq <= injects.first_seq:
            continue
        hit = _find_injected(injects.needles, fields, call)
        if hit is None and one_line_needles is not None:
            hit = _find_injected(one_line_needles, ((name, _one_line(text)) for name, text in fields), call)
        if hit is None:
            yield PASS
        else:
            field, injected_by = hit
            name = "comes back" if must else "comes back while that is no MUST"
            finding = breach_of(
                "SIG-PROMPT-007", name, call, field=field, place=in_body(field), injected_by=injected_by
            )
            yield replace(finding, exchanges=(call.seq, injected_by))


def _find_injected(needles: Needles, fields: Iterable[tuple[str, str]], call: Call) -> tuple[str, int] | None:
    """The first field of a call that contains text injected earlier, and the exchange that injected it."""
    found = ((name, needles.first_in(text, before=call.seq)) for name, text in fields)
    return next(((name, seq) for name, seq in found if seq is not None), None)


def _one_line_needles(recording: Recording) -> Needles | None:
    """The injected texts as single lines, since some connectors write a turn as one line. None without step marks."""
    if not recording.is_held or not recording.marks(StepMark):
        return None
    texts = ((_one_line(text), seq) for seq, inject in _injecting(recording) for text in _recognisable(inject))
    return Needles(_first_seqs((text, seq) for text, seq in texts if len(text) >= SHORTEST_INJECT))


def _first_seqs(texts: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    """Each text with the first of its numbers."""
    seqs: dict[str, int] = {}
    for text, seq in texts:
        seqs.setdefault(text, seq)
    return seqs


def _one_line(text: str) -> str:
    return " ".join(text.split())


@once_a_recording
def injects_of(recording: Recording) -> Injects | None:
    """What the answers of a recording inject; None if nothing that can be recognised."""
    first_seq = next((seq for seq, _ in _injecting(recording)), None)
    if recording.is_held and first_seq is not None:
        texts = ((text, seq) for seq, inject in _injecting(recording) for text in _recognisable(inject))
        return Injects(first_seq, Needles(_first_seqs(texts)))
    return injects_in_file(recording, first_seq, _stored_needles(_injecting(recording)))


def _subjects(recording: Recording) -> Iterator[tuple[Call, list[tuple[str, str]]]]:
    """The calls that may send injected text back, each with its text fields as (name, text).

    With step marks, a field of JSON lines also gives what the lines say: the raw lines have their line breaks escaped.
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
    """The text that the answer to a call injects; None if it is too short to be recognised."""
    inject = source.answer_value("inject") if source.accepted else None
    return inject if isinstance(inject, str) and len(inject) >= SHORTEST_INJECT else None


def injects_of_piece(piece: Recording) -> PieceInjects:
    """What a piece of a large recording injects and sends."""
    subjects = list(_subjects(piece))
    texts = [text for _, fields in subjects for _, text in fields]
    pieces = {delimiter: array("q", hashes_of_pieces(texts, delimiter)) for delimiter in _MAIN_DELIMITERS}
    injecting = list(_injecting(piece))
    first_seq = injecting[0][0] if injecting else None
    numbers = array("q", [call.seq for call, _ in subjects])
    return PieceInjects(first_seq, StoredNeedles(_stored_needles(injecting)), numbers, pieces)


def _injecting(recording: Recording) -> Iterator[tuple[int, str]]:
    """Each exchange that injects text: its number and the text."""
    return ((call.seq, inject) for call in recording.calls if (inject := _inject(call)) is not None)


def _stored_needles(injecting: Iterable[tuple[int, str]]) -> Iterator[StoredNeedle]:
    """The needles of the injected texts, in the order of the exchanges."""
    for seq, inject in injecting:
        for number, text in enumerate(_recognisable(inject)):
            yield StoredNeedle.of(text, seq * Needles.PLACES + number)


def injects_in_file(recording: Recording, first_seq: int | None, needles: Iterable[StoredNeedle]) -> Injects | None:
    """What the answers of a recording inject, if it stays in its file. `needles` are in the order of their places."""
    if first_seq is None:
        return None

    def fetch(place: int) -> str:
        seq, number = divmod(place, Needles.PLACES)
        return list(_recognisable(_inject(recording.by_seq[seq]) or ""))[number]

    return Injects(first_seq, Needles({}, _first_of_each(needles), fetch))


def _first_of_each(needles: Iterable[StoredNeedle]) -> Iterator[StoredNeedle]:
    """The needles without repetitions of earlier ones."""
    seen: set[int] = set()
    for needle in needles:
        if needle.text_hash not in seen:
            seen.add(needle.text_hash)
            yield needle


def _recognisable(inject: str) -> Iterator[str]:
    """The texts to search for: the trimmed inject, and the inject without its date heading and date, if long enough.

    If the inject begins with the heading, the whole is left out: it contains the rest, which is then found anyway.
    """
    whole = inject.strip()
    lines = whole.split("\n")
    heading = next((index for index, line in enumerate(lines) if line.strip() == _DATE_HEADING), None)
    rest = "" if heading is None else "\n".join(lines[:heading] + lines[heading + 2 :]).strip()
    if has_rest := len(rest) >= SHORTEST_INJECT:
        yield rest
    if len(whole) >= SHORTEST_TRIMMED and not (has_rest and heading == 0):
        yield whole


_MAX_PLAIN = 12
"""Up to this many needles are searched for one by one."""
_MAX_BLOCK_CHARS = 24
_MIN_PIECE_CHARS = 24
_LAST_PIECES = 12
_DELIMITERS = ("\n", ".", "x", "s ", "e ")
"""What splits texts into pieces, the coarsest first: lines, sentences, a rare letter, and frequent ends of words."""


class StoredNeedle(NamedTuple):
    """A needle whose text is in the recording's file, at `place` (see `Needles`).

    `piece` is the piece that it is indexed by (see `longest_piece`). Only if that is None, `text` is the needle itself.
    """

    place: int
    text_hash: int
    piece: tuple[str, int] | None
    text: str | None

    @classmethod
    def of(cls, needle: str, place: int) -> StoredNeedle:
        """Describe a needle at a place."""
        piece = longest_piece(needle)
        return cls(place, hash(needle), piece, needle if piece is None else None)


class StoredNeedles:
    """Stored needles in arrays: about 25 bytes each, because a large recording may have a million."""

    def __init__(self, needles: Iterable[StoredNeedle]) -> None:
        self._places, self._hashes = array("q"), array("q")
        self._delimiters = bytearray()
        """For each needle the index of its delimiter; the number of delimiters if it has no piece."""
        self._pieces = array("q")
        self._texts: dict[int, str] = {}
        for place, text_hash, piece, text in needles:
            self._places.append(place)
            self._hashes.append(text_hash)
            self._delimiters.append(len(_DELIMITERS) if piece is None else _DELIMITERS.index(piece[0]))
            self._pieces.append(0 if piece is None else piece[1])
            if text is not None:
                self._texts[place] = text

    def __iter__(self) -> Iterator[StoredNeedle]:
        columns = zip(self._places, self._hashes, self._delimiters, self._pieces, strict=True)
        for place, text_hash, delimiter, piece in columns:
            named_piece = None if delimiter == len(_DELIMITERS) else (_DELIMITERS[delimiter], piece)
            yield StoredNeedle(place, text_hash, named_piece, self._texts.get(place))


def longest_piece(needle: str) -> tuple[str, int] | None:
    """The first delimiter that gives the needle a long piece between two delimiters, and the hash of the longest piece.

    A text that contains the needle has the same piece. None if the needle has no long piece.
    """
    for delimiter in _DELIMITERS:
        if delimiter not in needle:
            continue
        # Injected texts often begin alike and end differently, so their last pieces are tried first.
        longest = max(needle.rsplit(delimiter, _LAST_PIECES)[1:-1], key=len, default="")
        if len(longest) < _MIN_PIECE_CHARS:
            longest = max(needle.split(delimiter)[1:-1], key=len, default="")
        if len(longest) >= _MIN_PIECE_CHARS:
            return delimiter, hash(longest)
    return None


def hashes_of_pieces(texts: Iterable[str], delimiter: str) -> list[int]:
    """The hashes of the pieces of texts between two delimiters, without those too short to index a needle."""
    pieces = (text.split(delimiter)[1:-1] for text in texts if delimiter in text)
    return [hash(piece) for each in pieces for piece in each if len(piece) >= _MIN_PIECE_CHARS]


class Needles:
    """Finds which of many needles (injected texts) a text contains. A needle counts after the exchange with its number.

    There are three searches. Most needles are indexed by their longest piece, such as a line: the text is split in the
    same way, and a needle is compared only if its piece occurs. If few needles are without a long piece, they are
    searched for one by one. If many are, the text is cut into blocks of equal length. Wherever a needle occurs, it
    covers a whole block, at one of as many neighbouring offsets as a block has characters; so each needle is indexed by
    what it has at these offsets.

    `seqs` maps each needle to the number of the exchange that injected it. If a recording does not fit into memory, its
    needles come as `stored`, in the order of their exchanges. The place of a stored needle is its exchange's number
    times PLACES, plus its index in that exchange; `fetch` reads the needle at a place. Only stored needles without a
    long piece stay in memory.
    """

    PLACES = 8

    def __init__(
        self, seqs: Mapping[str, int], stored: Iterable[StoredNeedle] = (), fetch: Callable[[int], str] | None = None
    ) -> None:
        self._seqs = seqs
        self._fetch = fetch
        self._by_piece: dict[str, dict[int, str | int | list[str | int]]] = {}
        unindexed = {needle: seq for needle, seq in seqs.items() if not self._index(longest_piece(needle), needle)}
        for each in stored:
            if not self._index(each.piece, each.place):
                unindexed[str(each.text)] = each.place // self.PLACES
        self._unindexed = unindexed
        self._plain = unindexed if len(unindexed) <= _MAX_PLAIN else {}
        self._shortest = min(map(len, unindexed), default=2)
        self._block = size = max(1, min(self._shortest // 2, _MAX_BLOCK_CHARS))
        self._by_block: dict[str, tuple[int, str]] = {}
        self._others: dict[str, list[tuple[int, str]]] = {}
        if len(unindexed) > _MAX_PLAIN:
            for needle, differs in _where_each_differs(sorted(unindexed)):
                # Many needles begin alike. Blocks around the first difference have few candidates.
                first = max(0, min(differs - size + 1, len(needle) - 2 * size + 1))
                for offset in range(first, first + size):
                    block, place = needle[offset : offset + size], (offset, needle)
                    # Hardly any block belongs to two needles, and a list for each block would take most of the time.
                    if self._by_block.setdefault(block, place) is not place:
                        self._others.setdefault(block, []).append(place)

    def may_occur(self, hashes: Mapping[str, Sequence[int]]) -> bool:
        """Return False only if no stored needle occurs in texts with these hashes of pieces, by delimiter."""
        return bool(self._unindexed) or any(
            delimiter not in hashes or not pieces.keys().isdisjoint(hashes[delimiter])
            for delimiter, pieces in self._by_piece.items()
        )

    def _index(self, piece: tuple[str, int] | None, place: str | int) -> bool:
        """Index a needle by its piece. Return False if it has none."""
        if piece is None:
            return False
        # Hardly any piece belongs to two needles. If two hashes collide, the comparison with the needle decides.
        delimiter, key = piece
        pieces = self._by_piece.setdefault(delimiter, {})
        if (others := pieces.setdefault(key, place)) is not place:
            pieces[key] = [*(others if isinstance(others, list) else [others]), place]
        return True

    def first_in(self, text: str, before: int) -> int | None:
        """The number of an exchange before `before` that injected a needle in the text, or None."""
        numbers = [seq for needle, seq in self._plain.items() if seq < before and needle in text]
        for delimiter, pieces in self._by_piece.items():
            numbers += [
                seq
                for piece in pieces.keys() & set(map(hash, text.split(delimiter)))
                for seq, needle in self._needles_of(pieces[piece])
                if seq < before and needle() in text
            ]
        if numbers:
            return min(numbers)
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
                if start >= offset and self._unindexed[needle] < before and text.startswith(needle, start - offset):
                    return self._unindexed[needle]
        return None

    def _needles_of(self, places: str | int | list[str | int]) -> Iterator[tuple[int, Callable[[], str]]]:
        """For each needle at some places its exchange, and a function that returns the needle."""
        for place in places if isinstance(places, list) else [places]:
            if isinstance(place, int) and self._fetch is not None:
                yield place // self.PLACES, partial(self._fetch, place)
            else:
                yield self._seqs[str(place)], partial(str, place)


def _where_each_differs(ordered: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Each of the sorted strings, with the first offset at which it differs from all others."""
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
