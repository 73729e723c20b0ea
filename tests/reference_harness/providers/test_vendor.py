"""What the vendors' modules share: which servers are reached without the packages' own transports."""

from __future__ import annotations

import socket

import pytest

from signet_reference_harness.providers.vendor import mounts

from .asking import APIS, ask


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("url", "mounted"),
    [
        ("http://127.0.0.1:11434", ["http://127.0.0.1:11434"]),
        ("http://localhost:8000/v1", ["http://localhost:8000"]),
        ("http://[::1]:8000/v1", ["http://[::1]:8000"]),
        ("http://models.acme.example/v1", []),
        ("http://models.acme.example:80/v1", []),
        ("https://api.anthropic.com", []),
        ("https://127.0.0.1:8443", []),
        (None, []),
    ],
)
def test_only_a_port_that_speaks_plain_http_is_reached_directly(url: str | None, mounted: list[str]) -> None:
    """A vendor's own address, TLS and an address for every port stay with the package."""
    assert list(mounts(url)) == mounted


@pytest.mark.parametrize(
    ("name", "mounted"), [("HTTP_PROXY", 0), ("http_proxy", 0), ("ALL_PROXY", 0), ("HTTPS_PROXY", 1)]
)
def test_a_proxy_is_left_to_the_package(monkeypatch: pytest.MonkeyPatch, name: str, mounted: int) -> None:
    """Where the environment names a proxy for plain HTTP, the package looks at what goes through it."""
    monkeypatch.setenv(name, "http://proxy.acme.example:3128")
    assert len(mounts("http://127.0.0.1:11434")) == mounted


@pytest.mark.parametrize("api", APIS)
def test_a_port_where_nobody_listens_is_told_as_such(api: str) -> None:
    """The package has asked it directly, and passes on in whose words it failed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    assert "connection refused" in str(ask(api, url).error)
