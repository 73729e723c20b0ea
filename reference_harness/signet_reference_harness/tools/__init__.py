"""Tools that a model may call: what one is, what it works with, what it brings, and how it reads its arguments."""

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
    """The folder of the session that holds results too long for the model, once there is one."""


class Tool(Protocol):
    """A named operation with a JSON Schema of its arguments, which are checked before it runs.

    It runs in a thread of its own, so that it may block; `execute` may be a coroutine function too. It returns any
    JSON value, and raises to tell the model what is wrong. With `run_before_generation` it runs on each prompt before
    the model sees it, with the prompt as its `query`. An attribute `timeout_s` says how long it may take.
    """

    @property
    def name(self) -> str:
        """The name that a model calls it by."""

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
        """Do it."""


@dataclass(frozen=True, slots=True)
class _DefinedTool:
    definition: ToolDefinition

    @property
    def name(self) -> str:
        """The name that a model calls it by."""
        return self.definition.name


@dataclass(frozen=True, slots=True)
class DaemonTool(_DefinedTool):
    """A built-in tool that is an operation of the daemon: it needs the session's own client, and runs in its loop.

    `input_schema` admits more than the definition shows to a model; None counts as absent. `operate` raises
    ToolInputError for arguments that the daemon would refuse all the same. `shown` returns what the model reads of the
    body of an answer.
    """

    input_schema: Mapping[str, Any]
    operate: Callable[[Mapping[str, Any], SessionIdentity, AdapterClient], Awaitable[Reply]]
    shown: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    run_before_generation: bool = False


@dataclass(frozen=True, slots=True)
class ServedTool(_DefinedTool):
    """A tool of another program: `call` is awaited in the session's loop, and is cancelled with the turn.

    `call` returns any JSON value. It raises ToolFailedError to tell the model what is wrong.
    """

    call: Callable[[Mapping[str, Any]], Awaitable[Any]]
    timeout_s: float


class ToolSource(Protocol):
    """Where tools come from that may change while a session lasts."""

    @property
    def tools(self) -> Mapping[str, ServedTool]:
        """The tools as they stand now, by the names that a model calls them by."""

    @property
    def notices(self) -> Sequence[str]:
        """Notices about the tools for the model and the person, the earliest first; the list only grows."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool: `content` is JSON for the model, `error` explains why `ok` is false.

    `file` holds the whole of a result that was too long for the model.
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
"""Those that change nothing."""
UNASKED: Final = READS | {name for name, hints in _HINTS.items() if hints.get("destructiveHint") is False}
"""Those that a model may use without a word of a person: of memories the daemon keeps each version."""
