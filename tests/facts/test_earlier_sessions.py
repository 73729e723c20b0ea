"""Facts about what a connector still owes to sessions of recordings before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from signet_conformance import engine
from signet_conformance.finding import Verdict
from tests.rules.step_items import CHECKPOINT, Item, end, hook, mark, prompt, recall, save, start, step

EARLIER = {"mark": "scenario", "data": {"name": "generated-0-1", "earlier_keys": ["k1"]}}
COMPLETE = hook("compaction-complete")


@pytest.mark.parametrize("owed", [end(), CHECKPOINT, COMPLETE, save("k1"), recall("k1")])
def test_what_is_owed_to_an_earlier_session_is_of_no_session_here(owed: Item, recorded: Any) -> None:
    """It is among the calls, and no rule about sessions or steps has it as a subject."""
    recording = recorded(EARLIER, step("start", "s2"), start("k2"), owed)
    assert [call.key for call in recording.calls] == ["k2", "k1"]
    assert [*recording.hooks_of] == ["k2"]
    assert not recording.of(recording.calls[-1].operation)
    assert [call.key for call in recording.timeline.calls_in(recording.timeline.steps[0])] == ["k2"]
    assert not recording.later(recording.calls[-1])


@pytest.mark.parametrize(
    ("items", "subjects"),
    [
        ([EARLIER, start(), end()], 2),
        ([EARLIER, end(), start(), end()], 2),
        ([EARLIER, prompt(), end()], 2),
        ([EARLIER, mark("session_key", session="s1", key="k1"), end()], 1),
        ([{"mark": "scenario", "data": {"name": "generated-0-0"}}, end()], 1),
    ],
)
def test_session_that_goes_on_here_is_judged_here(items: Sequence[Item], subjects: int, recorded: Any) -> None:
    """From its first start or prompt on, or where the host names the key for a session of this recording."""
    assert len(recorded(*items).hooks_of["k1"]) == subjects


FORGOTTEN = {**prompt(), "response": {"status": 200, "body": {"inject": "", "sessionKnown": False}}}


@pytest.mark.parametrize(
    ("items", "verdict"),
    [
        ([CHECKPOINT], Verdict.PASS),
        ([hook("session-checkpoint-extract", "k3")], Verdict.FAIL),
        ([FORGOTTEN, end()], Verdict.FAIL),
    ],
)
def test_hook_without_a_start_beside_earlier_sessions(items: Sequence[Item], verdict: Verdict, recorded: Any) -> None:
    """Only keys that the connector's process has begun are excused, and no prompt of theirs."""
    recording = recorded(EARLIER, start("k2"), *items)
    judged = engine.judge(recording.trace, frozenset({"SIG-START-004"}))
    assert judged.judgements["SIG-START-004"].verdict is verdict
