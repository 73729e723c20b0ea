"""The server as an ASGI application: the vendors' paths, and the server's own to read requests and to add turns."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from signet_reference_harness.documents import DocumentError, parse_document
from signet_reference_harness.llm_server import listings
from signet_reference_harness.llm_server.kept import Kept, Requests
from signet_reference_harness.llm_server.playback import Playback
from signet_reference_harness.llm_server.protocols import APIS, Api
from signet_reference_harness.llm_server.reply import Reply
from signet_reference_harness.llm_server.script import Failure, Script, Turns
from signet_reference_harness.llm_server.sending import ClientClosedError, Sender, send_failure, send_turn

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MOST_BODY: Final = 64 * 1024 * 1024
LONGEST_WAIT_S: Final = 60.0
_LOCAL: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?", re.IGNORECASE)
_OWN_PATHS: Final = ("/requests", "/turns", "/script")


class ScriptedModelApp:
    """Answers from a script; keeps every request."""

    def __init__(self, script: Script) -> None:
        self._playback = Playback(script)
        self._requests = Requests()
        self._apis = {api.path: api for api in APIS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            response = _refused(request) or await self._served(request, receive, send)
        except ClientDisconnect:
            return
        if response is not None:
            await response(scope, receive, send)

    async def _served(self, request: Request, receive: Receive, send: Send) -> Response | None:
        """The answer; None when it was sent already."""
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BODY:
                return _problem(413, f"the request is larger than {MOST_BODY} bytes", {"connection": "close"})
        if request.url.path in _OWN_PATHS:
            return await self._own(request, bytes(body))
        url = request.url
        kept = self._requests.begin(request.method, url.path, url.query, request.headers.items(), bytes(body))
        try:
            api = self._apis.get(url.path)
            if api is None or request.method != "POST":
                response = self._listed(request, kept)
                kept.status, kept.outcome = response.status_code, "complete"
                return response
            await self._model(api, kept, receive, send)
        finally:
            kept.ended = time.time()
        return None

    async def _model(self, api: Api, kept: Kept, receive: Receive, send: Send) -> None:
        kept.api = api.name
        sender = Sender(kept, receive, send)
        try:
            body = _object(kept.body)
            if isinstance(body, str):
                await self._requests.announce()
                await send_failure(sender, api, Failure(status=400, message=body), {})
            else:
                kept.asked = api.read(body)
                await self._requests.announce()
                played = await sender.or_gone(asyncio.ensure_future(self._playback.next(kept.asked)))
                kept.turn = played.place
                fault = played.turn.fault
                stops = fault is None or fault.kind != "end"
                reply = Reply(played.turn, kept.asked, body, kept.number, time.time(), stops)
                await send_turn(sender, api, reply, kept)
            kept.outcome = kept.outcome or "complete"
        except ClientClosedError:
            kept.outcome = "client_closed"
        finally:
            sender.close()

    def _listed(self, request: Request, kept: Kept) -> Response:
        body = _object(kept.body)
        asked = {} if isinstance(body, str) else body
        listed = listings.answer(request.method, request.url.path, request.headers, asked, self._playback.script.models)
        if listed is None:
            return _problem(404, f"this server has no {request.method} {request.url.path}", {})
        status, value = listed
        return Response(value) if isinstance(value, str) else JSONResponse(value, status)

    async def _own(self, request: Request, body: bytes) -> Response:
        what = (request.method, request.url.path)
        try:
            if what == ("POST", "/turns"):
                await self._playback.add(parse_document(Turns, body, "POST /turns").turns)
                return JSONResponse({"left": self._playback.left})
            if what == ("PUT", "/script"):
                self._playback.replace(parse_document(Script, body, "PUT /script"))
                return JSONResponse({"left": self._playback.left})
        except DocumentError as error:
            return _problem(400, str(error), {})
        if what == ("GET", "/script"):
            return JSONResponse({"left": self._playback.left})
        if what == ("DELETE", "/requests"):
            return JSONResponse({"requests": [], "last": self._requests.forget()})
        if what == ("GET", "/requests"):
            after, wait_s = (_number(request.query_params.get(name)) for name in ("after", "wait_s"))
            if after is None or wait_s is None:
                return _problem(400, "after and wait_s are numbers", {})
            kept = await self._requests.after(int(after), min(wait_s, LONGEST_WAIT_S))
            shown = [each.to_json() for each in kept]
            return JSONResponse({"requests": shown, "dropped": self._requests.dropped})
        return _problem(405, f"{request.url.path} knows no {request.method}", {})


def _refused(request: Request) -> Response | None:
    """The refusal of a page that a browser shows: nothing but programs of this machine may ask."""
    host = request.headers.get("host", "")
    if not _LOCAL.fullmatch(host):
        return _problem(403, f"the host {host[:80]!r} is not this machine", {"connection": "close"})
    origins = request.headers.getlist("origin")
    if any(origin != f"http://{host}" for origin in origins) or request.headers.get("sec-fetch-site") == "cross-site":
        return _problem(403, "the request comes from a foreign page", {"connection": "close"})
    return None


def _problem(status: int, message: str, headers: Mapping[str, str]) -> Response:
    return JSONResponse({"error": {"type": "signet_llm", "message": message}}, status, dict(headers))


def _object(body: bytes) -> dict[str, Any] | str:
    """The object that a body holds, or what is wrong with it."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        return f"the body is not JSON: {error}"[:200]
    return value if isinstance(value, dict) else "the body is not a JSON object"


def _number(text: str | None) -> float | None:
    try:
        number = float(text or 0)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
