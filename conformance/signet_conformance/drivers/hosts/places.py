"""Folders and programs of a host: the project folders, and a PATH with the connector's own programs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

PROJECTS_VARIABLE = "SIGNET_CONFORMANCE_PROJECTS"


class Projects:
    """Real folders for the projects of scenarios, below the folder that the driver made and will remove."""

    def __init__(self) -> None:
        self._root = Path(os.environ.get(PROJECTS_VARIABLE) or Path.home())

    def folder(self, project: object) -> Path:
        """The folder that stands for a project, made when it is not there."""
        folder = self._root / Path(str(project or "project")).name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def with_programs(programs: Mapping[str, Sequence[str]], folder: Path) -> str:
    """A PATH on which the named programs are those of the connector, as its package would install them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in programs.items():
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])
