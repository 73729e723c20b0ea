"""Calls of a recording that is too large to be held: they keep the facts, and read the rest from the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from sys import intern
from typing import Any, ClassVar

from signet_conformance.facts.calls import EMPTY, PROMPT, START, Call, first_of_each_name
from signet_conformance.trace import Exchange
from signet_conformance.trace.shelf import Shelf

_KEPT = frozenset(
    {
        "agentId", "agent_id", "bypassed", "claimOnly", "claimedBy", "currentSessionKey", "cwd", "deduped",
        "duplicateRuntimePath", "duplicateSessionEnd", "harness", "harnessAgentId", "idempotencyKey", "idempotency_key",
        "if_version", "metadata", "mode", "parentID", "parentId", "parentKey", "parentSessionKey", "project", "reason",
        "requiresConfirm", "runtimePath", "sessionId", "sessionKey", "sessionKnown", "skipped", "source", "visibility",
    }
)  # fmt: skip
"""The members that rules over several exchanges ask each body or answer for."""
_LONGEST_KEPT = 200
_KEPT_HEADERS = "x-signet-"


class _Instead(Enum):
    """What stands in place of a member that is in the file alone, and of the key, which the call has already."""

    ELSEWHERE = 0
    KEY = 1


_ELSEWHERE, _KEY = _Instead.ELSEWHERE, _Instead.KEY

Held = dict[str, Any]


class Members(Mapping[str, Any]):
    """The members of a body or an answer: the small ones at hand, any other one read from the file."""

    __slots__ = ("_answer", "_call", "_held")

    def __init__(self, call: LightCall, held: Held, *, answer: bool) -> None:
        self._call = call
        self._held = held
        self._answer = answer

    def __getitem__(self, name: str) -> Any:
        value = self._held[name]
        if value is _KEY:
            return self._call.raw_key
        return self._whole()[name] if value is _ELSEWHERE else value

    def get(self, name: str, default: Any = None) -> Any:
        """A member, or the default for one that it lacks."""
        return self[name] if name in self._held else default

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def _whole(self) -> Mapping[str, Any]:
        exchange = self._call.exchange
        message = exchange.response if self._answer else exchange.request
        return (message.body.object if message is not None and message.body is not None else None) or EMPTY


_SLOTS = {name: Call.__dict__[name] for name in Call.__slots__}
_EXCHANGE, _BODY, _ANSWER, _HEADERS = (_SLOTS[name] for name in ("exchange", "body", "answer", "_headers"))
"""Where a call keeps these; in a light call nothing, what is held of the members, and some headers."""
_GETS = [slot.__get__ for slot in _SLOTS.values()]
_FILLS = [slot.__set__ for slot in _SLOTS.values()]


class LightCall(Call):
    """A call whose exchange stands in a file. Each recording has a class of its own, which knows that file."""

    __slots__ = ()

    shelf: ClassVar[Shelf]

    def settle(self, body: Held, answer: Held | None, headers: Mapping[str, str], told: int | None, agent: str) -> None:
        """Forget the exchange but for what is held of it."""
        _EXCHANGE.__set__(self, None)
        _BODY.__set__(self, body)
        _ANSWER.__set__(self, answer)
        self._headers, self._told, self._agent = headers, told, intern(agent)
        self.share()

    def share(self) -> None:
        """Make equal words of all calls one."""
        self.method, self.path = intern(self.method), intern(self.path)
        if self.operation is not None:
            self.operation = intern(self.operation)
        if self.key is not None:
            self.key = intern(self.key)
            if self._raw_key == self.key:
                self._raw_key = self.key

    @property
    def exchange(self) -> Exchange:  # type: ignore[override]  # read-only, and read from the file
        """The exchange, read anew."""
        return self.shelf.numbered(self.seq)

    @property
    def body(self) -> Mapping[str, Any]:  # type: ignore[override]
        """The members of the request's object."""
        held = _BODY.__get__(self)
        return Members(self, held, answer=False) if held else EMPTY

    @property
    def answer(self) -> Mapping[str, Any] | None:  # type: ignore[override]
        """The members of the response's object, if it is one."""
        held = _ANSWER.__get__(self)
        return None if held is None else Members(self, held, answer=True)

    def header(self, name: str) -> str | None:
        """The first value of a request header by lower-case name."""
        if name.startswith(_KEPT_HEADERS):
            return super().header(name)
        return first_of_each_name(self.exchange.request.headers).get(name)

    def says_again(self, before: Call) -> bool:
        """Whether a prompt says what another one said: the same text, after the same reply."""
        return self._told == getattr(before, "_told", None) and super().says_again(before)

    @property
    def is_stub(self) -> bool:
        """Whether a start was answered with the stub that a repeated start gets instead of context."""
        return self._told is True


class Lightened:
    """Takes the calls of a shelf's exchanges in their order, and makes them light."""

    def __init__(self, shelf: Shelf) -> None:
        self.calls: list[Call] = []
        self._class: type[LightCall] = type("LightCall", (LightCall,), {"__slots__": (), "shelf": shelf})
        self._held: dict[object, Held] = {}

    def take(self, calls: Iterable[Call]) -> None:
        """Take the next calls, which change in place: their other facts stay as they are."""
        for call in calls:
            told = call.is_stub if call.operation == START else hash(call.text) if call.operation == PROMPT else None
            headers = first_of_each_name(call.exchange.request.headers).items()
            kept = self._shared({name: value for name, value in headers if name.startswith(_KEPT_HEADERS)})
            agent, raw_key = call.agent, call.raw_key
            body = self._keep(call.body, raw_key)
            answer = None if call.answer is None else self._keep(call.answer, raw_key)
            call.__class__ = self._class
            if isinstance(call, LightCall):
                call.settle(body, answer, kept, told, agent)
            self.calls.append(call)

    def packed(self) -> list[tuple[Any, ...]]:
        """What was taken since, for another process that has forked from the same one; here it is forgotten."""
        packed = [tuple([get(call) for get in _GETS]) for call in self.calls]
        self.calls.clear()
        return packed

    def unpack(self, packed: Iterable[tuple[Any, ...]]) -> None:
        """Take the next calls as another process has packed them."""
        same: dict[int, Any] = {}
        for facts in packed:
            call = self._class.__new__(self._class)
            for fill, fact in zip(_FILLS, facts, strict=True):
                fill(call, fact)
            for slot in (_BODY, _ANSWER, _HEADERS):
                held = slot.__get__(call)
                if held is not None:
                    if id(held) not in same:
                        same[id(held)] = self._shared(held)
                    slot.__set__(call, same[id(held)])
            call.share()
            self.calls.append(call)

    def _keep(self, members: Mapping[str, Any], raw_key: str | None) -> Held:
        """What is held of some members."""
        return self._shared({intern(name): _kept(name, value, raw_key) for name, value in members.items()})

    def _shared(self, held: Held) -> Held:
        """The same object for all that hold the same."""
        # 1, 1.0 and true are equal, and yet different in a message.
        return self._held.setdefault((tuple(held.items()), tuple(map(type, held.values()))), held)


def _kept(name: str, value: Any, raw_key: str | None) -> Any:
    if name not in _KEPT:
        return _ELSEWHERE
    if isinstance(value, str):
        if name == "sessionKey" and value == raw_key:
            return _KEY
        return value if len(value) <= _LONGEST_KEPT else _ELSEWHERE
    return value if value is None or isinstance(value, (bool, int, float)) else _ELSEWHERE
