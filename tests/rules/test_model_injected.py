"""Facts about injected texts: which turn's first request has to hold them, how a lack is told, what counts as twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.case_traces import KEYED

from .model_requests import ASKED, Item, model
from .model_turns import (
    FACT,
    MEMORY,
    OPEN,
    PASS,
    WARN,
    asks,
    call,
    hook,
    only,
    outcomes,
    said,
    start,
    step,
    verdicts,
)

AGAIN = "Say it once more."
CLEARED = {"also": {"source": "clear"}}
ENDED = call("/api/hooks/session-end", {**KEYED, "sessionKey": "k1"}, {})
OTHER_NAMES = [("s1", "s2", "k1", "k2"), ("s2", "s1", "k2", "k1")]
UNREAD = {"side": "model", "request": {"method": "POST", "path": "/v1/messages",
          "raw_body": {"cut": True, "size": 9, "sha256": "0" * 64}}}  # fmt: skip

STARTED: Mapping[str, tuple[Sequence[Item], list[object]]] = {
    "held": ([step("start"), start(), said(), asks(MEMORY)], [PASS]),
    "lacked": ([step("start"), start(), said(), asks()], [WARN]),
    "no turn after it": ([step("start"), start(), said(AGAIN, "s2"), asks(MEMORY, AGAIN)], []),
    "asked for within the turn": ([said(), start(), asks(MEMORY)], [PASS]),
    "given after the first turn, which cannot hold it": (
        [said(), asks(), step("clear"), start(), said(AGAIN), asks(MEMORY, AGAIN)], [PASS]
    ),
    "cleared before the turn": (
        [step("start"), start(), step("clear"), start(FACT, **CLEARED), said(), asks(FACT)], [PASS]
    ),
    "cleared after the turn": (
        [step("start"), start(), said(), asks(), step("clear"), start("", **CLEARED), said(AGAIN), asks("", AGAIN)],
        [WARN],
    ),
    "ended before the turn, and resumed": (
        [step("start"), start(), step("end"), ENDED, step("resume"), start(FACT), said(), asks(FACT)], [PASS]
    ),
    "ended after the turn": ([step("start"), start(), said(), asks(), step("end"), ENDED], [WARN]),
    "cleared before it was given": ([step("clear"), start("", **CLEARED), start(), said(), asks()], [WARN]),
    "given by the clear itself": ([step("clear"), start(**CLEARED), said(), asks()], [WARN]),
    "started again, not cleared": ([step("start"), start(), start(FACT), said(), asks(FACT)], [WARN, PASS]),
    "started again, for an unknown reason": (
        [step("start"), start(), start(FACT, also={"source": None}), said(), asks(FACT)], [WARN, PASS]
    ),
    "a second one after one that came too late": (
        [said(), asks(), start(), step("resume"), start(FACT), said(AGAIN), asks(FACT, AGAIN)], [OPEN, PASS]
    ),
    "asked twice, the first time before it": ([said(), asks(), start(), asks(MEMORY)], [PASS]),
    "a sub-agent's and the session's": (
        [step("start"), start(FACT, also={"parentSessionKey": "k0"}), start(), said(), asks(MEMORY)], [PASS]
    ),
    "a stub": ([step("start"), start(f"[memory active]\n{MEMORY}", memories=[]), said(), asks()], []),
    "a mark of the stub, and a name of its own": (
        [step("start"), start(f"[memory active]\n{MEMORY}", memories=[], name="Rig"), said(), asks()], [WARN]
    ),
    "no memories, and no stub": ([step("start"), start(memories=[]), said(), asks()], [WARN]),
    "a mark of the stub, and memories": ([step("start"), start(f"[memory active]\n{MEMORY}"), said(), asks()], [WARN]),
    "of too few words": ([step("start"), start("Be brief."), said(), asks()], []),
    "what the user says himself": ([step("start"), start(ASKED), said(), asks()], []),
    "by a connector without keys": ([step("start"), start(key=None), said(), asks()], [WARN]),
    "without a key before any step": ([start(key=None), said(), asks()], []),
    "in a call whose body was cut": (
        [step("start"), {**start(), "request": {"method": "POST", "path": "/api/hooks/session-start",
         "raw_body": {"cut": True, "size": 9, "sha256": "0" * 64}}}, said(), asks()], [WARN],
    ),
    "refused": ([step("start"), {**start(), "response": {"status": 500, "body": {"inject": MEMORY}}}, said(), asks()],
                []),
    "a block of a kind that nobody knows": (
        [step("start"), start(), said(), asks(messages=[
            {"role": "user", "content": [{"type": "voice", "text": MEMORY}, {"type": "text", "text": ASKED}]}
        ])], [PASS],
    ),
    "in another program's turn only": ([step("start"), start(), said(), asks(), said(AGAIN), asks(MEMORY, AGAIN)],
                                       [WARN]),
}  # fmt: skip


@pytest.mark.parametrize("case", STARTED)
def test_which_request_has_to_hold_what_a_start_gave(case: str, tmp_path: Path) -> None:
    """It is the first request of the session's first turn after the start, unless the user took the context away."""
    items, expected = STARTED[case]
    assert verdicts(tmp_path, 1, items) == expected


