"""The hooks that a connector has put into its harness's settings, and what is remarkable about them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signet_conformance.files.json_values import member_of, object_in, objects_in, only_text, parse_object

_SECRET = re.compile(r"sig_sk_\w+|sk-[A-Za-z0-9]{16,}|(?:TOKEN|API_KEY|SECRET|PASSWORD)=['\"]?[^\s'\"$]{8,}")
LONGEST_SENSIBLE_S = 600.0
_CALLED_BY: Mapping[str, Sequence[str]] = {
    "session-start": ("SessionStart",),
    "user-prompt-submit": ("UserPromptSubmit",),
    "session-end": ("SessionEnd", "Stop"),
    "pre-compaction": ("PreCompact",),
}
"""Operation to its events: a connector calls the operation only if it has a hook on one of them."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One configured command. `timeout_s` is already in seconds; `matcher` None runs it for every occasion."""

    command: str
    timeout_s: float
    matcher: str | None = None

    def matches(self, occasion: object) -> bool:
        """Whether the harness runs it on an occasion, such as the source of a start."""
        if self.matcher in (None, "", "*") or occasion is None:
            return True
        return self.pattern is not None and self.pattern.fullmatch(str(occasion)) is not None

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """The matcher as a regular expression; None if it is not one."""
        try:
            return re.compile(self.matcher or "")
        except re.error:
            return None


@dataclass(frozen=True, slots=True)
class HookFile:
    """A file of hooks as the harness reads it.

    `refusal` are the words with which the harness refuses it, and then runs none of its hooks; None when it takes it.
    `hooks` are read from a refused file too, as far as they can be, so that a run shows what else is wrong.
    `unread` are the members at its top, if it names operations of the daemon, or commands among its hooks, and holds no
    hook of the harness's form.
    """

    hooks: Mapping[str, Sequence[Hook]]
    refusal: str | None = None
    unread: Sequence[str] = ()


def read_hook_file(path: Path, face: Mapping[str, Any]) -> HookFile:
    """Read the hooks of a settings file by event."""
    kind = path.suffix[1:].upper() or "JSON"
    # A harness with a strict parser refuses a file that names a member twice.
    reject_duplicates = _once_each if "hook_file" in face else None
    try:
        text = path.read_bytes().decode()
        data = tomllib.loads(text) if kind == "TOML" else json.loads(text, object_pairs_hook=reject_duplicates)
    except OSError as failure:
        return HookFile({}, f"cannot be read: {failure.strerror}")
    except (ValueError, RecursionError) as failure:
        return HookFile({}, f"is not {kind}: {failure}")
    hooks: dict[str, list[Hook]] = {}
    for event, matcher, hook in _configured(data):
        if isinstance(hook.get("command"), str):
            hooks.setdefault(event, []).append(Hook(hook["command"], _timeout_s(hook.get("timeout"), face), matcher))
    is_unread = isinstance(data, dict) and not hooks and (any(name in text for name in _CALLED_BY) or _runs_some(data))
    unread = list(data) if is_unread else ()
    return HookFile(hooks, _refusal(data, kind, face), unread)


