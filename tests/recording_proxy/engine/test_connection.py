"""What a client and a daemon say to each other stands in the trace, and nothing is said in their place."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading

import pytest

from tests.support.recorder import Call, RecorderProcess, Upstream, read_until_closed, readable


def test_an_exchange_is_recorded_as_it_was_sent(recorder: RecorderProcess) -> None:
    """Method, path and body stand as sent; names of headers in lower case; the query as decoded pairs, in order."""
    recorder.request("POST", "/api/a%20b/c?x=1&y&x=%C3%A9+2", b'{"n": [1, null]}', X_Signet_Runtime_Path="plugin")
    (exchange,) = recorder.trace().exchanges
    assert (exchange.request.method, exchange.request.path) == ("POST", "/api/a%20b/c")
    assert [tuple(pair) for pair in exchange.request.query] == [("x", "1"), ("y", ""), ("x", "é 2")]
    assert exchange.request.header("x-signet-runtime-path") == "plugin"
    assert exchange.request.body is not None
    assert exchange.request.body.value == {"n": [1, None]}
    assert exchange.response is not None
    assert exchange.response.status == 200
    assert exchange.error is None
    assert exchange.fault is None
    assert 0 <= exchange.t0 <= exchange.t1


@pytest.mark.parametrize(
    ("method", "status", "headers"),
    [
        ("HEAD", "200 OK", "content-length: 5"),
        ("GET", "204 No Content", "x-a: b"),
        ("GET", "304 Not Modified", "etag: 1"),
        ("GET", "200 OK", "content-length: 0"),
    ],
)
def test_an_answer_without_a_body_has_none(
    recorder: RecorderProcess, upstream: Upstream, method: str, status: str, headers: str
) -> None:
    """HEAD, 204, 304 and length 0 leave the body null, and the connection usable."""
    upstream.handlers["/bare"] = lambda call: call.send(f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n".encode())
    assert recorder.request(method, "/bare") == (int(status[:3]), b"")
    (exchange,) = recorder.trace().exchanges
    assert exchange.response is not None
    assert exchange.response.body is None
    assert exchange.request.body is None


def test_pipelined_requests_are_answered_in_order(recorder: RecorderProcess) -> None:
    """Two requests in one segment are two exchanges of one connection."""
    with recorder.connect() as client:
        head = b"GET /%d HTTP/1.1\r\nhost: x\r\n%s\r\n"
        client.sendall(head % (1, b"") + head % (2, b"connection: close\r\n"))
        heard = read_until_closed(client)
    assert 0 < heard.find(b'"/1"') < heard.find(b'"/2"')
    exchanges = recorder.trace().exchanges
    assert [e.request.path for e in exchanges] == ["/1", "/2"]
    assert len({e.conn for e in exchanges}) == 1


def test_http_1_0_is_carried(recorder: RecorderProcess) -> None:
    """An HTTP/1.0 client gets its answer and the end of the connection."""
    with recorder.connect() as client:
        client.sendall(b"GET /old HTTP/1.0\r\n\r\n")
        assert read_until_closed(client).endswith(b'{"path": "/old"}')
    assert recorder.trace().exchanges[0].request.path == "/old"


def test_expect_continue_is_answered(recorder: RecorderProcess, upstream: Upstream) -> None:
    """A client that waits for 100 may send its body, and the header stands in the trace."""
    with recorder.connect() as client:
        client.sendall(
            b"POST /x HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
        )
        assert client.recv(65536).startswith(b"HTTP/1.1 100")
        client.sendall(b"{}")
        assert b"200 OK" in read_until_closed(client)
    assert upstream.calls[-1].body == b"{}"
    assert recorder.trace().exchanges[0].request.header("expect") == "100-continue"


def test_a_chunked_request_is_kept(recorder: RecorderProcess, upstream: Upstream) -> None:
    """The chunks of a request are its body."""
    with recorder.connect() as client:
        client.sendall(b"POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n")
        client.sendall(b'3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n')
        read_until_closed(client)
    assert upstream.calls[-1].body == b'{"a":1}'
    body = recorder.trace().exchanges[0].request.body
    assert body is not None
    assert body.value == {"a": 1}


def test_a_coded_body_is_decoded_in_the_trace_only(recorder: RecorderProcess, upstream: Upstream) -> None:
    """The client gets the very bytes of a gzip answer, the trace what they mean."""
    coded = gzip.compress(b'{"plain": true}')
    upstream.handlers["/z"] = lambda call: call.answer(coded, "content-encoding: gzip")
    assert recorder.request("GET", "/z") == (200, coded)
    response = recorder.trace().exchanges[0].response
    assert response is not None
    assert response.body is not None
    assert response.body.value == {"plain": True}


def test_codings_of_two_header_lines_are_undone(recorder: RecorderProcess, upstream: Upstream) -> None:
    """Two `Content-Encoding` lines are one list."""
    coded = gzip.compress(gzip.compress(b'{"plain": true}'))
    upstream.handlers["/z"] = lambda call: call.answer(coded, "content-encoding: gzip", "content-encoding: gzip")
    assert recorder.request("GET", "/z") == (200, coded)
    (exchange,) = recorder.trace().exchanges
    assert exchange.response is not None
    assert exchange.response.body is not None
    assert exchange.response.body.value == {"plain": True}


def test_a_request_shows_no_secret_that_its_answer_gives_away(recorder: RecorderProcess, upstream: Upstream) -> None:
    """Though its part of the line may have been made before the answer came."""
    secret = "a-session-0f1e2d3c4b5a"
    upstream.handlers["/login"] = lambda call: call.answer(b"{}", f"x-session-token: {secret}")
    recorder.request("POST", "/login", f'{{"note": "I am {secret}"}}'.encode())
    (exchange,) = recorder.trace().exchanges
    assert exchange.request.body is not None
    assert secret not in str(exchange.request.body.value)


def test_a_large_body_is_cut_in_the_trace_only(recorder: RecorderProcess, upstream: Upstream) -> None:
    """Over the limit the trace keeps size, SHA-256 and a beginning; the wire keeps everything."""
    large = b"word " * 100_000
    upstream.handlers["/large"] = lambda call: call.answer(large, media_type="text/plain")
    assert recorder.request("POST", "/large", large)[1] == large
    assert upstream.calls[-1].body == large
    exchange = recorder.trace().exchanges[0]
    for message in (exchange.request, exchange.response):
        assert message is not None
        assert message.body is not None
        assert (message.body.kind, message.body.size) == ("cut", len(large))
        assert message.body.sha256 == hashlib.sha256(large).hexdigest()
        assert large.startswith(message.body.value.encode())
        assert len(message.body.value) > 19_000


def test_events_stream_through_unbuffered(recorder: RecorderProcess, upstream: Upstream) -> None:
    """The client has the first event before the daemon sends the second."""
    first_heard = threading.Event()

    def stream(call: Call) -> None:
        call.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        call.send(b"9\r\ndata: 1\n\n\r\n")
        assert first_heard.wait(20)
        call.send(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")

    upstream.handlers["/mcp"] = stream
    with recorder.connect() as client:
        client.sendall(b"GET /mcp HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        seen = b""
        while b"data: 1\n\n" not in seen:
            seen += client.recv(4096)
        first_heard.set()
        assert b"data: 2\n\n" in read_until_closed(client)
    response = recorder.trace().exchanges[0].response
    assert response is not None
    assert response.body is not None
    assert (response.body.kind, response.body.value) == ("text", "data: 1\n\ndata: 2\n\n")


def test_a_body_that_lets_the_client_wait_comes_after_the_head(recorder: RecorderProcess, upstream: Upstream) -> None:
    """The head goes out before a body that is long in coming."""
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
    heard = threading.Event()

    def slow(call: Call) -> None:
        call.send(head)
        heard.wait(20)
        call.send(b"{}")

    upstream.handlers["/slow-body"] = slow
    with recorder.connect() as client:
        client.sendall(b"GET /slow-body HTTP/1.1\r\nhost: x\r\n\r\n")
        assert client.recv(65536) == head
        heard.set()
        assert client.recv(65536) == b"{}"
    (exchange,) = recorder.trace().exchanges
    assert exchange.error is None


def test_blanks_behind_a_value_are_neither_recorded_nor_passed_on(
    recorder: RecorderProcess, upstream: Upstream
) -> None:
    """They are no part of it; a length and the recorder's own address are known with them."""
    own = recorder.url.removeprefix("http://").encode()
    with recorder.connect() as client:
        client.sendall(
            b"POST /x HTTP/1.1\r\nhost: "
            + own
            + b" \r\nx-signet-runtime-path: plugin \r\nauthorization: Bearer abc\t \r\n"
            b"content-length: 2 \r\nconnection: close \r\n\r\n{}"
        )
        assert read_until_closed(client).startswith(b"HTTP/1.1 200")
    (exchange,) = recorder.trace().exchanges
    assert exchange.request.header("host") == own.decode()
    assert exchange.request.header("x-signet-runtime-path") == "plugin"
    (call,) = upstream.calls
    assert call.headers["host"] == upstream.url.removeprefix("http://")
    assert [call.headers[name] for name in ("x-signet-runtime-path", "authorization")] == ["plugin", "Bearer abc"]


