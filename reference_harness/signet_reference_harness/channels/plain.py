"""The chat in plain lines, for a pipe, or a terminal that can show only lines: one line is one turn.

Answers, the rows of a command and the prompt go to standard output, all else to standard error. The next line is read
when a turn is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
from collections.abc import Sequence
from typing import Final, TextIO

from signet_reference_harness.channels import AgentOutput, Closing, UserTurn
from signet_reference_harness.channels.drawing import in_brief, one_line
from signet_reference_harness.errors import printable
from signet_reference_harness.session.events import MemoryUsed, Notice, ToolCalled
from signet_reference_harness.tools.registry import in_thread

LONGEST_LINE: Final = 4 * 1024 * 1024
"""Bytes of one turn, and up to READ_AT_ONCE more; a longer line makes several turns."""
READ_AT_ONCE: Final = 65_536
BRIEF: Final = 200


class PlainFace(Closing):
    """Lines in, lines out."""

    kind = "terminal"

    def __init__(self, source: int, out: TextIO, err: TextIO, *, prompt: bool) -> None:
        """`source` is the descriptor that the lines come from. With `prompt` a mark says when the next one is read."""
        super().__init__()
        self.conversation: object = None
        """Set by the program, as in every chat; unused here."""
        self._source = source
        self._leftover = b""
        """Bytes that were read after the last line."""
        self._out = out
        self._err = err
        self._prompt = prompt
        self._requested_lines = asyncio.Semaphore(0)
        self._answered = asyncio.Event()
        self._answered.set()
        self._in_line = False
        self._pending_answer: asyncio.Future[str] | None = None
        """Gets the next line, which answers a question."""
        for stream in (out, err):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")

    async def run(self) -> None:
        """Read lines as they are requested, until there are no more."""
        ended = asyncio.Event()
        self.on_close(ended.set)
        reading = asyncio.create_task(self._read_lines())
        await ended.wait()
        # Its thread may be blocked in a read, and is not waited for.
        reading.cancel()

    async def _read_lines(self) -> None:
        with contextlib.suppress(OSError):  # the stream is gone
            while await self._requested_lines.acquire() and (line := await in_thread(self._read_line)):
                self._handle_line(line.decode("utf-8", "replace").rstrip("\r\n"))
        self.close()

    def _read_line(self) -> bytes:
        """The next line; empty at the end.

        Not by a buffered reader: Python aborts at exit where a thread holds the lock of one.
        """
        pieces, size = [], 0
        piece = self._leftover or os.read(self._source, READ_AT_ONCE)
        while piece:
            line, end, self._leftover = piece.partition(b"\n")
            pieces.append(line + end)
            size += len(line)
            if end or size >= LONGEST_LINE:
                break
            piece = os.read(self._source, READ_AT_ONCE)
        return b"".join(pieces)

    def _handle_line(self, text: str) -> None:
        if self._pending_answer is not None and not self._pending_answer.done():
            self._pending_answer.set_result(text)
        elif text.strip():
            self.enqueue(UserTurn(content=text))
        else:
            self._requested_lines.release()

    async def receive(self) -> UserTurn:
        """The next line, once the one before is answered."""
        await self._answered.wait()
        if not self.closed:
            if self._prompt:
                self._write(self._out, "> ")
            self._requested_lines.release()
        turn = await super().receive()
        self._answered.clear()
        return turn

    def close(self) -> None:
        """Close the channel; nothing is waited for any more."""
        super().close()
        self._answered.set()
        self._requested_lines.release()

    async def send(self, output: AgentOutput) -> None:
        """Write a piece of an answer, or a line about it."""
        if output.streaming and output.content:
            self._write(self._out, output.content)
            self._in_line = not output.content.endswith("\n")
            return
        if isinstance(output.event, ToolCalled):
            self._line(self._err, f"tool: {one_line(output.event.name, 80)}")
        elif isinstance(output.event, Notice):
            self.note(output.event.text)
        elif isinstance(output.event, MemoryUsed):
            self.note(output.event.effect.in_brief)
        for result in output.tool_results if output.streaming else ():
            outcome = in_brief(result.content) if result.ok else f"failed: {result.error}"
            self._line(self._err, f"tool: {one_line(result.name, 80)}: {one_line(outcome, BRIEF)}")
        if not output.streaming:
            self._finish_line()
            if output.error:
                (self.note if output.stopped else self.error)(output.error)
            self._answered.set()

    def show_user(self, turn: UserTurn) -> None:
        """Show nothing: the user typed the line."""

    def show_reply(self, reply: str) -> None:
        """Write an earlier answer or a summary to standard error: it answers no line of this run."""
        self._line(self._err, reply)

    def note(self, text: str) -> None:
        """Write a line to standard error."""
        self._line(self._err, text)

    def error(self, text: str) -> None:
        """Write a line to standard error."""
        self._line(self._err, f"error: {text}")

    async def ask(self, question: str, about: str) -> str | None:
        """The next line of a terminal; a pipe cannot be asked."""
        if not self._prompt or self.closed:
            return None
        self.note(f"{about}\n{question}")
        self._pending_answer = asyncio.get_running_loop().create_future()
        self._requested_lines.release()
        try:
            return await self._pending_answer
        finally:
            self._pending_answer = None

    def rows(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        """Write the rows to standard output: the user requested them."""
        self._line(self._out, title)
        for name, text in rows:
            self._line(self._out, f"{one_line(name, BRIEF)}\t{one_line(text, 2_000)}")

    def _line(self, stream: TextIO, text: str) -> None:
        self._finish_line()
        self._write(stream, f"{text}\n")

    def _finish_line(self) -> None:
        if self._in_line:
            self._in_line = False
            self._write(self._out, "\n")

    def _write(self, stream: TextIO, text: str) -> None:
        try:
            stream.write(printable(text.replace("\r\n", "\n")))
            stream.flush()
        except (OSError, ValueError):
            # The reader is gone. Drop the rest of the stream: Python would complain of it at exit.
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
            self.close()
