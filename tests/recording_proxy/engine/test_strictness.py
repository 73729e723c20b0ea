"""What two readers could take apart in two ways is refused: neither the daemon nor the next exchange hears of it."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise

import pytest

from signet_conformance.trace.marks import NoRequestMark, marks_of
from signet_recording_proxy.engine.messages import MAX_HEAD, MAX_INTERIM, AnswerReader, Complaint, RequestReader
from tests.support.recorder import RecorderProcess, Upstream, is_reset, read_until_closed

POST = b"POST /x HTTP/1.1\r\nhost: x\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"
SMUGGLED = {
    "a length beside chunks": POST + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks beside a length": POST + b"transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"content-length: 3\r\ncontent-length: 3\r\n\r\nabc",
    "a list of lengths": POST + b"content-length: 3, 3\r\n\r\nabc",
    "a signed length": POST + b"content-length: +3\r\n\r\nabc",
    "an endless length": POST + b"content-length: 99999999999999999999\r\n\r\nabc",
    "a folded line": POST + b"a: b\r\n c\r\n\r\n",
    "a bare line feed in a head": b"GET /x HTTP/1.1\r\nhost: x\n\r\n",
    "a bare carriage return": b"GET /x HTTP/1.1\r\nhost: x\ry: z\r\n\r\n",
    "a NUL": b"GET /x HTTP/1.1\r\nhost: x\0\r\n\r\n",
    "a space before a colon": b"GET /x HTTP/1.1\r\nhost : x\r\n\r\n",
    "two codings": POST + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": POST + b"transfer-encoding: identity\r\n\r\nabc",
    "a coding with a blank behind it": POST + b"transfer-encoding: chunked \r\n\r\n0\r\n\r\n",
    "a coding with a tab behind it": POST + b"transfer-encoding: chunked\t\r\n\r\n0\r\n\r\n",
    "a length with a list behind a blank": POST + b"content-length: 3 , 3\r\n\r\nabc",
    "chunks of HTTP/1.0": b"POST /x HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a size that is no number": CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n",
    "a negative size": CHUNKED + b"-3\r\nabc\r\n0\r\n\r\n",
    "an endless size": CHUNKED + b"fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    "a size with a bare line feed": CHUNKED + b"3\nabc\r\n0\r\n\r\n",
    "a chunk longer than its size": CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n",
    "a length after the body": CHUNKED + b"3\r\nabc\r\n0\r\ncontent-length: 1\r\n\r\n",
    "another server's target": b"GET http://other/x HTTP/1.1\r\nhost: x\r\n\r\n",
    "two hosts": b"GET /x HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
    "another version": b"GET /x HTTP/2.0\r\n\r\n",
    "an endless head": b"GET /x HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * (MAX_HEAD // 2),
    "an endless target": b"GET /" + b"x" * (2 * MAX_HEAD),
    "an endless trailer": CHUNKED + b"0\r\n" + b"a: b\r\n" * (MAX_HEAD // 2),
}


@pytest.mark.parametrize("sent", SMUGGLED.values(), ids=SMUGGLED)
@pytest.mark.parametrize("step", [1, 7, 1 << 30], ids=["a byte at a time", "in small pieces", "at once"])
def test_what_could_be_smuggled_is_refused(sent: bytes, step: int) -> None:
    """However it is cut into pieces; nothing that follows is read."""
    step = max(step, len(sent) // 4096)
    reader = RequestReader()
    for start in range(0, len(sent), step):
        reader.feed(sent[start : start + step])
    assert reader.messages[-1].complaint is not None
    reader.feed(b"GET /next HTTP/1.1\r\nhost: x\r\n\r\n")
    assert len(reader.messages) == 1


@pytest.mark.parametrize("step", [1, 7, 1 << 30], ids=["a byte at a time", "in small pieces", "at once"])
def test_blanks_around_a_value_are_no_part_of_it(step: int) -> None:
    """Whatever the header is, also of an empty one, and in a trailer; those inside it stay."""
    fields = b"host:\tx \r\nx-path: plugin \t \r\nx-two:  a  b\t\r\nx-none: \t\r\ntransfer-encoding: chunked\r\n"
    sent = b"POST /x HTTP/1.1\r\n" + fields + b"\r\n2\r\n{}\r\n0\r\nx-sum: 1 \r\n\r\n"
    reader = RequestReader()
    for start in range(0, len(sent), step):
        reader.feed(sent[start : start + step])
    (message,) = reader.messages
    assert (message.complaint, message.whole) == (None, True)
    assert dict(message.headers) == {
        "host": "x", "x-path": "plugin", "x-two": "a  b", "x-none": "", "transfer-encoding": "chunked"
    }  # fmt: skip
    assert message.fields[1:3] == [(b"x-path", b"plugin"), (b"x-two", b"a  b")]
    assert message.trailers == [(b"x-sum", b"1")]


@pytest.mark.parametrize("kind", [RequestReader, AnswerReader])
def test_a_closed_reader_leaves_nothing_behind(kind: type[RequestReader | AnswerReader]) -> None:
    """Nobody has to search memory for what ten thousand connections left."""
    reader = kind()
    reader.feed(b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n")
    left = weakref.ref(reader)
    gc.disable()
    try:
        reader.close()
        del reader
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "answer",
    [
        b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
        b"transfer-encoding: gzip\r\n\r\nabc",
        b"x: y\n\r\n",
        b"a: b\r\n" * (MAX_HEAD // 2),
    ],
    ids=["length and chunks", "two lengths", "an unknown coding", "a bare line feed", "an endless head"],
)
def test_answers_are_held_to_the_same(answer: bytes) -> None:
    """A daemon that a client may misread is not passed on."""
    reader = AnswerReader()
    reader.feed(b"HTTP/1.1 200 OK\r\n" + answer)
    assert reader.messages[-1].complaint is not None


def test_an_endless_row_of_informational_answers_is_given_up() -> None:
    """A client would wait for ever; many before an answer are passed on, again for each answer."""
    reader = AnswerReader()
    row = b"HTTP/1.1 100 Continue\r\n\r\n" * MAX_INTERIM
    for _ in range(2):
        reader.feed(row + b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    assert {message.complaint for message in reader.messages} == {None}
    reader.feed(row + b"HTTP/1.1 102 Processing\r\n\r\n")
    complaint = reader.messages[-1].complaint
    assert complaint is not None
    assert complaint.reason == "more than 1000 informational answers"


@pytest.mark.parametrize("status", ["000", "007", "099", "20", "2000", "", "2x0", "-20"])
def test_a_status_is_a_number_of_three_digits_from_100_on(status: str) -> None:
    """Any other one says neither that an answer follows nor that this is it."""
    reader = AnswerReader()
    reader.feed(f"HTTP/1.1 {status} OK\r\ncontent-length: 2\r\n\r\n{{}}".encode())
    assert reader.messages[-1].complaint is not None


def test_a_refusal_is_answered_and_recorded(recorder: RecorderProcess, upstream: Upstream) -> None:
    """400 with the reason, the end of the connection, and an exchange without an answer that says why."""
    with recorder.connect() as client:
        client.sendall(SMUGGLED["a length beside chunks"] + b"GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n")
        heard = read_until_closed(client)
    assert heard.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert heard.count(b"HTTP/1.1") == 1
    trace = recorder.trace()
    (exchange,), (gap,) = trace.exchanges, trace.gaps
    assert (exchange.request.path, exchange.response, exchange.error) == ("/x", None, "not_carried")
    assert (gap.exchange, gap.method, gap.path, gap.side) == (1, "POST", "/x", None)
    assert gap.why.startswith("Transfer-Encoding")
    assert upstream.calls == []


@pytest.mark.parametrize(
    ("begins", "why"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "the client uses TLS, but this address is http://"),
        (b"\x05\x02\x00\x02\x05\x02\x00\x02\x05\x02\x00", "Invalid method encountered"),
    ],
    ids=["TLS", "SOCKS"],
)
def test_what_is_not_http_is_no_exchange(
    recorder: RecorderProcess, upstream: Upstream, begins: bytes, why: str
) -> None:
    """It is answered 400, and no daemon hears of it."""
    with recorder.connect() as client:
        client.sendall(begins + b"x" * 200)
        assert read_until_closed(client).startswith(b"HTTP/1.1 400")
    trace = recorder.trace()
    assert trace.exchanges == ()
    (mark,) = marks_of(trace, NoRequestMark)
    assert mark.words == f"211 bytes that came are not a request: {why}"
    assert upstream.calls == []


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_http_2_is_named(recorder: RecorderProcess, upstream: Upstream, step: int) -> None:
    """What a client of it says first is no exchange."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 30
    with recorder.connect() as client:
        for at in range(0, len(preface), step):
            client.sendall(preface[at : at + step])
        assert read_until_closed(client).startswith(b"HTTP/1.1 400")
    trace = recorder.trace()
    assert (trace.exchanges, upstream.calls) == ((), [])
    (mark,) = marks_of(trace, NoRequestMark)
    assert str(mark.words).startswith("HTTP/2 without negotiation, which the addon for mitmproxy records")


