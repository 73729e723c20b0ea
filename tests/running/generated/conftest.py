"""The broken reference is forked like the reference itself: shrinking starts hundreds of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from signet_conformance.children import forks
from tests.running.generated.live import BROKEN


@pytest.fixture(scope="session", autouse=True)
def _forked() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forks, "PROGRAMS", {**forks.PROGRAMS, str(BROKEN): forks.PROGRAMS["signet_reference_harness"]})
        with forks.server():
            yield
