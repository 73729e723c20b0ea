"""Facts about what the kit's marks tell of a call: its step, its session, its agent, and what was switched on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.facts import Recording
from signet_conformance.rules.steps import (
    agent_of_session,
    another_session,
    disturbed_between,
    end_is_owed,
    end_may_be_lost,
    is_another_session,
    is_disturbed,
    is_of_one_turn,
    last_opening,
    lost_start,
    marked_agent,
    of_another_step,
    outage_lasts,
    project_of_session,
    prompt_steps,
    session_of,
    start_was_disturbed,
    step_before,
    step_end,
    stopped_between,
    was_silent,
)
from signet_conformance.trace.marks import StepMark, StepName
from tests.support.case_traces import KEYED, build

Item = Mapping[str, Any]
FAR = 10**9


def mark(name: str, **data: Any) -> Item:
    """A mark of the kit."""
    return {"mark": name, "data": data}


def step(kind: str | None, session: str | None = "s1", **more: Any) -> Item:
    """A step that was given to the connector."""
    return mark("step", step=kind, session=session, **more)


def hook(operation: str, key: str = "k1", **more: Any) -> Item:
    """A hook of a key."""
    body = {**KEYED, "sessionKey": key, "userMessage": "one"}
    return {"request": {"method": "POST", "path": f"/api/hooks/{operation}", "body": body}, **more}


def start(key: str = "k1") -> Item:
    """A session-start."""
    return hook("session-start", key)


def prompt(key: str = "k1") -> Item:
    """A user-prompt-submit."""
    return hook("user-prompt-submit", key)


def end(key: str = "k1") -> Item:
    """A session-end."""
    return hook("session-end", key)


def recall(key: str) -> Item:
    """A recall of a key."""
    return {"request": {"method": "POST", "path": "/api/memory/recall", "body": {"sessionKey": key, "query": "x"}}}


PRE = hook("pre-compaction")
PROBE = {"request": {"method": "GET", "path": "/health"}}
POLICY = {"request": {"method": "GET", "path": "/api/marketplace/mcp/policy"}}
UNHEARD = {**prompt(), "response": None}
CLOSED, OPENED = mark("fault", kind="refuse", on=True), mark("fault", kind="refuse", on=False)
RESET_ON, RESET_OFF = mark("fault", kind="reset", on=True), mark("fault", kind="reset", on=False)
SLOW, QUICK = mark("fault", kind="delay", on=True), mark("fault", kind="delay", on=False)
STOPPED = mark("handler", event="Hook", outcome="timed_out")


@pytest.fixture
def recorded(tmp_path: Path) -> Any:
    """Makes a recording of some items, numbered from 1."""
    return lambda *items: Recording(build(tmp_path / "trace.jsonl", items, shared=False))


def steps_of(recording: Recording) -> Sequence[StepMark]:
    """Its step marks."""
    return recording.marks(StepMark)


def test_step_of_a_call_is_the_last_one_before_it(recorded: Any) -> None:
    """None before the first."""
    recording = recorded(start(), step("start"), start(), step("end"), end())
    assert [step_before(recording, seq) for seq in (1, 3, 5)] == [None, *steps_of(recording)]


@pytest.mark.parametrize(
    ("items", "session"),
    [
        ([step("start"), start()], "s1"),
        ([step("prompt"), prompt()], "s1"),
        ([step("compact"), PRE], "s1"),
        ([step("start"), prompt(), step("start", "s2"), start()], "s2"),
        ([step("start"), PRE, step("start", "s2"), start()], "s2"),
        ([step("start"), start(), step("prompt", "s2"), prompt()], "s1"),
        ([step("prompt"), prompt(), step("prompt", "s2"), prompt()], "s1"),
        ([step("start"), end()], None),
        ([start()], None),
    ],
)
def test_session_of_a_key(items: Sequence[Item], session: str | None, recorded: Any) -> None:
    """That of the step in which the key was started, or used first; a lone end may come in the step of another."""
    recording = recorded(*items)
    assert session_of(recording, "k1") == session
    assert (session_of(recording, None), session_of(recording, "k2")) == (None, None)


@pytest.mark.parametrize(
    ("agents", "agent"), [(["a"], "a"), (["a", "a"], "a"), (["a", "b"], None), (["a", None, " "], "a"), ([None], None)]
)
def test_agent_of_a_session(agents: Sequence[str | None], agent: str | None, recorded: Any) -> None:
    """The one that its steps name; none where they name two."""
    recording = recorded(*(step("prompt", agent=name) for name in agents), step("start", "s2", agent="c"))
    assert agent_of_session(recording, "s1") == agent
    assert agent_of_session(recording, None) is None


@pytest.mark.parametrize(
    ("projects", "project"),
    [(["a"], "a"), (["a", "a"], "a"), (["a", "b"], None), (["a", None, " "], "a"), ([None], None)],
)
def test_project_of_a_session(projects: Sequence[str | None], project: str | None, recorded: Any) -> None:
    """The one that the steps of a key's session name; none where they name two."""
    recording = recorded(*(step("start", project=name) for name in projects), start(), step("start", "s2", project="c"))
    assert project_of_session(recording, "k1") == project
    assert project_of_session(recording, None) is None


