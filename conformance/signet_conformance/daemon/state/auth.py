"""Authentication and authorisation: modes, API keys and signed tokens, roles, scopes and rate limits."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import re
import secrets
import sqlite3
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.js import Clock
from signet_conformance.daemon.state.store import Store
from signet_conformance.daemon.wire import FAR_FUTURE, Claims, DaemonAnswer, DaemonRequest, RefusedError, refusal

MODES: Final = ("local", "team", "hybrid")
ROLES: Final = ("admin", "operator", "agent", "readonly")
_AGENT: Final = ("remember", "recall", "modify", "forget", "recover", "documents")
_OPERATOR: Final = (*_AGENT, "connectors", "diagnostics", "analytics")
PERMISSIONS: Final = {"admin": (*_OPERATOR, "admin"), "operator": _OPERATOR, "agent": _AGENT, "readonly": ("recall",)}
_CONNECTOR: Final = ("recall", "remember", "documents")
_PREFIX: Final = "sig_sk_"
_LOOPBACK: Final = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
_WINDOW_SECONDS: Final = 60
_LIMITS: Final = {"forget": 30, "modify": 60, "batchForget": 5, "admin": 10, "login": 5, "cross-agent-message": 120}
_OPEN: Final = ("/health", "/api/auth/login", "/api/auth/methods", "/api/auth/whoami")


class Auth:
    """The credentials of one daemon, and the decisions made on them."""

    def __init__(
        self, store: Store, clock: Clock, mode: str, limits: dict[str, int] | None = None, *, api_keys: bool = True
    ) -> None:
        """Without `api_keys` only signed tokens count, and every request needs one in team mode."""
        self.mode = mode
        self._api_keys = api_keys
        self._store = store
        self._clock = clock
        self._limits = {**_LIMITS, **(limits or {})}
        self._windows: dict[str, tuple[float, int]] = {}
        row = store.row("SELECT value FROM settings WHERE name = 'auth-secret'")
        self._secret = row["value"] if row else secrets.token_bytes(32)
        store.run("INSERT OR IGNORE INTO settings VALUES ('auth-secret', ?)", self._secret)

    def admit(self, call: DaemonRequest) -> tuple[Claims | None, DaemonAnswer | None]:
        """The bearer's claims, and the 401 for a request without a valid credential."""
        token = _bearer(call.header("authorization"))
        if self._api_keys and _is_open(call):
            claims, _ = self._check_token(token) if token else (None, None)
            return claims, None
        if self.mode == "local":
            return None, None
        near = self.is_near(call)
        if not token:
            return None, None if near else _unauthorised("authentication required")
        is_key = self._api_keys and token.startswith(_PREFIX)
        claims, problem = self._check_key(token) if is_key else self._check_token(token)
        return claims, None if near or claims else _unauthorised(problem or "invalid token")

    def _check_key(self, token: str) -> tuple[Claims | None, str | None]:
        prefix, mark, _ = token.removeprefix(_PREFIX).partition("_")
        if not mark or not re.fullmatch(r"[A-Za-z0-9]+", prefix):
            return None, "malformed api key"
        row = self._store.row("SELECT * FROM api_keys WHERE prefix = ?", prefix)
        if not row or not hmac.compare_digest(_hash(token, row["salt"]), row["key_hash"]):
            return None, "invalid api key"
        now = js.iso(self._clock())
        if row["revoked_at"]:
            return None, "api key revoked"
        if row["expires_at"] and row["expires_at"] <= now:
            return None, "api key expired"
        self._store.run("UPDATE api_keys SET last_used_at = ? WHERE id = ?", now, row["id"])
        return _claims_of(row), None

    def _check_token(self, token: str) -> tuple[Claims | None, str | None]:
        payload, mark, signature = token.partition(".")
        if not mark or not signature:
            return None, "malformed token"
        if not hmac.compare_digest(self._signature(payload), _decode_base64(signature)):
            return None, "invalid signature"
        try:
            sent = json.loads(_decode_base64(payload))
            claims = Claims(
                str(sent["sub"]), sent["role"], dict(sent["scope"]), issued=sent["iat"], expires=sent["exp"]
            )
        except (ValueError, KeyError, TypeError):
            return None, "malformed payload"
        if claims.role not in ROLES:
            return None, "invalid role"
        return (None, "token expired") if self._clock() >= claims.expires else (claims, None)

    def _signature(self, payload: str) -> bytes:
        return hmac.new(self._secret, payload.encode(), hashlib.sha256).digest()

    def make_token(self, subject: str, role: str, scope: dict[str, str], seconds: float) -> str:
        """A signed token for `role`, valid for `seconds`."""
        now = int(self._clock())
        claims = Claims(subject, role, scope, issued=now, expires=now + int(seconds)).to_wire()
        payload = _encode_base64(json.dumps(claims).encode())
        return f"{payload}.{_encode_base64(self._signature(payload))}"

    def is_near(self, call: DaemonRequest) -> bool:
        """Whether a caller needs no credential, because it is on this machine and the mode trusts such callers."""
        return self.mode == "hybrid" and call.peer in _LOOPBACK

    def permission_problem(self, call: DaemonRequest, permission: str) -> DaemonAnswer | None:
        """The 403 for a bearer without `permission`, else None."""
        claims = call.claims
        if self.mode == "local" or (claims is None and self.is_near(call)):
            return None
        if claims is None:
            return refusal(403, "authentication required")
        if permission not in PERMISSIONS.get(claims.role, ()):
            return refusal(403, f"role '{claims.role}' lacks '{permission}' permission")
        if claims.permissions and permission not in claims.permissions:
            return refusal(403, f"credential lacks '{permission}' permission")
        return None

    def rate_problem(self, call: DaemonRequest, operation: str) -> DaemonAnswer | None:
        """The 429 for a bearer who used `operation` too often within a minute, else None. Counts this use."""
        if self.mode == "local":
            return None
        name = f"{call.claims.subject if call.claims else 'anonymous'}:{operation}"
        now = self._clock()
        begin, count = self._windows.get(name, (now, 0))
        if now - begin >= _WINDOW_SECONDS:
            begin, count = now, 0
        if count >= self._limits[operation]:
            return rate_limited(begin + _WINDOW_SECONDS, now)
        self._windows[name] = (begin, count + 1)
        return None

    def demand_write(self, claims: Claims | None, agent: str, project: Any) -> None:
        """Raise RefusedError unless the bearer may save for `agent` in `project`: in its own, if it has one."""
        if claims is None:
            return
        own = claims.scope.get("project")
        if claims.role != "admin" and own and project != own:
            raise RefusedError(refusal(403, f"scope restricted to project '{own}'"))
        self._demand_scope(claims, agent=agent, project=project)

    def scoped_agent(self, claims: Claims | None, requested: str | None) -> str:
        """The agent of a request, else of the credential. Raises RefusedError if the credential does not cover it."""
        agent = js.text_or_none(requested) or (claims.scope.get("agent") if claims else None) or "default"
        self._demand_scope(claims, agent=agent)
        return agent

    def scoped_project(self, claims: Claims | None, requested: str | None) -> str | None:
        """The project of a request, else of the credential. Raises RefusedError if the credential does not cover it."""
        project = js.text_or_none(requested) or (claims.scope.get("project") if claims else None)
        if project:
            self._demand_scope(claims, project=project)
        return project

    def _demand_scope(self, claims: Claims | None, **target: Any) -> None:
        if self.mode == "local" or (claims and claims.role == "admin"):
            return
        if claims is None and self.mode != "hybrid":
            raise RefusedError(refusal(403, "authentication required"))
        for name in ("project", "agent"):
            own, wanted = claims.scope.get(name) if claims else None, target.get(name)
            if own and wanted and own != wanted:
                raise RefusedError(refusal(403, f"scope restricted to {name} '{own}'"))

    def make_key(self, name: str, **traits: Any) -> dict[str, Any]:
        """A new API key with its traits; no other answer shows its `key`. Raises ValueError for a bad expiry."""
        expires = js.text_or_none(traits.get("expiresAt"))
        moment = js.read_moment(expires)
        if expires and moment is None:
            raise ValueError("expiresAt must be a valid ISO timestamp")
        prefix, salt = secrets.token_hex(6), secrets.token_hex(16)
        key = f"{_PREFIX}{prefix}_{_encode_base64(secrets.token_bytes(32))}"
        connector = js.text_or_none(traits.get("connector"))
        harness = js.text_or_none(traits.get("harness")) or connector
        given = [item for item in traits.get("permissions") or () if item in PERMISSIONS["admin"]]
        self._store.run(
            f"INSERT INTO api_keys VALUES ({','.join('?' * 16)})",
            f"key_{_encode_base64(secrets.token_bytes(12))}", prefix, name, _hash(key, salt), salt,
            traits.get("role") or "agent",
            json.dumps(traits.get("scope") or {}), json.dumps(given or (_CONNECTOR if connector or harness else ())),
            connector, harness, js.text_or_none(traits.get("agentId")), json.dumps(traits.get("allowedProjects") or []),
            js.iso(self._clock()), None, None, None if moment is None else js.iso(moment),
        )  # fmt: skip
        row = self._store.row("SELECT * FROM api_keys WHERE prefix = ?", prefix)
        return {**_key_to_wire(row), "key": key} if row else {}

    def keys(self) -> list[dict[str, Any]]:
        """Every API key without its secret, newest first."""
        return [
            _key_to_wire(row) for row in self._store.rows("SELECT * FROM api_keys ORDER BY created_at DESC, rowid DESC")
        ]

    def revoke(self, name: str) -> dict[str, Any] | None:
        """Revoke the key of this id or prefix; None when no key has it."""
        self._store.run(
            "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ? OR prefix = ?",
            js.iso(self._clock()), name, name,
        )  # fmt: skip
        row = self._store.row("SELECT * FROM api_keys WHERE id = ? OR prefix = ?", name, name)
        return _key_to_wire(row) if row else None


