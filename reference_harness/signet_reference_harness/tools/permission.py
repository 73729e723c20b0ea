"""Which tools a model may use without permission, and how a person is asked to permit the others."""

from __future__ import annotations

import difflib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from signet_reference_harness.errors import ConfigError, ConfinementError
from signet_reference_harness.messages import ToolCall
from signet_reference_harness.tools import READS, UNASKED
from signet_reference_harness.tools.files import ConfinedFolder

CHOICES: Final = "o: once, s: for the session, n: never in it; anything else refuses it and is said to the model"
LONGEST_SHOWN: Final = 60
"""Lines of a call's preview."""
LONGEST_COMPARED: Final = 256 * 1024
"""Bytes of a file; of a larger one the preview shows no changes."""

Ask = Callable[[str, str], Awaitable[str | None]]
"""Asks a person a question beside some lines about it. Returns the answer, or None if no person can be asked."""


@dataclass(slots=True, kw_only=True)
class Permissions:
    """Which tools the model may use: `patterns` permit further tools; `read_only` forbids those that change data."""

    patterns: tuple[str, ...] = ()
    read_only: bool = False
    ask: Ask | None = None
    _answers: dict[tuple[str, str], bool] = field(default_factory=dict)
    """The person's answers that hold for a whole session, by its key and the tool's name."""

    async def refusal_of(self, call: ToolCall, session: str, project: str) -> str:
        """Why the call is not allowed, for the model; empty if it is."""
        name = call.name
        if self.read_only:
            return "" if name in READS else f"{name} is not allowed: this session only reads (--read-only)"
        if name in UNASKED or any(fnmatchcase(name, pattern) for pattern in self.patterns):
            return ""
        allowed = self._answers.get((session, name))
        if allowed is None:
            return await self._ask_person(call, session, project)
        return "" if allowed else f"{name} is not allowed: the person forbade it for this session"

    async def _ask_person(self, call: ToolCall, session: str, project: str) -> str:
        answer = None
        if self.ask is not None:
            answer = await self.ask(f"May the model use {call.name}? ({CHOICES})", preview(call, project))
        if answer is None:
            return f"{call.name} is not allowed: the person can allow it by --tools {call.name}; tell them what for"
        choice = answer.strip().lower()
        if choice in {"s", "session", "n", "never"}:
            self._answers[session, call.name] = choice in {"s", "session"}
        if choice in {"o", "once", "s", "session"}:
            return ""
        words = "" if choice in {"n", "never"} else f", and says: {answer.strip()}"
        return f"{call.name} was not run: the person does not allow it{words}"


def patterns_of(given: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The patterns of --tools; each text is a list with commas. Raises ConfigError for a pattern that names no tool.

    `names` are the tools that are known before the MCP servers are started.
    """
    patterns = tuple(filter(None, (each.strip() for text in given for each in text.split(","))))
    for pattern in patterns:
        if not pattern.startswith(("mcp__", "*")) and not any(fnmatchcase(name, pattern) for name in names):
            near = difflib.get_close_matches(pattern, names, 1)
            raise ConfigError(
                f"--tools {pattern}: there is no such tool",
                remedy=f"name {near[0]}" if near else f"name some of {', '.join(names)}, or mcp__SERVER__*",
            )
    return patterns


def preview(call: ToolCall, project: str) -> str:
    """A call for a person to judge: the changes, if it writes a file, or else its arguments."""
    lines = _changes(call.arguments, project) if call.name == "file_write" else None
    if lines is None:
        lines = json.dumps(call.arguments, indent=2, ensure_ascii=False, default=str).splitlines()
    more = [f"… {len(lines) - LONGEST_SHOWN} more lines"] if len(lines) > LONGEST_SHOWN else []
    return "\n".join([*(line[:500] for line in lines[:LONGEST_SHOWN]), *more])


def _changes(arguments: Mapping[str, Any], project: str) -> list[str] | None:
    path, content = arguments.get("path"), arguments.get("content")
    if not isinstance(path, str) or not isinstance(content, str):
        return None
    try:
        data, size = ConfinedFolder(project).read_bytes(path, most=LONGEST_COMPARED)
    except ConfinementError:
        data, size = b"", -1
    if size > LONGEST_COMPARED or len(content) > LONGEST_COMPARED:
        return [f"{path}: {len(content)} characters in the place of {max(size, 0)} bytes"]
    name = "/dev/null" if size < 0 else path
    before = data.decode("utf-8", "replace").splitlines()
    changes = difflib.unified_diff(before, content.splitlines(), name, path, n=2, lineterm="")
    return list(changes) or [f"{path}: as it is"]
