"""What one client or one daemon may do to a recording: nothing that costs the other exchanges."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from signet_conformance import trace
from signet_conformance.trace import Header
from signet_conformance.trace.reading import MAX_LINE_BYTES
from signet_recording_proxy import recorder as recording, trace_file
from signet_recording_proxy.body import MAX_ENCODED, KeptBody, describe
from signet_recording_proxy.redaction.redactor import Redactor
from signet_recording_proxy.trace_file import TraceFile
from tests.support.recorder import RecorderProcess, Upstream, read_until_closed

MIB = 1 << 20
TRAILED = (
    b"POST /trailed HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n"
    b'trailer: x-sum\r\nconnection: close\r\n\r\n7\r\n{"a":1}\r\n0\r\nx-sum: 1\r\n\r\n'
)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """A daemon that says what the test wants."""
    daemon = Upstream()
    yield daemon
    daemon.close()


@pytest.fixture
def recorder(upstream: Upstream, tmp_path: Path) -> Iterator[RecorderProcess]:
    """A recorder in front of it, with the bounds that it has by itself."""
    out = tmp_path / "trace.jsonl"
    process = RecorderProcess("--upstream", upstream.url, "--control", out=out)
    yield process
    process.close()


@pytest.mark.parametrize("byte", [b"\0", b"\x7f", b'"', b"\xc3\xa9", b"\xff"], ids=repr)
def test_a_body_takes_no_more_of_a_line_than_its_bound(byte: bytes) -> None:
    """Whatever its characters cost in JSON; one that would take more is cut, with its size and SHA-256."""
    body = KeptBody(32 * MIB)
    body.feed(byte * (8 * MIB // len(byte)))
    described = describe(body, "text/plain", None)
    assert described is not None
    assert len(json.dumps(described, ensure_ascii=False).encode()) <= MAX_ENCODED + 1000
    assert described.get("cut", False) is (byte == b"\0")


@pytest.mark.parametrize("value", ["1e15", "[]", "{}", '"\\u0000"'])
def test_json_that_grows_when_it_is_written_again_is_bounded(value: str) -> None:
    """Numbers may be written longer than they came."""
    body = KeptBody(8 * MIB)
    body.feed(f"[{value}{f',{value}' * (7 * MIB // (len(value) + 1))}]".encode())
    described = describe(body, "application/json", None)
    assert len(json.dumps(described, ensure_ascii=False).encode()) <= MAX_ENCODED + 1000


def test_nul_bodies_both_ways_leave_a_recording_that_can_be_read(recorder: RecorderProcess, upstream: Upstream) -> None:
    """8 MiB of NUL in request and answer: a line within bounds, and the exchanges around it are there."""
    nul = b"\0" * (8 * MIB)
    upstream.handlers["/nul"] = lambda call: call.answer(nul, media_type="text/plain")
    recorder.request("GET", "/before")
    assert recorder.request("POST", "/nul", nul) == (200, nul)
    recorder.request("GET", "/after")
    assert max(map(len, recorder.out.read_bytes().splitlines())) < MAX_LINE_BYTES
    _, exchange, _ = recorder.trace().exchanges
    assert exchange.request.body is not None
    assert exchange.response is not None
    assert exchange.response.body is not None
    assert (exchange.request.body.cut, exchange.response.body.cut) == (True, True)


def test_a_line_that_redaction_would_make_too_long_is_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens are longer than the secrets of one character that they stand for."""
    monkeypatch.setattr(trace_file, "MAX_LINE_BYTES", 12_000)
    pairs = b"&".join(b"token=%d" % number for number in range(900))
    assert len(pairs) < trace_file.MAX_LINE_BYTES

    async def record() -> None:
        redactor = Redactor({})
        recorder = recording.Recorder(TraceFile(str(tmp_path / "trace.jsonl"), Header()), redactor, 8 * MIB)
        for target in ("/form", "/after"):
            exchange = recorder.begin(1, "POST", target, [("content-type", "application/x-www-form-urlencoded")])
            exchange.request.body.feed(pairs if target == "/form" else b"a=1")
            recorder.finish(exchange)

    asyncio.run(record())
    shortened, after = trace.read(tmp_path / "trace.jsonl").exchanges
    assert shortened.request.body is not None
    assert (shortened.request.body.cut, shortened.request.body.size) == (True, len(pairs))
    assert after.request.body is not None
    assert not after.request.body.cut


