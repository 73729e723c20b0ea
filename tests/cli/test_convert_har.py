"""HAR files are read as tools write them: missing parts are unknown, and entries without an exchange are left out."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.trace import Exchange, read
from tests.support.command_line import Invoke

Entry = dict[str, Any]
DAEMON = "http://127.0.0.1:3850"
SAID = {"harness": "mine", "sessionKey": "k-1", "agentId": "atlas-agent", "runtimePath": "plugin"}
DECLARED = ("--agent", "atlas-agent", "--harness", "mine")


def entry(second: int, path: str, body: Mapping[str, Any] | None, answer: Mapping[str, Any]) -> Entry:
    """One entry of a conforming connector's session."""
    posted, answered = json.dumps(body), json.dumps(answer)
    headers = {"host": "127.0.0.1:3850", "x-signet-runtime-path": "plugin", "content-type": "application/json"}
    if body is not None:
        headers["content-length"] = str(len(posted))
    request: Entry = {
        "method": "GET" if body is None else "POST",
        "url": DAEMON + path,
        "headers": [{"name": name, "value": value} for name, value in headers.items()],
        "bodySize": -1 if body is None else len(posted),
    }
    if body is not None:
        request["postData"] = {"mimeType": "application/json", "text": posted}
    content = {"size": len(answered), "mimeType": "application/json", "text": answered}
    response = {"status": 200, "headers": [], "content": content, "bodySize": len(answered)}
    return {"startedDateTime": f"2026-05-04T09:12:0{second}Z", "time": 12, "request": request, "response": response}


SESSION = [
    entry(0, "/health", None, {"status": "healthy", "uptime": 1.5, "pid": 7, "version": "0.145.7", "db": True}),
    entry(1, "/api/hooks/session-start", {**SAID, "project": "/srv/a"},
          {"identity": {"name": "Rig"}, "inject": "Deploy on Friday.", "memories": []}),
    entry(2, "/api/hooks/user-prompt-submit", {**SAID, "project": "/srv/a", "userMessage": "When?"},
          {"inject": "", "memoryCount": 0}),
    entry(3, "/api/hooks/session-end", {**SAID, "cwd": "/srv/a", "transcript": "User: When?\nAssistant: Friday."},
          {"memoriesSaved": 0, "queued": True, "jobId": "j-1"}),
]  # fmt: skip


def edited(change: Callable[[Entry], object]) -> list[Entry]:
    """The session, with a change to each of its entries."""
    entries = copy.deepcopy(SESSION)
    for each in entries:
        change(each)
    return entries


def posted_elsewhere(each: Entry) -> None:
    """Playwright writes request bodies into files beside the HAR."""
    if "postData" in each["request"]:
        each["request"]["postData"] = {"mimeType": "application/json", "_file": "a1b2.json"}


def answered_elsewhere(each: Entry) -> None:
    """Playwright writes response bodies into such files too."""
    each["response"]["content"] = {"size": 12, "mimeType": "application/json", "_file": "c3.json"}


def answer_forgotten(each: Entry) -> None:
    """Firefox without response bodies."""
    each["response"]["content"]["text"] = ""


def length_alone(each: Entry) -> None:
    """Proxyman, and Chromium for a blob: no postData, though a header names the length of a body."""
    each["request"].pop("postData", None)


def nothing_said_of_posted(each: Entry) -> None:
    """With HTTP/2, not even a header shows that there was a body."""
    each["request"].pop("postData", None)
    nothing_said_of_size(each)


def posted_null(each: Entry) -> None:
    """A tool that does not keep request bodies may write null."""
    if "postData" in each["request"]:
        each["request"]["postData"]["text"] = None
        nothing_said_of_size(each)


def nothing_said_of_size(each: Entry) -> None:
    """No header and no member gives the length of the body."""
    each["request"]["bodySize"] = -1
    each["request"]["headers"] = [h for h in each["request"]["headers"] if h["name"] != "content-length"]


def posted_as_object(each: Entry) -> None:
    """A tool may write a JSON body as an object, not as text."""
    if "postData" in each["request"]:
        each["request"]["postData"]["text"] = json.loads(each["request"]["postData"]["text"])


def called_base64(each: Entry) -> None:
    """Firefox marks text as base64 that is not base64."""
    each["response"]["content"]["encoding"] = "base64"


def convert(invoke: Invoke, folder: Path, entries: list[Entry]) -> tuple[str, tuple[Exchange, ...]]:
    """Convert these entries; return the output, and the exchanges of the trace."""
    (folder / "in.har").write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    result = invoke("convert", "in.har", "out.jsonl")
    assert result.exit_code == 0, result.stderr
    return result.stdout, tuple(read(folder / "out.jsonl").exchanges)


@pytest.mark.parametrize(
    ("change", "unknown"),
    [
        (posted_elsewhere, 3),
        (answered_elsewhere, 4),
        (answer_forgotten, 4),
        (length_alone, 3),
        (nothing_said_of_posted, 3),
        (posted_null, 3),
        (posted_as_object, 0),
        (called_base64, 0),
    ],
)
def test_a_body_that_a_capture_lacks_decides_nothing(
    invoke: Invoke, tmp_path: Path, change: Callable[[Entry], object], unknown: int
) -> None:
    """It is counted, causes no breach, and leaves requirements open that depend on it."""
    told, exchanges = convert(invoke, tmp_path, edited(change))
    bodies = [body for e in exchanges for body in (e.request.body, e.response and e.response.body) if body is not None]
    assert sum(body.undecoded == "not captured" for body in bodies) == unknown
    assert ("unknown content: " in told) == bool(unknown)
    checked = invoke("check", "out.jsonl", *DECLARED)
    assert "FAIL SIG" not in checked.stdout
    assert "WARN SIG" not in checked.stdout
    assert checked.exit_code == (4 if unknown else 0)
    assert (f"{unknown} bodies that the capture does not hold" in checked.stdout) == bool(unknown)


