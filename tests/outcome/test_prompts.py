"""A run that submits no declared prompt is not conforming, whatever else it does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.outcome.conclusion import Conclusion, Judging, Terms
from signet_conformance.reports.text import closing_line
from signet_conformance.trace import read
from tests.support.trace_files import HEADER, Line, end, health, post, start, write

HOOKS = ["session-start", "user-prompt-submit", "session-end"]


def mark(name: str, **data: Any) -> Line:
    """A mark of the kit."""
    return {"kind": "mark", "t": 1.0, "name": name, "data": data}


def step(index: int, kind: str, **more: Any) -> Line:
    """The mark of a step of the only session."""
    return mark("step", index=index, step=kind, session="s1", **more)


PROMPT = post(
    "/api/hooks/user-prompt-submit",
    {"harness": "openclaw", "sessionKey": "s-41c7", "agentId": "atlas-agent", "userMessage": "Which database?"},
    answer={"inject": "", "memoryCount": 0, "sessionKnown": True},
)
ASKED = step(1, "prompt", text="Which database?")
BEGUN = [step(0, "start"), health(), start(), mark("session_key", session="s1", key="s-41c7")]
ENDED = [step(2, "end"), end()]


def concluded(
    folder: Path, *turn: Line, capabilities: Sequence[str] = HOOKS, only: frozenset[str] | None = None
) -> Conclusion:
    """The conclusion over one recording in which this was the user's turn."""
    header = {**HEADER, "declared": {**HEADER["declared"], "capabilities": capabilities}}
    judging = Judging(Terms(only=only))
    for judged in judging.judge_traces([read(write(folder / "one.jsonl", [*BEGUN, *turn, *ENDED], header))]):
        judging.add(judged)
    return judging.conclude()


def said(conclusion: Conclusion) -> str:
    """The closing line."""
    return closing_line(conclusion, conclusion.status)


@pytest.mark.parametrize("turn", [[ASKED], [ASKED, mark("skipped", index=1, reason="nothing for it")]])
def test_run_without_any_declared_prompt_is_incomplete(tmp_path: Path, turn: list[Line]) -> None:
    """Start and end conform, and what the connector is for was not tested, whoever left it out."""
    conclusion = concluded(tmp_path, *turn)
    assert conclusion.status == 4
    assert said(conclusion).startswith("incomplete: no prompt was submitted in 1 turn of the user, though declared; ")


@pytest.mark.parametrize(
    ("turn", "more"),
    [
        ([ASKED, PROMPT], {}),
        ([ASKED], {"capabilities": ["session-start", "session-end"]}),
        ([ASKED], {"only": frozenset({"SIG-END-001"})}),
        ([step(1, "prompt", text="/status")], {}),
        ([mark("fault", kind="refuse", on=True), ASKED, mark("fault", kind="refuse", on=False)], {}),
    ],
    ids=["submitted", "not declared", "not asked for", "a command of the harness", "nobody was there"],
)
def test_run_that_owes_no_prompt_conforms(tmp_path: Path, turn: list[Line], more: dict[str, Any]) -> None:
    """A prompt is missed only where it was declared and said, and nothing kept it from being submitted."""
    conclusion = concluded(tmp_path, *turn, **more)
    assert (conclusion.status, conclusion.because) == (0, "")
