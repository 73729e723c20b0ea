"""`signet-conformance convert`: captures become traces and back, redacted, and nothing is overwritten."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from signet_conformance.trace import Trace, read
from tests.support.command_line import Invoke
from tests.support.trace_files import BREACHING, HEADER, end, health, recall, start, write

TOKEN = "sk-live-9f8e7d6c5b4a3928170695"
DAEMON = "http://127.0.0.1:3850"


def refused(result: Result) -> None:
    """Whether a command ended like wrong usage: status 2, a message, a remedy."""
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "\ntry: " in result.stderr


def entry(path: str = "/health", *, origin: str = DAEMON, at: str = "12:00:00", **request: Any) -> dict[str, Any]:
    """One entry of a HAR file, as a browser writes it."""
    return {
        "startedDateTime": f"2026-06-01T{at}.250Z",
        "time": 12.5,
        "request": {"method": "GET", "url": f"{origin}{path}", "headers": [], "queryString": [], **request},
        "response": {
            "status": 200,
            "headers": [{"name": "Content-Type", "value": "application/json"}],
            "content": {"mimeType": "application/json", "text": '{"status":"healthy"}'},
        },
    }


def har(path: Path, *entries: Any) -> Path:
    """A HAR file of these entries."""
    path.write_text(json.dumps({"log": {"version": "1.2", "creator": {}, "entries": list(entries)}}))
    return path


def said(trace: Trace) -> list[Any]:
    """The content of a trace's exchanges, except for numbers and files."""
    return [
        (e.request.method, e.request.path, e.request.query, e.request.body, e.response and e.response.status,
         e.response and e.response.body, e.error, round(e.t1 - e.t0, 3))
        for e in trace.exchanges
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["run.har", "run.flow"])
def test_a_trace_survives_the_way_out_and_back(invoke: Invoke, tmp_path: Path, name: str) -> None:
    """Method, path, query, bodies, status, errors and durations come back as they went."""
    lost = {**recall(), "response": None, "error": {"kind": "upstream_refused"}}
    odd = end()
    odd["request"]["query"] = [["a b", "ü&="], ["a b", ""]]
    odd["response"]["body"] = {"base64": "/wD+", "media_type": "application/octet-stream"}
    original = write(tmp_path / "run.jsonl", [health(), start(), lost, odd])
    assert invoke("convert", original, name).exit_code == 0
    assert invoke("convert", name, "back.jsonl").exit_code == 0
    before, after = said(read(original)), said(read(tmp_path / "back.jsonl"))
    assert [line[:3] for line in before] == [line[:3] for line in after]
    assert [line[4] for line in before] == [line[4] for line in after]
    assert [line[6:] for line in before] == [line[6:] for line in after]
    assert [line[3] and line[3].value for line in before] == [line[3] and line[3].value for line in after]
    assert [line[5] and line[5].value for line in before] == [line[5] and line[5].value for line in after]


def test_a_converted_capture_can_be_checked(invoke: Invoke, tmp_path: Path) -> None:
    """A breach in a recording is also found after its conversion to a HAR file and back."""
    write(tmp_path / "run.jsonl", BREACHING)
    invoke("convert", "run.jsonl", "run.har")
    invoke("convert", "run.har", "back.jsonl")
    declared = ["--agent", "atlas-agent", "--harness", "openclaw"]
    assert "FAIL SIG-AGENT-002" in invoke("check", "back.jsonl", *declared).output


@pytest.mark.parametrize("name", ["run.har", "run.flow"])
def test_what_a_capture_cannot_hold_is_reported(invoke: Invoke, tmp_path: Path, name: str) -> None:
    """The conversion names lost marks and declarations; the options that it prints restore all declarations."""
    declared = {
        "agents": ["atlas-agent"], "harness": "openclaw", "bounds_s": {"start": 15.0}, "capabilities": ["health"],
        "token": True,
    }  # fmt: skip
    mark = {"kind": "mark", "t": 0.5, "name": "step", "data": {}}
    write(tmp_path / "run.jsonl", [*BREACHING, mark], {**HEADER, "declared": declared})
    out = invoke("convert", "run.jsonl", name).stdout
    assert "left out: 1 mark," in out
    options = shlex.split(out.splitlines()[-1])
    back = invoke("convert", name, "back.jsonl").stdout
    assert back.splitlines()[-1].endswith("check back.jsonl --agent ID --harness NAME")
    report = json.loads(invoke("check", "back.jsonl", *options, "--json").stdout)
    assert report["traces"][0]["declared"] == declared


def test_a_recording_that_declares_nothing_loses_nothing(invoke: Invoke, tmp_path: Path) -> None:
    """Without marks and declarations, nothing is reported as left out."""
    write(tmp_path / "run.jsonl", BREACHING, {**HEADER, "declared": {}})
    assert "left out" not in invoke("convert", "run.jsonl", "run.har").stdout


def test_secrets_are_redacted_on_the_way_in(invoke: Invoke, tmp_path: Path) -> None:
    """A token in a header and in a body reaches no trace; both places have the same redaction token."""
    headers = [{"name": "Authorization", "value": f"Bearer {TOKEN}"}]
    body = {"mimeType": "application/json", "text": json.dumps({"content": f"the key is {TOKEN}"})}
    har(tmp_path / "in.har", entry("/api/memory/remember", method="POST", headers=headers, postData=body))
    assert invoke("convert", "in.har", "out.jsonl").exit_code == 0
    text = (tmp_path / "out.jsonl").read_text()
    assert TOKEN not in text
    assert text.count("<redacted:1>") == 2


