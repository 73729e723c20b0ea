"""How much of a result the model is given, and where the rest stands."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.messages import valid_text

TOLD_LIMIT: Final = 64 * 1024
"""Bytes of JSON that one result may take of the model's context."""
NOTE_ROOM: Final = 1_024
FILE_LIMIT: Final = 256 * 1024 * 1024
"""Bytes of one result that are kept at all."""
ERROR_LIMIT: Final = 2_000
"""Characters of an error that the model gets."""


class ResultFolder:
    """The folder of a session for results that are too long for the model; made when the first one comes.

    Without a `path` it is a private temporary folder, which :meth:`close` removes.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._is_ours = path is None
        self._numbers: Iterator[int] = count(1)

    def keep(self, name: str, content: bytes) -> Path:
        """Write a result into a new file, and name it. Raises OSError."""
        if self.path is None:
            self.path = Path(tempfile.mkdtemp(prefix="signet-results-"))
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60]
        for number in self._numbers:
            file = self.path / f"{number:03d}-{stem}.txt"
            try:
                descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            except FileExistsError:
                continue
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(content[:FILE_LIMIT])
            return file
        raise AssertionError("counting does not end")

    def close(self) -> None:
        """Remove the folder if it is a temporary one."""
        if self._is_ours and self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path = None


def bound_result(content: Any, name: str, folder: ResultFolder) -> tuple[Any, Path | None]:
    """The content as the model is given it, and the file that holds all of it if it was cut.

    Raises ValueError, TypeError or RecursionError for what is no JSON.
    """
    text = as_json(content)
    if len(text.encode()) <= TOLD_LIMIT:
        return json.loads(text), None
    whole = valid_text(content) if isinstance(content, str) else text
    size = len(whole.encode())
    told: dict[str, Any] = {"cut": True, "bytes": size, "beginning": beginning(whole, TOLD_LIMIT - NOTE_ROOM)}
    try:
        file = folder.keep(name, whole.encode())
    except OSError as error:
        return {
            **told,
            "note": f"the rest is lost: no file could be written: {error.strerror or error}"[:NOTE_ROOM],
        }, None
    note = "this file holds the whole result; read on with file_read, by offset"
    return {**told, "file": str(file), "note": note}, file


def as_json(content: Any) -> str:
    """The content as JSON. Raises ValueError, TypeError or RecursionError for what is not JSON."""
    return valid_text(json.dumps(content, ensure_ascii=False, allow_nan=False))


def beginning(text: str, most: int) -> str:
    """As much of the beginning of `text` as takes `most` bytes as a JSON string."""
    cut = text[:most]
    while (size := len(json.dumps(cut, ensure_ascii=False).encode())) > most:
        cut = cut[: max(len(cut) * most // size - 1, 0)]
    return cut
