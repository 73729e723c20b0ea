"""What OpenAI's two APIs share: the package, its client, and the list of models."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from signet_reference_harness.providers.failures import answered
from signet_reference_harness.providers.vendor import NO_KEY, VendorProvider, mounts


class OpenAIProvider(VendorProvider):
    """A provider that asks through OpenAI's package, which does not retry on its own here."""

    package = "openai"

    @staticmethod
    def import_package() -> Any:
        """OpenAI's own package."""
        import openai

        return openai

    def _connect(self) -> Any:
        settings = self._settings
        return self._sdk.AsyncOpenAI(
            api_key=settings.key.reveal() if settings.key else NO_KEY,
            base_url=settings.base_url,
            max_retries=0,
            timeout=settings.timeout_s,
            http_client=self._sdk.DefaultAsyncHttpxClient(mounts=mounts(settings.base_url)),
        )

    def _models(self) -> Awaitable[Any]:
        request: Awaitable[Any] = self._client.models.list()
        return request

    def _refuse(self, event: Mapping[str, Any]) -> None:
        """Raises for an event that tells an error, whatever else it is."""
        if event.get("error"):
            raise answered(None, event, {}, "no message", self._timing.now())
