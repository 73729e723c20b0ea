"""Imports the modules of a run's programs ahead, while this process imports those of the run itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from signet_conformance.children import forks


@contextmanager
def warmed(target: str | None, daemon: str | None) -> Iterator[None]:
    """Fork the kit's own programs of a run during the block, and begin to make them ready."""
    with forks.held():
        embedded = (daemon or "embedded").partition(":")[0] == "embedded"
        forks.warm_up(
            *(["signet_conformance.daemon"] if embedded else []),
            "signet_recording_proxy",
            *(["signet_reference_harness"] if target == "reference" else []),
        )
        yield
