"""Recordings in which a model is asked: the catalogue's own examples, and requests to put in their place."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.contract import harness_requirements
from signet_conformance.engine import JudgedTrace, judge
from signet_conformance.finding import Judgement
from tests.support.case_traces import build

Item = Mapping[str, Any]
EXAMPLES: Mapping[str, Sequence[Item]] = {
    name: [item["mark"] | {"mark": item["mark"]["name"]} if "mark" in item else item for item in entry.example]
    for name, entry in harness_requirements().items()
}
"""The catalogue's own recordings, each of which breaches its requirement."""
INJECTED = "## Relevant Memories\n\n- Atlas deploys happen on Friday at 16:00 UTC."
FACT = "- [fact] Atlas Billing / refunds: refunds over 500 EUR need Mira's approval"
ASKED = "When do we deploy Atlas?"
TOOLS = [{"name": "memory_search", "input_schema": {"type": "object"}}]


def judged(folder: Path, items: Sequence[Item], **header: Any) -> JudgedTrace:
    """The verdicts over these items."""
    return judge(build(folder / "run.jsonl", items, header))


def of(folder: Path, number: int, items: Sequence[Item], **header: Any) -> Judgement:
    """The judgement of one requirement of the family."""
    return judged(folder, items, **header).harness[f"SIG-MODEL-{number:03d}"]


def example(number: int) -> list[dict[str, Any]]:
    """The recording of a requirement's example, to be changed."""
    return copy.deepcopy([dict(item) for item in EXAMPLES[f"SIG-MODEL-{number:03d}"]])


def model(body: Any, path: str = "/v1/messages", **more: Any) -> dict[str, Any]:
    """A request to the model."""
    return {"side": "model", "request": {"method": "POST", "path": path, "body": body}, **more}


def anthropic(text: str, system: Any = "", *, tools: bool = True, messages: Any = None) -> dict[str, Any]:
    """A request in Anthropic's format."""
    body = {"model": "m", "system": system, "messages": messages or [{"role": "user", "content": text}]}
    return model({**body, **({"tools": TOOLS} if tools else {})})


def asking(number: int, *requests: Item) -> list[Item]:
    """The example of a requirement with other requests in the place of its last one to the model."""
    items: list[Item] = list(example(number))
    last = max(place for place, item in enumerate(items) if "side" in item)
    return [*items[:last], *requests, *items[last + 1 :]]