def rate_limited(reset: float, now: float) -> DaemonAnswer:
    """The 429 of a limit that is lifted at `reset`; `retryAfter` is that moment in milliseconds."""
    body = {"error": "rate limit exceeded", "retryAfter": int(reset * 1000)}
    return DaemonAnswer(body, 429, {"retry-after": str(max(0, math.ceil(reset - now)))})


def lost_refusal() -> DaemonAnswer:
    """The 500 that a caller gets in place of a refusal if the real daemon's check loses the refusal."""
    return DaemonAnswer(None, 500, text="Internal Server Error", bare=True)


def _unauthorised(error: str) -> DaemonAnswer:
    return DaemonAnswer({"error": error}, 401, {"www-authenticate": "Bearer"})


def _bearer(header: str | None) -> str | None:
    parts = (header or "").split(" ")
    return parts[1] if len(parts) == 2 and parts[0] == "Bearer" and parts[1] else None


def _is_open(call: DaemonRequest) -> bool:
    """Whether a request needs no credential: it signs in, or asks for a page."""
    if call.path in _OPEN or call.path.startswith(("/api/auth/sso/", "/api/auth/saml/")):
        return True
    if call.method not in ("GET", "HEAD") or call.path.startswith(("/api/", "/memory/", "/v1/")) or call.path == "/mcp":
        return False
    return call.path == "/" or "." in call.path or "text/html" in (call.header("accept") or "")


