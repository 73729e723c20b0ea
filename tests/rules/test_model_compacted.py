"""Facts about what the model works with after a compaction: the summary that the daemon was told, or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from .model_requests import ASKED, Item, model
from .model_turns import OPEN, PASS, WARN, asks, call, only, said, start, step, verdicts

SUMMARY = "Decided that Atlas deploys on Fridays only, after a dry run."
NEXT, LATER = "And who approves refunds?", "And who pays them?"
LINES = [f"Point {word} is about the billing service." for word in ("one", "two", "three", "four")]
UNREAD = {"side": "model", "request": {"method": "POST", "path": "/v1/messages",
          "raw_body": {"cut": True, "size": 9, "sha256": "0" * 64}}}  # fmt: skip


def told(summary: object = SUMMARY, key: str | None = "k1", answer: object = None, **more: object) -> Item:
    """The call that tells the daemon of a compaction."""
    body = {"sessionKey": key, "summary": summary}
    return call("/api/hooks/compaction-complete", body, answer or {"success": True}, **more)


def chained(text: str) -> Item:
    """A request that goes on from what the server keeps."""
    body = {"input": text, "previous_response_id": "r1", "tools": [{"type": "function", "name": "memory_search"}]}
    return model(body, "/v1/responses")


BEGUN = [step("start"), start(), said(), asks()]
HEAD = [*BEGUN, step("compact"), told(), said(NEXT)]
CASES: Mapping[str, tuple[Sequence[Item], list[object]]] = {
    "held": ([*HEAD, asks(SUMMARY, NEXT)], [PASS]),
    "held by what the model says": (
        [*HEAD, asks(messages=[{"role": "user", "content": NEXT}, {"role": "assistant", "content": SUMMARY}])], [PASS]
    ),
    "held, and told from its beginning alone": (
        [*BEGUN, step("compact", summary=SUMMARY), told(SUMMARY[:26]), said(NEXT), asks(SUMMARY, NEXT)], [WARN]
    ),
    "held, and told in two words": (
        [*BEGUN, step("compact", summary=SUMMARY), told("Decided th"), said(NEXT), asks(SUMMARY, NEXT)], [WARN]
    ),
    "told from its beginning alone, as the model gets it then": (
        [*BEGUN, step("compact", summary=SUMMARY), told(SUMMARY[:26], t0=5.0), said(NEXT),
         asks(SUMMARY, NEXT, t0=4.0), asks(SUMMARY[:26], NEXT, t0=6.0)], [PASS]
    ),
    "held, and told from its beginning alone at that instant": (
        [*BEGUN, step("compact", summary=SUMMARY), told(SUMMARY[:26], t0=5.0), said(NEXT),
         asks(SUMMARY, NEXT, t0=5.0), asks(SUMMARY[:26], NEXT, t0=6.0)], [WARN]
    ),
    "held, and what was told is no text": (
        [*BEGUN, step("compact", summary=SUMMARY), told({"text": SUMMARY[:26]}), said(NEXT), asks(SUMMARY, NEXT)], []
    ),
    "held, and what was told is empty": (
        [*BEGUN, step("compact", summary=SUMMARY), told(""), said(NEXT), asks(SUMMARY, NEXT)], []
    ),
    "held and told without its end": (
        [*BEGUN, step("compact", summary=SUMMARY), told(SUMMARY[:40]), said(NEXT), asks(SUMMARY, NEXT)], [PASS]
    ),
    "told in other words than the step's": (
        [*BEGUN, step("compact", summary=f"{SUMMARY} {SUMMARY}"), told(), said(NEXT), asks(SUMMARY, NEXT)], [PASS]
    ),
    "lacked": ([*HEAD, asks("", NEXT)], [WARN]),
    "lacked by the first of two": ([*HEAD, asks("", NEXT), asks(SUMMARY, NEXT)], [WARN]),
    "lacked by the second of two": ([*HEAD, asks(SUMMARY, NEXT), asks("", NEXT)], [PASS]),
    "lacked in the turn after that": ([*HEAD, asks(SUMMARY, NEXT), said(LATER), asks("", LATER)], [PASS]),
    "lacked, and something else shortened": ([*HEAD, asks("[truncated]", NEXT)], [WARN]),
    "lacked, and another request unread": ([*HEAD, asks("", NEXT), UNREAD], [OPEN]),
    "what was said before is there": ([*HEAD, asks("", f"{ASKED}\n{NEXT}")], [OPEN]),
    "what was said before is there, in the second": ([*HEAD, asks("", NEXT), asks("", f"{ASKED}\n{NEXT}")], [WARN]),
    "what was said in another session is there": (
        [said(LATER, "s2"), *HEAD, asks("", f"{LATER}\n{NEXT}")], [WARN]
    ),
    "no turn after it": ([*BEGUN, step("compact"), told()], []),
    "asked something else": ([*HEAD, asks("", "A title")], [OPEN]),
    "the server keeps it": ([*HEAD, chained(NEXT)], [OPEN]),
    "the server keeps it from the second on": ([*HEAD, asks("", NEXT), chained(NEXT)], [WARN]),
    "the server keeps it, at first": ([*HEAD, chained(NEXT), asks("", NEXT)], [OPEN]),
    "no summary": ([*BEGUN, step("compact"), told(None), said(NEXT), asks("", NEXT)], []),
    "a summary that is no text": ([*BEGUN, step("compact"), told({"text": SUMMARY}), said(NEXT), asks("", NEXT)], []),
    "a summary of two words": ([*BEGUN, step("compact"), told("Went well."), said(NEXT), asks("", NEXT)], []),
    "the daemon had said it itself": (
        [step("start"), start(SUMMARY), *BEGUN[2:], step("compact"), told(), said(NEXT), asks("", NEXT)], []
    ),
    "by a call without a key": ([*BEGUN, step("compact"), told(key=None), said(NEXT), asks("", NEXT)], [WARN]),
    "by a call of a key that began in another session's step": (
        [*BEGUN, step("start", "s2"), start(key="k2"), told(), said(NEXT), asks("", NEXT)], [WARN]
    ),
    "before any step": ([told(key=None), said(NEXT), asks("", NEXT)], []),
    "before any step, and once more": ([told(key=None), *HEAD, asks(SUMMARY, NEXT)], [PASS]),
    "cleared, and told once more": (
        [*HEAD[:-1], step("clear"), told(), said(NEXT), asks(SUMMARY, NEXT)], [PASS]
    ),
    "within the turn": ([*BEGUN, told(), asks(SUMMARY)], [PASS]),
    "within the turn, and lacked": ([*BEGUN, told(), asks()], [WARN]),
    "within the turn, at one instant": ([said(), told(t0=3.0), asks(SUMMARY, t0=3.0), asks(t0=4.0)], [PASS]),
    "cleared before the turn": ([*HEAD[:-1], step("clear"), said(NEXT), asks("", NEXT)], []),
    "opened anew before the turn": ([*HEAD[:-1], step("start"), said(NEXT), asks("", NEXT)], []),
    "compacted anew before the turn": ([*HEAD[:-1], step("compact"), said(NEXT), asks("", NEXT)], []),
    "told anew before the turn": ([*HEAD[:-1], step("compaction_complete"), said(NEXT), asks("", NEXT)], []),
    "resumed before the turn": ([*HEAD[:-1], step("resume"), said(NEXT), asks("", NEXT)], [WARN]),
    "a session that sorts behind was cleared": ([*HEAD[:-1], step("clear", "s2"), said(NEXT), asks("", NEXT)], [WARN]),
    "a session that sorts before was cleared": ([*HEAD[:-1], step("clear", "s0"), said(NEXT), asks("", NEXT)], [WARN]),
    "cleared before the compaction": ([*BEGUN, step("clear"), *HEAD[4:], asks("", NEXT)], [WARN]),
    "cleared after the turn": ([*HEAD, asks("", NEXT), step("clear")], [WARN]),
    "told twice, the first time too little": (
        [*BEGUN, step("compact"), told("Went well."), told(), said(NEXT), asks(SUMMARY, NEXT)], [PASS]
    ),
    "told in two turns, the first unknown": (
        [*HEAD, chained(NEXT), step("compact"), told(), said(LATER), asks(SUMMARY, LATER)], [OPEN, PASS]
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_turn_after_a_compaction_holds_the_summary(case: str, tmp_path: Path) -> None:
    """Its first request does, unless the user took the context away or the two recordings leave it open."""
    items, expected = CASES[case]
    assert verdicts(tmp_path, 9, items) == expected


@pytest.mark.parametrize(
    ("lines", "note", "expected"),
    [(1, "", OPEN), (2, "", PASS), (1, "[truncated]", PASS), (0, "[truncated]", WARN), (0, "", WARN)],
)
def test_half_of_a_summary_is_enough(lines: int, note: str, expected: object, tmp_path: Path) -> None:
    """Less is, where the request says that something was left out; nothing never is."""
    head = [*BEGUN, step("compact"), told("\n".join(LINES)), said(NEXT)]
    first = asks("\n".join([*LINES[:lines], note]), NEXT)
    assert verdicts(tmp_path, 9, [*head, first, asks("…", NEXT)]) == [expected]
    if expected is OPEN:
        finding = only(tmp_path, 9, [*head, first, asks("", NEXT)])
        assert finding.message == "only 1 of 4 lines of the summary reach the model"
        assert (finding.exchanges, finding.model) == ((6,), (8,))


def test_what_is_found_after_a_compaction_is_told_in_words(tmp_path: Path) -> None:
    """The finding quotes the summary, and what the first request told the model in its place."""
    long = "Decided that Atlas deploys on Fridays only. " * 6
    head = [*BEGUN, step("compact"), told(long), said(NEXT)]
    finding = only(tmp_path, 9, [*head, asks("You code.", NEXT), asks("Go on.", NEXT)])
    assert finding.message == "after the compaction the model does not get the summary that the daemon got"
    assert finding.expected == f"a request that holds {long.strip()[:200]!r}"
    assert finding.received == f"You code. | {NEXT}"
    assert (finding.exchanges, finding.model, finding.fold) == ((6,), (8,), "without the summary")


def test_why_it_is_left_open_is_told_in_words(tmp_path: Path) -> None:
    """It is told whether nothing is known of the request, or the conversation still stands there."""
    unknown = only(tmp_path, 9, [*HEAD, asks("", "A title"), asks("", "A topic")])
    assert unknown.message == "the request to the model after the compaction is not known"
    assert unknown.model == (8, 9)
    kept = only(tmp_path, 9, [*HEAD, asks("", f"{ASKED}\n{NEXT}"), asks("", NEXT)])
    assert kept.message == "the model still gets what was said before the compaction"
    assert kept.model == (8,)