@pytest.mark.parametrize(
    "request_head",
    [
        b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n",
        b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: many\r\n\r\n",
        b"POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
    ],
)
def test_a_request_that_cannot_be_carried(recorder: RecorderProcess, upstream: Upstream, request_head: bytes) -> None:
    """What has no meaning to a daemon does not reach it; it is recorded, and its sender is sent away."""
    with recorder.connect() as client:
        client.sendall(request_head)
        assert b"200" not in read_until_closed(client)
    (exchange,) = recorder.trace().exchanges
    assert (exchange.response, exchange.error) == (None, "not_carried")
    assert upstream.calls == []


def test_numbers_follow_the_beginning_not_the_end(recorder: RecorderProcess, upstream: Upstream) -> None:
    """An exchange that begins first has the lower number, though its line is written later."""
    asked, go_on = threading.Event(), threading.Event()

    def late(call: Call) -> None:
        asked.set()
        assert go_on.wait(20)
        call.answer(b"{}")

    upstream.handlers["/late"] = late
    with recorder.connect() as client:
        client.sendall(b"GET /late HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert asked.wait(20)
        assert not readable(client)
        recorder.request("GET", "/early")
        go_on.set()
        read_until_closed(client)
    exchanges = recorder.trace().exchanges
    assert [e.request.path for e in exchanges] == ["/late", "/early"]
    assert exchanges[0].line > exchanges[1].line
    assert exchanges[0].t1 > exchanges[1].t1


def test_many_connections_lose_nothing(recorder: RecorderProcess) -> None:
    """32 clients at once, each keeping its connection: every request is recorded once, none mixed up."""

    def client(number: int) -> None:
        with recorder.connect() as connection:
            stream = connection.makefile("rb")
            for turn in range(20):
                connection.sendall(b"GET /n/%d/%d HTTP/1.1\r\nhost: x\r\n\r\n" % (number, turn))
                while stream.readline() != b"\r\n":
                    pass
                assert json.loads(stream.read(len(b'{"path": "/n/%d/%d"}' % (number, turn))))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    exchanges = recorder.trace().exchanges
    assert sorted(e.request.path for e in exchanges) == sorted(f"/n/{n}/{t}" for n in range(32) for t in range(20))
    for exchange in exchanges:
        assert exchange.response is not None
        assert exchange.response.body is not None
        assert exchange.response.body.value == {"path": exchange.request.path}
    by_connection: dict[int | None, list[str]] = {}
    for exchange in exchanges:
        by_connection.setdefault(exchange.conn, []).append(exchange.request.path)
    assert [len(paths) for paths in by_connection.values()] == [20] * 32
