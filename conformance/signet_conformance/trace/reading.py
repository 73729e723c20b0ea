"""Reading a trace file: bounded lines, every complaint with file, line and remedy."""

from __future__ import annotations

import codecs
import gc
import json
import os
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

from signet_conformance.errors import TraceError, printable
from signet_conformance.trace.lines import BrokenLineError, Lines, parsed
from signet_conformance.trace.model import FORMAT, RELEASES, Declared, Exchange, Header, Mark, Trace, is_seconds
from signet_conformance.trace.opening import opened
from signet_conformance.trace.parsing import JSONValue
from signet_conformance.trace.shelf import MOST_NUMBER, Shelf, number_of
from signet_conformance.trace.sides import MODEL, model_side

MAX_LINE_BYTES = 64 * 1024 * 1024
HELD_BYTES = 80 * 1024 * 1024
"""The exchanges of a larger recording are not held: its trace reads them from the file when they are asked for."""
_REMEDY_RECORD = "record it again with: signet-conformance record --upstream URL --out FILE"


def _header(data: JSONValue, where: str) -> Header:
    if not isinstance(data, dict) or data.get("kind") != "header":
        raise TraceError(
            "the first line is not a signet-trace/1 header",
            where=where,
            remedy=_REMEDY_RECORD,
        )
    if data.get("format") != FORMAT:
        raise TraceError(
            f"the format is {printable(json.dumps(data.get('format')), 60)}, this kit reads {FORMAT}",
            where=where,
            remedy="upgrade the kit (pip install -U signet-conformance), or " + _REMEDY_RECORD,
        )
    declared = data.get("declared") or {}
    if not isinstance(declared, dict):
        raise TraceError("declared is not an object", where=where, remedy="mend the header line")

    def text(member: str) -> str | None:
        value = data.get(member)
        return value if isinstance(value, str) else None

    clock_s = data.get("clock_s")
    return Header(
        text("created"), text("target"), text("upstream"), text("daemon_version"), Declared.from_json(declared, where),
        text("side"), clock_s if is_seconds(clock_s) else None,
        **{name: text(name) for name in ("recorder", "kit", *RELEASES)},
    )  # fmt: skip


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Millions of small objects without a cycle among them: collecting meanwhile doubles the reading time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read(path: str | os.PathLike[str]) -> Trace:
    """Read a trace file, and the model's side where NAME.model.jsonl stands beside NAME.jsonl.

    Raises TraceError when a file cannot be opened, is not signet-trace/1, or is damaged before its
    last line, and when the two sides have no clock in common. A torn last line (a recorder that was killed) is
    named in `Trace.warnings` instead.
    """
    name = os.fspath(path)
    whole = _read_file(name)
    beside = model_side(name)
    if beside is None or not Path(beside).is_file():
        return whole
    model = _read_file(beside)
    if model.header.side != MODEL or model.header.clock_s is None or whole.header.clock_s is None:
        raise TraceError(
            f"cannot be laid beside {printable(name, 400)}: both headers need clock_s, and this one's side is {MODEL}",
            where=_place(beside, 1),
            remedy="record both again in one run, or move this file away",
        )
    return replace(whole, model=model, warnings=whole.warnings + model.warnings)


def _read_file(name: str) -> Trace:
    try:
        with opened(name, beyond=HELD_BYTES) as recording, _collector_paused():
            if recording.cut_short is not None and not recording.size:
                raise TraceError(
                    f"the {recording.cut_short} data ends before anything of it could be unpacked",
                    where=printable(name, 400),
                    remedy="copy the file again from where it was made",
                )
            shelf = Shelf(recording.stream, name) if recording.size > HELD_BYTES else None
            whole = _read(recording.stream, name, shelf)
    except IsADirectoryError:
        raise TraceError(
            "is a folder, not a trace file", where=printable(name, 400), remedy="name the files in it"
        ) from None
    except (OSError, ValueError) as failure:
        # ValueError: a name with a null byte, which no file has.
        raise TraceError(
            f"cannot be read: {getattr(failure, 'strerror', None) or failure}",
            where=printable(name, 400),
            remedy="check the path and its permissions",
        ) from None
    if recording.cut_short is None or whole.warnings:
        return whole
    cut = f"{printable(name, 400)}: the {recording.cut_short} data ends early; what came before counts"
    return replace(whole, warnings=(cut,))


def _read(stream: IO[bytes], name: str, shelf: Shelf | None) -> Trace:
    """Read a stream to its end; with a shelf, of the exchanges only where they are."""
    exchanges: list[Exchange] = []
    marks: list[Mark] = []
    header: Header | None = None
    warnings: list[str] = []
    seen: set[int] = set()
    lines = Lines()
    number = offset = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        begins, offset = offset, offset + len(raw)
        if number == 1:
            # Some editors put one in front of what they save; no line of a trace begins with it.
            raw = raw.removeprefix(codecs.BOM_UTF8)
        if len(raw) > MAX_LINE_BYTES:
            raise TraceError(
                f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB, no trace line is",
                where=_place(name, number),
                remedy="record with --body-limit so that large bodies are cut",
            )
        if raw.isspace():
            continue
        try:
            if header is None:
                header = _header(parsed(raw), _place(name, number))
                continue
            entry: Exchange | Mark | None = None
            seq = None if shelf is None else number_of(raw)
            if seq is None:
                entry = (lines if shelf is None else Lines()).entry(raw, number)
                seq = entry.seq
            _demand_good(seq, seen, shelf)
        except BrokenLineError as broken:
            where = _place(name, number)
            if header is not None and not raw.endswith(b"\n"):
                warnings.append(f"{where}: the last line is torn and was left out ({broken}); the rest counts")
                break
            if header is None:
                raise TraceError(f"not a {FORMAT} file: {broken}", where=where, remedy=_REMEDY_RECORD) from None
            remedy = "take the line out, or record the session again"
            raise TraceError(str(broken), where=where, remedy=remedy) from None
        seen.add(seq)
        if isinstance(entry, Mark):
            marks.append(entry)
        elif shelf is not None:
            shelf.put(seq, begins, len(raw), number)
        elif entry is not None:
            exchanges.append(entry)
    if header is None:
        raise TraceError(
            "the file is empty, a trace begins with a header line", where=_place(name, 1), remedy=_REMEDY_RECORD
        )
    marks.sort(key=lambda m: m.seq)
    if shelf is not None:
        shelf.sort()
        return Trace(header, shelf, tuple(marks), name, tuple(warnings))
    exchanges.sort(key=lambda e: e.seq)
    return Trace(header, tuple(exchanges), tuple(marks), name, tuple(warnings))


def _demand_good(seq: int, seen: Container[int], shelf: Shelf | None) -> None:
    if shelf is not None and abs(seq) > MOST_NUMBER:
        raise BrokenLineError(f"number {seq} is larger than any recorder counts")
    if seq in seen:
        raise BrokenLineError(f"number {seq} occurs twice")


def _place(name: str, line: int) -> str:
    return f"{printable(name, 400)}:{line}"
