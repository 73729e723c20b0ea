"""Facts about the order of turns: what shows that a transcript tells them otherwise than they took place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import Verdict
from tests.support.case_traces import build

from .test_transcripts import Item, transcript


def said(text: str | None, reply: str | None) -> Item:
    """A user turn as the kit gave it to the connector."""
    return {"mark": "step", "data": {"step": "prompt", "session": "s1", "text": text, "reply": reply}}


NONE = "NOT-APPLICABLE"
ORDERS: Mapping[str, tuple[str, Sequence[Item], list[tuple[int, ...]]]] = {
    "one turn has no order": (NONE, [transcript("u1")], []),
    "two turns have one": ("PASS", [transcript("u1 a1")], []),
    "the same two turns in opposite order": (
        "WARN", [transcript("u1 a1", "session-checkpoint-extract"), transcript("a1 u1")], [(1, 2), (2, 1)],
    ),
    "a shorter transcript leaves the next to be judged": (
        "WARN", [transcript("u1"), transcript("u1 a1", "session-checkpoint-extract"), transcript("a1 u1")],
        [(2, 3), (3, 2)],
    ),
    "a turn that stands twice in one of them shows nothing": (
        "PASS", [transcript("u1 a1", "session-checkpoint-extract"), transcript("u2 a1 u1 a1")], [],
    ),
    "neither does one that stands twice as the first": (
        "PASS", [transcript("u1 a1", "session-checkpoint-extract"), transcript("u1 a2 u2 a1 u1 a3")], [],
    ),
    "transcripts of two sessions are no two of one": (
        "PASS", [transcript("u1 a1 u2"), transcript("u2 a1 u1", sessionKey="s-2")], [],
    ),
    "assistant first and user last may be reversed": ("INCONCLUSIVE", [transcript("a1 u1 a2 u2")], []),
    "assistant first and last is not": ("PASS", [transcript("a1 u1 a2")], []),
    "user first and last is not": ("PASS", [transcript("u1 a1 u2")], []),
    "two turns of one role side by side were not reversed in pairs": ("PASS", [transcript("a1 u1 u2")], []),
    "marks tell the order": ("WARN", [said("u1", "a1"), transcript("a1 u1")], [(2,)]),
    "marks tell it of single turns": ("WARN", [said("u1", None), said("u2", None), transcript("u2 u1")], [(3,)]),
    "a turn between that marks do not tell changes nothing": (
        "WARN", [said("u1", None), said("u2", None), transcript("u2 a9 u1")], [(3,)],
    ),
    "marks that tell the order as it stands": ("PASS", [said("u1", "a1"), transcript("u1 a1")], []),
    "marks that tell of other turns": ("PASS", [said("u8", "a8"), transcript("a1 u1")], []),
    "a turn that took place twice says nothing": (
        "PASS", [said("u1", None), said("u2", None), said("u1", None), transcript("u2 u1")], [],
    ),
    "twelve letters that were said twice may have lost their first neighbour": (
        "PASS",
        [said("u-go-on-with", "a1"), said("u-go-on-with", "a2"),
         transcript("u:monday:u-go-on-with a1", "session-checkpoint-extract"),
         transcript("a1 u:monday:u-go-on-with")], [],
    ),
    "so may words that both speakers said": (
        "PASS",
        [said("u-go-on-with", "a1"), said("u2", "u-go-on-with"),
         transcript("u:monday:u-go-on-with a1", "session-checkpoint-extract"),
         transcript("a1 u:monday:u-go-on-with")], [],
    ),
    "and words that the model said twice": (
        "PASS",
        [said("u1", "u-go-on-with"), said("u2", "u-go-on-with"),
         transcript("u:monday:u-go-on-with a1", "session-checkpoint-extract"),
         transcript("a1 u:monday:u-go-on-with")], [],
    ),
    "words that were said once have one neighbour": (
        "WARN",
        [said("u-go-on-with", "a1"), transcript("u:monday:u-go-on-with a9", "session-checkpoint-extract"),
         transcript("a9 u:monday:u-go-on-with")],
        [(2, 3), (3, 2)],
    ),
    "fewer letters that were said twice stand in many a turn": (
        "WARN",
        [said("u-go-on-now", "a1"), said("u-go-on-now", "a2"),
         transcript("u:monday:u-go-on-now a9", "session-checkpoint-extract"), transcript("a9 u:monday:u-go-on-now")],
        [(3, 4), (4, 3)],
    ),
    "a turn that stands twice says nothing": (
        "PASS", [said("u1", None), said("u2", None), transcript("u2 u1 u2")], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("fact", ORDERS)
def test_order_of_turns(fact: str, tmp_path: Path) -> None:
    """A transcript whose turns stand in another order than they took place is a breach, where something shows it."""
    verdict, items, exchanges = ORDERS[fact]
    judgement = judge(build(tmp_path / "trace.jsonl", items), frozenset({"SIG-END-012"})).judgements["SIG-END-012"]
    assert (judgement.verdict, judgement.message) == (Verdict(verdict), judgement.message)
    assert verdict != "WARN" or [finding.exchanges for finding in judgement.findings] == exchanges


def test_true_order_is_shown(tmp_path: Path) -> None:
    """The first two turns that stand the other way round are named in the order in which they took place."""
    items = [said("u1", "a1"), said("u2", "a2"), transcript("u1 u2 a1 a2")]
    judgement = judge(build(tmp_path / "trace.jsonl", items), frozenset({"SIG-END-012"})).judgements["SIG-END-012"]
    assert judgement.findings[0].expected == "'a1' before 'u2'"
