"""Transcripts and summaries."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from signet_reference_harness.messages import Message
from signet_reference_harness.session.conversation import TRANSCRIPT_LIMIT, Conversation


def told(conversation: Conversation) -> list[tuple[str, str]]:
    """Role and content of each line, lines split as broadly as Python knows how."""
    lines = conversation.transcript(str).splitlines()
    return [(line["role"], line["content"]) for line in map(json.loads, lines)]


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), max_size=5))
def test_transcript_holds_the_turns_in_order(turns: list[tuple[str, str]]) -> None:
    """Every text that is not blank is one line, whatever line breaks it holds, and reads back unchanged."""
    conversation = Conversation()
    expected = []
    for prompt, reply in turns:
        conversation.add_turn(prompt, reply, [Message("user", prompt)])
        expected += [line for line in (("user", prompt), ("assistant", reply)) if line[1].strip()]
    assert [line for line in told(conversation) if line[0] != "system"] == expected


def test_transcript_outlives_clear_and_compaction() -> None:
    """What the model no longer sees is still told."""
    conversation = Conversation()
    conversation.add_turn("a", "b", [Message("user", "a")])
    conversation.compact("sum")
    conversation.clear()
    assert told(conversation) == [("user", "a"), ("assistant", "b")]
    assert (conversation.messages, conversation.summary, conversation.last_reply) == ((), "", None)


def test_a_digest_knows_nothing_of_what_was_cleared() -> None:
    """What takes the place of a summary, and so reaches the model, begins after the clear."""
    conversation = Conversation()
    conversation.add_turn("before", "b", [Message("user", "before")])
    conversation.clear()
    conversation.begin_again("clear")
    conversation.add_turn("after", "d", [Message("user", "after")])
    assert "after" in conversation.digest()
    assert "before" not in conversation.digest()
    assert ("user", "before") in told(conversation)


def test_transcript_says_where_the_session_began_again() -> None:
    """A resume or a clear stands between the turns, in a line that is not a turn, and in no digest."""
    conversation = Conversation()
    conversation.add_turn("a", "b", [])
    conversation.begin_again("resume")
    conversation.add_turn("c", "d", [])
    assert [role for role, _ in told(conversation)] == ["user", "assistant", "system", "user", "assistant"]
    assert "resume" not in conversation.digest()


def test_a_reply_over_the_limit_is_cut_for_the_daemon() -> None:
    """The daemon would refuse the end of the session for its size, and the next prompt, too."""
    conversation = Conversation()
    conversation.add_turn("Go on.", "a" * 3_000_000, [])
    assert len(conversation.transcript(str)) < 1_600_000
    assert len(conversation.last_reply or "") == 1_500_000


def test_oldest_turns_are_left_out_of_a_transcript_over_the_limit() -> None:
    """A transcript that the daemon would refuse for its size loses its oldest lines."""
    conversation = Conversation()
    conversation.add_turn("old", "x" * (TRANSCRIPT_LIMIT - 100), [])
    conversation.add_turn("new", "y" * 200, [])
    assert told(conversation) == [("user", "new"), ("assistant", "y" * 200)]


def test_digest_is_never_blank() -> None:
    """There is always something to say, even before the first turn."""
    conversation = Conversation()
    assert conversation.digest().strip()
    conversation.add_turn("which port?", "50051", [])
    assert "which port?" in conversation.digest()
