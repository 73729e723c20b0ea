"""The lock files that OpenClaw leaves in the system's folder for temporary files, wherever `TMPDIR` points."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

_SYSTEM_FOLDER = Path("/tmp")  # noqa: S108 - where the program itself puts them
_DIGITS = 8


class LockFiles:
    """Those of the databases below `state`: an OpenClaw of the user's own has others, in the same folder."""

    def __init__(self, state: Path, system_folder: Path | None = None) -> None:
        self._state = state
        self._folder = (system_folder or _SYSTEM_FOLDER) / f"openclaw-state-locks-{os.getuid()}"
        self._was_there = self._folder.is_dir()

    def remove(self) -> None:
        """Remove them once nobody holds them any more, and their folder where it came with them."""
        for database in self._state.rglob("*.sqlite"):
            # The program names them so: for the database that each is about, by its whole path.
            name = hashlib.sha256(os.fsencode(database.resolve())).hexdigest()[:_DIGITS]
            for file in self._folder.glob(f"*.{name}.lock.sqlite"):
                file.unlink(missing_ok=True)
        if not self._was_there:
            with contextlib.suppress(OSError):
                self._folder.rmdir()
