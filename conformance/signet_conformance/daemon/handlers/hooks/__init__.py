"""The hooks of a session.

Here is what all share: the runtime path, the guard against recursion, the bypass, and the claim that a hook makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signet_conformance.daemon import js
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.agents import plain_agent
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, RefusedError, demand, refusal


def runtime_path(call: DaemonRequest, fields: Mapping[str, Any]) -> str | None:
    """The runtime path of the request: the header if it says anything, else the body; None for any other value."""
    given = call.header("x-signet-runtime-path") or fields.get("runtimePath")
    return given if given in ("plugin", "legacy") else None


def is_internal(call: DaemonRequest) -> bool:
    """Whether the request comes from inside a hook and must do nothing."""
    return call.header("x-signet-no-hooks") == "1"


def read_fields(call: DaemonRequest, empty: Mapping[str, Any] | None, *required: str) -> Mapping[str, Any]:
    """The fields of a hook. Raises `RefusedError` if a `required` one is missing; of `this or that` one is enough.

    A request with the header `x-signet-no-hooks` is refused with the answer `empty`; if that is None, the header is
    ignored.
    """
    if empty is not None and is_internal(call):
        raise RefusedError(DaemonAnswer(empty))
    fields = js.fields_of(call.json())
    words = f"{' and '.join(required)} {'is' if len(required) == 1 else 'are'} required"
    demand(all(_is_given(fields, *name.split(" or ")) for name in required), words)
    return fields


def _is_given(fields: Mapping[str, Any], name: str, *others: str) -> bool:
    if not others:
        return js.truthy(fields.get(name))
    return any(js.text_or_none(fields.get(each)) for each in (name, *others))


def is_bypassed(daemon: Daemon, fields: Mapping[str, Any]) -> bool:
    """Whether the session of the request is bypassed. Raises `ScriptError` when its key is not a string."""
    given = fields.get("sessionKey")
    key = fields.get("sessionId") if given is None else given
    return js.truthy(key) and daemon.sessions.bypassed(key)


def claim(daemon: Daemon, key: Any, path: str | None, agent: str, nothing: Mapping[str, Any] | None = None) -> None:
    """Claim the session. Raises `RefusedError` when the other path holds it.

    The answer says then that the hook was skipped, beside `nothing`; without that it is a conflict.
    """
    holder = daemon.sessions.claim(key, path, agent) if js.truthy(key) and path else None
    if holder is None:
        return
    if nothing is None:
        raise _conflict(holder)
    skipped = {**nothing, "skipped": True, "duplicateRuntimePath": True, "claimedBy": holder}
    raise RefusedError(DaemonAnswer(skipped))


def _conflict(holder: str) -> RefusedError:
    return RefusedError(refusal(409, f"session claimed by {holder} path"))


def demand_unclaimed(daemon: Daemon, key: Any, path: str | None, agent: str) -> None:
    """Raise `RefusedError` for a hook whose session the other path holds; it makes no claim itself."""
    owner = daemon.sessions.owner(key, agent) if js.truthy(key) and path else None
    if owner and owner != path:
        raise _conflict(owner)


def register_session(daemon: Daemon, fields: Mapping[str, Any], path: str | None) -> None:
    """Note that the session of the request is present."""
    daemon.presence.register(
        session=js.text_or_none(fields.get("sessionKey")), agent=plain_agent(fields), harness=fields["harness"],
        project=js.text_or_none(fields.get("project")), path=path,
    )  # fmt: skip


def is_noise(*, project: Any, key: Any, harness: Any) -> bool:
    """Whether the daemon files nothing for such a session: temporary projects, or synthetic names without a project."""
    path = js.text_or_none(project)
    if path:
        return path.startswith(("/tmp/", "/private/tmp/"))  # noqa: S108 # the daemon's own rule, no file is opened
    synthetic = ("test-", "spec-", "fixture-", "synthetic-", "tmp-")
    named = (js.text_or_none(key) or "").lower()
    return named.startswith(synthetic) or (js.text_or_none(harness) or "").lower() == "test"


def dedupe_key_of(daemon: Daemon, agent: str, fields: Mapping[str, Any], project: Any) -> tuple[str, ...] | None:
    """The values by which a repeated start is recognised; None without a session key, which counts as sent."""
    key = fields.get("sessionKey") if js.truthy(fields.get("sessionKey")) else fields.get("sessionId")
    if not js.truthy(key):
        return None
    if daemon.behaviour.dedupe_key_is_session_key:
        return (str(key),)
    return agent, str(fields.get("harness") or ""), "" if project is None else str(project), str(key)
