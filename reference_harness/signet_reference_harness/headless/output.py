"""What a headless task writes while it works, and at its end: a format each."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable
from typing import Any, TextIO

from signet_reference_harness.errors import printable
from signet_reference_harness.headless.summary import OutputFormat, Summary
from signet_reference_harness.messages import ToolCall
from signet_reference_harness.providers.completion import CompletionChunk
from signet_reference_harness.tools import ToolResult
from signet_reference_harness.turn import TurnListener


class Output(TurnListener):
    """Writes nothing at all: the format `none`, and what the others build on. `scrub` takes out what is secret.

    A stream that cannot be written to any more does not end the task, whose session and summary go on: `lost` says why.
    """

    def __init__(self, stream: TextIO | None, scrub: Callable[[str], str] = str) -> None:
        self._stream = stream
        self._scrub = scrub
        self.lost: OSError | None = None
        if isinstance(stream, io.TextIOWrapper):
            # What its encoding does not have, such as an accent in ASCII, is escaped.
            stream.reconfigure(errors="backslashreplace")

    def end(self, summary: Summary, reply: str) -> None:
        """The task is over."""

    def _put(self, text: str) -> None:
        if self._stream is None or self.lost is not None:
            return
        text = self._scrub(text)
        try:
            self._stream.write(printable(text) if self._stream.isatty() else text)
            self._stream.flush()
        except OSError as error:
            self.lost = error
            _discard(self._stream)


class TextOutput(Output):
    """The reply as it arrives, and a line break at its end."""

    _in_line = False

    def chunk(self, chunk: CompletionChunk) -> None:
        """Write a piece of the reply."""
        if chunk.kind == "text" and chunk.text:
            self._write(chunk.text)

    def tool_call(self, call: ToolCall) -> None:  # noqa: ARG002 - that there is one is enough
        """What the model says after its tools begins on a line of its own."""
        self._finish_line()

    def end(self, summary: Summary, reply: str) -> None:  # noqa: ARG002 - the text has been written as it came
        """Finish the last line."""
        self._finish_line()

    def _finish_line(self) -> None:
        if self._in_line:
            self._write("\n")

    def _write(self, text: str) -> None:
        self._put(text)
        self._in_line = not text.endswith("\n")


class JsonOutput(Output):
    """One JSON object at the end: the summary with the reply."""

    def end(self, summary: Summary, reply: str) -> None:
        """Write the object."""
        self._line({**summary.model_dump(mode="json", by_alias=True), "reply": reply})

    def _line(self, value: dict[str, Any]) -> None:
        self._put(json.dumps(value) + "\n")


class StreamJsonOutput(JsonOutput):
    """One JSON object a line: each event as it happens, then the summary with the reply as `result`."""

    def chunk(self, chunk: CompletionChunk) -> None:
        """Write a piece of what the model says or thinks."""
        if chunk.text:
            self._line({"type": chunk.kind, "text": chunk.text})

    def tool_call(self, call: ToolCall) -> None:
        """Write the call."""
        self._line({"type": "tool_call", "id": call.id, "name": call.name, "arguments": dict(call.arguments)})

    def tool_result(self, call: ToolCall, result: ToolResult) -> None:
        """Write the result."""
        told = {"content": result.content} if result.ok else {"error": result.error}
        self._line({"type": "tool_result", "id": call.id, "name": call.name, "ok": result.ok, **told})

    def compaction(self, summary: str) -> None:
        """Write the summary that took the place of the conversation."""
        self._line({"type": "compaction", "summary": summary})

    def end(self, summary: Summary, reply: str) -> None:
        """Write the result."""
        self._line({"type": "result", **summary.model_dump(mode="json", by_alias=True), "reply": reply})


def _discard(stream: TextIO) -> None:
    """Let what the stream still holds go nowhere: Python would try to write it once more at its end, and complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


OUTPUTS: dict[OutputFormat, type[Output]] = {
    "text": TextOutput,
    "json": JsonOutput,
    "stream-json": StreamJsonOutput,
    "none": Output,
}
