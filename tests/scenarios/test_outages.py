"""Outages that users really have: every run holds each of them, whatever chance brings beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from signet_conformance.scenarios.features import CHUNK, SESSION_HOOKS, WHOLE_STEPS, Features
from signet_conformance.scenarios.outages import (
    OUTAGES,
    Outage,
    holds,
    obstacle,
    outage_of,
    recorded_outages,
    usable,
)
from signet_conformance.scenarios.scenario import Scenario, demand_open_sessions, scripted
from signet_conformance.scenarios.strategies import draw, write
from signet_conformance.scenarios.writing import Digits
from signet_conformance.trace import Exchange, Header, Mark, Request, Trace

ALL = Features(slow=True)


def planned(*scenarios: Scenario) -> Counter[str]:
    """How many of some scenarios hold each outage."""
    return Counter(outage.name for scenario in scenarios for outage in OUTAGES if holds(scenario, outage))


FEW = Features(slow=False, lives_on=False, steps=WHOLE_STEPS - {"compact"})


@pytest.mark.parametrize("seed", [1, 2, 2029])
@pytest.mark.parametrize(("features", "outages"), [(ALL, 7), (FEW, 5)], ids=["all", "few"])
def test_every_run_of_more_sessions_than_outages_holds_each(features: Features, outages: int, seed: int) -> None:
    """One session more than there are outages is enough, for every seed; more sessions hold them as often."""
    assert len(usable(features)) == outages
    names = {outage.name for outage in usable(features)}
    drawn = [scenario for chunk in range(2) for scenario in draw(features, seed, chunk)]
    assert planned(*drawn[: outages + 1]).keys() >= names
    assert all(planned(*drawn)[name] >= len(drawn) // (2 * outages) for name in names)


def test_each_session_holds_the_outage_of_its_number() -> None:
    """The number of a session in the run says which outage it holds, across chunks."""
    for chunk in (0, 1):
        for place, scenario in enumerate(draw(ALL, 3, chunk)):
            outage = outage_of(ALL, chunk * CHUNK + place)
            assert outage is None or holds(scenario, outage)


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda outage: outage.name)
@pytest.mark.parametrize("details", [0, 1, 2, 3, 12345])
def test_outage_is_written_and_recognised(outage: Outage, details: int) -> None:
    """With whatever is left out, the session is one that can be performed, and holds this outage and no other."""
    scenario = write(ALL, Digits(0), [("outage", 0, (outage, Digits(details)))], "outage")
    demand_open_sessions(scenario, "here")
    assert planned(scenario) == {outage.name: 1}


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda outage: outage.name)
def test_scripted_scenario_shows_the_outage_too(outage: Outage) -> None:
    """The scripted scenario that is named for a target whose generated sessions cannot hold it does hold it."""
    (scenario,) = [scenario for scenario in scripted() if scenario.name == outage.scripted]
    assert holds(scenario, outage)


def test_what_a_target_cannot_hold_is_named_with_a_reason() -> None:
    """A long bound, a process of one session, and a driver without compactions each take an outage away."""
    reasons = [reason for outage in OUTAGES if (reason := obstacle(outage, FEW)) is not None]
    assert len(reasons) == 2
    assert "daemon-away-at-end" in reasons[0]
    assert "compact" in reasons[1]
    assert "bound" in str(obstacle(OUTAGES[-1], Features(slow=False)))
    mute = Features(undeclared=SESSION_HOOKS)
    assert all("declares no" in str(obstacle(outage, mute)) for outage in OUTAGES)
    assert [outage_of(mute, number) for number in range(20)] == [None] * 20


REFUSE: Mapping[str, Any] = {"step": "fault", "fault": {"kind": "refuse"}}
OFF: Mapping[str, Any] = {"step": "fault_off"}


def steps(*kinds: str | Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Steps of one session, and faults between them."""
    bare = [{"step": kind, "session": "s1"} if isinstance(kind, str) else kind for kind in kinds]
    return [{**step, "text": "Hello."} if step["step"] == "prompt" else step for step in bare]


@pytest.mark.parametrize(
    ("given", "held"),
    [
        (steps(REFUSE, "start", "prompt", OFF, "prompt", "end"), True),
        (steps(REFUSE, "start", OFF, "prompt", "end"), False),
        (steps("start", REFUSE, "prompt", OFF, "prompt", "end"), False),
        (steps(REFUSE, "start", "prompt", OFF, "end"), False),
        (steps({**REFUSE, "fault": {"kind": "reset"}}, "start", OFF, "prompt", "end"), False),
    ],
    ids=["away-at-start", "back-before-the-first-turn", "away-at-prompt", "never-back", "reset"],
)
def test_outage_counts_only_where_its_steps_show_it(given: Sequence[Mapping[str, Any]], held: bool) -> None:
    """A daemon that is away at another step, that does not come back, or is not away is not this outage."""
    scenario = Scenario.from_json({"name": "one", "steps": given}, "here")
    assert holds(scenario, OUTAGES[0]) is held


def hook(seq: int, path: str, fault: Mapping[str, Any] | None = None) -> Exchange:
    """A request of a hook, which met a fault or not."""
    request = Request(method="POST", path=f"/api/hooks/{path}")
    return Exchange(seq=seq, t0=0.0, t1=0.1, request=request, fault=None if fault is None else dict(fault))


def step_mark(seq: int, step: str) -> Mark:
    """The mark of a step of one session."""
    return Mark(seq=seq, name="step", data={"step": step, "session": "s1", "index": seq})


CLAIMED: Mapping[str, Any] = {"kind": "status", "status": 409}


@pytest.mark.parametrize(
    ("exchanges", "taken_place"),
    [
        ([hook(2, "session-start", CLAIMED)], True),
        ([hook(4, "session-start", CLAIMED)], True),
        ([hook(2, "session-start"), hook(4, "user-prompt-submit")], False),
        ([], False),
        ([hook(6, "session-start", CLAIMED)], False),
    ],
    ids=["at-the-start", "at-the-first-prompt", "met-by-no-request", "nothing-sent", "no-turn-after"],
)
def test_outage_takes_place_only_where_an_exchange_carries_its_fault(
    exchanges: Sequence[Exchange], taken_place: bool
) -> None:
    """A fault that was switched on and that no request met is no outage, whatever the scenario meant."""
    marks = (step_mark(1, "start"), step_mark(3, "prompt"), step_mark(5, "prompt"), step_mark(7, "end"))
    recorded = Trace(Header(), marks, tuple(exchanges))
    assert ("409 on a start" in recorded_outages(recorded)) is taken_place
