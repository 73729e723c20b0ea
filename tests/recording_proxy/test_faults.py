"""Each fault does to the client what it says, and stands in the trace with a mark beside it."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from typing import Any

import pytest

from signet_conformance.errors import UsageError
from signet_conformance.trace.fault_kinds import FAULT_KINDS
from signet_recording_proxy import faults
from tests.support.recorder import Call, RecorderProcess, Upstream, is_reset, read_until_closed, readable

REQUEST = b"POST /api/hooks/x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"


def raw(recorder: RecorderProcess) -> tuple[bytes, bytes]:
    """Head and body of the answer to REQUEST, up to the end of the connection."""
    with recorder.connect() as client:
        client.sendall(REQUEST)
        head, _, body = read_until_closed(client).partition(b"\r\n\r\n")
        return head, body


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_every_kind_does_something(recorder: RecorderProcess, kind: str) -> None:
    """Of a kind that is in the table a client sees more than the trace's word for it."""
    head, body = raw(recorder)
    needs = {"status": 503, "delay_s": 600}
    recorder.fault(kind, **{name: needs[name] for name in FAULT_KINDS[kind].needs})
    seen = b"", b""
    with contextlib.suppress(ConnectionError, TimeoutError), recorder.connect() as client:
        client.settimeout(0.5)
        client.sendall(REQUEST)
        seen_head, _, seen_body = read_until_closed(client).partition(b"\r\n\r\n")
        seen = seen_head.partition(b"\r\n")[0], seen_body
    plain = head.partition(b"\r\n")[0], body
    assert seen != plain, f"say what {kind} does: in _ANSWERS of {faults.__file__}, or in the engine"


def test_reset(recorder: RecorderProcess, upstream: Upstream) -> None:
    """The client is reset, the daemon is not asked, the trace says upstream_reset by fault."""
    recorder.fault("reset")
    with recorder.connect() as client:
        client.sendall(REQUEST)
        assert is_reset(client)
    (exchange,) = recorder.trace().exchanges
    assert (exchange.response, exchange.error, exchange.fault) == (None, "upstream_reset", {"kind": "reset"})
    assert exchange.request.body is not None
    assert upstream.calls == []


def test_hang_ends_when_the_client_leaves(recorder: RecorderProcess, upstream: Upstream) -> None:
    """Nothing is answered; the leaving is timed between the kit's marks around it."""
    recorder.fault("hang")
    with recorder.connect() as client:
        client.sendall(REQUEST)
        while recorder.command("counts")["in_flight"] == 0:
            pass
        assert not readable(client)
        before = recorder.command("mark", name="before")["seq"]
    assert recorder.command("idle", timeout_s=180)["ok"]
    after = recorder.command("mark", name="after")["seq"]
    trace = recorder.trace()
    (exchange,) = trace.exchanges
    times = {mark.seq: mark.t for mark in trace.marks}
    assert (exchange.response, exchange.error, exchange.fault) == (None, "client_closed", {"kind": "hang"})
    assert times[before] <= exchange.t1 <= times[after]
    assert upstream.calls == []


def test_hang_ends_when_it_is_switched_off(recorder: RecorderProcess) -> None:
    """A client that still waits is reset: the daemon that hung is gone."""
    number = recorder.fault("hang")
    with recorder.connect() as client:
        client.sendall(REQUEST)
        while recorder.command("counts")["in_flight"] == 0:
            pass
        recorder.command("fault_off", id=number)
        assert is_reset(client)
    (exchange,) = recorder.trace().exchanges
    assert (exchange.error, exchange.fault) == ("upstream_reset", {"kind": "hang"})


def test_delay_holds_the_true_answer(recorder: RecorderProcess) -> None:
    """The daemon's answer comes, no earlier than the delay."""
    recorder.fault("delay", delay_s=0.2)
    assert raw(recorder)[1] == b'{"path": "/api/hooks/x"}'
    (exchange,) = recorder.trace().exchanges
    assert exchange.t1 - exchange.t0 >= 0.2
    assert (exchange.error, exchange.fault) == (None, {"kind": "delay", "delay_s": 0.2})


def test_delay_that_nobody_waits_for(recorder: RecorderProcess, upstream: Upstream) -> None:
    """The client leaves before the delay is over: the daemon's answer stands beside client_closed."""
    answered = threading.Event()

    def answer(call: Call) -> None:
        call.answer(b'{"late": true}')
        answered.set()

    upstream.handlers["/api/hooks/x"] = answer
    recorder.fault("delay", delay_s=600)
    with recorder.connect() as client:
        client.sendall(REQUEST)
        assert answered.wait(20)
        recorder.let_it_work()
        assert not readable(client)
    (exchange,) = recorder.trace().exchanges
    assert (exchange.error, exchange.fault) == ("client_closed", {"kind": "delay", "delay_s": 600})
    assert exchange.response is not None
    assert exchange.response.body is not None
    assert exchange.response.body.value == {"late": True}
    assert exchange.t1 - exchange.t0 < 600


