"""A session on disk: JSON lines, appended and never changed, whose first line names format and version.

    {"kind": "header", "format": "signet-session/1", "session": "…", "agent": "…", "project": "…", "created": "…"}
    {"kind": "turn", "at": "…", "prompt": "…"}              a turn begins
    {"kind": "tool", "name": "…", "ok": true}               a tool has run in it
    {"kind": "message", "message": {"role": "user", …}}     what the turn added to the conversation
    {"kind": "outcome", "outcome": "end_turn", "run": "…", "status": "done", …}   the turn is over
    {"kind": "compaction", "summary": "…"}                  the summary of all messages above
    {"kind": "undo"}                                        the user took back the turn before it
    {"kind": "clear"}                                       the model no longer gets the messages above
    {"kind": "torn"}                                        a crash cut off the line before this one

It holds no credential.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from msgspec import convert, to_builtins

from signet_reference_harness import kept_lines
from signet_reference_harness.documents import read_file
from signet_reference_harness.errors import ConfigError, IdentityError, os_errors
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.messages import Message, ToolCall
from signet_reference_harness.session.conversation import Conversation
from signet_reference_harness.session.events import Event
from signet_reference_harness.session.watching import Publisher
from signet_reference_harness.tools import ToolResult
from signet_reference_harness.tools.registry import ResultFolder

FORMAT: Final = "signet-session/1"
LARGEST: Final = 256 * 1024 * 1024
LARGEST_LISTED: Final = 32 * 1024 * 1024
"""Bytes; a list of sessions leaves out larger files."""


@dataclass(slots=True)
class StoredSession:
    """The content of a session file: its identity, and the conversation of its complete turns."""

    identity: SessionIdentity
    conversation: Conversation = field(default_factory=Conversation)
    size: int = 0
    """Bytes of the file when it was read."""
    written: float = 0.0
    """When the file was last written to, in seconds since 1970."""
    torn: bool = False
    """Whether the last line is incomplete."""
    runs: dict[str, str] = field(default_factory=dict)
    """The status of each run with a turn in the session, by its id."""
    _last: tuple[str | None, int, int] = (None, 0, 0)
    """The run of the last turn, and how many messages and lines of the transcript came before the turn."""

    @property
    def turns(self) -> Sequence[tuple[str, str]]:
        """The lines of the transcript."""
        return self.conversation.turns

    def add_turn(self, run: str | None, prompt: str, reply: str, messages: Sequence[Message]) -> None:
        """Add a complete turn."""
        self._last = (run, self.conversation.message_count, len(self.turns))
        self.conversation.add_turn(prompt, reply, messages)

    def take_back(self, run: str) -> None:
        """Remove the last turn if it is of this run, which was continued and wrote the turn again."""
        last_run, messages, turns = self._last
        if last_run == run:
            self.conversation.take_back(messages, turns)
            self._last = (None, 0, 0)

    def forget_messages(self) -> None:
        """Note that the messages have left the model's context, so that :meth:`take_back` removes none of them."""
        self._last = (self._last[0], 0, self._last[2])


class SessionFile(kept_lines.HeldFile):
    """A session file, open for appending in this process only. Close it."""

    @classmethod
    def open(
        cls,
        folder: Path,
        identity: SessionIdentity,
        scrub: kept_lines.Scrub = str,
        *,
        size: int | None = None,
        seize: bool = False,
    ) -> Self:
        """Open the file of a session, or create it. `scrub` removes from each line what may not be stored.

        `size` is how many bytes the file had when it was read. Raises ConfigError if the file cannot be written, if
        another process has it open, or if one has written to it since it was read. With `seize` the file is replaced by
        a copy if another process, known to be stuck, has it open: what that process still writes is lost.
        """
        path = path_of(folder, identity.key)
        with _write_errors(path):
            try:
                if not os.path.lexists(path):
                    return cls(
                        path,
                        kept_lines.put_in_place(path, [kept_lines.as_line(_header(identity), scrub)], new=True),
                        scrub,
                    )
                handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
                if not kept_lines.lock(handle):
                    os.close(handle)
                    if not seize:
                        raise _in_use(path)
                    handle = kept_lines.put_in_place(path, [path.read_bytes()])
            except (FileExistsError, BlockingIOError):
                raise _in_use(path) from None
        if size is not None and os.fstat(handle).st_size != size:
            os.close(handle)
            raise ConfigError(f"{path}: another process has just worked in this session", remedy="run the task again")
        file = cls(path, handle, scrub)
        file._finish_torn_line()
        return file

    @property
    def results(self) -> ResultFolder:
        """The folder beside the file for tool results that are too long for the model."""
        return ResultFolder(self.path.with_suffix(".results"))

    def note_turn(self, prompt: str) -> None:
        """Note that a turn begins."""
        self._write({"kind": "turn", "at": kept_lines.now(), "prompt": prompt})

    def note_tool(self, name: str, *, ok: bool) -> None:
        """Note that a tool has run: its effects remain even if the turn fails."""
        self._write({"kind": "tool", "name": name, "ok": ok})

    def note_outcome(self, outcome: str, reply: str, messages: Sequence[Message], **facts: Any) -> None:
        """Write the outcome of a turn, and the messages that it added to the conversation."""
        for message in messages:
            self._write({"kind": "message", "message": message_json(message)})
        self._write({"kind": "outcome", "outcome": outcome, "reply": reply, **facts})

    def note_compaction(self, summary: str) -> None:
        """Write the summary of all messages so far."""
        self._write({"kind": "compaction", "summary": summary})

    def note_undo(self) -> None:
        """Note that the last turn has left the model's context."""
        self._write({"kind": "undo"})

    def note_clear(self) -> None:
        """Note that all messages so far have left the model's context."""
        self._write({"kind": "clear"})

    def _finish_torn_line(self) -> None:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                os.write(self._handle, b"\n")
                self._write({"kind": "torn"})

    def _write(self, line: Mapping[str, Any]) -> None:
        with _write_errors(self.path):
            self.append(line)


