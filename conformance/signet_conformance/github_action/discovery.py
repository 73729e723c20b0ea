"""Which connector a folder holds, and in which language: its name, its driver, what builds it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from msgspec import Struct

from signet_conformance import targets
from signet_conformance.files.json_values import member_of, object_in
from signet_conformance.targets.files import first_of, package_name
from signet_conformance.targets.settings import read_settings


class FoundConnector(Struct, frozen=True):
    """The connector of a folder. `settings` says that the repository describes it already.

    `known` says that a shipped profile does; without either, it is a connector that has no driver yet, which is then
    written in its `language`.
    """

    name: str
    settings: bool = False
    known: bool = False
    language: Language | None = None


def discover(folder: Path, wanted: str | None = None) -> Sequence[FoundConnector]:
    """The connectors that `folder` holds, or the one `wanted` by name; at least one."""
    own = sorted(read_settings(folder).targets)
    if wanted is not None:
        known = wanted in own or wanted in targets.names()
        return [
            FoundConnector(wanted, wanted in own, wanted in targets.names(), None if known else language_of(folder))
        ]
    if own:
        return [FoundConnector(name, settings=True, known=name in targets.names()) for name in own]
    shipped = [FoundConnector(name, known=True) for name in targets.names() if _is_here(name, folder)]
    return shipped or [FoundConnector(_name_of(folder), language=language_of(folder))]


def _is_here(name: str, folder: Path) -> bool:
    places = targets.load(name, folder).profile.files
    if package_name(folder) in {place.package for place in places} - {None}:
        return True
    file = first_of(targets.load(name, folder), places)
    # Looked for upwards too, where a repository of many connectors holds the others.
    return file is not None and file.is_relative_to(folder)


def _name_of(folder: Path) -> str:
    """A valid target name for an unknown connector, from its manifest or its folder."""
    name = re.sub(r"[^a-z0-9]+", "-", (manifest_name(folder) or folder.name).lower()).strip("-")[:64].strip("-")
    return "connector" if not name or name in targets.names() else name


def settings_text(connector: FoundConnector) -> str:
    """The settings file of a connector: what a shipped profile leaves open, or a stub with a command to fill in."""
    if connector.language is None:
        return template("settings.known.toml.tmpl").format(name=connector.name)
    command = ", ".join(json.dumps(word) for word in connector.language.command)
    return template("settings.unknown.toml.tmpl").format(
        name=connector.name, command=command, driver=connector.language.driver
    )


MOST_BYTES = 1_000_000
"""A manifest larger than that is not one."""


class Language(Struct, frozen=True):
    """A language that a driver can be written in from the start.

    `manifest` is the file that tells it, with `name` in it. `driver` is where the driver is written, from `template`;
    `command` runs it, `{root}` and `{python}` as in the settings. `fits` says whether a folder with the manifest is one
    of it.
    """

    title: str
    manifest: str
    name: Callable[[Path], str | None]
    driver: str
    template: str
    command: Sequence[str]
    fits: Callable[[Path], bool] = lambda _folder: True

    def driver_text(self) -> str:
        """The driver, with places to fill in."""
        return template(self.template)


def template(name: str) -> str:
    """A file of text in which `init` fills in names."""
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def language_of(folder: Path) -> Language:
    """The language of a folder, by the first manifest that it holds; Python without a manifest."""
    held = (language for language in _LANGUAGES if (folder / language.manifest).is_file())
    return next((language for language in held if language.fits(folder)), PYTHON)


def blank_driver(folder: Path) -> Language | None:
    """The language of a driver in the folder that is not filled in yet; None without such a driver."""
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
    return _text(_parse_file(folder / "package.json", json.loads), "name")


def _of_project(folder: Path) -> str | None:
    return _text(_parse_file(folder / "pyproject.toml", tomllib.loads), "project", "name")


def _of_crate(folder: Path) -> str | None:
    return _text(_parse_file(folder / "Cargo.toml", tomllib.loads), "package", "name")


def _parse_file(path: Path, parse: Callable[[str], Any]) -> Any:
    """Parse a manifest; None where it cannot be read, which its own tools report."""
    try:
        with path.open("rb") as stream:
            return parse(stream.read(MOST_BYTES).decode("utf-8"))
    except (OSError, ValueError):
        return None


def _text(document: Any, *members: str) -> str | None:
    text = member_of(document, *members)
    return text if isinstance(text, str) and re.search(r"[A-Za-z0-9]", text) else None


def _has_npm_package(folder: Path) -> bool:
    """Whether the kit's package for npm is at hand: the manifest asks for it, or npm has installed it here or above."""
    manifest = _parse_file(folder / "package.json", json.loads)
    if any(_NPM_PACKAGE in object_in(member_of(manifest, name)) for name in _DEPENDENCIES):
        return True
    return any(
        (above / "node_modules" / _NPM_PACKAGE / "package.json").is_file() for above in (folder, *folder.parents)
    )


_NPM_PACKAGE = "signet-conformance"
_DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies")
PYTHON = Language(
    "Python", "pyproject.toml", _of_project, "conformance/driver.py", "driver.py.tmpl",
    ("{python}", "{root}/conformance/driver.py"),
)  # fmt: skip
_LANGUAGES = (
    Language(
        "JavaScript or TypeScript", "package.json", _of_package, "conformance/driver.mjs", "driver.npm.mjs.tmpl",
        ("node", "--enable-source-maps", "{root}/conformance/driver.mjs"), _has_npm_package,
    ),
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
