"""The built-in tools on secrets, as the daemon's own MCP endpoint lists them. No value of a secret comes back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.daemon_client.reply import Reply, held_back
from signet_reference_harness.errors import ToolInputError
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.messages import ToolDefinition
from signet_reference_harness.tools import DaemonTool, describe, integer, object_schema, text

TERMINAL: Final = frozenset({"completed", "failed"})
ACCEPTED: Final = 202
CLIENT_ERRORS: Final = range(400, 500)
ASKS_AGAIN: Final = frozenset({408, 425, 429})
FIRST_PAUSE_S: Final = 0.12
LONGEST_PAUSE_S: Final = 1.0
GROWTH: Final = 1.5
JOB_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


DEFAULT_JOB_MS: Final = 300_000
SHORTEST_JOB_MS: Final = 1_000
LONGEST_JOB_MS: Final = 1_800_000
JOB_GRACE_S: Final = 5.0
"""How long a job is looked at beyond its own time limit."""


async def secret_list(_arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """The names of the secrets."""
    return await client.secret_names(session)


async def secret_exec(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """Run `command` with `secrets`, a map of environment variables to names of secrets, and wait for its end.

    It may take `timeoutSeconds`; a host may give `timeoutMs` in its place.
    """
    command = text(arguments, "command")
    secrets = arguments.get("secrets")
    if not isinstance(secrets, dict) or not secrets:
        raise ToolInputError("'secrets' must map at least one environment variable to the name of a secret")
    for variable, name in secrets.items():
        if not variable.strip() or not isinstance(name, str) or not name.strip():
            raise ToolInputError("'secrets' must map names of environment variables to names of secrets")
    if arguments.get("timeoutSeconds") is not None:
        timeout_ms = integer(arguments, "timeoutSeconds", 0, 1, LONGEST_JOB_MS // 1000) * 1000
    else:
        timeout_ms = integer(arguments, "timeoutMs", DEFAULT_JOB_MS, SHORTEST_JOB_MS, LONGEST_JOB_MS)
    started = await client.start_secret_command(session, command, secrets, timeout_ms)
    return await _follow(client, session, started, timeout_ms / 1000 + JOB_GRACE_S)


async def secret_exec_status(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """How the job `jobId` stands."""
    job = text(arguments, "jobId")
    if not JOB_ID.fullmatch(job):
        raise ToolInputError(f"{job!r} is not the id of a job")
    return await client.secret_job(session, job)


async def _follow(client: AdapterClient, session: SessionIdentity, started: Reply, patience_s: float) -> Reply:
    """Ask for the job that `started` names until it has ended, for `patience_s` seconds. Return the last reply."""
    if started.status != ACCEPTED or started.failure is not None or started.text("status") in TERMINAL:
        return started
    job = started.text("id")
    if not JOB_ID.fullmatch(job):
        return held_back("secrets-exec-job", "the job's id cannot be part of a path")
    reply = started
    pause = FIRST_PAUSE_S
    loop = asyncio.get_running_loop()
    until = loop.time() + patience_s
    while loop.time() < until:
        await asyncio.sleep(pause)
        pause = min(pause * GROWTH, LONGEST_PAUSE_S)
        reply = await client.secret_job(session, job)
        forbidden = reply.status in CLIENT_ERRORS and reply.status not in ASKS_AGAIN
        if forbidden or reply.text("status") in TERMINAL:
            break
    return reply


SECRET_TOOLS: Final = (
    DaemonTool(ToolDefinition("secret_list", "List the names of secrets.", object_schema({})), secret_list),
    DaemonTool(
        ToolDefinition(
            "secret_exec",
            "Run a command with secrets in its environment; you never see their values.",
            object_schema(
                {
                    "command": describe("The command line"),
                    "secrets": describe(
                        "Names of environment variables to names of secrets",
                        type="object",
                        properties={},
                        additionalProperties={"type": "string"},
                    ),
                    "timeoutSeconds": describe(
                        "How long it may run (default 300)",
                        type="integer",
                        exclusiveMinimum=0,
                        maximum=LONGEST_JOB_MS // 1000,
                    ),
                },
                "command",
                "secrets",
            ),
        ),
        secret_exec,
    ),
    DaemonTool(
        ToolDefinition(
            "secret_exec_status",
            "See how a command that secret_exec started stands, by the id of its job.",
            object_schema({"jobId": {"type": "string", "minLength": 1}}, "jobId"),
        ),
        secret_exec_status,
    ),
)
