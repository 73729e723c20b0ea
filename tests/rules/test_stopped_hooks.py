"""Facts about hooks that the host stopped before they sent anything: nobody is blamed for what they left unsaid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import Verdict
from tests.support.case_traces import KEYED, build

Item = Mapping[str, Any]
HEADER = {
    "declared": {
        "agents": ["atlas-agent"],
        "capabilities": ["session-start", "user-prompt-submit", "session-end", "pre-compaction", "compaction-complete"],
    }
}
ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "session-start": {"inject": "Deploys are on Fridays.", "memories": [{"id": "m-1", "content": "Fridays"}]},
    "user-prompt-submit": {"inject": "", "memoryCount": 0, "sessionKnown": True},
    "session-end": {"memoriesSaved": 0, "queued": False},
    "pre-compaction": {"summaryPrompt": "Write it down.", "guidelines": ""},
    "compaction-complete": {"success": True, "memoryId": "m-1"},
}

STEPS: Sequence[tuple[str, str, Sequence[tuple[str, str, Mapping[str, Any]]]]] = (
    ("start", "s1", [("session-start", "k-1", {})]),
    ("prompt", "s1", [("user-prompt-submit", "k-1", {})]),
    ("compact", "s1", [("pre-compaction", "k-1", {}), ("compaction-complete", "k-1", {})]),
    ("prompt", "s1", [("user-prompt-submit", "k-1", {})]),
    ("end", "s1", [("session-end", "k-1", {"reason": "exit"})]),
    ("resume", "s1", [("session-start", "k-1", {"source": "resume"})]),
    ("prompt", "s1", [("user-prompt-submit", "k-1", {})]),
    ("end", "s1", [("session-end", "k-1", {"reason": "exit"})]),
    ("start", "s2", [("session-start", "k-2", {})]),
    ("prompt", "s2", [("user-prompt-submit", "k-2", {})]),
    ("clear", "s2", [("session-end", "k-2", {"reason": "clear"}), ("session-start", "k-3", {"source": "clear"})]),
    ("prompt", "s2", [("user-prompt-submit", "k-3", {})]),
    ("end", "s2", [("session-end", "k-3", {"reason": "exit"})]),
)
"""What a user did, with the hooks that a conforming connector sends for it."""
HOOKS = [(index, place) for index, (_, _, hooks) in enumerate(STEPS) for place in range(len(hooks))]


def items(stopped: Sequence[tuple[int, int]], how: str) -> Iterator[Item]:
    """The recording of these steps without some hooks, whose handlers the host stopped, or which just failed."""
    started: set[str] = set()
    for index, (name, session, hooks) in enumerate(STEPS):
        text = {"text": f"Question {index}", "reply": "Yes."} if name == "prompt" else {}
        yield {
            "mark": "step",
            "data": {"step": name, "session": session, "index": index, "agent": "atlas-agent", **text},
        }
        for place, (operation, key, more) in enumerate(hooks):
            if (index, place) in stopped:
                continue
            known = {"sessionKnown": key in started} if operation == "user-prompt-submit" else {}
            if operation == "session-start":
                started.add(key)
            body = {**KEYED, "sessionKey": key, "summary": "It is done.", "transcript": "User: a\nAssistant: b", **more}
            if operation == "user-prompt-submit":
                body["userMessage"] = f"Question {index}"
            yield {
                "request": {"method": "POST", "path": f"/api/hooks/{operation}", "body": body},
                "response": {"status": 200, "body": {**ANSWERS[operation], **known}},
            }
        if name == "prompt":
            yield {"mark": "model", "data": {"session": session}}
        for _ in (each for each in stopped if each[0] == index):
            yield {"mark": "handler", "data": {"index": index, "event": "Hook", "outcome": how, "lost": False}}


def breached(folder: Path, stopped: Sequence[tuple[int, int]], how: str = "timed_out") -> set[str]:
    """What the recording breaches.

    A prompt that comes before its start is answered so that the connector can make up for it: what a connector does not
    do then is its own (SIG-PROMPT-006).
    """
    judged = judge(build(folder / "trace.jsonl", [*items(stopped, how)], HEADER))
    broken = {name for name, each in judged.verdicts.items() if each in (Verdict.FAIL, Verdict.WARN)}
    return broken - {"SIG-PROMPT-006"}


@pytest.mark.parametrize("times", [1, 2, 3])
def test_no_stopped_hook_is_missed(times: int, tmp_path: Path) -> None:
    """Whichever hooks a busy machine leaves unsaid, nothing is breached that is not breached with all of them."""
    whole = breached(tmp_path, ())
    blamed = {some: found for some in combinations(HOOKS, times) if (found := breached(tmp_path, some) - whole)}
    assert blamed == {}


def test_hooks_that_were_not_stopped_are_missed(tmp_path: Path) -> None:
    """Without the host's mark the same recordings breach much."""
    whole = breached(tmp_path, ())
    missed = set().union(*(breached(tmp_path, (each,), "failed") for each in HOOKS)) - whole
    assert missed >= {"SIG-START-004", "SIG-PROMPT-005", "SIG-PROMPT-011", "SIG-END-005", "SIG-CMP-003", "SIG-CMP-008"}
