"""Facts about a conversation that the user cleared: it is told once, at the clear, and not again under the next key."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_conversation import FIRST, SECOND, Item, ended, hook, judgement, said, step, transcript


def cleared(told: str, *between: Item, first: Item | None = None, key: str = "k-2") -> list[Item]:
    """A session that was cleared after its first turn, which was told, and its end after what took place since."""
    at_clear = first or hook("session-end", reason="clear", transcript=transcript(FIRST))
    before = [step("start"), hook("session-start"), said(FIRST), step("clear"), at_clear]
    return [*before, hook("session-start", key), *between, step("end"), hook("session-end", key, transcript=told)]


def ended_elsewhere(session: str) -> list[Item]:
    """Another session, in which the first turn was said too, and told."""
    key = f"k-{session}"
    opened = [step("start", session), hook("session-start", key), said(FIRST, session), step("end", session)]
    return [*opened, hook("session-end", key, transcript=transcript(FIRST))]


REFUSED_END = {**hook("session-end", transcript=transcript(FIRST)), "response": {"status": 500, "body": {}}}
BOTH = transcript(FIRST, SECOND)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (cleared(BOTH, said(SECOND)), "the transcript repeats turns that were cleared and already sent"),
        (cleared(BOTH, said(SECOND), key="k-1"), None),
        (cleared(transcript(SECOND), said(SECOND)), None),
        (cleared(BOTH, said(FIRST), said(SECOND)), None),
        (cleared(BOTH, said(SECOND), first=REFUSED_END), None),
        (cleared(transcript(FIRST)), None),
        (cleared(BOTH, said(SECOND), first=hook("session-end")), None),
        (cleared(BOTH, said(SECOND), step("compact")), ("the transcript repeats turns that were cleared and"
            " already sent")),
        (cleared(BOTH, said(SECOND), key="k-0"), "the transcript repeats turns that were cleared and already sent"),
        ([*cleared(BOTH, said(SECOND)), step("clear")], ("the transcript repeats turns that were cleared and"
            " already sent")),
        ([*cleared("", said(SECOND))[:-2], step("clear"), hook("session-end", "k-2", transcript=BOTH)],
         "the transcript repeats turns that were cleared and already sent"),
        (cleared(BOTH, said(SECOND), first=hook("session-checkpoint-extract", transcript=transcript(FIRST))), None),
        (cleared(BOTH, said(SECOND), *ended_elsewhere("s0"), first=hook("session-end")), None),
        (cleared(BOTH, said(SECOND), *ended_elsewhere("s2"), first=hook("session-end")), None),
        ([*ended(transcript(FIRST), said(FIRST)), *cleared(BOTH, said(SECOND), first=hook("session-end"))[3:]], None),
        (cleared(transcript(SECOND), said(SECOND), hook("session-end", transcript=BOTH), first=step("tool")), None),
        ([*cleared(BOTH, said(SECOND), first=step("tool")), hook("session-end", transcript=transcript(FIRST))],
         "the transcript repeats turns that were cleared and already sent"),
        ([*ended(transcript(FIRST), said(FIRST)), step("resume"), hook("session-start", "k-2"), said(SECOND),
          step("end"), hook("session-end", "k-2", transcript=BOTH)], None),
        ([*ended(transcript(FIRST), said(FIRST))[:3], step("checkpoint"), *cleared(BOTH, said(SECOND))[4:]], None),
    ],
    ids=["told again", "under one key", "its own alone", "said again", "not taken before", "nothing since",
         "never told", "compacted", "under a key before", "cleared again", "in the next clear", "a checkpoint",
         "in a session before", "in a session after", "before the clear", "late", "later still", "resumed", "no clear"],
)  # fmt: skip
def test_cleared_conversation_is_not_told_again(tmp_path: Path, items: list[Item], message: str | None) -> None:
    """What the user cleared stands in memory once, and is no part of what follows."""
    found = [str(finding.message) for finding in judgement(tmp_path, items, "SIG-END-012").findings]
    told = [each.partition(",")[0] for each in found if "cleared" in each]
    assert told == ([] if message is None else [message])


@pytest.mark.parametrize(("text", "found"), [("Flowerpot 03", True), ("Flowerpot 3", False)])
def test_cleared_text_is_named_unless_it_is_short(text: str, found: bool, tmp_path: Path) -> None:
    """Twelve characters tell that it was said before."""
    told = transcript((text, "No."), SECOND)
    at_clear = hook("session-end", transcript=transcript((text, "No.")))
    items = cleared(told, said(SECOND), first=at_clear)
    items[2] = said((text, "No."))
    findings = judgement(tmp_path, items, "SIG-END-012").findings
    assert [finding.received for finding in findings] == ([text] if found else [])


def test_greeting_of_every_transcript_was_not_cleared(tmp_path: Path) -> None:
    """Text that no step said before the clear, such as a greeting, was not cleared with it."""
    greeting = ("Work through the tasks of the project.", "I read the agreed rules first.")
    first = hook("session-end", transcript=transcript(greeting, FIRST))
    assert not judgement(
        tmp_path, cleared(transcript(greeting, SECOND), said(SECOND), first=first), "SIG-END-012"
    ).findings


def test_conversation_that_was_not_cleared_is_told_whole(tmp_path: Path) -> None:
    """Where the harness has no such command, all of it was said in one session."""
    items = cleared(BOTH, said(SECOND))
    skipped = {"mark": "skipped", "data": {"index": 2, "reason": "no such command"}}
    assert judgement(tmp_path, items, "SIG-END-012").findings
    assert not judgement(tmp_path, [*items, skipped], "SIG-END-012").findings
