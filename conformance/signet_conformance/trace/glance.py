"""Scans lines of a large recording without parsing them: number, sessions and failure of each exchange.

A glance decodes a few members of a line. Where those do not suffice (a body that is text, headers that name a session),
the exchange is read whole. On Linux several processes glance, each at a part of the file.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from signet_conformance.children.spread import forked_workers, spread
from signet_conformance.trace.model import NOT_CARRIED, Exchange

SESSION_HEADER = "x-signet-session-key"
MOST_NUMBER = 2**63 - 1
"""No exchange of a large recording has a larger number."""
_SERVER_FAILED = 500


class Glance(NamedTuple):
    """The number of an exchange, the session keys that its request may mean, and whether it went wrong.

    `troubled`: it ended with an error, or with a status of 500 or more.
    """

    seq: int
    names: tuple[str, ...]
    troubled: bool


def normalised_key(raw_key: str | None) -> str | None:
    """The daemon's own key: trimmed, one leading `session:` removed; None when nothing is left."""
    if raw_key is None:
        return None
    return raw_key.strip().removeprefix("session:") or None


class _Members(Struct):
    sessionKey: Any = None  # noqa: N815 - as it stands in the line
    sessionId: Any = None  # noqa: N815 - the same


class _Body(Struct):
    json: _Members
    text: Raw | UnsetType = UNSET
    cut: bool = False


class _Request(Struct):
    headers: Raw
    body: _Body | None = None


class _AnswerBody(Struct):
    cut: bool = False


class _Response(Struct):
    status: int
    body: _AnswerBody | None = None


class _Line(Struct, tag_field="kind", tag="exchange"):
    seq: int
    request: _Request
    response: _Response | None = None
    error: Any = None


_DECODER = Decoder(_Line)


def glance(raw: bytes) -> Glance | None:
    """Glance at a line; None where the exchange has to be read whole."""
    if not raw.endswith(b"}\n"):
        return None
    try:
        line = _DECODER.decode(raw)
    except (MsgspecError, UnicodeError, RecursionError):
        return None
    body, response = line.request.body, line.response
    if response is not None and response.body is not None and response.body.cut:
        return None
    if isinstance(line.error, dict) and line.error.get("kind") == NOT_CARRIED:
        return None
    if not 0 <= line.seq <= MOST_NUMBER:
        return None
    if _may_name_a_session(bytes(line.request.headers)) or (body is not None and (body.cut or body.text is not UNSET)):
        return None
    names = () if body is None else _names((body.json.sessionKey, body.json.sessionId))
    return Glance(line.seq, names, _is_troubled(line.error, response))


@lru_cache(256)
def _may_name_a_session(headers: bytes) -> bool:
    # An escape may stand for any letter of a header's name. Most requests have the headers of another.
    return b"\\" in headers or b"session" in headers.lower()


def glance_at(exchange: Exchange) -> Glance:
    """The glance of an exchange that was read whole."""
    request = exchange.request
    members: Mapping[str, Any] = (None if request.body is None else request.body.object) or {}
    named = (request.header(SESSION_HEADER), members.get("sessionKey"), members.get("sessionId"))
    return Glance(exchange.seq, _names(named), _is_troubled(exchange.error, exchange.response))


def _names(values: Iterable[Any]) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    for value in values:
        if isinstance(value, str) and (key := normalised_key(value)) is not None:
            names += (key,)
    return names


def _is_troubled(error: object, response: Any) -> bool:
    return error is not None or (response is not None and response.status >= _SERVER_FAILED)


_NO_SESSION = -1


class SessionGroups:
    """Groups exchanges by their keys: two are in one group if they share a key, or if another joins their keys."""

    def __init__(self) -> None:
        self.groups = array("l")
        """The group of each exchange; below zero if it names no key."""
        self._named: dict[str, int] = {}
        self._parents = array("l")

    def put(self, names: Sequence[str]) -> None:
        """Add the keys that the next exchange names."""
        if not names:
            self.groups.append(_NO_SESSION)
            return
        first = self._group(names[0])
        for name in names[1:]:
            first_root, other_root = self._root(first), self._root(self._group(name))
            self._parents[max(first_root, other_root)] = min(first_root, other_root)
        self.groups.append(first)

    def put_all(self, later: SessionGroups) -> None:
        """Add the keys of the next exchanges, which `later` has grouped."""
        known = array("l", [self._group(name) for name in later._named])
        for name, parent in enumerate(later._parents):
            if name != parent:
                first_root, other_root = self._root(known[name]), self._root(known[parent])
                self._parents[max(first_root, other_root)] = min(first_root, other_root)
        self.groups.extend([group if group < 0 else known[group] for group in later.groups])

    def settle(self) -> None:
        """Set the final group of each exchange, after all were added."""
        self.groups[:] = array("l", [group if group < 0 else self._root(group) for group in self.groups])
        self._named.clear()
        self._parents = array("l")

    def pieces(self, sizes: Sequence[int], piece: int, most: int) -> Sequence[Sequence[int]] | None:
        """The places of all exchanges, in pieces of groups that are about so large; None where a group is over `most`.

        An exchange that names no key goes with the one before it.
        """
        whole: dict[int, int] = {}
        for group, size in zip(self.groups, sizes, strict=True):
            if group >= 0:
                whole[group] = whole.get(group, 0) + size
        if max(whole.values(), default=0) > most:
            return None
        pieces: list[array[int]] = [array("l")]
        piece_of: dict[int, int] = {}
        held = at = 0
        for place, group in enumerate(self.groups):
            if group >= 0 and group not in piece_of:
                if held > piece:
                    pieces.append(array("l"))
                    held = 0
                piece_of[group] = len(pieces) - 1
                held += whole[group]
            if group >= 0:
                at = piece_of[group]
            elif at == len(pieces) - 1:
                held += sizes[place]
                if held > 2 * piece:
                    # Many that name no key, one after the other: no session would end the piece.
                    pieces.append(array("l"))
                    held, at = sizes[place], len(pieces) - 1
            pieces[at].append(place)
        return [_as_range(places) for places in pieces if places]

    def _group(self, name: str) -> int:
        group = self._named.setdefault(name, len(self._parents))
        if group == len(self._parents):
            self._parents.append(group)
        return group

    def _root(self, group: int) -> int:
        parents = self._parents
        while parents[group] != group:
            parents[group] = parents[parents[group]]
            group = parents[group]
        return group


