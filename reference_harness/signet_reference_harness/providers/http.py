"""A provider over HTTP: sends requests, reads answers, and repeats failed calls."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Final

import httpx

from signet_reference_harness.config import certificates_for
from signet_reference_harness.errors import ProviderDeferredError, ProviderError
from signet_reference_harness.messages import Message, Thinking, ToolDefinition
from signet_reference_harness.providers import (
    LONGEST_ANSWER,
    Api,
    CompletionChunk,
    CompletionOptions,
    CompletionResult,
    StopReason,
    reason_of_error,
)
from signet_reference_harness.providers.answer import AnswerInProgress
from signet_reference_harness.providers.failures import (
    CallFailure,
    FailureKind,
    Timing,
    answer_too_long,
    failure_of,
    failure_of_answer,
)
from signet_reference_harness.providers.settings import ProviderSettings

DONE: Final = b"[DONE]"
"""The data of the event with which some APIs end a stream; it is not JSON."""
LONGEST_ERROR: Final = 64 * 1024
"""How many bytes are read of an answer whose status is an error."""
REST_S: Final = 0.2
"""How long an answer may take to end after the event DONE. Only then is its connection free for the next request."""


class EventReader:
    """Reads the JSON of server-sent events from bytes as they come, without the events that `ignored` names.

    `done` says that the last event has come. An event, or a line, may have `longest` bytes.
    """

    def __init__(self, ignored: frozenset[bytes] = frozenset(), longest: int = LONGEST_ANSWER) -> None:
        self.done = False
        self._ignored = ignored
        self._longest = longest
        self._line = bytearray()
        """The beginning of a line whose end has not come."""
        self._ended_with_return = False
        """Whether the last piece ended with a carriage return, which a line feed may follow."""
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0
        """Bytes of the data."""

    def feed(self, piece: bytes) -> Iterator[Any]:
        """Yield the values of the events that `piece` completes.

        Raises ValueError for what is not JSON, and CallFailure for an event that is too long.
        """
        if self._ended_with_return:
            piece = piece.removeprefix(b"\n")
        self._ended_with_return = piece.endswith(b"\r")
        for line in piece.splitlines(keepends=True):
            text = self._complete_line(line, (b"\n", b"\r"))
            if text is None:
                return
            if text:
                self._add_field(text)
                continue
            name, data = self._name, b"\n".join(self._data)
            self._name, self._data, self._size = b"", [], 0
            if data.startswith(DONE):
                self.done = True
                return
            if data and name not in self._ignored:
                yield _event(name, data)

    def _complete_line(self, piece: bytes, ends: tuple[bytes, ...]) -> bytes | None:
        """The line that `piece` ends, without its end; None if it is not complete."""
        self._line += piece
        if self._size + len(self._line) > self._longest:
            raise answer_too_long(self._longest)
        if not piece.endswith(ends):
            return None
        line = bytes(self._line).rstrip(b"\r\n")
        self._line.clear()
        return line

    def _add_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)
        elif field == b"event":
            self._name = value.removeprefix(b" ")


def _event(name: bytes, data: bytes) -> Any:
    """The event's JSON, with its name as `type` if it lacks one."""
    value = json.loads(data)
    if name and isinstance(value, dict):
        value.setdefault("type", name.decode())
    return value


