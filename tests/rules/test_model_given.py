"""Facts about which lines of a text show that it is before the model: not those that stand there without it, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.case_traces import DECLARED

from .model_requests import ASKED, Item, anthropic
from .model_turns import FACT, MEMORY, OPEN, PASS, WARN, asks, call, hook, only, said, start, step, verdicts

IDENTITY = "You are Rig, the careful agent of the Atlas team.\nAnswer in short sentences and cite the files."
OWN_PROMPT = "You code. List files (ls, find, ...) and name what was truncated."
NEXT, LATER = "And who approves refunds?", "And who pays them?"
MANY = [f"Memory {word} is about the billing service." for word in ("one", "two", "three", "four", "five")]
MORE = [f"Memory {word} is about the ledger service." for word in ("six", "seven")]
SUMMARY = "Decided that Atlas deploys on Fridays only, after a dry run."
ROWS = [{"content": MEMORY}]
WARM_UP: Item = anthropic("Warmup", IDENTITY)


def summed_up(summary: str = SUMMARY) -> Item:
    """The call that tells the daemon of a compaction."""
    return call("/api/hooks/compaction-complete", {"sessionKey": "k1", "summary": summary}, {"success": True})


def reminded(text: str, system: str = OWN_PROMPT) -> Item:
    """A request with a text in a message of its own, beside the program's own prompt."""
    return asks(system, messages=[{"role": "user", "content": text}, {"role": "user", "content": ASKED}])


def answered_with(inject: str, **members: Any) -> Item:
    """A session-start whose answer has other members beside the text."""
    asked = start(inject)
    answer = asked["response"]
    return {**asked, "response": {**answer, "body": {**answer["body"], **members}}}


def two_sessions(first: str, second: str, own: str = IDENTITY) -> list[Item]:
    """Two sessions that are started with the same text, and what each puts before its model in its system text."""
    text = f"{IDENTITY}\n{MEMORY}"
    return [
        step("start"), start(text, memories=ROWS), said(), asks(f"{own}\n{first}"),
        step("start", "s2"), start(text, "k2", memories=ROWS), said(LATER, "s2"), asks(f"{own}\n{second}", LATER),
    ]  # fmt: skip