DELETE = b"DELETE /one HTTP/1.1\r\nhost: x\r\n\r\n"
LENGTH = b"POST /one HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
CHUNKS = b"POST /one HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
BODY = b'{"reason":"GET /two HTTP/1.1"}'


def _read(sent: bytes, *cuts: int) -> RequestReader:
    reader = RequestReader()
    for begin, end in pairwise([0, *cuts, len(sent)]):
        reader.feed(sent[begin:end])
    return reader


@pytest.mark.parametrize("first", [DELETE, LENGTH, CHUNKS, LENGTH + DELETE, CHUNKS + DELETE + b"\r\n"])
@pytest.mark.parametrize("rest", [BODY, b"\x16\x03", b"lower /x HTTP/1.1\r\n\r\n", BODY + b"\nGET /two HTTP/1.1\r\n"])
def test_what_follows_a_request_and_is_none_is_not_taken_for_it(first: bytes, rest: bytes) -> None:
    """Wherever the bytes are cut: it has neither the method of the request before it, nor that of a line inside it."""
    sent = first + rest
    for cut in range(len(sent)):
        *before, last = _read(sent, *([cut] if cut else [])).messages
        assert {message.target for message in before} == {b"/one"}
        assert (last.method, last.target) == ("", b""), cut
        assert last.complaint is not None
        assert "after the request" in last.complaint.reason


