"""Makes suites of data sets that others publish. The files are the user's: none is shipped, none is downloaded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.bench.converters import beam, locomo, longmemeval, memoryagentbench
from signet_reference_harness.bench.converters.source import Source, read_source

Convert = Callable[[Source], Iterator[dict[str, Any]]]

CONVERTERS: Final[dict[str, Convert]] = {
    "locomo": lambda source: locomo.convert(source, captions=False),
    "locomo-captions": lambda source: locomo.convert(source, captions=True),
    "longmemeval": longmemeval.convert,
    "memoryagentbench": memoryagentbench.convert,
    "beam": beam.convert,
}
"""The data sets by name. `locomo-captions` has in each turn what its picture shows."""


def converted(name: str, path: Path) -> bytes:
    """The suite made of a published file, or a folder of files, as bytes. Raises DocumentError."""
    source = beam.read(path) if name == "beam" else read_source(path)
    lines = (json.dumps(line, ensure_ascii=False) for line in CONVERTERS[name](source))
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