STARTED: Mapping[str, tuple[Sequence[Item], list[object]]] = {
    "a part of it, and dots in the program's own prompt": (
        [step("start"), start("\n".join(MANY)), said(), reminded(MANY[0])], [OPEN]
    ),
    "a part of it, and a notice beside it": (
        [step("start"), start("\n".join(MANY)), said(), reminded(f"{MANY[0]}\n[3 more lines]")], [PASS]
    ),
    "a part of it in one prompt, and dots far from it": (
        [step("start"), start("\n".join(MANY)), said(), asks(f"{MANY[0]}\n{'You write code. ' * 40}\n{OWN_PROMPT}")],
        [OPEN],
    ),
    "a part of it, with dots of its own": (
        [step("start"), start("\n".join([f"{MANY[0]} and so on...", *MANY[1:]])), said(),
         reminded(f"{MANY[0]} and so on...")], [OPEN],
    ),
    "its identity in the system text of each session": (two_sessions("", ""), [WARN, WARN]),
    "its identity in the system text of each session, and the memory in one": (two_sessions(MEMORY, ""), [PASS, WARN]),
    "all of it in the system text of each session": (two_sessions(MEMORY, MEMORY), [PASS, PASS]),
    "what another session was not given in the system text of each": (
        [step("start"), start(), said(), asks(MEMORY), step("start", "s2"), said(ASKED, "s2"), asks(MEMORY)], []
    ),
    "its identity in the system text of each session, and no memory": (
        [step("start"), start(IDENTITY, memories=[]), said(), asks(IDENTITY),
         step("start", "s2"), start(IDENTITY, "k2", memories=[]), said(ASKED, "s2"), asks(IDENTITY)], [],
    ),
    "wrapped within a word": (
        [step("start"), start(), said(), asks(MEMORY.replace("deploys", "dep-\nloys"))], [PASS]
    ),
    "all of it beside the program's own prompt in each session": (
        [step("start"), start(), said(), reminded(MEMORY), step("start", "s2"), start(key="k2"), said(ASKED, "s2"),
         reminded(MEMORY)], [PASS, PASS],
    ),
    "its identity in a request before it": (
        [WARM_UP, step("start"), start(f"{IDENTITY}\n{MEMORY}", memories=ROWS), said(), asks(IDENTITY)], [WARN]
    ),
    "its identity in a request of the session before it": (
        [said(NEXT), asks(IDENTITY, NEXT), step("resume"), start(f"{IDENTITY}\n{MEMORY}", memories=ROWS), said(),
         asks(IDENTITY)], [WARN],
    ),
    "its identity in a request of the session before a clear": (
        [said(NEXT), asks(IDENTITY, NEXT), step("clear"), start(IDENTITY, memories=[]), said(), asks(IDENTITY)], [PASS]
    ),
    "its identity in an older request of the session only": (
        [said(NEXT), asks(IDENTITY, NEXT), said(LATER), asks("", LATER), step("resume"),
         start(IDENTITY, memories=[]), said(), asks(IDENTITY)], [PASS],
    ),
    "its identity in a request of another session before it": (
        [step("start", "s2"), said(NEXT, "s2"), reminded(IDENTITY), step("start"), start(IDENTITY, memories=[]),
         said(), reminded(IDENTITY)], [PASS],
    ),
    "its identity alone, of which a program may know": (
        [step("start"), start(f"{IDENTITY}\n{MEMORY}", memories=ROWS), said(), asks(IDENTITY)], [OPEN]
    ),
    "no more than what a stub told later": (
        [step("start"), start(f"[memory active]\nToday is Sunday the fourth of May\n{MEMORY}", memories=ROWS),
         start("[memory active]\nToday is Sunday the fourth of May", memories=[]), said(),
         reminded("Today is Sunday the fourth of May")], [WARN],
    ),
    "a line that stood there before it, and a notice beside it": (
        [said(NEXT), asks(MANY[0], NEXT), step("resume"), start("\n".join(MANY[:3])), said(),
         asks(f"{MANY[0]}\n[2 more lines]")], [OPEN],
    ),
    "its identity in a request of the session before it, and a title after that": (
        [said(NEXT), asks(IDENTITY, NEXT), asks("", "A title", tools=False), step("resume"),
         start(f"{IDENTITY}\n{MEMORY}", memories=ROWS), said(), asks(IDENTITY)], [WARN],
    ),
    "its identity in a request of the session before another one was cleared": (
        [step("start"), start("", memories=[]), said(NEXT), asks(IDENTITY, NEXT), step("clear", "s2"), step("resume"),
         start(f"{IDENTITY}\n{MEMORY}", memories=ROWS), said(), asks(IDENTITY)], [WARN],
    ),
    "its identity in a request of the session that is cleared later": (
        [said(NEXT), asks(IDENTITY, NEXT), step("resume"), start(f"{IDENTITY}\n{MEMORY}", memories=ROWS), said(),
         asks(IDENTITY), step("clear")], [WARN],
    ),
    "its identity in a request of another session before it goes on": (
        [step("start", "s2"), said(NEXT, "s2"), asks("", NEXT, messages=[{"role": "user", "content": IDENTITY}]),
         step("resume"), start(IDENTITY, memories=[]), said(), reminded(IDENTITY)], [PASS],
    ),
    "one line less than stood there before it, of no weight": (
        [said(NEXT), asks(IDENTITY, NEXT), step("resume"),
         start(f"{IDENTITY}\nIt is three o'clock in Berlin.", memories=[]), said(), asks(IDENTITY)], [OPEN],
    ),
    "a part of it that also names a member of another part of the answer": (
        [step("start"), answered_with("\n".join(MANY), seen={MANY[0]: 1}), said(), reminded(MANY[0])], [OPEN]
    ),
    "two lines of three, of which one stood there before it": (
        [said(NEXT), asks(MANY[0], NEXT), step("resume"), start("\n".join(MANY[:3]), memories=[]), said(),
         asks(MANY[0])], [WARN],
    ),
    "three lines of seven, of which four stood there before it": (
        [said(NEXT), asks("\n".join(MANY[:4]), NEXT), step("resume"),
         start("\n".join([*MANY, *MORE]), memories=[]), said(), asks("\n".join(MANY[:4]))], [OPEN],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STARTED)
def test_what_shows_that_a_start_is_before_the_model(case: str, tmp_path: Path) -> None:
    """Lines that stood there without it show nothing, nor does a notice that is about something else."""
    items, expected = STARTED[case]
    assert verdicts(tmp_path, 1, items) == expected


GAVE_UP = {"response": {"status": 200, "body": {"inject": MEMORY}}, "error": {"kind": "client_closed"}}
HELD_BACK = {**GAVE_UP, "fault": {"kind": "delay", "delay_s": 3.0}}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (HELD_BACK, [WARN]),
        ({**HELD_BACK, "fault": {"kind": "delay", "delay_s": 7.0}}, [WARN]),
        ({**HELD_BACK, "fault": {"kind": "delay", "delay_s": 15.0}}, []),
        ({**HELD_BACK, "fault": {"kind": "delay"}}, []),
        ({**HELD_BACK, "fault": {"kind": "slow_body", "delay_s": 3.0}}, []),
        ({**HELD_BACK, "response": {"status": 500, "body": {"inject": MEMORY}}}, []),
        (GAVE_UP, []),
    ],
    ids=[
        "in time",
        "beyond the bound of a prompt",
        "at its bound",
        "for an unknown time",
        "in part",
        "refused",
        "not held back",
    ],
)
def test_an_answer_that_came_in_time_was_given(more: Mapping[str, Any], expected: list[object], tmp_path: Path) -> None:
    """A connector that leaves before its declared bound drops what it would have been given."""
    assert verdicts(tmp_path, 1, [step("start"), start(**more), said(), asks()]) == expected