@pytest.mark.parametrize(
    ("items", "session"),
    [
        ([step("tool"), recall("k1")], None),
        ([step("tool", "s2"), recall("k1")], "s1"),
        ([step("tool", "s0"), recall("k1")], "s1"),
        ([step("tool", "s2", parent="s1"), recall("k1")], None),
        ([step("tool", "s2"), recall("k2")], None),
        ([step("prompt", "s2"), recall("k1")], None),
        ([step("undo", "s2"), recall("k1")], None),
    ],
)
def test_session_of_a_key_that_is_not_that_of_the_step(
    items: Sequence[Item], session: str | None, recorded: Any
) -> None:
    """Told of a tool's call alone, where its key is known and the two are not related."""
    recording = recorded(step("start"), start(), *items)
    assert another_session(recording, recording.calls[-1]) == session


def test_key_of_a_call_without_a_step_is_not_of_another_session(recorded: Any) -> None:
    """Though a later step shows which session it is of."""
    recording = recorded(recall("k1"), step("start"), start())
    assert another_session(recording, recording.calls[0]) is None


@pytest.mark.parametrize(
    ("items", "agent"),
    [
        ([step("start", agent="a"), start()], "a"),
        ([step("start", agent="a"), start(), step("tool", "s2", agent="b"), prompt()], "a"),
        ([step("tool", agent="a"), recall("unknown")], "a"),
        ([step("tool", agent="a"), recall("")], "a"),
        ([step("prompt", agent="a"), recall("unknown")], None),
        ([step("undo", agent="a"), recall("unknown")], None),
        ([recall("unknown")], None),
    ],
)
def test_agent_of_a_call(items: Sequence[Item], agent: str | None, recorded: Any) -> None:
    """By its key where hooks have it, else by its step where that is a tool's."""
    recording = recorded(*items)
    assert marked_agent(recording, recording.calls[-1]) == agent


@pytest.mark.parametrize(
    ("items", "lost"),
    [
        ([CLOSED, step("start"), OPENED, step("prompt"), prompt()], True),
        ([step("start"), CLOSED, OPENED, step("prompt"), prompt()], False),
        ([CLOSED, step("start"), OPENED, step("end"), step("resume"), prompt()], False),
        ([CLOSED, step("start"), OPENED, step("start", "s2"), prompt()], False),
        ([CLOSED, step("start", "s2"), OPENED, step("prompt"), prompt()], False),
        ([CLOSED, step("start", None), OPENED, step("prompt", None), prompt()], False),
        ([CLOSED, OPENED, prompt()], False),
        ([step("start"), step("prompt"), prompt(), CLOSED], False),
        ([CLOSED, step("start"), step("prompt"), UNHEARD], True),
        ([step("start"), CLOSED, step("clear"), OPENED, prompt()], True),
        ([step("start"), CLOSED, step("clear"), OPENED, PRE], True),
        ([step("start"), CLOSED, step("clear"), OPENED, end()], False),
        ([step("start"), CLOSED, step("resume"), OPENED, step("clear"), end()], True),
        ([step("start"), STOPPED, prompt()], True),
        ([step("start"), STOPPED, step("resume"), prompt()], False),
        ([step("start"), step("resume"), STOPPED, prompt()], True),
    ],
)
def test_a_start_that_may_be_lost(items: Sequence[Item], lost: bool, recorded: Any) -> None:
    """The session of the call was opened when nothing listened or the host stopped a hook, and not again since.

    An end in the step of a clear is of the session that was opened before.
    """
    recording = recorded(*items)
    assert bool(lost_start(recording, recording.calls[-1])) is lost


