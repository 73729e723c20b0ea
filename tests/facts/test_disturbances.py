"""Facts about what the kit's marks tell of a daemon that was away, of faults, and of handlers that the host stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import pytest

from signet_conformance.rules.excuses import end_is_owed, end_may_be_lost, lost_start
from signet_conformance.trace.marks import StepName
from tests.rules.step_items import (
    CLOSED,
    LOADED,
    OPENED,
    PRE,
    QUICK,
    RESET_OFF,
    RESET_ON,
    SLOW,
    STOPPED,
    UNHEARD,
    Item,
    end,
    hook,
    mark,
    prompt,
    start,
    step,
    steps_of,
)

SKIPPED, NOTHING_SKIPPED = (mark("skipped", index=index, reason="no such command") for index in (5, None))


@pytest.mark.parametrize(
    ("items", "lost"),
    [
        ([CLOSED, step("start"), OPENED, step("prompt"), prompt()], True),
        ([step("start"), CLOSED, OPENED, step("prompt"), prompt()], False),
        ([step("start"), CLOSED, UNHEARD], False),
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
        ([CLOSED, step("start"), OPENED, step("clear", index=5), SKIPPED, prompt()], True),
        ([CLOSED, step("start"), OPENED, step("clear", index=4), SKIPPED, prompt()], False),
        ([CLOSED, step("start"), OPENED, step("resume"), step("clear", index=5), SKIPPED, prompt()], False),
        ([step("start"), CLOSED, step("clear", index=5), SKIPPED, OPENED, prompt()], True),
        ([CLOSED, step("start"), OPENED, step("clear", index=None), NOTHING_SKIPPED, prompt()], False),
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
        ([CLOSED, step("end"), OPENED, step("start", "s2"), LOADED, start("k2")], True),
        ([CLOSED, step("end"), OPENED, step("start", "s2"), LOADED, step("prompt", "s2"), prompt("k2")], True),
        ([CLOSED, step("end"), OPENED, step("resume"), LOADED, start()], True),
        ([CLOSED, step("end"), OPENED, step("start", "s2"), start("k2"), step("start", "s3"), LOADED], False),
        ([step("end"), CLOSED, OPENED], False),
        ([CLOSED, step("end", "s2"), OPENED], False),
        ([CLOSED, step("prompt"), OPENED], False),
        ([CLOSED, step("end"), OPENED, step("resume"), step("end")], False),
        ([step("end"), step("resume"), CLOSED, step("end"), OPENED], True),
        ([step("end"), step("resume"), prompt(), CLOSED, step("end"), OPENED], True),
        # What comes later is of a program that was there before, or of nobody knows which.
        ([step("end"), CLOSED, step("start", "s2"), LOADED, step("end"), OPENED, step("prompt", "s2"), prompt("k2")],
         False),
        ([CLOSED, step("end"), OPENED, LOADED, step("start", "s2"), start("k2")], False),
        ([CLOSED, step("end"), OPENED, step("prompt", "s2"), LOADED, prompt("k2")], False),
    ],
)  # fmt: skip
def test_an_end_that_may_be_lost(since: Sequence[Item], lost: bool, recorded: Any) -> None:
    """Nothing listened when the user ended the session last, and no later step brought a request of its program."""
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
    assert recording.timeline.start_was_disturbed(steps_of(recording)[-1]) is disturbed


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
    assert recorded(*items).timeline.was_stopped(0, inf) is stopped


@pytest.mark.parametrize(
    ("low", "high", "stopped"),
    [(1, 6, True), (3, 4, True), (1, 2, False), (1, 3, False), (5, 6, False), (6, 7, False), (0, 1, False)],
)
def test_when_a_handler_was_stopped(low: int, high: int, stopped: bool, recorded: Any) -> None:
    """At some time between its step and the mark: before the one and after the other nothing was stopped."""
    recording = recorded(prompt(), prompt(), step("prompt"), prompt(), STOPPED, prompt())
    assert recording.timeline.was_stopped(low, high) is stopped


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
    assert [recording.timeline.is_disturbed(c) for c in recording.calls] == within
    assert [recording.timeline.switches.any_between(c.seq - 0.5, c.seq + 0.5) for c in recording.calls] == within
    assert recording.timeline.switches.any_between(0, 1.5) is False


def test_faults_and_errors_disturb_a_call(recorded: Any) -> None:
    """With marks or without."""
    recording = recorded(hook("session-end", fault={"kind": "delay"}), hook("session-end", error={"kind": "reset"}))
    assert [recording.timeline.is_disturbed(c) for c in recording.calls] == [True, True]


HANGS = mark("fault", kind="hang", id=1)


@pytest.mark.parametrize(
    ("items", "lasts"),
    [
        ([CLOSED], True),
        ([CLOSED, OPENED], False),
        ([mark("outage")], True),
        ([mark("outage"), mark("bypass"), mark("outage", on=False)], False),
        ([mark("fault", kind="delay")], False),
        ([CLOSED, OPENED, mark("fault", kind="delay")], False),
        ([mark("outage"), RESET_ON, RESET_OFF], True),
        ([RESET_ON, CLOSED, RESET_OFF, OPENED], False),
        ([HANGS, mark("fault", kind="hang", id=2), mark("fault", kind="hang", id=2, on=False)], True),
        ([], False),
    ],
)
def test_an_outage_that_lasts(items: Sequence[Item], lasts: bool, recorded: Any) -> None:
    """The daemon was taken away and did not come back."""
    assert recorded(*items).timeline.switches.outage_lasts is lasts


@pytest.mark.parametrize(
    ("items", "closed"),
    [
        ([CLOSED, OPENED, prompt()], False),
        ([CLOSED, prompt(), OPENED], True),
        ([prompt(), CLOSED], False),
        ([mark("outage"), CLOSED, OPENED, prompt(), mark("outage", on=False)], True),
        ([CLOSED, mark("outage"), mark("outage", on=False), prompt(), OPENED], True),
        ([mark("outage"), CLOSED, OPENED, mark("outage", on=False), prompt()], False),
        ([RESET_ON, prompt(), RESET_OFF], False),
    ],
)
def test_a_listener_that_was_closed(items: Sequence[Item], closed: bool, recorded: Any) -> None:
    """Until all that closed it is over."""
    recording = recorded(*items)
    (seq,) = (call.seq for call in recording.calls)
    assert recording.timeline.switches.closed_between(seq - 1, seq) is closed
