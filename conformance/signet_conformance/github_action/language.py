"""The language of a connector's repository, by its manifest: its name, its driver, what builds it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

MOST_BYTES = 1_000_000
"""A manifest larger than that is not one."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language that a driver can be written in from the start.

    `manifest` is the file that tells it, with `name` in it. `driver` is where the driver is written, from `template`;
    `command` runs it, `{root}` and `{python}` as in the settings.
    """

    title: str
    manifest: str
    name: Callable[[Path], str | None]
    driver: str
    template: str
    command: Sequence[str]

    def driver_text(self) -> str:
        """The driver, with places to fill in."""
        return (files(__package__) / "templates" / self.template).read_text(encoding="utf-8")


def language_of(folder: Path) -> Language:
    """The language of a folder, by the first manifest that it holds; Python without a manifest."""
    return next((language for language in _LANGUAGES if (folder / language.manifest).is_file()), PYTHON)


def blank_driver(folder: Path) -> Language | None:
    """The language of a driver in the folder that nobody has filled in yet; None without such a driver."""
    return next((language for language in _LANGUAGES if _is_blank(folder, language)), None)


def _is_blank(folder: Path, language: Language) -> bool:
    try:
        return (folder / language.driver).read_text(encoding="utf-8") == language.driver_text()
    except (OSError, UnicodeDecodeError):
        return False


def manifest_name(folder: Path) -> str | None:
    """The name that the folder's manifest gives its package, without a scope; None where it gives none."""
    name = language_of(folder).name(folder)
    return None if name is None else name.rpartition("/")[2] or None


def build_lines(folder: Path) -> Sequence[str]:
    """What installs and builds the connector on a fresh machine, by the lock file and manifest that are there."""
    return next((lines for file, lines in _BUILDS if (folder / file).is_file()), ())


def _of_package(folder: Path) -> str | None:
    return _text(_read(folder / "package.json", json.loads), "name")


def _of_project(folder: Path) -> str | None:
    return _text(_read(folder / "pyproject.toml", tomllib.loads), "project", "name")


def _of_crate(folder: Path) -> str | None:
    return _text(_read(folder / "Cargo.toml", tomllib.loads), "package", "name")


def _read(path: Path, parse: Callable[[str], Any]) -> Any:
    """What a manifest holds; nothing where it cannot be read: that is for its own tools to say."""
    try:
        with path.open("rb") as stream:
            return parse(stream.read(MOST_BYTES).decode("utf-8"))
    except (OSError, ValueError):
        return None


def _text(document: Any, *members: str) -> str | None:
    for member in members:
        document = document.get(member) if isinstance(document, dict) else None
    return document if isinstance(document, str) and re.search(r"[A-Za-z0-9]", document) else None


PYTHON = Language(
    "Python", "pyproject.toml", _of_project, "conformance/driver.py", "driver.py.tmpl",
    ("{python}", "{root}/conformance/driver.py"),
)  # fmt: skip
_LANGUAGES = (
    Language(
        "JavaScript or TypeScript", "package.json", _of_package, "conformance/driver.mjs", "driver.mjs.tmpl",
        ("node", "{root}/conformance/driver.mjs"),
    ),
    Language(
        "Rust", "Cargo.toml", _of_crate, "examples/signet-driver.rs", "driver.rs.tmpl",
        ("cargo", "run", "--quiet", "--manifest-path", "{root}/Cargo.toml", "--example", "signet-driver"),
    ),
    PYTHON,
)  # fmt: skip
_BUILDS: Sequence[tuple[str, Sequence[str]]] = (
    ("pnpm-lock.yaml", ("corepack enable", "pnpm install --frozen-lockfile", "pnpm run --if-present build")),
    ("yarn.lock", ("corepack enable", "yarn install", "yarn run build")),
    ("bun.lock", ("npm install --global bun@1", "bun install --frozen-lockfile", "bun run --if-present build")),
    ("bun.lockb", ("npm install --global bun@1", "bun install --frozen-lockfile", "bun run --if-present build")),
    ("package-lock.json", ("npm ci", "npm run build --if-present")),
    ("package.json", ("npm install", "npm run build --if-present")),
    ("Cargo.toml", ("cargo build --examples",)),
    ("pyproject.toml", ("python -m pip install .",)),
)
"""A file of a folder to the commands that build what is in it; the first that is there counts."""
