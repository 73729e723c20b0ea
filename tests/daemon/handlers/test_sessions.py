"""Claims, tombstones, bypass and repeated starts, as hooks see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Kit, MovedClock

KEY = "5e1f0c52-7a54-4be3-9bd5-5a0c6c9b2f11"
CONFLICT = {"skipped": True, "duplicateRuntimePath": True, "claimedBy": "legacy"}


@pytest.mark.parametrize(
    ("hook", "fields", "nothing"),
    [
        ("user-prompt-submit", {"userPrompt": "go"}, {"inject": "", "memoryCount": 0, "sessionKnown": True}),
        ("pre-compaction", {}, {"guidelines": "", "instructions": "", "summaryPrompt": ""}),
        ("compaction-complete", {"summary": "s"}, {"success": True}),
        ("session-checkpoint-extract", {}, {"skipped": True}),
        ("session-end", {}, {"memoriesSaved": 0}),
    ],
)
def test_other_path_is_skipped(kit: Kit, hook: str, fields: dict[str, Any], nothing: dict[str, Any]) -> None:
    """A hook from the other runtime path gets 200, nothing and the name of the holder."""
    kit.hook("session-start", path="legacy", sessionKey=KEY)
    answer = kit.hook(hook, path="plugin", sessionKey=KEY, **fields)
    assert (answer.status_code, answer.json()) == (200, {**nothing, **CONFLICT})


@pytest.mark.parametrize("hook", ["session-start", "remember", "recall"])
def test_start_and_memory_hooks_are_refused(kit: Kit, hook: str) -> None:
    """Start, remember and recall from the other path are 409."""
    kit.hook("session-start", path="legacy", sessionKey=KEY)
    answer = kit.hook(hook, path="plugin", sessionKey=f"session: {KEY}".replace(" ", ""), content="c", query="q")
    assert (answer.status_code, answer.json()) == (409, {"error": "session claimed by legacy path"})


def test_claim_lasts_four_hours(kit: Kit, clock: MovedClock) -> None:
    """After four hours without a hook the other path may have the session."""
    kit.hook("session-start", path="legacy", sessionKey=KEY)
    clock.move(hours=4)
    assert kit.hook("session-start", path="plugin", sessionKey=KEY).status_code == 409
    clock.move(minutes=1)
    assert kit.hook("session-start", path="plugin", sessionKey=KEY).status_code == 200


def test_hook_renews_claim(kit: Kit, clock: MovedClock) -> None:
    """Each hook of the holder gives the claim its four hours again."""
    kit.hook("session-start", path="legacy", sessionKey=KEY)
    clock.move(hours=3)
    kit.hook("user-prompt-submit", path="legacy", sessionKey=KEY, userPrompt="go on")
    clock.move(hours=3)
    assert kit.hook("session-start", path="plugin", sessionKey=KEY).status_code == 409


def test_expiry_is_announced_once(kit: Kit, clock: MovedClock) -> None:
    """A start without a path in the last 30 minutes of the claim is warned, the next one is not."""
    kit.hook("session-start", path="legacy", sessionKey=KEY)
    clock.move(hours=3, minutes=45)
    warned = kit.hook("session-start", sessionKey=KEY).json()
    assert warned["warnings"] == ["session expires in ~15 minutes — consider /checkpoint"]
    assert "warnings" not in kit.hook("session-start", sessionKey=KEY).json()


def test_second_end_is_dropped_for_half_an_hour(kit: Kit, clock: MovedClock) -> None:
    """Within 30 minutes a second end with a path is skipped, whichever path it names; after that it counts."""
    kit.hook("session-end", path="legacy", sessionKey=KEY)
    dropped = {"memoriesSaved": 0, "skipped": True, "duplicateSessionEnd": True, "endedBy": "legacy"}
    assert kit.hook("session-end", path="plugin", sessionKey=KEY).json() == dropped
    assert kit.hook("session-end", sessionKey=KEY).json() == {"memoriesSaved": 0, "queued": False}
    kit.hook("session-end", path="legacy", sessionKey="other")
    clock.move(minutes=31)
    assert kit.hook("session-end", path="legacy", sessionKey="other").json()["queued"] is False


def test_hook_after_end_removes_tombstone(kit: Kit) -> None:
    """A hook between two ends makes the second one count."""
    kit.hook("session-end", path="legacy", sessionKey=KEY)
    kit.hook("user-prompt-submit", path="legacy", sessionKey=KEY, userPrompt="one more")
    assert "skipped" not in kit.hook("session-end", path="legacy", sessionKey=KEY).json()


def test_repeated_start_is_a_stub(kit: Kit, clock: MovedClock) -> None:
    """The same harness, agent, project and key get a stub for seven days, also after an end."""
    marks = {"sessionKey": KEY, "project": "/srv/acme-api"}
    assert "recentContext" in kit.hook("session-start", path="legacy", **marks).json()
    kit.hook("session-end", path="legacy", sessionKey=KEY, cwd="/srv/acme-api")
    stub = kit.hook("session-start", path="legacy", **marks).json()
    assert (stub["identity"], stub["memories"]) == ({"name": "Agent"}, [])
    assert stub["inject"].startswith("[memory active | /remember | /recall]\n# Current Date & Time\n")
    clock.move(days=8)
    assert "recentContext" in kit.hook("session-start", path="legacy", **marks).json()


@pytest.mark.parametrize(
    ("hook", "fields"),
    [
        ("session-start", {"source": "clear"}),
        ("session-end", {"reason": "clear", "cwd": "/srv/acme-api"}),
        ("compaction-complete", {"summary": "so far"}),
    ],
)
def test_boundary_makes_start_new(kit: Kit, hook: str, fields: dict[str, Any]) -> None:
    """A start with source clear, an end with reason clear and a completed compaction end the stubs."""
    marks = {"sessionKey": KEY, "project": "/srv/acme-api"}
    kit.hook("session-start", **marks)
    boundary = kit.hook(hook, **{**marks, **fields}).json()
    again = boundary if hook == "session-start" else kit.hook("session-start", **marks).json()
    assert "recentContext" in again


def test_start_without_key_is_never_a_stub(kit: Kit) -> None:
    """Without a session key every start is answered in full."""
    assert "recentContext" in kit.hook("session-start").json()
    assert "recentContext" in kit.hook("session-start", sessionKey="").json()


def test_bypass_ends_with_the_session(kit: Kit) -> None:
    """A bypassed session answers with nothing until its end."""
    kit.hook("session-start", path="legacy", sessionKey=KEY)
    assert kit.post(f"/api/sessions/{KEY}/bypass", {"enabled": True}).json() == {"key": KEY, "bypassed": True}
    assert kit.hook("user-prompt-submit", sessionKey=KEY, userPrompt="hi").json() == {
        "inject": "", "memoryCount": 0, "bypassed": True,
    }  # fmt: skip
    assert kit.hook("session-end", path="legacy", sessionKey=KEY).json() == {"memoriesSaved": 0, "bypassed": True}
    assert "bypassed" not in kit.hook("pre-compaction", sessionKey=KEY).json()


def test_claims_survive_a_restart_where_they_persist(start: Callable[..., Kit]) -> None:
    """At 0.205 a restarted daemon still knows who holds a session; at 0.145 it does not."""
    for version, status in (("0.205", 409), ("0.145", 200)):
        start(version=version).hook("session-start", path="legacy", sessionKey=f"{KEY}-{version}")
        again = start(version=version).hook("session-start", path="plugin", sessionKey=f"{KEY}-{version}")
        assert again.status_code == status


def test_claims_that_persist_expire_all_the_same(start: Callable[..., Kit]) -> None:
    """A daemon that was away for longer than they last knows no session, and its claims are free."""
    start(version="0.205").hook("session-start", path="legacy", sessionKey=KEY)
    kit = start(version="0.205", claims_expire=True)
    assert (
        kit.hook("user-prompt-submit", path="legacy", sessionKey=KEY, userPrompt="hi").json()["sessionKnown"] is False
    )
    taken = kit.hook("session-start", path="legacy", sessionKey=KEY, claimOnly=True)
    assert taken.json() == {"sessionKnown": True}


def test_claims_belong_to_agent_and_key_later(start: Callable[..., Kit]) -> None:
    """At 0.205 two agents may hold the same key on different paths."""
    kit = start(version="0.205")
    assert kit.hook("session-start", path="legacy", sessionKey=KEY, agentId="alice").status_code == 200
    assert kit.hook("session-start", path="plugin", sessionKey=KEY, agentId="bob").status_code == 200
