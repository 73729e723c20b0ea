"""An httpx transport that applies the change of a mutant or variant between the adapter and the daemon.

The adapter is not changed. Broken daemons use the transport too, in front of the embedded daemon.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence

import httpx

from signet_conformance.files.json_values import value_at
from signet_conformance.selftest.edits import Memory, Outgoing, WholeAnswer, edited_answer, edited_request, spelled
from signet_conformance.selftest.mutants import Change, names_in

_CALL = """
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], b"{}", {"content-type": "application/json"}, method=sys.argv[2])
try:
    print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
Send = Callable[[Outgoing], Awaitable[WholeAnswer]]
_SEND_S = 0.02


class MutatingTransport(httpx.AsyncBaseTransport):
    """Passes requests on to `inner` and answers back, changed by `change`.

    `secret` is the value of `{{secret}}` until a request has one, `default_port` the port of stray requests.
    """

    def __init__(
        self,
        change: Change,
        inner: httpx.AsyncBaseTransport,
        secret: str | None = None,
        default_port: int = 0,
    ) -> None:
        self._change = change
        self._inner = inner
        self._memory = Memory(secret)
        self._default_port = default_port
        self._concerned_requests = 0
        self._silent = False
        self.applied = False
        """Whether the change concerned a request."""
        self._held: list[tuple[Outgoing, httpx.Request]] = []
        self._background: set[asyncio.Future[WholeAnswer]] = set()
        self._performers = {
            "edit": self._edit,
            "answer": self._answer,
            "drop": self._drop,
            "repeat": self._repeat,
            "insert": self._insert,
            "defer": self._defer,
            "wait": self._wait,
            "background": self._send_in_background,
            "give_up": self._give_up,
            "fall_silent": self._fall_silent,
            "spell": self._spell,
            "stray": self._stray,
        }

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request, changed if the change concerns it."""
        outgoing = await Outgoing.of(request)

        async def send(outgoing: Outgoing) -> WholeAnswer:
            return await WholeAnswer.of(await self._inner.handle_async_request(outgoing.to_httpx(request)))

        if self._silent:
            raise httpx.ConnectError("the mutant has fallen silent")
        concerned = self._concerns(outgoing)
        try:
            if concerned:
                answer = await self._performers[self._change["do"]](outgoing, send, request)
            else:
                answer = await send(outgoing)
        finally:
            self._memory.note_request(outgoing)
        self._memory.note_answer(answer)
        if self._held and not concerned and outgoing.operation in names_in(self._change["until"]):
            await self._send_held()
        return answer.to_httpx(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    def _concerns(self, request: Outgoing) -> bool:
        change = self._change
        if "on" not in change or not ("*" in (names := names_in(change["on"])) or request.operation in names):
            return False
        if "session" in change and self._memory.place_of(request) != change["session"]:
            return False
        self._concerned_requests += 1
        is_concerned = bool(self._concerned_requests == change.get("nth", self._concerned_requests))
        self.applied = self.applied or is_concerned
        return is_concerned

    async def _edit(self, request: Outgoing, send: Send, _like: httpx.Request) -> WholeAnswer:
        return await send(edited_request(request, self._change, self._memory))

    async def _answer(self, request: Outgoing, send: Send, _like: httpx.Request) -> WholeAnswer:
        answer = await send(request)
        if not _is_wanted(self._change.get("answered"), answer):
            return answer
        return edited_answer(answer, self._change, request, self._memory)

    async def _spell(self, request: Outgoing, _send: Send, like: httpx.Request) -> WholeAnswer:
        inner = RawTransport(self._change["wire"]) if "wire" in self._change else self._inner
        return await WholeAnswer.of(await inner.handle_async_request(spelled(request, self._change, like)))

    async def _drop(self, _request: Outgoing, _send: Send, _like: httpx.Request) -> WholeAnswer:
        if "told" not in self._change:
            raise httpx.ConnectError("the mutant sends nothing")
        return WholeAnswer.of_json(200, self._change["told"])

    async def _repeat(self, request: Outgoing, send: Send, _like: httpx.Request) -> WholeAnswer:
        times = self._change.get("times", 1)
        if self._change.get("at_once"):
            return (await asyncio.gather(*(send(request) for _ in range(times + 1))))[0]
        answer = await send(request)
        if _is_wanted(self._change.get("answered"), answer):
            for _ in range(times):
                await asyncio.sleep(self._change.get("pause_s", 0))
                await send(request)
        return answer

    async def _insert(self, request: Outgoing, send: Send, _like: httpx.Request) -> WholeAnswer:
        extra = edited_request(request, self._change, self._memory)
        if self._change["where"] == "before":
            await send(extra)
            return await send(request)
        answer = await send(request)
        await send(extra)
        return answer

    async def _defer(self, request: Outgoing, _send: Send, like: httpx.Request) -> WholeAnswer:
        self._held.append((request, like))
        return WholeAnswer.of_json(200, self._change["told"])

    async def _send_in_background(self, request: Outgoing, send: Send, _like: httpx.Request) -> WholeAnswer:
        sending = asyncio.ensure_future(send(request))
        self._background.add(sending)
        sending.add_done_callback(self._background.discard)
        # Give the request time to leave before the connector goes on.
        await asyncio.sleep(_SEND_S)
        return WholeAnswer.of_json(200, self._change["told"])

    async def _send_held(self) -> None:
        held, self._held = self._held, []
        for request, like in held:
            await WholeAnswer.of(await self._inner.handle_async_request(request.to_httpx(like)))

    async def _wait(self, request: Outgoing, send: Send, _like: httpx.Request) -> WholeAnswer:
        waiting = asyncio.ensure_future(send(request))
        while not waiting.done():
            try:
                await asyncio.shield(waiting)
            except asyncio.CancelledError:
                # The adapter's deadline has passed; this mutant ignores it.
                continue
        return waiting.result()

    async def _give_up(self, request: Outgoing, send: Send, _like: httpx.Request) -> WholeAnswer:
        try:
            return await asyncio.wait_for(send(request), self._change["after_s"])
        except TimeoutError:
            raise httpx.ReadTimeout("the mutant has no patience") from None

    async def _stray(self, request: Outgoing, _send: Send, _like: httpx.Request) -> WholeAnswer:
        # Another process sends it: the kit finds out by a process's environment to which run a request belongs.
        words = [sys.executable, "-c", _CALL, f"http://127.0.0.1:{self._default_port}{request.path}", request.method]
        child = await asyncio.create_subprocess_exec(*words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        status, _ = await child.communicate()
        if child.returncode:
            raise httpx.ConnectError("nothing listens at the default port")
        return WholeAnswer.of_json(int(status), {})

    async def _fall_silent(self, request: Outgoing, send: Send, _like: httpx.Request) -> WholeAnswer:
        wanted = self._change["answered"]
        try:
            answer = await send(request)
        except httpx.TransportError:
            self._silent = wanted == "lost"
            raise
        self._silent = wanted != "lost" and _is_wanted(wanted, answer)
        return answer


class Chain:
    """A `transport` that makes several named changes, in their order. Spelling is changed last."""

    def __init__(
        self,
        changes: Sequence[tuple[str, Change]],
        inner: httpx.AsyncBaseTransport,
        secret: str | None = None,
        default_port: int = 0,
    ) -> None:
        others = [named for named in changes if named[1]["do"] != "spell"]
        spelling = [named for named in changes if named[1]["do"] == "spell"]
        self._parts: list[tuple[str, MutatingTransport]] = []
        # The last one made is the outermost, and gets a request first.
        for name, change in reversed([*others, *spelling]):
            part = inner = MutatingTransport(change, inner, secret, default_port)
            self._parts.append((name, part))
        self.transport = inner

    @property
    def applied(self) -> Sequence[str]:
        """The names all of whose changes have changed a message."""
        return sorted({name for name, _ in self._parts} - self.idle)

    @property
    def idle(self) -> frozenset[str]:
        """The names with a change that concerned no request yet."""
        return frozenset(name for name, part in self._parts if not part.applied)


def _is_wanted(wanted: object, answer: WholeAnswer) -> bool:
    """Return True if the change applies to the answer; `wanted` None means any answer."""
    body = answer.json
    if wanted is None:
        return True
    if isinstance(wanted, int):
        return answer.status == wanted
    if isinstance(wanted, dict):
        return all(value_at(body, pointer) in values for pointer, values in wanted.items())
    if wanted == "failed":
        return answer.status >= 500
    if wanted == "unreadable":
        return answer.status == 200 and not isinstance(body, dict)
    # "odd": JSON, but nothing that a hook's caller can use.
    return answer.status == 200 and isinstance(body, dict) and not isinstance(body.get("inject"), str)


_PIECE = 16


class RawTransport(httpx.AsyncBaseTransport):
    """Sends each request on a connection of its own, in a way that no client library offers.

    `wire` is `chunked` (no length, many pieces), `close` (a connection for each request), `http10` (HTTP/1.0, without
    kept connections) or `pieces` (a few bytes at a time).
    """

    def __init__(self, wire: str) -> None:
        self._wire = wire

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and read its answer to the end."""
        content = await request.aread()
        try:
            reader, writer = await asyncio.open_connection(request.url.host, request.url.port)
        except OSError as failure:
            raise httpx.ConnectError(str(failure)) from failure
        try:
            for piece in self._pieces(request, content):
                writer.write(piece)
                await writer.drain()
            # Each of these requests asks for the end of its connection.
            return _read_answer(await reader.read(), request)
        except (OSError, http.client.HTTPException) as failure:
            raise httpx.ReadError(str(failure)) from failure
        finally:
            writer.close()

    def _pieces(self, request: httpx.Request, content: bytes) -> list[bytes]:
        version = b"HTTP/1.0" if self._wire == "http10" else b"HTTP/1.1"
        framing = (b"content-length", b"transfer-encoding", b"connection")
        headers = [(name, value) for name, value in request.headers.raw if name.lower() not in framing]
        if self._wire != "http10":
            headers.append((b"Connection", b"close"))
        chunked = self._wire == "chunked" and content
        if chunked:
            headers.append((b"Transfer-Encoding", b"chunked"))
        elif content:
            headers.append((b"Content-Length", str(len(content)).encode()))
        head = b"\r\n".join(
            [b" ".join((request.method.encode(), request.url.raw_path, version)), *map(b": ".join, headers), b"", b""]
        )
        if chunked:
            parts = [content[at : at + _PIECE] for at in range(0, len(content), _PIECE)]
            return [head, *(b"%x\r\n%s\r\n" % (len(part), part) for part in parts), b"0\r\n\r\n"]
        if self._wire == "pieces":
            whole = head + content
            return [whole[at : at + _PIECE] for at in range(0, len(whole), _PIECE)]
        return [head + content]


class _Received:
    """The received bytes, in place of the socket that `http.client` would read."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def makefile(self, _mode: str) -> io.BytesIO:
        """Return a file to read it from."""
        return io.BytesIO(self._raw)


def _read_answer(raw: bytes, request: httpx.Request) -> httpx.Response:
    answer = http.client.HTTPResponse(_Received(raw), method=request.method)  # type: ignore[arg-type]  # it asks a socket only for a file
    answer.begin()
    body = httpx.ByteStream(answer.read())
    return httpx.Response(answer.status, headers=answer.getheaders(), stream=body, request=request)
