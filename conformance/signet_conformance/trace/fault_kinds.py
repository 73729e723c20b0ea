"""The kinds of fault: one row each, read by the recorder, the rules, the scenarios and the page on the recorder.

A row describes the kind. The recorder's `faults` gives the answers, its engine does what happens to the connection or
to the daemon's own answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, json


class FaultKind(Struct, frozen=True, forbid_unknown_fields=True):
    """One kind. `parameters` are the members beside `kind`; those in `needs` must be there."""

    name: str
    does: str
    parameters: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    spoils: bool = False
    """An answer under it does not count as accepted, whatever its status."""
    away: bool = False
    """To the client it looks as if no daemon were there."""
    slow: bool = False
    """It lasts as long as the client waits, or as `delay_s` says."""
    unreadable: bool = False
    """The answer has a good status and an unreadable body."""
    share: int = 0
    """How often generated sessions draw it, against the other kinds as quick or as slow as it is."""


RESTART = "restart"
"""The one fault that is not the recorder's: the kit starts the daemon anew, and marks it."""

_ROWS = json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=tuple[FaultKind, ...])

FAULT_KINDS: Mapping[str, FaultKind] = {kind.name: kind for kind in _ROWS}
"""Each kind that the recorder knows, by its name in a trace."""

SPOILING = frozenset(kind.name for kind in _ROWS if kind.spoils)
AWAY = frozenset(kind.name for kind in _ROWS if kind.away)
SLOW = frozenset(kind.name for kind in _ROWS if kind.slow)
UNREADABLE = frozenset(kind.name for kind in _ROWS if kind.unreadable)


def fault_page() -> str:
    """The kinds with their parameters as lines of text."""
    width = max(map(len, FAULT_KINDS))
    return "\n".join(
        f"  {kind.name:{width}}  {kind.does}" + (f" ({', '.join(kind.parameters)})" if kind.parameters else "")
        for kind in _ROWS
    )
