"""What the strategies draw: valid scenarios that hold every feature, and only what a target can do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from signet_conformance.scenarios.features import HALVES, SESSION_HOOKS, WHOLE_STEPS, Features
from signet_conformance.scenarios.reducing import remove_steps
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.scenarios.strategies import sessions
from signet_conformance.scenarios.writing import DETAIL, LARGEST_PROMPT_BYTES, PROJECTS, Digits, number, prompt_text
from signet_conformance.selftest.trials import scenarios as every_scenario
from signet_conformance.trace import Declared
from signet_conformance.trace.marks import StepName

Steps = Sequence[Mapping[str, Any]]

FEATURES = st.builds(
    Features,
    agents=st.integers(1, 3),
    steps=st.frozensets(st.sampled_from(["tool", "compact", "resume", "clear"])).flatmap(
        lambda some: st.sampled_from(
            [
                some | {"start", "prompt", "end"},
                some | {"start", "prompt", "end", "compact", "pre_compaction", "compaction_complete"},
            ]
        )
    ),
    tools=st.sampled_from([(), ("memory_search",), ("memory_store", "memory_get", "memory_modify", "memory_forget")]),
    restart=st.booleans(),
    slow=st.booleans(),
    lives_on=st.booleans(),
)


def steps_of(scenario: Scenario) -> Steps:
    """The steps as a file of the scenario holds them."""
    return [step.to_json() for step in scenario.steps]


def kinds(steps: Steps) -> list[str]:
    """The kinds of the steps."""
    return [step["step"] for step in steps]


@given(FEATURES.flatmap(lambda features: st.tuples(st.just(features), sessions(features))))
def test_every_scenario_is_one_that_the_target_can_perform(drawn: tuple[Features, Scenario]) -> None:
    """It survives its JSON, holds only what the features allow, and uses a session only while that is open."""
    features, scenario = drawn
    assert Scenario.from_json(json.loads(json.dumps(scenario.to_json())), "here") == scenario
    _check_sessions(steps_of(scenario), features)
    for step in steps_of(scenario):
        if step["step"] in list(StepName):
            assert step["step"] in features.steps | {"tool"}
        if step["step"] == "tool":
            assert step["tool"] in {*features.tools, "memory_store"}
        assert step["step"] != "restart_daemon" or features.restart
        if step["step"] == "fault" and not features.slow:
            assert step["fault"]["kind"] not in ("delay", "slow_body", "hang")


def _check_sessions(steps: Steps, features: Features) -> None:
    is_open: dict[str, bool] = {}
    compacting: set[str] = set()
    stored: set[str] = set()
    faulty = False
    children = 0
    for step in steps:
        kind, session = step["step"], step.get("session", "")
        if kind in ("fault", "fault_off"):
            assert faulty is (kind == "fault_off"), "faults do not overlap"
            faulty = kind == "fault"
        elif kind == "start":
            assert session not in is_open
            if "parent" in step:
                assert is_open[step["parent"]], "a sub-agent works while its caller does"
                children += 1
            assert 0 <= step["agent"] < features.agents
            assert step["project"] in PROJECTS
            is_open[session] = True
        elif kind == "resume":
            assert is_open[session] is False
            is_open[session] = True
        elif kind != "restart_daemon":
            assert is_open[session] is True
            assert (session in compacting) is (kind == "compaction_complete")
        if kind == "end":
            is_open[session] = False
        elif kind == "pre_compaction":
            compacting.add(session)
        elif kind == "compaction_complete":
            compacting.remove(session)
        if kind == "tool":
            references = [part for part in json.dumps(step["arguments"]).split('"') if "-m" in part]
            assert stored.issuperset(references) or step["tool"] == "memory_search"
            stored |= {step["as"]} if "as" in step else set()
    assert is_open
    assert not any(is_open.values()), "every session is ended"
    assert not faulty
    assert 1 <= len(is_open) - children <= 3


@given(sessions())
def test_no_tool_is_called_before_the_user_has_said_something(scenario: Scenario) -> None:
    """No model acts unasked: after a start, a resume and a clear a prompt of the session comes first."""
    assert not unasked_tools(scenario)


def test_no_scripted_scenario_calls_a_tool_unasked() -> None:
    """Nor do those that only mutants or variants need."""
    assert [name for name, scenario in every_scenario().items() if unasked_tools(scenario)] == []


def unasked_tools(scenario: Scenario) -> Sequence[int]:
    """The places of tool steps of sessions in which nothing was said since they were opened or cleared."""
    asked: set[str] = set()
    unasked = []
    for place, step in enumerate(steps_of(scenario)):
        if step["step"] == "prompt":
            asked.add(step["session"])
        elif step["step"] in ("start", "resume", "clear"):
            asked.discard(step["session"])
        elif step["step"] == "tool" and step["session"] not in asked:
            unasked.append(place)
    return unasked


@given(sessions())
def test_nothing_is_said_twice(scenario: Scenario) -> None:
    """Within a session no two prompts and no two summaries have the same words."""
    for member in ("text", "summary"):
        said = [(step["session"], step[member]) for step in steps_of(scenario) if member in step]
        assert len(said) == len(set(said))


@given(sessions())
def test_no_tool_is_asked_for_the_same_twice(scenario: Scenario) -> None:
    """No two calls of a tool have the same arguments, whatever their session, and what was forgotten is not used."""
    calls = [step for step in steps_of(scenario) if step["step"] == "tool"]
    asked = [(call["tool"], json.dumps(call["arguments"])) for call in calls]
    assert len(asked) == len(set(asked))
    forgotten: set[str] = set()
    for call in calls:
        named = {part for part in json.dumps(call["arguments"]).split('"') if "-m" in part}
        assert not named & forgotten
        forgotten |= named if call["tool"] == "memory_forget" else set()


@given(number(DETAIL))
def test_no_prompt_is_blank(detail: int) -> None:
    """Each prompt contains a letter, can be encoded, and takes at most 150 kB."""
    text = prompt_text(Digits(detail))
    assert any(character.isalnum() for character in text)
    assert len(text.encode()) <= LARGEST_PROMPT_BYTES


@given(sessions(Features(slow=True)))
def test_fault_is_one_of_the_recorders(scenario: Scenario) -> None:
    """The recorder takes every fault that is drawn."""
    from signet_recording_proxy.faults import parse

    for step in steps_of(scenario):
        if step["step"] == "fault":
            fault = {**step["fault"], **({"delay_s": 2.0} if "delay_s" in step["fault"] else {})}
            assert parse(1, fault, step.get("match"), step.get("count")).kind == fault["kind"]


def interleaved(steps: Steps) -> bool:
    """A prompt of one session after the start of another one, of another agent, that is not over."""
    agents = {step["session"]: step["agent"] for step in steps if step["step"] == "start"}
    opened: list[str] = []
    for step in steps:
        if step["step"] in ("start", "resume"):
            opened.append(step["session"])
        elif step["step"] == "end":
            opened.remove(step["session"])
        elif step["step"] == "prompt" and agents[opened[-1]] != agents[step["session"]]:
            return True
    return False


def resumed_after_clear(steps: Steps) -> bool:
    """A resume of a session that was cleared."""
    cleared: set[str] = set()
    for step in steps:
        if step["step"] == "clear":
            cleared.add(step["session"])
        elif step["step"] == "resume" and step["session"] in cleared:
            return True
    return False


def fault_inside_compaction(steps: Steps) -> bool:
    """A fault that is switched on between the halves of a compaction."""
    names = kinds(steps)
    return any(names[n : n + 3] == ["pre_compaction", "fault", "compaction_complete"] for n in range(len(names)))


def faults_at(steps: Steps, *kinds_of_step: str) -> set[tuple[object, object]]:
    """Kind and status of the faults that are on while steps of these kinds are performed."""
    faults_seen: set[tuple[object, object]] = set()
    fault: Mapping[str, Any] | None = None
    for step in steps:
        if step["step"] in ("fault", "fault_off"):
            fault = step.get("fault")
        elif fault is not None and step["step"] in kinds_of_step:
            faults_seen.add((fault["kind"], fault.get("status")))
    return faults_seen


def resumed_after_a_refused_end(steps: Steps) -> bool:
    """A resume that comes after the listener was closed for the session's end."""
    return ("refuse", None) in faults_at(steps, "end") and "resume" in kinds(steps)


