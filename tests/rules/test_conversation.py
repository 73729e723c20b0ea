"""Facts about transcripts that are held against what the kit's own marks tell of the conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conversation_items import (
    FIRST,
    FOREIGN,
    SECOND,
    THIRD,
    Item,
    ended,
    hook,
    judgement,
    said,
    step,
    transcript,
    verdict,
)


@pytest.mark.parametrize(
    "told",
    [
        transcript(SECOND),
        transcript(FIRST),
        transcript(FIRST, SECOND, SECOND),
        transcript(FIRST, SECOND, roles=("assistant", "user")),
        transcript((FIRST[0].lower(), FIRST[1]), SECOND),
        transcript((FIRST[0], "Three"), SECOND),
    ],
    ids=["first lost", "last lost", "twice", "speakers", "changed", "cut"],
)
def test_conversation_that_is_told_otherwise_is_warned_of(tmp_path: Path, told: str) -> None:
    """A turn that is lost, doubled, changed or put into another mouth is lost to memory."""
    assert verdict(tmp_path, ended(told, said(FIRST), said(SECOND))) == "WARN"


@pytest.mark.parametrize(
    "told",
    [
        transcript(FIRST, SECOND),
        transcript(("[20:06 UTC] " + FIRST[0], FIRST[1]), SECOND),
        transcript((FIRST[0].replace(" ", "\n"), FIRST[1]), SECOND),
        "User: " + "\n".join([FIRST[0], "Assistant: " + FIRST[1], "User: " + SECOND[0], "Assistant: " + SECOND[1]]),
    ],
    ids=["whole", "stamped", "in other lines", "with speakers"],
)
def test_conversation_that_is_told_in_another_form_passes(tmp_path: Path, told: str) -> None:
    """What was said counts, not how the transcript writes it."""
    assert verdict(tmp_path, ended(told, said(FIRST), said(SECOND))) == "PASS"


@pytest.mark.parametrize(
    "told",
    ["[object Object],[object Object]", "undefined", "null", "<compressed>"],
)
def test_transcript_that_tells_nothing_is_warned_of(tmp_path: Path, told: str) -> None:
    """Messages that were joined as objects are a text that is not blank, and no word of the conversation."""
    assert verdict(tmp_path, ended(told, said(FIRST), said(SECOND))) == "WARN"


@pytest.mark.parametrize(
    ("told", "more"),
    [
        (json.dumps([{"role": "user", "content": FIRST[0]}, {"role": "assistant", "content": FIRST[1]}]), {}),
        (f"- {FIRST[0].upper()}", {}),
        ("[object Object]", {"transcriptPath": "/home/user/session.jsonl"}),
        ("<redacted:1>", {}),
    ],
    ids=["one array", "a list", "a path beside it", "redacted"],
)
def test_transcript_of_another_shape_is_not_judged(tmp_path: Path, told: str, more: dict[str, str]) -> None:
    """Where words of the conversation stand in it, or elsewhere, it tells something, in whatever shape."""
    items = [step("start"), hook("session-start"), said(FIRST), said(SECOND), step("end")]
    assert verdict(tmp_path, [*items, hook("session-end", transcript=told, **more)]) == "NOT-APPLICABLE"


@pytest.mark.parametrize(
    "between",
    [[said(("Is it?", "It is."))], [said(FIRST), step("compact")], [said(("/status " + FIRST[0], FIRST[1]))]],
    ids=["few words", "compacted", "command"],
)
def test_transcript_that_need_not_tell_anything_is_not_judged(tmp_path: Path, between: list[Item]) -> None:
    """Where no turn has to be told, its words may be missing."""
    assert verdict(tmp_path, ended("[object Object]", *between)) == "NOT-APPLICABLE"


@pytest.mark.parametrize(("reply", "expected"), [("They should.", "NOT-APPLICABLE"), ("They should today.", "WARN")])
def test_three_words_may_be_missing_by_chance(tmp_path: Path, reply: str, expected: str) -> None:
    """Of the words that every spelling of a transcript keeps; four are not missing by chance."""
    assert verdict(tmp_path, ended("[object Object]", said(("Shall rooms move?", reply)))) == expected


def test_checkpoint_that_tells_nothing_is_not_judged(tmp_path: Path) -> None:
    """What has to be told is told by an end."""
    told = hook("session-checkpoint-extract", transcript="[object Object]")
    items = [step("start"), hook("session-start"), said(FIRST), said(SECOND), step("tool"), told]
    assert verdict(tmp_path, items) == "NOT-APPLICABLE"


def test_transcript_that_tells_nothing_new_passes_over(tmp_path: Path) -> None:
    """What an end before it told is told."""
    items = [said(FIRST), step("pause"), hook("session-end", transcript=transcript(FIRST))]
    assert verdict(tmp_path, ended("nothing new", *items)) == "PASS"


AWAY = [
    {"mark": "fault", "data": {"kind": "refuse", "on": True}},
    {"mark": "fault", "data": {"kind": "refuse", "on": False}},
]


@pytest.mark.parametrize(
    ("before", "spared"),
    [
        ([said(FIRST), step("compact")], True),
        ([said(FIRST), said(THIRD), step("compact")], True),
        ([said(("/status " + FIRST[0], FIRST[1])), said(THIRD)], False),
        ([said(FIRST), step("end"), hook("session-end"), step("resume"), hook("session-start")], True),
        ([AWAY[0], said(FIRST), AWAY[1]], True),
        ([step("prompt", text=FIRST[0])], True),
        ([said(("/status " + FIRST[0], FIRST[1]))], True),
        ([said(("long " * 100, "short reply?"))], False),
        ([said(("long " * 100, "long " * 100))], True),
        ([said((f"Question number {n}?", f"Answer number {n}.")) for n in range(12)], True),
        ([said((f"Question number {n}?", f"Answer number {n}.")) for n in range(11)], False),
        ([said(FIRST), {"mark": "skipped", "data": {"index": 1, "reason": "the host keeps it"}}], True),
        ([said(FIRST), {"mark": "handler", "data": {"index": 1, "outcome": "thrown", "lost": True}}], True),
        (
            [
                *[said(FIRST), {"mark": "handler", "data": {"index": 1, "outcome": "thrown", "lost": True}}],
                {"mark": "skipped", "data": {"index": 1, "reason": "the host keeps it"}},
            ],
            True,
        ),
        ([said(FIRST), {"mark": "handler", "data": {"index": 1, "outcome": "thrown", "lost": False}}], False),
    ],
    ids=[
        "compacted",
        "two compacted",
        "after a command",
        "resumed",
        "away",
        "unanswered",
        "command",
        "reply",
        "long",
        "many",
        "not so many",
        "skipped",
        "lost",
        "lost and skipped",
        "caught",
    ],
)
def test_turn_that_may_be_left_out(tmp_path: Path, before: list[Item], spared: bool) -> None:
    """What a compaction took, a resumed session had before, an outage met, or a limit cuts need not be told."""
    assert verdict(tmp_path, ended(transcript(SECOND), *before, said(SECOND))) == ("PASS" if spared else "WARN")


def beside(parent: str | None) -> list[Item]:
    """Two sessions, of which the second ends with a turn of the first; `parent` is that of the second."""
    more = {} if parent is None else {"parent": parent}
    other = [step("start", "s2", **more), hook("session-start", "k-2"), said(FOREIGN, "s2")]
    told = transcript(FIRST, FOREIGN)
    return [
        *[step("start"), hook("session-start"), said(FIRST), *other],
        *[step("end", "s2"), hook("session-end", "k-2", transcript=told)],
        *[step("end"), hook("session-end", transcript=transcript(FIRST))],
    ]


QUOTED = "User: who is paged?\nAssistant: the platform rota."


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (f"User: {QUOTED}\nAssistant: That is what they wrote.", "PASS"),
        ("User: who is paged?\nAssistant: That is what they wrote.", "WARN"),
    ],
)
def test_words_that_look_like_turns_are_looked_for_in_the_whole(tmp_path: Path, told: str, expected: str) -> None:
    """Where each line names its speaker, nobody can tell a turn from one that the user quotes."""
    assert verdict(tmp_path, ended(told, said((QUOTED, "That is what they wrote.")))) == expected


@pytest.mark.parametrize(("key", "expected"), [("k-1", "PASS"), ("k-0", "WARN"), ("k-2", "WARN")])
def test_words_that_look_like_turns_may_be_told_at_an_earlier_end(tmp_path: Path, key: str, expected: str) -> None:
    """By a connector that tells what is new alone; what another key told is not told under this one."""
    one = f"User: {QUOTED}\nAssistant: That is what they wrote."
    two = f"Assistant: That is what they wrote.\nUser: {SECOND[0]}\nAssistant: {SECOND[1]}"
    first = [said((QUOTED, "That is what they wrote.")), step("pause"), hook("session-end", key, transcript=one)]
    assert verdict(tmp_path, ended(two, *first, said(SECOND))) == expected


@pytest.mark.parametrize(("parent", "expected"), [(None, "WARN"), ("s1", "PASS")])
def test_turn_of_another_session_is_told_by_a_sub_agent_alone(
    tmp_path: Path, parent: str | None, expected: str
) -> None:
    """A conversation leaks into a session that has nothing to do with it."""
    assert verdict(tmp_path, beside(parent)) == expected


LEFT_OUT, TWICE = "the transcript leaves out or changes what the", "the transcript holds a turn more often than it"


@pytest.mark.parametrize(
    ("told", "named"),
    [
        (transcript(SECOND), (f"{LEFT_OUT} user said", FIRST[0], None)),
        (transcript((FIRST[0], "Three of them."), SECOND), (f"{LEFT_OUT} model said", FIRST[1], None)),
        (transcript(FIRST, SECOND, SECOND), (f"{TWICE} took place", SECOND[0], "2 times")),
        (
            transcript(FIRST, SECOND, roles=("assistant", "user")),
            ("the transcript confuses the speakers", f"user: {FIRST[0]}", "assistant"),
        ),
        (
            transcript(FIRST, SECOND, FOREIGN),
            ("the transcript holds a turn of another session", "the session's own turns", FOREIGN[0]),
        ),
        ("[object Object]", ("the transcript holds nothing that was said", FIRST[0], "[object Object]")),
    ],
    ids=["of the user", "of the model", "twice", "speakers", "foreign", "nothing"],
)
def test_what_is_told_otherwise_is_named(tmp_path: Path, told: str, named: tuple[str, str, str | None]) -> None:
    """A reader sees which turn it is, and whose."""
    other = [step("start", "s2"), hook("session-start", "k-2"), said(FOREIGN, "s2")]
    (finding,) = judgement(tmp_path, ended(told, said(FIRST), said(SECOND), *other), "SIG-END-012").findings
    assert (finding.message, finding.expected, finding.received) == named


WORD = "invoices "


@pytest.mark.parametrize(("length", "expected"), [(200, "WARN"), (201, "PASS")])
def test_long_text_may_be_cut(tmp_path: Path, length: int, expected: str) -> None:
    """A text of more than 200 characters may be left out; its reply may not."""
    question = (WORD * length)[: length - 1] + "?"
    told = transcript(("", FIRST[1]), SECOND)
    assert verdict(tmp_path, ended(told, said((question, FIRST[1])), said(SECOND))) == expected


@pytest.mark.parametrize(("text", "expected"), [("Flowerpot 3", "PASS"), ("Flowerpot 03", "WARN")])
def test_a_text_of_twelve_characters_is_attributed_to_its_session(tmp_path: Path, text: str, expected: str) -> None:
    """Twelve characters tell whose a text is, and that it was said once."""
    other = [step("start", "s2"), hook("session-start", "k-2"), said((text, "Under it, as always."), "s2")]
    assert verdict(tmp_path, ended(transcript(FIRST, (text, "")), said(FIRST), *other)) == expected
    twice = ended(transcript((text, FIRST[1]), (text, "")), said((text, FIRST[1])))
    assert verdict(tmp_path, twice) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [("Flowerpot 3", f"{LEFT_OUT} user said"), ("Flowerpot 03", "the transcript confuses the speakers")],
)
def test_the_speaker_of_a_short_text_is_not_judged(tmp_path: Path, text: str, message: str) -> None:
    """A short text of the other speaker may be chance."""
    told = transcript((FIRST[0], text), ("", FIRST[1]))
    items = ended(told, said((text, FIRST[1])), said((FIRST[0], FIRST[1])))
    assert judgement(tmp_path, items, "SIG-END-012").findings[0].message == message


def test_text_of_both_speakers_is_either_s(tmp_path: Path) -> None:
    """The model repeats what the user said: neither is taken for the other."""
    echo = (FIRST[0], FIRST[0])
    assert verdict(tmp_path, ended(transcript(echo), said(echo))) == "PASS"


@pytest.mark.parametrize(("times", "expected"), [(2, "PASS"), (3, "WARN")])
def test_turn_that_took_place_twice_is_told_twice(tmp_path: Path, times: int, expected: str) -> None:
    """As often as it took place, and no more."""
    assert verdict(tmp_path, ended(transcript(*[FIRST] * times), said(FIRST), said(FIRST))) == expected


def test_words_of_nobody_may_come_again(tmp_path: Path) -> None:
    """What no step tells, such as a host's own words, is not counted."""
    host = ("The host says hello to all.", "The host says goodbye to all.")
    assert verdict(tmp_path, ended(transcript(FIRST, host, host), said(FIRST))) == "PASS"


