"""The ids that the host gives to the sessions of a scenario, and when it changes one, as the kit's marks tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from signet_conformance.trace.marks import SessionKeyMark


class HostId(Struct, frozen=True):
    """An id of a session at its host, from the mark with that number on.

    `told_by` are the events by which the host told the connector of a change, None where nothing is known of them.
    """

    id: str
    since: int
    told_by: tuple[str, ...] | None = None


class HostIds:
    """The ids of each session of a scenario, in order."""

    def __init__(self, marks: Iterable[SessionKeyMark]) -> None:
        ids: dict[str, list[HostId]] = {}
        for mark in marks:
            if mark.session is not None and mark.key is not None:
                ids.setdefault(mark.session, []).append(HostId(mark.key, mark.seq, mark.told_by))
        self._ids: Mapping[str, Sequence[HostId]] = ids

    @property
    def sessions(self) -> Sequence[str]:
        """The sessions that the host has given an id, in the order in which it did."""
        return [*self._ids]

    def of(self, session: str | None) -> Sequence[HostId]:
        """The ids that a session has had, in order; the host may take one up again."""
        return () if session is None else self._ids.get(session, ())

    def at(self, session: str | None, seq: float) -> HostId | None:
        """The id of a session just before a number; None before its first."""
        return next((each for each in reversed(self.of(session)) if each.since < seq), None)
