"""The workspace's own files: who the agent is and its working memory, as session-start hands them out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

_MOST_MEMORY: Final = 10_000
_MOST_RULES: Final = 12_000
_SEEDS: Final = {
    "agent.yaml": "version: 1\nagent:\n  name: Kit Agent\n  description: Agent of an embedded daemon for tests\n",
    "AGENTS.md": "# Agent Instructions\n\nAnswer briefly and cite the files you changed.\n",
    "MEMORY.md": "# Memory\n\nNothing of note so far.\n",
}


def seed(workspace: Path) -> None:
    """Write the files that a session-start reads, where they are missing."""
    for name, text in _SEEDS.items():
        path = workspace / name
        if not path.exists():
            path.write_text(text, "utf-8")


def identity_of(workspace: Path) -> dict[str, Any]:
    """The agent's name and description from ``agent.yaml``; the name ``Agent`` alone when it says nothing."""
    text = _read(workspace / "agent.yaml", _MOST_MEMORY)
    fields = {}
    for name in ("name", "description"):
        match = re.search(rf"^\s+{name}:\s*(.+?)\s*$", text, re.MULTILINE)
        if match:
            fields[name] = match[1].strip("'\"")
    return fields if "name" in fields else {"name": "Agent"}


def working_memory(workspace: Path) -> str | None:
    """The text of ``MEMORY.md``, None when it has none."""
    return _read(workspace / "MEMORY.md", _MOST_MEMORY) or None


def instructions(workspace: Path) -> str:
    """The text of ``AGENTS.md``."""
    return _read(workspace / "AGENTS.md", _MOST_RULES)


def _read(path: Path, most: int) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()[:most]
    except OSError:
        return ""
