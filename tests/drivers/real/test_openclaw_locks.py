"""The lock files of OpenClaw: what of them is removed with a home."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from signet_conformance.drivers.hosts.real.openclaw import LockFiles


def _lock(folder: Path, database: Path) -> Path:
    """A lock file as the program leaves one for a database."""
    place = folder / f"openclaw-state-locks-{os.getuid()}"
    place.mkdir(exist_ok=True)
    name = hashlib.sha256(str(database.resolve()).encode()).hexdigest()[:8]
    file = place / f"state-lifecycle.{name}.lock.sqlite"
    file.touch()
    return file


def _database(home: Path) -> Path:
    file = home / ".openclaw" / "state" / "openclaw.sqlite"
    file.parent.mkdir(parents=True)
    file.touch()
    return file


def test_the_locks_of_a_home_go_with_their_folder(tmp_path: Path) -> None:
    """Where nothing was before, nothing is left."""
    database = _database(tmp_path / "home")
    locks = LockFiles(tmp_path / "home" / ".openclaw", tmp_path)
    _lock(tmp_path, database)
    locks.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_those_of_another_home_stay(tmp_path: Path) -> None:
    """A user's own OpenClaw may hold them; its folder stays too, empty or not."""
    others = _lock(tmp_path, _database(tmp_path / "user"))
    locks = LockFiles(tmp_path / "home" / ".openclaw", tmp_path)
    ours = _lock(tmp_path, _database(tmp_path / "home"))
    locks.remove()
    assert others.exists()
    assert not ours.exists()
    others.unlink()
    locks.remove()
    assert others.parent.is_dir()
