"""Matches the sessions of two recordings."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from signet_conformance.facts import Call, Recording, text_or_none

_ALIKE = 0.5
"""Two sessions that share no name match when at least this share of their calls is the same."""
_MAX_COMPARED = 10_000


@dataclass(slots=True)
class Session:
    """The calls of one key in order; `key` is None for those without a key."""

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
        return next((text for call in self.calls if (text := text_or_none(call.body.get(member)))), None)

    @property
    def identity(self) -> Hashable:
        """Whose session it is: harness, agent and project."""
        return self.harness, self.agent, self.project

    @property
    def signature(self) -> tuple[str, ...]:
        """Its operations in order."""
        return tuple(call.operation or call.path for call in self.calls)


@dataclass(frozen=True, slots=True)
class Matched:
    """A session of the first recording with its counterpart; one of them may be None. `number` counts from 1."""

    number: int
    first: Session | None
    second: Session | None

    @property
    def any(self) -> Session:
        """The side that exists; the first recording's where both do."""
        session = self.first or self.second
        if session is None:
            raise ValueError("a pair without a session")
        return session


def sessions(recording: Recording) -> list[Session]:
    """The sessions in order of appearance; the calls without a key are one of their own, the first."""
    sessions: dict[str | None, Session] = {}
    for call in recording.calls:
        sessions.setdefault(call.key, Session(call.key)).calls.append(call)
    return sorted(sessions.values(), key=lambda session: session.key is not None)


def match(first: list[Session], second: list[Session]) -> list[Matched]:
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
    pairs = [(session, counterparts.get(index)) for index, session in enumerate(first)]
    return list(_numbered([*pairs, *((None, session) for session in left)]))


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


def _numbered(pairs: list[tuple[Session | None, Session | None]]) -> Iterator[Matched]:
    for number, (first, second) in enumerate(pairs, 1):
        yield Matched(number, first, second)
