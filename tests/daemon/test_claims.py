"""Who claims a session key: the embedded daemon answers every order of hooks as the real releases did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.evidence import CLAIMS, json_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Kit

ORDERS = json_lines(CLAIMS)
RESTART = {"hook": "restart"}
_FIELDS: dict[str, dict[str, Any]] = {
    "user-prompt-submit": {"userMessage": "Which runner do builds use?"},
    "compaction-complete": {"summary": "A summary."},
    "remember": {"content": "A claim probe."},
    "recall": {"query": "claim probe"},
}


@pytest.mark.parametrize("release", ["0.58.1", "0.109.15", "0.145.7"])
def test_claims_are_those_of_the_real_release(start: Callable[..., Kit], release: str) -> None:
    """Status, who holds the key and whether a start is a stub: as a real daemon answered, restarted ones too."""
    kit = start(version=release)
    asked = [request for order in ORDERS if order["release"] == release for request in order["requests"]]
    got = []
    for request in asked:
        if request == RESTART:
            kit = start(version=release)
        got.append(request if request == RESTART else _answered(kit, request))
    assert got == asked


def _answered(kit: Kit, request: dict[str, Any]) -> dict[str, Any]:
    hook = request["hook"]
    named = {"agentId": request["agentId"]} if "agentId" in request else {}
    fields = {"harness": "claude-code", "sessionKey": request["key"], **_FIELDS.get(hook, {}), **named}
    answer = kit.hook(hook, path=request["path"], **fields)
    body = answer.json()
    told = ("error", "skipped", "duplicateRuntimePath", "duplicateSessionEnd", "claimedBy", "endedBy", "saved",
            "success", "sessionKnown", "bypassed")  # fmt: skip
    got = {**request, "status": answer.status_code, "answer": {name: body[name] for name in told if name in body}}
    return got | ({"full": "recentContext" in body} if "full" in request else {})
