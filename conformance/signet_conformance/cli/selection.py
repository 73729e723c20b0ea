"""Requirement ids as the command line names them: whole, as a family such as SIG-AGENT, or as a glob; SIG- may lack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

import click

from signet_conformance.errors import UsageError, printable

_PREFIX = "SIG-"


def requirement_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Complete a requirement in a shell: families while the family is typed, then ids."""
    from signet_conformance.contract import catalogue

    known = catalogue()
    wanted = incomplete.strip().upper()
    families = [name for name in dict.fromkeys(each.rpartition("-")[0] for each in known) if name.startswith(wanted)]
    return [*families, *(name for name in known if name.startswith(wanted))]


def selected(patterns: Iterable[str], option: str) -> frozenset[str] | None:
    """The ids of the connector's and the harness's side that any pattern of an option names; None without a pattern.

    Raises UsageError for one that names none.
    """
    from signet_conformance.contract import harness_requirements
    from signet_conformance.rules import rules

    known = [*rules(), *harness_requirements()]
    ids: set[str] = set()
    for pattern in patterns:
        found = matching(pattern, known)
        if not found:
            raise unknown(pattern, known, option)
        ids.update(found)
    return frozenset(ids) or None


def matching(pattern: str, known: Iterable[str]) -> list[str]:
    """The ids that a word names, in their order.

    `agent-002` and `agent` are taken for SIG-AGENT-002 and SIG-AGENT; `compaction` is the area of SIG-CMP.
    """
    wanted = pattern.strip().upper()
    for word in (wanted, f"{_PREFIX}{wanted}"):
        if matching := [name for name in known if fnmatchcase(name, word) or fnmatchcase(name, f"{word}-*")]:
            return matching
    from signet_conformance.contract import catalogue

    area = wanted.lower()
    return [name for name in known if name in catalogue() and catalogue()[name].area == area]


def unknown(name: str, known: Sequence[str], where: str | None = None) -> UsageError:
    """The complaint about an id that does not exist, with the nearest that do."""
    families = dict.fromkeys(each.rpartition("-")[0] for each in known)
    wanted = name.strip().upper()
    near = get_close_matches(wanted, [*families, *known], 5, 0.5)
    # Without its prefix a short name is too far from everything.
    near = near or get_close_matches(f"{_PREFIX}{wanted}", [*families, *known], 5, 0.5)
    return UsageError(
        f"there is no requirement {printable(name, 60)!r}" + (f"; near it: {', '.join(near)}" if near else ""),
        where=where,
        remedy=f"signet-conformance explain {near[0]}" if near else "signet-conformance explain",
    )
