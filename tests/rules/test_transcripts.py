"""Facts about transcripts: which turns stand side by side in them, and when their order is shown to be wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.facts import Recording
from signet_conformance.finding import Verdict
from signet_conformance.rules.transcripts import pairs_of, transcripts_of
from tests.support.case_traces import KEYED, build

Item = Mapping[str, Any]
Pair = tuple[str, str]
ROLES = {"u": "user", "a": "assistant"}


def transcript(turns: str, operation: str = "session-end", **fields: Any) -> Item:
    """A hook with a transcript of such turns as `u1 a1 u2`: whose they are, and which."""
    lines = [json.dumps({"role": ROLES[name[0]], "content": name}) for name in turns.split()]
    body = {**KEYED, "transcript": "\n".join(lines), **fields}
    return {"request": {"method": "POST", "path": f"/api/hooks/{operation}", "body": body}}


def said(text: str | None, reply: str | None) -> Item:
    """A user turn as the kit gave it to the connector."""
    return {"mark": "step", "data": {"step": "prompt", "session": "s1", "text": text, "reply": reply}}


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ("u1 a1", {("u1", "a1"): False}),
        ("a1 u1", {("a1", "u1"): False}),
        ("u1 a1 u2", {("u1", "a1"): True, ("a1", "u2"): False}),
        ("u1 a1 u2 a2", {("u1", "a1"): True, ("a1", "u2"): False, ("u2", "a2"): False}),
        ("u1 a1 u1 a2", {}),
        ("u1 a1 u2 a1", {}),
        ("u1 a1 u2 a2 u2", {("u1", "a1"): True}),
        ("u1 u2 a2 a3", {("u2", "a2"): False}),
    ],
)
def test_neighbours(turns: str, expected: Mapping[Pair, bool], tmp_path: Path) -> None:
    """Two turns of different roles, each once in the transcript, and whether a newer user turn follows the second."""
    recording = Recording(build(tmp_path / "trace.jsonl", [transcript(turns)]))
    told = {(a[1], b[1]): place.newer_user_turn for (a, b), (place,) in pairs_of(recording, "s-41c7").items()}
    assert told == expected


@pytest.mark.parametrize(
    ("turns", "once"), [("u1 a1", {"u1", "a1"}), ("u1 a1 u1", {"a1"}), ("u1 u1", set()), ("u1 u1 u1 a1", {"a1"})]
)
def test_turns_that_occur_once(turns: str, once: set[str], tmp_path: Path) -> None:
    """A turn that stands twice in a transcript can be told from no other."""
    (known,) = transcripts_of(Recording(build(tmp_path / "trace.jsonl", [transcript(turns)])))
    assert {text for _, text in known.once} == once
    assert [text for _, text in known.turns] == turns.split()


def test_transcripts_of_checkpoints_count_and_others_do_not(tmp_path: Path) -> None:
    """Ends and checkpoints with a key carry transcripts; each key has neighbours of its own."""
    items = [
        transcript("u1 a1", "session-checkpoint-extract"),
        transcript("u2 a2", sessionKey="s-2"),
        transcript("u3 a3", sessionKey=""),
        transcript("u4 a4", "pre-compaction"),
        transcript("u1 a1"),
    ]
    recording = Recording(build(tmp_path / "trace.jsonl", items))
    assert [known.call.seq for known in transcripts_of(recording)] == [1, 2, 5]
    assert [[place.call.seq for place in places] for places in pairs_of(recording, "s-41c7").values()] == [[1, 5]]
    assert pairs_of(recording, "no such key") == {}


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
    "words that were said twice may have lost their first neighbour": (
        "PASS",
        [said("u-go-on-with-it", "a1"), said("u-go-on-with-it", "a2"),
         transcript("u:monday:u-go-on-with-it a1", "session-checkpoint-extract"),
         transcript("a1 u:monday:u-go-on-with-it")], [],
    ),
    "so may words that both speakers said": (
        "PASS",
        [said("u-go-on-with-it", "a1"), said("u2", "u-go-on-with-it"),
         transcript("u:monday:u-go-on-with-it a1", "session-checkpoint-extract"),
         transcript("a1 u:monday:u-go-on-with-it")], [],
    ),
    "and words that the model said twice": (
        "PASS",
        [said("u1", "u-go-on-with-it"), said("u2", "u-go-on-with-it"),
         transcript("u:monday:u-go-on-with-it a1", "session-checkpoint-extract"),
         transcript("a1 u:monday:u-go-on-with-it")], [],
    ),
    "a short word that was said twice stands in many": (
        "WARN",
        [said("u1", "a1"), said("u1", "a2"), transcript("u12 a9", "session-checkpoint-extract"), transcript("a9 u12")],
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
