"""Facts about how long a text stands before the model: through its turn, and in no turn that it was not given for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.finding import Verdict

from .model_requests import ASKED, Item, judged
from .model_turns import FACT, MEMORY, asks, hook, said, start, step

NEXT = "And who approves refunds?"
MORE = "Her deputy is Jo Ahrens."
STAYS = {"lasts": "turn", "in_prompt": True}
PASS, WARN, NONE = Verdict.PASS, Verdict.WARN, Verdict.NOT_APPLICABLE


USE = {"type": "tool_use", "id": "c1", "name": "memory_search", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "Nothing."}
CALLED = [
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": [USE]},
    {"role": "user", "content": [RESULT]},
]


def later(system: str = "") -> Item:
    """The request after a tool has run."""
    return asks(system, messages=CALLED)


def chained(item: Item) -> Item:
    """A request in which the server is to know what was said before."""
    request = item["request"]
    return {**item, "request": {**request, "body": {**request["body"], "previous_response_id": "r1"}}}


CHAINED = chained(later())
TOOL = step("tool", tool="memory_search")
ASKING = [step("start"), start(), said(more=True), hook(FACT)]
WHOLE = asks(f"{MEMORY}\n{FACT}")
THROUGH: Mapping[str, tuple[Sequence[Item], Mapping[str, Any], Verdict]] = {
    "in both": ([*ASKING, WHOLE, TOOL, later(f"{MEMORY}\n{FACT}")], STAYS, PASS),
    "the hook's in the first only": ([*ASKING, WHOLE, TOOL, later(MEMORY)], STAYS, WARN),
    "the start's in the first only": ([*ASKING, WHOLE, TOOL, later(FACT)], STAYS, WARN),
    "in a message after the user's, in the first only": (
        [*ASKING, asks(MEMORY, messages=[{"role": "user", "content": ASKED}, {"role": "user", "content": FACT}]),
         TOOL, later(MEMORY)], STAYS, WARN,
    ),
    "in a message after the user's, in both": (
        [*ASKING, asks(MEMORY, messages=[{"role": "user", "content": ASKED}, {"role": "user", "content": FACT}]),
         TOOL, asks(MEMORY, messages=[*CALLED, {"role": "user", "content": FACT}])], STAYS, PASS,
    ),
    "in neither": ([*ASKING, asks(), TOOL, later()], STAYS, NONE),
    "in the first only, where the host drops it": (
        [*ASKING, WHOLE, TOOL, later()], {**STAYS, "lasts": "request"}, NONE
    ),
    "in the first only, of a host that nobody knows": ([*ASKING, WHOLE, TOOL, later()], {}, NONE),
    "one request": ([*ASKING, WHOLE], STAYS, NONE),
    "the hook's of the next turn in its first request only": (
        [*ASKING, WHOLE, said(NEXT, more=True), hook(MORE, NEXT), asks(f"{MEMORY}\n{MORE}", NEXT), TOOL,
         asks(MEMORY, messages=[{"role": "user", "content": NEXT}, *CALLED[1:]])], STAYS, WARN,
    ),
    "a late hook's of another turn in the first only": (
        [*ASKING[:3], hook(FACT, NEXT), WHOLE, TOOL, later(MEMORY)], STAYS, PASS,
    ),
    "an early hook's in the first only": (
        [*ASKING[:2], hook(FACT), said(more=True), WHOLE, TOOL, later(MEMORY)], STAYS, PASS,
    ),
    "in the first only, where the server keeps what was said": ([*ASKING, WHOLE, TOOL, CHAINED], STAYS, NONE),
    "a turn in which nothing was asked": (ASKING, STAYS, NONE),
    "what came after the last turn": ([step("start"), said(), asks(), start()], STAYS, NONE),
    "beside the user's words in the system text": (
        [*ASKING, asks(f"{MEMORY}\n{FACT}\n\n{ASKED}")], {**STAYS, "in_prompt": False}, NONE,
    ),
    "another conversation": (
        [*ASKING, WHOLE, asks(messages=[{"role": "user", "content": f"Search: {ASKED}"}])], STAYS, NONE
    ),
    "the next turn without it": ([*ASKING, WHOLE, said(NEXT), asks(MEMORY, NEXT)], STAYS, NONE),
    "a part of it": (
        [*ASKING[:3], hook(f"{FACT}\n{MORE}"), asks(f"{MEMORY}\n{FACT}\n{MORE}"), TOOL, later(f"{MEMORY}\n{FACT}")],
        STAYS, PASS,
    ),
    "as the user's words": ([*ASKING, asks(MEMORY, f"{FACT}\n\n{ASKED}")], {**STAYS, "in_prompt": False}, WARN),
    "beside the user's words": (
        [*ASKING, asks(MEMORY, messages=[{"role": "user", "content": FACT}, {"role": "user", "content": ASKED}])],
        {**STAYS, "in_prompt": False}, NONE,
    ),
    "as the user's words, where the host puts them": ([*ASKING, asks(MEMORY, f"{FACT}\n\n{ASKED}")], STAYS, NONE),
}  # fmt: skip


@pytest.mark.parametrize("case", THROUGH)
def test_a_text_stands_through_its_turn(case: str, tmp_path: Path) -> None:
    """In each request of the turn, as long as the host is known to let it."""
    items, header, expected = THROUGH[case]
    assert judged(tmp_path, items, **header).harness["SIG-MODEL-011"].verdict is expected


def test_the_first_request_that_lacks_a_text_is_told(tmp_path: Path) -> None:
    """And what it holds in the place of the text."""
    items = [*ASKING, WHOLE, TOOL, later(MEMORY), TOOL, later(f"{MEMORY}\n{MORE}")]
    (finding,) = judged(tmp_path, items, **STAYS).harness["SIG-MODEL-011"].findings
    assert (finding.model, finding.received) == ((5, 7), f"{MEMORY} | {ASKED}")


STOPPED = [step("start"), start(), said(NEXT, stopped=True), hook(FACT, NEXT)]
AGAIN: Mapping[str, tuple[Sequence[Item], Verdict]] = {
    "in the next turn's system text": ([*STOPPED, said(), hook(), asks(f"{MEMORY}\n{FACT}")], WARN),
    "beside the next turn's words": ([*STOPPED, said(), hook(), asks(MEMORY, f"{FACT}\n\n{ASKED}")], WARN),
    "nowhere": ([*STOPPED, said(), hook(), asks(MEMORY)], PASS),
    "in the history, beside its own turn": (
        [*STOPPED, said(), hook(), asks(messages=[
            {"role": "user", "content": NEXT}, {"role": "user", "content": FACT}, {"role": "user", "content": ASKED},
        ])], PASS,
    ),
    "given anew": ([*STOPPED, said(), hook(FACT), asks(f"{MEMORY}\n{FACT}")], NONE),
    "given by the start": (
        [step("start"), start(f"{MEMORY}\n{FACT}"), *STOPPED[2:], said(), asks(f"{MEMORY}\n{FACT}")], NONE
    ),
    "of a turn with a request": (
        [step("start"), start(), said(NEXT), hook(FACT, NEXT), asks(FACT, NEXT), said(), asks(FACT)], NONE
    ),
    "of a turn with a request of other words": (
        [step("start"), start(), said(NEXT), hook(FACT, NEXT), asks(FACT, "Go on."), said(), asks(FACT)], NONE
    ),
    "a title was asked for": (
        [*STOPPED, asks("Name it.", NEXT, tools=False), said(), hook(), asks(f"{MEMORY}\n{FACT}")], NONE
    ),
    "in the turn after the next": (
        [*STOPPED, said(), hook(), asks(MEMORY), said("Go on, please."), asks(FACT, "Go on, please.")], PASS
    ),
    "in the first request of the next turn only": (
        [*STOPPED, said(), hook(), asks(f"{MEMORY}\n{FACT}"), TOOL, later(MEMORY)], WARN
    ),
    "given anew after the first request of the next turn": (
        [*STOPPED, said(), asks(f"{MEMORY}\n{FACT}"), hook(FACT), TOOL, later(MEMORY)], WARN
    ),
    "in the turn before": (
        [step("start"), start(), said("Go on, please."), asks(FACT, "Go on, please."), *STOPPED[2:], said(), hook(),
         asks(MEMORY)], PASS,
    ),
    "in another session's turn": ([*STOPPED, step("start", "s2"), said(session="s2"), asks(FACT)], NONE),
    "the last turn": (STOPPED, NONE),
}  # fmt: skip


@pytest.mark.parametrize("case", AGAIN)
def test_a_text_that_was_not_taken_stays_away(case: str, tmp_path: Path) -> None:
    """The next turn's request holds it at most in the history, beside the turn that was stopped."""
    items, expected = AGAIN[case]
    assert judged(tmp_path, items).harness["SIG-MODEL-012"].verdict is expected


def test_it_is_told_which_step_a_text_was_given_for(tmp_path: Path) -> None:
    """The message names both steps."""
    items = [*STOPPED[:2], said(NEXT, index=1), STOPPED[3], said(index=2), hook(), asks(f"{MEMORY}\n{FACT}")]
    (finding,) = judged(tmp_path, items).harness["SIG-MODEL-012"].findings
    assert finding.message == (
        "text injected for step 1, in which the model was never asked, reaches the model in step 2 as if it"
        " belonged there"
    )
    assert (finding.exchanges, finding.model, finding.received) == ((4,), (7,), FACT)