def _as_range(places: array[int]) -> Sequence[int]:
    """Return a range if the places follow each other, as most do: it takes no memory."""
    whole = range(places[0], places[-1] + 1)
    return whole if len(whole) == len(places) else places


LEAST_BYTES = 32 * 1024 * 1024
"""One process scans a smaller file before others have started."""
_BUFFER_BYTES = 256 * 1024


class Glances(Struct):
    """The glances at neighbouring lines, in a form that another process can be sent.

    `begins` is the offset of the first line, `ends` that of the next one: of the following part, or of a line that has
    to be read whole.
    """

    begins: int
    ends: int
    numbers: array[int] = field(default_factory=lambda: array("q"))
    lengths: array[int] = field(default_factory=lambda: array("i"))
    sessions: SessionGroups = field(default_factory=SessionGroups)
    troubled: list[int] = field(default_factory=list)

    def put(self, new: Glance, length: int) -> None:
        """Add the glance at the next line."""
        self.sessions.put(new.names)
        if new.troubled:
            self.troubled.append(new.seq)
        self.numbers.append(new.seq)
        self.lengths.append(length)
        self.ends += length


class _GlancesAhead(Struct):
    """Glances that other processes already make: the file, the first offset, the results, and how to end them."""

    file: tuple[int, int, int]
    begins: int
    results: Iterator[Glances]
    processes: ExitStack


_begun_ahead: list[_GlancesAhead] = []


@contextmanager
def glance_ahead(stream: IO[bytes], begins: int, size: int, workers: int, longest: int) -> Iterator[None]:
    """Have other processes glance at a file in the background; `glance_over` collects the results inside the block.

    For a caller that has other work first, such as imports. The arguments are those of `glance_over`.
    """
    parts = _parts(begins, size, workers)
    with ExitStack() as processes:
        results = processes.enter_context(forked_workers(_glancer(stream, begins, longest), parts, workers))
        _begun_ahead.append(_GlancesAhead(_identity(stream), begins, results, processes))
        try:
            yield
        finally:
            _begun_ahead.clear()


def glance_over(stream: IO[bytes], begins: int, size: int, workers: int, longest: int) -> Sequence[Glances]:
    """Glance at the lines of a file from the one at offset `begins` on, in order and without a gap.

    Stops before the first line that is longer than `longest` or has to be read whole. The position of the stream does
    not change. Needs Linux.
    """
    if _begun_ahead and (_begun_ahead[0].file, _begun_ahead[0].begins) == (_identity(stream), begins):
        ahead = _begun_ahead.pop()
        with ahead.processes:
            return list(_without_gap(ahead.results, begins))
    parts = _parts(begins, size, workers)
    return list(_without_gap(spread(_glancer(stream, begins, longest), parts, workers), begins))


def _identity(stream: IO[bytes]) -> tuple[int, int, int]:
    status = os.fstat(stream.fileno())
    return status.st_dev, status.st_ino, status.st_size


def _parts(begins: int, size: int, count: int) -> Sequence[tuple[int, int]]:
    step = (size - begins) // count + 1
    return [(first, min(first + step, size)) for first in range(begins, size, step)]


def _without_gap(parts: Iterable[Glances], at: int) -> Iterator[Glances]:
    for glances in parts:
        if glances.begins != at:
            break
        yield glances
        at = glances.ends


def _glancer(stream: IO[bytes], begins: int, longest: int) -> Callable[[tuple[int, int]], Glances]:
    return partial(_part, Path(f"/proc/self/fd/{stream.fileno()}"), begins, longest)


def _part(file: Path, foremost: int, longest: int, part: tuple[int, int]) -> Glances:
    """Glance at the lines that begin in a part of the file, which is opened anew: forks share a stream's position."""
    first, beyond = part
    with file.open("rb", _BUFFER_BYTES) as lines:
        if first > foremost:
            # The line that begins before the part is another's.
            lines.seek(first - 1)
            first += len(lines.readline(longest + 1)) - 1
        else:
            lines.seek(first)
        glances = Glances(first, first)
        while glances.ends < beyond:
            raw = lines.readline(longest + 1)
            new = glance(raw) if len(raw) <= longest else None
            if new is None:
                break
            glances.put(new, len(raw))
    return glances
