"""Files beneath one folder, and no others: no symbolic link is followed, no `..` taken, and no race can lead out.

Each part of a path is opened by its name in the folder opened before it, never by the path as a whole, so that what
was checked is what is used, whatever happens to the tree meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from signet_reference_harness.errors import ConfinementError

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Not blocking: opening a pipe without a writer would otherwise wait before the pipe can be refused."""
CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A name in a folder: `kind` is file, folder, link or other, `size` in bytes."""

    name: str
    kind: str
    size: int


class ConfinedFolder:
    """The files beneath `root`. Every method raises ConfinementError for a path that leaves it, or cannot be used."""

    def __init__(self, root: str | Path) -> None:
        self.root = str(root)

    def read_bytes(self, path: str, *, offset: int = 0, most: int | None = None) -> tuple[bytes, int]:
        """At most `most` bytes of a file from `offset` on, and the size of the whole file."""
        with self._file(path) as descriptor:
            size = os.fstat(descriptor).st_size
            os.lseek(descriptor, offset, os.SEEK_SET)
            left, pieces = size if most is None else most, []
            while left > 0 and (piece := os.read(descriptor, min(left, CHUNK))):
                pieces.append(piece)
                left -= len(piece)
            return b"".join(pieces), size

    def write(self, path: str, content: bytes) -> bool:
        """Put `content` in the place of a file, whole or not at all; folders are made. True for a new file."""
        *folders, name = self._parts(path) or [""]
        if not name:
            raise ConfinementError(f"{path!r} names no file", remedy="give the path of a file in the folder")
        with self._open_folder(folders, path, make=True) as folder:
            new = _kind(folder, name) is None
            if not new and _kind(folder, name) != "file":
                raise ConfinementError(f"{path!r} is not a regular file", remedy="write to another path")
            draft = f".{name[:100]}.{secrets.token_hex(6)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with _name_path(path):
                mode = 0o644 if new else stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
                descriptor = os.open(draft, flags, mode, dir_fd=folder)
                try:
                    with os.fdopen(descriptor, "wb") as file:
                        file.write(content)
                    os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
                except BaseException:
                    with contextlib.suppress(OSError):
                        os.unlink(draft, dir_fd=folder)
                    raise
            return new

    def entries(self, path: str = ".") -> list[FolderEntry]:
        """List the entries of a folder by name. Links are listed and never followed."""
        with self._open_folder(self._parts(path), path) as folder, _name_path(path):
            return sorted(_entries(folder), key=lambda entry: entry.name)

    def walk(self, path: str = ".", skipped: frozenset[str] = frozenset()) -> Iterator[tuple[str, FolderEntry]]:
        """Every file beneath a folder with its path from the root, in the order of names.

        Links are left out, and so are folders whose name is among the `skipped`.
        """
        above = self._parts(path)
        prefix = "/".join(above)
        for entry in self.entries(path):
            below = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.kind == "file":
                yield below, entry
            elif entry.kind == "folder" and entry.name not in skipped:
                # A folder that goes away, or may not be read, does not end the walk.
                with contextlib.suppress(ConfinementError):
                    yield from self.walk(below, skipped)

    def _parts(self, path: str) -> list[str]:
        if not isinstance(path, str) or "\0" in path:
            raise ConfinementError("the path is not a string without NUL", remedy="give a path in the folder")
        given = path
        if path == self.root or path.startswith(f"{self.root.rstrip('/')}/"):
            path = path[len(self.root) :].lstrip("/")
        elif path.startswith("/"):
            raise ConfinementError(f"{given!r} is outside of {self.root}", remedy="give a path in the folder")
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise ConfinementError(f"{given!r} holds '..'", remedy="give a path in the folder, without '..'")
        return parts

    @contextlib.contextmanager
    def _open_folder(self, parts: list[str], path: str, *, make: bool = False) -> Iterator[int]:
        """A descriptor of the folder of these parts."""
        try:
            # The root is the user's own choice, and may be a link.
            folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            raise ConfinementError(f"{self.root} cannot be opened: {_reason(error)}") from error
        try:
            for part in parts:
                with _name_path(path):
                    if make and _kind(folder, part) is None:
                        with contextlib.suppress(FileExistsError):
                            os.mkdir(part, 0o755, dir_fd=folder)
                    if _kind(folder, part) == "link":
                        raise ConfinementError(f"{path!r} leads through a symbolic link, {part!r}")
                    below = os.open(part, FOLDER, dir_fd=folder)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _file(self, path: str) -> Iterator[int]:
        *folders, name = self._parts(path) or [""]
        if not name:
            raise ConfinementError(f"{path!r} is a folder, not a file", remedy="list it instead")
        with self._open_folder(folders, path) as folder:
            if _kind(folder, name) == "link":
                raise ConfinementError(f"{path!r} is a symbolic link", remedy="name the file itself")
            with _name_path(path):
                descriptor = os.open(name, FILE, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfinementError(f"{path!r} is not a regular file")
            yield descriptor
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _name_path(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfinementError(f"{path!r}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)


def _kind(folder: int, name: str) -> str | None:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfinementError(f"{name!r}: {_reason(error)}") from error
    return _kind_of(mode)


def _kind_of(mode: int) -> str:
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))
    return next((kind for fits, kind in kinds if fits(mode)), "other")


def _entries(folder: int) -> Iterator[FolderEntry]:
    with os.scandir(folder) as listed:
        for entry in listed:
            with contextlib.suppress(OSError):
                told = entry.stat(follow_symlinks=False)
                yield FolderEntry(entry.name, _kind_of(told.st_mode), told.st_size)
