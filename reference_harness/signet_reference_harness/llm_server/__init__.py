"""The server as an ASGI application: the vendors' paths, and the server's own to read requests and to add turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from signet_reference_harness.documents import DocumentError, parse_document
from signet_reference_harness.llm_server.playback import Playback
from signet_reference_harness.llm_server.protocols import APIS, Api, anthropic_messages
from signet_reference_harness.llm_server.reply import TurnReply
from signet_reference_harness.llm_server.requests import Kept, Requests, parse_json
from signet_reference_harness.llm_server.script import ErrorAnswer, Script, Turns
from signet_reference_harness.llm_server.sending import ClientClosedError, Sender, send_failure, send_turn
from signet_reference_harness.local_server import body_within, foreign, json_response

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MOST_BODY: Final = 64 * 1024 * 1024
_CLOSE: Final = {"connection": "close"}


class ScriptedModelApp:
    """Answers from a script; keeps every request."""

    def __init__(self, script: Script) -> None:
        self._playback = Playback(script)
        self._requests = Requests()
        self._control = ScriptControl(self._playback, self._requests)
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
                response = self._vendor_response(request, kept)
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
                await send_failure(sender, api, ErrorAnswer(status=400, message=body), {})
            else:
                kept.asked = api.parse(body)
                # Decided before the request is announced: turns that a listener adds then must not answer this one.
                ruled = self._playback.ruled(kept.asked)
                kept.turn = None if ruled is None else ruled.place
                await self._requests.announce()
                played = ruled or await sender.or_gone(asyncio.ensure_future(self._playback.next(kept.number)))
                kept.turn = played.place
                fault = played.turn.fault
                stops = fault is None or fault.kind != "end"
                reply = TurnReply(played.turn, kept.asked, body, len(kept.body), kept.number, time.time(), stops)
                await send_turn(sender, api, reply, kept)
            kept.outcome = kept.outcome or "complete"
        except ClientClosedError:
            kept.outcome = "client_closed"
        finally:
            sender.close()

    def _vendor_response(self, request: Request, kept: Kept) -> Response:
        body = _object(kept.body)
        asked = {} if isinstance(body, str) else body
        models = self._playback.script.models
        if request.method == "POST" and request.url.path == anthropic_messages.COUNT_PATH:
            return json_response(anthropic_messages.count_tokens(len(kept.body)))
        listed = _vendor_answer(request.method, request.url.path, request.headers, asked, models)
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


LONGEST_WAIT_S: Final = 60.0


class ScriptControl:
    """Answers requests to the server's own paths."""

    def __init__(self, playback: Playback, requests: Requests) -> None:
        self._playback = playback
        self._requests = requests

    async def answer(self, request: Request, body: bytes) -> Response:
        """The answer to a request for one of the paths."""
        act = ROUTES.get((request.method, request.url.path))
        if act is None:
            return problem(405, f"{request.url.path} knows no {request.method}")
        try:
            return json_response(await act(self, request, body))
        except DocumentError as error:
            return problem(400, str(error))

    async def list_requests(self, request: Request, body: bytes) -> Any:
        """The requests after a number; with wait_s the first of them is waited for."""
        del body
        after, wait_s = (_number(request, name) for name in ("after", "wait_s"))
        kept = await self._requests.after(int(after), min(wait_s, LONGEST_WAIT_S))
        return {"requests": [each.to_json() for each in kept], "dropped": self._requests.dropped}

    async def forget_requests(self, request: Request, body: bytes) -> Any:
        """Forget the requests; the number of the last one is what the next are after."""
        del request, body
        return {"requests": [], "last": self._requests.forget()}

    async def tell_script(self, request: Request, body: bytes) -> Any:
        """How many turns are left."""
        del request, body
        return {"left": self._playback.turns_left}

    async def replace_script(self, request: Request, body: bytes) -> Any:
        """Play another script."""
        self._playback.replace(parse_document(Script, body, "PUT /script"))
        return await self.tell_script(request, body)

    async def add_turns(self, request: Request, body: bytes) -> Any:
        """Add turns to the script."""
        added = parse_document(Turns, body, "POST /turns")
        await self._playback.add(added.turns, added.request)
        return await self.tell_script(request, body)