def peak_mib(process: int) -> int:
    """The most memory that a process has held, in MiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


@pytest.mark.parametrize("framing", ["length", "chunked", "length, and a fault answers"])
def test_a_large_request_is_not_held(upstream: Upstream, tmp_path: Path, framing: str) -> None:
    """48 MiB pass through a recorder that keeps 1 MiB; its memory grows by less, however many pass."""
    size, piece = 48 * MIB, b"x" * MIB
    options = ("--upstream", upstream.url, "--control", "--body-limit", str(MIB))
    with closing(RecorderProcess(*options, out=tmp_path / "trace.jsonl")) as recorder:
        recorder.request("GET", "/before")
        before = peak_mib(recorder.process.pid)
        if "fault" in framing:
            recorder.fault("status", status=500)
        with recorder.connect() as client:
            client.sendall(b"POST /large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n")
            if framing == "chunked":
                client.sendall(b"transfer-encoding: chunked\r\n\r\n")
                for _ in range(size // MIB):
                    client.sendall(b"%x\r\n%s\r\n" % (MIB, piece))
                client.sendall(b"0\r\n\r\n")
            else:
                client.sendall(b"content-length: %d\r\n\r\n" % size)
                for _ in range(size // MIB):
                    client.sendall(piece)
            answer = read_until_closed(client)
        assert answer.startswith(b"HTTP/1.1 500" if "fault" in framing else b"HTTP/1.1 200")
        _, exchange = recorder.trace().exchanges
        assert exchange.request.body is not None
        assert exchange.request.body.cut
        assert exchange.request.body.size == size
        assert peak_mib(recorder.process.pid) - before < 40
    if "fault" not in framing:
        assert len(upstream.calls[-1].body) == size


def test_a_request_with_a_trailer_is_carried(recorder: RecorderProcess, upstream: Upstream) -> None:
    """A chunked request with a trailer is an exchange like any other, and the recorder goes on."""
    with recorder.connect() as client:
        client.sendall(TRAILED)
        assert b" 200 " in read_until_closed(client)
    (exchange,) = recorder.trace().exchanges
    assert exchange.request.body is not None
    assert exchange.request.body.value == {"a": 1}
    assert upstream.calls[-1].body == b'{"a":1}'
    assert recorder.command("counts")["in_flight"] == 0
    assert recorder.request("GET", "/next")[0] == 200


@pytest.mark.parametrize("interim", ["100 Continue", "102 Processing", "103 Early Hints"])
def test_an_answer_before_the_answer_is_passed_on_as_such(
    recorder: RecorderProcess, upstream: Upstream, interim: str
) -> None:
    """The client hears both; the answer of the exchange is the last."""

    def answer(upstream_call: object) -> None:
        call = upstream_call
        call.send(f"HTTP/1.1 {interim}\r\nlink: </a>\r\n\r\n".encode() * 2)
        call.answer(b'{"ok":true}')

    upstream.handlers["/early"] = answer
    with recorder.connect() as client:
        client.sendall(b"GET /early HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        heard = read_until_closed(client)
    assert heard.count(f"HTTP/1.1 {interim}\r\nlink: </a>\r\n\r\n".encode()) == 2
    assert heard.endswith(b'{"ok":true}')
    (exchange,) = recorder.trace().exchanges
    assert exchange.response is not None
    assert (exchange.response.status, exchange.error) == (200, None)
    assert recorder.request("GET", "/next")[0] == 200


def test_a_recording_of_all_of_it_is_read(recorder: RecorderProcess) -> None:
    """What the tests above leave is a trace."""
    recorder.request("GET", "/x")
    assert trace.read(recorder.out).exchanges
