"""The server as an ASGI application: answers at the vendors' paths, with the delays and faults of the script.

At paths of its own, clients read the requests and add turns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from signet_reference_harness.documents import DocumentError, parse_document
from signet_reference_harness.llm_server.playback import Playback, PlayedTurn
from signet_reference_harness.llm_server.protocols import APIS, anthropic_messages, vendor_answer
from signet_reference_harness.llm_server.reply import Piece, TurnReply, UnsupportedError, estimate, to_json
from signet_reference_harness.llm_server.requests import KeptRequest, Requests, parse_json
from signet_reference_harness.llm_server.script import ErrorAnswer, Script, ScriptedFault, Turns
from signet_reference_harness.local_server import answer_request, body_within, foreign, json_response

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

MOST_BODY: Final = 64 * 1024 * 1024
_CLOSE: Final = {"connection": "close"}
LONGEST_WAIT_S: Final = 60.0
ROUTES: Final = {"/requests": ("GET", "DELETE"), "/script": ("GET", "PUT"), "/turns": ("POST",)}
"""The methods of the server's own paths, for its requests and its script."""


class ScriptedModelApp:
    """Answers requests from a script, and remembers them."""

    def __init__(self, script: Script) -> None:
        self._playback = Playback(script)
        self._requests = Requests()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await answer_request(scope, receive, send, lambda request: self._serve(request, receive, send))

    async def _serve(self, request: Request, receive: Receive, send: Send) -> Response | None:
        refusal = foreign(request)
        if refusal:
            return problem(403, refusal, _CLOSE)
        body = await body_within(request, MOST_BODY)
        if body is None:
            return problem(413, f"the request is larger than {MOST_BODY} bytes", _CLOSE)
        if request.url.path in ROUTES:
            return await self._control(request, body)
        url = request.url
        kept = self._requests.begin(request.method, url.path, url.query, request.headers.items(), body)
        try:
            api = APIS.get(url.path)
            if api is None or request.method != "POST":
                response = self._vendor_response(request, kept)
                kept.status, kept.outcome = response.status_code, "complete"
                return response
            await self._model(api, kept, receive, send)
        finally:
            kept.ended = time.time()
        return None

    async def _model(self, api: ModuleType, kept: KeptRequest, receive: Receive, send: Send) -> None:
        kept.api = api.NAME
        sender = Sender(kept, receive, send)
        try:
            body = _object(kept.body)
            if isinstance(body, str):
                await self._requests.announce()
                await send_failure(sender, api, ErrorAnswer(status=400, message=body), {})
            else:
                asked = api.parse(body)
                kept.asked = asked.to_json()
                # Decided before the request is announced: turns that a listener adds then must not answer this one.
                turn_by_rule = self._playback.turn_by_rule(asked)
                kept.turn = None if turn_by_rule is None else turn_by_rule.place
                await self._requests.announce()
                played = turn_by_rule or await sender.or_gone(asyncio.ensure_future(self._playback.next(kept.number)))
                kept.turn = played.place
                fault = played.turn.fault
                stops = fault is None or fault.kind != "end"
                reply = TurnReply(played.turn, asked, body, len(kept.body), kept.number, time.time(), stops)
                await send_turn(sender, api, reply)
            kept.outcome = kept.outcome or "complete"
        except ClientClosedError:
            kept.outcome = "client_closed"
        finally:
            sender.close()

    async def _control(self, request: Request, body: bytes) -> Response:
        """Answer a request for one of the server's own paths."""
        if request.method not in ROUTES[request.url.path]:
            return problem(405, f"{request.url.path} knows no {request.method}")
        try:
            return json_response(await self._perform_control(request, body))
        except DocumentError as error:
            return problem(400, str(error))

    async def _perform_control(self, request: Request, body: bytes) -> dict[str, Any]:
        match request.method, request.url.path:
            case "GET", "/requests":
                after, wait_s = (_number(request, name) for name in ("after", "wait_s"))
                kept = await self._requests.after(int(after), min(wait_s, LONGEST_WAIT_S))
                return {"requests": [each.to_json() for each in kept], "dropped": self._requests.dropped}
            case "DELETE", _:
                return {"requests": [], "last": self._requests.forget()}
            case "PUT", _:
                await self._playback.replace(parse_document(Script, body, "PUT /script"))
            case "POST", _:
                added = parse_document(Turns, body, "POST /turns")
                await self._playback.add(added.turns, added.request)
        return {"left": len(self._playback.left)}

    def _vendor_response(self, request: Request, kept: KeptRequest) -> Response:
        body = _object(kept.body)
        members = {} if isinstance(body, str) else body
        models = self._playback.script.models
        if request.method == "POST" and request.url.path == anthropic_messages.COUNT_PATH:
            return json_response({"input_tokens": estimate(len(kept.body))})
        answer = vendor_answer(request.method, request.url.path, request.headers, members, models)
        if answer is None:
            return problem(404, f"this server has no {request.method} {request.url.path}")
        status, value = answer
        return Response(value) if isinstance(value, str) else json_response(value, status)


