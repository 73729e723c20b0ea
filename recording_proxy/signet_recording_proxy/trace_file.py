"""A trace file that only ever grows: by whole lines, and never over an existing file."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from signet_conformance.errors import KitError, UsageError, counted, printable
from signet_conformance.trace import Header, encode

Line = bytes | memoryview


class TraceFile:
    """One `signet-trace/1` file being written: its clock, its numbers, its lines.

    A number is given when a request begins or a mark is taken; a line is written when it is complete. So lines may be
    out of order, and a killed recorder leaves only whole lines.
    """

    def __init__(self, path: str, header: Header) -> None:
        """Create `path` and write the header; raise UsageError when it exists or cannot be created."""
        self.path = path
        self.written = 0
        self.open_exchanges = 0
        self._seq = 0
        self._superseded = False
        self._waiting: list[Line] = []
        self._ending = 0
        self._size = 0
        self._fd = _create(path)
        self._zero = time.monotonic()
        created = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.header = replace(header, created=created, clock_s=round(self._zero, 6))
        self._write(encode(self.header.to_json()))

    def number(self) -> int:
        """The next number, from 1; exchanges and marks share the count."""
        self._seq += 1
        return self._seq

    def seconds(self, instant: float | None = None) -> float:
        """Seconds from the header's `created` to `instant` of `time.monotonic()` (now, when None)."""
        return round((time.monotonic() if instant is None else instant) - self._zero, 6)

    def begin_exchange(self) -> int:
        """The number of an exchange that begins now; the file stays open until its line is written."""
        self.open_exchanges += 1
        return self.number()

    def hold_place(self, line: bytes) -> None:
        """Take the line that holds the place of an exchange's; it waits for `write_waiting`."""
        self._waiting.append(line)

    def end_exchange(self, line: Line | None) -> None:
        """Take the line of an exchange that `begin_exchange` announced; it waits for `write_waiting`.

        None: it could not be made, and what holds its place stays.
        """
        self.open_exchanges -= 1
        if line is not None:
            self._ending += 1
            self._waiting.append(line)

    def write_waiting(self) -> None:
        """Write the lines that wait, at once."""
        if self._waiting:
            lines, self._waiting = self._waiting, []
            self.written, self._ending = self.written + self._ending, 0
            self._write(lines[0] if len(lines) == 1 else b"".join(lines))
        self._close_when_done()

    def mark(self, name: str, data: Mapping[str, Any]) -> int:
        """Write a mark, return its number."""
        seq = self.number()
        self.write_waiting()
        self._write(encode({"kind": "mark", "seq": seq, "t": self.seconds(), "name": name, "data": data}))
        return seq

    def supersede(self) -> None:
        """Another file follows: close this one as soon as its open exchanges have their lines."""
        self._superseded = True
        self.write_waiting()

    def _close_when_done(self) -> None:
        if self._superseded and not self.open_exchanges and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def demand_there(self) -> None:
        """Raise KitError when the file was deleted, replaced or truncated by another program.

        It may be renamed: what is written then still reaches it.
        """
        if self._fd < 0:
            return
        status = os.fstat(self._fd)
        if not status.st_nlink:
            what = "was replaced" if Path(self.path).exists() else "was deleted"
            lost = counted(self.written, "exchange")
        elif status.st_size < self._size:
            what = f"was truncated from {self._size:,} to {status.st_size:,} bytes"
            lost = f"all before of {counted(self.written, 'exchange')}"
        else:
            return
        raise KitError(
            f"the trace {what} while it was written; lost: {lost}",
            where=printable(self.path, 400),
            remedy="let no other program touch it but by renaming it, and record again",
        )

    def _write(self, lines: Line) -> None:
        try:
            written = os.write(self._fd, lines)
            while written < len(lines):  # only a full disk or a signal cuts a write to a file short
                written += os.write(self._fd, lines[written:])
            self._size += len(lines)
        except OSError as failure:
            raise KitError(
                f"the trace cannot be written: {failure.strerror or failure}",
                where=self.path,
                remedy="free some space and record again; the exchanges written so far can be read",
            ) from None


def demand_creatable(path: str) -> None:
    """Raise UsageError when a trace could not be created at `path`; nothing is left there.

    CapturedMessage before anything is waited for. Whether it can be created in the end shows when it is.
    """
    os.close(_create(path))
    Path(path).unlink()


def _create(path: str) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(
            "the file exists, and a recording never overwrites one",
            where=printable(path, 400),
            remedy="name another file with --out, or remove this one",
        ) from None
    except (OSError, ValueError) as failure:
        # ValueError: a name with a null byte, which no file has.
        raise UsageError(
            f"the trace file cannot be created: {getattr(failure, 'strerror', None) or failure}",
            where=printable(path, 400),
            remedy="name a file in a folder that exists and can be written to",
        ) from None
