"""Small recordings of a daemon and a model side by side, line by line, and what one rule makes of each of its subjects.

A line's place, from 1, is its number and the second at which it stands, unless its times are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.facts import Recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules import harness_rules
from signet_conformance.rules.outcome import Outcome
from tests.support.case_traces import KEYED, build

from .model_requests import ASKED, Item, anthropic

MEMORY = "Atlas deploys happen on Friday at 16:00 UTC."
FACT = "Refunds over 500 EUR need approval from Mira"
PASS, FAIL, WARN, OPEN = Verdict.PASS, Verdict.FAIL, Verdict.WARN, Verdict.INCONCLUSIVE


def step(kind: str, session: str | None = "s1", **more: Any) -> Item:
    """A step of the user."""
    return {"mark": "step", "data": {"step": kind, "session": session, **more}}


def said(text: str | None = ASKED, session: str | None = "s1", **more: Any) -> Item:
    """A turn of the user."""
    return step("prompt", session, text=text, **more)


def call(path: str, body: Mapping[str, Any], answer: Any, **more: Any) -> Item:
    """A call of the daemon with its answer."""
    request = {"method": "POST", "path": path, "body": body}
    return {"request": request, "response": {"status": 200, "body": answer}, **more}


def start(inject: str = MEMORY, key: str | None = "k1", memories: Any = None, name: str = "Agent", **more: Any) -> Item:
    """A session-start that is given a text; its memories are the text, unless they are told. `also` is of its body."""
    body = {**KEYED, "sessionKey": key, "source": "startup", **more.pop("also", {})}
    rows = [{"content": inject}] if memories is None else memories
    answer = {"inject": inject, "memories": rows, "identity": {"name": name}}
    return call("/api/hooks/session-start", body, answer, **more)


def hook(inject: str = "", text: str = ASKED, key: str | None = "k1", **more: Any) -> Item:
    """A prompt hook that is given a text."""
    body = {**KEYED, "sessionKey": key, "userMessage": text, **more.pop("also", {})}
    return call("/api/hooks/user-prompt-submit", body, {"inject": inject}, **more)


def asks(system: Any = "", text: str = ASKED, **more: Any) -> Item:
    """A request to the model in Anthropic's format, in which the user says the text."""
    known = {name: more.pop(name) for name in ("tools", "messages") if name in more}
    return {**anthropic(text, system, **known), **more}


def recorded(folder: Path, items: Sequence[Item], **header: Any) -> Recording:
    """The recording of these lines; no two equal texts in it are one object."""
    return Recording(build(folder / "run.jsonl", items, header, shared=False))


def outcomes(folder: Path, number: int, items: Sequence[Item], **header: Any) -> list[Outcome]:
    """What a rule says of each of its subjects, in order."""
    return list(harness_rules()[f"SIG-MODEL-{number:03d}"](recorded(folder, items, **header)))


def verdicts(folder: Path, number: int, items: Sequence[Item], **header: Any) -> list[Verdict]:
    """The verdict on each subject, in order."""
    return [
        outcome.verdict if isinstance(outcome, Finding) else outcome
        for outcome in outcomes(folder, number, items, **header)
    ]


def only(folder: Path, number: int, items: Sequence[Item], **header: Any) -> Finding:
    """What a rule finds at its only subject."""
    (outcome,) = outcomes(folder, number, items, **header)
    assert isinstance(outcome, Finding)
    return outcome
