"""Language models: what the session loop asks of one, and the providers that ask the vendors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from signet_reference_harness.messages import Message
from signet_reference_harness.providers.completion import CompletionChunk, CompletionOptions, CompletionResult


class Provider(Protocol):
    """A language model.

    `complete` and `stream` raise ProviderError, and only that, when it cannot answer. A stream that has yielded a
    chunk raises no more: it ends with a result that says how it broke and holds what had arrived. The messages hold
    no reminders: the loop has lowered them to text. A user's message may follow the results of tools, and then belongs
    into one message with them where the vendor knows such messages.
    """

    @property
    def id(self) -> str:
        """The provider's name, such as `ollama`."""

    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        """The model's next message."""

    def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        """The model's next message, piece by piece."""

    async def available(self) -> bool:
        """Whether the model can be asked at all."""

    async def aclose(self) -> None:
        """Ends the connections that the provider holds; nothing is asked of it after that."""
