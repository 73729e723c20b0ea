"""Tools on the files of the project, which they cannot leave."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from signet_reference_harness.errors import ConfinementError, ToolInputError
from signet_reference_harness.tools import ToolContext
from signet_reference_harness.tools.confined import ConfinedFolder

MOST_READ: Final = 48 * 1024
"""Bytes of a file in one answer; the rest is read on by offset."""
MOST_SEARCHED: Final = 4 * 1024 * 1024
"""Bytes of one file that are searched."""
MOST_FILES: Final = 20_000
MOST_HITS: Final = 200
LONGEST_LINE: Final = 300
MOST_ENTRIES: Final = 1_000
SKIPPED: Final = frozenset({".git", "node_modules", "__pycache__"})

PATH: Final = {"type": "string", "description": "Path in the project, such as src/main.py"}


@dataclass(frozen=True, slots=True)
class FileTool:
    """A tool on the files of the project."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    execute: Callable[[Mapping[str, Any], ToolContext], dict[str, Any]]
    run_before_generation: bool = False


def file_read(arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """A piece of a text file, from `offset` on, with the offset where it goes on."""
    path, offset = arguments["path"], arguments.get("offset", 0)
    most = min(arguments.get("limit", MOST_READ), MOST_READ)
    content, size = _folder_of(path, context).read_bytes(path, offset=offset, most=most)
    if b"\0" in content:
        raise ToolInputError(f"{path!r} is not a text file")
    text, taken = _whole_characters(content, last=offset + len(content) >= size)
    rest = {"next_offset": offset + taken} if offset + taken < size else {}
    return {"path": path, "bytes": size, "content": text, **rest}


def file_write(arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """Put a text in the place of a file, or into a new one."""
    try:
        content = arguments["content"].encode()
    except UnicodeEncodeError as error:
        raise ToolInputError("'content' holds a lone surrogate") from error
    new = ConfinedFolder(context.project).write(arguments["path"], content)
    return {"path": arguments["path"], "bytes": len(content), "created": new}


def file_list(arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """The names in a folder."""
    path = arguments.get("path", ".")
    entries = ConfinedFolder(context.project).entries(path)
    rows = [{"name": entry.name, "kind": entry.kind, "bytes": entry.size} for entry in entries[:MOST_ENTRIES]]
    return {
        "path": path,
        "entries": rows,
        **({"left_out": len(entries) - len(rows)} if len(rows) < len(entries) else {}),
    }


def file_search(arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """The lines of the project's text files that hold a text. No regular expressions: some would never end."""
    ignore_case = arguments.get("ignore_case", False)
    wanted = arguments["text"].casefold() if ignore_case else arguments["text"]
    folder, glob = ConfinedFolder(context.project), arguments.get("glob", "*")
    hits: list[dict[str, Any]] = []
    looked_at = 0
    for path, _ in folder.walk(arguments.get("path", "."), SKIPPED):
        if not (fnmatch.fnmatch(path, glob) or fnmatch.fnmatch(path.rpartition("/")[2], glob)):
            continue
        looked_at += 1
        try:
            content, _ = folder.read_bytes(path, most=MOST_SEARCHED)
        except (ConfinementError, OSError):
            # A file that is gone by now, or that may not be read, holds nothing for us.
            continue
        if b"\0" in content[:1024]:
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
            if wanted in (line.casefold() if ignore_case else line):
                hits.append({"path": path, "line": number, "text": line.strip()[:LONGEST_LINE]})
        if len(hits) >= MOST_HITS or looked_at == MOST_FILES:
            return {"hits": hits[:MOST_HITS], "more": True}
    return {"hits": hits}


def _folder_of(path: str, context: ToolContext) -> ConfinedFolder:
    """The session's results for a path in them, and else the project."""
    results = context.results
    inside = results is not None and path.startswith(f"{results}/")
    return ConfinedFolder(results if results is not None and inside else context.project)


def _whole_characters(content: bytes, *, last: bool) -> tuple[str, int]:
    """The text of these bytes, and how many of them it took: a character cut at their end is left to the next read."""
    if not last:
        for missing in range(1, 4):
            if len(content) >= missing and content[-missing] & 0xC0 == 0xC0:
                content = content[:-missing]
                break
    return content.decode("utf-8", "replace"), len(content)


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required), "additionalProperties": False}


FILE_TOOLS: Final = (
    FileTool(
        "file_read",
        "Read a text file of the project. A long file comes in pieces: read on at 'next_offset'.",
        _object(
            {
                "path": PATH,
                "offset": {"type": "integer", "minimum": 0, "description": "Bytes to leave out (default 0)"},
                "limit": {"type": "integer", "minimum": 16, "maximum": MOST_READ, "description": "Most bytes to read"},
            },
            "path",
        ),
        file_read,
    ),
    FileTool(
        "file_write",
        "Write a text file of the project: its whole content, in the place of what it held.",
        _object({"path": PATH, "content": {"type": "string"}}, "path", "content"),
        file_write,
    ),
    FileTool("file_list", "List a folder of the project.", _object({"path": PATH}), file_list),
    FileTool(
        "file_search",
        "Find lines in the project's text files.",
        _object(
            {
                "text": {"type": "string", "minLength": 1, "description": "What a line must hold"},
                "ignore_case": {"type": "boolean", "description": "Take upper and lower case for the same"},
                "path": {"type": "string", "description": "Folder to search (default: the project)"},
                "glob": {"type": "string", "description": "Only files of such names, such as *.py"},
            },
            "text",
        ),
        file_search,
    ),
)