@pytest.mark.parametrize(
    ("since", "lost"),
    [
        ([CLOSED, step("end"), OPENED], True),
        ([CLOSED, step("end"), OPENED, step("start", "s2")], True),
        ([CLOSED, step("end"), OPENED, start("k2")], True),
        ([CLOSED, step("end"), OPENED, step("start", "s2"), start("k2")], False),
        ([CLOSED, step("end"), OPENED, step("start", "s2"), UNHEARD], True),
        ([step("end"), CLOSED, OPENED], False),
        ([CLOSED, step("end", "s2"), OPENED], False),
        ([CLOSED, step("prompt"), OPENED], False),
        ([CLOSED, step("end"), OPENED, step("resume"), step("end")], False),
        ([step("end"), step("resume"), CLOSED, step("end"), OPENED], True),
        ([step("end"), step("resume"), prompt(), CLOSED, step("end"), OPENED], True),
    ],
)
def test_an_end_that_may_be_lost(since: Sequence[Item], lost: bool, recorded: Any) -> None:
    """Nothing listened when the user ended the session last, and no later step brought a request."""
    recording = recorded(step("start"), start(), *since)
    assert end_may_be_lost(recording, "k1") is lost
    assert end_may_be_lost(recording, "k9") is False


@pytest.mark.parametrize(
    ("items", "owed"),
    [
        ([CLOSED, step("end"), OPENED, step("resume"), end()], True),
        ([CLOSED, step("end"), OPENED, step("resume"), prompt(), end()], True),
        ([CLOSED, step("end"), OPENED, end(), step("resume"), end()], False),
        ([end(), CLOSED, step("end"), OPENED, step("resume"), end()], True),
        ([CLOSED, step("end"), OPENED, step("resume"), end(), end()], True),
        ([CLOSED, step("end"), OPENED, end("k2"), step("resume"), end()], True),
        ([CLOSED, step("end"), OPENED, PRE, step("resume"), end()], True),
        ([CLOSED, step("end"), OPENED, start(), step("resume"), end()], True),
        ([CLOSED, step("end"), OPENED, end(), CLOSED, step("end"), OPENED, step("resume"), end()], True),
        ([CLOSED, step("end", "s0"), OPENED, step("resume"), end()], False),
        ([CLOSED, step("prompt"), OPENED, step("resume"), end()], False),
        ([step("resume"), end(), CLOSED, step("end"), OPENED], False),
        ([CLOSED, step("clear"), OPENED, step("resume"), end()], False),
        ([CLOSED, step("end", "s2"), OPENED, step("resume"), end()], False),
        ([step("end"), CLOSED, OPENED, step("resume"), end()], False),
        ([CLOSED, step("end"), OPENED, end()], False),
        ([CLOSED, step("end", None), OPENED, step("resume", None), end()], False),
        ([CLOSED, end()], False),
    ],
)
def test_an_end_that_is_owed(items: Sequence[Item], owed: bool, recorded: Any) -> None:
    """An earlier end of the session met nobody listening, and none was recorded between."""
    recording = recorded(*items)
    assert end_is_owed(recording, recording.calls[-1], StepName.END) is owed