def test_nothing_is_overwritten(invoke: Invoke, tmp_path: Path) -> None:
    """An existing file is refused and stays as it is."""
    write(tmp_path / "run.jsonl", BREACHING)
    har(tmp_path / "in.har", entry())
    for source, target in (("in.har", "run.jsonl"), ("run.jsonl", "in.har")):
        before = (tmp_path / target).read_bytes()
        refused(invoke("convert", source, target))
        assert (tmp_path / target).read_bytes() == before


def test_origins_choose_the_daemons_traffic(invoke: Invoke, tmp_path: Path) -> None:
    """`--origin` keeps the exchanges of one server, or of several, in the order in which they began."""
    other, third = "https://example.org", "https://example.com"
    entries = [
        entry("/b", at="12:00:02"), entry("/x", origin=other), entry("/a", at="12:00:01"), entry("/y", origin=third)
    ]  # fmt: skip
    har(tmp_path / "in.har", *entries)
    refused(invoke("convert", "in.har", "out.jsonl", "--origin", "http://127.0.0.1:9"))
    kept = invoke("convert", "in.har", "out.jsonl", "--origin", DAEMON)
    assert f"left out: 2 exchanges with other servers than {DAEMON}: {other} (1), {third} (1)\n" in kept.stdout
    trace = read(tmp_path / "out.jsonl")
    assert [(exchange.request.path, exchange.t0) for exchange in trace.exchanges] == [("/a", 0.0), ("/b", 1.0)]
    assert trace.header.upstream == DAEMON
    invoke("convert", "in.har", "two.jsonl", "--origin", DAEMON, "--origin", f"{other}/")
    assert [exchange.request.path for exchange in read(tmp_path / "two.jsonl").exchanges] == ["/x", "/a", "/b"]


@pytest.mark.parametrize(
    ("daemons", "others"),
    [
        (["http://localhost:4000/api/hooks/session-end", "http://127.0.0.1:4000/health"], ["https://example.org/x"]),
        ([f"{DAEMON}/api/memory/recall"], ["http://127.0.0.1:9000/x", "https://example.org/x"]),
    ],
    ids=["hooks", "the usual port"],
)
def test_a_daemon_is_known_by_its_hooks_or_its_port(
    invoke: Invoke, tmp_path: Path, daemons: list[str], others: list[str]
) -> None:
    """Exchanges with other servers are left out and named; the capture is not refused."""
    har(tmp_path / "in.har", *[entry(url, origin="") for url in (*daemons, *others)])
    result = invoke("convert", "in.har", "out.jsonl")
    assert result.exit_code == 0
    assert all(url.rpartition("/")[0] in result.stdout for url in others)
    assert len(read(tmp_path / "out.jsonl").exchanges) == len(daemons)


def test_of_two_daemons_the_user_must_choose_one(invoke: Invoke, tmp_path: Path) -> None:
    """If two servers look like the daemon, the user has to choose one."""
    for paths in ("/api/hooks/session-end", "/x"):
        entries = [entry(paths, origin=f"http://127.0.0.1:{port}") for port in (4000, 4001)]
        har(tmp_path / "in.har", *entries)
        result = invoke("convert", "in.har", "out.jsonl")
        refused(result)
        assert "--origin http://127.0.0.1:4000" in result.stderr


def test_what_was_never_answered_has_no_response(invoke: Invoke, tmp_path: Path) -> None:
    """A HAR entry of status 0 is an exchange without a response."""
    unanswered = entry()
    unanswered["response"] = {"status": 0, "headers": [], "content": {}}
    har(tmp_path / "in.har", unanswered)
    invoke("convert", "in.har", "out.jsonl")
    (exchange,) = read(tmp_path / "out.jsonl").exchanges
    assert (exchange.response, exchange.error) == (None, "upstream_reset")


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", '{"log": {}}', '{"log": {"entries": []}}', '{"log": {"entries": [7]}}', "[" * 9999,
        json.dumps({"log": {"entries": [{**entry(), "startedDateTime": "soon"}]}}),
        json.dumps({"log": {"entries": [{**entry(), "time": "NaN"}]}}),
        json.dumps({"log": {"entries": [entry(url="no url")]}}),
    ],
)  # fmt: skip
def test_a_har_file_that_cannot_be_read_is_refused(invoke: Invoke, tmp_path: Path, text: str) -> None:
    """Bad input ends with 2 and a remedy, and leaves no file behind."""
    (tmp_path / "in.har").write_text(text)
    refused(invoke("convert", "in.har", "out.jsonl"))
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("raw", [b"", b"hello", b"5:hello,", b"9999999999:x", b"0:}", b"\xff" * 50])
def test_a_flow_file_that_cannot_be_read_is_refused(invoke: Invoke, tmp_path: Path, raw: bytes) -> None:
    """Bad input ends with 2 and a remedy, and leaves no file behind."""
    (tmp_path / "in.flow").write_bytes(raw)
    refused(invoke("convert", "in.flow", "out.jsonl"))
    assert not (tmp_path / "out.jsonl").exists()


def test_one_side_is_a_trace_and_names_say_which(invoke: Invoke, tmp_path: Path) -> None:
    """Two captures, two traces, a name without a known suffix and a missing file are refused."""
    write(tmp_path / "run.jsonl", BREACHING)
    har(tmp_path / "in.har", entry())
    for words in (
        ["in.har", "out.flow"],
        ["run.jsonl", "out.jsonl"],
        ["in.har", "out"],
        ["gone.har", "out.jsonl"],
        ["gone.flow", "out.jsonl"],
        ["gone.jsonl", "out.har"],
        ["run.jsonl", "out.har", "--origin", DAEMON],
        ["run.jsonl", "no/folder/out.har"],
    ):
        refused(invoke("convert", *words))
    assert invoke("convert", "in.har", "out", "--to", "trace").exit_code == 0
