"""Temporary folders: removed at the end, by the watchdog if we are killed, or by the next run if both are.

A folder holds a file that its owner locks for as long as it lives. A folder of ours whose file is not locked was left
behind. On a file system without locks the next run removes nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from signet_conformance.children import watchdog
from signet_conformance.errors import os_errors

OWNER = ".signet-conformance-owner"
_searched: set[tuple[str, str]] = set()
_locked: dict[Path, int] = {}
"""The folders of `kept_folder`, each with the descriptor of its locked file."""


def system_folder() -> Path:
    """The system's folder for temporary files. Raises UsageError if none is writable, as on a full disk."""
    with os_errors("no temporary folder can be written", remedy="free some space, or set TMPDIR to another folder"):
        return Path(tempfile.gettempdir())


@contextlib.contextmanager
def temporary_folder(prefix: str, base: Path | None = None) -> Iterator[Path]:
    """A new private folder below `base` (default: the system's temporary folder), removed with all in it at the end.

    Folders of killed runs with the same prefix are removed first. Raises OSError or UsageError if none can be made.
    """
    place = str(system_folder() if base is None else base)
    if (place, prefix) not in _searched:
        _searched.add((place, prefix))
        remove_abandoned(prefix, Path(place))
    folder = _make_folder(prefix, Path(place))
    try:
        owner = _lock_owner_file(folder)
        try:
            yield folder
        finally:
            # Unlocked, so that another run may remove it; we remove it next.
            if owner is not None:
                os.close(owner)
    finally:
        _remove_whole(folder)


def _make_folder(prefix: str, base: Path) -> Path:
    folder = base / f"{prefix}{secrets.token_hex(8)}"
    # Watched before it is made, since we may be killed in between. The watchdog also removes it if we have: a child
    # that is ending may make it again.
    watchdog.watch_folder(folder)
    folder.mkdir(0o700)
    return folder


def _remove_whole(folder: Path) -> None:
    """Remove a folder of ours, with the folders in it that were made read-only."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.is_dir():
        for inner, names, _ in os.walk(folder):
            for path in (Path(inner, name) for name in names):
                if not path.is_symlink():
                    with contextlib.suppress(OSError):
                        path.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)


def kept_folder(prefix: str) -> Path:
    """A new private folder that stays until its owner removes it or lets it go, or is killed.

    Folders of killed owners with the same prefix are removed first. Raises OSError or UsageError if none can be made.
    """
    place = system_folder()
    remove_abandoned(prefix, place)
    folder = _make_folder(prefix, place)
    if (owner := _lock_owner_file(folder)) is not None:
        _locked[folder] = owner
    return folder


def let_go(folder: Path) -> None:
    """Leave a kept folder to the user: no later run removes it."""
    watchdog.forget_folder(folder)
    owner = _locked.pop(folder, None)
    if owner is not None:
        with contextlib.suppress(OSError):
            (folder / OWNER).unlink()
        os.close(owner)


def _lock_owner_file(folder: Path) -> int | None:
    """The descriptor of the folder's locked file; None if the file system has no locks."""
    draft = folder / f"{OWNER}-new"
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        draft.unlink()
        return None
    # Locked before it gets its name, so that no run sees it unlocked.
    draft.rename(folder / OWNER)
    return descriptor


def remove_abandoned(prefix: str, base: Path) -> None:
    """Remove this user's folders below `base` that begin with `prefix` and that no live process has locked."""
    with contextlib.suppress(OSError):
        for name in os.listdir(base):  # noqa: PTH208 - names, which are opened below without following links
            if name.startswith(prefix):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(base / name)


def _remove_if_abandoned(folder: Path) -> None:
    with contextlib.ExitStack() as stack:
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        stack.callback(os.close, at)
        owner = os.open(OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
        stack.callback(os.close, owner)
        about = os.fstat(owner)
        if not stat.S_ISREG(about.st_mode) or {about.st_uid, os.fstat(at).st_uid} != {os.geteuid()}:
            return
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in os.listdir(at):  # noqa: PTH208 - of a folder that is open
            if name != OWNER:
                _remove(name, at)
        # Last: if something could not be removed, the next run tries again.
        os.unlink(OWNER, dir_fd=at)
        folder.rmdir()


def _remove(name: str, at: int) -> None:
    if stat.S_ISDIR(os.lstat(name, dir_fd=at).st_mode):
        shutil.rmtree(name, dir_fd=at)
    else:
        os.unlink(name, dir_fd=at)
