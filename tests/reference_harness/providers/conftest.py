"""The scripted model server, and providers that do not wait."""

from __future__ import annotations

from tests.reference_harness.llm_server.conftest import scripted_model, serve

__all__ = ["scripted_model", "serve"]
