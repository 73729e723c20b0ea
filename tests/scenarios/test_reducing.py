"""What is taken out of a scenario, and what of its prompts, as long as it still shows something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

from signet_conformance.scenarios.reducing import longest_prompt, remove_steps, shorten_prompts
from signet_conformance.scenarios.scenario import Scenario, demand_open_sessions
from signet_conformance.scenarios.steps import ConnectorStep, EndStep, PromptStep, StartStep
from signet_conformance.scenarios.strategies import sessions


def scenario_of(*steps: Mapping[str, Any]) -> Scenario:
    """A scenario of some steps, all of the session s1 that name none."""
    kits = ("fault", "fault_off", "restart_daemon")
    named = [step if step["step"] in kits or "session" in step else {**step, "session": "s1"} for step in steps]
    return Scenario.from_json({"name": "one", "steps": named}, "here")


def kinds(scenario: Scenario) -> list[str]:
    """The kinds of its steps."""
    return [step.step for step in scenario.steps]


START: Mapping[str, Any] = {"step": "start"}
END: Mapping[str, Any] = {"step": "end"}
RESUME: Mapping[str, Any] = {"step": "resume"}
PRE: Mapping[str, Any] = {"step": "pre_compaction"}
DONE: Mapping[str, Any] = {"step": "compaction_complete", "summary": "Nothing."}
FAULT: Mapping[str, Any] = {"step": "fault", "fault": {"kind": "reset"}}
OFF: Mapping[str, Any] = {"step": "fault_off"}
STORE: Mapping[str, Any] = {"step": "tool", "tool": "memory_store", "arguments": {"content": "x"}, "as": "m"}
GET: Mapping[str, Any] = {
    "step": "tool",
    "tool": "memory_get",
    "arguments": {"id": {"from": "m", "pointer": "/id"}},
}


def said(text: str) -> Mapping[str, Any]:
    """A prompt."""
    return {"step": "prompt", "text": text}


@given(sessions(), st.sampled_from(["clear", "prompt", "tool", "compaction_complete", "resume", "fault"]))
def test_what_is_left_can_be_performed_and_shows_it(scenario: Scenario, kind: str) -> None:
    """Sessions are open when they are used and ended at the close, and faults are switched off, whatever goes."""
    if kind not in kinds(scenario):
        return
    left = remove_steps(scenario, lambda tried: kind in kinds(tried))
    demand_open_sessions(left, "here")
    assert kind in kinds(left)
    assert kinds(left).count("fault") == kinds(left).count("fault_off")
    assert isinstance([step for step in left.steps if isinstance(step, ConnectorStep)][-1], EndStep)
    # A fault between the halves of a compaction takes the most.
    assert len(left.steps) <= 6


@pytest.mark.parametrize(
    ("whole", "shows", "left"),
    [
        ((START, FAULT, said("a"), OFF, said("b"), END), lambda s: "prompt" in kinds(s), ["start", "prompt", "end"]),
        ((START, END, RESUME, said("a"), END), lambda s: "prompt" in kinds(s), ["start", "prompt", "end"]),
        ((START, said("a"), END, RESUME, END), lambda s: "prompt" in kinds(s), ["start", "prompt", "end"]),
        ((START, PRE, DONE, END), lambda s: "start" in kinds(s), ["start", "end"]),
        (
            (START, said("a"), STORE, GET, END),
            lambda s: kinds(s).count("tool") > 0,
            ["start", "prompt", "tool", "end"],
        ),
        (
            (START, said("a"), STORE, GET, END),
            lambda s: s.steps[-2:-1] == scenario_of(GET).steps,
            ["start", "prompt", "tool", "tool", "end"],
        ),
    ],
    ids=["fault", "resumed", "resumed-part", "halves", "tool", "what-is-referred-to"],
)
def test_each_part_goes_when_it_is_not_needed(
    whole: tuple[Mapping[str, Any], ...], shows: Callable[[Scenario], bool], left: list[str]
) -> None:
    """A fault, a resumption, both halves of a compaction and a tool go; what a later step refers to stays.

    So does the prompt before a tool: no model calls one unasked.
    """
    assert kinds(remove_steps(scenario_of(*whole), shows)) == left


def test_sub_agents_go_with_their_parent() -> None:
    """A session is not left behind by the one that it belongs to."""
    child = {"step": "start", "session": "s2", "parent": "s1"}
    other = {"step": "start", "session": "s3"}
    ends = [{"step": "end", "session": name} for name in ("s2", "s1", "s3")]
    whole = scenario_of(START, child, other, *ends)
    left = remove_steps(whole, lambda tried: any(isinstance(s, StartStep) and s.session == "s3" for s in tried.steps))
    assert kinds(left) == ["start", "end"]


@pytest.mark.parametrize("fewest", [1, 201, 4_096, 65_537])
def test_long_prompt_is_cut_to_what_still_shows_it(fewest: int) -> None:
    """Exactly as many characters stay as are needed, found by halving."""
    whole = scenario_of(START, said("x" * 100_000), said("short"), END)
    tried: list[Scenario] = []

    def shows(scenario: Scenario) -> bool:
        tried.append(scenario)
        return longest_prompt(scenario) >= fewest

    left = shorten_prompts(whole, shows)
    assert longest_prompt(left) == max(fewest, len("short"))
    assert len(tried) < 20


def test_no_prompt_is_cut_to_what_was_said_before_or_to_nothing() -> None:
    """A session in which the same is said twice, or nothing, would be another one."""
    whole = scenario_of(START, said("x"), said("x" * 1_000), said(" " * 300 + "y"), END)
    left = shorten_prompts(whole, lambda _scenario: True)
    texts = [step.text.strip() for step in left.steps if isinstance(step, PromptStep)]
    assert len(set(texts)) == 3
    assert all(texts)
