"""Exchanges that client or daemon breaks off: what the other one gets, and what the trace says."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading

import pytest

from tests.support.ports import unheard_port
from tests.support.recorder import Call, RecorderProcess, Upstream, is_reset, read_until_closed


def test_a_daemon_that_refuses_is_refused_to_the_client(recorder: RecorderProcess, upstream: Upstream) -> None:
    """Nobody listens upstream: the client gets a reset, never an answer, and the trace says upstream_refused."""
    with unheard_port() as port:
        recorder.command("upstream", url=f"http://127.0.0.1:{port}")
        try:
            with recorder.connect() as client:
                client.sendall(b"POST /api/hooks/session-start HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
                assert is_reset(client)
        finally:
            recorder.command("upstream", url=upstream.url)
    (exchange,) = recorder.trace().exchanges
    assert (exchange.response, exchange.error) == (None, "upstream_refused")
    assert exchange.request.body is not None


@pytest.mark.parametrize("ending", ["reset", "close"])
def test_a_daemon_that_hangs_up_is_upstream_reset(recorder: RecorderProcess, upstream: Upstream, ending: str) -> None:
    """Cut off before its answer, by reset or by close: the client gets a reset, the trace upstream_reset."""
    upstream.handlers["/cut"] = lambda call: call.reset() if ending == "reset" else call.connection.shutdown(2)
    with recorder.connect() as client:
        client.sendall(b"GET /cut HTTP/1.1\r\nhost: x\r\n\r\n")
        assert is_reset(client)
    (exchange,) = recorder.trace().exchanges
    assert (exchange.response, exchange.error) == (None, "upstream_reset")


def test_an_answer_cut_in_the_middle_keeps_what_came(recorder: RecorderProcess, upstream: Upstream) -> None:
    """The client gets the part and the end of the connection; the trace the part and upstream_reset."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n"

    def half(call: Call) -> None:
        call.send(head + b'{"half"')
        call.connection.shutdown(socket.SHUT_RDWR)

    upstream.handlers["/half"] = half
    with recorder.connect() as client:
        client.sendall(b"GET /half HTTP/1.1\r\nhost: x\r\n\r\n")
        assert read_until_closed(client) == head + b'{"half"'
    (exchange,) = recorder.trace().exchanges
    assert exchange.error == "upstream_reset"
    assert exchange.response is not None
    assert exchange.response.body is not None
    assert exchange.response.body.value == '{"half"'


def answer_nothing(upstream: Upstream, path: str) -> tuple[threading.Event, threading.Event]:
    """Let a daemon wait at a path until its client leaves; the events say that it was asked, and that it was left."""
    asked, left = threading.Event(), threading.Event()

    def wait(call: Call) -> None:
        asked.set()
        call.wait_until_left()
        left.set()

    upstream.handlers[path] = wait
    return asked, left


