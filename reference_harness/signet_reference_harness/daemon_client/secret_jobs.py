"""Jobs that run a command with secrets: started once, then looked at until they are over."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final

from signet_reference_harness.daemon_client.reply import Reply, held_back

TERMINAL: Final = frozenset({"completed", "failed"})
ACCEPTED: Final = 202
CLIENT_ERRORS: Final = range(400, 500)
ASKS_AGAIN: Final = frozenset({408, 425, 429})
FIRST_PAUSE_S: Final = 0.12
LONGEST_PAUSE_S: Final = 1.0
GROWTH: Final = 1.5
JOB_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


async def outcome_of_job(started: Reply, status: Callable[[str], Awaitable[Reply]], patience_s: float) -> Reply:
    """The reply that shows the job's end, or the last one seen within `patience_s` seconds.

    `started` is the answer to secrets/exec and `status` looks at a job by its id. Looks are 0.12 s apart
    at first and 1 s at most. After a terminal state, or an answer that forbids it, nobody looks again.
    """
    if started.status != ACCEPTED or started.failure is not None or started.text("status") in TERMINAL:
        return started
    job = started.text("id")
    if not JOB_ID.fullmatch(job):
        return held_back("secrets-exec-job", "the job's id cannot stand in a path")
    reply = started
    pause = FIRST_PAUSE_S
    loop = asyncio.get_running_loop()
    until = loop.time() + patience_s
    while loop.time() < until:
        await asyncio.sleep(pause)
        pause = min(pause * GROWTH, LONGEST_PAUSE_S)
        reply = await status(job)
        forbidden = reply.status in CLIENT_ERRORS and reply.status not in ASKS_AGAIN
        if forbidden or reply.text("status") in TERMINAL:
            break
    return reply
