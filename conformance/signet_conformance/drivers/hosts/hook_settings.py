"""Read the hooks that a connector's installer wrote for its harness, and report what is odd about them."""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from signet_conformance.files import parse_file
from signet_conformance.files.json_values import member_of, object_in, objects_in, only_text, parse_object

_SECRET = re.compile(r"sig_sk_\w+|sk-[A-Za-z0-9]{16,}|(?:TOKEN|API_KEY|SECRET|PASSWORD)=['\"]?[^\s'\"$]{8,}")
LONGEST_SENSIBLE_S = 600.0
_CALLED_IN: Mapping[str, Sequence[str]] = {
    "session-start": ("start",),
    "user-prompt-submit": ("prompt",),
    "session-end": ("end",),
    "pre-compaction": ("compact", "pre_compaction"),
}
"""Operation to its steps: a connector calls it only if it has a hook on an event that a face fires in one of them."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One configured command. `timeout_s` is in seconds; without a `matcher` it runs on every occasion."""

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

    `refusal`: why the harness refuses the file and runs none of its hooks; None if it accepts the file.
    `hooks`: those that can be read, also from a refused file, so that a run shows what else is wrong.
    `unread`: the names of the top members, if no hook has the harness's form, but the file names a command or an
    operation of the daemon.
    `name`: what messages call it.
    """

    name: str
    hooks: Mapping[str, Sequence[Hook]]
    refusal: str | None = None
    unread: Sequence[str] = ()


def read_hook_file(path: Path, face: Mapping[str, Any], of: str = "") -> HookFile:
    """Read the hooks of a settings file by event; `of` says in its name what it belongs to."""
    name = f"{path.name}{of}"
    kind = path.suffix[1:].upper() or "JSON"
    # A harness with a strict parser refuses a file that names a member twice.
    members = _without_duplicates if "hook_file" in face else None
    try:
        text = path.read_bytes().decode()
        if kind == "TOML":
            data = tomllib.loads(text)
        else:
            data = json.loads(text, object_pairs_hook=members, parse_constant=_reject_constant)
    except OSError as failure:
        return HookFile(name, {}, f"cannot be read: {failure.strerror}")
    except (ValueError, RecursionError) as failure:
        return HookFile(name, {}, f"is not {kind}: {failure}")
    hooks: dict[str, list[Hook]] = {}
    for event, matcher, hook in _configured(data):
        if isinstance(hook.get("command"), str):
            hooks.setdefault(event, []).append(Hook(hook["command"], _timeout_s(hook.get("timeout"), face), matcher))
    is_unread = (
        isinstance(data, dict) and not hooks and (any(name in text for name in _CALLED_IN) or _names_a_command(data))
    )
    unread = list(data) if is_unread else ()
    return HookFile(name, hooks, _refusal(data, kind, face), unread)


def _names_a_command(data: dict[str, Any]) -> bool:
    """Whether a file names a command anywhere in its member hooks."""
    rest = [data.get("hooks")]
    for each in rest:
        if isinstance(each, dict) and isinstance(each.get("command"), str):
            return True
        rest.extend(each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
    return False


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object. Raises ValueError if two have the same name."""
    names = [name for name, _ in pairs]
    if duplicates := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"duplicate field `{duplicates[0]}`")
    return dict(pairs)


def _reject_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python takes for JSON and no harness does."""
    raise ValueError(f"{name} is no JSON value")


def _timeout_s(given: object, face: Mapping[str, Any]) -> float:
    # As text: float() fails for a whole number that is too large for it.
    number = float(str(given)) if isinstance(given, int | float) and not isinstance(given, bool) else math.nan
    if math.isnan(number):
        return float(face["default_timeout_s"])
    return min(number, sys.float_info.max) * float(face["timeout_unit_s"])


def _refusal(data: Any, kind: str, face: Mapping[str, Any]) -> str | None:
    """Why the harness refuses a file; None if it accepts the file."""
    if "hook_file" in face:
        place, words = schema_error(face["hook_file"], data) or ("", None)
        return words if not place else f"{place}: {words}"
    if not isinstance(data, dict):
        return f"is not {'a table' if kind == 'TOML' else 'an object'}"
    form = list if kind == "TOML" else dict
    if not isinstance(data.get("hooks", form()), form):
        return f"its member hooks is not {'a list of tables' if form is list else 'an object'}"
    return None


def schema_error(schema: dict[str, Any], data: Any) -> tuple[str, str] | None:
    """Where and why a schema refuses `data` first. The place is empty for an unknown field, and for too deep data."""
    # Imported here: the import is slow, and few faces have a schema.
    import jsonschema_rs

    try:
        error = next(iter(jsonschema_rs.validator_for(schema).iter_errors(data)), None)
    except ValueError as failure:
        return "", str(failure)
    if error is None:
        return None
    if unknown := getattr(error.kind, "unexpected", None):
        return "", f"unknown field `{unknown[0]}`"
    return f"/{'/'.join(map(str, error.instance_path))}", error.message


def _configured(data: Any) -> Iterator[tuple[str, str | None, Mapping[str, Any]]]:
    """Yield event, matcher and hook of each entry; `hooks` is a list of hooks, or an object of groups by event."""
    given = member_of(data, "hooks")
    for entry in objects_in(given):
        if isinstance(entry.get("event"), str):
            yield entry["event"], only_text(entry.get("matcher")), entry
    for event, rows in object_in(given).items():
        for row in objects_in(rows):
            for hook in objects_in(row.get("hooks")):
                if hook.get("type") == "command":
                    yield event, only_text(row.get("matcher")), hook


def missing_hooks(
    hooks: Mapping[str, Sequence[Hook]], capabilities: Collection[str], face: Mapping[str, Any]
) -> Sequence[str]:
    """Describe the hooks that are missing for operations that the target declares (`capabilities`)."""
    called_by = {operation: _events_of(operation, face) for operation in _CALLED_IN if operation in capabilities}
    return [
        f"no hook for {' or '.join(events)}, though {operation} is declared"
        for operation, events in called_by.items()
        if events and not any(event in hooks for event in events)
    ]


def _events_of(operation: str, face: Mapping[str, Any]) -> Sequence[str]:
    """List the events that a face fires for an operation: in its steps, those before the model is asked."""
    actions: list[Mapping[str, Any]] = []
    for step in _CALLED_IN[operation]:
        actions += takewhile(lambda action: not action.get("model"), face["steps"].get(step, ()))
    # Some harnesses report no end, so their connectors end a session after each turn.
    actions += face["turn_end"] if operation == "session-end" else ()
    fired = (action.get("event") or action.get("next_turn") or action.get("quit") for action in actions)
    return list(dict.fromkeys(event for event in fired if event))


_FILLED = frozenset(
    {
        *("session_id", "transcript_path", "cwd", "hook_event_name", "prompt", "turn_id", "last_assistant_message"),
        *("compact_summary", "tool_name", "tool_input", "tool_use_id", "tool_call_id", "tool_output", "tool_response"),
        "duration_ms",
    }
)
"""The members of a hook's JSON for which the host has a value, beside those that a face has."""


