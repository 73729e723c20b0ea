"""Audits of many recordings: those of a data set, judged in batches, as rows, a summary and a page.

A recording is judged alone, by any free worker; what several of them show together (`between`) is worked out from the
rows of their sessions. The results hold nothing of a recording's place or of its texts. Here is only `import_extra`, by
which the modules load the packages of the extra `fleet`.
"""

from __future__ import annotations

import importlib
from typing import Any

from signet_conformance.errors import UsageError, pip_install


def import_extra(name: str, needed_for: str) -> Any:
    """Import a module of the extra `fleet`. Raises UsageError, which names the extra, where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as absent:
        missing = (absent.name or name).partition(".")[0]
        raise UsageError(
            f"{needed_for} needs the package {missing}, which is not installed",
            remedy=pip_install("fleet")
            + ("" if missing in ("dask", "distributed", "fsspec", "duckdb") else f", and {missing} for this store"),
        ) from None
