"""Steps, hooks and transcripts of a conversation, and what is said of a requirement over them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.engine import judge
from signet_conformance.finding import Judgement
from tests.support.case_traces import KEYED, build

Item = Mapping[str, Any]
FIRST, SECOND = (
    ("What is due in the ledger?", "Three invoices are."),
    ("Who wrote them, and when?", "Nobody knows it yet."),
)
THIRD = ("Shall it be told to the owner?", "It was told already.")
FOREIGN = ("Where is the spare key kept?", "Under the third flowerpot.")


def step(kind: str, session: str = "s1", **more: Any) -> Item:
    """A step that was given to the connector."""
    return {"mark": "step", "data": {"step": kind, "session": session, **more}}


def said(turn: tuple[str, str], session: str = "s1", **more: Any) -> Item:
    """A turn of the user and the model."""
    return step("prompt", session, text=turn[0], reply=turn[1], **more)


def hook(operation: str, key: str = "k-1", **more: Any) -> Item:
    """A hook of a session, answered as the daemon does."""
    answer = {"inject": "", "memories": []} if operation == "session-start" else {"inject": "", "memoryCount": 0}
    answer = {"memoriesSaved": 0} if operation == "session-end" else answer
    request = {"method": "POST", "path": f"/api/hooks/{operation}", "body": {**KEYED, "sessionKey": key, **more}}
    return {"request": request, "response": {"status": 200, "body": answer}}


def native(session: str, key: str) -> Item:
    """What the driver told of the native id of a session."""
    return {"mark": "session_key", "data": {"session": session, "key": key}}


def transcript(*turns: tuple[str, str], roles: Sequence[str] = ("user", "assistant")) -> str:
    """Turns as JSON lines."""
    told = [{"role": role, "content": text} for turn in turns for role, text in zip(roles, turn, strict=True)]
    return "\n".join(map(json.dumps, told))


def ended(text: str, *between: Item) -> list[Item]:
    """A session with what took place in it, and an end that tells a transcript."""
    return [step("start"), hook("session-start"), *between, step("end"), hook("session-end", transcript=text)]


def in_one_folder(*projects: str) -> list[Item]:
    """A session that the user opens in each project, all of them ended in the same folder."""
    return [
        item
        for number, project in enumerate(projects)
        for item in (
            step("start", f"s{number}", project=project),
            hook("session-start", f"k-{number}", project="/workspace"),
            step("end", f"s{number}"),
            hook("session-end", f"k-{number}", cwd="/workspace"),
        )
    ]


def judgement(folder: Path, items: Sequence[Item], requirement: str) -> Judgement:
    """What is said of a requirement over these items, numbered as steps are."""
    steps = 0
    numbered = []
    for item in items:
        is_step = item.get("mark") == "step"
        numbered.append({**item, "data": {"index": steps, **item["data"]}} if is_step else item)
        steps += is_step
    return judge(build(folder / "trace.jsonl", numbered, shared=False), frozenset({requirement})).judgements[
        requirement
    ]


def verdict(folder: Path, items: Sequence[Item], requirement: str = "SIG-END-012") -> str:
    """The verdict of a requirement over these items."""
    return judgement(folder, items, requirement).verdict
