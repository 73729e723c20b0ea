"""Files that are there as a whole or not at all, whenever their writer is stopped."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from signet_conformance.files.private_files import private_opener


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file that only its owner reads, in place of one that is there; raise OSError when it cannot be written.

    What a stopped writer leaves is PATH.part, which the next one writes over.
    """
    draft = path.with_name(f"{path.name}.part")
    with open(draft, "wb", opener=private_opener) as stream:
        stream.writelines(parts)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)
