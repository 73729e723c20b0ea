"""What the modules that use a vendor's package share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from inspect import isawaitable
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit
from urllib.request import getproxies

from signet_reference_harness.daemon_client.plain_http import PlainTransport
from signet_reference_harness.errors import ConfigError
from signet_reference_harness.messages import Message, ToolDefinition
from signet_reference_harness.providers.answer import Answer
from signet_reference_harness.providers.calls import Caller
from signet_reference_harness.providers.completion import CompletionChunk, CompletionOptions, CompletionResult
from signet_reference_harness.providers.failures import failure_of
from signet_reference_harness.providers.reasons import Api
from signet_reference_harness.providers.retry import Timing
from signet_reference_harness.providers.settings import ProviderSettings

NO_KEY: Final = "no-key"
"""What goes to a server that wants no key: the vendors' packages refuse to begin without."""
CONNECTIONS: Final = 100
PROXIED: Final = frozenset({"http", "all"})
"""For what the environment may name a proxy that plain HTTP goes through."""


class VendorProvider(ABC):
    """A provider that asks through a vendor's package: what differs between vendors is in the abstract methods."""

    api: ClassVar[Api]
    package: ClassVar[str]

    def __init__(self, settings: ProviderSettings, timing: Timing | None = None) -> None:
        self.id = settings.provider
        self._settings = settings
        self._timing = timing or Timing()
        self._sdk = imported(self.import_package, self.package, self.id)
        self._caller = Caller(
            name=self.id,
            api=self.api,
            base_url=settings.base_url,
            key=settings.key,
            key_source=settings.key_source,
            policy=settings.retry,
            timing=self._timing,
        )

    @staticmethod
    @abstractmethod
    def import_package() -> Any:
        """Import the vendor's package, when a provider of it is made and no sooner.

        It is untyped on purpose: the releases that this works with differ in the HTTP library that they name.
        """

    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        """The model's next message, in one answer that is not streamed."""
        request = self._request(messages, options)
        return await self._caller.result(lambda answer: self._whole(answer, request))

    async def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        """The model's next message, piece by piece."""
        request = self._request(messages, options)
        async for chunk in self._caller.chunks(lambda answer: self._streamed(answer, request)):
            yield chunk

    async def available(self) -> bool:
        """Whether a list of models is answered: with anything but a refused key or a failing server."""
        try:
            await self._models()
        except Exception as error:  # noqa: BLE001  # the vendors' packages pass on exceptions of HTTP libraries
            status = failure_of(error, self._timing.now()).status
            return status is not None and status < 500 and status not in {401, 403}
        return True

    async def aclose(self) -> None:
        """Ends the connections."""
        if "_client" in self.__dict__:
            await self._client.close()

    @cached_property
    def _client(self) -> Any:
        return self._connect()

    @abstractmethod
    def _connect(self) -> Any:
        """A client of the vendor's package that never retries."""

    @abstractmethod
    def _models(self) -> Awaitable[Any]:
        """The request for a list of models."""

    @abstractmethod
    def _request(self, messages: Sequence[Message], options: CompletionOptions) -> dict[str, Any]:
        """The body of the request."""

    @abstractmethod
    def _whole(self, answer: Answer, request: Mapping[str, Any]) -> AsyncGenerator[CompletionChunk, None]:
        """Ask once, not streamed, and fill `answer`."""

    @abstractmethod
    def _streamed(self, answer: Answer, request: Mapping[str, Any]) -> AsyncGenerator[CompletionChunk, None]:
        """Ask once, streamed, and fill `answer`."""


def mounts(base_url: str | None) -> dict[str, PlainTransport]:
    """How a vendor's HTTP client reaches a server that speaks plain HTTP, by address; what is not here it does itself.

    A model on this machine or beside it is asked so often, and answers so soon, that the transports which the packages
    come with take a third of what the processor works for a turn.
    """
    parts = urlsplit(base_url or "")
    # Without a port, an address would stand for every port of its host.
    if parts.scheme != "http" or not parts.hostname or parts.port in {None, 80} or getproxies().keys() & PROXIED:
        return {}
    return {f"http://{parts.netloc}": PlainTransport(parts.hostname, parts.port or 0, CONNECTIONS)}


def function_tools(tools: Sequence[ToolDefinition]) -> list[dict[str, Any]]:
    """The tools as OpenAI's chat completions name them, and others after them."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
        }
        for tool in tools
    ]


def imported(load: Callable[[], Any], name: str, provider: str) -> Any:
    """The package that `load` imports. Raises ConfigError when it cannot be imported."""
    try:
        return load()
    except ImportError as error:
        missing = f"is not installed ({error})" if error.name == name else f"cannot be imported: {error}"
        raise ConfigError(
            f"the provider {provider!r} needs the package {name!r}, which {missing}",
            remedy="pip install 'signet-conformance[harness]'",
        ) from None


def unchecked(body: Mapping[str, Any], **demanded: Any) -> dict[str, Any]:
    """Arguments that send `body` as it is; `demanded` are stand-ins for parameters that the package demands.

    The packages would otherwise walk through every message of the conversation on each call, which costs more than the
    rest of it; and their releases differ in which members of a body they have parameters for.
    """
    return {**demanded, "extra_body": dict(body)}


async def plain_events(sdk: Any, client: Any, path: str, body: Mapping[str, Any]) -> Any:
    """The stream that answers `body`, for `events_of`.

    This is the packages' way to requests that they have no method for. Their usual methods make several objects of each
    event, which takes longer than all that is done with the event here.
    """
    body = {**body, "stream": True}
    return await client.post(path, cast_to=object, body=body, stream=True, stream_cls=sdk.AsyncStream[object])


async def plain(raw: Any) -> dict[str, Any]:
    """A whole answer, as the vendor's raw interface hands it over, as the mapping that it was."""
    value = raw.parse()
    told: dict[str, Any] = (await value if isawaitable(value) else value).model_dump(warnings=False)
    return told


def clean(text: str) -> str:
    """`text` without the halves of characters that no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")
