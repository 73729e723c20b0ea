"""Reading a trace file: bounded lines, every complaint with file, line and remedy."""

from __future__ import annotations

import codecs
import gc
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import IO

from msgspec.structs import replace

from signet_conformance.errors import TraceError, printable
from signet_conformance.files.json_values import only_text
from signet_conformance.trace import model
from signet_conformance.trace.file_exchanges import FileExchanges
from signet_conformance.trace.glance import LEAST_BYTES, MOST_NUMBER, glance, glance_ahead, glance_at, glance_over
from signet_conformance.trace.lines import BrokenLineError, LineReader, parse_line
from signet_conformance.trace.parsing import JSONValue
from signet_conformance.trace.recordings import MODEL, OpenRecording, model_side, open_recording

MAX_LINE_BYTES = 64 * 1024 * 1024
HELD_BYTES = 64 * 1024 * 1024
"""The exchanges of a larger recording are not kept in memory, but read from the file when they are needed."""
SHARED_BYTES = 4 * 1024 * 1024
"""One process judges a smaller recording before others have started."""
_BLANK_BYTES = 4096
_TEXTS = ("created", "target", "upstream", "daemon_version", "side", "recorder", "kit", "lasts", *model.RELEASES)
"""The members of a header that are texts."""
_REMEDY_RECORD = "record it again with: signet-conformance record --upstream URL --out FILE"


def _header(data: JSONValue, where: str) -> model.Header:
    if not isinstance(data, dict) or data.get("kind") != "header":
        raise TraceError("the first line is not a signet-trace/1 header", where=where, remedy=_REMEDY_RECORD)
    if data.get("format") != model.FORMAT:
        raise TraceError(
            f"the format is {printable(json.dumps(data.get('format')), 60)}, this kit reads {model.FORMAT}",
            where=where,
            remedy="upgrade the kit (pip install -U signet-conformance), or " + _REMEDY_RECORD,
        )
    declared = data.get("declared") or {}
    if not isinstance(declared, dict):
        raise TraceError("declared is not an object", where=where, remedy="fix the header line")

    clock_s, in_prompt = data.get("clock_s"), data.get("in_prompt")
    return model.Header(
        declared=model.Declared.from_json(declared, where),
        clock_s=clock_s if model.is_seconds(clock_s) else None,
        played=data.get("played") is True or None,
        in_prompt=in_prompt if isinstance(in_prompt, bool) else None,
        **{name: only_text(data.get(name)) for name in _TEXTS},
    )


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector: traces are millions of objects without a cycle, and looking for one takes long."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read(path: str | os.PathLike[str], *, workers: int = 1) -> model.Trace:
    """Read a trace file, and the model's side where NAME.model.jsonl stands beside NAME.jsonl.

    If several `workers` judge a recording of SHARED_BYTES or more, its exchanges are not kept in memory: each process
    reads those that it judges. As many forks of this process scan the lines of a large one; then this process must have
    no other thread.

    Raises TraceError when a file cannot be opened, is not signet-trace/1, or is damaged before its
    last line, and when the two sides have no clock in common. A torn last line (a recorder that was killed) is
    named in `Trace.warnings` instead.
    """
    name = os.fspath(path)
    whole = _read_file(name, SHARED_BYTES if workers > 1 else HELD_BYTES, workers)
    beside = model_side(name)
    if beside is None or not Path(beside).is_file():
        return whole
    at_model = _read_file(beside, HELD_BYTES)
    if at_model.header.side != MODEL or at_model.header.clock_s is None or whole.header.clock_s is None:
        raise TraceError(
            f"cannot be read together with {printable(name, 400)}: both headers need clock_s, and the side of"
            f" this one must be {MODEL}",
            where=_place(beside, 1),
            remedy="record both again in one run, or move this file away",
        )
    return replace(whole, model=at_model, warnings=whole.warnings + at_model.warnings)


@contextmanager
def read_ahead(path: str | os.PathLike[str], *, workers: int) -> Iterator[None]:
    """Have other processes begin with a large file that is read with this number of workers in the block.

    Does nothing for a file that cannot be read or is too small to gain from it.
    """
    with ExitStack() as stack:
        with suppress(OSError, ValueError):
            status = Path(path).stat()
            if workers > 1 and sys.platform == "linux" and S_ISREG(status.st_mode) and status.st_size >= LEAST_BYTES:
                stream = stack.enter_context(Path(path).open("rb"))
                begins = len(stream.readline(MAX_LINE_BYTES)) if stream.peek(1)[:1] == b"{" else status.st_size
                if begins < status.st_size:
                    stack.enter_context(glance_ahead(stream, begins, status.st_size, workers, MAX_LINE_BYTES))
        yield


