"""The interfaces that the server speaks, one module each; APIS is the table of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType
from typing import Any, Final

from signet_reference_harness.llm_server.playback import ScriptedRequest
from signet_reference_harness.llm_server.protocols import (
    anthropic_messages,
    ollama_chat,
    openai_completions,
    openai_responses,
)
from signet_reference_harness.llm_server.reply import Piece, TurnReply
from signet_reference_harness.llm_server.script import ApiName, ErrorAnswer, ScriptedLimit


@dataclass(frozen=True, slots=True)
class Api:
    """One interface: how a request is read, and how a turn is written as its answer."""

    name: ApiName
    path: str
    media_type: str
    garbage: str
    parse: Callable[[Mapping[str, Any]], ScriptedRequest]
    answer: Callable[[TurnReply], dict[str, Any]]
    stream: Callable[[TurnReply], Iterator[Piece]]
    failure: Callable[[ErrorAnswer], tuple[int, dict[str, Any]]]
    failure_event: Callable[[ErrorAnswer], bytes]
    write: Callable[[Any, str | None], bytes]
    """Writes an event of a stream, with its name where the interface names them."""
    headers: Callable[[int, tuple[ScriptedLimit, ...], datetime], dict[str, str]]


def _api(module: ModuleType) -> Api:
    return Api(
        module.NAME, module.PATH, module.MEDIA_TYPE, module.GARBAGE, module.parse, module.answer, module.stream,
        module.failure, module.failure_event, module.write, module.headers,
    )  # fmt: skip


APIS: Final = tuple(_api(module) for module in (anthropic_messages, openai_completions, openai_responses, ollama_chat))
