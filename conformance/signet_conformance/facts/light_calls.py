"""Calls of a recording that is too large for memory: they keep facts, and read the rest from the file.

A :class:`Kind` holds what many calls share, and columns of numbers hold the rest. So an exchange takes some hundred
bytes, however large its bodies are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from sys import intern
from typing import Any, NamedTuple

from signet_conformance.contract import daemon_requirements, requirements
from signet_conformance.facts.calls import EMPTY, PROMPT, START, Call, first_of_each_name
from signet_conformance.trace import Exchange
from signet_conformance.trace.file_exchanges import FileExchanges
from signet_conformance.trace.model import Pairs

_LONGEST_KEPT = 200
_KEPT_HEADERS = "x-signet-"
_MOST_SHARED = 4
"""How many different values of a member count as shared by many calls; beyond that, each call has its own."""


@cache
def compared_members() -> frozenset[str]:
    """The members of bodies and answers that rules over several exchanges compare, as their entries say."""
    entries = (*requirements().values(), *daemon_requirements().values())
    read = (reading for entry in entries if entry.scope != "exchange" for reading in entry.reads)
    names = (reading.names for reading in read if reading.part in ("body", "answer") and reading.mode == "value")
    return frozenset(name for some in names for name in some if name)


_ELSEWHERE, _KEY = ..., NotImplemented
"""Placeholders for a member that is in the file alone, and for the key, which the call has already.

No JSON value is either, and both are the same object in every process.
"""


class _Own(int):
    """A placeholder for a member that is the call's own: its index among those."""


@cache
def _places() -> Sequence[_Own]:
    """Placeholders for all members that a body and its answer can have."""
    return tuple(map(_Own, range(2 * len(compared_members()))))


StoredMembers = dict[str, Any]


class Members(Mapping[str, Any]):
    """The members of a body or an answer: small ones are in memory, others are read from the file."""

    __slots__ = ("_answer", "_call", "_stored")

    def __init__(self, call: LightCall, stored: StoredMembers, *, answer: bool) -> None:
        self._call = call
        self._stored = stored
        self._answer = answer

    def __getitem__(self, name: str) -> Any:
        value = self._stored[name]
        if value is _KEY:
            return self._call.raw_key
        if type(value) is _Own:
            return self._call.own[value]
        return self._whole()[name] if value is _ELSEWHERE else value

    def get(self, name: str, default: Any = None) -> Any:
        """A member, or the default for one that it lacks."""
        return self[name] if name in self._stored else default

    def __contains__(self, name: object) -> bool:
        return name in self._stored

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def _whole(self) -> Mapping[str, Any]:
        exchange = self._call.exchange
        message = exchange.response if self._answer else exchange.request
        return (message.body.object if message is not None and message.body is not None else None) or EMPTY


class Kind(NamedTuple):
    """The facts that many calls share.

    Only headers whose names begin as `_KEPT_HEADERS` do are kept.
    """

    method: str
    path: str
    is_hook: bool
    error: str | None
    served: bool
    operation: str | None
    cut: bool
    incomplete: bool
    query: Mapping[str, str]
    fault: str | None
    delivered: bool
    status: int | None
    readable: bool
    accepted: bool
    agent: str
    runtime_path: str | None
    headers: StoredMembers
    members: StoredMembers
    answer_members: StoredMembers | None


class PackedFacts(NamedTuple):
    """The facts of some calls, in a form for another process: columns, and the rows to which two of them refer.

    `digest` is the hash of a prompt's text, 1 for a start that was answered with the stub, else 0.
    """

    t0: array[float]
    t1: array[float]
    digest: array[int]
    kind: array[int]
    kinds: Sequence[Kind]
    names: array[int]
    named: Sequence[tuple[str | None, str | None, tuple[str, ...]]]
    """The key, the key as sent, and the call's own members."""


