"""Facts about transcripts: which turns stand side by side in them, and which stand there once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.facts import Recording
from signet_conformance.rules import transcripts
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


@pytest.mark.parametrize("speaker", ["Tool", "toolResult", "tool output", "System", "developer", "Custom"])
def test_lines_of_other_speakers_are_nobodys_turns(speaker: str, tmp_path: Path) -> None:
    """What a tool or the harness said in a transcript of lines ends the turn before it, and belongs to no turn."""
    lines = f"User: list the jobs\n{speaker}: 14 jobs\nthe last is late\nAssistant: the last one is late"
    body = {**KEYED, "transcript": lines}
    end = {"request": {"method": "POST", "path": "/api/hooks/session-end", "body": body}}
    (known,) = transcripts_of(Recording(build(tmp_path / "trace.jsonl", [end])))
    assert known.turns == [("user", "list the jobs"), ("assistant", "the last one is late")]


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


def test_transcripts_that_are_no_longer_remembered_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording may have more of them than are kept, and tells the same of each."""
    monkeypatch.setattr(transcripts, "_MOST_CACHED", 2)
    items = [transcript(f"u{number} a{number}", sessionKey=f"s-{number}") for number in range(5)]
    recording = Recording(build(tmp_path / "trace.jsonl", items))
    for _ in range(2):
        assert [known.turns[0][1] for known in transcripts_of(recording)] == [f"u{number}" for number in range(5)]
        assert [len(pairs_of(recording, f"s-{number}")) for number in range(5)] == [1] * 5
    assert {len(held) for held in recording.memo.values()} == {2}
