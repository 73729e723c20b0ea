"""The server as an ASGI application: the vendors' paths, and the server's own to read requests and to add turns."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from signet_reference_harness.llm_server import listings
from signet_reference_harness.llm_server.control import PATHS, Control, json_response, problem
from signet_reference_harness.llm_server.kept import Kept, Requests, parse_json
from signet_reference_harness.llm_server.playback import Playback
from signet_reference_harness.llm_server.protocols import APIS, Api, anthropic_messages
from signet_reference_harness.llm_server.reply import Reply
from signet_reference_harness.llm_server.script import Failure, Script
from signet_reference_harness.llm_server.sending import ClientClosedError, Sender, send_failure, send_turn
from signet_reference_harness.local_server import body_within, foreign

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MOST_BODY: Final = 64 * 1024 * 1024
_CLOSE: Final = {"connection": "close"}


class ScriptedModelApp:
    """Answers from a script; keeps every request."""

    def __init__(self, script: Script) -> None:
        self._playback = Playback(script)
        self._requests = Requests()
        self._control = Control(self._playback, self._requests)
        self._apis = {api.path: api for api in APIS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            refusal = foreign(request)
            response = problem(403, refusal, _CLOSE) if refusal else await self._served(request, receive, send)
        except ClientDisconnect:
            return
        if response is not None:
            await response(scope, receive, send)

    async def _served(self, request: Request, receive: Receive, send: Send) -> Response | None:
        """The answer; None when it was sent already."""
        body = await body_within(request, MOST_BODY)
        if body is None:
            return problem(413, f"the request is larger than {MOST_BODY} bytes", _CLOSE)
        if request.url.path in PATHS:
            return await self._control.answer(request, body)
        url = request.url
        kept = self._requests.begin(request.method, url.path, url.query, request.headers.items(), body)
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
                # Known before anybody hears of the request: who decides what it is told must not decide this one.
                ruled = self._playback.ruled(kept.asked)
                kept.turn = None if ruled is None else ruled.place
                await self._requests.announce()
                played = ruled or await sender.or_gone(asyncio.ensure_future(self._playback.next(kept.number)))
                kept.turn = played.place
                fault = played.turn.fault
                stops = fault is None or fault.kind != "end"
                reply = Reply(played.turn, kept.asked, body, len(kept.body), kept.number, time.time(), stops)
                await send_turn(sender, api, reply, kept)
            kept.outcome = kept.outcome or "complete"
        except ClientClosedError:
            kept.outcome = "client_closed"
        finally:
            sender.close()

    def _listed(self, request: Request, kept: Kept) -> Response:
        body = _object(kept.body)
        asked = {} if isinstance(body, str) else body
        models = self._playback.script.models
        if request.method == "POST" and request.url.path == anthropic_messages.COUNT_PATH:
            return json_response(anthropic_messages.count_tokens(len(kept.body)))
        listed = listings.answer(request.method, request.url.path, request.headers, asked, models)
        if listed is None:
            return problem(404, f"this server has no {request.method} {request.url.path}")
        status, value = listed
        return Response(value) if isinstance(value, str) else json_response(value, status)


def _object(body: bytes) -> dict[str, Any] | str:
    """The object that a body holds, or what is wrong with it."""
    try:
        value = parse_json(body)
    except (ValueError, RecursionError) as error:
        return f"the body is not JSON: {error}"[:200]
    return value if isinstance(value, dict) else "the body is not a JSON object"