class LightCall(Call):
    """A call whose exchange is in a file: its place in the columns, its shared facts, and its keys."""

    __slots__ = ("_facts", "_kind", "_place", "key", "own", "raw_key")

    def __init__(
        self, facts: LightCalls, place: int, kind: Kind, key: str | None, raw_key: str | None, own: tuple[str, ...]
    ) -> None:
        self._facts = facts
        self._place = place
        self._kind = kind
        self.key = key
        self.raw_key = raw_key
        self.own = own

    @property
    def exchange(self) -> Exchange:  # type: ignore[override]  # read-only, and read from the file
        """The exchange, read anew."""
        return self._facts.file_exchanges[self._place]

    @property
    def seq(self) -> int:  # type: ignore[override]  # read-only, as all that follow
        """The number of the exchange."""
        return self._facts.numbers[self._place]

    @property
    def t0(self) -> float:  # type: ignore[override]
        """When the request began."""
        return self._facts.t0[self._place]

    @property
    def t1(self) -> float:  # type: ignore[override]
        """When the exchange was over."""
        return self._facts.t1[self._place]

    @property
    def body(self) -> Mapping[str, Any]:  # type: ignore[override]
        """The members of the request's object."""
        stored = self._kind.members
        return Members(self, stored, answer=False) if stored else EMPTY

    @property
    def answer(self) -> Mapping[str, Any] | None:  # type: ignore[override]
        """The members of the response's object, if it is one."""
        stored = self._kind.answer_members
        return None if stored is None else Members(self, stored, answer=True)

    def header(self, name: str) -> str | None:
        """The first value of a request header by lower-case name."""
        if name.startswith(_KEPT_HEADERS):
            return self._kind.headers.get(name)
        return first_of_each_name(self.exchange.request.headers).get(name)

    @property
    def digest(self) -> int:
        """What :class:`PackedFacts` keeps of it."""
        return self._facts.digest[self._place]

    def says_again(self, before: Call) -> bool:
        """Whether a prompt says what another one said: the same text, after the same reply."""
        return isinstance(before, LightCall) and self.digest == before.digest and super().says_again(before)

    @property
    def is_stub(self) -> bool:
        """Whether a start was answered with the stub that a repeated start gets instead of context."""
        return self.operation == START and self.digest == 1


for _name in Kind._fields:
    if _name in Call.__annotations__:
        # Looked up without a function in Python, because rules read these most.
        setattr(LightCall, _name, property(attrgetter(f"_kind.{_name}")))
del _name


def pack_calls(calls: Iterable[Call]) -> PackedFacts:
    """Pack the facts of calls whose exchanges are in memory, without the exchanges."""
    t0, t1, digest, kind_of, names_of = array("d"), array("d"), array("q"), array("l"), array("l")
    kinds: dict[object, tuple[int, Kind]] = {}
    named: dict[tuple[str | None, str | None, tuple[str, ...]], int] = {}
    stored = _MemberStore()
    for call in calls:
        operation, raw_key = call.operation, call.raw_key
        t0.append(call.t0)
        t1.append(call.t1)
        digest.append(hash(call.text) if operation == PROMPT else call.is_stub)
        own: list[str] = []
        members = stored.members(call.body, raw_key, own)
        answer_members = None if call.answer is None else stored.members(call.answer, raw_key, own)
        shared = (
            call.method, call.path, call.is_hook, call.error, call.served, operation, call.cut, call.incomplete,
            call.query, call.fault, call.delivered, call.status, call.readable, call.accepted, call.agent,
            call.runtime_path,
            stored.headers(call.exchange.request.headers), members, answer_members,
        )  # fmt: skip
        identity = _identity(shared)
        known = kinds.get(identity)
        if known is None:
            known = kinds[identity] = len(kinds), Kind(*shared)
        kind_of.append(known[0])
        names_of.append(named.setdefault((call.key, raw_key, tuple(own)), len(named)))
    return PackedFacts(t0, t1, digest, kind_of, [kind for _, kind in kinds.values()], names_of, list(named))


