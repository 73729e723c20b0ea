"""The built-in tools on secrets, as the daemon's own MCP endpoint lists them. No value of a secret comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.daemon_client.secret_jobs import JOB_ID
from signet_reference_harness.errors import ToolInputError
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.tools.arguments import integer, text

DEFAULT_JOB_MS: Final = 300_000
SHORTEST_JOB_MS: Final = 1_000
LONGEST_JOB_MS: Final = 1_800_000


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
    return await client.secret_exec(session, command, secrets, timeout_ms)


async def secret_exec_status(arguments: Mapping[str, Any], session: SessionIdentity, client: AdapterClient) -> Reply:
    """How the job `jobId` stands."""
    job = text(arguments, "jobId")
    if not JOB_ID.fullmatch(job):
        raise ToolInputError(f"{job!r} is not the id of a job")
    return await client.secret_job(session, job)
