"""The interfaces that the server speaks, one module each, in the table APIS; and the other paths of their vendors.

Each module has NAME, PATH, the MEDIA_TYPE of its streams, and GARBAGE, an event that breaks off. `parse` reads a
request; `answer` and `stream` write a turn as its answer, whole or in pieces; `failure` writes an error as status and
body, and `failure_event` as an event of a stream; `write` writes any other event, with its name where the interface
names them; `headers` are those of every answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
"""By path."""

CREATED: Final = 1_735_689_600
CREATED_AT: Final = "2025-01-01T00:00:00Z"
OLLAMA_VERSION: Final = "0.12.0"
CONTEXT_LENGTH: Final = 131_072
_DETAILS: Final = {
    "parent_model": "",
    "format": "gguf",
    "family": "scripted",
    "families": ["scripted"],
    "parameter_size": "1B",
    "quantization_level": "F16",
}
_MODELS: Final = "/v1/models"
Listed = tuple[int, Any]


def vendor_answer(
    method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any], models: Sequence[str]
) -> Listed | None:
    """The status and JSON value (or text) that answer a request to another path; None where no vendor has it."""
    what = ("GET" if method == "HEAD" else method, path)
    if what[0] == "GET" and (path == _MODELS or path.startswith(f"{_MODELS}/")):
        describe = _anthropic if "anthropic-version" in headers else _openai
        if path == _MODELS:
            return 200, _list([describe(model) for model in models], headers)
        return 200, describe(path.removeprefix(f"{_MODELS}/"))
    return _ollama(what, body, models)


def _ollama(what: tuple[str, str], body: Mapping[str, Any], models: Sequence[str]) -> Listed | None:
    if what == ("GET", "/"):
        return 200, "Ollama is running"
    if what == ("GET", "/api/version"):
        return 200, {"version": OLLAMA_VERSION}
    if what == ("GET", "/api/tags"):
        return 200, {"models": [_tag(model) for model in models]}
    if what == ("GET", "/api/ps"):
        return 200, {"models": []}
    if what == ("POST", "/api/show"):
        model = str(body.get("model") or body.get("name") or "")
        known = {name for each in models for name in (each, each.removesuffix(":latest"), f"{each}:latest")}
        return (200, _model_info()) if model in known else (404, {"error": f"model '{model}' not found"})
    return None


def _tag(model: str) -> dict[str, Any]:
    name = model if ":" in model else f"{model}:latest"
    return {"name": name, "model": name, "modified_at": CREATED_AT, "size": 0, "digest": "0" * 64, "details": _DETAILS}


def _model_info() -> dict[str, Any]:
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": _DETAILS,
        "model_info": {"general.architecture": "scripted", "scripted.context_length": CONTEXT_LENGTH},
        "capabilities": ["completion", "tools", "thinking"],
        "modified_at": CREATED_AT,
    }


def _list(described: list[dict[str, Any]], headers: Mapping[str, str]) -> dict[str, Any]:
    if "anthropic-version" not in headers:
        return {"object": "list", "data": described}
    return {"data": described, "has_more": False, "first_id": described[0]["id"], "last_id": described[-1]["id"]}


def _anthropic(model: str) -> dict[str, Any]:
    return {"type": "model", "id": model, "display_name": model, "created_at": CREATED_AT, "lifecycle": "active"}


def _openai(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": CREATED, "owned_by": "signet"}
