"""The types of tools that a model may call, of their context and of their results; the built-in tools' definitions."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.messages import ToolDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The context of a tool's call: its session, and the daemon that keeps its memories."""

    session_key: str
    project: str
    """The absolute path of the folder that the agent works in."""
    agent_id: str
    daemon_url: str
    results: Path | None = None
    """The session's folder for results too long for the model; None until the first of them."""


class Tool(Protocol):
    """A named operation with a JSON Schema of its arguments, which are checked before it runs.

    It runs in a thread of its own, so it may block; `execute` may also be a coroutine function. It returns any JSON
    value; an exception reports a failure to the model. With `run_before_generation` it runs on each prompt before the
    model gets it, with the prompt as its `query`. An optional attribute `timeout_s` limits how long it may take.
    """

    @property
    def name(self) -> str:
        """The tool's name for a model."""

    @property
    def description(self) -> str:
        """Its description for a model."""

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments, an object."""

    @property
    def run_before_generation(self) -> bool:
        """Whether it runs on each prompt before the model does."""

    def execute(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Run the tool, and return its result."""


@dataclass(frozen=True, slots=True)
class _DefinedTool:
    definition: ToolDefinition

    @property
    def name(self) -> str:
        """The tool's name for a model."""
        return self.definition.name


@dataclass(frozen=True, slots=True)
class DaemonTool(_DefinedTool):
    """A built-in tool that is an operation of the daemon. It uses the session's client, and runs in its event loop.

    `input_schema` allows more arguments than the definition shows to a model; None counts as absent. `operate` raises
    ToolInputError for arguments that fit the schema but that the daemon would refuse. `shown` selects the part of an
    answer's body that the model gets.
    """

    input_schema: Mapping[str, Any]
    operate: Callable[[Mapping[str, Any], SessionIdentity, AdapterClient], Awaitable[Reply]]
    shown: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    run_before_generation: bool = False


@dataclass(frozen=True, slots=True)
class ServedTool(_DefinedTool):
    """A tool of another program. `call` is awaited in the session's event loop, and is cancelled with the turn.

    `call` returns any JSON value; a ToolFailedError reports a failure to the model.
    """

    call: Callable[[Mapping[str, Any]], Awaitable[Any]]
    timeout_s: float


class ToolSource(Protocol):
    """A source of tools that may change during a session."""

    @property
    def tools(self) -> Mapping[str, ServedTool]:
        """The present tools, by their names for a model."""

    @property
    def notices(self) -> Sequence[str]:
        """Notices about the tools for the model and the person, the earliest first; the list only grows."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool: `content` is JSON for the model; if `ok` is false, `error` says why.

    If the result was too long for the model, `file` has all of it.
    """

    name: str
    ok: bool
    content: Any
    error: str = ""
    reply: Reply | None = None
    file: Path | None = None


_DEFINED: Final = json.loads(Path(__file__).with_name("definitions.json").read_bytes())
DEFINITIONS: Final = {
    each["name"]: ToolDefinition(each["name"], each["description"], each["inputSchema"]) for each in _DEFINED
}
"""The definitions of the tools that come with the harness, by name."""
_HINTS: Final = {each["name"]: each.get("annotations", {}) for each in _DEFINED}
READS: Final = frozenset(name for name, hints in _HINTS.items() if hints.get("readOnlyHint"))
"""The built-in tools that change nothing."""
UNASKED: Final = READS | {name for name, hints in _HINTS.items() if hints.get("destructiveHint") is False}
"""The built-in tools that a model may use without asking a person; those that change memories destroy no version."""