@pytest.mark.parametrize(
    ("items", "disturbed"),
    [
        ([RESET_ON, step("start"), RESET_OFF, step("prompt")], True),
        ([step("start"), RESET_ON, RESET_OFF, step("prompt")], False),
        ([RESET_ON, step("start"), RESET_OFF, step("end"), step("resume"), step("prompt")], False),
        ([RESET_ON, step("start", "s2"), RESET_OFF, step("prompt")], False),
    ],
)
def test_a_start_that_was_disturbed(items: Sequence[Item], disturbed: bool, recorded: Any) -> None:
    """Something was switched on when the session of the step was opened last."""
    recording = recorded(*items)
    assert start_was_disturbed(recording, steps_of(recording)[-1]) is disturbed


@pytest.mark.parametrize(
    ("since", "over"),
    [
        ([step("prompt")], 3),
        ([prompt(), step("prompt")], 4),
        ([mark("model"), RESET_ON, step("prompt")], 4),
        ([mark("bypass", on=True)], 3),
        ([prompt()], 2 + FAR),
    ],
)
def test_end_of_a_step(since: Sequence[Item], over: int, recorded: Any) -> None:
    """The next step, or what the kit switches before it."""
    recording = recorded(prompt(), step("start"), *since)
    assert step_end(recording, steps_of(recording)[0]) == over


def test_last_opening_of_a_session(recorded: Any) -> None:
    """Start, resume or clear, up to the step itself; a step without a session has none."""
    kinds = ["start", "prompt", "resume", "clear", "prompt"]
    recording = recorded(*map(step, kinds), step("start", "s2"), step("prompt", "s3"), step("start", None))
    opened = [last_opening(recording, at) for at in steps_of(recording)]
    assert opened == [(1, 2), (1, 2), (3, 4), (4, 5), (4, 5), (6, 7), None, None]


@pytest.mark.parametrize(
    ("items", "another"),
    [
        ([step("end"), end(), step("end"), end()], True),
        ([step("end"), end(), step("clear"), end()], True),
        ([step("clear"), end(), step("end"), end()], True),
        ([step("start"), start(), step("resume"), start()], True),
        ([step("resume"), start(), step("clear"), start()], True),
        ([step("clear"), PROBE, step("start"), PROBE], True),
        ([step("start"), POLICY, step("resume"), POLICY], True),
        ([step("prompt"), prompt(), step("prompt"), prompt()], True),
        ([step("start"), PRE, step("resume"), PRE], False),
        ([step("start"), POLICY, POLICY], False),
        ([step("start"), POLICY, step("tool"), POLICY], False),
        ([step("start"), PROBE, step("prompt"), PROBE], False),
        ([step("end"), start(), step("clear"), start()], False),
        ([step("start"), end(), step("clear"), end()], False),
        ([step("start"), prompt(), step("clear"), prompt()], False),
        ([step("end"), end(), end()], False),
        ([step("end"), end(), step("prompt"), end()], False),
        ([step("prompt"), end(), step("end"), end()], False),
        ([end(), step("end"), end()], False),
        ([end(), end()], False),
    ],
)
def test_what_the_user_asked_for_once_more(items: Sequence[Item], another: bool, recorded: Any) -> None:
    """Two steps that ask for it, with a call in each: who clears a session ends it and opens it anew."""
    recording = recorded(*items)
    assert of_another_step(recording, *recording.calls[-2:]) is another


@pytest.mark.parametrize(
    ("items", "one"),
    [
        ([step("prompt"), prompt(), prompt()], True),
        ([step("prompt"), prompt(), step("prompt"), prompt()], False),
        ([step("tool"), prompt(), prompt()], False),
        ([step("end"), prompt(), prompt()], False),
        ([prompt(), step("prompt"), prompt()], False),
        ([prompt(), prompt()], False),
    ],
)
def test_prompts_of_one_turn(items: Sequence[Item], one: bool, recorded: Any) -> None:
    """Two that were submitted in one step in which the user said something."""
    recording = recorded(*items)
    assert is_of_one_turn(recording, *recording.calls) is one