def test_the_whole_session_passes(invoke: Invoke, tmp_path: Path) -> None:
    """So a breach in an odd variant comes from the odd entry."""
    _, exchanges = convert(invoke, tmp_path, SESSION)
    assert [exchange.request.body is not None for exchange in exchanges] == [False, True, True, True]
    assert invoke("check", "out.jsonl", *DECLARED).exit_code == 0


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("data:image/png;base64,iVBORw0KGgo=", "an address of the scheme data"),
        ("blob:http://127.0.0.1:3850/1f", "an address of the scheme blob"),
        ("/api/hooks/session-end", "a relative address"),
        ("http://[::1/x", "an address that cannot be read"),
    ],
)
def test_an_entry_without_a_server_address_is_left_out(invoke: Invoke, tmp_path: Path, url: str, why: str) -> None:
    """Such an entry is counted, and the others are converted."""
    odd = copy.deepcopy(SESSION[0])
    odd["request"]["url"] = url
    told, exchanges = convert(invoke, tmp_path, [*SESSION, odd])
    assert f"left out: 1 request with {why}\n" in told
    assert len(exchanges) == len(SESSION)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda each: each["request"].pop("method"), "entry 1: the entry lacks 'method'"),
        (lambda each: each["request"].update(headers={"a": "b"}), "entry 1: the entry cannot be read: a member has"),
    ],
)
def test_an_invalid_entry_is_named(
    invoke: Invoke, tmp_path: Path, change: Callable[[Entry], object], problem: str
) -> None:
    """The error names the member that is missing or has another type."""
    (tmp_path / "in.har").write_text(json.dumps({"log": {"entries": edited(change)}}))
    refused = invoke("convert", "in.har", "out.jsonl")
    assert refused.exit_code == 2
    assert f"error: in.har, {problem}" in refused.stderr


def test_a_compressed_capture_is_named_as_such(invoke: Invoke, tmp_path: Path) -> None:
    """The remedy is the command that unpacks it, not a complaint about JSON."""
    (tmp_path / "in.har").write_bytes(gzip.compress(b"{}"))
    refused = invoke("convert", "in.har", "out.jsonl")
    assert refused.stderr == "error: in.har: is compressed with gzip\ntry: unpack it, and convert the unpacked file\n"


@pytest.mark.parametrize("status", [None, "", 0, "abc"])
def test_an_entry_without_a_status_has_no_answer(invoke: Invoke, tmp_path: Path, status: Any) -> None:
    """Whatever else the entry says about an answer, there was none."""
    odd = copy.deepcopy(SESSION[0])
    odd["response"]["status"] = status
    _, exchanges = convert(invoke, tmp_path, [odd])
    assert [exchange.response for exchange in exchanges] == [None]


@pytest.mark.parametrize("status", [None, ""])
@pytest.mark.parametrize("aborted", range(len(SESSION)))
def test_a_request_that_was_given_up_is_no_breach(invoke: Invoke, tmp_path: Path, status: Any, aborted: int) -> None:
    """Its path is not judged, since no server need have received it; a session end that was given up still counts."""
    entries = copy.deepcopy(SESSION)
    entries[aborted]["response"]["status"] = status
    odd = copy.deepcopy(SESSION[0])
    odd["request"]["url"] = f"{DAEMON}/x"
    odd["response"]["status"] = status
    odd["startedDateTime"] = "2026-05-04T09:12:01.500Z"
    _, exchanges = convert(invoke, tmp_path, [*entries, odd])
    assert len(exchanges) == len(SESSION) + 1
    told = invoke("check", "out.jsonl", *DECLARED).stdout
    assert "FAIL SIG" not in told
    assert ("WARN SIG" in told) == (aborted == 0), told


def test_a_request_that_is_under_way_is_left_out(invoke: Invoke, tmp_path: Path) -> None:
    """Nothing is known of an answer that had not arrived when the capture was saved."""
    told, exchanges = convert(invoke, tmp_path, [*SESSION, {**SESSION[1], "response": None}])
    assert "left out: 1 request with no answer yet" in told
    assert len(exchanges) == len(SESSION)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ({"text": "eyJhIjogMX0=", "encoding": "base64"}, {"a": 1}),
        ({"text": "eyJh\nIjogMX0=", "encoding": "base64"}, {"a": 1}),
        ({"text": "true", "encoding": "base64", "size": 4}, True),
        ({"text": '{"a": 1}', "encoding": "base64"}, {"a": 1}),
    ],
)
def test_text_that_is_called_base64_stays_text(invoke: Invoke, tmp_path: Path, content: Entry, value: object) -> None:
    """Its characters, or its size, show that it is text."""
    odd = copy.deepcopy(SESSION[0])
    odd["response"]["content"] = {"mimeType": "application/json", **content}
    _, (exchange,) = convert(invoke, tmp_path, [odd])
    assert exchange.response is not None
    assert exchange.response.body is not None
    assert exchange.response.body.value == value


def test_an_unknown_body_survives_the_way_out_and_back(invoke: Invoke, tmp_path: Path) -> None:
    """A trace from a capture becomes a capture without that body again."""
    convert(invoke, tmp_path, edited(posted_elsewhere))
    for source, target in (("out.jsonl", "again.har"), ("again.har", "again.jsonl")):
        assert invoke("convert", source, target).exit_code == 0
    bodies = [exchange.request.body for exchange in read(tmp_path / "again.jsonl").exchanges]
    assert [body and body.undecoded for body in bodies] == [None, *["not captured"] * 3]
