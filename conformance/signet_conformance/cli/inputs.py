"""Which trace files a command line means: files, folders of them, and globs that the shell did not expand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import glob, has_magic
from pathlib import Path

from msgspec import Struct, field

from signet_conformance.cli.recordings import STDIN, recognised
from signet_conformance.errors import TraceError, printable
from signet_conformance.files.reading import is_special
from signet_conformance.trace.sides import SUFFIX, is_model_side, is_recording

_REMEDY = "record one with: signet-conformance record --upstream URL --out FILE"


class TraceFiles(Struct):
    """The files that a command line means.

    `complaints` are about arguments that name no file, `notes` about files in folders that say they are something else.
    """

    files: dict[str, None] = field(default_factory=dict)
    complaints: list[TraceError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def trace_files(arguments: Iterable[str]) -> TraceFiles:
    """The files in order, each once. A file that an argument names is taken whatever its suffix."""
    given = TraceFiles()
    for argument in arguments:
        try:
            given.files.update(dict.fromkeys(map(_no_option, _expand(argument, given.notes))))
        except TraceError as complaint:
            given.complaints.append(complaint)
        except OSError as failure:
            # Asking what a path is fails where its folder is closed, or its name is longer than names may be.
            given.complaints.append(
                TraceError(
                    f"cannot be read: {failure.strerror}",
                    where=printable(argument, 400),
                    remedy="check the path and its permissions",
                )
            )
    return given


def _no_option(file: str) -> str:
    """The file, named so that no command takes it for an option: reports tell commands that name it."""
    return f"./{file}" if file.startswith("-") and file != STDIN else file


def _expand(argument: str, notes: list[str]) -> list[str]:
    if not argument:
        raise TraceError("an empty argument names no trace", remedy="name a file, a folder or a glob")
    if Path(argument).is_dir():
        files = _traces(_below(argument), notes)
        if not files:
            raise TraceError(f"the folder holds no *{SUFFIX} file", where=argument, remedy=_REMEDY)
        return files
    if has_magic(argument) and not os.path.lexists(argument):
        matches = sorted(glob(argument, recursive=True))  # noqa: PTH207  Path.glob takes no absolute pattern
        files = [file for match in matches for file in _matched(match, notes)]
        if not files:
            raise TraceError("no file matches", where=argument, remedy="check the pattern; ** stands for any folders")
        return files
    return [argument]


def _matched(match: str, notes: list[str]) -> list[str]:
    return _traces(_below(match) if Path(match).is_dir() else iter([match]), notes)


def _traces(files: Iterator[str], notes: list[str]) -> list[str]:
    """The files that may be traces, sorted: what says in its first line that it is something else is passed over."""
    kept = []
    for file in sorted(files):
        if is_model_side(file):
            continue  # read with the recording that it stands beside
        other = recognised(file)
        if is_special(file):
            notes.append(f"{printable(file, 400)} is not a plain file: passed over")
        elif other is not None:
            notes.append(f"{printable(file, 400)} is {other.what}: passed over")
        else:
            kept.append(file)
    return kept


def _below(folder: str) -> Iterator[str]:
    def unreadable(failure: OSError) -> None:
        raise TraceError(
            f"cannot be read: {failure.strerror or failure}",
            where=str(failure.filename or folder),
            remedy="check the permissions of the folder",
        )

    for parent, _, names in os.walk(folder, onerror=unreadable):
        yield from (str(Path(parent, name)) for name in names if is_recording(name))