@pytest.mark.parametrize("first", [DELETE, LENGTH, CHUNKS, LENGTH + DELETE, CHUNKS + DELETE + b"\r\n"])
def test_how_much_follows_a_request_is_counted(first: bytes) -> None:
    """As it came; a body that was sent without a length is known again by its size."""
    last = _read(first + BODY).messages[-1]
    words = f"{len(BODY)} bytes after the request are not a request: was a body sent without Content-Length?"
    assert last.complaint is not None
    assert last.complaint.reason == words
    assert _read(first + b"{").messages[-1].complaint == Complaint(
        "1 byte after the request is not a request: was a body sent without Content-Length?"
    )


@pytest.mark.parametrize("first", [b"", DELETE, LENGTH, CHUNKS, LENGTH + DELETE, CHUNKS + DELETE + b"\r\n"])
@pytest.mark.parametrize(
    ("rest", "named"),
    [
        (b"GET two HTTP/1.1\r\n\r\n", ("GET", b"two")),
        (b"FETCH /two HTTP/1.1\r\n\r\n", ("FETCH", b"/two")),
        (b"GET /two HTTP/9.9\r\n\r\n", ("GET", b"/two")),
    ],
)
def test_a_request_that_breaks_is_named_by_its_own_line(first: bytes, rest: bytes, named: tuple[str, bytes]) -> None:
    """And not by that of the request before it, with which it came."""
    last = _read(first + rest).messages[-1]
    assert (last.method, last.target) == named
    assert last.complaint is not None
    assert "followed" not in last.complaint.reason


