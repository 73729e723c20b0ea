"""Finds the connector that a folder holds: its name, language, driver, and build commands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from signet_conformance import targets
from signet_conformance.files import parse_file, real_path
from signet_conformance.files.json_values import member_of, object_in
from signet_conformance.targets.files import first_of, package_name
from signet_conformance.targets.settings import read_settings


class FoundConnector(msgspec.Struct, frozen=True):
    """The connector of a folder. `settings`: the repository's settings describe it already.

    `known`: a shipped profile describes it. Without either, the connector has no driver yet, and gets one in its
    `language`.
    """

    name: str
    settings: bool = False
    known: bool = False
    language: Language | None = None


def discover(folder: Path, wanted: str | None = None) -> Sequence[FoundConnector]:
    """The connectors that `folder` holds, or the one `wanted` by name; at least one."""
    own, shipped = sorted(read_settings(folder).targets), targets.names()
    if wanted is not None:
        language = None if wanted in own or wanted in shipped else language_of(folder)
        return [FoundConnector(wanted, wanted in own, wanted in shipped, language)]
    if own:
        return [FoundConnector(name, settings=True, known=name in shipped) for name in own]
    present = [FoundConnector(name, known=True) for name in shipped if _is_here(name, folder)]
    return present or [FoundConnector(_name_of(folder), language=language_of(folder))]


def _is_here(name: str, folder: Path) -> bool:
    places = targets.load(name, folder).profile.files
    if package_name(folder) in {place.package for place in places} - {None}:
        return True
    file = first_of(targets.load(name, folder), places)
    # The search also goes upwards, where a repository may hold other connectors.
    return file is not None and file.is_relative_to(folder)


def _name_of(folder: Path) -> str:
    """A valid target name for an unknown connector, from its manifest or its folder."""
    name = re.sub(r"[^a-z0-9]+", "-", (manifest_name(folder) or folder.name).lower()).strip("-")[:64].strip("-")
    return "connector" if not name or name in targets.names() else name


def settings_text(connector: FoundConnector) -> str:
    """The settings file of a connector: the members that a shipped profile leaves open, or a stub with a command."""
    if connector.language is None:
        return template("settings.known.toml.tmpl").format(name=connector.name)
    command = ", ".join(json.dumps(word) for word in connector.language.command)
    return template("settings.unknown.toml.tmpl").format(
        name=connector.name, command=command, driver=connector.language.driver
    )


MOST_BYTES = 1_000_000
"""A manifest larger than that is not one."""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A language for which `init` has a template of a driver.

    `manifest` is the file by which it is recognised, with the package's name at the members `name`. The driver is
    written to `driver`, from `template`; `command` runs it, `{root}` and `{python}` as in the settings. With
    `npm_package` it applies only to folders that have the kit's package for npm.
    """

    manifest: str
    name: tuple[str, ...]
    driver: str
    template: str
    command: tuple[str, ...]
    npm_package: bool = False

    def driver_text(self) -> str:
        """The driver, with places to fill in."""
        return template(self.template)


class _Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The known languages, and `builds`: a file to the commands that build its folder; the first file counts."""

    languages: tuple[Language, ...]
    builds: Mapping[str, tuple[str, ...]]


_KNOWN = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Known)


def template(name: str) -> str:
    """Read a text template, in which `init` fills in names."""
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def language_of(folder: Path) -> Language:
    """The language of a folder, by the first manifest that it holds; Python without a manifest."""
    present = (language for language in _KNOWN.languages if (folder / language.manifest).is_file())
    fitting = (language for language in present if not language.npm_package or _has_npm_package(folder))
    return next(fitting, _KNOWN.languages[-1])


def blank_driver(folder: Path) -> Language | None:
    """The language of a driver in the folder that is not filled in yet; None without such a driver."""
    return next((language for language in _KNOWN.languages if _is_blank(folder, language)), None)


def _is_blank(folder: Path, language: Language) -> bool:
    try:
        return (folder / language.driver).read_text(encoding="utf-8") == language.driver_text()
    except (OSError, UnicodeDecodeError):
        return False


def manifest_name(folder: Path) -> str | None:
    """The name that the folder's manifest gives its package, without a scope; None if it gives none."""
    language = language_of(folder)
    name = member_of(_parse_manifest(folder / language.manifest), *language.name)
    is_name = isinstance(name, str) and re.search(r"[A-Za-z0-9]", name)
    return name.rpartition("/")[2] or None if is_name else None


def build_lines(folder: Path) -> Sequence[str]:
    """The commands that install and build the connector on a fresh machine, by its lock file or manifest."""
    return next((lines for file, lines in _KNOWN.builds.items() if (folder / file).is_file()), ())


def _parse_manifest(path: Path) -> Any:
    """Parse a manifest; None if it cannot be read: its own tools report that."""
    try:
        return parse_file(path, MOST_BYTES)
    except (OSError, ValueError, RecursionError):
        return None


def _has_npm_package(folder: Path) -> bool:
    """Whether the kit's package for npm is at hand: the manifest asks for it, or npm has installed it here or above."""
    manifest = _parse_manifest(folder / "package.json")
    if any(_NPM_PACKAGE in object_in(member_of(manifest, name)) for name in _DEPENDENCIES):
        return True
    return any(
        (above / "node_modules" / _NPM_PACKAGE / "package.json").is_file() for above in (folder, *folder.parents)
    )


def npm_package_outside(folder: Path, root: Path) -> str | None:
    """The place of the kit's package for npm in the manifest, if it is outside of the repository: CI lacks it."""
    manifest = _parse_manifest(folder / "package.json")
    for name in _DEPENDENCIES:
        kind, _, place = str(member_of(manifest, name, _NPM_PACKAGE)).partition(":")
        # A path that no file can have: npm reports it itself.
        with suppress(ValueError):
            if kind in ("file", "link") and not real_path(folder / place).is_relative_to(real_path(root)):
                return place
    return None


_NPM_PACKAGE = "signet-conformance"
_DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies")
