"""Which settings a driver reads: one that nothing would read is refused, with the drivers that do read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import TargetError

if TYPE_CHECKING:
    from signet_conformance.targets.profile import Profile

_FILE = frozenset({"module", "files"})
_LOADED = _FILE | {"runtime"}
_READ: Mapping[str, frozenset[str]] = {
    "command": _LOADED | {"command"},
    "command-hooks": _LOADED | {"config", "face", "programs", "tools"},
    "http-adapter": frozenset({"command", "paths", "url"}),
    "mcp": _LOADED | {"command", "face", "tools", "url"},
    "node-plugin": _LOADED | {"face", "plugin_config", "tools"},
    "python-plugin": _FILE | {"face", "tools"},
}
"""Driver to those of the settings that are not for every driver."""
_INSTEAD: Mapping[str, Mapping[str, frozenset[str]]] = {
    "command-hooks": {"config": _FILE},
    "mcp": {"command": _LOADED, "url": _LOADED},
}
"""Driver to a setting beside which it does not read some others."""
_WORDS: Mapping[str, str] = {"module": "{module}", "files": "{module}", "runtime": "{runtime}"}
"""Setting to the word of a driver program's command that stands for it."""


def demand_read(profile: Profile, own: Mapping[str, Any], where: str) -> None:
    """Raise TargetError for the first of a repository's `own` settings that the driver of a profile ignores."""
    driver = profile.driver
    every = frozenset().union(*_READ.values())
    for name in (name for name in own if name in every):
        if name not in _READ[driver]:
            others = ", ".join(other for other, read in _READ.items() if name in read)
            raise TargetError(
                f"the driver {driver} does not read {name}",
                where=where,
                remedy=f'take {name} out, or set driver = "…" to one that reads it: {others}',
            )
        if driver == "command" and name in _WORDS and _WORDS[name] not in profile.command:
            raise TargetError(
                f"the command does not use {name}",
                where=where,
                remedy=f'take {name} out, or put "{_WORDS[name]}" among the words of command',
            )
        for instead, unread in _INSTEAD.get(driver, {}).items():
            if instead in profile.model_fields_set and name in unread:
                raise TargetError(
                    f"the driver {driver} does not read {name} beside {instead}",
                    where=where,
                    remedy=f"keep one of the two: {instead}, or {name}",
                )