@pytest.mark.parametrize(
    ("asked_at", "expected"), [(3.95, PASS), (3.949, OPEN), (3.2, OPEN), (4.0, PASS), (4.03, PASS), (9.5, PASS)]
)
def test_a_start_may_end_a_blink_after_the_model_was_asked(asked_at: float, expected: object, tmp_path: Path) -> None:
    """Two recorders tell instants 50 ms apart in the wrong order; a request before that was made without the start."""
    items = [said(), start(t0=3.0, t1=4.0), asks(MEMORY, t0=asked_at)]
    assert verdicts(tmp_path, 1, items) == [expected]


@pytest.mark.parametrize(("mine", "other", "key", "other_key"), OTHER_NAMES)
def test_another_session_neither_clears_nor_holds_it(
    mine: str, other: str, key: str, other_key: str, tmp_path: Path
) -> None:
    """A clear of another session leaves a start in force, and that session's turn need not hold it."""
    items = [
        step("start", mine), start(key=key), step("clear", other), start(FACT, other_key, **CLEARED),
        said(AGAIN, other), asks(FACT, AGAIN), said(ASKED, mine), asks(),
    ]  # fmt: skip
    assert verdicts(tmp_path, 1, items) == [WARN, PASS]
    assert verdicts(tmp_path, 1, [*items[:-1], asks(MEMORY)]) == [PASS, PASS]


