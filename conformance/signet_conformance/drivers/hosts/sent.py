"""Where in the code of a connector its requests are sent: `sent` of an answer to a step (docs/driver-protocol.md)."""

from __future__ import annotations

import inspect
import re
import sys
import sysconfig
import threading
from pathlib import Path
from types import FrameType
from typing import Any

MAX_REQUESTS = 100
MAX_PLACES = 3
_LINE = re.compile(rb"([A-Z]+) (/[^ ?]*)[^ ]* HTTP/1\.[01]\r\n")
_OTHERS = tuple({*sysconfig.get_paths().values(), str(Path(__file__).parents[2]), "<"})
"""Where code lies that is not the connector's: the interpreter, its packages, the kit."""


class Sent:
    """Watches the standard library's HTTP client, which most others are built on, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[dict[str, Any]] = []
        sys.addaudithook(self._heard)

    def take(self) -> list[dict[str, Any]]:
        """The requests since it was last called, each with its method, its path and the places that led to it."""
        with self._lock:
            taken, self._requests = self._requests, []
        return taken

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "http.client.send" or not isinstance(data := args[1], bytes):
            return
        if (line := _LINE.match(data)) is None or len(self._requests) >= MAX_REQUESTS:
            return
        at = _places(inspect.currentframe())
        with self._lock:
            if at:
                self._requests.append({"method": line[1].decode(), "path": line[2].decode(errors="replace"), "at": at})


def _places(frame: FrameType | None) -> list[str]:
    places: list[str] = []
    while frame is not None and len(places) < MAX_PLACES:
        file = frame.f_code.co_filename
        if not file.startswith(_OTHERS):
            places.append(f"{file}:{frame.f_lineno}")
        frame = frame.f_back
    return places
