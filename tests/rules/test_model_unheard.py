"""Facts about what the model hears of a start that was late or unheard: no absence, and no other agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from signet_conformance.finding import Verdict

from .model_requests import ASKED, Item, judged
from .model_turns import MEMORY, asks, hook, said, start, step
from .step_items import mark

PASS, WARN, NONE = Verdict.PASS, Verdict.WARN, Verdict.NOT_APPLICABLE
RULES = "## Agent Instructions\n\nAnswer briefly and cite the files you changed."
OFFLINE = "[signet: daemon offline — running with static identity]"
TIMED_OUT = "[signet: daemon session-start timed out — running with static identity]"
DELAY = {"fault": {"kind": "delay", "delay_s": 17.0}, "error": {"kind": "client_closed"}}
NEVER: Item = {**start(), "response": None, "error": {"kind": "client_closed"}, "fault": {"kind": "hang"}}
GONE: Item = {**start(), "response": None, "error": {"kind": "upstream_refused"}}
NEXT = "Go on, please."
PIRATE = "## Agent Instructions\n\nYou are Max. Speak like a pirate."
TOLD = [step("start", "s2"), start(f"{RULES}\n\n{MEMORY}", "k2"), said(NEXT, "s2"), asks(RULES, NEXT)]


def begun(unheard: Item, system: str, *more: Item) -> list[Item]:
    """A session whose start went wrong, and what stands before its model."""
    return [step("start"), unheard, *more, said(), hook(), asks(system)]


CASES: Mapping[str, tuple[Sequence[Item], Verdict]] = {
    "late, told as offline": (begun(start(**DELAY), OFFLINE), WARN),
    "late, told as late": (begun(start(**DELAY), TIMED_OUT), PASS),
    "late, not told": (begun(start(**DELAY), "You code."), PASS),
    "late, told as not running": (begun(start(**DELAY), "Signet daemon not running. Start with: signet start"), WARN),
    "late, told as out of reach": (begun(start(**DELAY), "Signet: could not reach the daemon."), WARN),
    "late, told that something else cannot be reached": (begun(start(**DELAY), "Mira cannot be reached."), PASS),
    "late, something else is offline": (begun(start(**DELAY), "The printer is offline."), PASS),
    "late, and the user speaks of it": (
        [step("start"), start(**DELAY), said("Is the daemon offline?"), asks(text="Is the daemon offline?")], PASS
    ),
    "late, and the daemon speaks of it": (
        [*TOLD, step("start"), start(**DELAY), said(), hook("The daemon of Atlas is offline on Sundays."),
         asks("The daemon of Atlas is offline on Sundays.")], PASS,
    ),
    "never answered, told as offline": (begun(NEVER, OFFLINE), PASS),
    "away, told as offline": (begun(GONE, OFFLINE), PASS),
    "heard": (begun(start(), OFFLINE), NONE),
    "started again before the turn": (begun(start(**DELAY), OFFLINE, start()), NONE),
    "no turn": ([step("start"), start(**DELAY)], NONE),
    "answered with a page, told as offline": (
        begun({**start(), "response": {"status": 200, "raw_body": {"text": "<html>"}}}, OFFLINE), WARN
    ),
    "answered 503, told as offline": (
        begun({**start(), "response": {"status": 503, "body": {"error": "busy"}}}, OFFLINE), PASS
    ),
    "late, and heard all the same": (begun(start(fault=DELAY["fault"]), OFFLINE), WARN),
    "late in a later turn": (
        [*begun(start(), "You code."), said(NEXT), hook("", NEXT, **DELAY), asks(OFFLINE, NEXT)], WARN
    ),
    "late, and another session's is heard before the turn": (
        begun(start(**DELAY), OFFLINE, step("start", "s2"), start(key="k2")), WARN
    ),
    "late twice before the turn": (begun(start(**DELAY), OFFLINE, start(**DELAY)), WARN),
    "late, after one that was heard": (
        [*begun(start(), "You code."), step("resume"), start(**DELAY), said(NEXT), asks(OFFLINE, NEXT)], WARN
    ),
    "late, told what it was told before": (
        [*begun(start(), OFFLINE), step("start", "s2"), start(key="k2", **DELAY), said(NEXT, "s2"),
         asks(OFFLINE, NEXT)], PASS,
    ),
    "late, told what it was told when a fault was on": (
        [*begun(NEVER, OFFLINE), step("start", "s2"), start(key="k2", **DELAY), said(NEXT, "s2"), asks(OFFLINE, NEXT)],
        WARN,
    ),
    "late, told what it was told once a fault was switched": (
        [mark("fault", kind="delay", on=True), *begun(start(), OFFLINE), step("start", "s2"),
         start(key="k2", **DELAY), said(NEXT, "s2"), asks(OFFLINE, NEXT)], WARN,
    ),
    "late, and the model spoke of it": (
        [step("start"), start(**DELAY), said(),
         asks(messages=[{"role": "assistant", "content": OFFLINE}, {"role": "user", "content": ASKED}])], PASS,
    ),
    "late, and the user of another session spoke of it": (
        [step("start", "s2"), said(OFFLINE, "s2"), *begun(start(**DELAY), OFFLINE)], WARN
    ),
    "the identity of another agent": (
        [*TOLD, step("start", "s3"), start(PIRATE, "k3", also={"agentId": "beacon-agent"}), said(NEXT, "s3"),
         asks(PIRATE, NEXT), *begun(GONE, f"{OFFLINE}\n\n{PIRATE}")], WARN,
    ),
    "the identity of an agent that sorts before": (
        [*TOLD, step("start", "s3"), start(PIRATE, "k3", also={"agentId": "a-agent"}), said(NEXT, "s3"),
         asks(PIRATE, NEXT), *begun(GONE, f"{OFFLINE}\n\n{PIRATE}")], WARN,
    ),
    "told in the turn after the next": (
        [*begun(start(**DELAY), "You code."), said(NEXT), asks(OFFLINE, NEXT)], PASS
    ),
    "the agent's own identity": ([*TOLD, *begun(GONE, f"{OFFLINE}\n\n{RULES}")], PASS),
    "another identity": ([*TOLD, *begun(GONE, f"{OFFLINE}\n\n{PIRATE}")], WARN),
    "a part of the identity": (
        [step("start", "s2"), start(f"{RULES}\nNever push on Fridays.", "k2"), *begun(GONE, RULES)], PASS
    ),
    "an identity of which the daemon told nothing": (begun(GONE, RULES), PASS),
    "another heading": ([*TOLD, *begun(GONE, "## Notes\n\nYou are Max.")], PASS),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_the_model_hears_of_an_unheard_start(case: str, tmp_path: Path) -> None:
    """No absence of a daemon that answered, and no identity beside the one that the daemon tells."""
    items, expected = CASES[case]
    assert judged(tmp_path, items).harness["SIG-MODEL-013"].verdict is expected


def test_what_it_hears_is_quoted(tmp_path: Path) -> None:
    """The line that says so, or the first line of the other identity."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (offline,) = judged(tmp_path / "a", begun(start(**DELAY), OFFLINE)).harness["SIG-MODEL-013"].findings
    assert (offline.message, offline.received) == (
        "the model is told that the daemon does not run, although it answered late or in an unexpected way", OFFLINE
    )  # fmt: skip
    other = f"## Agent Instructions\n\nYou are Max.\n\n{ASKED}"
    (identity,) = judged(tmp_path / "b", [*TOLD, *begun(GONE, other)]).harness["SIG-MODEL-013"].findings
    assert identity.message == "the model gets an identity that is not that of the agent's workspace"
    assert identity.received == "you are max"
