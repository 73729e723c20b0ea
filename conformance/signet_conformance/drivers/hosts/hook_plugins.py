"""The files that hold a harness's hooks: its settings, and those of the plugins that are installed and enabled."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signet_conformance.drivers.hosts.hook_settings import Hook, HookFile, read_hook_file

_NOTHING = ": "
"""How the commands begin that faces give to other tools."""


@dataclass(frozen=True, slots=True)
class HookSource:
    """A file of hooks with the name that messages give it."""

    name: str
    file: HookFile


def hook_sources(home: Path, settings: Path, face: Mapping[str, Any]) -> Sequence[HookSource]:
    """Read the hooks of the settings and of each enabled plugin. Without any file there is the missing settings one."""
    plugins = [
        HookSource(f"{path.name} of the plugin {plugin}", read_hook_file(path, face))
        for plugin, root in enabled_plugins(home, face)
        if (path := _plugin_file(root, face, "hooks")).is_file()
    ]
    if plugins and not settings.exists():
        return plugins
    return [HookSource(settings.name, read_hook_file(settings, face)), *plugins]


def enabled_plugins(home: Path, face: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Each installed and enabled plugin as the settings name it, with its folder."""
    places = face.get("plugins")
    if places is None:
        return
    try:
        known = tomllib.loads((home / places["settings"]).read_text("utf-8")).get("plugins", {})
    except (OSError, ValueError):
        return
    for plugin, about in known.items() if isinstance(known, dict) else ():
        name, _, marketplace = plugin.rpartition("@")
        kept = home / places["cache"] / marketplace / name
        if isinstance(about, dict) and about.get("enabled", True) and kept.is_dir():
            yield from ((plugin, root) for root in sorted(kept.iterdir())[-1:])


def plugin_servers(home: Path, face: Mapping[str, Any]) -> Mapping[str, Any]:
    """The memory servers that enabled plugins bring, by name."""
    servers: dict[str, Any] = {}
    for _, root in enabled_plugins(home, face):
        data = _read_json(_plugin_file(root, face, "mcpServers"))
        given = data.get("mcpServers", {})
        servers |= given if isinstance(given, dict) else {}
    return servers


def _plugin_file(root: Path, face: Mapping[str, Any], member: str) -> Path:
    """The file that a plugin's manifest names by a member, or else the harness's default for it."""
    named = _read_json(root / face["plugins"]["manifest"]).get(member)
    return root / (named if isinstance(named, str) else face["plugins"][member])


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def together(sources: Sequence[HookSource]) -> Mapping[str, Sequence[Hook]]:
    """The hooks of all sources by event: a harness runs all of them.

    Hooks that the kit has put there for other tools are left out: they do nothing, and are not the connector's.
    """
    hooks: dict[str, list[Hook]] = {}
    for source in sources:
        for event, configured in source.file.hooks.items():
            if own := [hook for hook in configured if not hook.command.startswith(_NOTHING)]:
                hooks.setdefault(event, []).extend(own)
    return hooks


def doubled(sources: Sequence[HookSource]) -> Sequence[str]:
    """Describe the hooks that stand twice under one event and matcher: a line for each set of files that hold them."""
    places: dict[tuple[str, str, str | None], list[str]] = {}
    for source in sources:
        for event, configured in source.file.hooks.items():
            for hook in configured:
                places.setdefault((event, hook.command, hook.matcher), []).append(source.name)
    events: dict[tuple[str, ...], list[str]] = {}
    for (event, _, _), names in places.items():
        if len(names) > 1:
            events.setdefault(tuple(names), []).append(event)
    return [
        f"the hooks of {_join_names(dict.fromkeys(hooks))} in {' and in '.join(names)}"
        for names, hooks in events.items()
    ]


def _join_names(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
