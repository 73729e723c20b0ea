"""What a headless task writes while it works, and at its end: a format each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TextIO

from signet_reference_harness.errors import printable
from signet_reference_harness.headless.summary import OutputFormat, Summary
from signet_reference_harness.messages import ToolCall
from signet_reference_harness.providers.completion import CompletionChunk
from signet_reference_harness.tools import ToolResult
from signet_reference_harness.turn import TurnListener


class Output(TurnListener):
    """Writes nothing at all: the format `none`, and what the others build on. `scrub` takes out what is secret."""

    def __init__(self, stream: TextIO, scrub: Callable[[str], str] = str) -> None:
        self._stream = stream
        self._scrub = scrub

    def end(self, summary: Summary, reply: str) -> None:
        """The task is over."""


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
        text = self._scrub(text)
        self._stream.write(printable(text) if self._stream.isatty() else text)
        self._stream.flush()
        self._in_line = not text.endswith("\n")


class JsonOutput(Output):
    """One JSON object at the end: the summary with the reply."""

    def end(self, summary: Summary, reply: str) -> None:
        """Write the object."""
        self._line({**summary.model_dump(mode="json", by_alias=True), "reply": reply})

    def _line(self, value: dict[str, Any]) -> None:
        self._stream.write(self._scrub(json.dumps(value)) + "\n")
        self._stream.flush()


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
        told = {"content": dict(result.content)} if result.ok else {"error": result.error}
        self._line({"type": "tool_result", "id": call.id, "name": call.name, "ok": result.ok, **told})

    def compaction(self, summary: str) -> None:
        """Write the summary that took the place of the conversation."""
        self._line({"type": "compaction", "summary": summary})

    def end(self, summary: Summary, reply: str) -> None:
        """Write the result."""
        self._line({"type": "result", **summary.model_dump(mode="json", by_alias=True), "reply": reply})


OUTPUTS: dict[OutputFormat, type[Output]] = {
    "text": TextOutput,
    "json": JsonOutput,
    "stream-json": StreamJsonOutput,
    "none": Output,
}