@pytest.mark.parametrize("chunked", [False, True])
def test_slow_body_drips(recorder: RecorderProcess, upstream: Upstream, chunked: bool) -> None:
    """The head comes at once, the body in pieces, the last one no earlier than the delay."""
    body = b'{"memories": ["a", "b", "c"]}'

    def in_chunks(call: Call) -> None:
        call.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        call.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))

    upstream.handlers["/slow"] = in_chunks if chunked else lambda call: call.answer(body)
    recorder.fault("slow_body", delay_s=0.4)
    connection = http.client.HTTPConnection("127.0.0.1", recorder.port, timeout=180)
    connection.request("GET", "/slow")
    response = connection.getresponse()
    assert recorder.command("counts")["in_flight"] == 1
    assert response.read() == body
    connection.close()
    (exchange,) = recorder.trace().exchanges
    assert exchange.t1 - exchange.t0 >= 0.4
    assert (exchange.error, exchange.fault) == (None, {"kind": "slow_body", "delay_s": 0.4})
    assert exchange.response is not None
    assert exchange.response.body is not None
    assert exchange.response.body.value == json.loads(body)


def test_slow_body_that_nobody_waits_for(recorder: RecorderProcess) -> None:
    """The client leaves after the head: the daemon's whole answer stands beside client_closed."""
    recorder.fault("slow_body", delay_s=600)
    with recorder.connect() as client:
        client.sendall(REQUEST)
        assert client.recv(65536).startswith(b"HTTP/1.1 200 OK")
    (exchange,) = recorder.trace().exchanges
    assert exchange.error == "client_closed"
    assert exchange.response is not None
    assert exchange.response.body is not None
    assert exchange.response.body.value == {"path": "/api/hooks/x"}


def test_slow_body_of_an_empty_answer(recorder: RecorderProcess, upstream: Upstream) -> None:
    """Without a body there is nothing to drip."""
    upstream.handlers["/none"] = lambda call: call.send(b"HTTP/1.1 204 No Content\r\n\r\n")
    recorder.fault("slow_body", delay_s=600)
    assert recorder.request("GET", "/none") == (204, b"")


def test_status(recorder: RecorderProcess, upstream: Upstream) -> None:
    """The status with a JSON error, and when to try again; the daemon is not asked."""
    recorder.fault("status", status=503, retry_after_s=2)
    head, body = raw(recorder)
    assert head.startswith(b"HTTP/1.1 503 Service Unavailable")
    assert b"retry-after: 2" in head
    assert json.loads(body) == {"error": "shutting down"}
    (exchange,) = recorder.trace().exchanges
    assert exchange.fault == {"kind": "status", "status": 503, "retry_after_s": 2}
    assert exchange.response is not None
    assert exchange.response.status == 503
    assert upstream.calls == []


def test_not_json(recorder: RecorderProcess) -> None:
    """200 with a page."""
    recorder.fault("not_json")
    head, body = raw(recorder)
    assert b"content-type: text/html" in head
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(body)


def test_empty(recorder: RecorderProcess) -> None:
    """200 without a body."""
    recorder.fault("empty")
    head, body = raw(recorder)
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert body == b""
    response = recorder.trace().exchanges[0].response
    assert response is not None
    assert response.body is None


def test_truncated(recorder: RecorderProcess) -> None:
    """More is promised than sent, then the connection ends: a client's read is incomplete."""
    recorder.fault("truncated")
    with pytest.raises(http.client.IncompleteRead):
        recorder.request("GET", "/api/x")
    (exchange,) = recorder.trace().exchanges
    assert exchange.fault == {"kind": "truncated"}


def test_shape(recorder: RecorderProcess) -> None:
    """200 with members of the wrong types, or with the body that was asked for."""
    first = recorder.fault("shape")
    assert json.loads(raw(recorder)[1])["inject"] == 42
    recorder.command("fault_off", id=first)
    recorder.fault("shape", body=None)
    assert raw(recorder)[1] == b"null"


def test_extra_fields(recorder: RecorderProcess, upstream: Upstream) -> None:
    """The daemon's answer with members added, in the coding that it came in, and so in the trace."""
    recorder.fault("extra_fields", fields={"novel": [1]})
    assert json.loads(raw(recorder)[1]) == {"path": "/api/hooks/x", "novel": [1]}
    (exchange,) = recorder.trace().exchanges
    assert exchange.fault is not None
    assert exchange.response is not None
    assert exchange.response.body is not None
    assert exchange.response.body.value == {"path": "/api/hooks/x", "novel": [1]}
    assert len(upstream.calls) == 1


def test_extra_fields_cannot_be_added_to_a_page(recorder: RecorderProcess, upstream: Upstream) -> None:
    """An answer that is not a JSON object passes unchanged, and the exchange carries no fault."""
    upstream.handlers["/page"] = lambda call: call.answer(b"<p>", media_type="text/html")
    recorder.fault("extra_fields")
    assert recorder.request("GET", "/page") == (200, b"<p>")
    assert recorder.trace().exchanges[0].fault is None