@pytest.mark.parametrize(
    ("items", "stopped"),
    [
        ([step("prompt"), STOPPED], True),
        ([step("prompt", index=1), mark("handler", index=1, outcome="timed_out")], True),
        ([step("prompt", index=1), mark("handler", index=0, outcome="timed_out")], False),
        ([step("prompt"), mark("handler", outcome="failed")], False),
        ([step("prompt"), mark("handler", outcome="unloaded")], False),
        ([STOPPED], False),
        ([SLOW, step("prompt"), STOPPED, QUICK], False),
        ([step("prompt"), SLOW, STOPPED, QUICK], False),
        ([SLOW, step("prompt"), QUICK, STOPPED], False),
        ([SLOW, QUICK, step("prompt"), STOPPED], True),
        ([step("prompt"), STOPPED, SLOW, QUICK], True),
        ([RESET_ON, step("prompt"), STOPPED, RESET_OFF], True),
    ],
)
def test_a_handler_that_the_host_stopped(items: Sequence[Item], stopped: bool, recorded: Any) -> None:
    """It was stopped at its timeout, and no fault held its answers up."""
    assert stopped_between(recorded(*items), 0, inf) is stopped


@pytest.mark.parametrize(
    ("low", "high", "stopped"), [(1, 6, True), (3, 4, True), (1, 2, False), (6, 7, False), (0, 1, False)]
)
def test_when_a_handler_was_stopped(low: int, high: int, stopped: bool, recorded: Any) -> None:
    """At some time between its step and the mark."""
    recording = recorded(prompt(), prompt(), step("prompt"), prompt(), STOPPED, prompt())
    assert stopped_between(recording, low, high) is stopped


