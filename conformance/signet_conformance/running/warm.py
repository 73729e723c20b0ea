"""Has the programs of a run imported ahead, while this process imports what the run itself needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from signet_conformance.children import forks
from signet_conformance.running.plan import EMBEDDED


@contextmanager
def warmed(target: str | None, daemon: str | None) -> Iterator[None]:
    """Within it, what a run against this target starts of the kit's own is forked, and is being made ready already."""
    with forks.held():
        embedded = (daemon or EMBEDDED).partition(":")[0] == EMBEDDED
        forks.warm_up(
            *(["signet_conformance.daemon"] if embedded else []),
            "signet_recording_proxy",
            *(["signet_reference_harness"] if target == "reference" else []),
        )
        yield