def test_refuse(recorder: RecorderProcess) -> None:
    """Connects are refused, open connections are dropped, nothing is recorded; afterwards the port is the same."""
    idle = recorder.connect()
    recorder.request("GET", "/before")
    number = recorder.fault("refuse")
    assert is_reset(idle)
    idle.close()
    with pytest.raises(ConnectionRefusedError):
        recorder.connect()
    assert recorder.command("fault_off", id=number) == {"ok": True, "off": [number], "unmet": [number]}
    assert recorder.request("GET", "/after")[0] == 200
    trace = recorder.trace()
    assert [e.request.path for e in trace.exchanges] == ["/before", "/after"]
    assert [m.data["on"] for m in trace.marks if m.name == "fault"] == [True, False]


def test_refuse_holds_until_the_last_of_them_is_off(recorder: RecorderProcess) -> None:
    """Two such faults: the listener is back when both are off."""
    first, second = recorder.fault("refuse"), recorder.fault("refuse")
    recorder.command("fault_off", id=first)
    with pytest.raises(ConnectionRefusedError):
        recorder.connect()
    recorder.command("fault_off", id=second)
    recorder.connect().close()


def test_refuse_cuts_off_what_is_in_flight(recorder: RecorderProcess, upstream: Upstream) -> None:
    """A request that waits for its answer when the daemon goes away is upstream_reset by fault."""
    asked = threading.Event()

    def never(call: Call) -> None:
        asked.set()
        call.wait_until_left()

    upstream.handlers["/api/hooks/x"] = never
    with recorder.connect() as client:
        client.sendall(REQUEST)
        assert asked.wait(20)
        recorder.fault("refuse")
        assert is_reset(client)
    (exchange,) = recorder.trace().exchanges
    assert (exchange.error, exchange.fault) == ("upstream_reset", {"kind": "refuse"})


def test_a_refused_port_is_not_given_to_others(recorder: RecorderProcess) -> None:
    """While connects are refused no other program can take the port."""
    recorder.fault("refuse")
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", recorder.port))


def test_match_and_count(recorder: RecorderProcess) -> None:
    """A fault acts on what it matches, as often as it was told; the mark of its end comes by itself."""
    recorder.fault("status", path="/api/hooks/*", count=2, status=500)
    paths = ["/health", "/api/hooks/a", "/api/memory", "/api/hooks/b?x=1", "/api/hooks/c"]
    assert [recorder.request("GET", path)[0] for path in paths] == [200, 500, 200, 500, 200]
    marks = [m.data for m in recorder.trace().marks]
    assert [mark["on"] for mark in marks] == [True, False]
    assert marks[0] == {
        "kind": "status",
        "status": 500,
        "on": True,
        "match": {"path": "/api/hooks/*"},
        "id": marks[1]["id"],
    }


def test_a_fault_that_is_on_is_marked_in_each_trace(recorder: RecorderProcess, tmp_path: Any) -> None:
    """A new trace begins with the marks of the faults that are on."""
    recorder.fault("status", status=500)
    recorder.begin(tmp_path / "next.jsonl")
    (mark,) = recorder.trace().marks
    assert (mark.seq, mark.data["kind"], mark.data["on"]) == (1, "status", True)


@pytest.mark.parametrize(
    ("fault", "match", "count", "complaint"),
    [
        ({"kind": "explode"}, None, None, "fault.kind"),
        ("reset", None, None, "fault.kind"),
        ({"kind": ["reset"]}, None, None, "fault.kind"),
        ({"kind": "delay"}, None, None, "delay_s"),
        ({"kind": "delay", "delay_s": "1"}, None, None, "delay_s"),
        ({"kind": "delay", "delay_s": float("nan")}, None, None, "delay_s"),
        ({"kind": "reset", "delay_s": 1}, None, None, "delay_s"),
        ({"kind": "status", "status": 99}, None, None, "status"),
        ({"kind": "status", "status": 500, "retry_after_s": -1}, None, None, "retry_after_s"),
        ({"kind": "extra_fields", "fields": []}, None, None, "fields"),
        ({"kind": "reset"}, {"host": "x"}, None, "match"),
        ({"kind": "reset"}, {"path": 3}, None, "match"),
        ({"kind": "reset"}, None, 0, "count"),
        ({"kind": "reset"}, None, True, "count"),
        ({"kind": "refuse"}, {"path": "/x"}, None, "refuse"),
    ],
)
def test_a_senseless_fault_is_refused(fault: Any, match: Any, count: Any, complaint: str) -> None:
    """Whatever is off about a fault is named, with a remedy."""
    with pytest.raises(UsageError, match=complaint) as refusal:
        faults.parse(1, fault, match, count)
    assert refusal.value.remedy


def test_methods_match_whatever_their_case() -> None:
    """The method of a match is the method of HTTP."""
    fault = faults.parse(1, {"kind": "reset"}, {"method": "post"}, None)
    assert fault.matches("POST", "/x")
    assert not fault.matches("GET", "/x")