def _object(body: bytes) -> dict[str, Any] | str:
    """The object in a body, or a description of what is wrong."""
    try:
        value = parse_json(body)
    except (ValueError, RecursionError) as error:
        return f"the body is not JSON: {error}"[:200]
    return value if isinstance(value, dict) else "the body is not a JSON object"


JSON: Final = "application/json"


class ClientClosedError(Exception):
    """Raised when the client has closed the connection."""


class Sender:
    """Sends one answer. Each method ends early with ClientClosedError when the client leaves."""

    def __init__(self, kept: KeptRequest, receive: Receive, send: Send) -> None:
        self.kept = kept
        self._send = send
        self._gone = asyncio.ensure_future(_disconnected(receive))

    def close(self) -> None:
        """Stop watching the client."""
        self._gone.cancel()

    async def or_gone(self, task: asyncio.Task[PlayedTurn]) -> PlayedTurn:
        """The result of the task. Raises ClientClosedError if the client leaves first."""
        await asyncio.wait({task, self._gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            raise ClientClosedError
        return task.result()

    async def pause(self, milliseconds: float | None) -> None:
        """Wait, for ever if `milliseconds` is None."""
        await asyncio.wait({self._gone}, timeout=None if milliseconds is None else milliseconds / 1000)
        if self._gone.done():
            raise ClientClosedError

    async def whole(self, status: int, body: bytes, headers: Mapping[str, str], *, sent: int | None = None) -> None:
        """Send a whole body, or its first `sent` bytes."""
        await self._begin(status, {"content-type": JSON, **headers, "content-length": str(len(body))})
        await self._more(body[:sent], is_last=sent is None)

    async def begin_stream(self, status: int, media_type: str, headers: Mapping[str, str]) -> None:
        """Send the head of a streamed answer."""
        await self._begin(status, {"content-type": media_type, "cache-control": "no-cache", **headers})

    async def chunk(self, data: bytes) -> None:
        """Send bytes of a streamed answer."""
        if self._gone.done():
            raise ClientClosedError
        await self._more(data, is_last=False)

    async def end_stream(self) -> None:
        """End a streamed answer properly."""
        await self._more(b"", is_last=True)

    async def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.kept.status = status
        raw = [(name.lower().encode("latin-1"), value.encode("utf-8")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _more(self, data: bytes, *, is_last: bool) -> None:
        if data and self.kept.first_chunk is None:
            self.kept.first_chunk = time.time()
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_turn(sender: Sender, api: ModuleType, reply: TurnReply) -> None:
    """Send a turn as the answer to a request of `api`."""
    turn = reply.turn
    headers = {
        **api.headers(sender.kept.number, turn.rate_limits, datetime.now(UTC)),
        **{name.lower(): value for name, value in turn.headers.items()},
    }
    await sender.pause(turn.delay_ms)
    try:
        if api.NAME in turn.raw:
            await _send_raw(sender, api, reply, headers)
        elif turn.error is not None:
            await send_failure(sender, api, turn.error, headers)
        elif reply.asked.stream:
            await _send_stream(sender, api, reply, headers)
        else:
            await _send_whole(sender, api, reply, headers)
    except UnsupportedError as error:
        await send_failure(
            sender, api, ErrorAnswer(message=str(error), type="script_error"), {"x-should-retry": "false"}
        )


async def send_failure(sender: Sender, api: ModuleType, error: ErrorAnswer, headers: Mapping[str, str]) -> None:
    """Send an error answer in the interface's form."""
    status, body = api.failure(error)
    more = {} if error.retry_after_s is None else {"retry-after": _retry_after(error.retry_after_s)}
    if error.type == "script_ended":
        # Without this header, the vendors' packages repeat the request after a 500.
        more["x-should-retry"] = "false"
    await sender.whole(status, to_json(body), {**headers, **more})


def _retry_after(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


async def _send_raw(sender: Sender, api: ModuleType, reply: TurnReply, headers: Mapping[str, str]) -> None:
    raw = reply.turn.raw[api.NAME]
    if not (reply.asked.stream and raw.events):
        body = raw.body.encode() if isinstance(raw.body, str) else to_json(raw.body)
        await sender.whole(raw.status, body, headers)
        return
    await sender.begin_stream(raw.status, api.MEDIA_TYPE, headers)
    for event in raw.events:
        await sender.chunk(api.write(event.data, event.event))
    await sender.end_stream()


async def _send_whole(sender: Sender, api: ModuleType, reply: TurnReply, headers: Mapping[str, str]) -> None:
    fault = reply.turn.fault
    body = to_json(api.answer(reply))
    if fault is not None:
        sender.kept.outcome = fault.kind
    if fault is None or fault.kind == "end":
        await sender.whole(200, body, headers)
    elif fault.kind == "error":
        await send_failure(sender, api, fault.error, headers)
    elif fault.kind == "garbage":
        await sender.whole(200, body[: len(body) // 2] if fault.data is None else fault.data.encode(), headers)
    else:
        await sender.whole(200, body, headers, sent=len(body) // 2)
        if fault.kind == "hang":
            await sender.pause(None)


async def _send_stream(sender: Sender, api: ModuleType, reply: TurnReply, headers: Mapping[str, str]) -> None:
    pieces = tuple(api.stream(reply))
    fault = reply.turn.fault
    await sender.begin_stream(200, api.MEDIA_TYPE, headers)
    if fault is None:
        await _send_pieces(sender, pieces, reply.turn.chunk_delay_ms)
        await sender.end_stream()
        return
    place_of_fault = _place(pieces, fault.after)
    await _send_pieces(sender, pieces[:place_of_fault], reply.turn.chunk_delay_ms)
    sender.kept.outcome = fault.kind
    if fault.kind == "garbage":
        await sender.chunk((api.GARBAGE if fault.data is None else fault.data).encode())
        await _send_pieces(sender, pieces[place_of_fault:], reply.turn.chunk_delay_ms)
    await _send_rest(sender, api, fault)


async def _send_rest(sender: Sender, api: ModuleType, fault: ScriptedFault) -> None:
    if fault.kind == "error":
        await sender.chunk(api.failure_event(fault.error))
    if fault.kind == "hang":
        await sender.pause(None)
    if fault.kind != "close":
        # Without the end of an answer, the server closes the connection.
        await sender.end_stream()


def _place(pieces: tuple[Piece, ...], after: int) -> int:
    """The index at which a fault happens: after `after` deltas, or before the end of a shorter answer."""
    deltas = 0
    for place, piece in enumerate(pieces):
        if piece.kind == "end" or (piece.kind == "delta" and deltas == after):
            return place
        deltas += piece.kind == "delta"
    return len(pieces)


async def _send_pieces(sender: Sender, pieces: Iterable[Piece], chunk_delay_ms: float) -> None:
    is_first = True
    for piece in pieces:
        if piece.kind == "delta" and chunk_delay_ms and not is_first:
            await sender.pause(chunk_delay_ms)
        is_first = is_first and piece.kind != "delta"
        await sender.chunk(piece.data)


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
    """An error answer of the server itself."""
    return json_response({"error": {"type": "signet_llm", "message": message}}, status, headers)
