"""Facts about keys of which the driver told whose they are, and about hooks that come late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.rules.step_items import CHECKPOINT, PRE, Item, end, mark, prompt, start, step, steps_of

KEY = mark("session_key", session="s1", key="k1")


@pytest.mark.parametrize(
    ("items", "place"),
    [
        ([step("start"), KEY, step("start", "s2"), start()], 0),
        ([step("start"), KEY, step("end"), step("start", "s2"), end()], 1),
        ([step("start"), KEY, start(), step("end"), step("resume"), step("prompt"), end()], 1),
        ([step("start"), KEY, start(), step("clear"), step("prompt"), start()], 1),
        # Its own session asks for it just now, or asked once and was answered.
        ([step("start"), KEY, step("resume"), start()], 1),
        ([step("start"), KEY, start(), step("start", "s2"), start()], 1),
        # Another hook of the key answers nothing, nor does what another session asks for, or its own later.
        ([step("start"), KEY, end(), prompt(), step("start", "s2"), start()], 0),
        ([step("start"), KEY, step("start", "s0"), step("start", "s2"), start()], 0),
        ([step("start"), KEY, step("start", "s2"), start(), step("resume")], 0),
        # Nobody told whose the key is, or two sessions have it.
        ([step("start"), step("start", "s2"), start()], 1),
        ([step("start", None), step("start", "s2"), start()], 1),
        ([step("start"), KEY, step("start", "s2"), mark("session_key", session="s2", key="k1"), start()], 1),
        ([step("start"), KEY, step("compact"), step("prompt", "s2"), PRE], 1),
        ([step("start"), KEY, step("prompt"), step("end"), step("prompt", "s2"), prompt()], 1),
        # No step asks for what a connector sends at its own time.
        ([step("start"), KEY, step("prompt"), step("prompt", "s2"), CHECKPOINT], 2),
    ],
)
def test_step_of_a_hook_that_comes_late(items: Sequence[Item], place: int, recorded: Any) -> None:
    """Where the driver told whose the key is: the last step of that session that asked for such a hook in vain."""
    recording = recorded(*items)
    assert recording.timeline.asked_by(recording.hooks[-1]) == steps_of(recording)[place]


def test_first_of_two_hooks_that_come_late_is_what_was_asked_for(recorded: Any) -> None:
    """The second is of the step in which it came."""
    recording = recorded(step("start"), KEY, step("start", "s2"), start(), start())
    assert [recording.timeline.asked_by(each) for each in recording.hooks] == [*steps_of(recording)]


SKIPPED = mark("skipped", index=7, reason="no such command")


@pytest.mark.parametrize(
    ("items", "place"),
    [
        ([step("start"), KEY, step("start", "s0"), start()], 0),
        ([step("start"), KEY, step("start", "s0"), step("start", "s2"), start()], 0),
        ([step("start"), KEY, step("start", "s2"), start(), step("end")], 0),
        ([step("start"), KEY, step("clear", index=7), SKIPPED, step("start", "s2"), start()], 0),
        # Its own session has the step in which it came, whatever became of it, or none so far.
        ([step("start"), KEY, step("clear", index=7), SKIPPED, start()], 1),
        ([step("start", "s2"), KEY, start(), step("start")], 0),
        # Nobody told whose the key is.
        ([step("start", None), step("start"), start()], 1),
    ],
)
def test_own_step_of_a_hook(items: Sequence[Item], place: int, recorded: Any) -> None:
    """Where another session has the turn: the last step of the session whose key it is, unless that was skipped."""
    recording = recorded(*items)
    assert recording.timeline.own_step(recording.hooks[-1]) == steps_of(recording)[place]


def test_hook_before_the_first_step_has_none_of_its_own(recorded: Any) -> None:
    """Though the driver told whose its key is."""
    recording = recorded(KEY, start(), step("start"))
    assert recording.timeline.own_step(recording.hooks[0]) is None


def test_keys_that_the_driver_told(recorded: Any) -> None:
    """A key of two sessions is of neither; a mark without a key or a session tells nothing."""
    told = [("s1", "k1"), ("s1", "k1"), ("s2", "k2"), ("s3", "k2"), (None, "k4"), ("s5", None)]
    recording = recorded(*(mark("session_key", session=session, key=key) for session, key in told))
    assert recording.timeline.reported_sessions == {"k1": "s1"}


def test_a_key_is_of_the_session_that_the_driver_told(recorded: Any) -> None:
    """Though it is used first in the step of another, by a connector that sends from a queue."""
    assert recorded(step("start"), KEY, step("start", "s2"), start()).timeline.session_of("k1") == "s1"
    twice = recorded(step("start"), KEY, step("start", "s2"), mark("session_key", session="s2", key="k1"), start())
    assert twice.timeline.session_of("k1") == "s2"


def test_a_key_that_was_started_in_no_step_is_of_its_first_use(recorded: Any) -> None:
    """Though the driver told that it is of two sessions."""
    told = [KEY, mark("session_key", session="s2", key="k1")]
    assert recorded(*told, step("prompt"), prompt(), step("prompt", "s2"), prompt()).timeline.session_of("k1") == "s1"
