"""The skills of an agent: folders with a SKILL.md, in the project and in the agent's own workspace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from signet_reference_harness.documents import DocumentError, parse_yaml
from signet_reference_harness.errors import ConfinementError
from signet_reference_harness.messages import Reminder, ReminderOrigin
from signet_reference_harness.tools.files import ConfinedFolder

FILE: Final = "SKILL.md"
PROJECT_FOLDERS: Final = (".agents/skills", ".claude/skills")
WORKSPACE_FOLDER: Final = "skills"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LONGEST: Final = 64 * 1024
"""Bytes of one skill; a longer one is left out."""
MOST: Final = 500
"""Skills of one folder."""
_HEAD: Final = re.compile(r"---\r?\n(.*?\n|)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Instructions for a kind of work. `name` is that of its folder, `path` leads into the project or the workspace."""

    name: str
    description: str
    text: str
    origin: ReminderOrigin
    path: str

    @property
    def reminder(self) -> Reminder:
        """The skill as it is given to the model, beside the person's own words."""
        text = f"Follow the skill {self.name}. Its files are in {Path(self.path).parent}.\n\n{self.text}"
        return Reminder(kind="notice", origin=self.origin, text=text, data={"source": self.path})


def skills(workspace: Path | None, project: Path) -> Sequence[Skill]:
    """The skills, sorted by name. A skill of the project hides one of the workspace with the same name.

    A file that is a link, too long or not UTF-8 is left out.
    """
    places: list[tuple[ReminderOrigin, Path, str]] = [("project", project, folder) for folder in PROJECT_FOLDERS]
    if workspace is not None:
        places.append(("workspace", workspace, WORKSPACE_FOLDER))
    by_name: dict[str, Skill] = {}
    for origin, root, folder in places:
        for skill in _of_folder(origin, root, folder):
            by_name.setdefault(skill.name, skill)
    return [by_name[name] for name in sorted(by_name)]


def _of_folder(origin: ReminderOrigin, root: Path, folder: str) -> Sequence[Skill]:
    confined = ConfinedFolder(root)
    try:
        names = [each.name for each in confined.entries(folder) if each.kind == "folder" and NAME.fullmatch(each.name)]
    except ConfinementError:
        return ()
    read = (_read_skill(confined, origin, name, f"{folder}/{name}/{FILE}") for name in names[:MOST])
    return [skill for skill in read if skill is not None]


def _read_skill(confined: ConfinedFolder, origin: ReminderOrigin, name: str, path: str) -> Skill | None:
    try:
        content, size = confined.read_bytes(path, most=LONGEST)
        text = content.decode("utf-8-sig")
    except (ConfinementError, UnicodeDecodeError):
        return None
    head = _HEAD.match(text)
    body = text[head.end() :] if head else text
    if size > LONGEST or not body.strip():
        return None
    description = _description(head[1]) if head else ""
    first_line = next((line.strip("# \t") for line in body.splitlines() if line.strip("# \t")), "")
    full_path = str(Path(confined.root, path))
    return Skill(name=name, description=description or first_line, text=body.strip(), origin=origin, path=full_path)


def _description(head: str) -> str:
    try:
        members = parse_yaml(head.encode(), FILE)
    except DocumentError:
        return ""
    description = members.get("description") if isinstance(members, dict) else None
    return " ".join(description.split()) if isinstance(description, str) else ""
