"""The control channel answers every line once, in order, and refuses nonsense politely."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from signet_conformance import __version__, trace
from tests.support.recorder import CANARY, RecorderProcess, Upstream


def test_a_mark_is_numbered_among_the_exchanges(recorder: RecorderProcess) -> None:
    """A mark between two exchanges has the number between theirs, and its data."""
    recorder.request("GET", "/a")
    assert recorder.command("mark", name="step", data={"step": "start", "index": 0}) == {"ok": True, "seq": 2}
    recorder.request("GET", "/b")
    read = recorder.trace()
    assert [e.seq for e in read.exchanges] == [1, 3]
    (mark,) = read.marks
    assert (mark.seq, mark.name, mark.data) == (2, "step", {"step": "start", "index": 0})
    assert read.exchanges[0].t1 <= mark.t <= read.exchanges[1].t0


def test_a_new_trace_has_its_own_header_and_numbers(recorder: RecorderProcess, tmp_path: Path) -> None:
    """`trace` begins at number 1 and time zero, under the header it was given."""
    recorder.request("GET", "/a")
    before = recorder.trace()
    declared = {"agents": ["bob"], "bounds_s": {"prompt": 5}, "token": True}
    recorder.command("trace", out=str(tmp_path / "b.jsonl"), header={"target": "pi", "declared": declared})
    recorder.request("GET", "/b")
    recorder.out = tmp_path / "b.jsonl"
    after = recorder.trace()
    assert [e.request.path for e in before.exchanges] == ["/a"]
    assert [(e.seq, e.request.path) for e in after.exchanges] == [(1, "/b")]
    assert (after.header.target, after.header.declared.agents, after.header.declared.token) == ("pi", ("bob",), True)
    assert after.header.daemon_version == "0.145.7"


def test_a_header_says_who_recorded_what(recorder: RecorderProcess, tmp_path: Path) -> None:
    """Recordings of one recorder share its id; the releases are those that this recording was begun with."""
    first = recorder.trace().header
    told = {"connector_release": "1.2.3", "host": "openclaw", "host_release": "2026.4"}
    recorder.command("trace", out=str(tmp_path / "b.jsonl"), header=told)
    recorder.out = tmp_path / "b.jsonl"
    second = recorder.trace().header
    assert first.recorder
    assert second.recorder == first.recorder
    assert second.kit == __version__
    assert (second.connector_release, second.host, second.host_release) == tuple(told.values())
    assert (first.connector_release, first.host, first.host_release) == (None, None, None)


def test_what_a_played_host_asks_is_written_beside(recorder: RecorderProcess, tmp_path: Path) -> None:
    """It stands in the model's side, marked as played, among the same marks, and without secrets."""
    out, beside = tmp_path / "b.jsonl", tmp_path / "b.model.jsonl"
    recorder.command("trace", out=str(out), model=str(beside), header={"host": "codex"})
    recorder.command("mark", name="step", data={"step": "prompt"})
    body = {"input": f"My token is {CANARY}."}
    assert recorder.command("asked", path="/v1/responses", body=body, answer={"output": []}) == {"ok": True}
    recorder.request("GET", "/a")
    recorder.begin(tmp_path / "c.jsonl")
    read = trace.read(out)
    assert read.model is not None
    assert (read.model.header.side, read.model.header.played, read.model.header.host) == ("model", True, "codex")
    assert [mark.name for mark in read.model.marks] == [mark.name for mark in read.marks] == ["step"]
    (asked,) = read.model.exchanges
    assert asked.request.path == "/v1/responses"
    assert CANARY not in beside.read_text()
    assert [each.request.path for each in read.exchanges] == ["/a"]


def test_nothing_is_asked_without_a_model_s_side(recorder: RecorderProcess) -> None:
    """A request of a played host is refused where no file is named for it, with what to do."""
    refused = recorder.command("asked", path="/v1/messages", body={})
    assert (refused["ok"], refused["error"]) == (False, "no model's side is written")


def test_a_new_trace_without_a_header_keeps_what_was_declared(recorder: RecorderProcess) -> None:
    """What the command line declared holds until something else is said."""
    header = recorder.trace().header
    assert header.target == "shared"
    assert header.declared.agents == ("atlas-agent",)
    assert header.declared.bounds_s == {"start": 15.0}
    assert list(header.declared.canaries.values()) == ["SIGNET_TEST_CANARY"]


def test_an_exchange_ends_in_the_trace_in_which_it_began(recorder: RecorderProcess, tmp_path: Path) -> None:
    """An exchange in flight when the trace changes is written to the old file, with the old clock."""
    old = recorder.out
    number = recorder.fault("hang")
    with recorder.connect() as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n")
        while recorder.command("counts")["in_flight"] == 0:
            pass
        recorder.begin(tmp_path / "new.jsonl")
        recorder.command("fault_off", id=number)
    assert recorder.trace().exchanges == ()
    assert [e.request.path for e in trace.read(old).exchanges] == ["/slow"]


