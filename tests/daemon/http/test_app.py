"""What the application does before and around every route."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Kit


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:3850", "localhost:1", "LOCALHOST", "[::1]:3850"])
def test_own_host_is_served(kit: Kit, host: str) -> None:
    """Requests to a name of this machine are answered."""
    assert kit.get("/health", headers={"host": host}).status_code == 200


def test_blanks_behind_a_value_are_no_part_of_it(kit: Kit) -> None:
    """A header that ends in blanks says what it says without them."""
    assert kit.get("/health", headers={"host": "127.0.0.1 \t"}).status_code == 200
    kit.hook("session-start", sessionKey="s-1", path="plugin ")
    assert kit.hook("session-start", sessionKey="s-1", path="legacy").status_code == 409


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "127.0.0.1:x", ""]
)
def test_foreign_host_is_refused(kit: Kit, host: str) -> None:
    """Requests that a foreign name led here are 403."""
    answer = kit.get("/health", headers={"host": host})
    assert (answer.status_code, answer.json()) == (403, {"error": "host not allowed"})


def test_a_request_that_says_no_host_is_served(kit: Kit) -> None:
    """A client of HTTP/1.0 need not say one; a browser always does."""
    request = httpx.Request("GET", "http://127.0.0.1/health")
    del request.headers["host"]
    answer = asyncio.run(httpx.ASGITransport(kit.app).handle_async_request(request))
    assert answer.status_code == 200


def test_foreign_host_is_served_when_remote_is_allowed(start: Callable[..., Kit]) -> None:
    """A daemon that may be reached from elsewhere answers under any name."""
    assert start(allow_remote=True).get("/health", headers={"host": "box.example"}).status_code == 200


@pytest.mark.parametrize(("size", "status"), [(10 * 1024 * 1024 - 40, 200), (10 * 1024 * 1024 + 1, 413)])
def test_body_limit(kit: Kit, size: int, status: int) -> None:
    """A body may have 10 MiB."""
    assert kit.hook("session-end", pad="x" * (size - 100)).status_code in (200, status)
    assert kit.post("/api/hooks/session-end", content=b" " * size).status_code == (500 if status == 200 else 413)


def test_body_limit_holds_without_a_declared_length(kit: Kit) -> None:
    """A chunked body over the limit is refused as well."""

    async def pieces() -> object:
        for _ in range(11):
            yield b"x" * 1024 * 1024

    answer = kit.post("/api/hooks/session-end", content=pieces())
    assert (answer.status_code, answer.json()) == (413, {"error": "payload too large"})


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/hooks/session-start"), ("POST", "/api/hooks/session-start/"), ("PUT", "/health"), ("POST", "/nope")],
)
def test_unknown_route_is_plain_404(kit: Kit, method: str, path: str) -> None:
    """A wrong method or a trailing slash is no route, never 405."""
    answer = kit.send(method, path)
    assert (answer.status_code, answer.text) == (404, "404 Not Found")
    assert answer.headers["content-type"] == "text/plain; charset=UTF-8"


@pytest.mark.parametrize("path", ["/api/%68ealth", "/%68ealth"])
def test_path_is_decoded_once(kit: Kit, path: str) -> None:
    """An escaped letter in a path is that letter."""
    assert kit.get(path).status_code == (200 if path == "/%68ealth" else 404)


def test_escaped_slash_stays_in_the_id(kit: Kit) -> None:
    """A %2F in an id does not make a second segment."""
    assert kit.get("/api/memory/a%2Fb").json() == {"error": "not found"}


def test_shutting_down(start: Callable[..., Kit]) -> None:
    """While it stops, everything but /health is 503."""
    kit = start(shutting_down=True)
    assert kit.get("/health").json()["status"] == "shutting_down"
    answer = kit.hook("session-start")
    assert (answer.status_code, answer.json()) == (503, {"error": "shutting down"})


@pytest.mark.parametrize(
    ("origin", "allowed"), [("http://localhost:5173", "http://localhost:5173"), ("https://evil.example", None)]
)
def test_cors(kit: Kit, origin: str, allowed: str | None) -> None:
    """Only the daemon's own pages may read answers from a browser."""
    assert kit.get("/health", headers={"origin": origin}).headers.get("access-control-allow-origin") == allowed


def test_a_crash_is_an_answer(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever breaks inside a hook is its 500, and the daemon lives on."""
    monkeypatch.setattr(kit.app.daemon.presence, "register", None)
    answer = kit.hook("session-start")
    assert (answer.status_code, answer.json()) == (500, {"error": "Hook execution failed"})
    assert kit.get("/health").status_code == 200
