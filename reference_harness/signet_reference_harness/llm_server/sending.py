"""An answer on its way: delays, and what the script makes go wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from signet_reference_harness.llm_server.playback import PlayedTurn
from signet_reference_harness.llm_server.protocols import Api
from signet_reference_harness.llm_server.reply import Piece, TurnReply, UnspeakableError, to_json
from signet_reference_harness.llm_server.requests import Kept
from signet_reference_harness.llm_server.script import ErrorAnswer, RawAnswer, ScriptedFault

if TYPE_CHECKING:
    from starlette.types import Receive, Send

JSON: Final = "application/json"


class ClientClosedError(Exception):
    """Raised when the client has left."""


class Sender:
    """Sends one answer. Each method ends early with ClientClosedError when the client leaves."""

    def __init__(self, kept: Kept, receive: Receive, send: Send) -> None:
        self._kept = kept
        self._send = send
        self._gone = asyncio.ensure_future(_disconnected(receive))

    def close(self) -> None:
        """Stop watching the client."""
        self._gone.cancel()

    async def or_gone(self, task: asyncio.Task[PlayedTurn]) -> PlayedTurn:
        """The result of the task, unless the client leaves first."""
        await asyncio.wait({task, self._gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            raise ClientClosedError
        return task.result()

    async def pause(self, milliseconds: float | None) -> None:
        """Let time pass; None is for ever."""
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
        """End a streamed answer in order."""
        await self._more(b"", is_last=True)

    async def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self._kept.status = status
        raw = [(name.lower().encode("latin-1"), value.encode("utf-8")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _more(self, data: bytes, *, is_last: bool) -> None:
        if data and self._kept.first_chunk is None:
            self._kept.first_chunk = time.time()
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_turn(sender: Sender, api: Api, reply: TurnReply, kept: Kept) -> None:
    """Send a turn as the answer to a request of `api`."""
    turn = reply.turn
    headers = {
        **api.headers(kept.number, turn.rate_limits, datetime.now(UTC)),
        **{name.lower(): value for name, value in turn.headers.items()},
    }
    await sender.pause(turn.delay_ms)
    try:
        if api.name in turn.raw:
            await _send_raw(sender, api, turn.raw[api.name], headers, streams=reply.asked.stream)
        elif turn.error is not None:
            await send_failure(sender, api, turn.error, headers)
        elif reply.asked.stream:
            await _send_stream(sender, api, reply, headers, kept)
        else:
            await _send_whole(sender, api, reply, headers, kept)
    except UnspeakableError as error:
        await send_failure(
            sender, api, ErrorAnswer(message=str(error), type="script_error"), {"x-should-retry": "false"}
        )


async def send_failure(sender: Sender, api: Api, error: ErrorAnswer, headers: Mapping[str, str]) -> None:
    """Send an error answer in the interface's form."""
    status, body = api.failure(error)
    more = {} if error.retry_after_s is None else {"retry-after": _retry_after(error.retry_after_s)}
    if error.type == "script_ended":
        # The vendors' packages ask again after a 500 unless told not to.
        more["x-should-retry"] = "false"
    await sender.whole(status, to_json(body), {**headers, **more})


def _retry_after(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


async def _send_raw(sender: Sender, api: Api, raw: RawAnswer, headers: Mapping[str, str], *, streams: bool) -> None:
    if not (streams and raw.events):
        body = raw.body.encode() if isinstance(raw.body, str) else to_json(raw.body)
        await sender.whole(raw.status, body, headers)
        return
    await sender.begin_stream(raw.status, api.media_type, headers)
    for event in raw.events:
        await sender.chunk(api.write(event.data, event.event))
    await sender.end_stream()


async def _send_whole(sender: Sender, api: Api, reply: TurnReply, headers: Mapping[str, str], kept: Kept) -> None:
    fault = reply.turn.fault
    body = to_json(api.answer(reply))
    if fault is None:
        await sender.whole(200, body, headers)
        return
    kept.outcome = fault.kind
    if fault.kind == "error":
        await send_failure(sender, api, fault.error, headers)
    elif fault.kind == "garbage":
        await sender.whole(200, body[: len(body) // 2] if fault.data is None else fault.data.encode(), headers)
    elif fault.kind == "end":
        await sender.whole(200, body, headers)
    else:
        await sender.whole(200, body, headers, sent=len(body) // 2)
        if fault.kind == "hang":
            await sender.pause(None)


async def _send_stream(sender: Sender, api: Api, reply: TurnReply, headers: Mapping[str, str], kept: Kept) -> None:
    pieces = tuple(api.stream(reply))
    fault = reply.turn.fault
    await sender.begin_stream(200, api.media_type, headers)
    if fault is None:
        await _send_pieces(sender, pieces, reply.turn.chunk_delay_ms)
        await sender.end_stream()
        return
    strikes = _place(pieces, fault.after)
    await _send_pieces(sender, pieces[:strikes], reply.turn.chunk_delay_ms)
    kept.outcome = fault.kind
    if fault.kind == "garbage":
        await sender.chunk((api.garbage if fault.data is None else fault.data).encode())
        await _send_pieces(sender, pieces[strikes:], reply.turn.chunk_delay_ms)
    await _send_rest(sender, api, fault)


async def _send_rest(sender: Sender, api: Api, fault: ScriptedFault) -> None:
    if fault.kind == "error":
        await sender.chunk(api.failure_event(fault.error))
    if fault.kind == "hang":
        await sender.pause(None)
    if fault.kind != "close":
        # An answer that is not ended makes the server close the connection.
        await sender.end_stream()


def _place(pieces: tuple[Piece, ...], after: int) -> int:
    """The index at which a fault strikes: after `after` deltas, or before the end of a shorter answer."""
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