PROMPTED: Mapping[str, tuple[Sequence[Item], list[object]]] = {
    "held": ([said(), hook(FACT), asks(FACT)], [PASS]),
    "lacked": ([said(), hook(FACT), asks()], [WARN]),
    "before the turn": ([step("start"), hook(FACT), said(), asks()], []),
    "the same words in two turns": ([said(), asks(), said(), hook(FACT), asks(FACT)], [PASS]),
    "the same words in a turn later": ([said(), hook(FACT), asks(FACT), said(), asks()], [PASS]),
    "of other words, which sort before": ([said(), hook(FACT, "A question of a helper"), asks()], []),
    "of other words, which sort behind": ([said(), hook(FACT, "You are a helper"), asks()], []),
    "of words in the host's envelope": ([said(), hook(FACT, f"[Fri 10:35 UTC] {ASKED}"), asks(FACT)], [PASS]),
    "of words in the host's envelope, lacked": ([said(), hook(FACT, f"[Fri 10:35 UTC] {ASKED}"), asks()], [WARN]),
    "of too few words to know them in others": (
        [said("Go on."), hook(FACT, "Go on. Or stop?"), asks("", "Go on.")], []
    ),
    "no turn of the session": ([step("start"), hook(FACT), said(AGAIN, "s2"), asks("", AGAIN)], []),
    "a start within the turn": ([said(), start(MEMORY, also={"userMessage": ASKED}), asks()], []),
    "marked as if it were a stub": ([said(), hook(f"[memory active]\n{FACT}"), asks()], [WARN]),
    "in what the model says only": (
        [said(), hook(FACT), asks(messages=[
            {"role": "user", "content": ASKED}, {"role": "assistant", "content": "I look."}
        ])], [WARN],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PROMPTED)
def test_which_request_has_to_hold_what_a_prompt_hook_gave(case: str, tmp_path: Path) -> None:
    """It is the first request of the turn in which the user says the words of the hook."""
    items, expected = PROMPTED[case]
    assert verdicts(tmp_path, 2, items) == expected


def test_a_line_that_both_hooks_give_tells_of_neither(tmp_path: Path) -> None:
    """The day stands in both texts: only what one of them has alone shows that it is there."""
    day = "Today is Sunday the fourth of May"
    head = [step("start"), start(f"{day}\n{MEMORY}"), said(), hook(f"{day}\n{FACT}")]
    for held, started, prompted in ((MEMORY, PASS, WARN), (FACT, WARN, PASS)):
        assert verdicts(tmp_path, 1, [*head, asks(f"{day}\n{held}")]) == [started]
        assert verdicts(tmp_path, 2, [*head, asks(f"{day}\n{held}")]) == [prompted]
    same = [*head[:3], hook(day)]
    assert verdicts(tmp_path, 2, [*same, asks(day)]) == [PASS]
    assert verdicts(tmp_path, 2, [*same, asks(MEMORY)]) == [WARN]


def test_a_start_that_is_absent_is_told_in_words(tmp_path: Path) -> None:
    """The finding says which hook gave the text, what was expected and what the model was told in its place."""
    text = f"{MEMORY} " + "It was said so in the meeting of the team. " * 5
    finding = only(tmp_path, 1, [step("start"), start(text), said(), asks("You code."), asks("A title.", tools=False)])
    assert finding.message == "what session-start injected does not reach the model"
    assert finding.expected == f"a request that holds {text[:200]!r}"
    assert finding.received == f"You code. | {ASKED}"
    assert (finding.exchanges, finding.model, finding.fold) == ((2,), (4,), "session-start absent")


def test_a_prompts_context_that_comes_late_is_told_in_words(tmp_path: Path) -> None:
    """Of a request that goes on with the first one and holds the text, the finding names both."""
    goes_on = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": "I look."}]
    finding = only(tmp_path, 2, [said(), hook(FACT), asks("You code."), asks(FACT, messages=goes_on)])
    assert finding.message == (
        "what the prompt hook injected does not reach the model in its first request, only later in the turn"
    )
    assert (finding.model, finding.fold) == ((3, 4), "user-prompt-submit late")


STOPPED: Item = {"mark": "handler", "data": {"event": "SessionStart", "outcome": "timed_out", "ms": 20_294.1}}


def test_what_a_stopped_handler_was_given_is_left_open(tmp_path: Path) -> None:
    """A busy machine may be slow to start a hook's program: the answer came at once, and the hook had no time left."""
    lacking = [step("start"), said(index=7), start(), asks()]
    finding = only(tmp_path, 1, [*lacking, STOPPED])
    assert finding.verdict == OPEN
    assert finding.message.startswith("step 7: the host stopped a handler before it had passed the text on")
    assert verdicts(tmp_path, 1, [*lacking, {**STOPPED, "data": {**STOPPED["data"], "outcome": "slow"}}]) == [WARN]
    assert verdicts(tmp_path, 1, [*lacking, said(AGAIN), asks("", AGAIN), STOPPED]) == [WARN]


@pytest.mark.parametrize("words", ["And then?", "Why so?"])
def test_a_request_of_another_conversation_is_not_late(words: str, tmp_path: Path) -> None:
    """One that does not repeat what the user said in the first one comes after a helper's, and is the turn's own."""
    other = [{"role": "user", "content": f"Plan: {ASKED}"}]
    goes_on = [{"role": "user", "content": words}, {"role": "user", "content": ASKED}]
    assert verdicts(tmp_path, 2, [said(), hook(FACT), asks(messages=other), asks(FACT, messages=goes_on)]) == [PASS]


def test_a_request_that_the_server_continues_is_late(tmp_path: Path) -> None:
    """Where the server keeps what was said, the user's words of before are not repeated."""
    first = model({"input": f"Plan: {ASKED}"}, "/v1/responses")
    second = model({"input": ASKED, "instructions": FACT, "previous_response_id": "r1"}, "/v1/responses")
    assert only(tmp_path, 2, [said(), hook(FACT), first, second]).fold == "user-prompt-submit late"


def test_the_first_request_beside_the_turn_is_named(tmp_path: Path) -> None:
    """Of two titles that took the text, the finding names the first."""
    title = asks(MEMORY, f"Title: {ASKED}", tools=False)
    finding = only(tmp_path, 1, [step("start"), start(), said(), title, title, asks()])
    assert (finding.model, finding.fold) == ((6, 4), "session-start absent")


def test_why_a_turn_is_left_open(tmp_path: Path) -> None:
    """It is told whether the request was only partly recorded, or not at all, or came before the start."""
    head = [step("start"), start(), said(index=7)]
    not_its = asks(text="Something else entirely")
    for requests, message in (
        ([not_its], "step 7: the request to the model was not recorded"),
        ([not_its, UNREAD], "step 7: the request to the model was only partly recorded"),
        ([asks(), UNREAD], "some requests of the turn were only partly recorded"),
    ):
        finding = only(tmp_path, 1, [*head, *requests])
        assert (finding.verdict, finding.message) == (OPEN, message)
    late = only(tmp_path, 1, [said(), asks(), start()])
    assert late.message == "the session was started after the model had been asked"
    assert late.model == (2,)


@pytest.mark.parametrize(
    ("lines", "note", "expected"),
    [(1, "", OPEN), (2, "", PASS), (1, "[truncated]", PASS), (0, "[truncated]", WARN), (4, "", PASS)],
)
def test_half_of_the_lines_are_enough(lines: int, note: str, expected: object, tmp_path: Path) -> None:
    """Fewer do where the request says that something was left out; none never does."""
    text = [f"Memory {word} is about the billing service." for word in ("one", "two", "three", "four")]
    items = [step("start"), start("\n".join(text)), said(), asks("\n".join([*text[:lines], note]))]
    assert verdicts(tmp_path, 1, items) == [expected]
    if expected is OPEN:
        message = "only 1 of 4 lines of what was injected reach the model"
        assert only(tmp_path, 1, items).message == message


@pytest.mark.parametrize(
    ("shown", "expected"),
    [((1,), WARN), ((0, 1), OPEN), ((1, 2, 3), PASS), ((0,), OPEN), ((1, "[truncated]"), PASS), ((), WARN)],
)
def test_another_member_of_the_answer_is_not_what_was_injected(
    shown: tuple[int | str, ...], expected: object, tmp_path: Path
) -> None:
    """A line that stands in it too is the only one that the model gets: the connector passed on the wrong member."""
    text = [f"Memory {word} is about the billing service." for word in ("one", "two", "three", "four", "five", "six")]
    lines = [each if isinstance(each, str) else text[each] for each in shown]
    given = start("\n".join(text))
    given["response"]["body"]["recentContext"] = f"# Memory\n\n{text[1]}"
    items = [step("start"), given, said(), asks("\n".join(lines))]
    assert verdicts(tmp_path, 1, items) == [expected]
    if shown == (1,):
        message = "what session-start injected does not reach the model: only recentContext of the same answer is there"
        assert only(tmp_path, 1, items).message == message


def test_a_line_that_the_host_cuts_is_not_missing(tmp_path: Path) -> None:
    """Its beginning proves that the text was passed on; a few words of it, or one that goes on otherwise, do not."""
    line = "The billing service of Atlas runs in two regions, and only the first of them takes payments."
    other = f"{line[:60]} the second is new."
    for shown, expected in ((line, PASS), (line[:60], OPEN), (line[:20], WARN), (other, WARN)):
        items = [step("start"), start(line), said(), asks(shown)]
        assert verdicts(tmp_path, 1, items) == [expected]
        if expected is OPEN:
            assert only(tmp_path, 1, items).message == "only the beginning of what was injected reaches the model"


TWICE, THRICE = f"{FACT}\n\n{FACT}", f"{FACT}\n\n{FACT}\n\n{FACT}"
COUNTED: Mapping[str, tuple[Sequence[Item], list[object]]] = {
    "once": ([said(), hook(FACT), asks(FACT)], [PASS]),
    "twice": ([said(), hook(FACT), asks(TWICE)], [WARN]),
    "not at all": ([said(), hook(FACT), asks()], []),
    "twice, given twice": ([said(), hook(FACT), said(AGAIN), hook(FACT, AGAIN), asks(TWICE, AGAIN)], [PASS]),
    "twice, given twice by a connector without keys": (
        [said(), hook(FACT, key=None), said(AGAIN), hook(FACT, AGAIN, None), asks(TWICE, AGAIN)], [PASS]
    ),
    "once, given twice": ([said(), hook(FACT), said(AGAIN), hook(FACT, AGAIN), asks(FACT, AGAIN)], [PASS]),
    "twice, given once more afterwards": ([said(), hook(FACT), asks(TWICE), said(AGAIN), hook(FACT, AGAIN)], [WARN]),
    "given as the model was asked": ([said(), hook(FACT, t0=2.0, t1=2.1), asks(FACT, t0=2.0)], [PASS]),
    "two texts, the first sorts behind": (
        [step("start"), start("Zebra herds graze near the river"), said(), hook(FACT),
         asks(f"Zebra herds graze near the river\n{FACT}")], [PASS, PASS],
    ),
    "one of two lines twice": ([said(), hook(f"{FACT}\n{MEMORY}"), asks(f"{TWICE}\n{MEMORY}")], [PASS]),
    "both lines twice": ([said(), hook(f"{FACT}\n{MEMORY}"), asks(f"{TWICE}\n{MEMORY}\n{MEMORY}")], [WARN]),
    "within a longer line of the other text": (
        [step("start"), start(f"Note: {FACT}, as ever"), said(), hook(FACT), asks(f"Note: {FACT}, as ever\n{FACT}")],
        [PASS, PASS],
    ),
    "twice, after a compaction": ([said(), hook(FACT), step("compact"), said(AGAIN), asks(TWICE, AGAIN)], []),
    "twice, before a compaction": (
        [said(), hook(FACT), asks(TWICE), step("compact"), said(AGAIN), asks("", AGAIN)], [WARN]
    ),
    "twice, after a clear": ([said(), hook(FACT), step("clear"), said(AGAIN), asks(TWICE, AGAIN)], []),
    "twice, after the hook of a compaction": (
        [said(), hook(FACT), step("compaction_complete"), said(AGAIN), asks(TWICE, AGAIN)], []
    ),
    "twice, after a resumption": ([said(), hook(FACT), step("resume"), said(AGAIN), asks(TWICE, AGAIN)], [WARN]),
    "twice, in a turn of which the first request is right": ([said(), hook(FACT), asks(FACT), asks(TWICE)],
                                                             [PASS, WARN]),
}  # fmt: skip


@pytest.mark.parametrize("case", COUNTED)
def test_how_often_an_injected_text_may_stand(case: str, tmp_path: Path) -> None:
    """As often as it was given until then, all of it; after a compaction a summary may quote it."""
    items, expected = COUNTED[case]
    assert verdicts(tmp_path, 3, items) == expected


@pytest.mark.parametrize(("mine", "other", "key", "other_key"), OTHER_NAMES)
@pytest.mark.parametrize("between", ["prompt", "compact"])
def test_another_session_makes_no_text_twice_right(
    mine: str, other: str, key: str, other_key: str, between: str, tmp_path: Path
) -> None:
    """What another session was given, and that it was compacted, excuses no second place."""
    items = [said(AGAIN, other), hook(FACT, AGAIN, other_key), step(between, other), said(ASKED, mine),
             hook(FACT, key=key), asks(TWICE)]  # fmt: skip
    assert verdicts(tmp_path, 3, items) == [WARN]


@pytest.mark.parametrize(
    ("given", "stands", "expected", "received"),
    [(1, TWICE, "once", "twice in one request"), (2, THRICE, "twice", "3 times in one request")],
)
def test_a_text_that_stands_too_often_is_told_in_words(
    given: int, stands: str, expected: str, received: str, tmp_path: Path
) -> None:
    """The finding says how often it was given, and how often it stands there."""
    finding = only(tmp_path, 3, [said(), *[hook(FACT)] * given, asks(stands)])
    assert finding.message == "an injected text reaches the model more often than it was injected"
    assert (finding.expected, finding.received) == (f"{FACT!r}, {expected}", received)
    assert (finding.exchanges, finding.model) == ((2,), (2 + given,))


def test_nothing_is_said_of_a_session_that_was_given_nothing(tmp_path: Path) -> None:
    """A hook that injects nothing, or whose answer cannot be read, leaves nothing to look for."""
    for answer in ({"inject": ""}, {"inject": None}, {}, None):
        items = [said(), call("/api/hooks/user-prompt-submit", {"sessionKey": "k1", "userMessage": ASKED}, answer),
                 asks(FACT)]  # fmt: skip
        assert [outcomes(tmp_path, number, items) for number in (1, 2, 3)] == [[], [], []]


HELD = {"fault": {"kind": "delay", "delay_s": 2.5}, "error": {"kind": "client_closed"}, "t0": 3.0, "t1": 5.0}


def test_an_answer_that_came_in_time_counts_although_the_connector_left(tmp_path: Path) -> None:
    """It is told that the connector gave it up; one that came after the declared bound is none."""
    items = [step("start"), said(), hook(FACT, **HELD), asks()]
    finding = only(tmp_path, 2, items)
    assert finding.message == (
        "what the prompt hook injected does not reach the model: the connector gave it up after 2.0 s, before its bound"
    )
    assert finding.fold == "user-prompt-submit given up"


@pytest.mark.parametrize(
    "more",
    [{"fault": {"kind": "delay", "delay_s": 7}}, {"fault": {"kind": "hang"}}, {"response": None}, {"fault": None}],
)
def test_an_answer_that_came_too_late_is_none(more: Mapping[str, Any], tmp_path: Path) -> None:
    """A connector need not wait for it."""
    held = {**HELD, **more}
    item = {**hook(FACT, **{name: value for name, value in held.items() if value is not None})}
    item |= {"response": None} if "response" in more else {}
    assert verdicts(tmp_path, 2, [step("start"), said(), item, asks()]) == []
