"""Sessions that take the place of others in pi's program: forked and gone back to, with the events of each release."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.errors import TargetError

from .conftest import PROMPT, START, Made, performed

EXTENSION = """
import { appendFileSync } from "node:fs";
export default (pi) => {
  for (const type of ["session_start", "session_switch", "session_fork", "session_branch", "session_shutdown"])
    pi.on(type, (event, ctx) => {
      const { reason } = event;
      const told = [type, reason ?? null, ctx.sessionManager.getEntries().length];
      appendFileSync(process.env.SEEN, JSON.stringify(told) + "\\n");
    });
};
"""


@pytest.mark.parametrize(
    ("target", "face", "events"),
    [
        ("pi", "pi-0.54", ["session_fork", "session_switch"]),
        ("pi", "pi-0.73", ["session_shutdown", "session_start", "session_start"] * 2),
        ("oh-my-pi", "oh-my-pi-13.19", ["session_branch", "session_switch"]),
    ],
)
def test_a_fork_and_the_way_back_are_told(
    target: str, face: str, events: list[str], made: Made, tmp_path: Path
) -> None:
    """A fork has another id and the same conversation; the way back has the id from before, and what was said then."""
    module, seen = tmp_path / "forks.mjs", tmp_path / "seen.jsonl"
    module.write_text(EXTENSION)
    steps = [START, PROMPT, {"step": "fork", "session": "s1"}, PROMPT, {"step": "reopen", "session": "s1"}]
    results = performed(made(target, module=str(module), face=face), tmp_path / "home", steps, SEEN=str(seen))
    first, _, forked, _, back = (result["key"] for result in results)
    assert back == first != forked
    told = [json.loads(line) for line in seen.read_text().splitlines()]
    assert [event for event, _, _ in told][1:-1] == events
    lengths = [length for event, _, length in told if event != "session_shutdown"]
    assert lengths[0] == 0
    assert lengths[1] == lengths[-1] == 2


@pytest.mark.parametrize("target", ["pi", "oh-my-pi"])
@pytest.mark.parametrize(
    ("before", "after"),
    [([START], {**START, "session": "s2"}), ([START], {**PROMPT, "session": "s2"}), ([], PROMPT)],
    ids=["another start", "another's prompt", "no start"],
)
def test_a_program_has_one_session(
    before: list[Mapping[str, Any]], after: Mapping[str, Any], target: str, made: Made, tmp_path: Path
) -> None:
    """A step for another session names the setting that gives each session a program of its own."""
    module = tmp_path / "quiet.mjs"
    module.write_text("export default () => {};")
    with pytest.raises(TargetError, match=r"one session in a program.* write processes = \"session\""):
        performed(made(target, module=str(module), processes="one"), tmp_path / "home", [*before, after])