def told_before(**more: Any) -> Item:
    """A checkpoint that tells the first turn."""
    return hook("session-checkpoint-extract", transcript=transcript(FIRST), **more)


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ([said(FIRST), told_before(), said(SECOND)], "PASS"),
        ([said(FIRST), told_before(key="k-9"), said(SECOND)], "WARN"),
        ([said(FIRST), told_before(key="k-0"), said(SECOND)], "WARN"),
        ([said(FIRST), said(SECOND)], "WARN"),
    ],
    ids=["told before", "told of another key", "of one that sorts before", "never told"],
)
def test_transcript_may_tell_what_is_new_alone(tmp_path: Path, between: list[Item], expected: str) -> None:
    """What an earlier transcript of the key has told need not be told again."""
    assert verdict(tmp_path, ended(transcript(SECOND), *between)) == expected


def test_later_transcript_does_not_make_up_for_an_end(tmp_path: Path) -> None:
    """What an end leaves out is lost, whatever a later end tells."""
    later = [step("end"), hook("session-end", transcript=transcript(FIRST, SECOND))]
    items = [*ended(transcript(SECOND), said(FIRST), said(SECOND)), *later]
    (finding,) = judgement(tmp_path, items, "SIG-END-012").findings
    assert finding.expected == FIRST[0]


