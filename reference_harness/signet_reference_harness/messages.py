"""The conversation as the harness keeps it, whatever provider it goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model asks for; `id` ties the result to the call."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Thinking:
    """What the model thought before it spoke.

    `raw` is the provider's own block, which goes back to that provider unchanged, since some sign it.
    """

    text: str
    provider: str
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the model's context. A `tool` message answers the call named by `tool_call_id`."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    thinking: tuple[Thinking, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it; `input_schema` is a JSON Schema."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
