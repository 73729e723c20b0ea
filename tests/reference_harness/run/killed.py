"""Runs in processes that can be killed: a model and a tool of known behaviour, and a process for each run.

The processes are forks of one that has imported the harness, which makes a run of them cheap.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, ClassVar, NoReturn

# What httpx imports at its first request: here, each process has it from the beginning.
import anyio._backends._asyncio  # noqa: F401
import httpcore  # noqa: F401

from signet_reference_harness.messages import Message, ToolCall
from signet_reference_harness.providers import (
    CompletionChunk,
    CompletionOptions,
    CompletionResult,
    StopReason,
)
from signet_reference_harness.providers.settings import ProviderSettings
from signet_reference_harness.run import perform
from signet_reference_harness.run.inputs import Options
from signet_reference_harness.tools import ToolContext

REPLY = "Both are deployed."
STEPS = ("staging", "production")
DEPLOYED = "deployed.txt"
"""The file of the project that has a line for each time the tool took effect."""
PAUSE_VARIABLE = "KILLED_PAUSE_S"
"""How long model and tool pause now and then, so that a kill by the clock meets them at work."""


class Model:
    """Deploys to each place, then says so. It knows where it stands from its messages alone."""

    id = "steps"

    def __init__(self, settings: ProviderSettings) -> None:
        del settings

    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        """Never asked for by the loop."""
        raise NotImplementedError

    async def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        """The next call, or the reply, in pieces."""
        del options
        prompt = max(place for place, message in enumerate(messages) if message.role == "user")
        done = sum(message.role == "tool" for message in messages[prompt:])
        if done < len(STEPS):
            call = ToolCall(f"c{done}", "deploy", {"place": STEPS[done]})
            result = CompletionResult(content="", tool_calls=(call,), stop_reason=StopReason.TOOL_USE)
        else:
            result = CompletionResult(content=REPLY)
        for word in result.content.split():
            await asyncio.sleep(_pause_s())
            yield CompletionChunk(f"{word} ")
        await asyncio.sleep(_pause_s())
        yield CompletionChunk("", result=result)

    async def available(self) -> bool:
        """Always."""
        return True

    async def aclose(self) -> None:
        """Nothing to close."""


class Deploy:
    """A tool that must not take effect twice."""

    name = "deploy"
    description = "Deploy to a place."
    input_schema: ClassVar = {"type": "object", "properties": {"place": {"type": "string"}}}
    run_before_generation = False

    async def execute(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Note the place in the project."""
        await asyncio.sleep(_pause_s())
        with (Path(context.project) / DEPLOYED).open("a") as file:
            file.write(f"{arguments['place']}\n")
        await asyncio.sleep(_pause_s())
        return "deployed"


def _pause_s() -> float:
    return float(os.environ.get(PAUSE_VARIABLE, "0"))


def started(options: Mapping[str, Any], environ: Mapping[str, str], kill_at: int | None = None) -> ForkServerProcess:
    """A process that performs the task, with the exit status of `signet-harness run`.

    With `kill_at` it is killed in the middle of its so-manieth write to a file.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", __name__])
    process = context.Process(target=perform_and_exit, args=(dict(options), dict(environ), kill_at))
    process.start()
    return process


def perform_and_exit(options: dict[str, Any], environ: dict[str, str], kill_at: int | None = None) -> NoReturn:
    """Perform the task in this process, which ends with it."""
    os.environ.clear()
    os.environ.update(environ)
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    if kill_at is not None:
        _die_in_write(kill_at)
    tools = (f"{__name__}:{Deploy.__name__}",)
    model = {"provider": f"{__name__}:{Model.__name__}", "model": "m", "tools": tools, "output_format": "none"}
    status = perform(Options(**{**model, **options}), lambda *_told: None)
    # At once: nothing that pytest has left in the process is to run at its end.
    os._exit(status)


def _die_in_write(number: int) -> None:
    write, left = os.write, number

    def dying(handle: int, data: Any) -> int:
        nonlocal left
        left -= 1
        if left == 0:
            write(handle, bytes(data)[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(handle, data)

    os.write = dying