@pytest.mark.parametrize(
    "items",
    [
        ended(transcript((FIRST[0], "It is <redacted:1>.")), said(FIRST), said(SECOND)),
        [*ended("", said(FIRST), said(SECOND))[:-2], told_before(), told_before(), step("tool"), told_before()],
        [said(FIRST), hook("session-start"), said(SECOND), said(THIRD), *ended(transcript(FIRST))[2:]],
        ended(transcript(FIRST)),
        [
            *ended(transcript(FIRST), said(FIRST))[:-2],
            hook("session-checkpoint-extract", transcript=transcript(SECOND)),
        ],
        [hook("session-start"), said(FIRST), step("end"), hook("session-end", transcript=transcript(SECOND))],
        [
            step("start"),
            hook("session-start"),
            said(FIRST),
            said(SECOND),
            hook("session-end", transcript=transcript(FIRST)),
        ],
        ended(transcript(FIRST), said(FIRST), said(FOREIGN, "s2")),
        [AWAY[0], step("start"), AWAY[1], *ended(transcript(SECOND), said(FIRST))[1:]],
        ended(transcript(("Which?", FIRST[1])), said(("Which <redacted:1>?", FIRST[1]))),
    ],
    ids=[
        "redacted",
        "checkpoints",
        "never opened",
        "nothing said",
        "a checkpoint",
        "not opened",
        "latest step",
        "of another session",
        "began away",
        "redacted step",
    ],
)
def test_a_turn_that_may_be_missing_is_no_breach(tmp_path: Path, items: list[Item]) -> None:
    """Nobody can tell whether it was left out, or it was not to be told yet."""
    assert verdict(tmp_path, items) not in ("WARN", "ERROR")


