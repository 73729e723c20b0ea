"""Replays recorded requests against an embedded daemon and compares its answers with those of a real one."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from signet_conformance.daemon.http.app import create_app
from signet_conformance.daemon.state.daemon import Daemon, DaemonSettings
from tests.support.evidence import SEED, json_lines, truth_table

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UUID_OF_ANY_CASE = re.compile(_UUID.pattern, re.IGNORECASE)
_CLIPPED = re.compile(r"\.\.\.\[(\d+) chars\]$")
_KEYS: dict[str, dict[str, Any]] = {
    "PROBE_ADMIN": {"role": "admin"},
    "PROBE_ALICE": {"role": "agent", "agentId": "alice", "scope": {"agent": "alice"}},
    "PROBE_CONN": {"role": "agent", "connector": "claude-code", "harness": "claude-code"},
    "PROBE_REVOKED": {"role": "agent"},
}
_MINIMAL = {
    "/api/hooks/remember": {"harness": "claude-code", "content": "Transport probe memory."},
    "/api/memory/recall": {"query": "Quokka Ledger cut-over"},
    "/api/secrets/exec": {"command": "true", "secrets": {"A": "A"}},
}


@cache
def rows(release: str, group: str) -> list[dict[str, Any]]:
    """The recorded requests of `group` with the answers of that release."""
    return [row for row in json_lines(truth_table(release)) if row["group"] == group]


@dataclass(frozen=True)
class Got:
    """An answer of the embedded daemon."""

    status: int
    headers: dict[str, str]
    body: Any


@dataclass
class Replay:
    """One daemon fed with recorded requests; ids of recorded answers are replaced by those of its own."""

    client: httpx.AsyncClient
    keys: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    async def send(self, row: dict[str, Any]) -> Got:
        """Send the request of `row` and note which ids of its answer stand for which."""
        request = row["request"]
        headers = {name: self._credential(value) for name, value in request["headers"].items()}
        path, body = self._own_ids(request["path"]), _body(request)
        if body is not None and "body_note" not in request:  # what is described is large, and names no row
            body = self._own_ids(body.decode("latin-1")).encode("latin-1")
        got = await self._send(request["method"], path, headers, body)
        if "(poll)" in row["case"] and row["response_body"]["status"] != "running":
            while got.body.get("status") in ("queued", "running"):
                await asyncio.sleep(0.005)
                got = await self._send(request["method"], path, headers, body)
        self._learn(row["response_body"], got.body)
        return got

    async def _send(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> Got:
        response = await self.client.request(method, path, headers=headers, content=body)
        is_json = response.headers.get("content-type") == "application/json" and response.content
        return Got(response.status_code, dict(response.headers), response.json() if is_json else response.text)

    def _credential(self, value: str) -> str:
        named = re.search(r"Bearer (?:sig_sk )?<(\w+)>", value)
        if not named:
            return value
        if named[1] != "changed":
            return f"Bearer {self.keys[named[1]]}"
        key = self.keys["PROBE_CONN"]
        # The last character of a key or signature holds bits that nobody reads: one from the other end differs in all.
        return f"Bearer {key[:-1]}{'A' if key[-1] > 'Z' else 'z'}"

    def _own_ids(self, text: str) -> str:
        return _UUID_OF_ANY_CASE.sub(lambda uuid: self.ids.get(uuid[0], uuid[0]), text)

    def _learn(self, recorded: Any, own: Any) -> None:
        if isinstance(recorded, dict) and isinstance(own, dict):
            for name in recorded.keys() & own.keys():
                self._learn(recorded[name], own[name])
        elif isinstance(recorded, list) and isinstance(own, list):
            for left, right in zip(recorded, own, strict=False):
                self._learn(left, right)
        elif isinstance(recorded, str) and isinstance(own, str) and _UUID.fullmatch(recorded):
            self.ids[recorded] = own
            self.ids[recorded.upper()] = own.upper()


def _body(request: dict[str, Any]) -> bytes | None:
    """The bytes of a request, with clipped strings and described bodies filled to their length."""
    if "body_note" in request:
        return _described(request["path"], request["body_note"])
    if "body_text" in request:
        return str(request["body_text"]).encode()
    return json.dumps(_filled(request["body"])).encode() if "body" in request else None


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _filled(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item) for item in value]
    clipped = _CLIPPED.search(value) if isinstance(value, str) else None
    return value[: clipped.start()].ljust(int(clipped[1]), "x") if clipped else value


def _described(path: str, note: str) -> bytes:
    minimal: dict[str, Any] = _MINIMAL.get(path, {"harness": "claude-code"})
    if note.startswith("gzip"):
        return gzip.compress(json.dumps(minimal).encode())
    if "11 MiB" in note:
        return json.dumps({**minimal, "pad": "x" * (11 * 1024 * 1024)}).encode()
    field_name, _, told = note.partition(" = ")
    if note == "same 6 kB again":
        field_name, told = "content", "6 kB of distinct sentences"
    return json.dumps({**minimal, field_name: _values()[told]}).encode()


@cache
def _values() -> dict[str, str]:
    """The values that recorded requests describe, by what they say of them."""
    sentences = " ".join(f"Dunnock statement {number} is distinct from the others." for number in range(90_000))
    return {
        "5,000,000 x": "x" * 5_000_000,
        "100,000 k": "k" * 100_000,
        "5 MB": "User: x\n" * 625_000,
        "4.6 MB of distinct sentences": sentences.replace("Dunnock", "Wagtail")[:4_600_000],
        "6 kB of distinct sentences": sentences[:6_000],
        "130 distinct words": " ".join(f"heron{number}" for number in range(130)),
        "1250 distinct words": " ".join(f"heron{number}" for number in range(1250)),
        "'Heron ' x 16600": "Heron " * 16_600,
    }


async def replayed(release: str, group: str, workspace: Path) -> list[Got]:
    """The embedded daemon's answers to all of `group`, in the order of the table."""
    keys: dict[str, str] = {}
    answers: list[Got] = []
    for mode in ("local", "team") if group == "team" else ("local",):
        app = create_app(DaemonSettings(workspace=workspace, auth=mode, version=release))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:3850", timeout=60) as client:
            if mode == "local":
                for seed in json_lines(SEED):
                    await client.request(seed["method"], seed["path"], json=seed["body"])
            if group == "team" and mode == "local":
                has_keys = app.daemon.behaviour.api_keys
                keys = await _make_keys(client) if has_keys else _make_tokens(app.daemon)
            else:
                replay = Replay(client, keys)
                answers += [await replay.send(row) for row in rows(release, group)]
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


def shape(value: Any, like: Any = None) -> Any:
    """The keys and types of `value`; of a list its first item, and no deeper than `like` goes."""
    if isinstance(like, str) and like in ("object", "array"):
        return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "?"
    if isinstance(value, dict):
        inner = like if isinstance(like, dict) else {}
        return {name: shape(item, inner.get(name)) for name, item in value.items()}
    if isinstance(value, list):
        inner_like = like[0] if isinstance(like, list) and like else None
        return [shape(value[0], inner_like)] if value else []
    if value is None:
        return "null"
    return {bool: "boolean", str: "string"}.get(type(value), "number")
