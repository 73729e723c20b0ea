"""Which settings a driver reads: one that nothing would read is refused, with the drivers that do read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import TargetError
from signet_conformance.targets.kinds import KINDS

if TYPE_CHECKING:
    from signet_conformance.targets.profile import Profile

_WORDS: Mapping[str, str] = {"module": "{module}", "files": "{module}", "runtime": "{runtime}"}
"""Setting to the word of a driver program's command that stands for it."""


def demand_read(profile: Profile, own: Mapping[str, Any], where: str) -> None:
    """Raise TargetError for the first of a repository's `own` settings that the driver of a profile ignores."""
    kind = KINDS[profile.driver]
    every = frozenset().union(*(other.reads for other in KINDS.values()))
    for name in (name for name in own if name in every):
        if name not in kind.reads:
            others = ", ".join(other.name for other in KINDS.values() if name in other.reads)
            raise TargetError(
                f"the driver {kind.name} does not read {name}",
                where=where,
                remedy=f'take {name} out, or set driver = "…" to one that reads it: {others}',
            )
        if kind.own_program and name in _WORDS and _WORDS[name] not in profile.command:
            raise TargetError(
                f"the command does not use {name}",
                where=where,
                remedy=f'take {name} out, or put "{_WORDS[name]}" among the words of command',
            )
        for instead, unread in kind.instead.items():
            if instead in profile.model_fields_set and name in unread:
                raise TargetError(
                    f"the driver {kind.name} does not read {name} beside {instead}",
                    where=where,
                    remedy=f"keep one of the two: {instead}, or {name}",
                )
