"""The summary of a headless task in its file, and the exit status that says the same."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Final

from signet_reference_harness.errors import HarnessError
from signet_reference_harness.session.summary import Status, Summary

EXIT_STATUSES: Final[dict[Status, int]] = {"done": 0, "failed": 1, "invalid": 2, "timeout": 124, "cancelled": 130}


def write_summary(summary: Summary, path: Path) -> None:
    """Put the summary in the place of whatever `path` holds, whole or not at all. Raises HarnessError."""
    text = json.dumps(summary.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False) + "\n"
    try:
        # Beside the file, so that the last step is a rename on one disk.
        handle, name = tempfile.mkstemp(prefix=".summary.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise HarnessError(
            f"--summary {path}: cannot be written: {error.strerror or error}", remedy="name a file in a folder of yours"
        ) from None
