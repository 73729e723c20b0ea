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
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signet_conformance.errors import TargetError, printable

FILE = "signet-conformance.toml"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a repository says of its targets, and in which file; nothing where it says nothing."""

    targets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    path: Path | None = None

    @property
    def folder(self) -> Path | None:
        """The folder of the file, which relative paths in it start from."""
        return None if self.path is None else self.path.parent

    def where(self, name: str) -> str:
        """What a message about a target names as the place."""
        return f"targets/{name}.json" if name not in self.targets else f"{self.path}: targets.{name}"


def read_settings(root: Path) -> Settings:
    """The settings of the nearest file at or above `root`. Raises TargetError when one cannot be read."""
    for folder in (root, *root.parents):
        for path, below in ((folder / FILE, ()), (folder / "pyproject.toml", ("tool", "signet-conformance"))):
            found = _read(path, below) if path.is_file() else None
            if found is not None:
                return Settings(_targets(found, path), path)
    return Settings()


def _read(path: Path, below: tuple[str, ...]) -> Any:
    try:
        data: Any = tomllib.loads(path.read_text("utf-8"))
    except OSError as failure:
        raise TargetError(
            f"cannot be read: {failure.strerror}", where=printable(path), remedy="check the path"
        ) from None
    except (ValueError, RecursionError) as failure:
        raise TargetError(f"is not TOML: {printable(failure)}", where=printable(path), remedy="mend the file") from None
    for name in below:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _targets(data: Any, path: Path) -> Mapping[str, Mapping[str, Any]]:
    found = data.get("targets", {}) if isinstance(data, dict) else None
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise TargetError(
            "targets is no table of tables",
            where=printable(path),
            remedy='such as [targets.openclaw] module = "dist/index.js"',
        )
    return found
