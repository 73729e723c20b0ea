"""Installs a connector as users do: beside other tools, twice, over older releases, over broken or read-only files."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping, MutableSequence, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from signet_conformance.drivers.hosts import host_program
from signet_conformance.drivers.hosts.hook_settings import duplicates_in, hook_sources
from signet_conformance.drivers.hosts.installed import INSTALLED, Files, Installer, objections, plugin_rows
from signet_conformance.drivers.hosts.protocol import NotLoadedError, with_programs, write_files
from signet_conformance.errors import TargetError
from signet_conformance.files.json_values import object_in, pointer
from signet_conformance.targets import Target
from signet_conformance.targets.face import find_face
from signet_conformance.targets.files import find_file, find_runtime, first_of, release_of
from signet_conformance.targets.kinds import host_file, installed_programs
from signet_conformance.targets.program import find_program_profile
from signet_conformance.targets.releases import numbers
from signet_conformance.trace.marks import AGAIN, ONCE, OVER

INSTALL_VARIABLE = "SIGNET_CONFORMANCE_INSTALL"
"""A variable of scenarios: the connector is installed in each way before it performs the steps."""
_BROKEN = '{"kept-by-the-user": [1, 2'
_SETTINGS = (".json", ".toml")


def find_installer(target: Target) -> Installer | None:
    """Find the installer of a target whose harness is played; None if it lacks one, or it is not built."""
    if target.real is not None or not target.kind.has_face or target.profile.config is not None:
        return None
    face = find_face(target).data
    options: Mapping[str, Any] = {}
    told_daemon = False
    if target.kind.name == "command-hooks":
        module, told_daemon = find_file(target), face.environment is not None
    elif target.kind.name == "mcp":
        if target.command or target.profile.url is not None or face.mcp is None:
            return None
        module = find_file(target)
    else:
        try:
            connector = find_program_profile(face.harness).profile.connector
        except TargetError:
            return None
        place = first_of(target, connector.installer)
        if place is None:
            return None
        module, options, told_daemon = place, connector.options, connector.told_daemon
    return Installer([find_runtime(target, module), host_file("install.mjs")], str(module), options, told_daemon)


def has_installer(target: Target) -> bool:
    """Whether the connector can be installed here by its own installer."""
    try:
        return find_installer(target) is not None
    except TargetError:
        return False


class Installations:
    """The homes in which a target's connector is installed, one for each way; scenarios use the first.

    `rows` fills `accepted_files`: for each file of a first installation, whether the host accepts it, as rows of
    `installed` in an answer to `hello`.
    """

    def __init__(self, target: Target, installer: Installer, env: Mapping[str, str]) -> None:
        self._target = target
        self._installer = installer
        self._env = env
        self._home = Path(env["HOME"])
        self._face: Mapping[str, Any] = json.loads(find_face(target).path.read_bytes())
        self._others: Mapping[str, Any] = self._face.get("others", {})
        self.accepted_files: MutableSequence[Mapping[str, Any]] = []

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Install in each way and check the files afterwards; return a row for each way, as in an answer to `hello`."""
        again, fresh = self._again()
        release = release_of(Path(self._installer.module))
        formers = [
            (each.release, each.files)
            for each in self._target.profile.former
            # Only older releases are installed over.
            if release is None or numbers(each.release) < numbers(release)
        ]
        older = [] if self._target.profile.older is None else [self._of_older_checkout()]
        over = (self._over(name, files, fresh) for name, files in (*older, *formers))
        self._install_without_settings()
        rows = [again, *over]
        if settings := [path for path in self._others if path.endswith(_SETTINGS)]:
            rows += (self._over_broken(settings), self._over_read_only(settings))
        return rows

    def _again(self) -> tuple[Mapping[str, Any], Files]:
        write_files(self._home, self._others)
        before = files_below(self._home)
        fresh: Files = {}
        row = self._attempt(AGAIN, self._home)
        if "words" not in row:
            fresh = files_below(self._home)
            self.accepted_files += plugin_rows(self._home, before, fresh, self._face, self._manifest())
            row = self._attempt(AGAIN, self._home)
        (self._home / INSTALLED).touch()
        after = files_below(self._home)
        return {**row, "twice": find_additions(fresh, after), "changed": find_losses(before, after)}, fresh

    def _install_without_settings(self) -> None:
        """Install where the harness has no settings yet, if it can run so, and if it loaded the plugin with some."""
        loading = self._face.get("registry", {}).get("loading", {})
        if not loading.get("without_settings", False) or any(
            row["accepted"] is False for row in objections(self.accepted_files, ())
        ):
            return
        home = self._home_beside("without-settings")
        if "words" in self._attempt(ONCE, home):
            return
        rows = plugin_rows(home, {}, files_below(home), self._face, self._manifest())
        lacking = f" if the user has no {Path(loading['settings'][0]).name} yet"
        self.accepted_files += [{**row, "file": row["file"] + lacking} for row in rows if row["accepted"] is False]

    def _manifest(self) -> Mapping[str, Any]:
        """The manifest of the plugin's package; empty without one that can be read."""
        name = self._face.get("registry", {}).get("loading", {}).get("manifest")
        if name is None:
            return {}
        for folder in find_file(self._target).parents:
            if (folder / name).is_file():
                return object_in(parse(name, (folder / name).read_text("utf-8", "replace")))
        return {}

    def _over(self, release: str, former: Mapping[str, Any], fresh: Files) -> Mapping[str, Any]:
        home = self._home_beside(f"over-{release}")
        write_files(home, former)
        row = self._attempt(OVER, home)
        settings = self._face.get("settings")
        twice = [] if settings is None else duplicates_in(hook_sources(home, home / settings, self._face))
        written = {path: parse(path, value) if isinstance(value, str) else value for path, value in former.items()}
        old = find_leftovers(written, files_below(home), fresh)
        return {**row, "older": release, "twice": twice, "old": old}

    def _of_older_checkout(self) -> tuple[str, Mapping[str, Any]]:
        """Files that the installer of the older checkout (setting `older`) leaves in an empty home."""
        folder = self._target.folder / str(self._target.profile.older)
        profile = self._target.profile
        if profile.module is not None and Path(profile.module).is_absolute():
            # That file belongs to this release: look for the older one where the profile says.
            profile = profile.model_copy(update={"module": None})
        target = replace(self._target, root=folder, folder=folder, profile=profile)
        installer = find_installer(target)
        if installer is None:
            raise TargetError(
                f"{folder} has no installer of {target.name}",
                where=self._target.where,
                remedy="build the older release, or fix the setting older",
            )
        home = self._home_beside("older")
        self._install(home, installer)
        return release_of(Path(installer.module)) or folder.name, files_below(home)

    def _over_broken(self, settings: Sequence[str]) -> Mapping[str, Any]:
        home = self._home_beside("broken")
        write_files(home, dict.fromkeys(settings, _BROKEN))
        row = self._attempt(ONCE, home)
        left = [path for path, text in files_below(home).items() if isinstance(text, str) and _BROKEN in text]
        # A copy beside the file, such as NAME.bak, keeps it too.
        gone = [path for path in settings if not any(other.startswith(path) for other in left)]
        return {**row, "changed": [f"{path}, which cannot be parsed, is written anew without a copy" for path in gone]}

    def _over_read_only(self, settings: Sequence[str]) -> Mapping[str, Any]:
        home = self._home_beside("read-only")
        write_files(home, self._others)
        for path in settings:
            (home / path).chmod(0o444)
        before = files_below(home)
        row = self._attempt(ONCE, home)
        after = files_below(home)
        if "words" not in row and after.keys() <= before.keys() and not find_losses(after, before):
            row["remark"] = "the installer reports success but wrote nothing: the settings are read-only"
        return {**row, "changed": find_losses(before, after)}

    def _home_beside(self, name: str) -> Path:
        home = self._home.with_name(f"{self._home.name}-{name}")
        home.mkdir()
        return home

    def _attempt(self, how: str, home: Path) -> dict[str, Any]:
        """Install, and begin the row that describes it: with the installer's words if it fails."""
        try:
            self._install(home)
        except NotLoadedError as failure:
            return {"how": how, "words": str(failure)}
        return {"how": how}

    def _install(self, home: Path, installer: Installer | None = None) -> None:
        programs = home / ".signet-conformance-bin"
        env = {**self._env, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
        env |= {"SIGNET_PATH": str(home / ".agents"), "PATH": with_programs(installed_programs(self._target), programs)}
        host_program.put_on_path(self._face, programs)
        if "mcp" in self._face:
            # The user has started the harness before, so its folder exists: connectors look for it.
            (home / self._face["mcp"]["file"]).parent.mkdir(parents=True, exist_ok=True)
        (installer or self._installer).run(env)


_NOT_SETTINGS = frozenset({".agents", ".cache", "node_modules", "__pycache__"})
_OURS = ".signet-conformance-"
_LARGEST = 4 * 1024 * 1024


def files_below(home: Path) -> Files:
    """Read the files of a home, without the daemon's workspace and the kit's own files."""
    found: dict[str, Any] = {}
    for folder, names, files in os.walk(home):
        names[:] = [name for name in names if name not in _NOT_SETTINGS and not name.startswith(_OURS)]
        for name in files:
            path = Path(folder, name)
            if not name.startswith(_OURS) and path.is_file() and path.stat().st_size <= _LARGEST:
                found[str(path.relative_to(home))] = parse(name, path.read_bytes().decode("utf-8", "replace"))
    return found


def parse(name: str, text: str) -> Any:
    """Parse a JSON or TOML file; return the text of another file, or of one that cannot be parsed."""
    try:
        if name.endswith(".json"):
            return json.loads(text)
        return tomllib.loads(text) if name.endswith(".toml") else text
    except (ValueError, RecursionError):
        return text


def find_losses(before: Files, after: Files) -> list[str]:
    """Describe the entries of files that are gone afterwards, or changed."""
    return [f"{path}{what}" for path, value in before.items() for what in _missing(value, after.get(path), ())]


def _missing(before: Any, after: Any, place: tuple[str | int, ...]) -> Iterator[str]:
    where = f": {pointer(*place)}" if place else ""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name in after:
                yield from _missing(value, after[name], (*place, name))
            else:
                yield f": {pointer(*place, name)} is gone"
    elif isinstance(before, list) and isinstance(after, list):
        for number, item in enumerate(before):
            if not any(next(_missing(item, other, ()), None) is None for other in after):
                yield f": {pointer(*place, number)} is gone"
    elif isinstance(before, str) and isinstance(after, str) and not place:
        left = {line.strip() for line in after.splitlines()}
        yield from (
            f": the line `{line}`" for each in before.splitlines() if (line := each.strip()) not in left and line
        )
    elif after is None:
        yield f"{where} is gone"
    elif before != after:
        yield f"{where} is another one"


def find_additions(first: Files, second: Files) -> list[str]:
    """Describe the lists that are longer and the texts that repeat a line after a second installation."""
    return [
        f"{what} in {path}" for path, value in second.items() if path in first for what in _more(first[path], value, ())
    ]


def _more(first: Any, second: Any, place: tuple[str, ...]) -> Iterator[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        for name in (name for name in first if name in second):
            yield from _more(first[name], second[name], (*place, name))
    elif isinstance(first, list) and isinstance(second, list):
        if len(second) > len(first):
            yield f"{len(second)} entries of {pointer(*place)}, {len(first)} after the first installation,"
        for one, other in zip(first, second, strict=False):
            yield from _more(one, other, (*place, "*"))
    elif isinstance(first, str) and isinstance(second, str) and not place:
        known = first.splitlines()
        added = [line for line in second.splitlines() if line.strip()][len([line for line in known if line.strip()]) :]
        if added and all(line in known for line in added):
            yield f"the line `{added[0].strip()}` again"


def find_leftovers(former: Files, after: Files, fresh: Files) -> list[str]:
    """Name the entries of an older release that are still there and that a fresh installation does not write."""
    old: dict[str, None] = {}
    for path, value in former.items():
        beside = set(_entries(after.get(path), ())) - set(_entries(fresh.get(path), ()))
        old |= dict.fromkeys(
            f"{path}{f': {place}' if place else ''}" for place, entry in _entries(value, ()) if (place, entry) in beside
        )
    return list(old)


def _entries(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each entry as its place and JSON: members without members of their own, and items without a list."""
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from _entries(each, (*place, name))
    elif isinstance(value, list) and value:
        for each in value:
            holds_lists = isinstance(each, dict) and any(isinstance(inner, list) for inner in each.values())
            if holds_lists:
                yield from _entries(each, (*place, "*"))
            else:
                yield pointer(*place, "*"), json.dumps(each, sort_keys=True)
    elif value is not None:
        yield pointer(*place), json.dumps(value, sort_keys=True)
