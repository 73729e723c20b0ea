"""The daemon's address is an origin, or refused; whether a daemon is there, and which version it says it is."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st
from mitmproxy.proxy.mode_specs import ProxyMode

from signet_conformance.errors import UsageError
from signet_recording_proxy import upstream
from signet_recording_proxy.upstream import Upstream, ask
from tests.support import recorder


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        ("http://127.0.0.1:3850", "127.0.0.1", 3850, "127.0.0.1:3850"),
        ("http://127.0.0.1:3850/", "127.0.0.1", 3850, "127.0.0.1:3850"),
        ("HTTP://LocalHost", "localhost", 80, "localhost"),
        ("https://signet.example.com", "signet.example.com", 443, "signet.example.com"),
        ("http://[::1]:3850", "::1", 3850, "[::1]:3850"),
        ("http://my_daemon:1", "my_daemon", 1, "my_daemon:1"),
    ],
)
def test_an_origin_is_split_into_host_port_and_name(url: str, host: str, port: int, authority: str) -> None:
    """Host, port and the name for a Host header are taken from the URL."""
    upstream = Upstream(url)
    assert (upstream.host, upstream.port, upstream.authority) == (host, port, authority)
    assert upstream.url == f"{upstream.scheme}://{authority}"


@pytest.mark.parametrize(
    "url",
    [
        *("", "127.0.0.1:3850", "ftp://x", "http://", "http://x/api", "http://x?a", "http://x#a", "http://x:0"),
        *("http://x:99999", "http://[::1", "http://a b", "http://a..b", "http://%41", "http://-a", "http://x:y"),
        "http://" + "a" * 64,
    ],
)
def test_an_address_that_is_no_origin_is_refused(url: str) -> None:
    """Anything else is refused with a remedy."""
    with pytest.raises(UsageError, match="not an origin") as refusal:
        Upstream(url)
    assert refusal.value.remedy


def test_credentials_are_refused_and_not_repeated() -> None:
    """A password in the address would reach the trace and the terminal."""
    with pytest.raises(UsageError, match="credentials") as refusal:
        Upstream("http://user:hunter2@host:1")
    assert "hunter2" not in str(refusal.value)


@given(st.text(max_size=12) | st.from_regex(r"[a-z0-9._\\-]{1,12}", fullmatch=True))
def test_what_is_accepted_can_be_used(host: str) -> None:
    """Mitmproxy understands each address that is not refused."""
    try:
        upstream = Upstream(f"http://{host}:1")
    except UsageError:
        return
    assert ProxyMode.parse(f"reverse:{upstream.url}")


@pytest.mark.parametrize(
    ("answer", "version", "odd"),
    [
        (recorder.HEALTH, "0.145.7", ""),
        (b"<html>", None, "with status 200 and no JSON object"),
        (b"[]", None, "with status 200 and no JSON object"),
        (b'{"version": 3}', None, ""),
        (b"[" * 100_000, None, "with status 200 and no JSON object"),
        (b"\xff", None, "with status 200 and no JSON object"),
        (b"", None, "with status 200 and no JSON object"),
    ],
)
def test_any_answer_shows_that_a_daemon_is_there(answer: bytes, version: str | None, odd: str) -> None:
    """Somebody is there whatever they answer; the version is known when it is said, and what no daemon says is odd."""
    daemon = recorder.Upstream()
    daemon.handlers["/health"] = lambda call: call.answer(answer)
    assert asyncio.run(ask(Upstream(daemon.url))) == (True, version, odd)
    daemon.close()


def test_a_connection_that_is_refused_or_cut_off_is_no_answer() -> None:
    """The version stays unknown."""
    daemon = recorder.Upstream()
    daemon.handlers["/health"] = lambda call: call.reset()
    assert asyncio.run(ask(Upstream(daemon.url))) == (False, None, "")
    daemon.close()
    assert asyncio.run(ask(Upstream(daemon.url))) == (False, None, "")


def test_an_endless_row_of_informational_answers_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each 100 Continue comes within the timeout, and no answer does."""
    monkeypatch.setattr(upstream, "TIMEOUT_S", 0.2)
    daemon = recorder.Upstream()

    def go_on(call: recorder.Call) -> None:
        call.connection.settimeout(0.01)
        told = b"GET"
        while told:
            call.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            with suppress(TimeoutError):
                told = call.connection.recv(65536)

    daemon.handlers["/health"] = go_on
    assert asyncio.run(ask(Upstream(daemon.url))) == (False, None, "")
    daemon.close()
