"""A run on disk, and the lease on it. Its JSON lines store the answers and tool results, which a resumed run reuses.

    {"kind": "header", "format": "signet-run/2", "run": "…", "session": "…", "prompt": "…", …}
    {"kind": "holder", "pid": 4711, "host": "…", "at": "…"}   a process works in the run, from here on
    {"kind": "answer", "answer": {"content": "…", …}}         the model has answered
    {"kind": "calling", "name": "…"}                          a tool is about to run
    {"kind": "result", "name": "…", "ok": true, …}            it has run
    {"kind": "outcome", "status": "failed"}                   the process has ended its work in the run

The holder of the lease keeps the file locked, and touches it every LEASE_S / 4; a process that has ended holds no lock.
If the holder has not touched the file for :data:`LEASE_S`, another process may take the run over: it replaces the file
by a copy. Before each line, the old holder checks that its file is still that of the run.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from msgspec import convert, to_builtins

from signet_reference_harness import kept_lines
from signet_reference_harness.errors import ConfigError, HarnessError, os_errors
from signet_reference_harness.messages import Message, ToolCall, texts_for_person
from signet_reference_harness.providers import CompletionResult, StopReason
from signet_reference_harness.run.session_file import RecordedTurn, SessionFile, written_at
from signet_reference_harness.session.events import Status
from signet_reference_harness.session.turn import TurnHistory
from signet_reference_harness.session.watching import EventQueue
from signet_reference_harness.tools import ToolResult

FORMAT: Final = "signet-run/2"
MOST_NAMED: Final = 5
"""How many runs the error for an unknown run names, the latest first."""
LEASE_S: Final = 60.0
"""How long the holder of a lease may be silent before another process may take the run over."""
FINAL: Final[Mapping[Status, str]] = {"done": "is finished", "cancelled": "was cancelled"}
"""Statuses after which a run is over, and how messages name them."""
LASTING: Final = frozenset({StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.LENGTH, StopReason.TOOL_USE})
"""Reasons of answers that a resumed run does not request again; after any other reason, the run has failed."""
HEADER: Final = ("run", "session", "agent", "project", "prompt", "sessions", "turns")
UNKNOWN: Final = (
    "The harness was stopped while this tool ran: whether it took effect is not known. "
    "Check first, and call it again only if it has not."
)


class LeaseLostError(HarnessError):
    """Raised when another process has taken the run over: this one may neither write nor do anything more in it."""


@dataclass(slots=True, kw_only=True)
class RunRecord:
    """The content of the file of a run."""

    run: str
    session: str
    agent: str
    project: str
    prompt: str
    sessions: str
    """The folder of the session's file."""
    turns: int
    """How many lines the session's transcript had when the run began."""
    status: Status | None = None
    """How the last process left the run; None if it was killed, or still works in it."""
    answers: list[CompletionResult] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    pid: int = 0
    """The last process."""
    host: str = ""
    """Its machine."""

    @property
    def past(self) -> TurnHistory:
        """The part of the turn that is not repeated when the run is resumed."""
        return TurnHistory(self.answers, self.results)


