"""A comparison: differences with their places and the requirements that read them, grouped and cut for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from signet_conformance.diff.alignment import Session, SessionPair
from signet_conformance.errors import printable
from signet_conformance.facts import Recording
from signet_conformance.files.json_values import ABSENT
from signet_conformance.reports.values import as_text


class DifferenceKind(StrEnum):
    """What happened to an exchange, or to something in it, from the first recording to the second."""

    ADDED = "added"
    MISSING = "missing"
    REORDERED = "reordered"
    CHANGED = "changed"


class SideValue(Struct, frozen=True):
    """One side of a difference: exchange number, JSON pointer into its line, and the value there.

    `exchange` is None if the side has no such exchange, and for the header line.
    """

    exchange: int | None = None
    pointer: str = ""
    value: Any = ABSENT
    sent: str = ""
    """The content of the exchange's request as one line, if only this side has the exchange."""


class Difference(Struct, frozen=True):
    """One difference. `requirements` are those that read the place: contract-relevant when there are any.

    `session` is the number of the matched pair, 0 for the recordings as a whole. `call` is the operation or
    method and path; `member` names the place in words, empty when the whole exchange is meant.
    """

    kind: DifferenceKind
    session: int
    call: str
    member: str
    first: SideValue
    second: SideValue
    requirements: tuple[str, ...] = ()
    note: str = ""

    @property
    def relevant(self) -> bool:
        """Whether some requirement reads what differs."""
        return bool(self.requirements)

    @property
    def is_remembered(self) -> bool:
        """Whether only what the daemon remembers differs: it answered, and no requirement reads the place."""
        places = (side.pointer.removeprefix(_ANSWER).split("/")[0] for side in (self.first, self.second))
        return not self.relevant and all(place in _MEMORIES for place in places)


_ANSWER = "/response/body/json/"
_MEMORIES = frozenset((
    "inject", "memories", "memory", "memoryCount", "results", "count", "total", "stats", "meta", "sources", "entities",
    "engine", "queryTerms", "recentContext", "stableSystemPrompt", "dynamicContext", "contextHash",
))  # fmt: skip
"""Members of an answer that tell what the daemon remembers, and how it found it."""


class Comparison(Struct, frozen=True):
    """Two recordings, their matched sessions, and everything that differs, in order."""

    first: Recording
    second: Recording
    sessions: Sequence[SessionPair]
    differences: Sequence[Difference]

    @property
    def empty(self) -> bool:
        """Whether neither recording holds an exchange, so that `nothing differs` has no meaning."""
        return not (self.first.calls or self.second.calls)

    @property
    def relevant(self) -> int:
        """How many differences are contract-relevant."""
        return sum(difference.relevant for difference in self.differences)


_VALUE_LENGTH = 160


def fold_differences(differences: Iterable[Difference]) -> list[list[Difference]]:
    """The differences in order, those of one kind at one place in the same kind of call put together."""
    alike: dict[tuple[object, ...], list[Difference]] = {}
    for difference in differences:
        place = (difference.kind, difference.call, difference.member, difference.requirements, difference.note)
        alike.setdefault(place, []).append(difference)
    return list(alike.values())


def owner_of(session: Session) -> str:
    """The harness, the agent and the project of a session."""
    named = (("harness", session.harness), ("agent", session.agent), ("project", session.project))
    return ", ".join(f"{name} {printable(value, 80)}" for name, value in named if value)


def session_facts(pair: SessionPair, limit: int) -> Sequence[tuple[str, str]]:
    """The labelled facts of a matched session, without the empty ones. A key is cut to `limit`."""
    first, second = pair.first, pair.second
    in_both = first is not None and second is not None
    other = second.key if in_both and second is not None and second.key != pair.any.key else None
    only = "" if in_both else "A" if second is None else "B"
    return [("only in", only), ("in B", printable(other or "", limit)), ("of", owner_of(pair.any))]


def place(difference: Difference, first: str = "A", second: str = "B") -> str:
    """The call, with its number on each side that has it, after the side's name."""
    return " ".join([printable(difference.call, 200), *numbers(difference, first, second)])


def numbers(difference: Difference, first: str = "A", second: str = "B") -> list[str]:
    """The exchange on each side that has one: `A #3`."""
    sides = ((first, difference.first), (second, difference.second))
    return [f"{name} #{side.exchange}" for name, side in sides if side.exchange is not None]


def more_like_it(others: Sequence[Difference]) -> str:
    """How many more differences are like the first, and where."""
    places = [" ".join(numbers(other)) for other in others[:6]]
    more = ", …" if len(others) > len(places) else ""
    return f"{len(others)} more like it: {', '.join(places)}{more}"


def texts(first: SideValue, second: SideValue) -> tuple[str, str]:
    """Both values; of two long texts, the passage in which they differ."""
    if isinstance(first.value, str) and isinstance(second.value, str):
        ours, theirs = _around_difference(first.value, second.value)
        return as_text(ours, _VALUE_LENGTH), as_text(theirs, _VALUE_LENGTH)
    return _value(first.value), _value(second.value)


def _value(value: Any) -> str:
    return "nothing: it is absent" if value is ABSENT else as_text(value, _VALUE_LENGTH)


def _around_difference(first: str, second: str) -> tuple[str, str]:
    shorter = min(len(first), len(second))
    if shorter < _VALUE_LENGTH // 2:
        return first, second
    same, step = 0, 1 << shorter.bit_length()
    while step := step >> 1:
        # Comparing whole halves is fast even for texts of many megabytes.
        if same + step <= shorter and first[same : same + step] == second[same : same + step]:
            same += step
    cut = max(0, same - 30)
    dots = "…" if cut else ""
    return dots + first[cut : cut + _VALUE_LENGTH], dots + second[cut : cut + _VALUE_LENGTH]
