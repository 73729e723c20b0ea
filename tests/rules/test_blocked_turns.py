"""Facts about turns that a handler blocked: a breach only between the kit's marks, while it kept the daemon away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import JudgedTrace, judge
from tests.support.case_traces import build

Item = Mapping[str, Any]


def mark(name: str, **data: Any) -> Item:
    """A mark of the kit."""
    return {"mark": name, "data": data}


def fault(kind: str, *, on: bool, path: str | None = None) -> Item:
    """A fault that is switched on or off, as the recorder marks it."""
    return mark("fault", kind=kind, on=on, match={} if path is None else {"path": path}, id=1)


def step(kind: str, index: int) -> Item:
    """A step that was given to the connector."""
    return mark("step", step=kind, session="s1", index=index, text="next")


def handler(outcome: str, index: int = 1) -> Item:
    """What became of the handler of a prompt."""
    text = "memory is away"
    return mark("handler", index=index, event="UserPromptSubmit", outcome=outcome, status=2, ms=40.0, text=text)


def hook(operation: str, **more: Any) -> Item:
    """A keyed hook that is answered."""
    body = {
        "harness": "openclaw",
        "sessionKey": "s-41c7",
        "agentId": "atlas-agent",
        "runtimePath": "plugin",
        "project": "/srv/atlas",
        "userMessage": "next",
    }
    return {"request": {"method": "POST", "path": f"/api/hooks/{operation}", "body": body}, **more}


START = [step("start", 0), hook("session-start")]
RESET = hook("user-prompt-submit", response=None, error={"kind": "fault"}, fault={"kind": "reset"})
AFTER = [step("prompt", 2), hook("user-prompt-submit")]


def judged(folder: Path, items: Iterable[Item]) -> JudgedTrace:
    """What comes of a recording of these items."""
    return judge(build(folder / "trace.jsonl", items))


@pytest.mark.parametrize("kind", ["refuse", "reset"])
@pytest.mark.parametrize("path", [None, "/api/*", "/api/hooks/user-prompt-submit"])
def test_turn_that_is_blocked_while_the_daemon_is_away(kind: str, path: str | None, tmp_path: Path) -> None:
    """The breach names the step, what blocked it and why, even where the connector goes on afterwards."""
    items = [*START, fault(kind, on=True, path=path), step("prompt", 1), handler("blocked")]
    judgement = judged(tmp_path, [*items, fault(kind, on=False, path=path), *AFTER]).judgements["SIG-FAIL-001"]
    (finding,) = judgement.findings
    assert judgement.verdict == "FAIL"
    assert finding.message == "step 1: the daemon was unreachable, and UserPromptSubmit blocked the user's turn"
    assert finding.received == "memory is away"


def test_evidence_of_a_blocked_turn(tmp_path: Path) -> None:
    """The calls of the step are what the breach rests on, not those of others."""
    items = [*START, fault("reset", on=True), step("prompt", 1), RESET, handler("blocked"), *AFTER]
    (finding,) = judged(tmp_path, items).judgements["SIG-FAIL-001"].findings
    assert finding.exchanges == (5,)


ON, OFF = fault("reset", on=True), fault("reset", on=False)
GIVEN = [step("prompt", 1), RESET]
OTHERWISE = {
    "the handler ran out of time": [ON, *GIVEN, handler("timed_out"), OFF],
    "the handler threw": [ON, *GIVEN, handler("thrown"), OFF],
    "the handler failed": [ON, *GIVEN, handler("failed"), OFF],
    "the fault was over": [ON, *GIVEN, OFF, step("prompt", 3), handler("blocked", 3)],
    "the fault was over before the step was given": [ON, RESET, OFF, step("prompt", 1), handler("blocked")],
    "another step was blocked": [ON, *GIVEN, handler("blocked", 7), OFF],
    "no prompt was given": [ON, step("compact", 1), RESET, handler("blocked"), OFF],
    "no step is marked": [ON, RESET, handler("blocked"), OFF],
    "the fault is for other calls": [
        fault("reset", on=True, path="/api/hooks/session-end"), step("prompt", 1), RESET, handler("blocked"), OFF,
    ],
    "the daemon answered": [
        fault("status", on=True), step("prompt", 1), RESET, handler("blocked"), fault("status", on=False),
    ],
}  # fmt: skip


@pytest.mark.parametrize("why", OTHERWISE)
def test_other_trouble_is_no_breach(why: str, tmp_path: Path) -> None:
    """A harness goes on without a handler that fails, and a turn that is blocked otherwise is not the daemon's."""
    assert judged(tmp_path, [*START, *OTHERWISE[why], *AFTER]).judgements["SIG-FAIL-001"].verdict == "PASS"


def test_marks_of_handlers_decide_nothing_else(tmp_path: Path) -> None:
    """No other requirement reads them: the same recording without them has the same verdicts."""
    items = [*START, ON, *GIVEN, handler("blocked"), OFF, *AFTER]
    with_marks = judged(tmp_path, items)
    without = judged(tmp_path, [item for item in items if item.get("mark") != "handler"])
    before = without.judgements
    differing = {name for name, now in with_marks.judgements.items() if now.verdict != before[name].verdict}
    assert differing == {"SIG-FAIL-001"}
