"""Which agent a request runs as, what that agent may see, and the identity files of the workspace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.behaviour import Behaviour
from signet_conformance.daemon.js import Clock
from signet_conformance.daemon.state.store import Store


def resolve_agent(agent: Any, session_key: Any) -> str:
    """The agent that the request names, else the one in a session key ``agent:<id>…``, else ``default``.

    Raises `ScriptError` if the agent is no string, or if it is blank and the session key is no string.
    """
    explicit = js.trimmed(agent)
    if explicit:
        return explicit
    if session_key is not None and not isinstance(session_key, str):
        raise js.ScriptError("split is not a function")
    head, _, rest = (session_key or "").partition(":")
    name = rest.partition(":")[0].strip(js.BLANKS)
    return name if head == "agent" and name else "default"


def named_agent(agent: Any, session_key: Any, *, any_value: bool) -> str:
    """As `resolve_agent`; with `any_value` the name counts as sent: blanks are a name, and a number becomes text."""
    return str(agent) if any_value and js.truthy(agent) else resolve_agent(agent, session_key)


def plain_agent(fields: Mapping[str, Any]) -> str:
    """The agent that a claim belongs to: the body's, else ``default``, whatever the session key names."""
    return js.text_or_none(fields.get("agentId")) or "default"


class Agents:
    """The agents seen so far. An agent that was never seen reads only its own rows."""

    def __init__(self, store: Store, clock: Clock, behaviour: Behaviour) -> None:
        self._strangers = behaviour.agents_are_strangers
        self._open = behaviour.agents_share_rows
        self._store = store
        self._clock = clock

    def register(self, agent: str) -> None:
        """Make `agent` known; it may read the global rows of all agents from now on."""
        if self._strangers and agent != "default":
            return
        now = js.iso(self._clock())
        self._store.run(
            """INSERT INTO agents VALUES (?, ?, 'shared', NULL, ?, ?)
               ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at""",
            agent, agent, now, now,
        )  # fmt: skip

    def visible(self, agent: str) -> tuple[str, list[Any]]:
        """The SQL condition on ``m`` for the rows that `agent` may read, with its values."""
        if self._open:
            return "", []
        is_known = self._store.row("SELECT 1 FROM agents WHERE id = ?", agent) is not None
        shared = "m.visibility = 'global' OR " if is_known else ""
        return f" AND ({shared}m.agent_id = ?)", [agent]

    def rows(self) -> list[dict[str, Any]]:
        """Every known agent."""
        return [dict(row) for row in self._store.rows("SELECT * FROM agents ORDER BY created_at")]


_MOST_MEMORY: Final = 10_000
_MOST_RULES: Final = 12_000
_SEEDS: Final = {
    "agent.yaml": "version: 1\nagent:\n  name: Kit Agent\n  description: Agent of an embedded daemon for tests\n",
    "AGENTS.md": "# Agent Instructions\n\nAnswer briefly and cite the files you changed.\n",
    "MEMORY.md": "# Memory\n\nNothing of note so far.\n",
}


def seed(workspace: Path) -> None:
    """Write those of the files that a session-start reads which are missing."""
    for name, text in _SEEDS.items():
        path = workspace / name
        if not path.exists():
            path.write_text(text, "utf-8")


def identity_of(workspace: Path) -> dict[str, Any]:
    """The agent's name and description from ``agent.yaml``; the name ``Agent`` alone when it says nothing."""
    text = _read_text(workspace / "agent.yaml", _MOST_MEMORY)
    fields = {}
    for name in ("name", "description"):
        match = re.search(rf"^\s+{name}:\s*(.+?)\s*$", text, re.MULTILINE)
        if match:
            fields[name] = match[1].strip("'\"")
    return fields if "name" in fields else {"name": "Agent"}


def working_memory(workspace: Path) -> str | None:
    """The text of ``MEMORY.md``, None when the file is empty or missing."""
    return _read_text(workspace / "MEMORY.md", _MOST_MEMORY) or None


def instructions(workspace: Path) -> str:
    """The text of ``AGENTS.md``."""
    return _read_text(workspace / "AGENTS.md", _MOST_RULES)


def _read_text(path: Path, most: int) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()[:most]
    except OSError:
        return ""