class RunJournal(kept_lines.HeldFile):
    """The file of a run, held by this process. :meth:`release` it."""

    def __init__(
        self, path: Path, handle: int, recorded: RunRecord, scrub: kept_lines.Scrub, *, resumed: bool, seized: bool
    ) -> None:
        self.recorded = recorded
        self.resumed = resumed
        """Whether the run was begun by another process."""
        self.seized = seized
        """Whether the run was taken over from a process that still exists, but is stuck."""
        super().__init__(path, handle, scrub)
        self._over = threading.Event()
        threading.Thread(target=self._renew_lease, name="lease", daemon=True).start()

    @classmethod
    def begin(cls, folder: Path, recorded: RunRecord, scrub: kept_lines.Scrub = str) -> Self:
        """Begin a new run. Raises ConfigError if its id is taken, or its file cannot be written."""
        path = kept_lines.file_of(folder, recorded.run, "--run-id")
        header = {
            "kind": "header",
            "format": FORMAT,
            **{name: getattr(recorded, name) for name in HEADER},
            "at": kept_lines.now(),
        }
        with _alone(folder):
            demand_new(folder, recorded.run)
            with _journal_errors(path):
                handle = kept_lines.put_in_place(path, [kept_lines.as_line(header, scrub), _holder()])
        return cls(path, handle, recorded, scrub, resumed=False, seized=False)

    @classmethod
    def resume(cls, folder: Path, run: str, scrub: kept_lines.Scrub = str) -> Self:
        """Continue a run that failed, or whose process was killed.

        Raises ConfigError for a run that is over, that another process works in, or that does not exist.
        """
        path = kept_lines.file_of(folder, run, "--resume")
        with _alone(folder):
            recorded = read_run(path, run)
            if recorded.status is not None and recorded.status in FINAL:
                raise ConfigError(f"--resume {run}: the run {FINAL[recorded.status]}", remedy="begin another run")
            with _journal_errors(path):
                held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    seized = _demand_free(held, recorded)
                    handle = kept_lines.put_in_place(path, [*kept_lines.whole_lines(path), _holder()])
                finally:
                    os.close(held)
        return cls(path, handle, recorded, scrub, resumed=True, seized=seized)

    def note_answer(self, answer: CompletionResult) -> None:
        """Store an answer of the model, if a resumed run can use it."""
        if answer.stop_reason in LASTING:
            self._write({"kind": "answer", "answer": to_builtins(answer)})

    def note_call(self, name: str) -> None:
        """Note that a tool is about to run."""
        self._write({"kind": "calling", "name": name})

    def note_result(self, result: ToolResult) -> None:
        """Store the result of a tool."""
        self._write(
            {"kind": "result", "name": result.name, "ok": result.ok, "content": result.content, "error": result.error}
        )

    def note_outcome(self, status: Status) -> None:
        """Note the status of the run."""
        self._write({"kind": "outcome", "status": status})

    def release(self) -> None:
        """Give up the lease."""
        self._over.set()
        self.close()

    def discard(self) -> None:
        """Give up the lease; remove the file of a new run, so that its id is free again."""
        if not self.resumed:
            self.remove()
        self.release()

    def _write(self, members: Mapping[str, Any]) -> None:
        if not self.is_held:
            raise LeaseLostError(
                f"run {self.recorded.run}: another process has taken it over, or its file was removed",
                remedy="wait for the other process, and read its result",
            )
        with _journal_errors(self.path):
            self.append(members)

    def _renew_lease(self) -> None:
        while not self._over.wait(LEASE_S / 4):
            with contextlib.suppress(OSError):
                os.utime(self._handle)


def demand_new(folder: Path, run: str) -> None:
    """Raise ConfigError if a run of that id exists."""
    path = kept_lines.file_of(folder, run, "--run-id")
    if not path.exists():
        return
    status = read_run(path, run).status
    if status is not None and status in FINAL:
        raise ConfigError(f"--run-id {run}: the run {FINAL[status]}", remedy="give the new run another id")
    raise ConfigError(
        f"--run-id {run}: there is a run of that id, which is not finished",
        remedy=f"continue it with --resume {run}, or give the new run another id",
    )


