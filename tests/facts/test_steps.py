"""Facts about the steps that a driver skipped: how they are counted and told, and what they explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from signet_conformance.facts.steps import SkipMeter, skipped_for, skipped_words
from signet_conformance.trace import Mark, Trace
from tests.support.trace_parts import trace

NOTHING = "the driver has no function for it"


def performed(*steps: tuple[dict[str, Any], bool]) -> Trace:
    """A recording of steps, each with whether the driver skipped it."""
    marks: list[Mark] = []
    for index, (step, skipped) in enumerate(steps):
        given = {"index": index, "session": "s1", **step}
        marks.append(Mark(seq=2 * index + 1, t=0.0, name="step", data=given, line=2 * index + 2))
        if skipped:
            data = {"index": index, "reason": NOTHING}
            marks.append(Mark(seq=2 * index + 2, t=0.0, name="skipped", data=data, line=2 * index + 3))
    return trace(marks=marks)


def _step(name: str, **more: Any) -> dict[str, Any]:
    return {"step": name, **more}


def _said(traces: Sequence[Trace]) -> str:
    meter = SkipMeter()
    for each in traces:
        meter.add(each)
    return skipped_words(meter.skipped())


COMPACT = _step("compact"), True
STORE, SEARCH = _step("tool", tool="memory_store"), _step("tool", tool="memory_search")


def test_skipped_steps_are_counted_by_recording() -> None:
    """A step that is skipped twice in one scenario counts once, and what is performed is not named."""
    traces = [performed((_step("start"), False), COMPACT, COMPACT), performed(COMPACT, (STORE, True)), performed()]
    assert _said(traces) == "the driver skipped compact (2 scenarios), tool (1)"


@pytest.mark.parametrize(
    ("used", "said"),
    [
        ([(STORE, True), (SEARCH, True)], "the driver skipped tool (1 scenario)"),
        ([(STORE, True), (SEARCH, False)], "the driver skipped tool memory_store (1 scenario)"),
        ([(STORE, False), (SEARCH, False)], ""),
    ],
)
def test_tools_are_named_where_some_are_used(used: list[tuple[dict[str, Any], bool]], said: str) -> None:
    """A driver without any tool is told apart from a connector that lacks one of them."""
    assert _said([performed(*used)]) == said


def test_command_of_the_harness_is_no_skipped_prompt() -> None:
    """That a harness keeps `/status` to itself says nothing of its prompts; a stopped turn has its own name."""
    told = [_step("prompt", text="/status"), _step("prompt", text="Go on.", stopped=True)]
    assert _said([performed(*((step, True) for step in told))]) == (
        "the driver skipped a command of the harness (1 scenario), stopped_prompt (1)"
    )


def test_what_a_session_begins_and_ends_with_is_explained_first() -> None:
    """A compaction that is skipped may be the effect of prompts that are."""
    skipped = [performed(COMPACT, (_step("end"), True), (_step("prompt", text="Go on."), True))]
    told = skipped_for(skipped, ["compaction-complete", "pre-compaction", "session-end", "user-prompt-submit"])
    assert [words.removeprefix("the driver skipped ").split(" ")[0] for words in told] == ["prompt", "end", "compact"]


def test_skipped_steps_explain_what_only_they_bring_about() -> None:
    """An operation is explained where each step that could bring it about was skipped, and nowhere else."""
    start = _step("start"), False
    skipped = [performed(start, COMPACT, (STORE, True), (SEARCH, False))]
    absent = ["pre-compaction", "compaction-complete", "hooks-remember", "memory-recall", "session-start", "health"]
    compact, store = (
        f"the driver skipped {what} (1 scenario), since {NOTHING}, and nothing else brings"
        for what in ("compact", "tool memory_store")
    )
    assert skipped_for(skipped, absent) == [
        f"{compact} pre-compaction, compaction-complete about",
        f"{store} hooks-remember about",
    ]
    assert skipped_for([*skipped, performed((_step("pre_compaction"), False))], ["pre-compaction"]) == []


@pytest.mark.parametrize("kind", ["clear", "fork", "reopen"])
@pytest.mark.parametrize(("operation", "skipped"), [("session-start", "start"), ("session-end", "end")])
def test_steps_in_place_of_a_session_end_it_and_open_one(kind: str, operation: str, skipped: str) -> None:
    """A skipped start or end explains nothing where the user branched the session or went to another one."""
    assert skipped_for([performed((_step(skipped), True))], [operation]) != []
    assert skipped_for([performed((_step(skipped), True), (_step(kind), False))], [operation]) == []
