"""Facts about compactions that are held against what marks tell, or that fell into a time when nothing listened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from signet_conformance.engine import judge
from tests.engine.test_large_recordings import nothing_is_held
from tests.support.case_traces import build

from .test_conversation import AWAY, Item, hook, judgement, verdict

AWAY_ON, AWAY_OFF = AWAY


COMPLETE = hook("compaction-complete", summary="Invoices were told.")


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([*AWAY, COMPLETE], "INCONCLUSIVE"),
        ([AWAY_ON, COMPLETE, AWAY_OFF], "INCONCLUSIVE"),
        ([hook("session-start"), *AWAY, COMPLETE], "INCONCLUSIVE"),
        ([*AWAY, hook("session-start"), COMPLETE], "WARN"),
        ([AWAY_ON, hook("session-start"), hook("session-start", "k-2"), AWAY_OFF, COMPLETE], "INCONCLUSIVE"),
        ([hook("session-start"), hook("user-prompt-submit"), COMPLETE, *AWAY], "WARN"),
        ([hook("session-start"), *AWAY, hook("user-prompt-submit"), COMPLETE], "WARN"),
        ([*AWAY, hook("session-start"), hook("user-prompt-submit"), COMPLETE], "WARN"),
    ],
    ids=[
        "first",
        "meanwhile",
        "between",
        "before all",
        "over the last",
        "afterwards",
        "before the last",
        "before both",
    ],
)
def test_pre_compaction_may_have_met_nobody(tmp_path: Path, items: Sequence[Item], expected: str) -> None:
    """Where nothing listened since the key's last hook, a pre-compaction may be lost; where it did, it was not sent."""
    assert verdict(tmp_path, items, "SIG-CMP-003") == expected


def test_second_complete_is_judged_by_what_went_before(tmp_path: Path) -> None:
    """A complete that was refused leaves its pre-compaction for the next; an accepted one takes it."""
    refused = {**COMPLETE, "response": {"status": 500, "body": {"error": "busy"}}}
    for first, expected in ((refused, "PASS"), (COMPLETE, "WARN")):
        items = [hook("session-start"), hook("pre-compaction"), first, COMPLETE]
        assert verdict(tmp_path, items, "SIG-CMP-003") == expected


def test_each_pre_compaction_is_judged_by_what_came_after_it(tmp_path: Path) -> None:
    """One may have been completed while nothing listened; the next was not."""
    pre = hook("pre-compaction")
    items = [hook("session-start"), pre, *AWAY, pre, hook("user-prompt-submit")]
    (finding,) = judgement(tmp_path, items, "SIG-CMP-008").findings
    assert finding.exchanges == (5, 6)


KEYLESS_PRE, KEYLESS_COMPLETE = (
    hook(name, "", summary="Invoices were told.", harness="pi") for name in ("pre-compaction", "compaction-complete")
)


@pytest.mark.parametrize("requirement", ["SIG-CMP-003", "SIG-CMP-004"])
@pytest.mark.parametrize(
    "items",
    [
        [KEYLESS_PRE, hook("session-start"), KEYLESS_COMPLETE],
        [KEYLESS_PRE, KEYLESS_COMPLETE, hook("session-start"), KEYLESS_COMPLETE],
        [KEYLESS_PRE, hook("pre-compaction"), KEYLESS_COMPLETE, COMPLETE, hook("pre-compaction"), KEYLESS_COMPLETE],
        [hook("session-start"), hook("pre-compaction"), COMPLETE, COMPLETE],
    ],
    ids=["prepared", "twice", "beside a session", "of a session"],
)
def test_hooks_without_a_key_count_as_one_key(tmp_path: Path, items: Sequence[Item], requirement: str) -> None:
    """In a recording too large to be held too, where they lie in pieces far from each other."""
    file, only = tmp_path / "trace.jsonl", frozenset({requirement})
    held = judge(build(file, items), only).judgements[requirement]
    with nothing_is_held():
        assert judge(build(file, items), only).judgements[requirement] == held
