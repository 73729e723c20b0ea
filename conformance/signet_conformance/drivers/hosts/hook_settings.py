"""The hooks that a connector has put into its harness's settings, and what is remarkable about them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signet_conformance.drivers.hosts.protocol import StepError

_SECRET = re.compile(r"sig_sk_\w+|sk-[A-Za-z0-9]{16,}|(?:TOKEN|API_KEY|SECRET|PASSWORD)=['\"]?[^\s'\"$]{8,}")
LONGEST_SENSIBLE_S = 600.0
_CALLED_BY: Mapping[str, Sequence[str]] = {
    "session-start": ("SessionStart",),
    "user-prompt-submit": ("UserPromptSubmit",),
    "session-end": ("SessionEnd", "Stop"),
    "pre-compaction": ("PreCompact",),
}
"""Operation to the events of which one has to have a hook, or a connector of hooks never calls it."""


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
        return re.fullmatch(str(self.matcher), str(occasion)) is not None


def read_hooks(path: Path, face: Mapping[str, Any]) -> Mapping[str, Sequence[Hook]]:
    """The hooks of a settings file by event. Raises StepError when the file is not what the harness reads."""
    data = _read(path)
    given = data.get("hooks") if isinstance(data, dict) else None
    unit = float(face["timeout_unit_s"])
    default = float(face["default_timeout_s"])
    hooks: dict[str, list[Hook]] = {}
    for event, matcher, hook in _configured(given, path):
        if isinstance(hook.get("command"), str):
            timeout = hook.get("timeout")
            timeout_s = float(timeout) * unit if isinstance(timeout, int | float) else default
            hooks.setdefault(event, []).append(Hook(hook["command"], timeout_s, matcher))
    return hooks


def refusal(path: Path, face: Mapping[str, Any]) -> str | None:
    """The words with which the harness refuses a file of hooks; None when it takes it, as most do whatever it holds."""
    known = face.get("hook_file_members")
    data = _read(path) if known is not None else None
    if known is None or not isinstance(data, dict):
        return None
    groups = data.get("hooks")
    rows = (
        [row for given in groups.values() if isinstance(given, list) for row in given]
        if isinstance(groups, dict)
        else []
    )
    hooks = [
        hook for row in rows if isinstance(row, dict) for hook in row.get("hooks", ()) if isinstance(row["hooks"], list)
    ]
    for level, parts in (("file", [data]), ("group", rows), ("hook", hooks)):
        for part in parts:
            unknown = (
                next((name for name in part if name not in known[level]), None) if isinstance(part, dict) else None
            )
            if unknown is not None:
                return f"unknown field `{unknown}`"
    return None


def _read(path: Path) -> Any:
    try:
        raw = path.read_bytes()
        return tomllib.loads(raw.decode()) if path.suffix == ".toml" else json.loads(raw)
    except OSError as failure:
        raise StepError(f"{path}: no hooks are installed there: {failure.strerror}") from None
    except ValueError as failure:
        raise StepError(f"{path}: is not {path.suffix[1:].upper() or 'JSON'}: {failure}") from None


def _configured(given: Any, path: Path) -> Iterator[tuple[str, str | None, Mapping[str, Any]]]:
    """Event, matcher and hook of each entry: a plain list of hooks in TOML, groups of them by event in JSON."""
    if path.suffix == ".toml":
        if not isinstance(given, list):
            raise StepError(f"{path}: holds no list 'hooks'")
        for entry in given:
            if isinstance(entry, dict) and isinstance(entry.get("event"), str):
                yield entry["event"], entry.get("matcher"), entry
        return
    if not isinstance(given, dict):
        raise StepError(f"{path}: holds no object 'hooks'")
    for event, rows in given.items():
        for row in rows if isinstance(rows, list) else ():
            for hook in row.get("hooks", ()) if isinstance(row, dict) else ():
                if isinstance(hook, dict) and hook.get("type") == "command":
                    yield event, row.get("matcher"), hook


def lacking(hooks: Mapping[str, Sequence[Hook]], capabilities: Collection[str]) -> Sequence[str]:
    """The hooks that are not installed though the target declares the operations (`capabilities`) that need them."""
    return [
        f"no hook for {' or '.join(events)}, though {operation} is declared"
        for operation, events in _CALLED_BY.items()
        if operation in capabilities and not any(event in hooks for event in events)
    ]


def remarks(hooks: Mapping[str, Sequence[Hook]], face: Mapping[str, Any]) -> Sequence[str]:
    """Problems of an installed configuration: unknown events, odd timeouts, secrets."""
    said = []
    for event, configured in hooks.items():
        if event not in face["events"]:
            said.append(f"{event}: {face['harness']} {face['version']} has no such event")
        for hook in configured:
            if hook.timeout_s > LONGEST_SENSIBLE_S:
                unit = "seconds" if face["timeout_unit_s"] == 1 else f"units of {face['timeout_unit_s']} s"
                said.append(f"{event}: a timeout of {hook.timeout_s:g} s, since {face['harness']} counts in {unit}")
            if _SECRET.search(hook.command):
                said.append(f"{event}: the command holds what looks like a secret")
    return said
