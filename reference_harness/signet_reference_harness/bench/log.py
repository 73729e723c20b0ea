"""The log of a run, and its progress line.

The log is JSON lines, appended and never changed. Its lines survive a kill at any moment.

    {"kind": "run", "format": "signet-bench-log/1", "id": …, "plan": {…}}
    {"kind": "begin", "database": …, "attempt": 1, "daemon_version": …}
    {"kind": "question", "database": …, "attempt": 1, …}, {"kind": "assertion", …}, {"kind": "answer", …}
    {"kind": "done", "database": …, "attempt": 1, "latencies_ms": {…}}

Only the lines of an attempt that reached its `done` count: a database starts anew after a kill, so the moment of the
kill does not change its figures.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, TextIO

from signet_reference_harness import kept_lines
from signet_reference_harness.errors import ConfigError, HarnessError, os_errors

NAME: Final = "log.jsonl"
Record = Mapping[str, Any]


class BenchFailureError(HarnessError):
    """Raised when a run cannot continue. The message names the line of the suite. The log keeps all earlier records."""


@dataclass(slots=True)
class BenchLog:
    """The lines of a log. By database, `done` holds the last line, and `records` the lines of the finished attempt."""

    run: Mapping[str, Any] | None = None
    attempts: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    done: dict[str, Record] = field(default_factory=dict)
    records: dict[str, list[Record]] = field(default_factory=dict)
    answers: dict[tuple[str, int], Record] = field(default_factory=dict)
    """The model's answers by scenario and line; the model is not asked these questions again."""


@contextmanager
def first_failure() -> Iterator[None]:
    """Raise the first failure of the block's group of tasks instead of the group, a BenchFailureError before others."""
    try:
        yield
    except BaseExceptionGroup as failures:
        known = [failure for failure in failures.exceptions if isinstance(failure, BenchFailureError)]
        raise (known or failures.exceptions)[0] from None


class RunLog(kept_lines.HeldFile):
    """The log of a folder, open for appending by this process alone. Close it."""

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the log, or begin it. Raises ConfigError when it cannot be used, or another process uses it."""
        path = folder / NAME
        with os_errors(path, "name a folder of yours with --out"):
            handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        if not kept_lines.lock(handle):
            os.close(handle)
            raise ConfigError(
                f"{folder}: another run is at work in this folder", remedy="wait for it, or name another --out"
            )
        return cls(path, handle)

    def load(self) -> BenchLog:
        """Read the records. Skip a line that a kill cut off, and lines that are no record."""
        loaded = BenchLog()
        by_attempt: dict[tuple[str, int], list[Record]] = {}
        data = self.path.read_bytes()
        for line in data.split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                _add_record(loaded, by_attempt, record)
        if data and not data.endswith(b"\n"):
            self._append(b"\n")
        return loaded

    def write(self, record: Record) -> None:
        """Append a record. Raises BenchFailureError when the disk has no room for it."""
        self._append(kept_lines.as_line(record, str))

    def _append(self, data: bytes) -> None:
        with os_errors(self.path, "make room and run the same command again: it continues", BenchFailureError):
            kept_lines.append(self._handle, data)


def _add_record(loaded: BenchLog, by_attempt: dict[tuple[str, int], list[Record]], record: dict[str, Any]) -> None:
    kind = record.get("kind")
    if kind == "run":
        loaded.run = record
        return
    database, attempt = str(record.get("database")), int(record.get("attempt", 0))
    if kind == "begin":
        loaded.attempts[database] = attempt
        if record.get("daemon_version"):
            loaded.versions[database] = record["daemon_version"]
    elif kind == "done":
        loaded.done[database] = record
        loaded.records[database] = by_attempt.get((database, attempt), [])
    elif kind == "answer":
        loaded.answers[(str(record.get("scenario")), int(record.get("line", 0)))] = record
    else:
        by_attempt.setdefault((database, attempt), []).append(record)


LINE_EVERY_S: Final = 10.0
REDRAW_EVERY_S: Final = 0.2
"""On a terminal, where the progress is one line that is drawn again."""


class ProgressLine:
    """Shows how many steps of a run, in a `unit`, are done; nothing if `quiet`."""

    def __init__(self, total: int, unit: str, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._total = total
        self._unit = unit
        self._quiet = quiet
        self._on_terminal = not quiet and self._stream.isatty()
        self._began = self._written_at = time.monotonic()
        self._counted = 0
        self._drawn = False

    def step(self) -> None:
        """Count a step, and show the progress if it was not shown for a while."""
        self._counted += 1
        now = time.monotonic()
        if self._quiet or now - self._written_at < (REDRAW_EVERY_S if self._on_terminal else LINE_EVERY_S):
            return
        self._written_at = now
        share = self._counted / self._total
        left = _duration((now - self._began) * (1 - share) / share)
        line = f"bench: {self._counted} of {self._total} {self._unit}, {share:.0%}, about {left} left"
        self._stream.write(f"\r\x1b[K{line}" if self._on_terminal else f"{line}\n")
        self._stream.flush()
        self._drawn = self._on_terminal

    def note(self, text: str) -> None:
        """Write a message above the line."""
        if not self._quiet:
            self.clear()
            print(f"bench: {text}", file=self._stream, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