def unfilled(hooks: Mapping[str, Sequence[Hook]], face: Mapping[str, Any]) -> Iterator[str]:
    """Describe the members that hooks do not get because neither the host nor the face has a value for them."""
    names = face.get("names", {})
    actions = [*(action for actions in face["steps"].values() for action in actions), *face["turn_end"]]
    for event, members in face["events"].items():
        fired = (a for a in actions if event in (a.get("event"), a.get("next_turn"), a.get("quit")))
        filled = {*_FILLED, *face["constants"], *(name for action in fired for name in action)}
        missing = [name for name in members if names.get(name, name) not in filled]
        if missing and event in hooks:
            told = ", ".join(missing)
            yield f"{event}: hooks do not get {told}: the face has no value for it under names or constants"


def oddities_of(hooks: Mapping[str, Sequence[Hook]], face: Mapping[str, Any]) -> Sequence[str]:
    """Describe odd timeouts, useless matchers and secrets in the installed hooks."""
    found = []
    for event, configured in hooks.items():
        for hook in configured:
            if hook.timeout_s > LONGEST_SENSIBLE_S:
                unit = "seconds" if face["timeout_unit_s"] == 1 else f"units of {face['timeout_unit_s']} s"
                found.append(f"{event}: a timeout of {hook.timeout_s:g} s, since {face['harness']} counts in {unit}")
            if hook.matcher != "*" and hook.pattern is None:
                found.append(f"{event}: the matcher {hook.matcher!r} is not a regular expression: it matches nothing")
            if _SECRET.search(hook.command):
                found.append(f"{event}: the command holds what looks like a secret")
        # The loop above has reported the matchers that are not regular expressions.
        readable = [hook for hook in configured if hook.matcher == "*" or hook.pattern is not None]
        fired = _occasions(event, face)
        if readable and fired and not any(hook.matches(occasion) for hook in readable for occasion in fired):
            matchers = ", ".join(sorted({repr(hook.matcher) for hook in readable}))
            found.append(f"{event}: no hook runs: {matchers} matches none of {', '.join(fired)}")
    return found


def _occasions(event: str, face: Mapping[str, Any]) -> Sequence[str]:
    """List the values that a face has for the matchers of an event. Empty if one is known only in the step."""
    member = face.get("matchers", {}).get(event)
    actions = (action for actions in face.get("steps", {}).values() for action in actions)
    fired = {action.get(member) for action in actions if action.get("event") == event}
    return [] if None in fired else sorted(fired)


_DOES_NOTHING = ": "
"""The beginning of each hook command that the kit writes for another tool."""


def hook_sources(home: Path, settings: Path, face: Mapping[str, Any]) -> Sequence[HookFile]:
    """Read the hooks of the settings and of each enabled plugin. Without any file, the settings are missing."""
    plugins = [
        read_hook_file(path, face, f" of the plugin {plugin}")
        for plugin, root in enabled_plugins(home, face)
        if (path := _plugin_file(root, face, "hooks")).is_file()
    ]
    if plugins and not settings.exists():
        return plugins
    return [read_hook_file(settings, face), *plugins]


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


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        return parse_object(path.read_bytes())
    except OSError:
        return {}


def by_event(sources: Sequence[HookFile]) -> Mapping[str, Sequence[Hook]]:
    """Return the hooks of all sources by event: a harness runs all of them.

    Hooks that the kit wrote for other tools are left out: they do nothing, and are not the connector's.
    """
    hooks: dict[str, list[Hook]] = {}
    for source in sources:
        for event, configured in source.hooks.items():
            if own := [hook for hook in configured if not hook.command.startswith(_DOES_NOTHING)]:
                hooks.setdefault(event, []).extend(own)
    return hooks


def duplicates_in(sources: Sequence[HookFile]) -> Sequence[str]:
    """Describe hooks that are installed twice for an event and matcher, in one line for each set of files."""
    places: dict[tuple[str, str, str | None], list[str]] = {}
    for source in sources:
        for event, configured in source.hooks.items():
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
