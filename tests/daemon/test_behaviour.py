"""What tells the versions of the contract apart."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import TypeAdapter

from signet_conformance.daemon.behaviour import VERSIONS, Behaviour, behaviour_of
from signet_conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Kit

KEY = "agent:alice:1f0c"


def test_releases_belong_to_a_contract_version() -> None:
    """A release is answered for by its contract version; an unknown one is named with the choice there is."""
    assert behaviour_of("0.145.7") is VERSIONS["0.145"]
    with pytest.raises(UsageError, match=r"there is no daemon version '0\.9'") as raised:
        behaviour_of("0.9")
    assert "0.58, 0.109, 0.145, 0.205, 0.237" in str(raised.value)


@pytest.mark.parametrize(
    ("version", "reported", "more"),
    [
        ("0.58", "0.58.1", set()),
        ("0.145", "0.145.7", {"shuttingDown", "pipeline", "resources"}),
        ("0.205", "0.205.9", {"shuttingDown", "resources", "dbWriter", "dbReader", "dbRuntime"}),
    ],
)
def test_health(start: Callable[..., Kit], version: str, reported: str, more: set[str]) -> None:
    """Each version reports itself, with its own fields."""
    body = start(version=version).get("/health").json()
    common = {"status", "uptime", "pid", "version", "port", "agentsDir", "db", "updateAvailable", "pendingRestart"}
    assert (body["version"], set(body)) == (reported, common | more)


def test_traits_have_the_types_of_their_fields() -> None:
    """A misspelt trait of `versions.json` is refused when it is read; a wrong value is seen here."""
    fields = TypeAdapter(Behaviour)
    for version in VERSIONS.values():
        fields.validate_json(json.dumps(asdict(version)), strict=True)


@pytest.mark.parametrize(
    ("method", "path", "served"),
    [
        ("POST", "/api/hooks/skill-invocation", {"0.145", "0.205", "0.237"}),
        ("POST", "/api/hooks/session-checkpoint-extract", {"0.109", "0.145", "0.205", "0.237"}),
        ("POST", "/api/sessions/search", {"0.145", "0.205", "0.237"}),
        ("POST", "/api/hooks/notifications", {"0.205", "0.237"}),
        ("GET", "/health/ready", {"0.205", "0.237"}),
    ],
)
def test_routes(start: Callable[..., Kit], method: str, path: str, served: set[str]) -> None:
    """A route that a version does not serve yet is 404."""
    for version in VERSIONS:
        answer = start(version=version).send(method, path, {"harness": "h"} if method == "POST" else None)
        assert (answer.text != "404 Not Found") == (version in served), version


@pytest.mark.parametrize(
    ("hook", "fields"),
    [("user-prompt-submit", {"userPrompt": "p"}), ("pre-compaction", {}), ("compaction-complete", {"summary": "s"})],
)
def test_conflict_was_409_everywhere(start: Callable[..., Kit], hook: str, fields: dict[str, Any]) -> None:
    """At 0.58 every hook of the other path but the end is refused."""
    kit = start(version="0.58")
    kit.hook("session-start", path="legacy", sessionKey=KEY)
    assert kit.hook(hook, path="plugin", sessionKey=KEY, **fields).status_code == 409
    assert kit.hook("session-end", path="plugin", sessionKey=KEY).status_code == 200


def test_end_made_start_new(start: Callable[..., Kit]) -> None:
    """At 0.58 an end leaves no tombstone and makes the next start a full one."""
    kit = start(version="0.58")
    kit.hook("session-start", path="legacy", sessionKey=KEY)
    assert kit.hook("session-start", path="legacy", sessionKey=KEY, project="/elsewhere").json()["memories"] == []
    for _ in range(2):
        assert "skipped" not in kit.hook("session-end", path="legacy", sessionKey=KEY).json()
    assert "recentContext" in kit.hook("session-start", path="legacy", sessionKey=KEY).json()


def test_older_answers(start: Callable[..., Kit]) -> None:
    """At 0.58 prompts do not tell sessionKnown, compactions no epoch, hooks/remember only saved and id."""
    kit = start(version="0.58")
    assert "sessionKnown" not in kit.hook("user-prompt-submit", userPrompt="deploy it").json()
    assert set(kit.hook("compaction-complete", sessionKey=KEY, summary="s").json()) == {"success", "memoryId"}
    saved = kit.hook("remember", content="Old fact.", agentId="alice", visibility="private").json()
    assert saved == {"saved": True, "id": saved["id"]}
    assert kit.get(f"/api/memory/{saved['id']}").status_code == 200
    output = kit.post("/api/secrets/exec", {"command": "true", "secrets": {}})
    assert (output.status_code, output.json()) == (400, {"error": "secrets map is required"})


def test_exec_was_synchronous(start: Callable[..., Kit]) -> None:
    """At 0.58 secrets/exec answers 200 with the output."""
    kit = start(version="0.58")
    kit.post("/api/secrets/A", {"value": "hidden"})
    answer = kit.post("/api/secrets/exec", {"command": "printenv A", "secrets": {"A": "A"}})
    assert (answer.status_code, answer.json()) == (200, {"stdout": "[REDACTED]\n", "stderr": "", "code": 0})


def test_context_hash(start: Callable[..., Kit]) -> None:
    """At 0.205 the hash covers exactly the bytes of inject, which are the stable and the dynamic part."""
    body = start(version="0.205").hook("session-start", sessionKey=KEY, project="/srv/a").json()
    assert body["contextHash"] == hashlib.sha256(body["inject"].encode()).hexdigest()
    assert (body["stableSystemPrompt"] + body["dynamicContext"], body["contextVersion"]) == (body["inject"], 1)


def test_clock_context(start: Callable[..., Kit]) -> None:
    """From 0.206 a prompt's answer says when it is, in a form that connectors check; before, no answer does."""
    prompt = {"sessionKey": KEY, "userPrompt": "deploy it"}
    said = start(version="0.237").hook("user-prompt-submit", **prompt).json()["clockContext"]
    assert re.fullmatch(r"Current date/time: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d \(UTC\)", said)
    assert "clockContext" not in start(version="0.205").hook("user-prompt-submit", **prompt).json()


