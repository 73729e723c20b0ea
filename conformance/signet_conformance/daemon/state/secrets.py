"""Stores secrets, and runs commands with them: without a shell, with redacted output; children are always reaped.

Values are kept in the daemon's own database, for tests; they leave it only in the environment of the
command that names them.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.js import Clock
from signet_conformance.daemon.state.store import Store
from signet_conformance.daemon.wire import present

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELL: Final = re.compile(r"[;&|`$(){}\[\]<>!\\]")
_WORD: Final = re.compile(r"""(?:[^\s"']+|"[^"]*"|'[^']*')+""")
_REDACTED: Final = "[REDACTED]"
_MOST_OUTPUT: Final = 1024 * 1024
_MOST_RUNNING: Final = 4
_MOST_WAITING: Final = 64
_KEPT_SECONDS: Final = 3600
_GRACE_SECONDS: Final = 2.0


#: The messages of the real daemon's code for values of the wrong type.
_NO_WORDS: Final = (
    "command.match is not a function. (In 'command.match(/(?:[^\\s\"']+|\"[^\"]*\"|'[^']*')+/g)', "
    "'command.match' is undefined)"
)
_NO_NAME: Final = (
    "secretName.startsWith is not a function. (In 'secretName.startsWith(\"op://\")', "
    "'secretName.startsWith' is undefined)"
)
_NO_ARGUMENT: Final = 'The "args[1]" property must be of type string, got {}'
_LONGEST_MS: Final = 1_800_000


class SecretError(Exception):
    """Raised if a secret is missing or a command cannot run, with the daemon's error text."""


@dataclass
class Job:
    """One command with its outcome; times are epoch seconds."""

    command: str
    references: dict[str, str]
    timeout_ms: int
    created: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "queued"
    started: float | None = None
    completed: float | None = None
    result: dict[str, Any] | None = None
    error: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """The job as the wire has it."""
        return present(
            id=self.id, status=self.status, createdAt=js.iso(self.created), timeoutMs=self.timeout_ms,
            startedAt=None if self.started is None else js.iso(self.started), result=self.result, error=self.error,
            completedAt=None if self.completed is None else js.iso(self.completed),
        )  # fmt: skip


class Secrets:
    """The secrets of one daemon and the jobs that use them: four at a time, 64 waiting, kept for an hour."""

    def __init__(self, store: Store, clock: Clock, *, shell: bool = False) -> None:
        """`shell` is for releases that run commands in a shell: failures to start are answered as a shell would."""
        self._shell = shell
        self._store = store
        self._clock = clock
        self._jobs: dict[str, Job] = {}
        self._waiting: list[Job] = []
        self._running: set[asyncio.Task[None]] = set()

    def names(self) -> list[str]:
        """The names of all secrets, sorted."""
        return [row["name"] for row in self._store.rows("SELECT name FROM secrets ORDER BY name")]

    def store(self, name: str, value: str) -> None:
        """Store `value` under `name`. Raises `SecretError` for a bad name."""
        _check_name(name)
        self._store.run("INSERT OR REPLACE INTO secrets VALUES (?, ?)", name, value)

    def drop(self, name: str) -> bool:
        """Forget a secret; False when there was none."""
        return self._store.run("DELETE FROM secrets WHERE name = ?", name) > 0

    def value(self, reference: str) -> str:
        """The value that `reference` names (with or without ``local://``).

        Releases that run commands in a shell know no prefix, and do not check the name.
        """
        name = reference if self._shell else reference.removeprefix("local://")
        if not self._shell:
            _check_name(name)
        row = self._store.row("SELECT value FROM secrets WHERE name = ?", name)
        if not row:
            raise SecretError(f"Secret '{name}' not found")
        return str(row["value"])

    def job(self, job_id: str) -> Job | None:
        """A job of the last hour, else None."""
        now = self._clock()
        self._jobs = {
            key: job
            for key, job in self._jobs.items()
            if now - (job.created if job.completed is None else job.completed) <= _KEPT_SECONDS
        }
        return self._jobs.get(job_id)

    def start(self, command: str, references: dict[str, str], timeout_ms: int) -> Job | None:
        """A new job, which runs at once if fewer than four run; None if too many wait already."""
        if len(self._waiting) >= _MOST_WAITING:
            return None
        job = Job(command, dict(references), timeout_ms, self._clock())
        self._jobs[job.id] = job
        self._waiting.append(job)
        self._start_waiting()
        return job

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < _MOST_RUNNING:
            job = self._waiting.pop(0)
            job.status, job.started = "running", self._clock()
            task = asyncio.get_running_loop().create_task(self._run(job))
            self._running.add(task)
            task.add_done_callback(self._end_job)

    def _end_job(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            self._start_waiting()

    async def _run(self, job: Job) -> None:
        try:
            job.result = await self.execute(job.command, job.references, job.timeout_ms)
            job.status = "completed"
        except SecretError as problem:
            job.status, job.error = "failed", str(problem)
        finally:
            job.completed = self._clock()

    async def execute(self, command: str, references: dict[str, str], timeout_ms: int) -> dict[str, Any]:
        """Run `command` without a shell: stdout, stderr and code. Raises `SecretError` when it cannot be started."""
        if _SHELL.search(command):
            return {"stdout": "", "stderr": "command contains disallowed shell metacharacters", "code": 1}
        words = [re.sub(r"""^["']|["']$""", "", word) for word in _WORD.findall(command)]
        if not words:
            return {"stdout": "", "stderr": "empty command", "code": 1}
        values = self._values(references)
        if not words[0]:
            raise SecretError("The argument 'file' cannot be empty. Received ''")
        program = shutil.which(words[0])
        if program is None and "/" in words[0]:
            raise SecretError(f"ENOENT: no such file or directory, posix_spawn '{words[0]}'")
        if program is None:
            raise SecretError(f'Executable not found in $PATH: "{words[0]}"')
        try:
            return await _execute([program, *words[1:]], values, timeout_ms)
        except (OSError, ValueError) as problem:
            raise SecretError(str(problem)) from problem

    async def run_now(self, command: Any, references: dict[str, Any]) -> dict[str, Any]:
        """Run `command` for at most half an hour and return its output. Raises `SecretError`.

        Commands that need a shell are refused in every version, since any caller of the port could run anything.
        """
        if self._shell:
            self._values(references)
        if not isinstance(command, str):
            raise SecretError(_NO_WORDS if not self._shell else _NO_ARGUMENT.format(_type_of(command)))
        if self._shell and not command.strip():
            return {"stdout": "", "stderr": "", "code": 0}
        try:
            result = await self.execute(command, references, _LONGEST_MS)
        except SecretError as problem:
            missing = self._shell and str(problem).startswith(("Executable not found", "ENOENT"))
            if not missing:
                raise
            return {"stdout": "", "stderr": f"sh: 1: {command.split()[0]}: not found\n", "code": 127}
        return {name: result[name] for name in ("stdout", "stderr", "code")}

    def _values(self, references: dict[str, Any]) -> dict[str, str]:
        for reference in references.values():
            if not isinstance(reference, str):
                raise SecretError(_NO_NAME)
        return {name: self.value(reference) for name, reference in references.items()}

    async def close(self) -> None:
        """Stop every running command and wait for it."""
        self._waiting.clear()
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _type_of(value: Any) -> str:
    """The result of JavaScript's typeof for a JSON value that is no string."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "object"


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise SecretError(bad_name(name))


def bad_name(name: str) -> str:
    """Return the error for a secret name that is refused."""
    return f"Invalid secret name '{name}'. Use letters, digits, and underscores only."


async def _execute(words: list[str], values: dict[str, str], timeout_ms: int) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *words, env={**os.environ, **values}, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    reading = asyncio.gather(_read_stream(process.stdout), _read_stream(process.stderr), process.wait())
    timed_out = False
    try:
        out, err, code = await asyncio.wait_for(asyncio.shield(reading), timeout_ms / 1000)
    except TimeoutError:
        timed_out = True
        _signal(process, signal.SIGTERM)
        try:
            out, err, code = await asyncio.wait_for(asyncio.shield(reading), _GRACE_SECONDS)
        except TimeoutError:
            _signal(process, signal.SIGKILL)
            out, err, code = await reading
    finally:
        if process.returncode is None:
            _signal(process, signal.SIGKILL)
            await asyncio.shield(reading)
    result: dict[str, Any] = {
        "stdout": _cut_output(_redact(out, values), "stdout"),
        "stderr": _cut_output(_redact(err, values), "stderr"),
        "code": code if code >= 0 else 1,
    }
    if timed_out:
        result |= {"code": 124, "timedOut": True}
        result["stderr"] += f"\n[signet secret exec: timed out after {timeout_ms}ms]\n"
    return result


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


async def _read_stream(stream: asyncio.StreamReader | None) -> str:
    """Everything that `stream` yields; beyond twice the limit, it is dropped."""
    kept = bytearray()
    while stream and (piece := await stream.read(65_536)):
        if len(kept) <= 2 * _MOST_OUTPUT:
            kept += piece
    return kept.decode("utf-8", "replace")


def _redact(text: str, values: dict[str, str]) -> str:
    for value in sorted(values.values(), key=len, reverse=True):
        if len(value) > 3:
            text = text.replace(value, _REDACTED)
    return text


def _cut_output(text: str, name: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= _MOST_OUTPUT:
        return text
    return data[:_MOST_OUTPUT].decode("utf-8", "ignore") + f"\n[signet secret exec: {name} truncated]\n"