class _MemberStore:
    """The members and headers of many calls, as one object for all equal ones."""

    def __init__(self) -> None:
        self._kept_of: dict[tuple[str, ...], Sequence[str]] = {}
        self._members: dict[object, StoredMembers] = {}
        self._headers: dict[Pairs, StoredMembers] = {}
        self._shared = _Shared()
        self._values: dict[str, set[str]] = {name: set() for name in compared_members()}
        self._places = _places()

    def headers(self, sent: Pairs) -> StoredMembers:
        """Some headers, by lower-case names."""
        stored = self._headers.get(sent)
        if stored is None:
            first = first_of_each_name(sent)
            stored = self._shared.of({name: value for name, value in first.items() if name.startswith(_KEPT_HEADERS)})
            self._headers[sent] = stored
        return stored

    def members(self, members: Mapping[str, Any], raw_key: str | None, own: list[str]) -> StoredMembers:
        """The members of a body or an answer; those that are the call's own are added to `own`."""
        names = tuple(members)
        kept = self._kept_of.get(names)
        if kept is None:
            kept = self._kept_of[names] = [name for name in names if name in self._values]
        values: list[Any] = []
        for name in kept:
            value = members[name]
            if type(value) is not str:
                keeps = value is None or isinstance(value, (bool, int, float))
                values.append(value if keeps else _ELSEWHERE)
            elif name == "sessionKey" and value == raw_key:
                values.append(_KEY)
            elif len(value) > _LONGEST_KEPT:
                values.append(_ELSEWHERE)
            elif value in (known := self._values[name]) or len(known) < _MOST_SHARED:
                known.add(value)
                values.append(value)
            else:
                values.append(self._places[len(own)])
                own.append(value)
        # 1, 1.0 and true are equal, and yet different in a message.
        identity = (names, *values, *map(type, values))
        stored = self._members.get(identity)
        if stored is None:
            stored = self._shared.of({**dict.fromkeys(names, _ELSEWHERE), **dict(zip(kept, values, strict=True))})
            self._members[identity] = stored
        return stored


class LightCalls:
    """The light calls of exchanges in a file, added in pieces; `calls` are complete after all pieces."""

    def __init__(self, file_exchanges: FileExchanges) -> None:
        self.file_exchanges = file_exchanges
        self.numbers = file_exchanges.numbers
        self.calls: list[Call] = [_NOT_YET] * len(file_exchanges)
        self.t0 = array("d", bytes(8 * len(file_exchanges)))
        self.t1 = array("d", self.t0)
        self.digest = array("q", bytes(8 * len(file_exchanges)))
        self._kinds: dict[object, Kind] = {}
        self._shared = _Shared()

    def add(self, places: Sequence[int], facts: PackedFacts) -> None:
        """Add the calls at some places of the file."""
        kinds = [self._share_kind(kind) for kind in facts.kinds]
        named = [
            (key and intern(key), raw_key and intern(raw_key), tuple(map(intern, own)))
            for key, raw_key, own in facts.named
        ]
        if isinstance(places, range):
            at = slice(places.start, places.stop)
            self.t0[at], self.t1[at], self.digest[at] = facts.t0, facts.t1, facts.digest
        else:
            for place, began, ended, says in zip(places, facts.t0, facts.t1, facts.digest, strict=True):
                self.t0[place], self.t1[place], self.digest[place] = began, ended, says
        calls = self.calls
        for place, kind, names in zip(places, facts.kind, facts.names, strict=True):
            calls[place] = LightCall(self, place, kinds[kind], *named[names])

    def _share_kind(self, kind: Kind) -> Kind:
        """One object for all equal kinds, whichever process packed them."""
        share = self._shared.of
        kind = kind._replace(
            headers=share(kind.headers),
            members=share(kind.members),
            answer_members=None if kind.answer_members is None else share(kind.answer_members),
        )
        return self._kinds.setdefault(_identity(kind), kind)


class _Shared:
    """One object for all equal sets of members."""

    def __init__(self) -> None:
        self._stored: dict[object, StoredMembers] = {}

    def of(self, stored: StoredMembers) -> StoredMembers:
        values = tuple(stored.values())
        return self._stored.setdefault((tuple(stored), values, *map(type, values)), stored)


def _identity(kind: Sequence[Any]) -> object:
    """The values that distinguish a kind from others; the members that it holds are shared already."""
    query, headers, members, answer_members = kind[8], *kind[16:]
    return *kind[:8], *query.items(), *kind[9:16], id(headers), id(members), id(answer_members)


_NOT_YET: Any = None
