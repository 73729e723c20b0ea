"""The driver protocol signet-driver/1: a program hands the harness scenario steps, one JSON object a line.

A request is answered by one line with the same `id` (any JSON value), in the order in which requests are
done. Steps of one session are performed in the order of their lines, those of different sessions side by
side; wait for the answer to have one after the other.

    {"id": 1, "op": "hello"}
    {"id": 2, "op": "step", "step": {"step": "start", "session": "s1", "project": "/workspace/acme"}}
    {"id": 3, "op": "flush"}     answered when all requests before it are done, and ends that could not go out sent
    {"id": 4, "op": "exit"}      every open session is ended first; end of input does the same, unanswered

    {"id": 2, "ok": true, "ms": 8.4, "result": {...}}
    {"id": 2, "ok": false, "error": {"type": "StepError", "message": "..."}}

A hello with `"events": ["model"]` asks for a notice when a model's turn begins: the harness then writes
`{"event": "model", "session": "s1"}` and asks the model only after `{"op": "go"}`, which is not answered. With
`"handover"` among them it says so before a start and a tool too: the `folder` or the `arguments` that it was given.

Steps, each with `session`, a name for as long as the process lives:

    start                project (once), agent, key, source (startup, resume, clear), replaces (a session to end first),
                         parent (the session whose sub-agent works in this one), subagent (its id in the harness)
    prompt               text, reply (what the model says), tools (a list of {tool, arguments} the model calls first),
                         feedback (ratings of memories by id, from -1 to 1), stopped (true: the user stops it before
                         the model is asked)
    sessionless_prompt   text, reply: a turn without a session, of which the daemon gets nothing
    tool                 tool, arguments
    compact              summary; or its halves pre_compaction, and compaction_complete with summary
    clear                anew (true: the session continues under another key), end_untold (true: the host does not
                         report that the former one ends)
    resume, checkpoint
    restart_host         anew and end_untold, as with a clear: the host is killed, and its session continued
    end, close           reason

The result of a step holds `key`, `calls` (operation, status, sent) and `failures` (operation, class, status,
detail); that of a prompt also `turn`, whether the user was answered, and `injected`. The daemon's
behaviour is never an error of a step. The exit status is 0, or 2 when the environment cannot be used.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import stat
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final

import httpx

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.daemon_client.reply import OPERATIONS
from signet_reference_harness.daemon_client.routing import RoutingTable, routing_table
from signet_reference_harness.driver.steps import ATTACHED, PERFORMERS, SESSIONLESS, STOPPED, perform
from signet_reference_harness.errors import HarnessError, StepError
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session.host import Models, SessionHost

PROTOCOL: Final = "signet-driver/1"
CHUNK: Final = 65_536
LONGEST_ECHO: Final = 200


class DriverServer:
    """Answers the requests of one peer on standard output."""

    def __init__(
        self,
        config: HarnessConfig,
        transport: httpx.AsyncBaseTransport | None = None,
        routing: RoutingTable | None = None,
        models: Models = ScriptedProvider,
        *,
        starts_at_prompt: bool = False,
    ) -> None:
        self._config = config
        self._host = SessionHost(
            config,
            routing=routing,
            model_turn=partial(self._tell, "model"),
            models=models,
            transport=transport,
            starts_at_prompt=starts_at_prompt,
        )
        self._announced_events: Collection[str] = ()
        self._awaiting_go: deque[asyncio.Event] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._queues: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def serve(self, lines: asyncio.Queue[bytes | None]) -> None:
        """Answer lines until `exit`, or None for the end of input; then end what is open."""
        exit_request: Any = None
        while (line := await lines.get()) is not None:
            request = self._parse(line)
            if request is None:
                continue
            if request["op"] == "exit":
                exit_request = request
                break
            if request["op"] == "go":
                self._go()
                continue
            task = asyncio.create_task(self._answer(request, frozenset(self._running)))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        # The peer cannot send go any more.
        self._announced_events = ()
        while self._awaiting_go:
            self._go()
        await _done(self._running)
        await self._host.aclose()
        if exit_request is not None:
            _write({"id": exit_request.get("id"), "ok": True, "ms": 0.0, "result": {}})

    def _go(self) -> None:
        if self._awaiting_go:
            self._awaiting_go.popleft().set()

    async def _hand_over(self, step: Mapping[str, Any]) -> None:
        """Announce what a step passes to the session, and wait for go."""
        member = {"start": "folder", "tool": "arguments"}.get(str(step.get("step")))
        given = step.get("arguments" if member == "arguments" else "project")
        if member is not None:
            await self._tell("handover", step.get("session"), **({} if given is None else {member: given}))

    async def _tell(self, event: str, session: object, **more: Any) -> None:
        if event not in self._announced_events:
            return
        go = asyncio.Event()
        self._awaiting_go.append(go)
        _write({"event": event, "session": session, **more})
        await go.wait()

    def _parse(self, line: bytes) -> dict[str, Any] | None:
        if not line.strip():
            return None
        request: Any = None
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise StepError("the line is not a JSON object", remedy='send {"id": 1, "op": "hello"}')
            if request.get("op") not in OPS:
                raise StepError(
                    f"there is no op {str(request.get('op'))[:LONGEST_ECHO]!r}", remedy=f"use one of {', '.join(OPS)}"
                )
        except (ValueError, RecursionError) as error:
            _write(_refusal(None, StepError(f"the line is not JSON: {str(error)[:LONGEST_ECHO]}")))
            return None
        except StepError as error:
            _write(_refusal(request.get("id") if isinstance(request, dict) else None, error))
            return None
        return request

    async def _answer(self, request: Mapping[str, Any], before: frozenset[asyncio.Task[None]]) -> None:
        began = time.perf_counter()
        try:
            result = await self._result(request, before)
        except HarnessError as error:
            _write(_refusal(request.get("id"), error))
        except Exception as error:  # noqa: BLE001 - the peer must get an answer to every request, whatever broke
            detail = f"{type(error).__name__}: {error}"
            _write(_refusal(request.get("id"), HarnessError(f"the harness failed: {detail[:LONGEST_ECHO]}")))
        else:
            milliseconds = round((time.perf_counter() - began) * 1000, 3)
            _write({"id": request.get("id"), "ok": True, "ms": milliseconds, "result": result})

    async def _result(self, request: Mapping[str, Any], before: frozenset[asyncio.Task[None]]) -> dict[str, Any]:
        if request["op"] == "hello":
            events = request.get("events")
            self._announced_events = tuple(events) if isinstance(events, list) else ()
            return self._hello()
        if request["op"] == "flush":
            await _done(before)
            await self._host.send_unsent_ends()
            return {}
        step = request.get("step")
        if not isinstance(step, dict):
            raise StepError("'step' is not an object", remedy='send {"op": "step", "step": {"step": "start", ...}}')
        async with self._queues[str(step.get("session"))]:
            await self._hand_over(step)
            return await perform(self._host, step)

    def _hello(self) -> dict[str, Any]:
        timeouts = {name: self._config.timeout_s(name) for name in ("session-start", "user-prompt-submit")}
        return {
            "protocol": PROTOCOL,
            "awaits_compaction": True,
            "tells": [event for event in self._announced_events if event == "handover"],
            "harness": self._config.harness,
            "agent": self._config.agent,
            "capabilities": [name for name, operation in OPERATIONS.items() if operation["declared"]],
            "steps": [*PERFORMERS, SESSIONLESS, STOPPED, ATTACHED],
            "bypassed": self._config.bypassed,
            "timeouts_s": timeouts,
        }


OPS: Final = ("hello", "step", "flush", "go", "exit")


def main(
    transport: httpx.AsyncBaseTransport | None = None,
    models: Models = ScriptedProvider,
    *,
    starts_at_prompt: bool = False,
) -> int:
    """Serve standard input until it ends; return the exit status.

    `transport` replaces httpx's own to the daemon, `models` the models that steps script; `starts_at_prompt` is that
    of SessionHost.
    """
    try:
        config = HarnessConfig.from_environment(os.environ)
        routing = routing_table(os.environ)
    except HarnessError as error:
        print(f"signet_reference_harness: {error}", file=sys.stderr)
        return 2
    with contextlib.suppress(KeyboardInterrupt):
        driver = DriverServer(config, transport, routing, models, starts_at_prompt=starts_at_prompt)
        asyncio.run(_serve_input(driver))
    return 0


async def _serve_input(driver: DriverServer) -> None:
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lines.put_nowait, None)

    rest = b""

    def take(chunk: bytes) -> None:
        """Queue the lines that a chunk completes; an empty chunk is the end."""
        nonlocal rest
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            lines.put_nowait(line)
        if not chunk:
            lines.put_nowait(rest)
            lines.put_nowait(None)

    def take_ready() -> None:
        chunk = os.read(0, CHUNK)
        if not chunk:
            loop.remove_reader(0)
        take(chunk)

    def read_all() -> None:
        # The bare descriptor: a thread inside sys.stdin would hold its lock while the interpreter ends.
        # RuntimeError: the loop is closed, since `exit` was answered.
        with contextlib.suppress(RuntimeError):
            while chunk := os.read(0, CHUNK):
                loop.call_soon_threadsafe(take, chunk)
            loop.call_soon_threadsafe(take, b"")

    if stat.S_ISFIFO(os.fstat(0).st_mode):
        loop.add_reader(0, take_ready)
    else:
        # Event loops cannot watch a file.
        threading.Thread(target=read_all, daemon=True).start()
    await driver.serve(lines)


async def _done(tasks: Collection[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(tasks)


def _refusal(identifier: Any, error: HarnessError) -> dict[str, Any]:
    return {"id": identifier, "ok": False, "error": {"type": type(error).__name__, "message": str(error)}}


def _write(answer: Mapping[str, Any]) -> None:
    # A peer that is gone cannot read answers, but its sessions still have to be ended.
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(answer, separators=(",", ":")).encode("ascii") + b"\n")
