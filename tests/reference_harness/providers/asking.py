"""How the tests call a model: by a provider of each API, streamed or not, with a clock that does not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from signet_reference_harness.config import Secret
from signet_reference_harness.messages import Message, ToolDefinition
from signet_reference_harness.providers import CompletionOptions, CompletionResult, Provider
from signet_reference_harness.providers.anthropic import AnthropicProvider
from signet_reference_harness.providers.failures import Timing
from signet_reference_harness.providers.ollama import OllamaProvider
from signet_reference_harness.providers.openai import OpenAIChatProvider, OpenAIResponsesProvider
from signet_reference_harness.providers.settings import ProviderSettings

KEY = "sk-planted-2f9c"
PROVIDERS = {
    "anthropic-messages": AnthropicProvider,
    "openai-completions": OpenAIChatProvider,
    "openai-responses": OpenAIResponsesProvider,
    "ollama-chat": OllamaProvider,
}
APIS = tuple(PROVIDERS)
HELLO = (Message("user", "hi"),)
RECALL = ToolDefinition("recall", "Recalls.", {"type": "object", "properties": {"q": {"type": "string"}}})


@dataclass
class Asked:
    """The outcome of a question: the shown text, the result or the error, and the waits in seconds."""

    shown: list[tuple[str, str]] = field(default_factory=list)
    result: CompletionResult | None = None
    error: Exception | None = None
    waits: list[float] = field(default_factory=list)

    @property
    def answer(self) -> CompletionResult:
        """The result; it must exist."""
        assert self.result is not None, self.error
        return self.result

    @property
    def text(self) -> str:
        """The text that was shown, without thinking."""
        return "".join(text for text, kind in self.shown if kind == "text")


def make(api: str, url: str, timing: Timing | None = None, **settings: Any) -> Provider:
    """The provider for an API of the scripted server."""
    base_url = f"{url}/v1" if api.startswith("openai") else url
    given = {"provider": api, "api": api, "model": "m", "base_url": base_url, "key": Secret(KEY), **settings}
    return PROVIDERS[api](ProviderSettings(**given), timing)


def ask(
    api: str,
    url: str,
    messages: Sequence[Message] = HELLO,
    *,
    streamed: bool = True,
    options: CompletionOptions | None = None,
    **settings: Any,
) -> Asked:
    """Ask once."""
    asked = Asked()

    async def sleep(seconds: float) -> None:
        asked.waits.append(seconds)

    async def run() -> None:
        provider = make(api, url, Timing(sleep=sleep, chance=lambda: 0.5), **settings)
        wish = options or CompletionOptions(tools=(RECALL,), system_prompt="Be brief.")
        try:
            if not streamed:
                asked.result = await provider.complete(messages, wish)
                return
            async for chunk in provider.stream(messages, wish):
                if chunk.result is not None:
                    asked.result = chunk.result
                else:
                    asked.shown.append((chunk.text, chunk.kind))
        except Exception as error:  # noqa: BLE001  # whatever it is, the test looks at it
            asked.error = error
        finally:
            await provider.aclose()

    asyncio.run(run())
    return asked
