"""What a headless task writes while it works, and at its end: a format each, made of the events of its run."""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
from collections.abc import Callable
from typing import Final, TextIO

from signet_reference_harness.errors import printable
from signet_reference_harness.events import Event, EventQueue, RunFinished, Text, ToolCalled, as_json
from signet_reference_harness.events.summary import OutputFormat

Render = Callable[[Event], str]
"""The text of an event in a format; empty for one that the format does not show."""


class Output:
    """Writes the events of `events` to a stream, in a thread of its own: a reader that is slow stops nobody else.

    `scrub` takes out what is secret. A stream that cannot be written to any more does not end the task, whose session
    and summary go on: `lost` says why.
    """

    def __init__(self, output_format: OutputFormat, stream: TextIO | None, scrub: Callable[[str], str] = str) -> None:
        # A person who is slow to read a reply wants all of it; the conversation holds the same text anyway.
        self.events = EventQueue() if output_format == "stream-json" else EventQueue(None)
        self._render = RENDERERS[output_format]()
        self._stream = stream
        self._scrub = scrub
        self.lost: OSError | None = None
        if isinstance(stream, io.TextIOWrapper):
            # What its encoding does not have, such as an accent in ASCII, is escaped.
            stream.reconfigure(errors="backslashreplace")
        self._thread = threading.Thread(target=self._write_all, name="output", daemon=True)
        self._thread.start()

    def drain(self) -> None:
        """Wait until all events are written, the last one too."""
        self._thread.join()

    def _write_all(self) -> None:
        while events := self.events.wait_and_take():
            self._put("".join(map(self._render, events)))
            if isinstance(events[-1], RunFinished):
                return

    def _put(self, text: str) -> None:
        if self._stream is None or self.lost is not None or not text:
            return
        text = self._scrub(text)
        try:
            self._stream.write(printable(text) if self._stream.isatty() else text)
            self._stream.flush()
        except OSError as error:
            self.lost = error
            _discard(self._stream)


class _Text:
    """The reply as it arrives, and a line break at its end. What the model says after its tools begins a line."""

    _in_line = False

    def __call__(self, event: Event) -> str:
        text = ""
        if isinstance(event, Text):
            text = event.text
        elif isinstance(event, ToolCalled | RunFinished) and self._in_line:
            text = "\n"
        self._in_line = not text.endswith("\n") if text else self._in_line
        return text


def _result(event: Event) -> str:
    """One JSON object at the end: the summary with the reply."""
    if not isinstance(event, RunFinished):
        return ""
    return json.dumps({**event.summary.model_dump(mode="json", by_alias=True), "reply": event.reply}) + "\n"


def _line(event: Event) -> str:
    """One JSON object a line: each event as it happens."""
    return json.dumps(as_json(event)) + "\n"


def _discard(stream: TextIO) -> None:
    """Let what the stream still holds go nowhere: Python would try to write it once more at its end, and complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


RENDERERS: Final[dict[OutputFormat, Callable[[], Render]]] = {
    "text": _Text,
    "json": lambda: _result,
    "stream-json": lambda: _line,
    "none": lambda: lambda _event: "",
}
