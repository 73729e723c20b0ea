"""The file of a routing table, as people write it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from signet_reference_harness.documents import HarnessDocument, StrictModel, read_document


class DaemonEntry(StrictModel):
    """Where an agent's daemon is, and the environment variable that holds the token for it."""

    url: str
    """The daemon's origin."""
    token_env: str | None = Field(default=None, min_length=1)
    """The environment variable that holds the daemon's token."""


class RoutesFile(HarnessDocument):
    """The daemons by agent."""

    schema_file: ClassVar[str] = "harness/signet-harness-routes-1.schema.json"
    agents: dict[str, DaemonEntry | str] = Field(min_length=1)


def read_routes(path: Path) -> dict[str, tuple[str, str | None]]:
    """URL and variable of the token of each agent's daemon. Raises DocumentError."""
    agents = read_document(RoutesFile, path).agents
    return {
        agent: (told, None) if isinstance(told, str) else (told.url, told.token_env) for agent, told in agents.items()
    }
