"""Facts about what the model hears of a start that was late or unheard: no absence, and no other agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.finding import Verdict

from .model_requests import ASKED, Item, judged
from .model_turns import MEMORY, asks, call, hook, said, start, step
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
NO_HOOK: Item = {**hook(), "response": None, "error": {"kind": "upstream_refused"}}
NO_HEALTH: Item = {**NO_HOOK, "request": {"method": "GET", "path": "/health"}}
BROKEN_OFF: Item = {
    **start(), "response": {"status": 200, "raw_body": {"text": '{"inject": "'}}, "error": {"kind": "upstream_reset"}
}  # fmt: skip
PARTS = "## Identity\n\nYou are Rig.\n\n## Soul\n\nYou doubt."
AGAIN = [step("start", "s2"), start(key="k2", **DELAY), said(NEXT, "s2"), asks(OFFLINE, NEXT)]
"""A later session whose start came late, which the model reads as offline."""


def begun(unheard: Item, system: str, *more: Item) -> list[Item]:
    """A session whose start went wrong, and what stands before its model."""
    return [step("start"), unheard, *more, said(), hook(), asks(system)]


def search(**more: Any) -> Item:
    """A search of the daemon's memories."""
    return call("/api/memory/recall", {"query": "Atlas"}, {"results": []}, **more)


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
    "no turn": ([asks(OFFLINE), step("start"), start(**DELAY)], NONE),
    "late, and the next turn was stopped": (
        [step("start"), start(**DELAY), said(stopped=True), said(NEXT), asks(OFFLINE, NEXT)], NONE
    ),
    "late, after the model was asked": ([step("start"), start(), said(), asks(OFFLINE), hook(**DELAY)], NONE),
    "late, in steps that name no session": (
        [step("start", None), start(**DELAY), said(session=None), asks(OFFLINE)], NONE
    ),
    "late, and started again after the turn": (
        [*begun(start(**DELAY), OFFLINE), step("resume"), start(), said(NEXT), asks("You code.", NEXT)], WARN
    ),
    "late, and started again by a request that was refused": (begun(start(**DELAY), OFFLINE, GONE), PASS),
    "late, told beside the user's words": (
        [step("start"), start(**DELAY), said(),
         asks(messages=[{"role": "user", "content": OFFLINE}, {"role": "user", "content": ASKED}])], WARN,
    ),
    "answered with a page, told as offline": (
        begun({**start(), "response": {"status": 200, "raw_body": {"text": "<html>"}}}, OFFLINE), WARN
    ),
    "answered 503, told as offline": (
        begun({**start(), "response": {"status": 503, "body": {"error": "busy"}}}, OFFLINE), PASS
    ),
    "late, and heard all the same": (begun(start(fault=DELAY["fault"]), OFFLINE), WARN),
    "late, and the prompt was refused": (
        [step("start"), start(**DELAY), said(), NO_HOOK, asks(OFFLINE)], PASS
    ),
    "late, and the daemon then did not run": (begun(start(**DELAY), OFFLINE, NO_HEALTH), PASS),
    "late, and the prompt after the request was refused": (
        [step("start"), start(**DELAY), said(), asks(OFFLINE), NO_HOOK], WARN
    ),
    "late, after another was refused": (
        [step("start", "s2"), {**GONE, "request": start(key="k2")["request"]}, *begun(start(**DELAY), OFFLINE)], WARN
    ),
    "broken off in the middle of the answer, told as offline": (begun(BROKEN_OFF, OFFLINE), PASS),
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
        [*begun(start(), OFFLINE), *AGAIN], PASS
    ),
    "late, told what it was told when a fault was on": (
        [*begun(NEVER, OFFLINE), *AGAIN], WARN
    ),
    "late, told what it was told once a fault was switched": (
        [mark("fault", kind="delay", on=True), *begun(start(), OFFLINE), *AGAIN], WARN
    ),
    "late, told what it was told once an outage had begun": (
        [mark("outage", on=True), *begun(start(), OFFLINE), *AGAIN], WARN
    ),
    "late, told what it was told after a search with a fault": (
        [search(fault=DELAY["fault"]), *begun(start(), OFFLINE), *AGAIN], WARN
    ),
    "late, told what it was told after a search without an answer": (
        [search(response=None, error=DELAY["error"]), *begun(start(), OFFLINE), *AGAIN], WARN
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
    "an identity that the daemon told before it told another": (
        [*begun(GONE, RULES), *TOLD, step("start", "s3"), start(PIRATE, "k3")], PASS
    ),
    "an identity that the user says": (
        [*TOLD, step("start"), GONE, said(f"Translate this:\n\n{PIRATE}"), hook(),
         asks(RULES, f"Translate this:\n\n{PIRATE}")], PASS,
    ),
    "an identity of which the daemon told nothing": (begun(GONE, RULES), PASS),
    "another identity beside the user's words": (
        [*TOLD, step("start"), GONE, said(),
         asks(messages=[{"role": "user", "content": PIRATE}, {"role": "user", "content": ASKED}])], WARN,
    ),
    "another identity, which the model spoke of": (
        [*TOLD, step("start"), GONE, said(),
         asks(messages=[{"role": "assistant", "content": PIRATE}, {"role": "user", "content": ASKED}])], PASS,
    ),
    "another identity than a late answer told": (
        [step("start", "s2"), start(RULES, "k2", fault=DELAY["fault"]), *begun(GONE, PIRATE)], WARN
    ),
    "an identity that only an answer to nobody told": (
        [*TOLD, step("start", "s3"), start(PIRATE, "k3", **DELAY), *begun(GONE, PIRATE)], PASS
    ),
    "another identity by its name": (
        [step("start", "s2"), start(PARTS, "k2"), *begun(GONE, "## Identity\n\nYou are Max.")], WARN
    ),
    "another soul": (
        [step("start", "s2"), start(PARTS, "k2"), *begun(GONE, "## Soul\n\nYou never doubt.")], WARN
    ),
    "another identity, and the agent's own words under the next heading": (
        [*TOLD, *begun(GONE, f"{PIRATE}\n\n## Notes\n\nAnswer briefly and cite the files you changed.")], WARN
    ),
    "a heading without lines": ([*TOLD, *begun(GONE, "## Agent Instructions\n\n## Notes\n\nPirates.")], PASS),
    "an identity whose heading the daemon told without lines": (
        [step("start", "s2"), start("## Soul\n\n## Notes\n\nPirates.", "k2"),
         *begun(GONE, "## Soul\n\nYou doubt.")], PASS,
    ),
    "other notes than the daemon told": (
        [step("start", "s2"), start("## Notes\n\nMax sails.", "k2"), *begun(GONE, "## Notes\n\nMax walks.")], PASS
    ),
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
    assert (identity.received, identity.expected) == (
        "you are max",
        "what the daemon says under 'agent instructions': 'answer briefly and cite the files you changed'",
    )
