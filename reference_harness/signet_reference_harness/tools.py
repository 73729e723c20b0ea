"""Tools that a model may call, and the registry that runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signet_reference_harness.client import AdapterClient
from signet_reference_harness.errors import ToolInputError
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.messages import ToolDefinition
from signet_reference_harness.reply import Reply


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool works with: the session it runs in, and the only way to the daemon."""

    session: SessionIdentity
    client: AdapterClient


Execute = Callable[[Mapping[str, Any], ToolContext], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A named operation with a JSON Schema of its arguments.

    `execute` raises ToolInputError for arguments the daemon would refuse. With `run_before_generation` the
    tool runs on each prompt before the model sees it, with the prompt as its `query`.
    """

    definition: ToolDefinition
    execute: Execute
    run_before_generation: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool brought: `content` is JSON for the model, `error` tells why `ok` is false."""

    name: str
    ok: bool
    content: Mapping[str, Any]
    error: str = ""
    reply: Reply | None = None


class ToolRegistry:
    """The tools of a host by name. Raises ValueError when two tools share one."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.definition.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            raise ValueError("two tools have the same name")

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools as a model is told of them."""
        return tuple(tool.definition for tool in self._tools.values())

    @property
    def before_generation(self) -> tuple[str, ...]:
        """The names of the tools that run on each prompt before the model does."""
        return tuple(name for name, tool in self._tools.items() if tool.run_before_generation)

    async def execute(self, name: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Run a tool. An unknown tool, bad arguments and a failed call are results too: the model reads them."""
        tool = self._tools.get(name)
        if tool is None:
            return ToolResult(name, False, {}, f"there is no tool {name!r}; there are {', '.join(self._tools)}")
        try:
            reply = await tool.execute(arguments, context)
        except ToolInputError as error:
            return ToolResult(name, False, {}, error.message)
        if reply.failure is not None:
            return ToolResult(name, False, reply.body, f"{reply.failure}: {reply.detail}", reply)
        return ToolResult(name, True, reply.body, "", reply)
