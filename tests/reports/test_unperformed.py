"""Which steps a real program was not brought to, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_conformance.reports.remarks import remarks
from tests.support.case_traces import build


def mark(name: str, /, **data: Any) -> dict[str, Any]:
    """A mark."""
    return {"mark": name, "data": data}


@pytest.mark.parametrize("real", [True, False])
def test_a_step_that_a_real_program_skipped_is_named_with_its_reason(real: bool, tmp_path: Path) -> None:
    """Once for all scenarios with it; what a played harness has no counterpart for is no remark."""
    traces = [
        build(
            tmp_path / f"{name}.jsonl",
            [
                mark("scenario", name=name),
                mark("loaded", ok=True, host="omp", release="1", real=real),
                mark("step", index=3, step="tool", session="s1"),
                mark("skipped", index=3, reason="the connector has no tool memory_search"),
            ],
        )
        for name in ("day", "night")
    ]
    told = ["omp did not perform tool in day, night: the connector has no tool memory_search"]
    assert remarks(traces) == (told if real else [])
