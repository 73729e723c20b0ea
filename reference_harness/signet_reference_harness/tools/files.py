"""Tools on the files of the project, which cannot leave its folder."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.errors import ConfinementError, ToolInputError
from signet_reference_harness.tools import DEFINITIONS, ToolContext

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Non-blocking, since opening a pipe without a writer would otherwise wait for one."""
CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A name in a folder: `kind` is file, folder, link or other, `size` in bytes."""

    name: str
    kind: str
    size: int


class ConfinedFolder:
    """The files beneath `root`. Each method raises ConfinementError for a path that leaves it or is not usable."""

    def __init__(self, root: str | Path) -> None:
        self.root = str(root)

    def read_bytes(self, path: str, *, offset: int = 0, most: int | None = None) -> tuple[bytes, int]:
        """Return at most `most` bytes of a file from `offset` on, and the size of the whole file."""
        with self._file(path) as descriptor:
            size = os.fstat(descriptor).st_size
            os.lseek(descriptor, offset, os.SEEK_SET)
            left, pieces = size if most is None else most, []
            while left > 0 and (piece := os.read(descriptor, min(left, CHUNK))):
                pieces.append(piece)
                left -= len(piece)
            return b"".join(pieces), size

    def write(self, path: str, content: bytes) -> bool:
        """Write a file atomically, and create its folders. Return True if the file is new."""
        *folders, name = self._parts(path) or [""]
        if not name:
            raise ConfinementError(f"{path!r} names no file", remedy="give the path of a file in the folder")
        with self._open_folder(folders, path, make=True) as folder:
            new = _kind(folder, name) is None
            if not new and _kind(folder, name) != "file":
                raise ConfinementError(f"{path!r} is not a regular file", remedy="write to another path")
            temporary = f".{name[:100]}.{secrets.token_hex(6)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with _name_path(path):
                mode = 0o644 if new else stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
                descriptor = os.open(temporary, flags, mode, dir_fd=folder)
                try:
                    with os.fdopen(descriptor, "wb") as file:
                        file.write(content)
                    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                except BaseException:
                    with contextlib.suppress(OSError):
                        os.unlink(temporary, dir_fd=folder)
                    raise
            return new

    def entries(self, path: str = ".") -> list[FolderEntry]:
        """List the entries of a folder by name. Links are listed and never followed."""
        with self._open_folder(self._parts(path), path) as folder, _name_path(path):
            return sorted(_entries(folder), key=lambda entry: entry.name)

    def walk(self, path: str = ".", skipped: frozenset[str] = frozenset()) -> Iterator[tuple[str, FolderEntry]]:
        """Yield each file beneath a folder with its path from the root, in the order of names.

        Links, and folders whose name is in `skipped`, are left out.
        """
        above = self._parts(path)
        prefix = "/".join(above)
        for entry in self.entries(path):
            below = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.kind == "file":
                yield below, entry
            elif entry.kind == "folder" and entry.name not in skipped:
                # A folder that was removed meanwhile, or cannot be read, does not end the walk.
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
    with _name_path(name), contextlib.suppress(FileNotFoundError):
        return _kind_of(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return None


def _kind_of(mode: int) -> str:
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))
    return next((kind for fits, kind in kinds if fits(mode)), "other")


def _entries(folder: int) -> Iterator[FolderEntry]:
    with os.scandir(folder) as scan:
        for entry in scan:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                yield FolderEntry(entry.name, _kind_of(status.st_mode), status.st_size)


MOST_READ: Final = 48 * 1024
"""Bytes of a file in one answer; the next answer begins at its `next_offset`."""
MOST_SEARCHED: Final = 4 * 1024 * 1024
"""Bytes of one file that are searched."""
MOST_FILES: Final = 20_000
MOST_HITS: Final = 200
LONGEST_LINE: Final = 300
MOST_ENTRIES: Final = 1_000
SKIPPED: Final = frozenset({".git", "node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class FileTool:
    """A tool on the files of the project."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    execute: Callable[[Mapping[str, Any], ToolContext], dict[str, Any]]
    run_before_generation: bool = False


def file_read(arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """Read a text file from `offset` on; `next_offset` is where the next piece begins."""
    path, offset = arguments["path"], arguments.get("offset", 0)
    most = min(arguments.get("limit", MOST_READ), MOST_READ)
    content, size = _folder_of(path, context).read_bytes(path, offset=offset, most=most)
    if b"\0" in content:
        raise ToolInputError(f"{path!r} is not a text file")
    text, taken = _whole_characters(content, last=offset + len(content) >= size)
    rest = {"next_offset": offset + taken} if offset + taken < size else {}
    return {"path": path, "bytes": size, "content": text, **rest}


def file_write(arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """Write a text to a file, which is replaced or created."""
    try:
        content = arguments["content"].encode()
    except UnicodeEncodeError as error:
        raise ToolInputError("'content' holds a lone surrogate") from error
    new = ConfinedFolder(context.project).write(arguments["path"], content)
    return {"path": arguments["path"], "bytes": len(content), "created": new}


def file_list(arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """List a folder."""
    path = arguments.get("path", ".")
    entries = ConfinedFolder(context.project).entries(path)
    rows = [{"name": entry.name, "kind": entry.kind, "bytes": entry.size} for entry in entries[:MOST_ENTRIES]]
    rest = {"left_out": len(entries) - len(rows)} if len(rows) < len(entries) else {}
    return {"path": path, "entries": rows, **rest}


def file_search(arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """Find the lines of the project's text files that contain a text. The text is taken literally."""
    ignore_case = arguments.get("ignore_case", False)
    wanted = arguments["text"].casefold() if ignore_case else arguments["text"]
    folder, glob = ConfinedFolder(context.project), arguments.get("glob", "*")
    hits: list[dict[str, Any]] = []
    files = 0
    for path, _ in folder.walk(arguments.get("path", "."), SKIPPED):
        if not (fnmatch.fnmatch(path, glob) or fnmatch.fnmatch(path.rpartition("/")[2], glob)):
            continue
        files += 1
        try:
            content, _ = folder.read_bytes(path, most=MOST_SEARCHED)
        except (ConfinementError, OSError):
            # A file that was removed meanwhile, or cannot be read, is skipped.
            continue
        if b"\0" in content[:1024]:
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
            if wanted in (line.casefold() if ignore_case else line):
                hits.append({"path": path, "line": number, "text": line.strip()[:LONGEST_LINE]})
        if len(hits) >= MOST_HITS or files == MOST_FILES:
            return {"hits": hits[:MOST_HITS], "more": True}
    return {"hits": hits}


def _folder_of(path: str, context: ToolContext) -> ConfinedFolder:
    """The folder that a path is in: that of the session's results, or else the project."""
    results = context.results
    inside = results is not None and path.startswith(f"{results}/")
    return ConfinedFolder(results if results is not None and inside else context.project)


def _whole_characters(content: bytes, *, last: bool) -> tuple[str, int]:
    """Decode the bytes, without a character that is cut at their end. Return the text, and how many bytes it took."""
    if not last:
        for missing in range(1, 4):
            if len(content) >= missing and content[-missing] & 0xC0 == 0xC0:
                content = content[:-missing]
                break
    return content.decode("utf-8", "replace"), len(content)


def _tool(execute: Callable[[Mapping[str, Any], ToolContext], dict[str, Any]]) -> FileTool:
    definition = DEFINITIONS[execute.__name__]
    return FileTool(definition.name, definition.description, definition.input_schema, execute)


FILE_TOOLS: Final = tuple(map(_tool, (file_read, file_write, file_list, file_search)))
