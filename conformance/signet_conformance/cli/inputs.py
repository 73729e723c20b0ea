"""Which trace files a command line means: files, folders of them, and globs that the shell did not expand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import glob, has_magic
from pathlib import Path

from signet_conformance.errors import TraceError

SUFFIX = ".jsonl"
_REMEDY = "record one with: signet-conformance record --upstream URL --out FILE"


def trace_files(arguments: Iterable[str]) -> tuple[list[str], list[TraceError]]:
    """The files in order, each once, and a complaint for each argument that names none."""
    files: dict[str, None] = {}
    complaints: list[TraceError] = []
    for argument in arguments:
        try:
            files.update(dict.fromkeys(_expand(argument)))
        except TraceError as complaint:
            complaints.append(complaint)
    return list(files), complaints


def _expand(argument: str) -> list[str]:
    if not argument:
        raise TraceError("an empty argument names no trace", remedy="name a file, a folder or a glob")
    if Path(argument).is_dir():
        found = sorted(_below(argument))
        if not found:
            raise TraceError(f"the folder holds no *{SUFFIX} file", where=argument, remedy=_REMEDY)
        return found
    if has_magic(argument) and not os.path.lexists(argument):
        matches = sorted(glob(argument, recursive=True))  # noqa: PTH207  Path.glob takes no absolute pattern
        found = [file for match in matches for file in _matched(match)]
        if not found:
            raise TraceError("no file matches", where=argument, remedy="check the pattern; ** stands for any folders")
        return found
    return [argument]


def _matched(match: str) -> list[str]:
    return sorted(_below(match)) if Path(match).is_dir() else [match]


def _below(folder: str) -> Iterator[str]:
    def unreadable(failure: OSError) -> None:
        raise TraceError(
            f"cannot be read: {failure.strerror or failure}",
            where=str(failure.filename or folder),
            remedy="check the permissions of the folder",
        )

    for parent, _, names in os.walk(folder, onerror=unreadable):
        yield from (str(Path(parent, name)) for name in names if name.endswith(SUFFIX))
