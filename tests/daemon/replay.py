"""Replays recorded requests against an embedded daemon in this process, in local and in team mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from signet_conformance.daemon.http.app import create_app
from signet_conformance.daemon.state import Daemon, DaemonSettings
from signet_conformance.probing.replay import ProbeAnswer, Replay, recorded, send_seeds

_KEYS: dict[str, dict[str, Any]] = {
    "PROBE_ADMIN": {"role": "admin"},
    "PROBE_ALICE": {"role": "agent", "agentId": "alice", "scope": {"agent": "alice"}},
    "PROBE_CONN": {"role": "agent", "connector": "claude-code", "harness": "claude-code"},
    "PROBE_REVOKED": {"role": "agent"},
}


async def replayed(release: str, group: str, workspace: Path) -> list[ProbeAnswer]:
    """The embedded daemon's answers to all of `group`, in the order of the table."""
    keys: dict[str, str] = {}
    answers: list[ProbeAnswer] = []
    for mode in ("local", "team") if group == "team" else ("local",):
        app = create_app(DaemonSettings(workspace=workspace, auth=mode, version=release))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:3850", timeout=60) as client:
            if mode == "local":
                await send_seeds(client)
            if group == "team" and mode == "local":
                has_keys = app.daemon.behaviour.api_keys
                keys = await _make_keys(client) if has_keys else _make_tokens(app.daemon)
            else:
                replay = Replay(client, keys)
                answers += [await replay.send(row) for row in recorded(release, group)]
        await app.daemon.close()
    return answers


def _make_tokens(daemon: Daemon) -> dict[str, str]:
    """Signed tokens in the places of the API keys, for releases without these; the revoked one has expired."""
    return {
        name: daemon.auth.make_token(
            f"token:{traits['role']}",
            traits["role"],
            traits.get("scope", {}),
            -60 if name == "PROBE_REVOKED" else 86_400,
        )
        for name, traits in _KEYS.items()
    }


async def _make_keys(client: httpx.AsyncClient) -> dict[str, str]:
    made = {}
    for name, traits in _KEYS.items():
        answer = (await client.post("/api/auth/api-keys", json={"name": name, **traits})).json()["apiKey"]
        made[name] = answer["key"]
        if name == "PROBE_REVOKED":
            await client.delete(f"/api/auth/api-keys/{answer['id']}")
    return made
