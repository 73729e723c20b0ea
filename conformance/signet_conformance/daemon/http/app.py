"""The embedded daemon as an ASGI application.

It checks a request in the real daemon's order: Host, Origin, size, CORS preflight, shutdown, credentials, permissions;
then it routes the request to a handler. `routes.json` has the routes in the daemon's order, each with its handler or
answer, and the permission that it needs.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import ipaddress
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from signet_conformance.daemon import js
from signet_conformance.daemon.behaviour import Behaviour
from signet_conformance.daemon.handlers import canned
from signet_conformance.daemon.js import Clock
from signet_conformance.daemon.state import Daemon, DaemonSettings
from signet_conformance.daemon.state.auth import lost_refusal
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, RefusedError, plain, refusal

Handler: TypeAlias = "Callable[[Daemon, DaemonRequest], DaemonAnswer | Awaitable[DaemonAnswer]]"


@dataclasses.dataclass(frozen=True)
class RequiredPermission:
    """The permission that a caller needs, and the name of the `rate` limit on its calls.

    With `loses_answer` the caller gets a 500 in place of the refusal, as from the real daemon.
    """

    permission: str
    rate: str | None = None
    loses_answer: bool = False


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """One route. `failure` is the error in the JSON answer to a crash; without it, that answer is plain text.

    `right` applies to every method on the path, since the real daemon checks it before it looks for a route. `only`
    names the trait of `Behaviour` of the versions that have the route (None: all).
    """

    method: str
    path: str
    handler: Handler
    failure: str | None = None
    only: str | None = None
    right: RequiredPermission | None = None


@dataclasses.dataclass(frozen=True)
class GuardedArea:
    """Paths that need a permission for these `methods` (empty: all), whether or not a route exists."""

    path: str
    right: RequiredPermission
    methods: Sequence[str] = ()
    only: str | None = None


def _pattern_of(path: str) -> re.Pattern[str]:
    """The expression for a path: ``:name`` matches one segment, ``*`` at the end anything."""
    text = re.sub(r":(\w+)", r"(?P<\1>[^/]+)", path.replace(".", r"\."))
    return re.compile(text.removesuffix("/*") + "(?:/.*)?" if text.endswith("/*") else text)


_TABLE: Final = json.loads(Path(__file__).with_name("routes.json").read_bytes())
_RIGHTS: Final = {name: RequiredPermission(**right) for name, right in _TABLE["rights"].items()}


def _endpoint(row: Mapping[str, Any]) -> Endpoint:
    right = None if "right" not in row else _RIGHTS[row["right"]]
    return Endpoint(row["method"], row["path"], _handler(row), row.get("failure"), row.get("only"), right)


def _handler(row: Mapping[str, Any]) -> Handler:
    """The function below `handlers` that a row names, else a handler that gives the answer in the row."""
    if "handler" not in row:
        answer = {name: row[name] for name in ("body", "status", "headers", "text") if name in row}
        return canned.CannedHandler(DaemonAnswer(**answer), row.get("scoped", False))
    module, _, function = row["handler"].rpartition(".")
    handler: Handler = getattr(import_module(f"signet_conformance.daemon.handlers.{module}"), function)
    return handler


#: Every route; the first that matches answers. memory/:id hides a GET memory/search, as in the real daemon. The answers
#: in the table are those of a daemon without marketplace servers, standalone entities and messages between agents.
ROUTES: Final = tuple(_endpoint(row) for row in _TABLE["routes"])

#: The rights that hold for more than one route, checked after those of the routes.
AREAS: Final = tuple(GuardedArea(**{**row, "right": _RIGHTS[row["right"]]}) for row in _TABLE["areas"])

#: The expression of each path. Compiled with this module, which the fork server imports once for all its daemons.
PATTERNS: Final = {path: _pattern_of(path) for path in {each.path for each in ROUTES} | {each.path for each in AREAS}}

_METHODS: Final = "GET,HEAD,PUT,POST,DELETE,PATCH"
_TEXT: Final = "text/plain; charset=UTF-8"
_PROMPT_PATH: Final = "/api/hooks/user-prompt-submit"
#: How long a prompt takes, as in a real daemon: without it, prompts would not overlap and never reach the limit.
_PROMPT_SECONDS: Final = 0.02
_NOT_FOUND: Final = "404 Not Found"
#: Escapes of reserved characters and of the percent sign. They are decoded only after the path is split into segments.
_RESERVED: Final = re.compile(rb"%(?:2[3456BCF]|3[ABDF]|40)", re.IGNORECASE)


class DaemonApp:
    """The ASGI application; `daemon` holds its state."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        served = [route for route in ROUTES if route.only is None or getattr(daemon.behaviour, route.only)]
        self._routes = [(route, PATTERNS[route.path]) for route in served]
        areas = [area for area in AREAS if area.only is None or getattr(daemon.behaviour, area.only)]
        guarded_routes = [GuardedArea(route.path, route.right) for route in served if route.right]
        self._areas = [(area, PATTERNS[area.path]) for area in (*guarded_routes, *areas)]
        self._prompts_in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request = Request(_with_trimmed_headers(scope), receive)
        try:
            response = await self._respond(request)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        # Browsers always send a Host; a client of HTTP/1.0 need not.
        host = request.headers.get("host")
        if not self.daemon.settings.allow_remote and host is not None and not _is_this_machine(host):
            return _response(refusal(403, "host not allowed"), request.method)
        if _is_from_foreign_page(request):
            return _response(refusal(403, "origin not allowed"), request.method, {"connection": "close"})
        body, limit = bytearray(), self.daemon.behaviour.body_limit
        async for piece in request.stream():
            body += piece
            if limit is not None and len(body) > limit:
                return _response(refusal(413, "payload too large"), request.method, {"connection": "close"})
        if request.method == "OPTIONS":
            return _preflight(request, self.daemon.behaviour)
        call = _daemon_request(request, bytes(body))
        answer = await self._admit_and_answer(call)
        if answer.bare:
            return _response(answer, request.method)
        cors = _cors(request, self.daemon.behaviour) | dict(answer.headers)
        return _response(dataclasses.replace(answer, headers=cors), request.method)

    async def _admit_and_answer(self, call: DaemonRequest) -> DaemonAnswer:
        if self.daemon.settings.shutting_down and call.path != "/health":
            return refusal(503, "shutting down")
        claims, refused = self.daemon.auth.admit(call)
        if refused:
            return refused
        call = dataclasses.replace(call, claims=claims)
        return self._permission_refusal(call) or await self._route(call)

    def _permission_refusal(self, call: DaemonRequest) -> DaemonAnswer | None:
        for area, pattern in self._areas:
            if (area.methods and call.method not in area.methods) or not pattern.fullmatch(call.path):
                continue
            denied = self.daemon.auth.permission_problem(call, area.right.permission)
            if denied:
                return lost_refusal() if area.right.loses_answer else denied
            if area.right.rate and self.daemon.auth.rate_problem(call, area.right.rate):
                # The real daemon loses the answer of its rate check on every route that has one.
                return lost_refusal()
        if call.path == "/api/cross-agent/messages" and call.method == "POST":
            return self.daemon.auth.rate_problem(call, "cross-agent-message")
        return None

    async def _route(self, call: DaemonRequest) -> DaemonAnswer:
        method = "GET" if call.method == "HEAD" else call.method
        for route, pattern in self._routes:
            path_match = pattern.fullmatch(call.path) if route.method == method else None
            if path_match:
                params = {name: _decode(text) for name, text in path_match.groupdict().items()}
                return await self._handle(route, dataclasses.replace(call, params=params))
        return plain(404, _NOT_FOUND)

    async def _handle(self, route: Endpoint, call: DaemonRequest) -> DaemonAnswer:
        limit = self.daemon.behaviour.prompt_limit
        if limit is None or route.path != _PROMPT_PATH:
            return await _call_handler(route, self.daemon, call)
        if self._prompts_in_flight >= limit:
            return refusal(503, f"Too many concurrent prompt submissions (max {limit}); retry shortly")
        self._prompts_in_flight += 1
        try:
            await asyncio.sleep(_PROMPT_SECONDS)
            return await _call_handler(route, self.daemon, call)
        finally:
            self._prompts_in_flight -= 1