def test_it_is_told_how_long_an_answer_was_awaited_that_was_given_up(tmp_path: Path) -> None:
    """From the request until the connector left."""
    items = [step("start"), start(**HELD_BACK, t0=1.5, t1=3.9), said(), asks()]
    assert "the connector gave it up after 2.4 s, before its bound" in only(tmp_path, 1, items).message


@pytest.mark.parametrize(("t1", "expected"), [(17.5, []), (14.5, [WARN])])
def test_an_answer_that_is_read_beyond_its_bound_was_not_given(
    t1: float, expected: list[object], tmp_path: Path
) -> None:
    """A connector that went on without it may leave its reading to a thread."""
    late = start(fault={"kind": "slow_body", "delay_s": 13.0}, t0=2.0, t1=t1)
    assert verdicts(tmp_path, 1, [step("start"), late, said(), asks(t0=20.0, t1=21.0)]) == expected


@pytest.mark.parametrize(("bounds_s", "expected"), [({"start": 2.0, "prompt": 5.0}, [WARN]), ({"start": 15.0}, [])])
def test_each_hook_has_a_bound_of_its_own(
    bounds_s: Mapping[str, float], expected: list[object], tmp_path: Path
) -> None:
    """A prompt is waited for as long as a prompt, and nobody knows how long where that is not declared."""
    declared = {**DECLARED, "bounds_s": bounds_s}
    late = {**HELD_BACK, "response": {"status": 200, "body": {"inject": FACT}}}
    assert verdicts(tmp_path, 2, [step("start"), said(), hook(**late), asks()], declared=declared) == expected