class HttpProvider(ABC):
    """The provider for a model that a vendor or a compatible server offers. Each API has a subclass."""

    api: ClassVar[Api]
    path: ClassVar[str]
    models_path: ClassVar[str]
    ignored_events: ClassVar[frozenset[bytes]] = frozenset()
    reader: ClassVar[type[EventReader]] = EventReader
    thinking_member: ClassVar[str] = ""
    """The member of a message that holds thoughts as bare text, if the API has one."""
    stream_members: ClassVar[Mapping[str, Any]] = {"stream": True}
    """The members of a request that ask for a stream."""

    def __init__(self, settings: ProviderSettings, timing: Timing | None = None) -> None:
        self.id = settings.provider
        self._settings = settings
        self._timing = timing or Timing()

    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        """Request the model's next message as a whole. Nothing is shown, so a broken answer is requested again."""
        result = CompletionResult(content="")
        async for chunk in self._ask(messages, options, shows=False):
            result = chunk.result or result
        return result

    def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        """Request the model's next message, piece by piece."""
        return self._ask(messages, options, shows=True)

    async def _ask(
        self, messages: Sequence[Message], options: CompletionOptions, *, shows: bool
    ) -> AsyncIterator[CompletionChunk]:
        body = {**self._body(messages, options), **self.stream_members}
        call = _Call(self.api, self._settings, self._timing)
        while True:
            answer, shown = AnswerInProgress(api=self.api, longest=options.longest_answer), False
            result: CompletionResult | None
            try:
                async with aclosing(self._events(answer, body)) as events:
                    async for event in events:
                        for chunk in self._read_event(answer, event):
                            shown = shows
                            yield chunk
                self._finish(answer)
                result = call.hide_key(answer.result())
            except Exception as error:  # noqa: BLE001 - what can be wrong with an answer is not listed anywhere
                result = await call.end_attempt(answer, error, shown=shown)
            if result is not None:
                yield CompletionChunk("", result=result)
                return

    async def available(self) -> bool:
        """Whether the server answers a request for its models: except with a refused key or a server error."""
        try:
            status = (await self._client.get(self.models_path)).status_code
        except (httpx.HTTPError, httpx.InvalidURL, OSError):
            return False
        return status < 500 and status not in {401, 403}

    async def aclose(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            await self._client.aclose()

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        base_url = self._settings.base_url or ""
        return httpx.AsyncClient(
            base_url=base_url,
            headers={"user-agent": "signet-reference-harness/1", **self._headers()},
            timeout=self._settings.timeout_s,
            follow_redirects=True,
            verify=certificates_for(base_url),
            event_hooks={"request": [self._restrict_key]},
        )

    async def _restrict_key(self, request: httpx.Request) -> None:
        """Remove the key from requests to other hosts after a redirect; httpx itself removes only bearer tokens."""
        if request.url.host != httpx.URL(self._settings.base_url or "").host:
            for name in self._headers():
                request.headers.pop(name, None)

    def _headers(self) -> Mapping[str, str]:
        key = self._settings.key
        return {"authorization": f"Bearer {key.reveal()}"} if key else {}

    @abstractmethod
    def _body(self, messages: Sequence[Message], options: CompletionOptions) -> dict[str, Any]:
        """Write the body of the request."""

    @abstractmethod
    def _read_event(self, answer: AnswerInProgress, event: Mapping[str, Any]) -> Iterator[CompletionChunk]:
        """Fill `answer` from one event of a stream, and yield what it shows."""

    def _finish(self, answer: AnswerInProgress) -> None:
        """Complete an answer that was read to its end: store its thoughts, if they came as bare text."""
        if self.thinking_member and answer.thoughts:
            answer.thinking.append(Thinking(answer.thoughts, self.id, {self.thinking_member: answer.thoughts}))

    async def _accept(self, answer: AnswerInProgress, response: httpx.Response) -> None:
        """Begin the answer. Raises CallFailure when the response is an error."""
        if response.status_code < 400:
            answer.begun = True
            return
        content = await _beginning(response, LONGEST_ERROR)
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            body = None
        text = content.decode(errors="replace") or response.reason_phrase
        raise failure_of_answer(response.status_code, body, response.headers, text, self._timing.now())

    async def _events(
        self, answer: AnswerInProgress, body: Mapping[str, Any]
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """Send the request, and yield the events of the answer. Raises CallFailure for an error event."""
        async with self._client.stream("POST", self.path, json=body) as response:
            await self._accept(answer, response)
            reader, pieces = self.reader(self.ignored_events, answer.longest), response.aiter_bytes()
            async for piece in pieces:
                for event in reader.feed(piece):
                    if event.get("error"):
                        raise failure_of_answer(None, event, {}, "no message", self._timing.now())
                    yield event
                if reader.done:
                    await _read_rest(pieces)
                    return


async def _beginning(response: httpx.Response, most: int) -> bytes:
    """The first `most` bytes of the body of a response."""
    received = bytearray()
    async for piece in response.aiter_bytes():
        received += piece
        if len(received) >= most:
            break
    return bytes(received[:most])


async def _read_rest(pieces: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(REST_S):
            async for _ in pieces:
                pass
    except (TimeoutError, httpx.HTTPError):
        return  # the answer is complete, however its connection ends


class _Call:
    """One call to a provider, with its attempts."""

    def __init__(self, api: Api, settings: ProviderSettings, timing: Timing) -> None:
        self._api, self._settings, self._timing = api, settings, timing
        self._began = timing.monotonic()
        self._attempts = 1

    async def end_attempt(self, answer: AnswerInProgress, error: Exception, *, shown: bool) -> CompletionResult | None:
        """Return the result of a failed attempt, or wait for the next attempt and return None.

        A call is not repeated once a token was `shown`. Raises ProviderError if no attempt is left.
        """
        if isinstance(error, ProviderError):
            raise error
        failure = failure_of(error)
        if failure.kind is FailureKind.MALFORMED and not answer.begun:
            failure = CallFailure(FailureKind.REFUSED, f"the request is not valid: {failure.message}")
        result = self._result(answer, failure, shown=shown)
        if result is not None:
            return self.hide_key(result)
        policy, elapsed_s = self._settings.retry, self._timing.monotonic() - self._began
        chance = self._timing.chance()
        wait_s = policy.wait_s(failure, attempt=self._attempts, elapsed_s=elapsed_s, chance=chance)
        if wait_s is None:
            requested_s = failure.requested_wait_s if policy.is_too_long(failure, elapsed_s) else None
            raise self._error(failure, requested_s) from None
        await self._timing.sleep(wait_s)
        self._attempts += 1
        return None

    def _result(self, answer: AnswerInProgress, failure: CallFailure, *, shown: bool) -> CompletionResult | None:
        """The result of an answer that a failure ended; None if there is nothing to keep."""
        raw = failure.words[0] if failure.words else None
        reason = reason_of_error(self._api, failure.words, failure.message)
        if reason is not None:
            return answer.broken(reason, failure.message, raw or failure.message)
        if failure.kind is FailureKind.MALFORMED:
            return answer.broken(StopReason.MALFORMED, f"the answer cannot be read: {failure.message}", raw)
        if not shown:
            return None
        if failure.words or failure.kind not in {FailureKind.NETWORK, FailureKind.TIMEOUT}:
            return answer.broken(StopReason.ERROR, f"the provider broke off: {failure.message}", raw)
        return answer.broken(StopReason.MALFORMED, f"the stream broke: {failure.message}", raw)

    def _error(self, failure: CallFailure, requested_s: float | None) -> ProviderError:
        name = self._settings.provider
        word = f" ({failure.words[0]})" if failure.words else ""
        if failure.status is not None:
            message = f"{name} answered {failure.status}{word}: {failure.message}"
        elif failure.kind is FailureKind.REFUSED:
            message = f"{name} cannot be asked{word}: {failure.message}"
        else:
            message = f"{name} did not answer{self._where}{word}: {failure.message}"
        if self._attempts > 1:
            message = f"{message}; tried {self._attempts} times"
        if requested_s is not None:
            message = f"{message}; it asks to wait {requested_s:g} s"
        message = self._hide(message)
        raw_reason = self._hide(failure.words[0]) if failure.words else None
        if requested_s is not None and self._settings.retry.too_long == "deferred":
            remedy = f"try again in {requested_s:g} s"
            return ProviderDeferredError(message, requested_s, remedy=remedy, raw_reason=raw_reason)
        return ProviderError(message, remedy=self._remedy(failure), raw_reason=raw_reason)

    @property
    def _where(self) -> str:
        return f" at {self._settings.base_url}" if self._settings.base_url else ""

    def _remedy(self, failure: CallFailure) -> str | None:
        name = self._settings.provider
        if failure.status in {401, 403}:
            source = f" from {self._settings.key_source}" if self._settings.key_source else ""
            return f"check the key{source}, or give another by --api-key"
        if failure.status == 404:
            return f"check the model's name (--model) and that {name}{self._where} serves it"
        if failure.kind in {FailureKind.NETWORK, FailureKind.TIMEOUT}:
            return f"check that {name} can be reached{self._where}, or name another address by --base-url"
        if failure.kind is FailureKind.RATE_LIMIT:
            return "wait, then run it again"
        return None

    def _hide(self, text: str) -> str:
        return self._settings.key.hide_in(text) if self._settings.key is not None else text

    def hide_key(self, result: CompletionResult) -> CompletionResult:
        """The result without the key, which a server may have echoed in an error."""
        raw = None if result.raw_reason is None else self._hide(result.raw_reason)
        return replace(result, detail=self._hide(result.detail), raw_reason=raw)


def without_empty(**members: Any) -> dict[str, Any]:
    """The members of a body that have a value: no None, and no empty list."""
    return {name: value for name, value in members.items() if value is not None and value != []}


def function_tools(tools: Sequence[ToolDefinition]) -> list[dict[str, Any]]:
    """The tools in the form of OpenAI's chat completions, which other APIs share."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
        }
        for tool in tools
    ]
