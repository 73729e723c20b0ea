"""Starts the programs that a run needs: the daemon, and the recorder before it. All end with us."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.bench.records import BenchFailureError

READY_S: Final = 60.0
ENDING_S: Final = 10.0
LINE_LIMIT: Final = 1024 * 1024
TAIL: Final = 1_000
"""Bytes of what a program said on standard error that a failure quotes."""


@contextlib.asynccontextmanager
async def running(
    what: str, command: Sequence[str], environment: Mapping[str, str], said: Path
) -> AsyncIterator[Process]:
    """The program while it runs; its standard error goes to the file `said`. Raises BenchFailureError."""
    try:
        with said.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "signet_reference_harness.bench.keeper",
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                env=dict(environment),
                limit=LINE_LIMIT,
                start_new_session=True,
            )
    except OSError as error:
        raise BenchFailureError(f"{what} cannot be started: {error.strerror or error}") from None
    try:
        yield process
    finally:
        assert process.stdin is not None  # noqa: S101 - asked for above
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), ENDING_S)
        if process.returncode is None:
            process.kill()
            await process.wait()


async def ready_line(what: str, process: Process, said: Path) -> Mapping[str, Any]:
    """The JSON object that a program prints when it is ready. Raises BenchFailureError."""
    assert process.stdout is not None  # noqa: S101 - asked for by running()
    try:
        line = await asyncio.wait_for(process.stdout.readline(), READY_S)
        value = json.loads(line)
    except (TimeoutError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise failed(f"{what} did not come up", said)
    return value


def failed(what: str, said: Path, remedy: str | None = None) -> BenchFailureError:
    """The failure of a program, with the last words that it wrote to the file `said`."""
    try:
        tail = said.read_bytes()[-TAIL:].decode("utf-8", "replace").strip()
    except OSError:
        tail = ""
    return BenchFailureError(f"{what}: {tail}" if tail else what, remedy=remedy)


def free_port() -> int:
    """A port on the loopback interface that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
