"""A repository's own settings: `signet-conformance.toml`, or `[tool.signet-conformance]` of pyproject.toml.

[targets.openclaw]                      in pyproject.toml: [tool.signet-conformance.targets.openclaw]
module = "dist/index.js"
agents = ["atlas-agent", "beacon-agent"]

[targets.mine]
command = ["node", "{root}/conformance/driver.mjs"]
harness = "mine"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signet_conformance.errors import TargetError, os_errors, printable
from signet_conformance.files.json_values import member_of
from signet_conformance.targets.files import is_trusted, searched

FILE = "signet-conformance.toml"
_DEEPEST = 100
_MOST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """A repository's settings of its targets, and their file; without a file there are no settings."""

    targets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    path: Path | None = None

    @property
    def folder(self) -> Path | None:
        """The file's folder; relative paths in it start there."""
        return None if self.path is None else self.path.parent

    def own(self, name: str) -> Mapping[str, Any]:
        """The repository's settings for a target. Raises TargetError with table, JSON pointer and value.

        Other targets are not checked, since their errors do not concern this one.
        """
        if name not in self.targets:
            return {}
        from signet_conformance.files.documents import demand
        from signet_conformance.targets.profile import SettingsFile

        own = self.targets[name]
        _demand_plain(own, self.where(name))
        demand(SettingsFile, {"targets": {name: own}}, str(self.path), error=TargetError)
        return own

    def where(self, name: str) -> str:
        """The place that messages about a target name."""
        return f"targets/{name}.json" if name not in self.targets else f"{self.path}: targets.{name}"


def read_settings(root: Path) -> Settings:
    """Read the nearest settings file at or above `root`, within its repository and by a trusted owner.

    Raises TargetError if one cannot be read.
    """
    for folder in searched(root):
        for path, below in ((folder / FILE, ()), (folder / "pyproject.toml", ("tool", "signet-conformance"))):
            if path.is_file() and not is_trusted(path, root):
                return Settings()
            data = _parse(path, below) if path.is_file() else None
            if data is not None:
                return Settings(_targets(data, path, below), path)
    return Settings()


def _parse(path: Path, below: tuple[str, ...]) -> Any:
    try:
        with os_errors("cannot be read", where=path, remedy="check the path", error=TargetError):
            if path.stat().st_size > _MOST_BYTES:
                raise TargetError(f"is larger than {_MOST_BYTES >> 20} MiB", where=path, remedy="name a smaller file")
            data: Any = tomllib.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as failure:
        raise TargetError(f"is not TOML: {printable(failure)}", where=path, remedy="fix the file") from None
    return member_of(data, *below)


def _targets(data: Any, path: Path, below: tuple[str, ...]) -> Mapping[str, Mapping[str, Any]]:
    targets = data.get("targets", {}) if isinstance(data, dict) else None
    if unknown := [name for name in data if name != "targets"] if isinstance(data, dict) else []:
        # If this were ignored, a misspelt heading would later show only as an unknown target.
        heading = ".".join((*below, "targets", "NAME"))
        elsewhere = "; [tool.signet-conformance.targets.NAME] is for pyproject.toml" if unknown == ["tool"] else ""
        raise TargetError(
            f"nothing is read from {printable('.'.join((*below, unknown[0])), 60)!r}",
            where=path,
            remedy=f"write each target as [{heading}]{elsewhere}",
        )
    if not isinstance(targets, dict) or not all(isinstance(table, dict) for table in targets.values()):
        raise TargetError(
            "targets is not a table of tables",
            where=path,
            remedy='one table for each target, such as [targets.openclaw] with module = "dist/index.js"',
        )
    return targets


def _demand_plain(own: Mapping[str, Any], where: str) -> None:
    """Raise TargetError for the first value that JSON or a command line cannot hold."""
    for way, value in _values(own):
        pointer = printable("".join(f"/{part}" for part in way), 200)
        null = isinstance(value, str) and "\0" in value
        if null or not isinstance(value, str | int | float):
            raise TargetError(
                f"{pointer} holds a null character" if null else f"{pointer} is a {type(value).__name__}",
                where=where,
                remedy=f"write {pointer} as a string without control characters",
            )
        if len(way) > _DEEPEST:
            raise TargetError(
                f"{pointer} lies {len(way)} tables deep", where=where, remedy=f"nest at most {_DEEPEST} tables"
            )


def _values(own: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield every scalar of a table with its path, in the order of the file."""
    # Without recursion, since a dotted key nests as many tables as it has dots.
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), own)]
    while waiting:
        way, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [((*way, name), child) for name, child in reversed([*value.items()])]
        elif isinstance(value, list):
            waiting += [((*way, index), child) for index, child in reversed(list(enumerate(value)))]
        else:
            yield way, value
