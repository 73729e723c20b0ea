"""Facts about compactions that are held against what marks tell, or that fell into a time when nothing listened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from signet_conformance.engine import judge
from tests.engine.test_large_recordings import nothing_is_held
from tests.support.case_traces import build

from .conversation_items import native
from .test_conversation import AWAY, Item, hook, judgement, step, verdict

LONG = ",".join(f"{n}-invoices" for n in range(100))
AWAY_ON, AWAY_OFF = AWAY


def compacted(told: str, sent: str, session: str = "s1", key: str = "k-1") -> list[Item]:
    """A session in which a compaction left one summary and the connector sent another."""
    opened = [step("start", session), hook("session-start", key)]
    pre = [step("compact", session, summary=told), hook("pre-compaction", key)]
    return [*opened, *pre, hook("compaction-complete", key, summary=sent)]


@pytest.mark.parametrize(
    ("told", "sent", "expected"),
    [
        (LONG, LONG[:200], "PASS"),
        (LONG, LONG[:200] + " and so on", "PASS"),
        (LONG, LONG[:199], "WARN"),
        (LONG, LONG[1:250], "WARN"),
        ("It was told.", "It <redacted:1> told.", "PASS"),
        ("", "Anything.", "PASS"),
    ],
    ids=["cut", "cut and marked", "cut short", "without its beginning", "redacted", "nothing left"],
)
def test_summary_may_be_cut(tmp_path: Path, told: str, sent: str, expected: str) -> None:
    """The first two hundred characters say whether it is the summary that was left."""
    assert verdict(tmp_path, compacted(told, sent), "SIG-CMP-002") == expected


MINE, OTHER = "Invoices were told.", "Flowerpots were counted."
COUNTED = compacted(OTHER, OTHER, "s2", "k-2")
EARLIER = compacted(OTHER, OTHER, "s0", "k-0")
REFUSED = {**hook("compaction-complete", summary=MINE), "response": {"status": 500, "body": {"error": "busy"}}}
"""A complete that the daemon did not take: it may be told again."""


@pytest.mark.parametrize(
    ("items", "received"),
    [
        ([*compacted(OTHER, OTHER, "s2", "k-2"), *compacted(MINE, OTHER)], OTHER),
        ([*compacted(OTHER, OTHER, "s2", "k-2"), step("start"), hook("session-start"), hook("pre-compaction"),
          hook("compaction-complete", summary=MINE)], None),
        ([*compacted(OTHER, OTHER, "s0", "k-0"), *compacted(MINE, OTHER)], OTHER),
        ([*compacted(MINE, OTHER), *compacted(OTHER, OTHER)[2:]], OTHER),
        ([*compacted(MINE, MINE), *compacted(MINE, OTHER, "s2", "k-2")], OTHER),
        ([*compacted(MINE, MINE), *compacted(OTHER, MINE)[2:]], MINE),
        ([*compacted(MINE, MINE)[:-1], *compacted(OTHER, MINE)[2:]], None),
        ([*compacted(MINE, MINE)[:-1], REFUSED, *compacted(OTHER, MINE)[2:]], None),
        ([*COUNTED[:-1], *compacted(MINE, MINE), hook("compaction-complete", "k-2", summary=MINE)], MINE),
        ([*EARLIER[:-1], *compacted(MINE, MINE), hook("compaction-complete", "k-0", summary=MINE)], MINE),
        ([*compacted(MINE, MINE), hook("session-start", "k-3"), *compacted(OTHER, MINE, key="k-3")[2:]], MINE),
        ([step("compact", summary=OTHER), hook("compaction-complete", "k-9", summary=MINE)], MINE),
    ],
    ids=["of another session", "only another is told", "of one that sorts before", "left later", "the second",
         "told before", "not told before", "refused before", "told of another", "told of one before",
         "told under another key", "a key's first use"],
)  # fmt: skip
def test_summary_is_that_of_its_own_session(tmp_path: Path, items: Sequence[Item], received: str | None) -> None:
    """What was left of this session, up to this complete, is the measure."""
    findings = judgement(tmp_path, items, "SIG-CMP-002").findings
    assert [finding.received for finding in findings] == ([] if received is None else [received])
    assert all(finding.expected == min({MINE, OTHER} - {received}) for finding in findings)


def test_each_summary_of_another_session_is_told(tmp_path: Path) -> None:
    """The session that left it last is named, and the next complete is looked at too."""
    left = [*compacted(OTHER, OTHER, "s3", "k-3"), *compacted(OTHER, OTHER, "s2", "k-2")]
    begun = [item for n in (4, 5) for item in (step("start", f"s{n}"), hook("session-start", f"k-{n}"))]
    told = [
        item
        for n in (4, 5)
        for item in (native(f"s{n}", f"k-{n}"), hook("compaction-complete", f"k-{n}", summary=OTHER))
    ]
    findings = judgement(tmp_path, [*left, *begun, *told], "SIG-CMP-002").findings
    assert [finding.message for finding in findings] == [
        f"the summary of another session (s2) under the key of this one (s{n})" for n in (4, 5)
    ]


COMPLETE = hook("compaction-complete", summary=MINE)


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


def test_summary_that_was_cut_ends_no_look_at_the_next(tmp_path: Path) -> None:
    """Each complete is held against what was left."""
    items = [*compacted(LONG, LONG[:200] + " and so on"), *compacted(MINE, OTHER, "s2", "k-2")]
    (finding,) = judgement(tmp_path, items, "SIG-CMP-002").findings
    assert finding.received == OTHER


def test_each_pre_compaction_is_judged_by_what_came_after_it(tmp_path: Path) -> None:
    """One may have been completed while nothing listened; the next was not."""
    pre = hook("pre-compaction")
    items = [hook("session-start"), pre, *AWAY, pre, hook("user-prompt-submit")]
    (finding,) = judgement(tmp_path, items, "SIG-CMP-008").findings
    assert finding.exchanges == (5, 6)


KEYLESS_PRE, KEYLESS_COMPLETE = (
    hook(name, "", summary=MINE, harness="pi") for name in ("pre-compaction", "compaction-complete")
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
