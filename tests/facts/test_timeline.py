"""Facts about what the kit's marks tell of a call: its step, its session, its agent, its turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from signet_conformance.facts import END
from signet_conformance.rules.end import was_silent
from signet_conformance.rules.prompt import is_of_one_turn
from tests.rules.step_items import (
    CHECKPOINT,
    FAR,
    POLICY,
    PRE,
    PROBE,
    RESET_ON,
    Item,
    end,
    hook,
    mark,
    prompt,
    recall,
    save,
    start,
    step,
    steps_of,
)

STORE = step("tool", "s2", tool="memory_store", index=1000)


def test_step_of_a_call_is_the_last_one_before_it(recorded: Any) -> None:
    """None before the first."""
    recording = recorded(start(), step("start"), start(), step("end"), end())
    assert [recording.timeline.step_at(seq) for seq in (1, 3, 5)] == [None, *steps_of(recording)]


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
    assert recording.timeline.session_of("k1") == session
    assert (recording.timeline.session_of(None), recording.timeline.session_of("k2")) == (None, None)


@pytest.mark.parametrize(
    ("agents", "agent"), [(["a"], "a"), (["a", "a"], "a"), (["a", "b"], None), (["a", None, " "], "a"), ([None], None)]
)
def test_agent_of_a_session(agents: Sequence[str | None], agent: str | None, recorded: Any) -> None:
    """The one that its steps name; none where they name two."""
    recording = recorded(*(step("prompt", agent=name) for name in agents), step("start", "s2", agent="c"))
    assert recording.timeline.agent_of("s1") == agent
    assert recording.timeline.agent_of(None) is None


@pytest.mark.parametrize(
    ("projects", "project"),
    [(["a"], "a"), (["a", "a"], "a"), (["a", "b"], None), (["a", None, " "], "a"), ([None], None)],
)
def test_project_of_a_session(projects: Sequence[str | None], project: str | None, recorded: Any) -> None:
    """The one that the steps of a key's session name; none where they name two."""
    recording = recorded(*(step("start", project=name) for name in projects), start(), step("start", "s2", project="c"))
    assert recording.timeline.project_of("k1") == project
    assert recording.timeline.project_of(None) is None


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
    assert recording.timeline.foreign_session(recording.calls[-1]) == session


def test_key_of_a_call_without_a_step_is_not_of_another_session(recorded: Any) -> None:
    """Though a later step shows which session it is of."""
    recording = recorded(recall("k1"), step("start"), start())
    assert recording.timeline.foreign_session(recording.calls[0]) is None


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
    assert recording.timeline.agent_for(recording.calls[-1]) == agent


def test_agent_of_a_call_before_the_first_step(recorded: Any) -> None:
    """By its key, which a later step shows to be of a session."""
    recording = recorded(prompt(), step("start", agent="a"), start())
    assert recording.timeline.agent_for(recording.calls[0]) == "a"


def skipped(index: int) -> Item:
    """A step that has no counterpart in the connector."""
    return mark("skipped", index=index, reason="no such tool")


@pytest.mark.parametrize(
    ("items", "agent"),
    [
        ([STORE, save("k1")], "b"),
        ([STORE, save("k1"), skipped(999), skipped(1001)], "b"),
        ([STORE, save("k1"), skipped(1000)], "a"),
        ([step("tool", "s0"), step("tool", "s3"), STORE, save("k1")], "b"),
        ([step("undo"), STORE, save("k1")], "b"),
        ([STORE, save("k1"), step("tool")], "b"),
        ([step("tool"), STORE, save("k1")], "a"),
        ([STORE, recall("k2"), save("k1")], "a"),
    ],
)
def test_agent_of_a_tool_that_uses_the_key_of_another_session(items: Sequence[Item], agent: str, recorded: Any) -> None:
    """By its step, unless that was skipped or asked for more, or the other session called a tool before."""
    opened = [step("start", agent="a"), start(), step("start", "s2", agent="b"), start("k2")]
    recording = recorded(*opened, *items)
    assert recording.timeline.agent_for(recording.calls[-1]) == agent


