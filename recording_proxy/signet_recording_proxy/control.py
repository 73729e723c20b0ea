"""The control channel: one JSON object per line on stdin, one answer per line on stdout, in order.

The commands are described in `__main__`. A command that is malformed or cannot be performed is answered with
`{"ok": false, "error": …, "remedy": …}`; the recording goes on.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from signet_conformance.errors import KitError, SignetConformanceError, UsageError, printable
from signet_conformance.trace import RELEASES, Declared, Header
from signet_recording_proxy.body import parse_json
from signet_recording_proxy.listener import Listener
from signet_recording_proxy.recorder import Recorder
from signet_recording_proxy.upstream import Upstream, ask

MAX_COMMAND_BYTES = 16 * 1024 * 1024
Json = dict[str, Any]


class Control:
    """Performs commands against a recorder and its listener, one after the other."""

    def __init__(self, recorder: Recorder, listener: Listener, header: Header) -> None:
        self._recorder = recorder
        self._listener = listener
        self._header = header
        self._commands: dict[str, Callable[[Json], Awaitable[Json]]] = {
            "mark": self._mark,
            "asked": self._note_model_request,
            "trace": self._trace,
            "fault": self._fault,
            "fault_off": self._fault_off,
            "idle": self._idle,
            "upstream": self._upstream,
            "counts": self._counts,
        }

    async def serve(self) -> None:
        """Answer commands until `exit`, or until stdin ends."""
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        _read_stdin(asyncio.get_running_loop(), lines)
        while (line := await lines.get()) is not None:
            if not line.strip():
                continue
            try:
                command = _parse(line)
                answer = {"ok": True} if command["op"] == "exit" else await self._perform(command)
            except KitError as failure:  # the trace cannot be written: no later command could be right
                self._recorder.fail(failure)
                return
            except SignetConformanceError as refusal:
                command, answer = {"op": None}, {"ok": False, "error": refusal.message, "remedy": refusal.remedy}
            write_line(answer)
            if command["op"] == "exit":
                return

    async def _perform(self, command: Json) -> Json:
        perform = self._commands.get(command["op"])
        if perform is None:
            raise UsageError(
                f"op is {printable(repr(command['op']), 60)}", remedy=f"one of: {', '.join(self._commands)}, exit"
            )
        return await perform(command)

    async def _mark(self, command: Json) -> Json:
        name, data = command.get("name"), command.get("data", {})
        if not isinstance(name, str) or not name or not isinstance(data, dict):
            raise UsageError("a mark has a name and may have a data object", remedy='{"op":"mark","name":"step"}')
        return {"ok": True, "seq": self._recorder.mark(name, data)}

    async def _note_model_request(self, command: Json) -> Json:
        path, body, answer = command.get("path"), command.get("body"), command.get("answer", {})
        if not isinstance(path, str) or not isinstance(body, dict | None) or not isinstance(answer, dict):
            raise UsageError(
                "asked needs path, and a body that is an object or null",
                remedy='{"op":"asked","path":"/v1/messages","body":{}}',
            )
        self._recorder.note_model_request(path, body, answer)
        return {"ok": True}

    async def _trace(self, command: Json) -> Json:
        path, given, model = command.get("out"), command.get("header", {}), command.get("model")
        if not isinstance(path, str) or not path or not isinstance(given, dict) or not isinstance(model, str | None):
            raise UsageError("trace needs out, and may have a header object", remedy='{"op":"trace","out":"b.jsonl"}')
        header = replace(self._header, upstream=self._listener.upstream.url)
        if header.daemon_version is None:
            header = replace(header, daemon_version=(await ask(self._listener.upstream)).version)
        self._header = header
        if isinstance(given.get("target"), str):
            header = replace(header, target=given["target"])
        header = replace(header, **{name: given[name] for name in RELEASES if isinstance(given.get(name), str)})
        if isinstance(given.get("lasts"), str) and isinstance(given.get("in_prompt"), bool):
            header = replace(header, lasts=given["lasts"], in_prompt=given["in_prompt"])
        if isinstance(given.get("declared"), dict):
            header = replace(header, declared=Declared.from_json(given["declared"]))
        self._recorder.switch(path, header, model)
        return {"ok": True}

    async def _fault(self, command: Json) -> Json:
        fault = self._recorder.switch_on(command.get("fault"), command.get("match"), command.get("count"))
        if fault.kind == "refuse":
            await self._listener.refuse(fault)
        return {"ok": True, "id": fault.id}

    async def _fault_off(self, command: Json) -> Json:
        number = command.get("id")
        off = self._recorder.switch_off(number)
        if not self._recorder.refusing:
            await self._listener.accept()
        if number is not None and not off:
            raise UsageError(
                f"no fault {printable(number, 40)} is on", remedy="use the id that fault answered, or null"
            )
        return {"ok": True, "off": [fault.id for fault in off], "unmet": [fault.id for fault in off if not fault.met]}

    async def _idle(self, command: Json) -> Json:
        timeout_s = command.get("timeout_s", 5)
        if not isinstance(timeout_s, (int, float)) or isinstance(timeout_s, bool) or timeout_s < 0:
            raise UsageError("timeout_s is not a number of seconds", remedy='{"op":"idle","timeout_s":5}')
        if await self._recorder.idle(timeout_s):
            return {"ok": True}
        count = self._recorder.in_flight
        return {
            "ok": False,
            "in_flight": count,
            "error": f"{count} exchange(s) still in flight after {timeout_s:g} s",
            "remedy": "wait longer, or switch off the fault that holds them",
        }

    async def _upstream(self, command: Json) -> Json:
        url = command.get("url")
        upstream = Upstream(url if isinstance(url, str) else "")
        version = (await ask(upstream)).version
        self._listener.upstream = upstream
        self._header = replace(self._header, upstream=upstream.url, daemon_version=version)
        return {"ok": True, "daemon_version": version}

    async def _counts(self, _command: Json) -> Json:
        recorder = self._recorder
        return {
            "ok": True,
            "written": recorder.file.written,
            "in_flight": recorder.in_flight,
            "internal_errors": recorder.internal_errors,
        }


def write_line(answer: Json) -> None:
    """Write one JSON line on stdout at once."""
    os.write(1, json.dumps(answer).encode() + b"\n")


def _parse(line: bytes) -> Json:
    if len(line) > MAX_COMMAND_BYTES:
        raise UsageError("a command line is longer than 16 MiB", remedy="send less at once")
    _, command = parse_json(line.decode("utf-8", "replace"))
    if not isinstance(command, dict) or not isinstance(command.get("op"), str):
        raise UsageError("a command is one JSON object a line, with op", remedy='{"op":"counts"}')
    return command


def _read_stdin(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
    """Put the lines of stdin into `lines`, and None at its end."""
    rest = b""

    def read() -> list[bytes | None]:
        """The lines that the next bytes complete."""
        # Unbuffered: a reader blocked in `sys.stdin` holds a lock that the interpreter needs when it ends.
        nonlocal rest
        try:
            data = os.read(0, 65536)
        except OSError:
            data = b""
        *whole, rest = (rest + data).split(b"\n")
        rest = rest[: MAX_COMMAND_BYTES + 1]
        return [*whole, *([] if data else [None])]

    def take(read_lines: list[bytes | None]) -> None:
        for line in read_lines:
            lines.put_nowait(line)

    def take_ready() -> None:
        read_lines = read()
        if None in read_lines:
            loop.remove_reader(0)
        take(read_lines)

    def read_all() -> None:
        read_lines: list[bytes | None] = []
        while None not in read_lines:
            read_lines = read()
            try:
                loop.call_soon_threadsafe(take, read_lines)
            except RuntimeError:  # the loop has ended
                return

    if stat.S_ISFIFO(os.fstat(0).st_mode):
        loop.add_reader(0, take_ready)
    else:
        # A thread, since event loops cannot wait for files and terminals.
        threading.Thread(target=read_all, name="stdin", daemon=True).start()
