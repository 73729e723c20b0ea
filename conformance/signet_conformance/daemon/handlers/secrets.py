"""Handlers for secrets, and for commands that run with them."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.secrets import NAME, SecretError, bad_name
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, RefusedError, demand, refusal

_DEFAULT_MS: Final = 300_000


def _timeout(value: Any) -> int:
    """`value` in milliseconds within 1 s and 30 min; 5 min for anything but a number."""
    return min(1_800_000, max(1_000, int(value))) if js.is_number(value) and abs(value) != float("inf") else _DEFAULT_MS


def _fields(call: DaemonRequest, member: str, status: int) -> dict[str, Any]:
    """The fields of the body. Raises `RefusedError` if it is not JSON, or null, which has no `member`."""
    try:
        body = call.json()
    except js.UnreadableJsonError as problem:
        raise RefusedError(refusal(status, str(problem))) from None
    demand(body is not None, f"null is not an object (evaluating 'body.{member}')", status)
    return js.record(body) or {}


async def exec_secrets(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST secrets/exec: run a command with secrets in its environment, as a job; before 0.145, return its output."""
    fields = _fields(call, "command", 500)
    named = call.params.get("name")
    return await (_job if daemon.behaviour.exec_is_job else _at_once)(daemon, fields, named)


async def _job(daemon: Daemon, fields: dict[str, Any], named: str | None) -> DaemonAnswer:
    references = {named: named} if named and "secrets" not in fields else fields.get("secrets")
    command = fields.get("command")
    if not isinstance(command, str) or not command.strip(js.BLANKS):
        return refusal(400, "command is required")
    if not references or not isinstance(references, dict) or not all(map(js.text_or_none, references.values())):
        return refusal(400, "non-empty secrets map is required")
    job = daemon.secrets.start(command, references, _timeout(fields.get("timeoutMs")))
    if job is None:
        return refusal(429, "secret exec queue is full")
    shown = job.to_wire()
    await asyncio.sleep(0)
    return DaemonAnswer(shown, 202)


async def _at_once(daemon: Daemon, fields: dict[str, Any], named: str | None) -> DaemonAnswer:
    """The output of the command. Types are checked only where the real daemon's code fails on them."""
    command, references = fields.get("command"), fields.get("secrets")
    demand(js.truthy(command), "command is required")
    if named:
        references = {named: named} if references is None else references
    elif not references or not isinstance(references, dict | list | str):
        return refusal(400, "secrets map is required")
    try:
        return DaemonAnswer(await daemon.secrets.run_now(command, _entries(references)))
    except SecretError as problem:
        return refusal(500, str(problem))


def _entries(references: Any) -> dict[str, Any]:
    """The members of `references`; of a list or a text they are numbered."""
    if isinstance(references, dict):
        return references
    items = references if isinstance(references, list | str) else ()
    return {str(number): item for number, item in enumerate(items)}


def exec_status(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET secrets/exec/:jobId: the status of a job."""
    job = daemon.secrets.job(call.params["jobId"])
    return DaemonAnswer(job.to_wire()) if job else refusal(404, "secret exec job not found")


def list_secrets(daemon: Daemon, _call: DaemonRequest) -> DaemonAnswer:
    """GET secrets: names, never values."""
    more = {"provider": "local"} if daemon.behaviour.exec_is_job else {}
    return DaemonAnswer({"secrets": daemon.secrets.names(), **more})


def put_secret(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST secrets/:name: store a value."""
    value = _fields(call, "value", 400).get("value")
    if not isinstance(value, str) or not value:
        return refusal(400, "value is required")
    try:
        daemon.secrets.store(call.params["name"], value)
    except SecretError as problem:
        return refusal(400, str(problem))
    return DaemonAnswer({"success": True, "name": call.params["name"]})


def delete_secret(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """DELETE secrets/:name: forget a value."""
    name = call.params["name"]
    demand(NAME.fullmatch(name), bad_name(name), 500)
    demand(daemon.secrets.drop(name), f"Secret '{name}' not found", 404)
    return DaemonAnswer({"success": True, "name": name})