def _read_file(name: str, held_bytes: int, workers: int = 1) -> model.Trace:
    try:
        with open_recording(name, beyond=held_bytes) as recording, collector_paused():
            if recording.cut_short is not None and not recording.size:
                raise TraceError(
                    f"the {recording.cut_short} data ends before anything of it could be unpacked",
                    where=name,
                    remedy="copy the file again from where it was made",
                )
            file_exchanges = FileExchanges(recording, name) if recording.size > held_bytes else None
            whole = _read(recording, name, file_exchanges, workers)
            if whole.marks and recording.size <= HELD_BYTES:
                # Rules that read marks need the whole recording in each process.
                whole = replace(whole, exchanges=tuple(whole.exchanges))
    except IsADirectoryError:
        raise TraceError("is a folder, not a trace file", where=name, remedy="name the files in it") from None
    except (OSError, ValueError) as failure:
        # ValueError: a name with a null byte, which no file has.
        raise TraceError(
            f"cannot be read: {getattr(failure, 'strerror', None) or failure}",
            where=name,
            remedy="check the path and its permissions",
        ) from None
    if recording.cut_short is None or whole.warnings:
        return whole
    cut = f"{printable(name, 400)}: the {recording.cut_short} data ends early; what came before counts"
    return replace(whole, warnings=(cut,))


def _read(recording: OpenRecording, name: str, file_exchanges: FileExchanges | None, workers: int) -> model.Trace:
    """Read a file to its end. If there are `file_exchanges`, they keep only the places of exchanges."""
    marks: list[model.Mark] = []
    header: model.Header | None = None
    warnings: list[str] = []
    seen, lines, so_far = _Numbers(), LineReader(), _ExchangesSoFar(file_exchanges)
    number = offset = 0
    while raw := recording.stream.readline(MAX_LINE_BYTES + 1):
        number, begins, offset = number + 1, offset, offset + len(raw)
        if number == 1:
            # Some editors put one in front of what they save; no line of a trace begins with it.
            raw = raw.removeprefix(codecs.BOM_UTF8)
        _demand_short(raw, name, number)
        at_line = glance(raw) if file_exchanges is not None and header is not None else None
        if file_exchanges is not None and at_line is not None and at_line.seq not in seen:
            # Nearly every line of a large recording.
            seen.add(at_line.seq)
            file_exchanges.put(at_line, begins, len(raw), number)
            continue
        if raw.isspace():
            number, offset = _pass_blank_lines(recording.stream, number, offset)
            continue
        try:
            if header is None:
                header = _header(parse_line(raw), _place(name, number))
                if file_exchanges is not None and workers > 1 and recording.size >= LEAST_BYTES:
                    number, offset = _by_several(recording, file_exchanges, seen, workers, number, offset)
                continue
            entry = (lines if file_exchanges is None else LineReader()).entry(raw, number)
            _demand_good(entry.seq, seen, file_exchanges)
        except BrokenLineError as broken:
            where = _place(name, number)
            if header is not None and not raw.endswith(b"\n"):
                warnings.append(f"{where}: the last line is torn and was left out ({broken}); the rest counts")
                break
            if header is None:
                raise TraceError(f"not a {model.FORMAT} file: {broken}", where=where, remedy=_REMEDY_RECORD) from None
            raise recording.damage(broken, where) from None
        if isinstance(entry, model.Exchange) and entry.pending:
            so_far.pending[entry.seq] = entry, begins, len(raw)
            continue
        seen.add(entry.seq)
        if isinstance(entry, model.Mark):
            marks.append(entry)
        else:
            so_far.add(entry, begins, len(raw))
    so_far.add_pending(seen)
    if header is None:
        raise TraceError(
            "the file is empty, a trace begins with a header line", where=_place(name, 1), remedy=_REMEDY_RECORD
        )
    if file_exchanges is not None:
        file_exchanges.sort()
    kept = tuple(sorted(so_far.exchanges, key=lambda e: e.seq)) if file_exchanges is None else file_exchanges
    in_order = tuple(sorted(marks, key=lambda m: m.seq))
    return model.Trace(
        header, kept, in_order, name, tuple(warnings), gaps=tuple(sorted(so_far.gaps, key=lambda g: g.exchange))
    )


