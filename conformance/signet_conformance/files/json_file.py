"""JSON files that people name: read whole and within a bound, or refused with what to do instead."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from signet_conformance.errors import SignetConformanceError, UsageError, printable

MOST_BYTES = 64 * 1024 * 1024


def read_json(
    path: str | Path,
    remedy: str,
    *,
    where: str | None = None,
    most_bytes: int = MOST_BYTES,
    error: type[SignetConformanceError] = UsageError,
) -> Any:
    """The value in a JSON file of at most `most_bytes` bytes.

    Raises `error` with the `remedy` when the file cannot be read, is larger, or is no JSON; `where` names the file
    in it, and is its path unless given.
    """
    from pydantic_core import from_json

    where = printable(path, 400) if where is None else where
    try:
        if Path(path).stat().st_size > most_bytes:
            raise error(f"is larger than {most_bytes >> 20} MiB", where=where, remedy=remedy)
        raw = Path(path).read_bytes()
    except OSError as failure:
        raise error(f"cannot be read: {failure.strerror or failure}", where=where, remedy=remedy) from None
    except ValueError as failure:
        raise error(f"cannot be read: {printable(failure)}", where=where, remedy=remedy) from None
    with contextlib.suppress(ValueError):
        return from_json(raw)
    try:
        # Slower, but it reads half an emoji too, which the writers of such files write.
        return json.loads(raw)
    except (ValueError, RecursionError) as failure:
        raise error(f"is not JSON: {printable(failure, 160)}", where=where, remedy=remedy) from None
