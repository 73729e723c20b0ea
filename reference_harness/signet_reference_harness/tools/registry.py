"""The tools of a host by name. Each call has a result, within limits of time and size."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property, partial
from importlib.metadata import entry_points
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.errors import ConfigError, HarnessError, ToolFailedError, load_plugin
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.messages import ToolDefinition, valid_text
from signet_reference_harness.tools import DaemonTool, ServedTool, Tool, ToolContext, ToolResult, ToolSource

DEFAULT_TIMEOUT_S: Final = 60.0
Value = TypeVar("Value")
AnyTool = Tool | DaemonTool | ServedTool


class ToolRegistry:
    """The tools of a host. Raises ConfigError if two tools have the same name.

    A tool with an invalid schema is not shown to the model, and a call of it fails. The tools named in
    `before_generation`, and those that request it themselves, run on each prompt. The tools of `sources` may change; a
    tool of the host has precedence over one of the same name from a source.
    """

    def __init__(
        self,
        tools: Sequence[Tool | DaemonTool],
        before_generation: Sequence[str] = (),
        sources: Sequence[ToolSource] = (),
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            names = [tool.name for tool in tools]
            raise ConfigError(
                f"two tools have the same name: {', '.join(sorted({n for n in names if names.count(n) > 1}))}",
                remedy="leave one of them out, or give it another name",
            )
        self._sources = tuple(sources)
        self._schemas: dict[str, tuple[AnyTool, _Schema]] = {}
        unknown = [name for name in before_generation if name not in self._tools]
        if unknown:
            raise ValueError(f"there is no tool {unknown[0]!r} to run before generation")
        self.before_generation = tuple(
            name for name, tool in self._tools.items() if tool.run_before_generation or name in before_generation
        )
        """The names of the tools that run on each prompt, before the model."""

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions of the tools for a model."""
        return tuple(
            tool.definition
            if isinstance(tool, (DaemonTool, ServedTool))
            else ToolDefinition(tool.name, tool.description, tool.input_schema)
            for tool in self._all().values()
            if isinstance(tool, DaemonTool) or not self._schema_of(tool).complaint
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices about tools that came or went, source by source."""
        return tuple(notice for source in self._sources for notice in source.notices)

    def asks_the_daemon(self, name: str) -> bool:
        """Whether the tool is an operation of the daemon, or unknown."""
        return isinstance(self._tools.get(name), DaemonTool) or name not in self._all()

    def _all(self) -> dict[str, AnyTool]:
        """The current tools by name, the host's first."""
        served = {name: tool for source in self._sources for name, tool in source.tools.items()}
        return {**self._tools, **served, **self._tools}

    def _schema_of(self, tool: AnyTool) -> _Schema:
        cached = self._schemas.get(tool.name)
        if cached is None or cached[0] is not tool:
            schema = _Schema(tool.name, tool.definition if isinstance(tool, ServedTool) else tool)
            cached = self._schemas[tool.name] = (tool, schema)
        return cached[1]

    async def execute(
        self,
        name: str,
        arguments: Mapping[str, Any],
        session: SessionIdentity,
        client: AdapterClient,
        results: ResultFolder,
        refusal: Callable[[], Awaitable[str]] | None = None,
    ) -> ToolResult:
        """Run a tool. An unknown tool, invalid arguments and a failed call give a result too, which the model gets.

        `refusal` is awaited last; it returns why the call is not allowed, or an empty text.
        """
        tools = self._all()
        tool = tools.get(name)
        if tool is None:
            return _failed(name, f"there is no tool {name!r}; there are {', '.join(tools)}")
        try:
            if isinstance(tool, DaemonTool):
                arguments = {name: value for name, value in arguments.items() if value is not None}
            complaint = self._schema_of(tool).breach(arguments)
            if complaint is None and refusal is not None:
                complaint = await refusal()
            if complaint:
                return _failed(name, complaint)
            if isinstance(tool, DaemonTool):
                return await _operate(tool, arguments, session, client, results)
            if isinstance(tool, ServedTool):
                work, timeout_s = tool.call(arguments), tool.timeout_s
            else:
                context = ToolContext(
                    session_key=session.key,
                    project=session.project,
                    agent_id=session.agent,
                    daemon_url=client.config.origin,
                    results=results.path,
                )
                work = in_thread(partial(_perform, tool, arguments, context))
                timeout_s = float(getattr(tool, "timeout_s", DEFAULT_TIMEOUT_S))
            try:
                content = await asyncio.wait_for(work, timeout_s)
            except TimeoutError:
                return _failed(name, f"the tool gave no result within {timeout_s:g} s and was given up")
            value, file = bound_result(content, name, results)
        except HarnessError as error:
            return _failed(name, error.message)
        except (ValueError, TypeError, RecursionError) as error:
            return _failed(name, f"the tool's result is not JSON: {error}")
        return ToolResult(name, True, value, file=file)


async def _operate(
    tool: DaemonTool,
    arguments: Mapping[str, Any],
    session: SessionIdentity,
    client: AdapterClient,
    results: ResultFolder,
) -> ToolResult:
    reply = await tool.operate(arguments, session, client)
    if reply.failure is not None:
        return ToolResult(tool.name, False, reply.body, f"{reply.failure}: {reply.detail}"[:ERROR_LIMIT], reply)
    content, file = bound_result(tool.shown(reply.body), tool.name, results)
    return ToolResult(tool.name, True, content, "", reply, file)


def _perform(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Any:
    """Run a tool, in a thread."""
    try:
        value = tool.execute(arguments, context)
        return asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value
    except HarnessError:
        raise
    except BaseException as error:  # noqa: BLE001 - a tool is foreign code: its SystemExit must not end the harness
        raise ToolFailedError(f"the tool failed: {type(error).__name__}: {error}") from None


async def in_thread(call: Callable[[], Value]) -> Value:
    """Run `call` in a thread of its own, which delays neither the loop nor the exit, even if it never ends."""
    ended: Future[Value] = Future()
    # A running future cannot be cancelled by a caller that stops waiting.
    ended.set_running_or_notify_cancel()

    def run() -> None:
        try:
            ended.set_result(call())
        except Exception as error:  # noqa: BLE001 - it is raised again where the value is awaited
            ended.set_exception(error)

    threading.Thread(target=run, name="call", daemon=True).start()
    return await asyncio.wrap_future(ended)


async def _awaited(value: Any) -> Any:
    return await value


class _Schema:
    """The schema of a tool's arguments; read when it is first needed."""

    def __init__(self, name: str, tool: Tool | DaemonTool | ToolDefinition) -> None:
        self._name = name
        self._tool = tool
        self._validator: Any = None

    @cached_property
    def complaint(self) -> str:
        """Why the schema cannot be used; empty if it can."""
        # Imported late: the import takes longer than most turns.
        import jsonschema_rs

        try:
            schema = dict(self._tool.input_schema)
            if schema.get("type") != "object":
                raise ValueError("its type is not 'object'")
            self._validator = jsonschema_rs.validator_for(schema, retriever=_fetch_nothing)
        except (jsonschema_rs.ValidationError, ValueError, TypeError, AttributeError) as error:
            return f"the tool {self._name!r} has a schema that cannot be used: {_first(error)}"
        return ""

    def breach(self, arguments: Mapping[str, Any]) -> str | None:
        """Why the schema refuses the arguments; None if it accepts them."""
        if self.complaint:
            return self.complaint
        try:
            # This replaces lone surrogates, which the validator cannot read.
            value = json.loads(as_json(dict(arguments)))
        except (ValueError, TypeError, RecursionError) as error:
            return f"the arguments are not JSON: {error}"
        for breach in self._validator.iter_errors(value):
            place = "".join(f"/{part}" for part in breach.instance_path)
            return f"the arguments do not fit the tool's schema: {place or 'the object'}: {_first(breach)}"
        return None


def _fetch_nothing(address: str) -> Any:
    """Refuse to load another schema: a foreign schema must not make the harness open an address or a file."""
    raise ValueError(f"a schema may not refer to {address[:ERROR_LIMIT]!r}, outside itself")


def _first(error: Exception) -> str:
    message: str = getattr(error, "message", None) or str(error)
    return message.splitlines()[0] if message else type(error).__name__


def _failed(name: str, error: str) -> ToolResult:
    return ToolResult(name, False, {}, valid_text(error)[:ERROR_LIMIT])


RESULT_LIMIT: Final = 64 * 1024
"""The most bytes of JSON that one result may add to the model's context."""
NOTE_ROOM: Final = 1_024
FILE_LIMIT: Final = 256 * 1024 * 1024
"""The most bytes of one result that are written to its file."""
ERROR_LIMIT: Final = 2_000
"""The most characters of an error that the model gets."""


class ResultFolder:
    """The folder of a session for results that are too long for the model; created with the first of them.

    Without a `path` it is a private temporary folder, which :meth:`close` removes.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._is_ours = path is None
        self._numbers: Iterator[int] = count(1)

    def keep(self, name: str, content: bytes) -> Path:
        """Write a result to a new file and return its path. Raises OSError."""
        if self.path is None:
            self.path = Path(tempfile.mkdtemp(prefix="signet-results-"))
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60]
        for number in self._numbers:
            file = self.path / f"{number:03d}-{stem}.txt"
            try:
                descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            except FileExistsError:
                continue
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(content[:FILE_LIMIT])
            return file
        raise AssertionError("counting does not end")

    def close(self) -> None:
        """Remove the folder if it is a temporary one."""
        if self._is_ours and self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path = None


def bound_result(content: Any, name: str, folder: ResultFolder) -> tuple[Any, Path | None]:
    """Cut a result to RESULT_LIMIT. Return it for the model, and if it was cut, the file with all of it.

    Raises ValueError, TypeError or RecursionError if the content is not JSON.
    """
    text = as_json(content)
    if len(text.encode()) <= RESULT_LIMIT:
        return json.loads(text), None
    whole = valid_text(content) if isinstance(content, str) else text
    size = len(whole.encode())
    result: dict[str, Any] = {"cut": True, "bytes": size, "beginning": beginning(whole, RESULT_LIMIT - NOTE_ROOM)}
    try:
        file = folder.keep(name, whole.encode())
    except OSError as error:
        lost = f"the rest is lost: no file could be written: {error.strerror or error}"
        return {**result, "note": lost[:NOTE_ROOM]}, None
    note = "this file holds the whole result; read on with file_read, by offset"
    return {**result, "file": str(file), "note": note}, file


def as_json(content: Any) -> str:
    """The content as JSON. Raises ValueError, TypeError or RecursionError if it is not JSON."""
    return valid_text(json.dumps(content, ensure_ascii=False, allow_nan=False))


def beginning(text: str, most: int) -> str:
    """The longest beginning of `text` that takes at most `most` bytes as a JSON string."""
    cut = text[:most]
    while (size := len(json.dumps(cut, ensure_ascii=False).encode())) > most:
        cut = cut[: max(len(cut) * most // size - 1, 0)]
    return cut


GROUP: Final = "signet_reference_harness.tools"
"""The entry point group: each entry names a tool, or a callable without arguments that returns one."""


def installed_tools() -> list[Tool]:
    """The tools that installed packages register. Raises ConfigError."""
    return [tool_of(entry.value, f"entry point {entry.name!r} of {GROUP}") for entry in entry_points(group=GROUP)]


def tool_of(place: str, where: str) -> Tool:
    """The tool at `module:attribute`; a class or function is called first. Raises ConfigError naming `where`."""
    needed = ("name", "description", "input_schema", "execute", "run_before_generation")
    remedy = "implement signet_reference_harness.tools.Tool, or leave the tool out"
    return cast(Tool, load_plugin(place, where, _make_tool, needed, remedy=remedy))


def _make_tool(value: Any) -> Any:
    return value() if isinstance(value, type) or not hasattr(value, "execute") else value
