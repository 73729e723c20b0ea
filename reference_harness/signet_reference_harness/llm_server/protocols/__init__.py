"""The interfaces that the server speaks, one module each; APIS is the table of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType
from typing import Any, Final

from signet_reference_harness.llm_server.playback import Asked
from signet_reference_harness.llm_server.protocols import (
    anthropic_messages,
    ollama_chat,
    openai_completions,
    openai_responses,
)
from signet_reference_harness.llm_server.reply import Piece, Reply
from signet_reference_harness.llm_server.script import ApiName, Failure, RateLimit, RawEvent


@dataclass(frozen=True, slots=True)
class Api:
    """One interface: how a request is read, and how a turn is written as its answer."""

    name: ApiName
    path: str
    media_type: str
    garbage: str
    read: Callable[[Mapping[str, Any]], Asked]
    answer: Callable[[Reply], dict[str, Any]]
    stream: Callable[[Reply], Iterator[Piece]]
    failure: Callable[[Failure], tuple[int, dict[str, Any]]]
    failure_event: Callable[[Failure], bytes]
    raw_event: Callable[[RawEvent], bytes]
    headers: Callable[[int, tuple[RateLimit, ...], datetime], dict[str, str]]


def _api(module: ModuleType) -> Api:
    return Api(
        module.NAME, module.PATH, module.MEDIA_TYPE, module.GARBAGE, module.read, module.answer, module.stream,
        module.failure, module.failure_event, module.raw_event, module.headers,
    )  # fmt: skip


APIS: Final = tuple(_api(module) for module in (anthropic_messages, openai_completions, openai_responses, ollama_chat))
