"""Handlers of `auth/`: who the caller is, tokens, API keys."""

from __future__ import annotations

from typing import Final

from signet_conformance.daemon import js
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.auth import ROLES
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, demand, refusal

_TOKEN_SECONDS: Final = 7 * 24 * 3600


_PROVIDERS: Final = (
    {"id": "password", "type": "password", "enabled": False, "username": "admin"},
    {"id": "sso", "type": "oidc", "enabled": False, "startPath": "/api/auth/sso/start"},
    {"id": "saml", "type": "saml", "enabled": False, "startPath": "/api/auth/saml/start"},
)


def whoami(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """GET auth/whoami: the claims of the bearer's token. API keys have no effect here."""
    known, mode = call.claims is not None, daemon.auth.mode
    identity = {"authenticated": known, "claims": call.claims.to_wire() if call.claims else None, "mode": mode}
    if not daemon.behaviour.api_keys:
        return DaemonAnswer(identity)
    near = daemon.auth.is_near(call) and not known
    access = {"trustedLocal": near, "effectiveAccess": mode == "local" or known or near}
    return DaemonAnswer({**identity, **access, "providers": _PROVIDERS})


def auth_methods(daemon: Daemon, _call: DaemonRequest) -> DaemonAnswer:
    """GET auth/methods."""
    return DaemonAnswer({"mode": daemon.auth.mode, "providers": _PROVIDERS})


def login(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST auth/login: always refused, as no password is set here."""
    limited = daemon.auth.rate_problem(call, "login")
    if limited:
        return limited
    demand(daemon.auth.mode != "local", "auth secret not available")
    body = call.json_record("invalid request body")
    demand(body, "invalid request body")
    for name, most in (("username", 128), ("password", 1024)):
        demand(isinstance(body.get(name), str) and 0 < len(body[name]) <= most, f"{name} is required")
    return refusal(503, "password login is not configured")


def make_token(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST auth/token: a signed token for a role."""
    demand(daemon.auth.mode != "local", "auth secret not available (local mode?)")
    body = call.json_record("invalid request body")
    role = str(body.get("role"))
    demand(role in ROLES, f"role must be one of: {', '.join(ROLES)}")
    given = body.get("ttlSeconds")
    seconds = given if js.is_number(given) and given > 0 else _TOKEN_SECONDS
    scope = body.get("scope")
    token = daemon.auth.make_token(f"token:{role}", role, scope if isinstance(scope, dict) else {}, seconds)
    return DaemonAnswer({"token": token, "expiresAt": js.iso(daemon.clock() + seconds)})


def list_keys(daemon: Daemon, _call: DaemonRequest) -> DaemonAnswer:
    """GET auth/api-keys."""
    return DaemonAnswer({"apiKeys": daemon.auth.keys()})


def make_key(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST auth/api-keys: 201 with the key, which no other answer shows."""
    body = call.json_record("invalid request body")
    name, role = js.text_or_none(body.get("name")) or "", body.get("role")
    demand(name, "name is required")
    demand(not isinstance(role, str) or role in ROLES, f"role must be one of: {', '.join(ROLES)}")
    texts = ("role", "connector", "harness", "agentId", "expiresAt")
    kinds = {**dict.fromkeys(texts, str), "scope": dict, "permissions": list, "allowedProjects": list}
    traits = {key: body[key] for key, kind in kinds.items() if isinstance(body.get(key), kind)}
    try:
        return DaemonAnswer({"apiKey": daemon.auth.make_key(name, **traits)}, 201)
    except ValueError as problem:
        return refusal(400, str(problem))


def revoke_key(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """DELETE auth/api-keys/:id."""
    revoked = daemon.auth.revoke(call.params["id"])
    return DaemonAnswer({"apiKey": revoked}) if revoked else refusal(404, "API key not found")
