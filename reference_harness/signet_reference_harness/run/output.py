"""Writes the output of a task, while it works and at its end, in one of several formats, from the run's events."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from signet_reference_harness import kept_lines
from signet_reference_harness.documents import put_text
from signet_reference_harness.errors import HarnessError, os_errors, printable
from signet_reference_harness.session import events
from signet_reference_harness.session.watching import EventQueue

LONGEST_ARGUMENTS: Final = 160
"""How many characters of a tool's arguments a person is shown."""
LONGEST_ERROR: Final = 300
"""How many characters of the reason of a tool's failure are shown."""
Render = Callable[[events.Event], str]
"""The text of an event in a format; empty for one that the format does not show."""


class Output:
    """Writes the events of `events` to a stream, in a thread of its own, so that a slow reader does not stop the task.

    `scrub` removes secrets. If the stream cannot be written to any more, `lost` says why; the task continues.
    """

    def __init__(
        self,
        output_format: events.OutputFormat,
        stream: TextIO | None,
        scrub: Callable[[str], str] = str,
        *,
        tools: TextIO | None = None,
    ) -> None:
        """`tools` is the stream on which a line names each tool that runs; None for none."""
        # Unbounded except for JSON: a slow reader needs the whole reply, and the conversation holds the text anyway.
        self.events = EventQueue() if output_format == "stream-json" else EventQueue(None)
        self._render = RENDERERS[output_format]()
        self._stream = stream
        self._scrub = scrub
        self._tools = tools
        self.lost: OSError | None = None
        self._thread = threading.Thread(target=self._write_all, name="output", daemon=True)
        self._thread.start()

    def drain(self) -> None:
        """Wait until all events are written, the last one too."""
        self._thread.join()

    def _write_all(self) -> None:
        while waiting := self.events.wait_and_take():
            self._write_events(waiting)
            if isinstance(waiting[-1], events.RunFinished):
                return

    def _write_events(self, waiting: list[events.Event]) -> None:
        texts: list[str] = []
        for event in waiting:
            texts.append(self._render(event))
            line = _tool_line(event)
            if line and self._tools is not None:
                self._write_text("".join(texts))
                texts.clear()
                with contextlib.suppress(OSError, ValueError):
                    print(printable(self._scrub(line).replace("\n", " ")), file=self._tools, flush=True)
        self._write_text("".join(texts))

    def _write_text(self, text: str) -> None:
        if self._stream is None or self.lost is not None or not text:
            return
        text = self._scrub(text)
        try:
            # Also for a pipe, whose reader may show the text in a terminal.
            _write(self._stream, printable(text.replace("\r\n", "\n")))
        except OSError as error:
            self.lost = error


def _tool_line(event: events.Event) -> str:
    """The line about a tool's call or failure for a person; empty for other events."""
    if isinstance(event, events.ToolCalled):
        return f"tool: {event.name} {json.dumps(event.arguments, ensure_ascii=False, default=str)[:LONGEST_ARGUMENTS]}"
    if isinstance(event, events.ToolReturned) and not event.ok:
        return f"tool: {event.name} failed: {str(event.error)[:LONGEST_ERROR]}"
    return ""


def _write(stream: TextIO, text: str) -> None:
    """Write to the descriptor of the stream, so that Python has nothing left to write at its exit."""
    try:
        handle = stream.fileno()
    except OSError:
        stream.write(text)
        stream.flush()
    else:
        # Characters that the encoding lacks, such as accents in ASCII, are escaped.
        kept_lines.append(handle, text.encode(stream.encoding, "backslashreplace"))


class _Text:
    """The reply as it arrives, with a line break at its end, and between the texts before and after a tool."""

    _in_line = False
    _without_memory = ""
    """The answer without memory, which is shown last."""

    def __call__(self, event: events.Event) -> str:
        text = ""
        if isinstance(event, events.TextPiece):
            text = event.text
        elif isinstance(event, events.WithoutMemory):
            self._without_memory = f"\nwithout memory:\n{event.reply.rstrip()}\n"
        elif isinstance(event, events.ToolCalled | events.RunFinished) and self._in_line:
            text = "\n"
        if isinstance(event, events.RunFinished):
            text += self._without_memory
        self._in_line = not text.endswith("\n") if text else self._in_line
        return text


class _Result:
    """One JSON object at the end: the summary with the reply, and the answer without memory if it was asked for."""

    def __init__(self) -> None:
        self._more: dict[str, str] = {}

    def __call__(self, event: events.Event) -> str:
        if isinstance(event, events.WithoutMemory):
            self._more["reply_without_memory"] = event.reply
        if not isinstance(event, events.RunFinished):
            return ""
        summary = event.summary.model_dump(mode="json", by_alias=True)
        return _json_line({**summary, "reply": event.reply, **self._more})


def _line(event: events.Event) -> str:
    """One JSON object a line: each event as it happens."""
    return _json_line(events.as_json(event))


def _json_line(value: Mapping[str, Any]) -> str:
    # An unescaped DEL would later be escaped as in text, which is invalid JSON.
    return json.dumps(value).replace("\x7f", "\\u007f") + "\n"


RENDERERS: Final[dict[events.OutputFormat, Callable[[], Render]]] = {
    "text": _Text,
    "json": _Result,
    "stream-json": lambda: _line,
    "none": lambda: lambda _event: "",
}

EXIT_STATUSES: Final[dict[events.Status, int]] = {
    "done": 0,
    "failed": 1,
    "invalid": 2,
    "timeout": 124,
    "cancelled": 130,
}


def write_summary(summary: events.RunSummary, path: Path) -> None:
    """Write the summary to `path` atomically, replacing what is there. Raises HarnessError."""
    text = json.dumps(summary.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False) + "\n"
    with os_errors(f"--summary {path}: cannot be written", "name a file in a folder of yours", HarnessError):
        put_text(path, text, mode=0o600)
