"""What a comparison says: differences, each with its place on both sides and the requirements that read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from signet_conformance.diff.sessions import Matched
from signet_conformance.facts import Recording


class Kind(StrEnum):
    """What happened to an exchange, or to something in it, from the first recording to the second."""

    ADDED = "added"
    MISSING = "missing"
    REORDERED = "reordered"
    CHANGED = "changed"


class _Absent:
    """The value of a member that is absent, as opposed to null."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a difference: exchange number, JSON pointer into its line, and what stands there.

    `exchange` is None where the side has no such exchange, or where the header line is meant.
    """

    exchange: int | None = None
    pointer: str = ""
    value: Any = ABSENT
    sent: str = ""
    """Of an exchange that only this side has: what its request carried, as one line."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. `requirements` are those that read the place: contract-relevant when there are any.

    `session` is the number of the matched pair, 0 for the recordings as a whole. `call` is the operation or
    method and path; `member` names the place in words, empty when the whole exchange is meant.
    """

    kind: Kind
    session: int
    call: str
    member: str
    first: Side
    second: Side
    requirements: tuple[str, ...] = ()
    note: str = ""

    @property
    def relevant(self) -> bool:
        """Whether some requirement reads what differs."""
        return bool(self.requirements)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two recordings, their matched sessions, and everything that differs, in order."""

    first: Recording
    second: Recording
    sessions: Sequence[Matched]
    differences: Sequence[Difference]

    @property
    def empty(self) -> bool:
        """Whether neither recording holds an exchange, so that `nothing differs` has no meaning."""
        return not (self.first.calls or self.second.calls)

    @property
    def relevant(self) -> int:
        """How many differences are contract-relevant."""
        return sum(difference.relevant for difference in self.differences)
