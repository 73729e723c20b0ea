"""Session keys and bindable values as 0.58 takes them: nothing is checked, and a number is a key like any other."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from signet_conformance.daemon.values import ScriptError, truthy
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_conformance.daemon.state.daemon import Daemon


def key_of(value: Any) -> str | None:
    """`value` as the name of a session; None when it is not given. An object is nobody's name twice."""
    if not truthy(value):
        return None
    if isinstance(value, str):
        return value
    return f"\0{uuid.uuid4()}" if isinstance(value, dict | list) else f"\0{value}"


def is_bypassed(daemon: Daemon, fields: Mapping[str, Any]) -> bool:
    """Whether the session of the request is bypassed."""
    given = fields.get("sessionKey")
    key = key_of(fields.get("sessionId") if given is None else given)
    return key is not None and daemon.sessions.bypassed(key)


def conflict(daemon: Daemon, fields: Mapping[str, Any], path: str | None) -> Answer | None:
    """The refusal of a request whose session the other path holds. Nothing is claimed."""
    key = key_of(fields.get("sessionKey"))
    owner = daemon.sessions.owner(key, "default") if key and path else None
    return refusal(409, f"session claimed by {owner} path") if owner and owner != path else None


def path_of(call: Call, fields: Mapping[str, Any]) -> str | None:
    """The runtime path of the request: the header if it says anything, else the body; other values are ignored."""
    given = call.header("x-signet-runtime-path") or fields.get("runtimePath")
    return given if given in ("plugin", "legacy") else None


def bound(value: Any) -> Any:
    """`value` as a value of a statement. Raises `ScriptError` for an object or a list."""
    if isinstance(value, dict | list):
        raise ScriptError("Binding expected string, TypedArray, boolean, number, bigint or null")
    return int(value) if isinstance(value, bool) else value