def test_parent_may_tell_what_its_sub_agent_said(tmp_path: Path) -> None:
    """A sub-agent's turns are part of the conversation that it works in."""
    other = [step("start", "s2", parent="s1"), hook("session-start", "k-2"), said(FOREIGN, "s2")]
    assert verdict(tmp_path, ended(transcript(FIRST, FOREIGN), said(FIRST), *other)) == "PASS"


def test_turns_before_the_latest_opening_are_told_already(tmp_path: Path) -> None:
    """A compaction that was only prepared, and each opening, begin what an end has to tell."""
    for forgets in ("pre_compaction", "compaction_complete", "clear"):
        assert verdict(tmp_path, ended(transcript(SECOND), said(FIRST), step(forgets), said(SECOND))) == "PASS"
        assert verdict(tmp_path, ended(transcript(FIRST), said(FIRST), step(forgets), said(SECOND))) == "WARN"


def test_each_mistake_of_a_transcript_is_named(tmp_path: Path) -> None:
    """One mistake hides no other: the order, a foreign turn, one that is left out, and one that stands twice."""
    other = [step("start", "s2"), hook("session-start", "k-2"), said(FOREIGN, "s2")]
    told = transcript(SECOND, FIRST, FOREIGN, FOREIGN, (SECOND[0], ""))
    findings = judgement(tmp_path, ended(told, said(FIRST), said(SECOND), said(THIRD), *other), "SIG-END-012").findings
    order = f"{FIRST[0]!r} before {SECOND[1]!r}"
    assert {finding.expected for finding in findings} == {order, "the session's own turns", THIRD[0], SECOND[0]}