SWITCHES: Mapping[str, tuple[Sequence[Item], list[tuple[int, float]]]] = {
    "on and off": ([RESET_ON, RESET_OFF], [(1, 2)]),
    "never off": ([RESET_ON], [(1, inf)]),
    "off alone": ([RESET_OFF], []),
    "twice": ([RESET_ON, RESET_OFF, RESET_ON, RESET_OFF], [(1, 2), (3, 4)]),
    "two that overlap": ([RESET_ON, CLOSED, RESET_OFF, OPENED], [(1, 4)]),
    "one that is switched on again": ([RESET_ON, RESET_ON, RESET_OFF], [(1, 3)]),
    "the off of another": ([RESET_ON, OPENED, RESET_OFF], [(1, 3)]),
    "an outage": ([mark("outage", on=True), mark("outage", on=False)], [(1, 2)]),
    "a bypass": ([mark("bypass"), mark("bypass", on=False)], [(1, 2)]),
    "an outage is no bypass": ([mark("bypass"), mark("outage", on=False), mark("bypass", on=False)], [(1, 3)]),
    "two faults of a kind": (
        [*(mark("fault", kind="reset", id=number) for number in (1, 2)), mark("fault", kind="reset", id=1, on=False)],
        [(1, inf)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SWITCHES)
def test_when_something_was_switched_on(name: str, recorded: Any) -> None:
    """From the first switch on until all that was on is off: calls within are disturbed, calls beside are not."""
    items, times = SWITCHES[name]
    spaced = [line for item in items for line in (item, prompt())]
    recording = recorded(prompt(), *spaced)
    # Each item is followed by a prompt, and a prompt comes first.
    times = [(2 * since, 2 * until) for since, until in times]
    within = [any(since < c.seq < until for since, until in times) for c in recording.calls]
    assert [is_disturbed(recording, c) for c in recording.calls] == within
    assert [disturbed_between(recording, c.seq - 0.5, c.seq + 0.5) for c in recording.calls] == within
    assert disturbed_between(recording, 0, 1.5) is False


def test_faults_and_errors_disturb_a_call(recorded: Any) -> None:
    """With marks or without."""
    recording = recorded(hook("session-end", fault={"kind": "delay"}), hook("session-end", error={"kind": "reset"}))
    assert [is_disturbed(recording, c) for c in recording.calls] == [True, True]


@pytest.mark.parametrize(
    ("items", "lasts"),
    [
        ([CLOSED], True),
        ([CLOSED, OPENED], False),
        ([mark("outage")], True),
        ([mark("outage"), mark("bypass"), mark("outage", on=False)], False),
        ([mark("fault", kind="delay")], False),
        ([CLOSED, OPENED, mark("fault", kind="delay")], False),
        ([], False),
    ],
)
def test_an_outage_that_lasts(items: Sequence[Item], lasts: bool, recorded: Any) -> None:
    """The daemon was taken away and did not come back."""
    assert outage_lasts(recorded(*items)) is lasts


@pytest.mark.parametrize(
    ("items", "another"),
    [
        ([step("prompt"), prompt(), step("start", "s2"), start("k2"), step("end")], True),
        ([step("prompt"), prompt(), step("start", "s2"), start("k2")], False),
        ([step("prompt"), prompt(), step("start", "s2"), start("k2"), step("end", "s0")], False),
        ([step("prompt"), prompt(), step("end"), step("start", "s2"), start("k2"), step("resume")], False),
        ([step("prompt"), prompt(), step("clear"), start("k2"), step("end")], False),
        ([step("prompt", None), prompt(), step("start", "s2"), start("k2"), step("end", None)], False),
        ([prompt(), step("start", "s2"), start("k2"), step("end")], False),
        ([step("prompt"), prompt(), step("prompt", "s3"), step("start", "s2"), start("k2"), step("end", "s3")], False),
    ],
)
def test_a_session_beside_another(items: Sequence[Item], another: bool, recorded: Any) -> None:
    """The user went on with the first session after the second had begun, and had not ended it before."""
    recording = recorded(*items)
    turn, begun = recording.calls
    assert is_another_session(recording, turn, begun) is another


@pytest.mark.parametrize(
    ("kinds", "silent"),
    [
        (["start"], True),
        (["start", "compact"], True),
        (["start", "prompt"], False),
        (["start", "prompt", "end"], False),
        (["start", "clear"], True),
        (["start", "prompt", "clear"], False),
        (["prompt", "clear"], False),
        (["start", "prompt", "clear", "clear"], True),
        (["start", "prompt", "clear", "end"], True),
        (["start", "prompt", "clear", "prompt"], False),
        (["prompt"], False),
        (["prompt", "tool"], False),
        (["prompt", "tool", "tool"], False),
        (["prompt", "start"], True),
        (["end"], True),
        ([None], True),
    ],
)
def test_a_session_in_which_nothing_was_said(kinds: Sequence[str | None], silent: bool, recorded: Any) -> None:
    """No prompt was given since it was opened last; a clear ends what came before; other sessions are apart."""
    recording = recorded(step("prompt", "s0"), step("prompt", "s2"), *map(step, kinds), end(), step("prompt"))
    assert was_silent(recording, len(kinds) + 3) is silent


def test_nothing_is_known_of_a_session_without_steps(recorded: Any) -> None:
    """Nor of a step that names no session."""
    recording = recorded(end(), step("end", None), end())
    assert [was_silent(recording, seq) for seq in (1, 3)] == [False, False]


def test_user_turns(recorded: Any) -> None:
    """Each with text, the turn of the model, and the prompts sent until the next step; without text none is counted."""
    recording = recorded(
        step("prompt", text="one"), prompt(), mark("model"), prompt(), mark("model"),
        step("tool", text="no"), prompt(), mark("model"),
        step("prompt", text=" "), prompt(),
        step("prompt", text="two"), prompt(),
        step("undo", text="no"), prompt(),
        step("prompt", text="three"), mark("model"), prompt(),
    )  # fmt: skip
    told = [
        (turn.text, turn.mark.seq, turn.model_seq, [c.seq for c in turn.prompts]) for turn in prompt_steps(recording)
    ]
    assert told == [("one", 1, 3, [2, 4]), ("two", 11, None, [12]), ("three", 15, 16, [17])]
