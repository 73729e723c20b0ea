"""Runs a hook command with the harness's JSON on stdin. At its timeout, it is killed with its process group."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

from signet_conformance.children.processes import wait_for_end
from signet_conformance.children.watchdog_program import signal_group
from signet_conformance.drivers.hosts.hook_settings import Hook
from signet_conformance.drivers.hosts.protocol import Lateness
from signet_conformance.files.json_values import json_in_utf8, member_of, parse_object, text_in

MAX_OUTPUT_BYTES = 4 * 1024 * 1024
BLOCKING_STATUS = 2
_KEPT = 2000


@dataclass(frozen=True, slots=True)
class HookRun:
    """The result of one run. `status` None: killed at its timeout. `context` is what reaches the model.

    `blocked`: the harness dropped the prompt or call, as the hook demanded.
    """

    event: str
    status: int | None
    ms: float
    stdout: str
    stderr: str
    context: str
    blocked: bool = False
    late_ms: float = 0.0
    """Milliseconds by which the machine delayed this program or the hook while it ran."""

    def to_json(self) -> Mapping[str, Any]:
        """The run as a member of the answer to a step; long outputs are cut."""
        data: dict[str, Any] = {"event": self.event, "status": self.status, "ms": self.ms, "late_ms": self.late_ms}
        if self.blocked:
            data["blocked"] = True
        elif self.status != 0:
            # The harness continues the turn.
            data["lost"] = False
        return {**data, "stdout": self.stdout[:_KEPT], "stderr": self.stderr[:_KEPT], "timed_out": self.status is None}


def run_hook(
    hook: Hook, stdin: Mapping[str, Any], env: Mapping[str, str], cwd: Path, *, strict: bool = False
) -> HookRun:
    """Run the command as the harness does: through /bin/sh, since that is how hooks are written.

    With `strict`, output that begins with a bracket but is not JSON never reaches the model.
    """
    began = time.perf_counter()
    child = subprocess.Popen(
        ["/bin/sh", "-c", hook.command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
    )
    # All three were given pipes.
    stdin_pipe = cast("IO[bytes]", child.stdin)
    outputs = [_Drain(cast("BufferedReader", pipe)) for pipe in (child.stdout, child.stderr)]
    lateness = Lateness(child.pid)
    status: int | None = None
    try:
        with contextlib.suppress(BrokenPipeError), stdin_pipe:
            stdin_pipe.write(json_in_utf8(stdin))
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = child.wait(wait_for_end(child.pid, hook.timeout_s))
    finally:
        if status is None:
            signal_group(child.pid, signal.SIGKILL)
        child.wait()
        late_ms = lateness.end()
    took = round((time.perf_counter() - began) * 1000, 3)
    stdout, stderr = (output.text() for output in outputs)
    event = str(stdin.get("hook_event_name"))
    context = _context(stdout, strict) if status == 0 else ""
    return HookRun(event, status, took, stdout, stderr, context, late_ms=late_ms)


def _context(stdout: str, strict: bool) -> str:
    """The part of a hook's output that a harness shows its model: the JSON's additional context, or the text itself."""
    try:
        output = json.loads(stdout)
    except (ValueError, RecursionError):
        return "" if strict and stdout.startswith(("[", "{")) else stdout.strip()
    return text_in(member_of(output, "hookSpecificOutput", "additionalContext"))


def blocks(run: HookRun, ways: Collection[str], *, needs_reason: bool) -> bool:
    """Whether a run blocks the harness; `ways` are the ways to block that the face has for its event.

    A run that was killed at its timeout never blocks. With `needs_reason` a run without a reason does not block either.
    """
    if run.status == BLOCKING_STATUS:
        return "status" in ways and bool(run.stderr.strip() or not needs_reason)
    output = parse_object(run.stdout) if run.status == 0 else {}
    has_reason = not needs_reason or bool(text_in(output.get("reason")).strip())
    denied = member_of(output, "hookSpecificOutput", "permissionDecision") == "deny"
    return (
        ("decision" in ways and output.get("decision") == "block" and has_reason)
        or ("continue" in ways and output.get("continue") is False)
        or ("permission" in ways and denied)
    )


class _Drain:
    """Reads a pipe to its end in a thread, so that a flood cannot block the hook; keeps the first part of it."""

    def __init__(self, pipe: BufferedReader) -> None:
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read_output, args=(pipe,), daemon=True)
        self._thread.start()

    def _read_output(self, pipe: BufferedReader) -> None:
        with pipe:
            while chunk := pipe.read1(65536):
                if len(self._kept) < MAX_OUTPUT_BYTES:
                    self._kept += chunk

    def text(self) -> str:
        # A background process of the hook may still hold the pipe.
        self._thread.join(2.0)
        return bytes(self._kept).decode("utf-8", "replace")
