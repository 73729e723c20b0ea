"""Finds and reads the recordings that a command line names by file, folder or glob; refuses other kinds of file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import glob, has_magic
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from signet_conformance.errors import TraceError, os_errors, printable
from signet_conformance.files import is_special
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.trace import Trace, read
from signet_conformance.trace.recordings import CAPTURES, SUFFIX, daemon_side, is_model_side, is_recording, other_format

STDIN = "-"
_STDIN_FILE = "/dev/fd/0"
_STDIN_NAME = "standard input"


class ForeignFile(Struct, frozen=True):
    """A file that is not a recording. `kind` is a phrase that follows `is` in a message."""

    kind: str
    remedy: str


def read_recording(path: str, *, workers: int = 1) -> Trace:
    """Read a trace that a command line names, for this number of `workers`; `-` is standard input.

    Raises TraceError if it cannot be read; the message says which other kind of file it is, if that is known.
    """
    if path == STDIN:
        return _read_stdin(workers)
    demand_plain(path)
    if is_model_side(path):
        raise TraceError(
            "is one side of a recording: what the harness and its model said to each other",
            where=path,
            remedy=f"name the daemon's side, both are read: {printable(daemon_side(path), 400)}",
        )
    try:
        return read(path, workers=workers)
    except TraceError as failure:
        other = recognise(path)
        if other is None:
            raise
        raise TraceError(f"is {other.kind}, no trace", where=path, remedy=other.remedy) from failure


def demand_plain(path: str) -> None:
    """Raise TraceError for a pipe or a device, which may never end."""
    if is_special(path):
        raise TraceError(
            "is not a plain file: the program that writes into it may never end",
            where=path,
            remedy="write it to a file first",
        )


def _read_stdin(workers: int) -> Trace:
    try:
        trace = read(_STDIN_FILE, workers=workers)
    except TraceError as failure:
        where = (failure.where or _STDIN_FILE).replace(_STDIN_FILE, _STDIN_NAME)
        raise TraceError(failure.message, where=where, remedy=failure.remedy) from failure
    warnings = tuple(warning.replace(_STDIN_FILE, _STDIN_NAME) for warning in trace.warnings)
    return replace(trace, path=STDIN, warnings=warnings)


def recognise(path: str) -> ForeignFile | None:
    """Recognise another kind of file by its beginning; None for a trace and for an unknown format."""
    form = other_format(path)
    if form is None:
        return None
    if form.startswith("signet-"):
        return ForeignFile(f"a {form} file", _remedy(form, path))
    suffix = Path(path).suffix
    trace = Path(path).with_suffix(".trace.jsonl" if suffix == ".jsonl" else ".jsonl")
    words = ["signet-conformance", "convert", path, str(trace)]
    words += [] if suffix.lower() in CAPTURES else ["--from", "har"]
    return ForeignFile(f"a {form} capture", shell_command(words))


def _remedy(form: str, path: str) -> str:
    commands = {
        "signet-report": ["signet-conformance", "matrix", path],
        "signet-scenario": ["pytest", "--signet-conformance", "--signet-scenario", path],
    }
    options = {"signet-baseline": "--baseline", "signet-flaky": "--flaky"}
    if form in options:
        return f"give it to {options[form]}, beside the recordings that it speaks of"
    return shell_command(commands[form]) if form in commands else "leave it out, and name the recordings alone"


_REMEDY = "record one with: signet-conformance record --upstream URL --out FILE"


class TraceFiles(Struct):
    """The files that a command line names.

    `complaints` are about arguments that name no file, `notes` about files in folders that are of another kind.
    """

    files: dict[str, None] = field(default_factory=dict)
    complaints: list[TraceError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def trace_files(arguments: Iterable[str]) -> TraceFiles:
    """The files in order, each once, by whichever names. A file that an argument names may have any suffix."""
    result = TraceFiles()
    for argument in arguments:
        where, remedy = printable(argument, 400), "check the path and its permissions"
        try:
            # Even `is_dir` fails if the folder above is not readable, or if the name is too long.
            with os_errors("cannot be read", where=where, remedy=remedy, error=TraceError):
                result.files.update(dict.fromkeys(map(_as_argument, _expand(argument, result.notes))))
        except TraceError as complaint:
            result.complaints.append(complaint)
    # If the shell expands a glob, it names both sides of a recording.
    for file in [file for file in result.files if is_model_side(file) and daemon_side(file) in result.files]:
        del result.files[file]
    _drop_other_names(result)
    return result


def _drop_other_names(result: TraceFiles) -> None:
    """Keep one name of each file; of a link and its file that of the file, beside which the model's side may be."""
    kept: dict[str, str] = {}
    for file in sorted((file for file in result.files if file != STDIN), key=os.path.islink):
        if (first := kept.setdefault(os.path.realpath(file), file)) is not file:
            del result.files[file]
            result.notes.append(f"{printable(file, 400)} is the same file as {printable(first, 400)}: passed over")


def _as_argument(file: str) -> str:
    """The path in a form that no command takes for an option, since reports print commands with it."""
    return f"./{file}" if file.startswith("-") and file != STDIN else file


def _expand(argument: str, notes: list[str]) -> list[str]:
    if not argument:
        raise TraceError("an empty argument names no trace", remedy="name a file, a folder or a glob")
    if Path(argument).is_dir():
        files = _traces(_recordings_below(argument), notes)
        if not files:
            raise TraceError(f"the folder holds no *{SUFFIX} file", where=argument, remedy=_REMEDY)
        return files
    if has_magic(argument) and not os.path.lexists(argument):
        matches = sorted(glob(argument, recursive=True))  # noqa: PTH207  Path.glob takes no absolute pattern
        files = [file for match in matches for file in _matches_of(match, notes)]
        if not files:
            raise TraceError("no file matches", where=argument, remedy="check the pattern; ** means any folders")
        return files
    return [argument]


def _matches_of(match: str, notes: list[str]) -> list[str]:
    return _traces(_recordings_below(match) if Path(match).is_dir() else iter([match]), notes)


def _traces(files: Iterator[str], notes: list[str]) -> list[str]:
    """The files that may be traces, sorted, without those whose first line shows another format."""
    traces = []
    for file in sorted(files):
        if is_model_side(file):
            continue  # it is read together with the daemon's side
        other = recognise(file)
        if is_special(file):
            notes.append(f"{printable(file, 400)} is not a plain file: passed over")
        elif other is not None:
            notes.append(f"{printable(file, 400)} is {other.kind}: passed over")
        else:
            traces.append(file)
    return traces


def _recordings_below(folder: str) -> Iterator[str]:
    def unreadable(failure: OSError) -> None:
        raise TraceError(
            f"cannot be read: {failure.strerror or failure}",
            where=str(failure.filename or folder),
            remedy="check the permissions of the folder",
        )

    for parent, _, names in os.walk(folder, onerror=unreadable):
        yield from (str(Path(parent, name)) for name in names if is_recording(name))