async def _call_handler(route: Endpoint, daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    try:
        answer = route.handler(daemon, call)
        return await answer if inspect.isawaitable(answer) else answer
    except RefusedError as refused:
        return refused.answer
    except Exception:  # noqa: BLE001 # the real daemon answers 500 to any crash of a handler
        return refusal(500, route.failure) if route.failure else plain(500, "Internal Server Error")


def _with_trimmed_headers(scope: Scope) -> Scope:
    """The scope without blanks at the ends of header values: they are not part of a value (RFC 9110)."""
    return {**scope, "headers": [(name, value.rstrip(b" \t")) for name, value in scope["headers"]]}


def _daemon_request(request: Request, body: bytes) -> DaemonRequest:
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    # The first of several parameters of one name counts.
    query = dict(reversed(request.query_params.multi_items()))
    peer = request.client.host if request.client else ""
    return DaemonRequest(request.method, _path(raw.partition(b"?")[0]), dict(request.headers), query, body, peer=peer)


def _path(raw: bytes) -> str:
    """The path with its escapes decoded, except those that match _RESERVED."""
    protected = _RESERVED.sub(lambda reserved: reserved[0].replace(b"%", b"%25"), raw)
    return unquote_to_bytes(protected).decode("utf-8", "replace")


def _decode(segment: str) -> str:
    return unquote_to_bytes(segment).decode("utf-8", "replace")


def _cors(request: Request, behaviour: Behaviour) -> dict[str, str]:
    if behaviour.open_to_origins:
        return {"access-control-allow-origin": "*"}
    headers = {"access-control-allow-credentials": "true", "vary": "Origin"}
    origin = request.headers.get("origin")
    return headers | ({"access-control-allow-origin": origin} if origin in _OWN_PAGES else {})


def _preflight(request: Request, behaviour: Behaviour) -> Response:
    # The releases before API keys also offer QUERY.
    methods = _METHODS if behaviour.api_keys else f"{_METHODS},QUERY"
    headers = _cors(request, behaviour) | {"access-control-allow-methods": methods, "content-type": _TEXT}
    requested = request.headers.get("access-control-request-headers")
    if requested:
        vary = [name for name in (headers.get("vary"), "Access-Control-Request-Headers") if name]
        headers |= {"access-control-allow-headers": re.sub(r"\s*,\s*", ",", requested), "vary": ", ".join(vary)}
    return Response(status_code=204, headers=headers)


def _response(answer: DaemonAnswer, method: str, more: dict[str, str] | None = None) -> Response:
    body = js.write_json(answer.body) if answer.text is None else answer.text.encode()
    kind = "application/json" if answer.text is None else _TEXT
    headers = {"content-type": kind} | dict(answer.headers) | (more or {})
    return Response(b"" if method == "HEAD" else body, answer.status, headers)


def create_app(settings: DaemonSettings, clock: Clock = time.time) -> DaemonApp:
    """An embedded daemon as an ASGI application, for a server or for a client in the same process.

    Raises `UsageError` if the settings or the workspace cannot be used. Close it with `await app.daemon.close()`.
    """
    return DaemonApp(Daemon(settings, clock))


_LOCAL_HOST: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?", re.IGNORECASE)
_PORT: Final = re.compile(r":\d+\Z")
#: The origins of the daemon's own user interfaces. The real daemon lets them read its answers.
_OWN_PAGES: Final = (
    *(f"http://{host}:{port}" for host in ("localhost", "127.0.0.1") for port in (3850, 5173)),
    "app://signet",
)


def _is_this_machine(host: str) -> bool:
    """Whether a Host header names this machine. In a DNS rebinding attack it names the attacker's domain."""
    return _LOCAL_HOST.fullmatch(host) is not None


def _is_from_foreign_page(request: Request) -> bool:
    """Whether a page of another origin sent the request. Programs other than browsers send no Origin.

    GET /health is open to every page, as in the real daemon: it changes nothing.
    """
    if request.method in ("GET", "HEAD") and request.url.path == "/health":
        return False
    sites = {site.strip().lower() for site in request.headers.getlist("sec-fetch-site")}
    if "cross-site" in sites:
        return True
    origins = request.headers.getlist("origin")
    if not origins:
        # A browser sends no Origin for an image or a script in a page, such as one from another port of this machine.
        return "same-site" in sites
    host = request.headers.get("host", "").lower()
    own = f"http://{host}" if _is_localhost_or_address(host) else None
    return any(origin not in _OWN_PAGES and origin.lower() != own for origin in origins)


def _is_localhost_or_address(host: str) -> bool:
    """Whether a Host header is `localhost` or an IP address. A domain is not trusted: its owner may point it here."""
    name = _PORT.sub("", host)
    try:
        return name == "localhost" or bool(ipaddress.ip_address(name.removeprefix("[").removesuffix("]")))
    except ValueError:
        return False
