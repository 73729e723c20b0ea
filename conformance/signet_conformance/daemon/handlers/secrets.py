"""Secrets and the commands that run with them, as requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.state.secrets import NAME, SecretError, bad_name
from signet_conformance.daemon.values import BLANKS, UnreadableJsonError, is_number
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from signet_conformance.daemon.state.daemon import Daemon

_PATIENCE_MS: Final = 300_000


def _timeout(value: Any) -> int:
    """`value` in milliseconds within 1 s and 30 min; 5 min for anything but a number."""
    return min(1_800_000, max(1_000, int(value))) if is_number(value) and abs(value) != float("inf") else _PATIENCE_MS


async def exec_secrets(daemon: Daemon, call: Call) -> Answer:
    """POST secrets/exec: a job that runs a command with secrets in its environment; before 0.145 its output at once."""
    try:
        body = call.json()
        if body is None:
            return refusal(500, "null is not an object (evaluating 'body.command')")
        fields = body if isinstance(body, dict) else {}
        references = fields.get("secrets")
        if "name" in call.params and "secrets" not in fields:
            references = {call.params["name"]: call.params["name"]}
    except UnreadableJsonError as problem:
        return refusal(500, str(problem))
    command = fields.get("command")
    if not isinstance(command, str) or not command.strip(BLANKS):
        return refusal(400, "command is required")
    usable = isinstance(references, dict) and all(
        isinstance(name, str) and name.strip(BLANKS) for name in references.values()
    )
    if not references or not usable:
        return refusal(
            400, "non-empty secrets map is required" if daemon.behaviour.exec_is_job else "secrets map is required"
        )
    timeout = _timeout(fields.get("timeoutMs"))
    if not daemon.behaviour.exec_is_job:
        try:
            return Answer(await daemon.secrets.execute(command, references, timeout))
        except SecretError as problem:
            return refusal(500, str(problem))
    job = daemon.secrets.start(command, references, timeout)
    if job is None:
        return refusal(429, "secret exec queue is full")
    shown = job.shown()
    await asyncio.sleep(0)
    return Answer(shown, 202)


def exec_status(daemon: Daemon, call: Call) -> Answer:
    """GET secrets/exec/:jobId: how far a job is."""
    job = daemon.secrets.job(call.params["jobId"])
    return Answer(job.shown()) if job else refusal(404, "secret exec job not found")


def list_secrets(daemon: Daemon, _call: Call) -> Answer:
    """GET secrets: names, never values."""
    return Answer({"secrets": daemon.secrets.names(), "provider": "local"})


def put_secret(daemon: Daemon, call: Call) -> Answer:
    """POST secrets/:name: keep a value."""
    try:
        body = call.json()
    except UnreadableJsonError as problem:
        return refusal(400, str(problem))
    if body is None:
        return refusal(400, "null is not an object (evaluating 'body.value')")
    value = body.get("value") if isinstance(body, dict) else None
    if not isinstance(value, str) or not value:
        return refusal(400, "value is required")
    try:
        daemon.secrets.put(call.params["name"], value)
    except SecretError as problem:
        return refusal(400, str(problem))
    return Answer({"success": True, "name": call.params["name"]})


def delete_secret(daemon: Daemon, call: Call) -> Answer:
    """DELETE secrets/:name: forget a value."""
    name = call.params["name"]
    if not NAME.fullmatch(name):
        return refusal(500, bad_name(name))
    return (
        Answer({"success": True, "name": name})
        if daemon.secrets.drop(name)
        else refusal(404, f"Secret '{name}' not found")
    )