def test_idle_says_what_is_in_flight(recorder: RecorderProcess) -> None:
    """At its timeout `idle` answers ok false with the number of exchanges."""
    recorder.fault("hang")
    with recorder.connect() as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n")
        while recorder.command("counts")["in_flight"] == 0:
            pass
        answer = recorder.command("idle", timeout_s=0)
        assert (answer["ok"], answer["in_flight"]) == (False, 1)
    assert recorder.command("idle", timeout_s=180) == {"ok": True}


def test_counts(recorder: RecorderProcess) -> None:
    """How many exchanges the trace holds, how many are in flight, and that nothing went wrong."""
    recorder.request("GET", "/a")
    recorder.command("idle", timeout_s=180)
    assert recorder.command("counts") == {"ok": True, "written": 1, "in_flight": 0, "internal_errors": 0}


def test_another_upstream(recorder: RecorderProcess, upstream: Upstream) -> None:
    """After `upstream` requests go to the other daemon, those of connections that are open too."""
    other = Upstream()
    other.handlers["/health"] = lambda call: call.answer(b'{"version": "0.205.0"}')
    with recorder.connect() as client:
        client.sendall(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n")
        heard = b""
        while b'"/a"' not in heard:
            heard += client.recv(65536)
        assert recorder.command("upstream", url=other.url) == {"ok": True, "daemon_version": "0.205.0"}
        client.sendall(b"GET /b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        while client.recv(65536):
            pass
    assert [call.target for call in upstream.calls] == ["/a"]
    assert [call.target for call in other.calls] == ["/health", "/b"]
    recorder.command("upstream", url=upstream.url)
    other.close()


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"[]",
        b"7",
        b"{}",
        b'{"op": 3}',
        b'{"op": "dance"}',
        b"\xff\xfe",
        b'{"op": "mark"}',
        b'{"op": "mark", "name": "x", "data": []}',
        b'{"op": "mark", "name": "x", "data": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"op": "trace"}',
        b'{"op": "trace", "out": "/no/such/folder/x.jsonl"}',
        b'{"op": "trace", "out": "x", "header": {"declared": {"agents": 3}}}',
        b'{"op": "fault"}',
        b'{"op": "fault_off", "id": 99}',
        b'{"op": "fault_off", "id": "x"}',
        b'{"op": "idle", "timeout_s": "x"}',
        b'{"op": "upstream", "url": "ftp://x"}',
        b'{"op": "upstream", "url": "http://[::1"}',
        b'{"op": "upstream"}',
    ],
)
def test_nonsense_is_refused(recorder: RecorderProcess, line: bytes) -> None:
    """A line that makes no sense is answered with ok false, an error and a remedy; the recorder goes on."""
    answer = recorder.raw_command(line)
    assert answer["ok"] is False
    assert answer["error"]
    assert answer["remedy"]
    assert recorder.command("counts")["ok"]


def test_a_trace_is_never_overwritten(recorder: RecorderProcess, tmp_path: Path) -> None:
    """`trace` with the name of an existing file is refused, and the present trace goes on."""
    (tmp_path / "kept").write_text("mine")
    assert recorder.command("trace", out=str(tmp_path / "kept"))["ok"] is False
    assert (tmp_path / "kept").read_text() == "mine"
    recorder.request("GET", "/a")
    assert len(recorder.trace().exchanges) == 1


def test_secrets_stay_out_of_marks_headers_and_exchanges(recorder: RecorderProcess, tmp_path: Path) -> None:
    """The canary is one token wherever it occurs, and `declared.canaries` says which."""
    recorder.begin(tmp_path / "secrets.jsonl")
    recorder.command("mark", name="step", data={"prompt": f"say {CANARY}"})
    recorder.request(
        "POST", "/api/hooks/x", json.dumps({"text": CANARY}).encode(), Authorization="Bearer sig_sk_0123456789"
    )
    read = recorder.trace()
    ((token, name),) = read.header.declared.canaries.items()
    assert name == "SIGNET_TEST_CANARY"
    assert read.marks[0].data == {"prompt": f"say {token}"}
    body = read.exchanges[0].request.body
    assert body is not None
    assert body.value == {"text": token}
    assert str(read.exchanges[0].request.header("authorization")).startswith("Bearer <redacted:")
    stored = (tmp_path / "secrets.jsonl").read_text()
    assert CANARY not in stored
    assert "sig_sk_" not in stored
