"""An embedded daemon in the test's own process, with a clock that the test moves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from signet_conformance.daemon.http.app import DaemonApp, create_app
from signet_conformance.daemon.state import DaemonSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class MovedClock:
    """Epoch seconds that stand still until a test moves them."""

    now: float = 1_795_296_000.0

    def __call__(self) -> float:
        """The time that the test has set."""
        return self.now

    def move(self, *, hours: float = 0, minutes: float = 0, days: float = 0) -> None:
        """Let time pass."""
        self.now += days * 86_400 + hours * 3600 + minutes * 60


class Kit:
    """One embedded daemon and a client that speaks to it without a network."""

    def __init__(self, app: DaemonApp) -> None:
        self.app = app
        self._runner = asyncio.Runner()
        self._transport = httpx.ASGITransport(app)
        self._client = httpx.AsyncClient(transport=self._transport, base_url="http://127.0.0.1:3850")

    def move_to(self, address: str) -> None:
        """Send later requests from another address."""
        self._transport.client = (address, 123)

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """The answer to one request; `body` is sent as JSON."""
        if body is not None:
            options["json"] = body
        return self._runner.run(self._client.request(method, path, **options))

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """The answer to a POST."""
        return self.send("POST", path, body, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """The answer to a GET."""
        return self.send("GET", path, **options)

    def hook(self, name: str, *, path: str | None = None, **fields: Any) -> httpx.Response:
        """The answer to a hook of harness claude-code on the runtime path `path`."""
        headers = {"x-signet-runtime-path": path} if path else {}
        return self.post(f"/api/hooks/{name}", {"harness": "claude-code", **fields}, headers=headers)

    def remember(self, content: str, **fields: Any) -> dict[str, Any]:
        """The answer to a save."""
        answer: dict[str, Any] = self.post("/api/memory/remember", {"content": content, **fields}).json()
        return answer

    def recalled(self, query: str, **fields: Any) -> list[str]:
        """The contents that a recall finds."""
        answer = self.post("/api/memory/recall", {"query": query, **fields}).json()
        return [row["content"] for row in answer["results"]]

    def together(self, *requests: tuple[str, Any]) -> list[httpx.Response]:
        """The answers to POST requests that are sent at the same time."""

        async def all_of_them() -> list[httpx.Response]:
            return await asyncio.gather(*(self._client.post(path, json=body) for path, body in requests))

        return self._runner.run(all_of_them())

    def close(self) -> None:
        """End daemon and client."""
        self._runner.run(self._client.aclose())
        self._runner.run(self.app.daemon.close())
        self._runner.close()


@pytest.fixture
def clock() -> MovedClock:
    """A clock that the test moves."""
    return MovedClock()


@pytest.fixture
def start(tmp_path: Path, clock: MovedClock) -> Iterator[Callable[..., Kit]]:
    """Starts daemons of given settings, all on one workspace, and ends them after the test."""
    started: list[Kit] = []

    def starting(**settings: Any) -> Kit:
        wanted = replace(DaemonSettings(workspace=tmp_path / "workspace"), **settings)
        started.append(Kit(create_app(wanted, clock)))
        return started[-1]

    yield starting
    for kit in started:
        kit.close()


@pytest.fixture
def kit(start: Callable[..., Kit]) -> Kit:
    """A daemon of version 0.145."""
    return start()