class _ExchangesSoFar:
    """The exchanges that were read, or where they are in the file, and their gaps."""

    def __init__(self, file_exchanges: FileExchanges | None) -> None:
        self.exchanges: list[model.Exchange] = []
        self.gaps: list[model.Gap] = []
        self.pending: dict[int, tuple[model.Exchange, int, int]] = {}
        """Exchanges as pending lines describe them, by number, with the places of the lines."""
        self._file_exchanges = file_exchanges

    def add(self, entry: model.Exchange, begins: int, length: int) -> None:
        """Add an exchange, with the place of its line in the file."""
        self.gaps += _gaps(entry)
        if self._file_exchanges is None:
            self.exchanges.append(entry)
        else:
            self._file_exchanges.put(glance_at(entry), begins, length, entry.line)

    def add_pending(self, seen: _Numbers) -> None:
        """Add the pending exchanges whose own lines are missing."""
        for waiting in self.pending.values():
            if waiting[0].seq not in seen:
                self.add(*waiting)


def _gaps(exchange: model.Exchange) -> Sequence[model.Gap]:
    """The gaps of an exchange; nearly always there is no gap."""
    request, response = exchange.request, exchange.response
    body, answer = request.body, None if response is None else response.body
    unreadable = (body is not None and body.cut) or (answer is not None and answer.undecoded)
    if not unreadable and exchange.error != model.NOT_CARRIED:
        return ()  # this runs for every exchange
    if exchange.error == model.NOT_CARRIED and response is None:
        line = json.loads(exchange.raw)
        note = line["error"].get("note") if isinstance(line.get("error"), dict) else None
        why = note if isinstance(note, str) and note else "the recording does not say why"
        return [model.Gap(exchange.seq, request.method, request.path, None, why)]
    # What a rule needs of an answer stands at its beginning, or nowhere; the body of a request is judged whole.
    unread = [
        *([("request", body.undecoded or model.OVER_LIMIT)] if body is not None and body.cut else []),
        *([("answer", answer.undecoded)] if answer is not None and answer.cut and answer.undecoded else []),
    ]
    return [model.Gap(exchange.seq, request.method, request.path, side, why) for side, why in unread]


def _pass_blank_lines(stream: IO[bytes], number: int, offset: int) -> tuple[int, int]:
    """Skip the next blank lines. Return the number of the last one, and where it ends.

    Forty megabytes of them, one by one, would take a minute.
    """
    while chunk := stream.read(_BLANK_BYTES):
        blank = len(chunk) - len(chunk.lstrip())
        ends = chunk.rfind(b"\n", 0, blank) + 1
        number, offset = number + chunk.count(b"\n", 0, ends), offset + ends
        if ends < len(chunk):
            stream.seek(ends - len(chunk), os.SEEK_CUR)
            break
    return number, offset


def _by_several(
    recording: OpenRecording, file_exchanges: FileExchanges, seen: _Numbers, workers: int, number: int, offset: int
) -> tuple[int, int]:
    """Let several processes scan the lines after one. Return the number of the last scanned line, and where it ends."""
    parts = glance_over(recording.stream, offset, recording.size, workers, MAX_LINE_BYTES)
    numbers = [each for glances in parts for each in glances.numbers]
    if len(set(numbers)) < len(numbers):
        # Reading line by line names the number that occurs twice, and its line.
        return number, offset
    for each in numbers:
        seen.add(each)
    for glances in parts:
        file_exchanges.put_all(glances, number + 1)
        number, offset = number + len(glances.numbers), glances.ends
    recording.stream.seek(offset)
    return number, offset


def _demand_short(raw: bytes, name: str, line: int) -> None:
    if len(raw) > MAX_LINE_BYTES:
        raise TraceError(
            f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB, more than any trace line",
            where=_place(name, line),
            remedy="record with --body-limit so that large bodies are cut",
        )


class _Numbers:
    """The numbers that occurred: low ones in a byte each, since recorders count up; others in a set."""

    def __init__(self) -> None:
        self._low = bytearray(4096)
        self._others: set[int] = set()
        self._count = 0

    def add(self, number: int) -> None:
        self._count += 1
        if not 0 <= number < len(self._low):
            if not 0 <= number < 2 * len(self._low) or self._count * 16 < len(self._low):
                self._others.add(number)
                return
            self._low.extend(bytes(len(self._low)))
        self._low[number] = 1

    def __contains__(self, number: int) -> bool:
        return (0 <= number < len(self._low) and self._low[number] == 1) or number in self._others


def _demand_good(seq: int, seen: _Numbers, file_exchanges: FileExchanges | None) -> None:
    if file_exchanges is not None and abs(seq) > MOST_NUMBER:
        raise BrokenLineError(f"number {seq} is larger than any recorder counts")
    if seq in seen:
        raise BrokenLineError(f"number {seq} occurs twice")


def _place(name: str, line: int) -> str:
    return f"{printable(name, 400)}:{line}"
