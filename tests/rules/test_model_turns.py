"""Facts about the user's turns as both recordings tell them: where each begins and ends, and which requests are its."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path

import pytest

from signet_conformance.facts import Recording
from signet_conformance.rules.model import NO_TURNS, NOT_RECORDED, why_not_judged
from signet_conformance.rules.model.turns import model_requests, turns
from signet_conformance.trace import read

from .model_requests import ASKED, Item, model
from .model_turns import MEMORY, asks, recorded, said, start, step, verdicts

AGAIN = "Say it once more."
SKIPPED = {"mark": "skipped", "data": {"index": 3, "reason": "no counterpart"}}


def test_a_turn_lasts_to_the_next_step_that_is_no_tool_of_its_own(tmp_path: Path) -> None:
    """The model's tools belong to the turn in which they are called, those of another session do not."""
    items = [
        asks(), step("start"), said(), asks(), step("tool"), asks(), step("tool"), asks(), step("tool", "s2"), asks(),
        said(AGAIN, "s2"), asks(), {"mark": "fault", "data": {"kind": "refuse", "on": True, "id": 1}}, asks(),
        said(AGAIN, "s3"), asks(), step("tool", "s3"), asks(),
    ]  # fmt: skip
    told = [
        (turn.session, turn.low, turn.over, turn.high, turn.began, [request.seq for request in turn.asked])
        for turn in turns(recorded(tmp_path, items))
    ]
    assert told == [
        ("s1", 3, 9, 9, 3.0, [4, 6, 8]),
        ("s2", 11, 13, 15, 11.0, [12, 14]),
        ("s3", 15, 17 + 10**9, inf, 15.0, [16, 18]),
    ]


def test_a_tool_of_a_session_that_sorts_before_ends_the_turn(tmp_path: Path) -> None:
    """Whose tool it is decides, whatever the sessions are called."""
    items = [said(ASKED, "s2"), asks(), step("tool", "s1"), asks(), step("tool", "s2"), asks()]
    (turn,) = turns(recorded(tmp_path, items))
    assert (turn.high, [request.seq for request in turn.asked]) == (3, [2])


@pytest.mark.parametrize(
    "odd",
    [
        step("clear", text=ASKED),
        step("end", text=ASKED),
        step("sessionless_prompt", text=ASKED),
        step("tool", text=ASKED),
        step("unheard_of", text=ASKED),
        said(None),
        said("   "),
    ],
    ids=lambda item: f"{item['data']['step']} {item['data']['text']!r}",
)
def test_only_a_prompt_with_words_is_a_turn(odd: Item, tmp_path: Path) -> None:
    """Another step that has a text, and a prompt that has none, are no turns; they end the turn before."""
    assert [turn.low for turn in turns(recorded(tmp_path, [step("start"), odd, asks(), said(), asks()]))] == [4]


def test_a_step_that_was_skipped_is_no_turn(tmp_path: Path) -> None:
    """Only the step of that number is left out."""
    items = [said(index=2), asks(), said(AGAIN, index=3), SKIPPED, asks(text=AGAIN), said(index=4), asks()]
    assert [turn.low for turn in turns(recorded(tmp_path, items))] == [1, 6]


@pytest.mark.parametrize(("mine", "other"), [("s1", "s2"), ("s2", "s1"), ("s1", None)])
def test_turns_are_told_apart_by_their_session(mine: str, other: str | None, tmp_path: Path) -> None:
    """What one session was given is looked for in its own turn."""
    items = [step("start", mine), start(), said(AGAIN, other), asks("", AGAIN), said(ASKED, mine), asks(MEMORY)]
    assert verdicts(tmp_path, 1, items) == ["PASS"]


def _without_a_step(file: Path) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if b'"name":"step"' in line)
    file.write_bytes(b"".join([*lines[:last], *lines[last + 1 :]]))


@pytest.mark.parametrize("side", ["run.jsonl", "run.model.jsonl"])
def test_recordings_of_other_steps_have_no_turns(side: str, tmp_path: Path) -> None:
    """A step that stands in one recording only leaves open which request belongs to which turn."""
    recording = recorded(tmp_path, [said(), asks(), said(AGAIN), asks()])
    assert (len(turns(recording)), why_not_judged(recording)) == (2, None)
    _without_a_step(tmp_path / side)
    shorter = Recording(read(tmp_path / "run.jsonl"))
    assert (turns(shorter), why_not_judged(shorter)) == ((), NO_TURNS)
    (tmp_path / "run.model.jsonl").unlink()
    alone = Recording(read(tmp_path / "run.jsonl"))
    assert (turns(alone), why_not_judged(alone)) == ((), NOT_RECORDED)


@pytest.mark.parametrize("late", [-90.0, 40.0])
def test_the_models_times_are_told_in_the_daemons(late: float, tmp_path: Path) -> None:
    """A recorder that was started later, or earlier, counts its seconds from then."""
    recorded(tmp_path, [said(), asks(t0=7.0)])
    file = tmp_path / "run.model.jsonl"
    head, *rest = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join([json.dumps({**json.loads(head), "clock_s": 100.0 + late}) + "\n", *rest]), "utf-8")
    (request,) = model_requests(Recording(read(tmp_path / "run.jsonl")))
    assert request.t0 == 7.0 + late


WORDS = "Something else entirely"
MAIN: list[tuple[str, list[Item], list[int]]] = [
    ("its own", [asks(), asks()], [2, 3]),
    ("a title beside", [asks(tools=False), asks()], [3]),
    ("none with tools", [asks(tools=False), asks(text=WORDS)], [2]),
    ("said by the system", [asks(ASKED, WORDS)], []),
    ("said by the model", [asks(messages=[{"role": "assistant", "content": ASKED}])], []),
    ("returned by a tool", [model({"messages": [{"role": "tool", "content": ASKED}]}, "/v1/chat/completions")], []),
    ("a part of a word", [asks(text="When do we deploy Atlases?")], []),
    ("quoted", [asks(text=f"> {ASKED.upper()} <")], [2]),
]


@pytest.mark.parametrize(("requests", "expected"), [row[1:] for row in MAIN], ids=[row[0] for row in MAIN])
def test_a_turns_own_requests_are_those_in_which_the_user_says_its_words(
    requests: list[Item], expected: list[int], tmp_path: Path
) -> None:
    """Where some of them offer tools, the others are titles, topics and summaries."""
    (turn,) = turns(recorded(tmp_path, [said(), *requests]))
    assert [request.seq for request in turn.main] == expected


def test_words_of_no_letters_have_no_requests(tmp_path: Path) -> None:
    """A turn of signs alone would stand in any request."""
    (turn,) = turns(recorded(tmp_path, [said("?!"), asks(text="?!")]))
    assert (turn.main, len(turn.asked)) == ((), 1)