def _hash(key: str, salt: str) -> str:
    # One round is enough here: the keys are random, made for a test run, and their hashes never leave its workspace.
    return hashlib.sha256(f"{salt}:{key}".encode()).hexdigest()


def _encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode_base64(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return b""


def _claims_of(row: sqlite3.Row) -> Claims:
    begin, end = js.read_moment(row["created_at"]), js.read_moment(row["expires_at"])
    return Claims(
        f"api-key:{row['id']}", row["role"], json.loads(row["scope_json"]), tuple(json.loads(row["permissions_json"])),
        int(begin or 0), FAR_FUTURE if end is None else int(end),
    )  # fmt: skip


def _key_to_wire(row: sqlite3.Row) -> dict[str, Any]:
    return {
        "id": row["id"], "prefix": row["prefix"], "name": row["name"], "role": row["role"],
        "scope": json.loads(row["scope_json"]), "permissions": json.loads(row["permissions_json"]),
        "connector": row["connector"], "harness": row["harness"], "agentId": row["agent_id"],
        "allowedProjects": json.loads(row["allowed_projects_json"] or "[]"), "createdAt": row["created_at"],
        "lastUsedAt": row["last_used_at"], "revokedAt": row["revoked_at"], "expiresAt": row["expires_at"],
    }  # fmt: skip