HEAD = [said(), hook(f"Relevant entity context\n{MEMORY}"), asks(f"Relevant entity context\n{MEMORY}")]
PROMPTED: Mapping[str, tuple[Sequence[Item], list[object]]] = {
    "the context of the turn before": (
        [*HEAD, said(NEXT), hook(f"Relevant entity context\n{FACT}", NEXT),
         asks(f"Relevant entity context\n{MEMORY}", NEXT)], [PASS, WARN],
    ),
    "its own beside it": (
        [*HEAD, said(NEXT), hook(f"Relevant entity context\n{FACT}", NEXT),
         asks(f"Relevant entity context\n{MEMORY}\n{FACT}", NEXT)], [PASS, PASS],
    ),
    "the same context once more": (
        [*HEAD, said(NEXT), hook(f"Relevant entity context\n{MEMORY}", NEXT),
         asks(f"Relevant entity context\n{MEMORY}", NEXT)], [PASS],
    ),
    "the same context, which was dropped": (
        [*HEAD, said(NEXT), hook(f"Relevant entity context\n{MEMORY}", NEXT), asks("", NEXT)], [PASS, WARN],
    ),
    "a title before the hook that holds it": (
        [said(), asks(f"{FACT}", "A title", tools=False), hook(FACT), asks(FACT)], []
    ),
    "most of it, without the rows that its answer lists": (
        [said(), {**hook(f"{IDENTITY}\n{FACT}"), "response": {"status": 200, "body": {
            "inject": f"{IDENTITY}\n{FACT}", "memories": [{"content": FACT}]}}}, asks(IDENTITY)], [PASS],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PROMPTED)
def test_what_shows_that_the_context_of_a_turn_is_before_the_model(case: str, tmp_path: Path) -> None:
    """What an earlier turn brought is in the history, whatever becomes of this turn's own."""
    items, expected = PROMPTED[case]
    assert verdicts(tmp_path, 2, items) == expected


BEGUN = [step("start"), start(), said(), asks(), step("compact"), summed_up()]
AFTERWARDS = [step("end"), step("resume"), start(SUMMARY), said(LATER), asks(SUMMARY, LATER)]
COMPACTED: Mapping[str, tuple[Sequence[Item], list[object]]] = {
    "the daemon says it after the turn": ([*BEGUN, said(NEXT), asks(SUMMARY, NEXT), *AFTERWARDS], [PASS]),
    "the daemon says it after the turn that lacks it": ([*BEGUN, said(NEXT), asks("", NEXT), *AFTERWARDS], [WARN]),
    "the daemon says it before the turn": (
        [*BEGUN, step("resume"), start(SUMMARY), said(NEXT), asks(SUMMARY, NEXT)], []
    ),
    "a line of many, and dots in the program's own prompt": (
        [*BEGUN[:-1], summed_up("\n".join(MANY)), said(NEXT),
         asks(OWN_PROMPT, messages=[{"role": "user", "content": MANY[0]}, {"role": "user", "content": NEXT}])], [OPEN],
    ),
    "in the question for the summary already": (
        [*BEGUN[:-1], asks("", SUMMARY, tools=False), summed_up(), said(NEXT), asks(SUMMARY, NEXT)], []
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPACTED)
def test_what_shows_that_a_summary_is_before_the_model(case: str, tmp_path: Path) -> None:
    """Of what the daemon said only what it had said before the turn makes a line tell nothing."""
    items, expected = COMPACTED[case]
    assert verdicts(tmp_path, 9, items) == expected


@pytest.mark.parametrize(("told_at", "expected"), [("before", []), ("after", [WARN])])
def test_a_leak_is_one_though_the_daemon_says_the_same_later(
    told_at: str, expected: list[object], tmp_path: Path
) -> None:
    """What a session was told before its request may be there; what it is told afterwards came from the other one."""
    recall = call("/api/memory/recall", {"query": "refunds", "sessionKey": "k2"}, {"results": [{"content": FACT}]})
    turn = [said(NEXT, "s2"), *([recall] if told_at == "before" else []), asks(FACT, NEXT)]
    after = [said(LATER, "s2"), recall] if told_at == "after" else []
    items = [
        step("start"),
        start(),
        said(),
        hook(FACT),
        asks(FACT),
        step("start", "s2"),
        start(key="k2"),
        *turn,
        *after,
    ]
    assert verdicts(tmp_path, 4, items) == expected


def test_why_it_is_open_whether_a_start_is_there(tmp_path: Path) -> None:
    """It is said that only lines are there which a program may know by itself."""
    items = [step("start"), start(f"{IDENTITY}\n{MEMORY}", memories=ROWS), said(), asks(IDENTITY)]
    message = "the model gets no memory of what was injected, only lines that a program may know by itself"
    assert only(tmp_path, 1, items).message == message
