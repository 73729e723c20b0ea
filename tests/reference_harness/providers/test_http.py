"""Events are read alike in whatever pieces the bytes come, and a connection serves several requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Self
from urllib.parse import urlsplit

import pytest
from hypothesis import given, strategies as st

from signet_reference_harness.providers import CompletionOptions, StopReason
from signet_reference_harness.providers.http import EventReader
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.providers.asking import APIS, HELLO, make

EVENTS = ({"type": "a", "text": "ö\r\n\u2028x"}, {"type": "b"}, [1], {"type": "c", "deep": {"n": None}})


def stream(end: str) -> bytes:
    """The events with this line end: a comment, names, an unknown field, and data of two lines."""
    first, second, third, fourth = (json.dumps(event, ensure_ascii=False) for event in EVENTS)
    lines = [": hello", "", f"data:{first}", "", "event: b", "retry: 5", "data: {}", ""]
    lines += ["event: list", f"data: {third}", "", "event: not-c", f"data: {fourth[:9]}", f"data: {fourth[9:]}", "", ""]
    assert second == '{"type": "b"}'
    return end.join(lines).encode()


def read(pieces: Sequence[bytes]) -> list[object]:
    """All events of the pieces."""
    reader = EventReader()
    return [event for piece in pieces for event in reader.feed(piece)]


@given(end=st.sampled_from(["\n", "\r\n", "\r"]), cuts=st.lists(st.integers(0, 250), max_size=30))
def test_events_are_the_same_wherever_bytes_are_cut(end: str, cuts: list[int]) -> None:
    """Any line end, any pieces, down to single bytes; a name replaces only a missing type."""
    whole = stream(end)
    places = sorted({0, *(min(cut, len(whole)) for cut in cuts), len(whole)})
    assert read([whole[at:to] for at, to in pairwise(places)]) == list(EVENTS)
    assert read([whole[at : at + 1] for at in range(len(whole))]) == list(EVENTS)


def test_an_event_that_is_cut_off_does_not_count() -> None:
    """The end of the stream does not complete an event."""
    assert read([b'data: {"a": 1}\n\ndata: {"b": 2}\n']) == [{"a": 1}]


def test_nothing_counts_after_the_last_event() -> None:
    """The event that ends the stream is not JSON, and is not yielded."""
    reader = EventReader()
    assert list(reader.feed(b"data: 1\n\ndata: [DONE]\n\ndata: 2\n\n")) == [1]
    assert reader.done


def test_events_of_ignored_names_are_not_read() -> None:
    """Not even if they hold no JSON; the name does not apply to the next event."""
    reader = EventReader(frozenset({b"echo"}))
    assert list(reader.feed(b"event: echo\ndata: {\n\ndata: 1\n\nevent: other\ndata: 2\n\n")) == [1, 2]


class Relay:
    """A proxy in front of a server that counts connections; at its end all of them have ended."""

    def __init__(self, url: str) -> None:
        self.taken = 0
        self._place = urlsplit(url)
        self._carried: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._took, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_raised: object) -> None:
        self._server.close()
        await asyncio.gather(*self._carried)

    def _took(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        self._carried.append(asyncio.create_task(self._carry(reader, writer)))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection(self._place.hostname, self._place.port)
        await asyncio.gather(self._copy(reader, requests), self._copy(answers, writer))

    @staticmethod
    async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("api", APIS)
def test_one_connection_serves_one_request_after_the_other(serve: Serve, api: str) -> None:
    """Streams are read to the end, so a conversation needs one connection."""
    served = serve(turns=[{"content": "Good morning."}] * 4)

    async def taken() -> int:
        async with Relay(served.url) as relay:
            provider = make(api, relay.url)
            for _ in range(4):
                last = [chunk async for chunk in provider.stream(HELLO, CompletionOptions())][-1]
                assert last.result is not None
                assert last.result.stop_reason is StopReason.END_TURN
            await provider.aclose()
            return relay.taken

    assert asyncio.run(taken()) == 1


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("named", "status"), [("localhost", 307), ("127.0.0.1", 307), ("localhost", 308)])
def test_no_other_host_gets_the_key(serve: Serve, api: str, named: str, status: int) -> None:
    """A redirect is followed, but only the configured host gets the key."""
    served = serve(turns=[{"content": "Good morning."}])

    async def moved(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        target = served.url.encode() + head.split(b" ")[1]
        answer = b"HTTP/1.1 %d Moved\r\nlocation: %s\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        writer.write(answer % (status, target))
        writer.close()

    async def ask() -> str:
        async with await asyncio.start_server(moved, "127.0.0.1", 0) as server:
            provider = make(api, f"http://{named}:{server.sockets[0].getsockname()[1]}")
            answered = await provider.complete(HELLO, CompletionOptions())
            await provider.aclose()
            return answered.content

    assert asyncio.run(ask()) == "Good morning."
    (kept,) = served.requests()
    names = {name for name, _ in kept["headers"]} & {"authorization", "x-api-key"}
    # httpx itself drops a bearer token for another port too.
    assert names == ({"x-api-key"} if named == "127.0.0.1" and api == "anthropic-messages" else set())