def read_run(path: Path, run: str) -> RunRecord:
    """Read the file of a run. Raises ConfigError if it does not exist, or is damaged."""
    recorded: RunRecord | None = None
    calling: str | None = None
    number = 0
    try:
        lines = kept_lines.whole_lines(path)
    except OSError as error:
        others = sorted(path.parent.glob(f"*{kept_lines.SUFFIX}"), key=written_at, reverse=True)
        names = ", ".join(other.name.removesuffix(kept_lines.SUFFIX) for other in others[:MOST_NAMED])
        remedy = f"name one of {names}" if names else "begin a run: this --state-dir holds none"
        raise ConfigError(f"run {run}: {path}: {error.strerror or error}", remedy=remedy) from None
    try:
        for line in lines:
            number += 1
            entry = json.loads(line)
            kind = entry["kind"]
            if recorded is None:
                recorded = _header(entry)
                continue
            if calling is not None:
                recorded.results.append(_result(entry) if kind == "result" else _unknown(calling))
                calling = None
            if kind == "holder":
                recorded.status, recorded.pid, recorded.host = None, int(entry["pid"]), str(entry["host"])
            elif kind == "answer":
                recorded.answers.append(convert(entry["answer"], CompletionResult))
            elif kind == "calling":
                calling = str(entry["name"])
            elif kind == "outcome":
                recorded.status = convert(entry["status"], Status)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"{path}:{number}: is not a line of {FORMAT}: {error!r}"[:400], remedy="remove it, and begin another run"
        ) from None
    if recorded is None:
        raise ConfigError(f"{path}: is empty", remedy="remove it, and begin another run")
    if calling is not None:
        recorded.results.append(_unknown(calling))
    return recorded


def _header(entry: Mapping[str, Any]) -> RunRecord:
    if entry["kind"] != "header" or entry["format"] != FORMAT:
        raise ValueError(f"the first line is not a header of {FORMAT}")
    return convert({name: entry[name] for name in HEADER}, RunRecord)


def _result(entry: Mapping[str, Any]) -> ToolResult:
    return ToolResult(entry["name"], ok=entry["ok"], content=entry["content"], error=entry["error"])


def _unknown(name: str) -> ToolResult:
    return ToolResult(name, ok=False, content={}, error=UNKNOWN)


def _holder() -> bytes:
    """The line that names this process as the one that works in the run from here on."""
    return kept_lines.as_line(
        {"kind": "holder", "pid": os.getpid(), "host": socket.gethostname(), "at": kept_lines.now()}, str
    )


def _demand_free(held: int, recorded: RunRecord) -> bool:
    """Raise ConfigError if another process works in the run. Return True if one is stuck: its lease has expired."""
    locked_elsewhere = not kept_lines.lock(held)
    if not locked_elsewhere and recorded.host == socket.gethostname():
        return False
    silent_s = time.time() - os.fstat(held).st_mtime
    if silent_s < LEASE_S:
        raise ConfigError(
            f"--resume {recorded.run}: process {recorded.pid} on {recorded.host} works in the run",
            remedy=f"wait for it; if it is silent for {LEASE_S:g} s, the run can be taken over",
        )
    return locked_elsewhere


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from beginning or resuming a run in the folder. Raises ConfigError."""
    path = folder / ".lock"
    with _journal_errors(path):
        guard = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield
    finally:
        os.close(guard)


def _journal_errors(path: Path) -> contextlib.AbstractContextManager[None]:
    return os_errors(f"{path}: the run cannot be kept", "give --state-dir a folder of yours on a disk with room")


class Checkpoints(RecordedTurn):
    """Writes the answers and tool results of a turn also to the file of its run."""

    def __init__(self, events: EventQueue, file: SessionFile, journal: RunJournal, notices: list[str]) -> None:
        """Each text for the person is appended to `notices` as it comes."""
        super().__init__(events.publish, file)
        self._notices, self._journal = notices, journal

    def message(self, message: Message) -> None:
        """Store the message, and collect its notices."""
        self._notices += texts_for_person(replace(message, content=""))
        super().message(message)

    def answer(self, answer: CompletionResult) -> None:
        """Store the answer."""
        self._journal.note_answer(answer)

    def tool_call(self, call: ToolCall) -> None:
        """Note that the tool is about to run."""
        self._journal.note_call(call.name)
        super().tool_call(call)

    def tool_result(self, call: ToolCall, result: ToolResult) -> None:
        """Store the tool's result."""
        self._journal.note_result(result)
        super().tool_result(call, result)