class RecordedTurn(Publisher):
    """Publishes the events of a turn, and writes to the session's file those that hold even if the turn fails."""

    def __init__(self, put: Callable[[Event], None], file: SessionFile) -> None:
        super().__init__(put)
        self._file = file

    def tool_result(self, call: ToolCall, result: ToolResult) -> None:
        """Note that the tool has run."""
        self._file.note_tool(call.name, ok=result.ok)
        super().tool_result(call, result)

    def compaction(self, summary: str) -> None:
        """Write the summary."""
        self._file.note_compaction(summary)
        super().compaction(summary)


def path_of(folder: Path, session: str) -> Path:
    """The file of a session. Raises ConfigError for a key that cannot name a file."""
    return kept_lines.file_of(folder, session, "--session")


def read_session(path: Path) -> StoredSession:
    """Read a session file. Raises ConfigError if it is empty, or damaged other than by lines that a crash cut off."""
    data = read_file(path, LARGEST, remedy="name a session file", smaller="begin another session")
    stored: StoredSession | None = None
    pending: list[Message] = []
    damage: str | None = None
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            kind = entry["kind"]
            if damage is not None and kind != "torn":
                break
            damage = None
            if stored is None:
                stored = StoredSession(_identity(entry))
            elif kind == "turn":
                pending = []
            elif kind == "message":
                pending.append(convert(entry["message"], Message))
            elif kind == "outcome":
                _end_turn(stored, pending, entry)
                pending = []
            elif kind == "compaction":
                stored.conversation.compact(str(entry["summary"]))
                stored.forget_messages()
                pending = []
            elif kind == "undo":
                stored.conversation.undo()
            elif kind == "clear":
                stored.conversation.clear()
                stored.forget_messages()
                pending = []
        except (ValueError, KeyError, TypeError, RecursionError, IdentityError) as error:
            if damage is not None:
                break
            damage = f"{path}:{number}: is not a line of {FORMAT}: {error!r}"[:400]
    else:
        if stored is not None:
            stored.size, stored.torn = len(data), damage is not None
            stored.conversation.settle()
            return stored
    raise ConfigError(damage or f"{path}: is empty", remedy="begin another session")


def sessions_of(folder: Path, agent: str, project: str) -> Iterator[StoredSession]:
    """The sessions of an agent in a project that have a turn, the most recently written first."""
    for path in sorted(folder.glob(f"*{kept_lines.SUFFIX}"), key=written_at, reverse=True):
        try:
            stored = read_session(path) if path.stat().st_size <= LARGEST_LISTED else None
        except (ConfigError, OSError):
            continue
        if stored is None or not stored.turns:
            continue
        if (stored.identity.agent, stored.identity.project) == (agent, project):
            stored.written = written_at(path)
            yield stored


def written_at(path: Path) -> float:
    """When the file was last written to, in seconds since 1970; 0 if it does not exist."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _end_turn(stored: StoredSession, messages: Sequence[Message], entry: Mapping[str, Any]) -> None:
    run = entry.get("run")
    if run is not None:
        stored.runs[run] = str(entry["status"])
        stored.take_back(run)
    prompt = next((message.content for message in messages if message.role == "user"), None)
    if prompt is not None:
        stored.add_turn(run, prompt, str(entry["reply"]), messages)
    # A turn without messages has no answer, and is not part of the conversation.


def _header(identity: SessionIdentity) -> dict[str, Any]:
    members = {"session": identity.key, "agent": identity.agent, "project": identity.project}
    return {"kind": "header", "format": FORMAT, **members, "created": kept_lines.now()}


def _identity(header: Mapping[str, Any]) -> SessionIdentity:
    if header["kind"] != "header" or header["format"] != FORMAT:
        raise ValueError(f"the first line is not a header of {FORMAT}")
    return SessionIdentity(header["session"], header["agent"], header["project"])


def message_json(message: Message) -> dict[str, Any]:
    """A message as JSON, without its empty members."""
    members: dict[str, Any] = to_builtins(message)
    return {name: value for name, value in members.items() if name in {"role", "content"} or value}


def _in_use(path: Path) -> ConfigError:
    return ConfigError(
        f"{path}: another process works in this session", remedy="wait for it, or give --session another name"
    )


def _write_errors(path: Path) -> AbstractContextManager[None]:
    return os_errors(
        f"{path}: the session cannot be written", "give --sessions-dir a folder of yours on a disk with room"
    )
