"""Facts about the user's words before the model: whole, in a row, and as often as they were said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from .model_requests import ASKED, Item
from .model_turns import MEMORY, OPEN, PASS, WARN, asks, hook, only, said, start, step, verdicts

LONG = "Please look at the billing service and tell me which port it listens on."
QUOTED = f'<signet-memory query="{ASKED}">\n{MEMORY}\n</signet-memory>\n\n{ASKED}'
TWO = "First list the open invoices.\nThen close the month."


def user(*texts: str) -> list[Mapping[str, Any]]:
    """Messages of the user."""
    return [{"role": "user", "content": text} for text in texts]


def asked(text: str, *told: str, tools: bool = True) -> list[Item]:
    """A turn in which the user says a text, and the model is told others."""
    return [step("start"), start(), said(text), asks(messages=user(*told), tools=tools)]


CUT: Item = {
    "side": "model",
    "request": {
        "method": "POST",
        "path": "/v1/messages",
        "raw_body": {"cut": True, "size": 9, "sha256": "0" * 64, "text": "{"},
    },
}
CASES: Mapping[str, tuple[Sequence[Item], list[object]]] = {
    "as they were said": (asked(ASKED, ASKED), [PASS]),
    "behind a stamp": (asked(ASKED, f"[Thu 2026-11-26 16:13 UTC] {ASKED}"), [PASS]),
    "before context of the harness": (asked(ASKED, f"{ASKED}\n\n<memory>\n{MEMORY}\n</memory>"), [PASS]),
    "quoted by what wraps a memory": (asked(ASKED, QUOTED), [PASS]),
    "in other letters and marks": (asked(ASKED, ASKED.upper().replace("?", " !")), [PASS]),
    "in another normalisation form": (asked("Wo steht das Café heute?", "Wo steht das Cafe\u0301 heute?"), [PASS]),
    "twice": (asked(ASKED, f"{ASKED}\n\n{ASKED}"), [WARN]),
    "in two messages": (asked(ASKED, ASKED, ASKED), [WARN]),
    "twice, of two lines": (asked(TWO, f"{TWO}\n{TWO}"), [WARN]),
    "one of two lines twice": (asked(TWO, f"{TWO}\nThen close the month."), [PASS]),
    "twice, and said in two turns": (
        [*asked(ASKED, ASKED), said(), asks(messages=user(ASKED, ASKED))], [PASS, PASS]
    ),
    "twice, and said by the model": (
        [step("start"), start(), said(reply=ASKED), asks(messages=user(ASKED, ASKED))], [PASS]
    ),
    "twice, and said by the daemon": (
        [step("start"), start(f"{MEMORY}\n{ASKED}"), said(), asks(messages=user(ASKED, f"{MEMORY}\n{ASKED}"))], [PASS]
    ),
    "twice, after a compaction": (
        [*asked(ASKED, ASKED), step("compact"), said(), asks(messages=user(ASKED, ASKED, ASKED))], [PASS, PASS]
    ),
    "twice, quoted by a summary": (
        [step("start"), start(), step("compact", summary=ASKED), said(), asks(messages=user(ASKED, ASKED))], [PASS]
    ),
    "twice, behind a stamp each": (asked(ASKED, *[f"[16:13] {ASKED}"] * 2), [WARN]),
    "twice, and said in the next turn": (
        [*asked(ASKED, ASKED, ASKED), said(), asks(messages=user(ASKED, ASKED))], [WARN, PASS]
    ),
    "twice, and said in another session": (
        [step("start", "s2"), said(session="s2"), *asked(ASKED, ASKED, ASKED)], [WARN]
    ),
    "twice, in a turn of no session": ([said(session=None), asks(messages=user(ASKED, ASKED))], [PASS]),
    "once more in the system text": (
        [step("start"), start(), said(), asks(f"The user asks: {ASKED}\n{ASKED}", messages=user(ASKED))], [PASS]
    ),
    "over two messages": (asked(TWO, *TWO.split("\n")), [PASS]),
    "replaced, one of three words": (asked("Close the month", "Close the year"), [WARN]),
    "replaced, two of four words": (asked("Close the month now", "Close the year soon"), [WARN]),
    "replaced, beside a request that was not recorded": (
        [*asked(LONG, LONG.replace("billing", "ledger")), CUT], []
    ),
    "with a word replaced": (asked(LONG, LONG.replace("billing", "ledger")), [WARN]),
    "without their end": (asked(LONG, LONG[:50]), [WARN]),
    "without their end, as the host says": (
        asked(f"{LONG}\n{LONG.upper()} Now.", f"{LONG}\n[truncated, the rest is left out]"), [OPEN]
    ),
    "twice, of a line that is said twice": (asked("No.\nNo.", "No.\nNo.\nNo."), [WARN]),
    "once, of lines that begin alike": (asked("No.\nNo.\nYes.", "No.\nNo.\nNo.\nYes."), [PASS]),
    "in another order of lines": (asked(TWO, "Then close the month.\nFirst list the open invoices."), [WARN]),
    "not at all": (asked(LONG, "Write a haiku."), []),
    "replaced in a request without tools": (asked(LONG, LONG.replace("billing", "ledger"), tools=False), []),
    "replaced, of two words": (asked("Go on", "Go ahead"), []),
    "broken in two by markup": (asked(LONG, LONG.replace("service ", "service</p><p>")), [PASS]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_user_s_words_reach_the_model_as_they_were_said(case: str, tmp_path: Path) -> None:
    """Wrapping and quoting is none of it; a word that is lost, changed or doubled is."""
    items, expected = CASES[case]
    assert verdicts(tmp_path, 10, items) == expected


@pytest.mark.parametrize(("played", "expected"), [(True, [WARN]), (False, [])])
def test_none_of_the_words_is_told_of_a_request_that_the_kit_has_written(
    played: bool, expected: list[object], tmp_path: Path
) -> None:
    """A program may ask its model something else meanwhile; a host that the kit plays asks nothing else."""
    assert verdicts(tmp_path, 10, asked(LONG, "Write a haiku."), played=played) == expected


def test_a_hundred_thousand_equal_lines_are_counted(tmp_path: Path) -> None:
    """A user may paste a log: no line is compared with all the others, so this ends."""
    log = "The export has failed.\n" * 100_000
    assert verdicts(tmp_path, 10, asked(log, f"{log}\n{MEMORY}")) == [PASS]
    assert verdicts(tmp_path, 10, asked(log, log, log)) == [WARN]


def test_what_became_of_the_words_is_told(tmp_path: Path) -> None:
    """How often they stand there, or what stands there in their place."""
    doubled = only(tmp_path, 10, asked(ASKED, ASKED, ASKED))
    assert doubled.message == "step None: the user's words reach the model 2 times, but were said once"
    assert (doubled.model, doubled.fold) == ((4,), "words doubled")
    changed = only(tmp_path, 10, asked(LONG, LONG.replace("billing", "ledger")))
    assert changed.message == "step None: the user's words do not reach the model unchanged"
    assert (changed.expected, changed.fold) == (LONG, "words changed")


def test_words_that_a_hook_was_told_otherwise_are_not_judged_here(tmp_path: Path) -> None:
    """What the connector submits to the daemon has requirements of its own."""
    items = [step("start"), start(), said(), hook(text="Something else."), asks()]
    assert verdicts(tmp_path, 10, items) == [PASS]