def test_a_client_that_leaves_is_timed_from_its_leaving(recorder: RecorderProcess, upstream: Upstream) -> None:
    """client_closed is over before the daemon answers, and the daemon sees the client leave."""
    asked, left = answer_nothing(upstream, "/slow")
    with recorder.connect() as client:
        client.sendall(b"POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
        assert asked.wait(20)
        before = recorder.command("mark", name="before")["seq"]
    assert left.wait(20)
    answered = recorder.command("mark", name="answered")["seq"]
    trace = recorder.trace()
    (exchange,) = trace.exchanges
    times = {mark.seq: mark.t for mark in trace.marks}
    assert (exchange.response, exchange.error) == (None, "client_closed")
    assert times[before] <= exchange.t1 <= times[answered]
    assert json.loads(exchange.raw)["error"]["t"] == exchange.t1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell it from one that left")
@pytest.mark.parametrize("paths", [["/slow"], ["/slow", "/next"]], ids=["one request", "two requests"])
def test_a_client_that_stops_sending_is_answered(
    recorder: RecorderProcess, upstream: Upstream, paths: list[str]
) -> None:
    """What it asked before, even if the daemon takes longer than the recorder waits to look; then comes the end."""
    asked, answer = threading.Event(), threading.Event()

    def slow(call: Call) -> None:
        asked.set()
        answer.wait(20)
        call.answer(b'{"late":true}')

    upstream.handlers["/slow"] = slow
    with recorder.connect() as client:
        for path in paths:
            client.sendall(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        assert asked.wait(20)
        client.shutdown(socket.SHUT_WR)
        recorder.let_it_work()
        threading.Timer(0.3, answer.set).start()
        heard = read_until_closed(client)
    assert heard.count(b"HTTP/1.1 200") == len(paths)
    assert b'{"late":true}' in heard
    assert [(e.request.path, e.error) for e in recorder.trace().exchanges] == [(path, None) for path in paths]


def test_a_client_that_stops_sending_and_then_leaves_has_left(recorder: RecorderProcess, upstream: Upstream) -> None:
    """Nothing on the wire tells that: it is looked after."""
    asked, left = answer_nothing(upstream, "/slow")
    with recorder.connect() as client:
        client.sendall(b"POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
        assert asked.wait(20)
        client.shutdown(socket.SHUT_WR)
        recorder.let_it_work()
    assert left.wait(20)
    (exchange,) = recorder.trace().exchanges
    assert (exchange.response, exchange.error, exchange.request.incomplete) == (None, "client_closed", False)


def test_a_client_that_stops_in_the_middle_of_its_request_has_left(recorder: RecorderProcess) -> None:
    """Nothing could be answered to a part of a request."""
    with recorder.connect() as client:
        client.sendall(b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n{}")
        client.shutdown(socket.SHUT_WR)
        assert read_until_closed(client) == b""
    (exchange,) = recorder.trace().exchanges
    assert (exchange.response, exchange.error, exchange.request.incomplete) == (None, "client_closed", True)


def test_a_client_that_leaves_in_the_middle_keeps_what_it_heard(recorder: RecorderProcess, upstream: Upstream) -> None:
    """An answer that was under way stands beside client_closed."""
    heard, left = threading.Event(), threading.Event()

    def endless(call: Call) -> None:
        call.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n")
        heard.wait(20)
        call.wait_until_left()
        left.set()

    upstream.handlers["/endless"] = endless
    with recorder.connect() as client:
        client.sendall(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
        while b"data: 1" not in client.recv(65536):
            pass
        heard.set()
    assert left.wait(20)
    (exchange,) = recorder.trace().exchanges
    assert exchange.error == "client_closed"
    assert exchange.response is not None
    assert exchange.response.body is not None
    assert exchange.response.body.value == "data: 1\n\n"


def test_a_client_that_leaves_in_its_request_is_recorded(recorder: RecorderProcess) -> None:
    """A request whose body never came whole is client_closed, and told as incomplete."""
    with recorder.connect() as client:
        client.sendall(b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc")
        while recorder.command("counts")["in_flight"] == 0:
            pass
    (exchange,) = recorder.trace().exchanges
    assert exchange.error == "client_closed"
    assert exchange.request.incomplete
    assert exchange.request.body is not None
    assert exchange.request.body.value == "abc"


def test_a_client_that_leaves_after_its_request_has_sent_it_whole(
    recorder: RecorderProcess, upstream: Upstream
) -> None:
    """Nothing is said of it then: the daemon had all of it."""
    asked = threading.Event()
    upstream.handlers["/silent"] = lambda _call: asked.set()
    with recorder.connect() as client:
        client.sendall(b"POST /silent HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
        assert asked.wait(20)
    (exchange,) = recorder.trace().exchanges
    assert b"incomplete" not in exchange.raw
    assert not exchange.request.incomplete


def test_a_client_that_asks_and_leaves_at_once_has_asked_the_daemon(
    recorder: RecorderProcess, upstream: Upstream
) -> None:
    """Request and end of the connection have both arrived when the recorder reads: the daemon gets the request."""
    asked = threading.Event()
    upstream.handlers["/last"] = lambda _call: asked.set()
    with recorder.connect() as client:
        client.sendall(b"GET /first HTTP/1.1\r\nhost: x\r\n\r\n")
        assert client.recv(65536)
        recorder.process.send_signal(signal.SIGSTOP)
        client.sendall(b"POST /last HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
    recorder.process.send_signal(signal.SIGCONT)
    assert asked.wait(20)
    assert [exchange.error for exchange in recorder.trace().exchanges] == [None, "client_closed"]