ROUTES: Final[Mapping[tuple[str, str], Callable[[ScriptControl, Request, bytes], Awaitable[Any]]]] = {
    ("GET", "/requests"): ScriptControl.list_requests,
    ("DELETE", "/requests"): ScriptControl.forget_requests,
    ("GET", "/script"): ScriptControl.tell_script,
    ("PUT", "/script"): ScriptControl.replace_script,
    ("POST", "/turns"): ScriptControl.add_turns,
}
PATHS: Final = frozenset(path for _, path in ROUTES)


def _number(request: Request, name: str) -> float:
    text = request.query_params.get(name, "0")
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise DocumentError(f"GET /requests: {name} is {text[:60]!r}, expected a number of 0 or more")
    return number


def problem(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error of the server's own."""
    return json_response({"error": {"type": "signet_llm", "message": message}}, status, headers)


CREATED: Final = 1_735_689_600
CREATED_AT: Final = "2025-01-01T00:00:00Z"
OLLAMA_VERSION: Final = "0.12.0"
CONTEXT_LENGTH: Final = 131_072
_DETAILS: Final = {
    "parent_model": "",
    "format": "gguf",
    "family": "scripted",
    "families": ["scripted"],
    "parameter_size": "1B",
    "quantization_level": "F16",
}
_MODELS: Final = "/v1/models"
Listed = tuple[int, Any]


def _vendor_answer(
    method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any], models: Sequence[str]
) -> Listed | None:
    """The status and JSON value (or text) that answer a request; None for a path that no vendor has."""
    what = ("GET" if method == "HEAD" else method, path)
    if what[0] == "GET" and (path == _MODELS or path.startswith(f"{_MODELS}/")):
        describe = _anthropic if "anthropic-version" in headers else _openai
        if path == _MODELS:
            return 200, _list([describe(model) for model in models], headers)
        return 200, describe(path.removeprefix(f"{_MODELS}/"))
    return _ollama(what, body, models)


def _ollama(what: tuple[str, str], body: Mapping[str, Any], models: Sequence[str]) -> Listed | None:
    if what == ("GET", "/"):
        return 200, "Ollama is running"
    if what == ("GET", "/api/version"):
        return 200, {"version": OLLAMA_VERSION}
    if what == ("GET", "/api/tags"):
        return 200, {"models": [_tag(model) for model in models]}
    if what == ("GET", "/api/ps"):
        return 200, {"models": []}
    if what == ("POST", "/api/show"):
        model = str(body.get("model") or body.get("name") or "")
        known = {name for each in models for name in (each, each.removesuffix(":latest"), f"{each}:latest")}
        return (200, _model_info()) if model in known else (404, {"error": f"model '{model}' not found"})
    return None


def _tag(model: str) -> dict[str, Any]:
    name = model if ":" in model else f"{model}:latest"
    return {"name": name, "model": name, "modified_at": CREATED_AT, "size": 0, "digest": "0" * 64, "details": _DETAILS}


def _model_info() -> dict[str, Any]:
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": _DETAILS,
        "model_info": {"general.architecture": "scripted", "scripted.context_length": CONTEXT_LENGTH},
        "capabilities": ["completion", "tools", "thinking"],
        "modified_at": CREATED_AT,
    }


def _list(described: list[dict[str, Any]], headers: Mapping[str, str]) -> dict[str, Any]:
    if "anthropic-version" not in headers:
        return {"object": "list", "data": described}
    return {"data": described, "has_more": False, "first_id": described[0]["id"], "last_id": described[-1]["id"]}


def _anthropic(model: str) -> dict[str, Any]:
    return {"type": "model", "id": model, "display_name": model, "created_at": CREATED_AT, "lifecycle": "active"}


def _openai(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": CREATED, "owned_by": "signet"}
