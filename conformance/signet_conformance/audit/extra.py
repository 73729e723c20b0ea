"""The packages of the extra `fleet`, imported where they are needed and named where they are absent."""

from __future__ import annotations

import importlib
from typing import Any

from signet_conformance.errors import UsageError


def package(name: str, needed_for: str) -> Any:
    """A module of the extra; raise UsageError telling what it is needed for when it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as absent:
        missing = (absent.name or name).partition(".")[0]
        raise UsageError(
            f"{needed_for} needs the package {missing}, which is not installed",
            remedy="pip install 'signet-conformance[fleet]'"
            + ("" if missing in ("dask", "distributed", "fsspec", "duckdb") else f", and {missing} for this store"),
        ) from None
