"""Facts about what the transcript of an end owes: what was said since, by whom, and nothing of another session."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conversation_items import (
    FIRST,
    FOREIGN,
    SECOND,
    THIRD,
    Item,
    ended,
    hook,
    native,
    said,
    step,
    transcript,
    verdict,
)


def test_text_of_another_step_is_no_turn(tmp_path: Path) -> None:
    """What a tool was told may stand in the transcript as often as it likes."""
    tool = step("tool", text="Look it up in the ledger.", reply="It was looked up there.")
    told = transcript(FIRST, ("Look it up in the ledger.", ""), ("Look it up in the ledger.", ""))
    assert verdict(tmp_path, ended(told, said(FIRST), tool)) == "PASS"


def in_lines(*turns: tuple[str, str]) -> str:
    """Turns as lines that name their speakers."""
    return "\n".join(f"User: {text}\nAssistant: {reply}" for text, reply in turns)


@pytest.mark.parametrize(
    "quoted",
    [f"User: {FIRST[0]}", f"User: {FOREIGN[0]}\r\nassistant: {FOREIGN[1]}", f"Assistant: {FIRST[0]}"],
    ids=["said before", "said elsewhere", "by the other speaker"],
)
def test_quoted_turns_are_no_turns(tmp_path: Path, quoted: str) -> None:
    """Where a transcript of lines shows them as such: the user pasted them, and the connector told what was said."""
    pasted = (f"Explain this log:\n{quoted}", "It is a log of today.")
    other = [step("start", "s2"), hook("session-start", "k-2"), said(FOREIGN, "s2")]
    told = in_lines(FIRST, pasted)
    assert verdict(tmp_path, [*other, *ended(told, said(FIRST), said(pasted))]) == "PASS"
    assert verdict(tmp_path, [*other, *ended(told, said(FIRST), said(("Explain this log:", pasted[1])))]) == "WARN"


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("**User:** {}\n\n**Assistant:** {}", "NOT-APPLICABLE"),
        ("## user\n\n{}\n\n## assistant\n\n{}", "NOT-APPLICABLE"),
        ("User: {}\nAssistant: {}", "PASS"),
    ],
    ids=["bold speakers", "headings", "speakers"],
)
def test_transcript_of_another_shape_has_no_turns(tmp_path: Path, form: str, expected: str) -> None:
    """Though a text that it tells quotes what opens a turn in a transcript of lines."""
    pasted = ("Explain this log:\nUser: who is paged\nfor the ledger.", "It is a log of today.")
    told = "\n\n".join(form.format(*turn) for turn in (FIRST, pasted, SECOND))
    assert verdict(tmp_path, ended(told, said(FIRST), said(pasted), said(SECOND))) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (transcript(("continue", "The first is done."), ("continue", "The second is done.")), "PASS"),
        (transcript(("continue", "The first is done.\nThe second is done.")), "WARN"),
    ],
    ids=["both", "one"],
)
def test_turn_that_took_place_twice_is_owed_twice(tmp_path: Path, told: str, expected: str) -> None:
    """A connector that keeps each turn once loses what was said again."""
    twice = [said(("continue", "The first is done.")), said(("continue", "The second is done."))]
    assert verdict(tmp_path, ended(told, *twice)) == expected


def test_turn_that_is_said_again_after_an_end_is_owed_once(tmp_path: Path) -> None:
    """What was told at the end before counts too, so that the later one may tell what is new alone."""
    again = transcript(("continue", "The second is done."))
    first = [
        said(("continue", "The first is done.")),
        step("pause"),
        hook("session-end", transcript=transcript(("continue", "The first is done."))),
    ]
    assert verdict(tmp_path, ended(again, *first, said(("continue", "The second is done.")))) == "PASS"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Explain this log:\nUser: who is paged", "User: who listens at night"),
        ("Explain this log:\nUser: who is paged", "Assistant: who is paged"),
        ("Explain this log:\nAssistant: Mira is paged", "User: Mira is paged"),
        ("Explain this line:\nUser:", "User: who listens at night"),
    ],
    ids=["other words", "the model", "the user", "nobody's words"],
)
def test_turn_that_no_text_quotes_is_a_turn_of_the_transcript(tmp_path: Path, text: str, told: str) -> None:
    """What opens as a quoted line does is told by the same speaker in the same words; else the turns are judged."""
    assert verdict(tmp_path, ended(f"{text}\n{told}\n", said((text, "It is a log of today.")))) == "WARN"


def test_first_speaker_of_a_transcript_may_not_be_left_out(tmp_path: Path) -> None:
    """Where another line names the speaker of its own turn, a turn without one is lost."""
    pasted = ("Explain this log:\nUser: who is paged", "It is a log of today.")
    told = in_lines(FIRST, pasted).removeprefix("User: ")
    assert verdict(tmp_path, ended(told, said(FIRST), said(pasted))) == "WARN"


def test_quoted_turn_is_no_turn_of_another_session(tmp_path: Path) -> None:
    """Who quotes it somewhere else did not say it there."""
    pasted = (f"Explain this log:\nUser: {FOREIGN[0]}", "It is a log of today.")
    other = [step("start", "s2"), hook("session-start", "k-2"), said(pasted, "s2")]
    assert verdict(tmp_path, [*other, *ended(transcript(FIRST, (FOREIGN[0], "")), said(FIRST))]) == "PASS"


@pytest.mark.parametrize(
    ("told", "expected"), [([native("s1", "k-1"), native("s1", "k-2")], "PASS"), ([native("s1", "k-2")], "WARN")]
)
def test_end_that_comes_late_owes_what_was_cleared(tmp_path: Path, told: list[Item], expected: str) -> None:
    """It may be the end of what was said before the clear, if the driver told that it is of the same session."""
    cleared = [step("start"), hook("session-start"), said(FIRST), step("clear"), hook("session-start", "k-2")]
    late = [said(SECOND), said(THIRD), hook("session-end", reason="clear", transcript=transcript(FIRST))]
    closing = [step("end"), hook("session-end", "k-2", transcript=transcript(SECOND, THIRD))]
    assert verdict(tmp_path, [*told, *cleared, *late, *closing]) == expected


@pytest.mark.parametrize(
    "cleared",
    [
        [step("start"), hook("session-start"), said(FIRST), step("clear"), said(SECOND), step("compact")],
        [step("clear"), hook("session-start")],
    ],
    ids=["compacted since", "begun before the recording"],
)
def test_end_that_comes_late_owes_nothing_that_was_said_since(tmp_path: Path, cleared: list[Item]) -> None:
    """Whatever the session forgot after the clear, and though it was cleared first of all."""
    late = [said(SECOND), said(THIRD), hook("session-end", reason="clear", transcript=transcript(FIRST))]
    assert verdict(tmp_path, [native("s1", "k-1"), *cleared, *late]) == "PASS"
    assert verdict(tmp_path, [*cleared, *late]) == "WARN"


def test_end_that_comes_later_than_that_of_a_clear_owes_what_follows(tmp_path: Path) -> None:
    """One end was told since the clear: this one is of what was said after it."""
    cleared = [step("start"), hook("session-start"), said(FIRST), step("clear")]
    at_clear = [hook("session-end", reason="clear", transcript=transcript(FIRST)), hook("session-start")]
    late = [said(SECOND), said(THIRD), hook("session-end", transcript=transcript(FIRST))]
    assert verdict(tmp_path, [native("s1", "k-1"), *cleared, *at_clear, *late]) == "WARN"


@pytest.mark.parametrize(
    ("told", "expected"), [([native("s1", "k-1"), native("s2", "k-1")], "PASS"), ([native("s1", "k-1")], "WARN")]
)
def test_key_that_a_host_gives_to_two_sessions_is_of_neither(tmp_path: Path, told: list[Item], expected: str) -> None:
    """What the second says under it is not foreign; that they share a key is SIG-SESS-001's."""
    second = [step("start", "s2"), hook("session-start"), said(FOREIGN, "s2"), said(SECOND, "s2"), step("end", "s2")]
    items = [*ended(transcript(FIRST), said(FIRST)), *second]
    closing = hook("session-end", transcript=transcript(FOREIGN, SECOND))
    assert verdict(tmp_path, [*told, *items, closing]) == expected
