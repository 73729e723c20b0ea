"""A conversation over HTTP, on the application itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from signet_reference_harness.channels import AgentOutput, ChannelClosedError
from signet_reference_harness.channels.http import HELD, HttpChannel
from signet_reference_harness.session.events import TextPiece
from signet_reference_harness.tools import ToolResult

TOKEN = {"authorization": "Bearer t0ken"}


def with_channel(act: Callable[[HttpChannel, httpx.AsyncClient], Awaitable[Any]]) -> Any:
    """What `act` returns of a channel, and a client of its application that carries the token."""

    async def run() -> Any:
        channel = HttpChannel("t0ken")
        transport = httpx.ASGITransport(channel.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1", headers=TOKEN) as client:
            return await act(channel, client)

    return asyncio.run(run())


def test_a_turn_comes_with_its_metadata() -> None:
    """What is posted is received, in order."""

    async def act(channel: HttpChannel, client: httpx.AsyncClient) -> Any:
        posted = await client.post("/turns", json={"content": "Hello.", "metadata": {"n": 1}})
        return posted.status_code, await channel.receive()

    status, turn = with_channel(act)
    assert (status, turn.content, turn.metadata) == (202, "Hello.", {"n": 1})


@pytest.mark.parametrize(
    ("body", "headers", "status", "told"),
    [
        ({"content": "Hi."}, {"authorization": "Bearer wrong"}, 401, "bearer token"),
        ({"content": "Hi."}, {"origin": "http://elsewhere.example"}, 403, "foreign page"),
        ({"content": " "}, {}, 422, "the message is blank"),
        ({"content": "Hi.", "attachments": [{"name": "a.pdf", "mediaType": "application/pdf"}]}, {}, 422, "a.pdf"),
        ({"content": 7}, {}, 400, "$.content"),
        ({"words": "Hi."}, {}, 400, "words"),
        ({"content": "x" * 5_000_000}, {}, 413, "larger than"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_reason(
    body: dict[str, Any], headers: dict[str, str], status: int, told: str
) -> None:
    """The answer says why, and nothing reaches the conversation."""

    async def act(channel: HttpChannel, client: httpx.AsyncClient) -> Any:
        refused = await client.post("/turns", json=body, headers=headers)
        return refused.status_code, refused.json()["error"], channel.waiting

    answered, error, waiting = with_channel(act)
    assert (answered, waiting) == (status, 0)
    assert told in error


def test_outputs_stream_to_a_reader_until_the_conversation_is_closed() -> None:
    """Pieces, results of tools and the end of an answer, by the specification's names; then no turn is taken."""

    async def act(channel: HttpChannel, client: httpx.AsyncClient) -> Any:
        reading = asyncio.create_task(client.get("/outputs"))
        await channel.first_reader.wait()
        result = ToolResult("memory_search", False, {}, "offline")
        await channel.send(AgentOutput(content="Bl", streaming=True, event=TextPiece("Bl")))
        await channel.send(AgentOutput(tool_results=(result,), streaming=True))
        await channel.send(AgentOutput(content="Blue.", tool_results=(result,), metadata={"n": 1}))
        closed = await client.post("/close")
        late = await client.post("/turns", json={"content": "Hello?"})
        with pytest.raises(ChannelClosedError):
            await channel.receive()
        return (await reading).text, closed.json(), late.status_code

    text, closed, late = with_channel(act)
    outputs = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    told = {"name": "memory_search", "ok": False, "error": "offline"}
    assert [(each["content"], each["toolResults"], each["streaming"]) for each in outputs] == [
        ("Bl", [], True),
        ("", [told], True),
        ("Blue.", [told], False),
    ]
    assert outputs[0]["event"] == {"type": "text", "text": "Bl"}
    assert (outputs[2]["metadata"], closed, late) == ({"n": 1}, {"closed": True}, 409)


def test_a_slow_reader_loses_pieces_and_is_told_how_many() -> None:
    """Sending never waits; the end of the answer is there, and says what was dropped."""

    async def act(channel: HttpChannel, client: httpx.AsyncClient) -> Any:
        reading = asyncio.create_task(client.get("/outputs"))
        await channel.first_reader.wait()
        for _ in range(HELD + 7):
            await channel.send(AgentOutput(content="x", streaming=True))
        await channel.send(AgentOutput(content="whole"))
        channel.close()
        return (await reading).text

    lines = [line for line in with_channel(act).splitlines() if line.startswith("data: ")]
    last = json.loads(lines[-1].removeprefix("data: "))
    assert (len(lines), last["content"], last["dropped"]) == (HELD + 1, "whole", 7)


def test_a_stop_says_whether_there_was_something_to_stop() -> None:
    """It is passed on to the conversation."""

    async def act(channel: HttpChannel, client: httpx.AsyncClient) -> Any:
        idle = (await client.post("/stop")).json()
        channel.interrupt = lambda: True
        return idle, (await client.post("/stop")).json()

    assert with_channel(act) == ({"stopped": False}, {"stopped": True})
