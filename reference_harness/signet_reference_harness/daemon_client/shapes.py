"""What a usable answer of each operation holds: enough to work with, no more, so that newer daemons pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from signet_reference_harness.daemon_client.reply import FailureClass, Reply

NEEDED: Final[Mapping[str, Mapping[str, type]]] = MappingProxyType(
    {
        "health": {"status": str},
        "session-start": {"inject": str, "memories": list},
        "user-prompt-submit": {"inject": str},
        "session-end": {"memoriesSaved": int},
        "session-checkpoint-extract": {},
        "pre-compaction": {"summaryPrompt": str},
        "compaction-complete": {"success": bool},
        "skill-invocation": {"recorded": bool},
        "memory-recall": {"results": list},
        "hooks-remember": {"id": str},
        "memory-get": {"id": str},
        "memories-list": {"memories": list},
        "memory-modify": {"results": list},
        "memory-forget": {"mode": str},
        "marketplace-servers": {"servers": list},
        "secrets-list": {"secrets": list},
        "secrets-exec": {"id": str, "status": str},
        "secrets-exec-job": {"status": str},
    }
)
SET_ASIDE: Final = ("bypassed", "skipped")
"""Answers with one of these set to true may lack everything else: the daemon did nothing, on purpose."""


def checked(reply: Reply) -> Reply:
    """`reply`, marked as a failure of shape when its body cannot be used as an answer of its operation.

    It keeps its body and stays accepted: the daemon did take the call.
    """
    if not reply.accepted or any(reply.body.get(name) is True for name in SET_ASIDE):
        return reply
    if reply.operation == "hooks-remember" and isinstance(reply.body.get("ids"), list):
        # Long content is stored in pieces, and the answer then lists their ids.
        return reply
    for name, wanted in NEEDED[reply.operation].items():
        value: Any = reply.body.get(name)
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            detail = f"{name!r} is {type(value).__name__}, not {wanted.__name__}"
            return replace(reply, failure=FailureClass.SHAPE, detail=detail)
    return reply