@given(FEATURES.flatmap(lambda features: st.tuples(st.just(features), sessions(features))))
def test_end_is_refused_only_where_it_can_come_later(drawn: tuple[Features, Scenario]) -> None:
    """No listener is closed around the end of a session whose process is over with it."""
    features, scenario = drawn
    assert features.lives_on or ("refuse", None) not in faults_at(steps_of(scenario), "end", "clear")


@pytest.mark.parametrize(
    ("lives_on", "at_starts", "at_ends"),
    [(True, {401, 500}, {401, 409, 429, 500}), (False, {500}, {429, 500})],
)
def test_status_is_met_where_it_can_be_answered_for(lives_on: bool, at_starts: set[int], at_ends: set[int]) -> None:
    """No status at a start or an end asks for what the connector owes and may not send at once."""
    met: dict[str, set[int]] = {"/api/hooks/session-start": set(), "/api/hooks/session-end": set()}
    expected = [at_starts, at_ends]
    drawn = 0

    class EnoughError(Exception):
        """Ends the drawing."""

    @given(sessions(Features(lives_on=lives_on)))
    @settings(max_examples=3000, derandomize=True, database=None, phases=[Phase.generate])
    def collect(scenario: Scenario) -> None:
        nonlocal drawn
        drawn += 1
        for step in steps_of(scenario):
            status = step.get("fault", {}).get("status")
            pattern = step.get("match", {}).get("path", "*")
            for path, statuses in met.items():
                if status is not None and fnmatch(path, pattern):
                    statuses.add(status)
        # A status may be rare: 500 sessions show that there is no other, and some more may show the last one.
        if drawn >= 500 and list(met.values()) == expected:
            raise EnoughError

    with suppress(EnoughError):
        collect()
    assert list(met.values()) == expected


