"""The providers that come with the harness: which API each speaks, where, and which variables its vendor named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from signet_reference_harness.providers.reasons import Api

DEFAULT: Final = "anthropic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One provider. Without `base_url` the address must be configured; `needs_key` holds at that address only."""

    api: Api
    base_url: str | None = None
    needs_key: bool = False
    key_variable: str | None = None
    base_url_variable: str | None = None


_OPENAI: Final = {
    "base_url": "https://api.openai.com/v1",
    "key_variable": "OPENAI_API_KEY",
    "base_url_variable": "OPENAI_BASE_URL",
}
KINDS: Final[Mapping[str, Kind]] = {
    "anthropic": Kind(
        api="anthropic-messages",
        base_url="https://api.anthropic.com",
        needs_key=True,
        key_variable="ANTHROPIC_API_KEY",
        base_url_variable="ANTHROPIC_BASE_URL",
    ),
    "openai": Kind(api="openai-completions", needs_key=True, **_OPENAI),
    "openai-responses": Kind(api="openai-responses", needs_key=True, **_OPENAI),
    "openai-compatible": Kind(api="openai-completions"),
    "ollama": Kind(
        api="ollama-chat",
        base_url="http://127.0.0.1:11434",
        key_variable="OLLAMA_API_KEY",
        base_url_variable="OLLAMA_HOST",
    ),
}
OF_API: Final[Mapping[str, str]] = {
    "anthropic-messages": "anthropic",
    "openai-completions": "openai",
    "openai-responses": "openai-responses",
    "ollama-chat": "ollama",
}
"""The provider that is meant where only an API is named; an API's name names it, too."""
CLASSES: Final[Mapping[Api, str]] = {
    "anthropic-messages": "signet_reference_harness.providers.anthropic:AnthropicProvider",
    "openai-completions": "signet_reference_harness.providers.openai_chat:OpenAIChatProvider",
    "openai-responses": "signet_reference_harness.providers.openai_responses:OpenAIResponsesProvider",
    "ollama-chat": "signet_reference_harness.providers.ollama:OllamaProvider",
}