LEFT = ended(transcript(SECOND), said(FIRST), said(SECOND))
"""A session whose end leaves its first turn out."""
AGAIN = [step("resume"), hook("session-start"), said(THIRD)]


@pytest.mark.parametrize(
    "items",
    [
        [{"mark": "step", "data": {"step": "tool"}}, *LEFT],
        [*LEFT, *AGAIN],
        [step("start", "s0"), hook("session-start", "k-0"), *LEFT[:2], step("clear", "s0"), *LEFT[2:]],
        [*LEFT[:3], step("clear", "s0"), hook("session-end", "k-0"), *LEFT[3:]],
        ended(transcript(SECOND), said(FIRST), *[step("tool")] * 13, said(SECOND)),
        ended(transcript(SECOND), said(FIRST), *[step("checkpoint")] * 13, said(SECOND)),
        [AWAY[0], step("start"), AWAY[1], said(THIRD), step("end"), *AGAIN[:2], *LEFT[2:]],
    ],
    ids=["no session's", "goes on", "beside", "another is cleared", "tools", "checkpoints", "opened again"],
)
def test_other_sessions_and_later_steps_excuse_no_missing_turn(tmp_path: Path, items: list[Item]) -> None:
    """Steps of other sessions or kinds, later ones, and an outage before the session was opened again."""
    (finding,) = judgement(tmp_path, items, "SIG-END-012").findings
    assert (finding.message, finding.expected) == (f"{LEFT_OUT} user said", FIRST[0])


def test_turns_of_another_session_are_not_out_of_order(tmp_path: Path) -> None:
    """A transcript with the turns of another session is told as that alone, wherever they stand."""
    other = [step("start", "s2"), hook("session-start", "k-2"), said(FOREIGN, "s2")]
    items = [*other, *ended(transcript(FIRST, SECOND, FOREIGN), said(FIRST), said(SECOND))]
    folds = {finding.fold for finding in judgement(tmp_path, items, "SIG-END-012").findings}
    assert folds == {"foreign"}