def test_a_body_without_a_length_is_no_second_exchange(recorder: RecorderProcess, upstream: Upstream) -> None:
    """The request is answered, what follows it 400 with what it may have been; a mark tells it in the recording."""
    with recorder.connect() as client:
        client.sendall(DELETE + BODY)
        heard = read_until_closed(client)
    assert heard.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 400 Bad Request" in heard
    trace = recorder.trace()
    assert [(exchange.request.method, exchange.error) for exchange in trace.exchanges] == [("DELETE", None)]
    (mark,) = marks_of(trace, NoRequestMark)
    assert mark.words is not None
    assert mark.words.endswith("was a body sent without Content-Length?")
    assert mark.words.encode() in heard
    assert mark.conn == trace.exchanges[0].conn
    assert len(upstream.calls) == 1


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        (b"upgrade: websocket\r\n", b"websocket"),
        (b"upgrade: h2c\r\nupgrade: websocket\r\n", b"h2c, websocket"),
        (b"upgrade: websocket, h2c\r\n", b"websocket, h2c"),
    ],
)
def test_an_upgrade_is_refused_by_name(
    recorder: RecorderProcess, upstream: Upstream, fields: bytes, named: bytes
) -> None:
    """501 with the protocol that was asked for and what records it."""
    with recorder.connect() as client:
        client.sendall(b"GET /up HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\n" + fields + b"\r\n")
        heard = read_until_closed(client)
    assert heard.startswith(b"HTTP/1.1 501")
    assert b"an upgrade to " + named + b", which the addon for mitmproxy records" in heard
    (exchange,) = recorder.trace().exchanges
    assert (exchange.response, exchange.error) == (None, "not_carried")
    assert upstream.calls == []


@pytest.mark.parametrize("pieces", [1, 7, 1000], ids="in pieces of {}".format)
def test_a_target_may_name_the_recorder_too(recorder: RecorderProcess, upstream: Upstream, pieces: int) -> None:
    """As clients send it that take the address for a proxy's: the daemon is asked for the path."""
    offer = b"connection: close, upgrade\r\nupgrade: h2c\r\n"
    head = b"POST HTTP://LocalHost:%d/one?x=1 HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n" % recorder.port
    sent = head + offer + b"\r\n{}"
    with recorder.connect() as client:
        for at in range(0, len(sent), pieces):
            client.sendall(sent[at : at + pieces])
        assert read_until_closed(client).startswith(b"HTTP/1.1 200 OK")
    assert [(call.target, call.body) for call in upstream.calls] == [("/one?x=1", b"{}")]
    (exchange,) = recorder.trace().exchanges
    assert (exchange.request.path, exchange.request.query, exchange.error) == ("/one", (("x", "1"),), None)


