"""The files that say who an agent is and whom it works for, from its workspace or else from the project."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from signet_reference_harness.errors import ConfinementError
from signet_reference_harness.messages import Reminder, ReminderKind, ReminderOrigin, ReminderScope
from signet_reference_harness.tools.confined import ConfinedFolder

NAMES: Final = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "MEMORY.md")
"""In the order in which they begin the model's context."""
LONGEST: Final = 24 * 1024
"""Bytes of one file."""


def identity_files(workspace: Path | None, project: str) -> tuple[Reminder, ...]:
    """Those of the files that exist, the workspace's before the project's, each at most 24 kB of it.

    A link, or a file that is not text in UTF-8, counts as absent.
    """
    places = ((ReminderOrigin.WORKSPACE, workspace), (ReminderOrigin.PROJECT, project))
    roots = [(origin, ConfinedFolder(root)) for origin, root in places if root is not None]
    made = (next(filter(None, (_read(name, origin, root) for origin, root in roots)), None) for name in NAMES)
    return tuple(reminder for reminder in made if reminder is not None)


def _read(name: str, origin: ReminderOrigin, root: ConfinedFolder) -> Reminder | None:
    try:
        content, size = root.read(name, most=LONGEST)
        # A character that the bound cuts is left out.
        text = content.decode(errors="strict" if size <= LONGEST else "ignore")
    except (ConfinementError, UnicodeDecodeError):
        return None
    if not text.strip():
        return None
    if size > LONGEST:
        text += f"\n[the first {LONGEST} of {size} bytes]"
    return Reminder(
        kind=ReminderKind.IDENTITY, origin=origin, scope=ReminderScope.SESSION, text=text, data={"source": name}
    )
