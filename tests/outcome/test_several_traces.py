"""Facts about traces together: which warnings touch every session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from signet_conformance.engine import judge
from signet_conformance.outcome.several_traces import SessionMeter
from tests.support.case_traces import build
from tests.support.daemon_items import STEP, end, prompt, start


def touching(folder: Path, *recordings: list[dict[str, Any]]) -> list[str]:
    """What is broken in each session of some recordings."""
    meter = SessionMeter()
    for number, items in enumerate(recordings):
        meter.add(judge(build(folder / f"{number}.jsonl", items)))
    return [*meter.in_every_session()]


def test_what_each_session_breaks_is_named(tmp_path: Path) -> None:
    """Sessions that are never ended warn of END-005; one that is ended keeps it from being said of all."""
    open_one = [STEP, start(), prompt()]
    assert "SIG-END-005" in touching(tmp_path, open_one, open_one)
    assert "SIG-END-005" not in touching(tmp_path, open_one, [*open_one, end()])


def test_without_a_session_nothing_touches_every_one(tmp_path: Path) -> None:
    """A recording without a prompt has no session that a user would notice."""
    assert touching(tmp_path, [STEP, start(), start()]) == []
