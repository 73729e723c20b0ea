"""A pending line counts where the line of its exchange does not follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_conformance.trace import Gap, read, reading
from tests.support.trace_files import end, health, recall, start, write

BODY = {"cut": True, "size": 90_000, "sha256": None, "text": "", "undecoded": "not written"}


def pending(line: dict[str, Any]) -> dict[str, Any]:
    """What holds the place of a line."""
    return {"kind": "pending", "conn": 1, "t0": 1.0, "t1": 1.5, **line, "request": {**line["request"], "body": BODY}}


@pytest.mark.parametrize("held_bytes", [reading.HELD_BYTES, 0], ids=["held", "read from the file"])
def test_a_pending_line_counts_once(held_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exchange's line takes its place, wherever that stands; without one it is the exchange, and says its gap."""
    monkeypatch.setattr(reading, "HELD_BYTES", held_bytes)
    conforming = (health(), start(), recall(), end())
    first, second, third, fourth = [{**line, "seq": seq} for seq, line in enumerate(conforming, 1)]
    lines = [first, pending(second), pending(third), second, fourth]
    written = read(write(tmp_path / "a.jsonl", lines))
    assert [exchange.seq for exchange in written.exchanges] == [1, 2, 3, 4]
    bodies = [exchange.request.body and exchange.request.body.undecoded for exchange in written.exchanges]
    assert bodies == [None, None, "not written", None]
    assert written.gaps == (Gap(3, "POST", "/api/memory/recall", "request", "not written"),)
    assert [exchange.pending for exchange in written.exchanges] == [False, False, True, False]
