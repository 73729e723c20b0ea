"""An endless answer is read up to the limit, and the arrived part is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.messages import Message, ToolCall
from signet_reference_harness.providers import CompletionChunk, CompletionOptions, CompletionResult, StopReason
from signet_reference_harness.providers.settings import load
from signet_reference_harness.session.turn import ModelLoop
from signet_reference_harness.tools import ToolResult
from tests.reference_harness.providers.asking import APIS, HELLO, make

LIMIT = 50_000


def event(value: dict[str, Any]) -> bytes:
    """A server-sent event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chat(delta: dict[str, Any]) -> bytes:
    """A piece of an answer, as chat completions send it."""
    return event({"choices": [{"index": 0, "delta": delta}]})


def block(delta: dict[str, Any]) -> bytes:
    """A piece of an answer, as Anthropic sends it."""
    return event({"type": "content_block_delta", "index": 0, "delta": delta})


def line(message: dict[str, Any]) -> bytes:
    """A piece of an answer, as Ollama sends it."""
    return json.dumps({"message": message}).encode() + b"\n"


TOOL = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "n"}}
CALL = {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}
WITHOUT_END = {
    "words": {
        "anthropic-messages": (b"", block({"type": "text_delta", "text": "ab"})),
        "openai-completions": (b"", chat({"content": "ab"})),
        "openai-responses": (b"", event({"type": "response.output_text.delta", "delta": "ab"})),
        "ollama-chat": (b"", line({"content": "ab"})),
    },
    "thinking": {
        "openai-completions": (b"", chat({"reasoning_content": "ab"})),
        "openai-responses": (b"", event({"type": "response.reasoning_text.delta", "delta": "ab"})),
        "ollama-chat": (b"", line({"thinking": "ab"})),
    },
    "arguments": {
        "anthropic-messages": (event(TOOL), block({"type": "input_json_delta", "partial_json": "[["})),
        "openai-completions": (
            b"",
            chat({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "n", "arguments": "[["}}]}),
        ),
    },
    "calls": {
        "openai-responses": (b"", event({"type": "response.output_item.done", "output_index": 0, "item": CALL})),
        "ollama-chat": (b"", line({"tool_calls": [{"function": {"name": "n", "arguments": {"a": "b"}}}]})),
    },
    "line": dict.fromkeys(APIS, (b"", b"x" * 4096)),
    "event": dict.fromkeys((each for each in APIS if each != "ollama-chat"), (b"", b"data: x\n" * 500)),
}
FLOODS = [(kind, api, *sent) for kind, by_api in WITHOUT_END.items() for api, sent in by_api.items()]


class Flood:
    """A server that sends `first`, then `rest` again and again for as long as a client reads."""

    def __init__(self, first: bytes, rest: bytes) -> None:
        self._sent = first, rest * (1 + 8_192 // len(rest))

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_raised: object) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + self._sent[0])
            while True:
                writer.write(self._sent[1])
                await writer.drain()
        except OSError:
            writer.close()


async def streamed(api: str, url: str) -> CompletionResult:
    """The result of a streamed answer."""
    provider, result = make(api, url), None
    async for chunk in provider.stream(HELLO, CompletionOptions(longest_answer=LIMIT)):
        result = chunk.result or result
    await provider.aclose()
    assert result is not None
    return result


@pytest.mark.parametrize(("kind", "api", "first", "rest"), FLOODS, ids=[f"{each[0]}-{each[1]}" for each in FLOODS])
def test_an_answer_without_end_is_read_up_to_its_limit(kind: str, api: str, first: bytes, rest: bytes) -> None:
    """The result names the limit and the setting for it; the arrived text is kept."""

    async def ask() -> CompletionResult:
        async with Flood(first, rest) as url:
            return await streamed(api, url)

    result = asyncio.run(ask())
    assert (result.stop_reason, result.tool_calls) == (StopReason.MALFORMED, ())
    assert f"more than {LIMIT} bytes (runtime.longest_answer in agent.yaml" in result.detail
    assert len(result.content) == (LIMIT if kind == "words" else 0)


@pytest.mark.parametrize("api", APIS)
def test_an_answer_in_one_piece_is_read_up_to_its_limit(api: str) -> None:
    """The same limit holds for an answer that is not streamed."""

    async def ask() -> CompletionResult:
        async with Flood(b"", b"[") as url:
            provider = make(api, url)
            try:
                return await provider.complete(HELLO, CompletionOptions(longest_answer=LIMIT))
            finally:
                await provider.aclose()

    result = asyncio.run(ask())
    assert result.stop_reason is StopReason.MALFORMED
    assert f"more than {LIMIT} bytes" in result.detail


class NeverWaits:
    """A provider of another author that yields the same chunk endlessly, without giving the event loop a turn."""

    id = "never-waits"

    async def stream(self, _messages: Sequence[Message], _options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        """Yield the same chunk endlessly."""
        while True:
            yield CompletionChunk("a")


async def _no_tool(call: ToolCall) -> ToolResult:
    return ToolResult(call.name, False, {})


def loop_of(options: CompletionOptions) -> ModelLoop:
    """The loop of a turn with that provider."""
    return ModelLoop(NeverWaits(), options, [Message("user", "hi")], _no_tool)


def test_the_limit_holds_for_providers_of_others() -> None:
    """The loop counts, whatever the provider does; the reply is kept up to the limit."""
    loop = loop_of(CompletionOptions(longest_answer=LIMIT))
    asyncio.run(loop.run())
    assert (loop.outcome, len(loop.reply)) == (StopReason.MALFORMED, LIMIT)
    assert f"more than {LIMIT} bytes" in loop.detail


def test_a_provider_that_never_waits_can_be_cancelled() -> None:
    """A time limit and Ctrl-C take effect between two chunks."""

    async def cancelled() -> bool:
        loop = loop_of(CompletionOptions(longest_answer=1 << 40))
        task = asyncio.create_task(loop.run())
        await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task])
        return bool(done) and task.cancelled() and bool(loop.reply)

    assert asyncio.run(cancelled())


def test_the_limit_is_a_setting(tmp_path: Path) -> None:
    """16 MiB, or the value in the agent's file."""
    flags = {"provider": "ollama", "model": "m"}
    assert load(flags, {}, tmp_path).options.longest_answer == 16 * 1024 * 1024
    (tmp_path / "agent.yaml").write_text("runtime: {longest_answer: 9}")
    assert load(flags, {}, tmp_path).options.longest_answer == 9
