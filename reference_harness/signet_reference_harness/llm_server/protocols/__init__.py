"""The vendors' interfaces that the server offers, one module each, in the table APIS; and other paths of the vendors.

Each module has NAME, PATH, the MEDIA_TYPE of its streams, and GARBAGE, an incomplete event. `parse` reads a request;
`answer` and `stream` write a turn, whole or in pieces; `failure` writes an error as status and body, `failure_event` as
an event of a stream; `write` writes any other event, with its name if the interface names events; `headers` are those
of every answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from signet_reference_harness.llm_server.protocols import (
    anthropic_messages,
    ollama_chat,
    openai_completions,
    openai_responses,
)

APIS: Final[Mapping[str, ModuleType]] = {
    each.PATH: each for each in (anthropic_messages, openai_completions, openai_responses, ollama_chat)
}
"""The modules by their paths."""

_ANSWERS: Final[Mapping[str, Any]] = json.loads(Path(__file__).with_name("vendor_answers.json").read_bytes())
"""Answers by method and path, each vendor's description of a MODEL, and Ollama's longer one (`show`)."""
_MODELS: Final = "/v1/models"


def vendor_answer(
    method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any], models: Sequence[str]
) -> tuple[int, Any] | None:
    """The status and JSON value (or text) that answer a request to another path; None if no vendor has that path."""
    request = f"{'GET' if method == 'HEAD' else method} {path}"
    vendor = "anthropic" if "anthropic-version" in headers else "openai"
    if request == f"GET {_MODELS}":
        return 200, _list(vendor, models)
    if request.startswith(f"GET {_MODELS}/"):
        return 200, _describe(vendor, path.removeprefix(f"{_MODELS}/"))
    if request == "GET /api/tags":
        return 200, {"models": [_describe("ollama", model if ":" in model else f"{model}:latest") for model in models]}
    if request == "POST /api/show":
        model = str(body.get("model") or body.get("name") or "")
        known = {name for each in models for name in (each, each.removesuffix(":latest"), f"{each}:latest")}
        return (200, _ANSWERS["show"]) if model in known else (404, {"error": f"model '{model}' not found"})
    return (200, _ANSWERS[request]) if request in _ANSWERS else None


def _describe(vendor: str, model: str) -> dict[str, Any]:
    return {name: model if value == "MODEL" else value for name, value in _ANSWERS[vendor].items()}


def _list(vendor: str, models: Sequence[str]) -> dict[str, Any]:
    data = [_describe(vendor, model) for model in models]
    if vendor == "openai":
        return {"object": "list", "data": data}
    return {"data": data, "has_more": False, "first_id": models[0], "last_id": models[-1]}
