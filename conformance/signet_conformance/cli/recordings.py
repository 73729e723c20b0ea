"""Reads the recordings that a command line names; a file of another kind is refused with the command that takes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.errors import TraceError, printable
from signet_conformance.files.reading import is_special
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.trace import FORMAT, Trace, read
from signet_conformance.trace.opening import first_bytes
from signet_conformance.trace.sides import daemon_side, is_model_side

_FAMILY = FORMAT.partition("/")[0]
_BEGINNING_BYTES = 4096
_NAMED = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{(?:\s*"kind"\s*:\s*"header"\s*,)?\s*"format"\s*:\s*"(signet-[a-z]+)/\d+"')
STDIN = "-"
_STDIN_FILE = "/dev/fd/0"
_STDIN_NAME = "standard input"
_HAR = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"log"\s*:\s*\{')
_FLOW = re.compile(rb"\d{1,12}:")
_CAPTURES: Mapping[str, str] = {".har": "HAR", ".flow": "flow", ".flows": "flow", ".mitm": "flow", ".dump": "flow"}


class Other(Struct, frozen=True):
    """What a file holds instead of a recording, in words that follow `is`, and what to do with it."""

    what: str
    remedy: str


def read_recording(path: str, *, workers: int = 1) -> Trace:
    """Read a trace that a command line names, which so many `workers` are to judge; `-` is standard input.

    Raises TraceError when it cannot be read; the message says what the file is instead, if that is known.
    """
    if path == STDIN:
        return _read_stdin(workers)
    if is_special(path):
        raise TraceError(
            "is not a plain file: the program that writes into it may never end",
            where=printable(path, 400),
            remedy="write it to a file first",
        )
    if is_model_side(path):
        raise TraceError(
            "is one side of a recording: what the harness and its model said to each other",
            where=printable(path, 400),
            remedy=f"name the daemon's side, both are read: {printable(daemon_side(path), 400)}",
        )
    try:
        return read(path, workers=workers)
    except TraceError as failure:
        other = recognised(path)
        if other is None:
            raise
        raise TraceError(f"is {other.what}, no trace", where=printable(path, 400), remedy=other.remedy) from failure


def _read_stdin(workers: int) -> Trace:
    try:
        read_in = read(_STDIN_FILE, workers=workers)
    except TraceError as failure:
        where = (failure.where or _STDIN_FILE).replace(_STDIN_FILE, _STDIN_NAME)
        raise TraceError(failure.message, where=where, remedy=failure.remedy) from failure
    warnings = tuple(warning.replace(_STDIN_FILE, _STDIN_NAME) for warning in read_in.warnings)
    return replace(read_in, path=STDIN, warnings=warnings)


def recognised(path: str) -> Other | None:
    """What a file is by its beginning; None for a trace and for an unknown format."""
    if is_special(path):
        return None
    try:
        beginning = first_bytes(path, _BEGINNING_BYTES)
    except (OSError, ValueError):
        return None
    capture = _HAR.match(beginning) or (_FLOW.match(beginning) and _CAPTURES.get(Path(path).suffix.lower()) == "flow")
    if capture:
        kind = _CAPTURES.get(Path(path).suffix.lower(), "HAR")
        trace = Path(path).with_suffix(".trace.jsonl" if Path(path).suffix == ".jsonl" else ".jsonl")
        words = ["signet-conformance", "convert", path, str(trace)]
        words += [] if Path(path).suffix.lower() in _CAPTURES else ["--from", "har"]
        return Other(f"a {kind} capture", shell_command(words))
    named = _NAMED.match(beginning)
    form = "" if named is None else named[1].decode()
    if not form or form == _FAMILY:
        return None
    return Other(f"a {form} file", _remedy(form, path))


def _remedy(form: str, path: str) -> str:
    commands = {
        "signet-report": ["signet-conformance", "matrix", path],
        "signet-scenario": ["pytest", "--signet-conformance", "--signet-scenario", path],
    }
    options = {"signet-baseline": "--baseline", "signet-flaky": "--flaky"}
    if form in options:
        return f"give it to {options[form]}, beside the recordings that it speaks of"
    return shell_command(commands[form]) if form in commands else "leave it out, and name the recordings alone"