def _runs_some(data: dict[str, Any]) -> bool:
    """Whether a command stands anywhere below the hooks of a file."""
    rest = [data.get("hooks")]
    for each in rest:
        if isinstance(each, dict) and isinstance(each.get("command"), str):
            return True
        rest.extend(each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
    return False


def _once_each(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object. Raises ValueError for one that stands there twice."""
    names = [name for name, _ in pairs]
    if twins := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"duplicate field `{twins[0]}`")
    return dict(pairs)


def _timeout_s(given: object, face: Mapping[str, Any]) -> float:
    known = isinstance(given, int | float) and not isinstance(given, bool)
    return float(given) * float(face["timeout_unit_s"]) if known else float(face["default_timeout_s"])  # type: ignore[arg-type]


def _refusal(data: Any, kind: str, face: Mapping[str, Any]) -> str | None:
    """The complaint of the harness about a file of another form than its own."""
    if "hook_file" in face:
        place, words = breach_of(face["hook_file"], data) or ("", None)
        return words if not place else f"{place}: {words}"
    if not isinstance(data, dict):
        return f"is not {'a table' if kind == 'TOML' else 'an object'}"
    form = list if kind == "TOML" else dict
    if not isinstance(data.get("hooks", form()), form):
        return f"its member hooks is not {'a list of tables' if form is list else 'an object'}"
    return None


def breach_of(schema: dict[str, Any], data: Any) -> tuple[str, str] | None:
    """The first thing that a schema refuses: its place, empty for a field that it does not know, and words about it."""
    # Imported here: few harnesses are known to mind, and every hook's host would wait for it.
    import jsonschema_rs

    error = next(iter(jsonschema_rs.validator_for(schema).iter_errors(data)), None)
    if error is None:
        return None
    if unknown := getattr(error.kind, "unexpected", None):
        return "", f"unknown field `{unknown[0]}`"
    return f"/{'/'.join(map(str, error.instance_path))}", error.message


def _configured(data: Any) -> Iterator[tuple[str, str | None, Mapping[str, Any]]]:
    """Event, matcher and hook of each entry: groups of hooks by event, or a plain list of hooks."""
    given = member_of(data, "hooks")
    for entry in objects_in(given):
        if isinstance(entry.get("event"), str):
            yield entry["event"], only_text(entry.get("matcher")), entry
    for event, rows in object_in(given).items():
        for row in objects_in(rows):
            for hook in objects_in(row.get("hooks")):
                if hook.get("type") == "command":
                    yield event, only_text(row.get("matcher")), hook


def lacking(hooks: Mapping[str, Sequence[Hook]], capabilities: Collection[str]) -> Sequence[str]:
    """The hooks that are not installed though the target declares the operations (`capabilities`) that need them."""
    return [
        f"no hook for {' or '.join(events)}, though {operation} is declared"
        for operation, events in _CALLED_BY.items()
        if operation in capabilities and not any(event in hooks for event in events)
    ]


def remarks(hooks: Mapping[str, Sequence[Hook]], face: Mapping[str, Any]) -> Sequence[str]:
    """Problems of an installed configuration: odd timeouts, matchers, secrets."""
    said = []
    for event, configured in hooks.items():
        for hook in configured:
            if hook.timeout_s > LONGEST_SENSIBLE_S:
                unit = "seconds" if face["timeout_unit_s"] == 1 else f"units of {face['timeout_unit_s']} s"
                said.append(f"{event}: a timeout of {hook.timeout_s:g} s, since {face['harness']} counts in {unit}")
            if hook.matcher != "*" and hook.pattern is None:
                said.append(f"{event}: the matcher {hook.matcher!r} is no regular expression, and matches nothing")
            if _SECRET.search(hook.command):
                said.append(f"{event}: the command holds what looks like a secret")
    return said


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
        plugins = member_of(parse_file(home / places["settings"]), "plugins")
    except (OSError, ValueError, RecursionError):
        return
    for plugin, about in object_in(plugins).items():
        name, _, marketplace = plugin.rpartition("@")
        kept = home / places["cache"] / marketplace / name
        if isinstance(about, dict) and about.get("enabled", True) and kept.is_dir():
            yield from ((plugin, root) for root in sorted(kept.iterdir())[-1:])


def plugin_servers(home: Path, face: Mapping[str, Any]) -> Mapping[str, Any]:
    """The memory servers that enabled plugins bring, by name."""
    servers: dict[str, Any] = {}
    for _, root in enabled_plugins(home, face):
        servers |= object_in(_read_json(_plugin_file(root, face, "mcpServers")).get("mcpServers"))
    return servers


def _plugin_file(root: Path, face: Mapping[str, Any], member: str) -> Path:
    """The file that a plugin's manifest names by a member, or else the harness's default for it."""
    named = _read_json(root / face["plugins"]["manifest"]).get(member)
    return root / (named if isinstance(named, str) else face["plugins"][member])


def parse_file(path: Path) -> Any:
    """The content of a file of settings. Raises OSError, ValueError or RecursionError for one that cannot be read."""
    return tomllib.loads(path.read_text("utf-8")) if path.suffix == ".toml" else json.loads(path.read_bytes())


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        return parse_object(path.read_bytes())
    except OSError:
        return {}


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