def test_synthesis_is_done_by_later_daemons(start: Callable[..., Kit]) -> None:
    """From 0.209.1 a connector that writes MEMORY.md is told that this is over; before, that no worker runs."""
    complete = ("/api/hooks/synthesis/complete", {"content": "# Memory"})
    assert {v: start(version=v).post(*complete).status_code for v in ("0.205", "0.237")} == {"0.205": 503, "0.237": 410}


def test_claim_only(start: Callable[..., Kit]) -> None:
    """At 0.205 a start may only claim, and needs a runtime path for it; 0.145 knows no such field."""
    kit = start(version="0.205")
    refused = kit.hook("session-start", sessionKey=KEY, claimOnly=True)
    assert (refused.status_code, refused.json()) == (400, {"error": "claimOnly requires a runtime path"})
    assert kit.hook("session-start", path="plugin", sessionKey=KEY, claimOnly=True).json() == {"sessionKnown": True}
    known = kit.hook("user-prompt-submit", sessionKey=KEY, agentId="alice", userPrompt="p").json()["sessionKnown"]
    assert known is True
    assert "identity" in start().hook("session-start", path="plugin", sessionKey=KEY, claimOnly=True).json()


def test_end_of_later_versions(start: Callable[..., Kit]) -> None:
    """At 0.205 an end checks capturedAt, names a capture job, and a repeat without a path is dropped too."""
    kit = start(version="0.205")
    bad = kit.hook("session-end", sessionKey=KEY, capturedAt="yesterday")
    assert (bad.status_code, bad.json()) == (400, {"error": "capturedAt must be an ISO timestamp"})
    kit.hook("session-start", path="plugin", sessionKey=KEY, agentId="alice")
    ended = kit.hook("session-end", sessionKey=KEY, agentId="alice", transcript="User: hi\n" * 100).json()
    job = ended["transcriptCaptureJobId"]
    assert kit.get(f"/api/hooks/transcript-capture/{job}?agentId=alice").json()["status"] == "completed"
    assert kit.get(f"/api/hooks/transcript-capture/{job}").status_code == 404
    repeat = kit.hook("session-end", sessionKey=KEY, agentId="alice").json()
    assert (repeat["duplicateSessionEnd"], repeat["endedBy"]) == (True, "plugin")


def test_ninth_prompt_in_flight_is_refused(start: Callable[..., Kit]) -> None:
    """At 0.205 eight prompts may be in flight; one after another they are not limited, nor are they at 0.145."""
    prompt = ("/api/hooks/user-prompt-submit", {"harness": "claude-code", "userPrompt": "deploy it"})
    kit = start(version="0.205")
    answers = kit.together(*[prompt] * 9)
    assert sorted(answer.status_code for answer in answers) == [200] * 8 + [503]
    refused = next(answer.json() for answer in answers if answer.status_code == 503)
    assert refused == {"error": "Too many concurrent prompt submissions (max 8); retry shortly"}
    assert kit.post(*prompt).status_code == 200
    assert {answer.status_code for answer in start().together(*[prompt] * 9)} == {200}
