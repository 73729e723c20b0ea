"""Requirement ids as the command line names them: whole, as a family such as SIG-AGENT, or as a glob."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from signet_conformance.errors import UsageError, printable


def selected(patterns: Iterable[str], known: Sequence[str], option: str) -> frozenset[str] | None:
    """The ids that any pattern of an option names; None when there is no pattern.

    Raises UsageError for one that names none.
    """
    ids: set[str] = set()
    for pattern in patterns:
        wanted = pattern.strip().upper()
        matching = [name for name in known if fnmatchcase(name, wanted) or fnmatchcase(name, f"{wanted}-*")]
        if not matching:
            raise unknown(pattern, known, option)
        ids.update(matching)
    return frozenset(ids) or None


def unknown(name: str, known: Sequence[str], where: str | None = None) -> UsageError:
    """The complaint about an id that does not exist, with the nearest that do."""
    near = get_close_matches(name.strip().upper(), known, 5, 0.5)
    return UsageError(
        f"there is no requirement {printable(name, 60)!r}" + (f"; near it: {', '.join(near)}" if near else ""),
        where=where,
        remedy=f"signet-conformance explain {near[0]}" if near else "signet-conformance explain",
    )