SHOWN: Mapping[str, tuple[Callable[[Steps], bool], int]] = {
    "interleaved": (interleaved, 5),
    "resumed-after-clear": (resumed_after_clear, 5),
    "fault-inside-compaction": (fault_inside_compaction, 6),
    "three-sessions": (lambda steps: len({step.get("session") for step in steps} - {None}) == 3, 6),
    "two-projects": (lambda steps: len({step["project"] for step in steps if step["step"] == "start"}) == 2, 4),
    "restart": (lambda steps: "restart_daemon" in kinds(steps), 3),
    "large-prompt": (lambda steps: any(len(step.get("text", "").encode()) > 90_000 for step in steps), 3),
    "unicode": (lambda steps: any(ord(c) > 0xFFFF for step in steps for c in step.get("text", "")), 3),
    "counted-fault": (lambda steps: any("count" in step for step in steps), 6),
    "forget": (lambda steps: any(step.get("tool") == "memory_forget" for step in steps), 5),
    "refused-end": (resumed_after_a_refused_end, 6),
    "sub-agent": (lambda steps: any("parent" in step for step in steps), 5),
    "rating": (lambda steps: any("feedback" in step for step in steps), 3),
    "command": (lambda steps: any(step.get("text") == "/status" for step in steps), 3),
    "summed-up": (lambda steps: any("aggregate" in step.get("arguments", {}) for step in steps), 4),
    "many-rows": (lambda steps: any(len(step.get("arguments", {}).get("ids", ())) > 25 for step in steps), 31),
    "many-turns": (lambda steps: kinds(steps).count("prompt") > 20, 23),
    "feedback-tool": (lambda steps: any(step.get("tool") == "memory_feedback" for step in steps), 4),
    "secret": (lambda steps: any(step.get("tool") == "secret_exec" for step in steps), 4),
    "401-at-an-end": (lambda steps: ("status", 401) in faults_at(steps, "end"), 6),
    "401-at-a-start": (lambda steps: ("status", 401) in faults_at(steps, "start", "resume", "clear"), 8),
    "two-faults": (
        lambda steps: {"refuse", "status"} <= {step["fault"]["kind"] for step in steps if "fault" in step},
        8,
    ),
}
"""Features of sessions, and of how many steps at most the smallest session is that shows one."""


@pytest.fixture(name="showing", scope="module")
def draw_each_feature() -> Mapping[str, Sequence[Scenario]]:
    """By feature the first sessions that show it, of those drawn until each is shown."""
    showing: dict[str, list[Scenario]] = {name: [] for name in SHOWN}

    class EachIsShownError(Exception):
        """Ends the drawing."""

    @given(sessions(Features(checkpoints=True)))
    @settings(
        max_examples=3000,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def collect(scenario: Scenario) -> None:
        steps = steps_of(scenario)
        for name, (is_shown, _) in SHOWN.items():
            if len(showing[name]) < 30 and is_shown(steps):
                showing[name].append(scenario)
        if all(showing.values()):
            raise EachIsShownError

    with suppress(EachIsShownError):
        collect()
    return showing


@pytest.mark.parametrize("name", SHOWN)
def test_feature_is_reached_and_shrinks(showing: Mapping[str, Sequence[Scenario]], name: str) -> None:
    """The strategy draws sessions with the feature, and what is left of one is as small as it can be shown."""
    is_shown, most_steps = SHOWN[name]
    assert showing[name]
    left = [remove_steps(drawn, lambda scenario: is_shown(steps_of(scenario))) for drawn in showing[name]]
    assert all(is_shown(steps_of(scenario)) for scenario in left)
    smallest = min(left, key=lambda scenario: len(scenario.steps))
    assert len(smallest.steps) <= most_steps, smallest.steps


def test_features_follow_profile_and_driver() -> None:
    """Undeclared operations take their steps and tools away, and so does a driver that does not perform them."""
    declared = Declared.from_json(
        {"agents": ["a"], "bounds_s": {"start": 15.0}, "capabilities": ["memory-recall"]}, "here"
    )
    features = Features.of(declared, WHOLE_STEPS | HALVES, can_restart=False, lives_on=False)
    assert features == Features(
        agents=1,
        steps=frozenset({"start", "prompt", "tool", "resume", "clear", "end"}),
        tools=("memory_search",),
        restart=False,
        slow=False,
        lives_on=False,
        undeclared=SESSION_HOOKS,
    )
    quick = Declared.from_json({"bounds_s": {"start": 1.0, "end": 6.0}}, "here")
    some = frozenset({"start", "prompt", "end", "checkpoint"})
    performed = Features.of(quick, some, can_restart=True, lives_on=True)
    assert performed == Features(agents=1, steps=some, tools=(), restart=True, slow=True)
