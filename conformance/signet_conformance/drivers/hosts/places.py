"""Folders and programs of a host: project folders that no daemon calls noise, and a PATH with the connector's own."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path


class Projects:
    """Real folders for the projects of scenarios, removed at the end.

    Below the user's cache folder, since a session whose project is below /tmp is noise to the daemon.
    """

    def __init__(self) -> None:
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
        self._root: Path | None = None
        self._bases = (home / ".cache", Path("/var/tmp"))  # noqa: S108 - mkdtemp makes the folder below it

    def folder(self, project: object) -> Path:
        """The folder that stands for a project, made when it is not there."""
        if self._root is None:
            self._root = self._made()
        name = Path(str(project or "project")).name
        folder = self._root / name
        folder.mkdir(exist_ok=True)
        return folder

    def _made(self) -> Path:
        for base in self._bases:
            try:
                base.mkdir(parents=True, exist_ok=True)
                return Path(tempfile.mkdtemp(prefix="signet-conformance-", dir=base))
            except OSError:
                continue
        return Path(tempfile.mkdtemp(prefix="signet-conformance-"))

    def remove(self) -> None:
        """Remove every folder that was made."""
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)


def with_programs(programs: Mapping[str, Sequence[str]], folder: Path) -> str:
    """A PATH on which the named programs are those of the connector, as its package would install them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in programs.items():
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])