@pytest.mark.parametrize(("rest", "asked"), [("", "/"), ("?x=1", "/?x=1"), ("/", "/")])
def test_a_target_that_names_the_recorder_alone_is_its_root(
    recorder: RecorderProcess, upstream: Upstream, rest: str, asked: str
) -> None:
    """The path of an address may lack."""
    with recorder.connect() as client:
        head = f"GET http://127.0.0.1:{recorder.port}{rest} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        client.sendall(head.encode())
        assert read_until_closed(client).startswith(b"HTTP/1.1 200 OK")
    assert [call.target for call in upstream.calls] == [asked]


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:1/x", "http://other/x", "http://localhost:{}@other/x", "other:{}"]
)
def test_a_target_on_another_server_is_not_carried(recorder: RecorderProcess, upstream: Upstream, target: str) -> None:
    """The recorder is no proxy for other servers."""
    with recorder.connect() as client:
        client.sendall(f"GET {target.format(recorder.port)} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert read_until_closed(client).startswith(b"HTTP/1.1 400")
    assert upstream.calls == []
    assert {exchange.error for exchange in recorder.trace().exchanges} <= {"not_carried"}


@pytest.mark.parametrize("pieces", [1, 7, 1000], ids="in pieces of {}".format)
def test_an_offer_of_http_2_is_passed_over(recorder: RecorderProcess, upstream: Upstream, pieces: int) -> None:
    """Java's client makes it with each request. It is answered as if it had not, and so is the next one."""
    offer = b"host: x\r\nconnection: Upgrade, HTTP2-Settings\r\nhttp2-settings: AAEAAEAA\r\nupgrade: h2c\r\n"
    first = b"GET /one HTTP/1.1\r\ncontent-length: 0\r\n" + offer + b"\r\n"
    second = b"POST /two HTTP/1.1\r\ncontent-length: 7\r\n" + offer + b'\r\n{"a":1}'
    sent = first + second + first.replace(b"one", b"three").replace(b"connection: ", b"connection: close, ")
    with recorder.connect() as client:
        for at in range(0, len(sent), pieces):
            client.sendall(sent[at : at + pieces])
        assert read_until_closed(client).count(b"HTTP/1.1 200 OK") == 3
    assert [(call.method, call.target, call.body) for call in upstream.calls] == [
        ("GET", "/one", b""),
        ("POST", "/two", b'{"a":1}'),
        ("GET", "/three", b""),
    ]
    assert not any({"upgrade", "http2-settings"} & call.headers.keys() for call in upstream.calls)
    assert [exchange.request.path for exchange in recorder.trace().exchanges] == ["/one", "/two", "/three"]


def test_many_offers_in_one_piece_are_passed_over(recorder: RecorderProcess, upstream: Upstream) -> None:
    """However many requests come at once, each is answered."""
    offer = b"host: x\r\nconnection: Upgrade\r\nupgrade: h2c \r\n"
    last = b"GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    with recorder.connect() as client:
        client.sendall((b"GET /one HTTP/1.1\r\n" + offer + b"\r\n") * 2000 + last)
        assert read_until_closed(client).count(b"HTTP/1.1 200 OK") == 2001
    assert len(upstream.calls) == 2001


def test_trailers_are_passed_on(recorder: RecorderProcess, upstream: Upstream) -> None:
    """A client hears the trailer of a chunked answer."""
    upstream.handlers["/t"] = lambda call: call.send(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx-sum: 1\r\n\r\n"
    )
    with recorder.connect() as client:
        client.sendall(b"GET /t HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert read_until_closed(client).endswith(b"2\r\n{}\r\n0\r\nx-sum: 1\r\n\r\n")
    assert recorder.trace().exchanges[0].error is None


def test_an_answer_that_cannot_be_carried_resets_the_client(recorder: RecorderProcess, upstream: Upstream) -> None:
    """What the daemon sent has no one meaning: the client gets none of it, and the trace says why."""
    upstream.handlers["/two"] = lambda call: call.send(
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"
    )
    with recorder.connect() as client:
        client.sendall(b"GET /two HTTP/1.1\r\nhost: x\r\n\r\n")
        assert is_reset(client)
    (exchange,) = recorder.trace().exchanges
    assert exchange.error == "upstream_reset"
    assert b"the daemon's answer could not be passed on: " in exchange.raw
    assert recorder.command("counts")["internal_errors"] == 0


def test_an_answer_without_a_true_status_does_not_hang(recorder: RecorderProcess, upstream: Upstream) -> None:
    """No status below 100 is valid: the connection is reset, and the trace says why."""
    upstream.handlers["/none"] = lambda call: call.send(b"HTTP/1.1 000 None\r\ncontent-length: 2\r\n\r\n{}")
    with recorder.connect() as client:
        client.sendall(b"GET /none HTTP/1.1\r\nhost: x\r\n\r\n")
        assert is_reset(client)
    (exchange,) = recorder.trace().exchanges
    assert (exchange.response, exchange.error) == (None, "upstream_reset")
    assert b"the daemon's answer could not be passed on: a status below 100" in exchange.raw


def test_chunks_are_undone_for_a_client_of_http_1_0(recorder: RecorderProcess, upstream: Upstream) -> None:
    """It knows no chunks: it hears the body, and its end by the end of the connection."""
    upstream.handlers["/c"] = lambda call: call.send(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"
    )
    with recorder.connect() as client:
        client.sendall(b"GET /c HTTP/1.0\r\n\r\n")
        head, _, body = read_until_closed(client).partition(b"\r\n\r\n")
    assert body == b"abcdef"
    assert b"transfer-encoding" not in head
