"""The vendors' providers pass the test suite for plug-ins."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from signet_conformance.contracts import ProviderContract
from signet_reference_harness.providers import Provider
from signet_reference_harness.providers.failures import Timing
from tests.reference_harness.llm_server.served import Serve

from .asking import make


class VendorContract(ProviderContract):
    """The suite, with the scripted model behind the provider of one API."""

    api: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _served(self, serve: Serve) -> None:
        self._serve = serve

    def answering(self, text: str) -> Provider:
        """The model gives the answer three times."""
        return self._asking(*[{"content": text}] * 3)

    def calling(self, name: str, arguments: dict[str, Any]) -> Provider:
        """The model calls the tool in each answer."""
        return self._asking({"content": [{"type": "tool_call", "name": name, "arguments": arguments}]})

    def failing(self) -> Provider:
        """The key is refused."""
        return self._asking({"error": {"status": 401, "message": "invalid key"}})

    def breaking(self, text: str) -> Provider:
        """The connection is closed in the middle of the answer."""
        return self._asking({"content": text, "fault": {"kind": "close", "after": 2}})

    def _asking(self, *turns: dict[str, Any]) -> Provider:
        async def sleep(_seconds: float) -> None:
            """Do not wait."""

        return make(self.api, self._serve(turns=list(turns)).url, Timing(sleep=sleep, chance=lambda: 0.5))


class TestAnthropicMessages(VendorContract):
    """Anthropic's messages."""

    api = "anthropic-messages"


class TestOpenAICompletions(VendorContract):
    """OpenAI's chat completions."""

    api = "openai-completions"


class TestOpenAIResponses(VendorContract):
    """OpenAI's responses."""

    api = "openai-responses"


class TestOllamaChat(VendorContract):
    """Ollama's chat."""

    api = "ollama-chat"