@pytest.mark.parametrize(
    ("kind", "text", "sent", "agent"),
    [
        ("sessionless_prompt", "one", prompt(), "b"),
        ("sessionless_prompt", "one", end(), "a"),
        ("sessionless_prompt", "two", prompt(), "a"),
        ("sessionless_prompt", "few", prompt(), "a"),
        ("sessionless_prompt", "", hook("user-prompt-submit", said=""), "a"),
        ("prompt", "one", prompt(), "a"),
    ],
)
def test_agent_of_a_turn_without_a_session(kind: str, text: str, sent: Item, agent: str, recorded: Any) -> None:
    """By its step where a prompt has the text of the turn, though it has the key of a session."""
    recording = recorded(step("start", agent="a"), start(), step(kind, "s2", agent="b", text=text), sent)
    assert recording.timeline.agent_for(recording.calls[-1]) == agent


def test_calls_of_a_step(recorded: Any) -> None:
    """Those that came after its mark, until the next step."""
    recording = recorded(step("start"), start(), step("tool"), recall("k1"), save("k1"), step("end"), end())
    assert [[call.seq for call in recording.timeline.calls_in(at)] for at in steps_of(recording)] == [[2], [4, 5], [7]]


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
    assert recording.timeline.end_of(steps_of(recording)[0]) == over


def test_last_opening_of_a_session(recorded: Any) -> None:
    """Start, resume or clear, up to the step itself; a step without a session has none."""
    kinds = ["start", "prompt", "resume", "clear", "prompt"]
    recording = recorded(*map(step, kinds), step("start", "s2"), step("prompt", "s3"), step("start", None))
    opened = [recording.timeline.last_opening(at) for at in steps_of(recording)]
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
        ([step("prompt"), PROBE, step("prompt"), PROBE], True),
        ([step("compact"), PRE, step("pre_compaction"), PRE], True),
        ([step("prompt"), start(), step("prompt"), start()], False),
        ([step("tool"), start(), step("tool"), start()], False),
        ([step("end"), prompt(), step("end"), prompt()], False),
        ([step("prompt"), PRE, step("prompt"), PRE], False),
        ([step("prompt"), CHECKPOINT, step("prompt"), CHECKPOINT], False),
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
    assert recording.timeline.is_asked_for_twice(*recording.calls[-2:]) is another


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
    assert recording.timeline.is_session_beside(turn, begun) is another


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
    assert was_silent(recording, *recording.of(END)) is silent


@pytest.mark.parametrize(
    ("kinds", "skipped_kind", "silent"),
    [
        (["start", "prompt", "end"], "prompt", True),
        (["start", "prompt", "end"], "start", False),
        (["start", "prompt", "clear", "end"], "clear", True),
        (["start", "clear"], "clear", True),
        (["clear"], "clear", True),
        (["end"], "end", True),
        (["prompt"], "prompt", True),
    ],
)
def test_what_was_skipped_was_not_said(kinds: Sequence[str], skipped_kind: str, silent: bool, recorded: Any) -> None:
    """Whether a context was kept that its harness cannot clear, nobody knows."""
    steps = [step(kind, index=index) for index, kind in enumerate(kinds)]
    recording = recorded(*steps, skipped(kinds.index(skipped_kind)), end())
    assert was_silent(recording, *recording.of(END)) is silent


def test_nothing_is_known_of_a_session_without_steps(recorded: Any) -> None:
    """Nor of a step that names no session."""
    recording = recorded(end(), step("end", None), end())
    assert [was_silent(recording, each) for each in recording.of(END)] == [False, False]


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
        (turn.text, turn.step.seq, turn.model_seq, [c.seq for c in turn.prompts]) for turn in recording.timeline.turns
    ]
    assert told == [("one", 1, 3, [2, 4]), ("two", 11, None, [12]), ("three", 15, 16, [17])]
