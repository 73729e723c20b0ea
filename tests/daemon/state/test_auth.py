"""Credentials, roles, scopes and limits of a daemon in team mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Kit, MovedClock


@pytest.fixture
def team(start: Callable[..., Kit]) -> tuple[Kit, dict[str, dict[str, str]]]:
    """A daemon in team mode and the Authorization headers of its keys."""
    local = start()
    traits: dict[str, dict[str, Any]] = {
        "admin": {"role": "admin"},
        "alice": {"scope": {"agent": "alice"}},
        "acme": {"scope": {"project": "/srv/acme-api"}},
        "reader": {"role": "readonly"},
        "connector": {"connector": "claude-code"},
        "brief": {"expiresAt": "2026-11-22T00:00:00Z"},
    }
    made = {
        name: local.post("/api/auth/api-keys", {"name": name, **more}).json()["apiKey"] for name, more in traits.items()
    }
    return start(auth="team"), {name: {"authorization": f"Bearer {key['key']}"} for name, key in made.items()}


@pytest.mark.parametrize(
    ("authorization", "error"),
    [
        (None, "authentication required"),
        ("Basic YTpi", "authentication required"),
        ("Bearer ", "authentication required"),
        ("Bearer garbage", "malformed token"),
        ("Bearer a.b", "invalid signature"),
        ("Bearer sig_sk_0000", "malformed api key"),
        ("Bearer sig_sk_0000_1111", "invalid api key"),
    ],
)
def test_refused_credentials(team: tuple[Kit, Any], authorization: str | None, error: str) -> None:
    """Each kind of bad credential is 401 with its own text, on unknown routes too."""
    headers = {"authorization": authorization} if authorization else {}
    for path in ("/api/memory/recall", "/api/nope"):
        answer = team[0].post(path, {"query": "q"}, headers=headers)
        assert (answer.status_code, answer.json()) == (401, {"error": error})
        assert answer.headers["www-authenticate"] == "Bearer"


def test_health_needs_no_credential(team: tuple[Kit, Any]) -> None:
    """/health is open."""
    assert team[0].get("/health", headers={"authorization": "Bearer nope"}).status_code == 200


def test_keys_expire_and_are_revoked(team: tuple[Kit, dict[str, dict[str, str]]], clock: MovedClock) -> None:
    """A key ends with its date, or when it is revoked."""
    kit, keys = team
    listed = {key["name"]: key["id"] for key in kit.get("/api/auth/api-keys", headers=keys["admin"]).json()["apiKeys"]}
    kit.send("DELETE", f"/api/auth/api-keys/{listed['reader']}", headers=keys["admin"])
    assert kit.get("/api/memories", headers=keys["reader"]).json() == {"error": "api key revoked"}
    clock.move(days=2)
    assert kit.get("/api/memories", headers=keys["brief"]).json() == {"error": "api key expired"}


def test_roles(team: tuple[Kit, dict[str, dict[str, str]]]) -> None:
    """A role that lacks the permission is 403; where the daemon loses its own refusal it is a crash."""
    kit, keys = team
    refused = kit.post("/api/memory/remember", {"content": "c"}, headers=keys["reader"])
    assert (refused.status_code, refused.json()) == (403, {"error": "role 'readonly' lacks 'remember' permission"})
    assert kit.get("/api/secrets", headers=keys["alice"]).status_code == 403
    assert kit.get("/api/secrets", headers=keys["admin"]).status_code == 200
    answer = kit.post("/api/memory/modify", {"patches": [{}]}, headers=keys["connector"])
    assert (answer.status_code, answer.text) == (500, "Internal Server Error")


def test_scopes(team: tuple[Kit, dict[str, dict[str, str]]]) -> None:
    """Only a save and a completed compaction are held to the agent and project of the credential."""
    kit, keys = team
    other = kit.post("/api/memory/remember", {"content": "c", "agentId": "bob"}, headers=keys["alice"])
    assert (other.status_code, other.json()) == (403, {"error": "scope restricted to agent 'alice'"})
    unsaid = kit.post("/api/hooks/remember", {"harness": "h", "content": "c"}, headers=keys["acme"])
    assert (unsaid.status_code, unsaid.json()) == (403, {"error": "scope restricted to project '/srv/acme-api'"})
    complete = {"harness": "h", "summary": "s", "agentId": "bob"}
    assert kit.post("/api/hooks/compaction-complete", complete, headers=keys["alice"]).status_code == 403
    assert (
        kit.post("/api/hooks/session-start", {"harness": "h", "agentId": "bob"}, headers=keys["alice"]).status_code
        == 200
    )


def test_tokens(team: tuple[Kit, dict[str, dict[str, str]]], clock: MovedClock) -> None:
    """A signed token serves until it expires, and whoami reads it."""
    kit, keys = team
    token = kit.post("/api/auth/token", {"role": "readonly", "ttlSeconds": 60}, headers=keys["admin"]).json()["token"]
    bearer = {"authorization": f"Bearer {token}"}
    assert kit.get("/api/auth/whoami", headers=bearer).json()["claims"]["role"] == "readonly"
    assert kit.post("/api/memory/recall", {"query": "q"}, headers=bearer).status_code == 200
    clock.move(minutes=2)
    assert kit.post("/api/memory/recall", {"query": "q"}, headers=bearer).json() == {"error": "token expired"}


def test_message_limit(start: Callable[..., Kit], clock: MovedClock) -> None:
    """Beyond the limit of a minute a message is 429 with the time to wait, and the next minute is free again."""
    start().post("/api/auth/api-keys", {"name": "x"})
    key = start().post("/api/auth/api-keys", {"name": "sender"}).json()["apiKey"]["key"]
    kit = start(auth="team", rate_limits={"cross-agent-message": 1})
    bearer = {"authorization": f"Bearer {key}"}
    message = {"content": "hello", "broadcast": True}
    assert kit.post("/api/cross-agent/messages", message, headers=bearer).status_code == 200
    limited = kit.post("/api/cross-agent/messages", message, headers=bearer)
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "60")
    assert limited.json() == {"error": "rate limit exceeded", "retryAfter": int(clock.now * 1000) + 60_000}
    clock.move(minutes=1)
    assert kit.post("/api/cross-agent/messages", message, headers=bearer).status_code == 200


@pytest.mark.parametrize(("address", "trusted"), [("127.0.0.1", True), ("::1", True), ("203.0.113.9", False)])
def test_hybrid_mode_trusts_this_machine_alone(start: Callable[..., Kit], address: str, trusted: bool) -> None:
    """A caller from elsewhere needs a credential, and whoami tells it so."""
    kit = start(auth="hybrid")
    kit.move_to(address)
    assert (kit.get("/api/memories").status_code == 200) is trusted
    told = kit.get("/api/auth/whoami").json()
    assert (told["trustedLocal"], told["effectiveAccess"]) == (trusted, trusted)
