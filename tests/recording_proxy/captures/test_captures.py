"""Captures are written whole or not at all, whatever a trace holds, and are read as the other tool meant them."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.errors import UsageError
from signet_conformance.trace import Trace, read
from signet_recording_proxy.captures import CapturedExchange, captured_of, har, write_new, write_trace
from signet_recording_proxy.redaction.redactor import Redactor
from tests.support.recorder import RecorderProcess, read_until_closed
from tests.support.small_files import small_files

KINDS = ("har", "flow")


def write(kind: str, trace: Trace) -> bytes:
    """A trace as a capture."""
    if kind == "har":
        return b"".join(har.write(captured_of(trace)))
    # It imports mitmproxy, which takes longer than every worker's collection of these tests should.
    from signet_recording_proxy.captures import flows

    return flows.write(captured_of(trace))


def read_back(kind: str, capture: Path) -> list[CapturedExchange]:
    """What a capture holds."""
    if kind == "har":
        return har.read(str(capture)).exchanges
    from signet_recording_proxy.captures import flows

    return flows.read(str(capture))


def trace_of(file: Path, header: dict[str, Any] | None = None, **request: Any) -> Trace:
    """A trace of one exchange."""
    lines = [
        {"kind": "header", "format": "signet-trace/1", "created": "2026-11-21T20:17:00Z", **(header or {})},
        {
            "kind": "exchange",
            "seq": 1,
            "conn": 1,
            "t0": request.pop("t0", 0.0),
            "t1": request.pop("t1", 1.0),
            "request": {"method": "GET", "path": "/x", "query": [], "headers": [], "body": None, **request},
            "response": {"status": 200, "headers": [], "body": None},
        },
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read(file)


def there_and_back(trace: Trace, folder: Path, kind: str) -> Any:
    """The request of a trace's one exchange after its way through a capture."""
    capture = folder / f"a.{kind}"
    capture.write_bytes(write(kind, trace))
    write_trace(str(folder / f"{kind}.jsonl"), read_back(kind, capture), Redactor({}))
    (exchange,) = read(folder / f"{kind}.jsonl").exchanges
    return exchange.request


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("odd", [chr(0xDCFF), chr(0xD800), "é\u202e", "a b"], ids=ascii)
def test_text_that_is_no_utf_8_survives(tmp_path: Path, kind: str, odd: str) -> None:
    """Bytes that a client sent, and surrogates that a trace may hold: in a name, a value, a header, the method."""
    sent = {"method": f"X{odd}", "query": [[odd, "1"], ["q", odd]], "headers": [["x-a", odd]]}
    back = there_and_back(trace_of(tmp_path / "a.jsonl", **sent), tmp_path, kind)
    assert back.method.startswith("X")
    assert [name for name, _ in back.headers] == ["x-a"]
    assert len(back.query) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_recorder_made_of_a_raw_byte_converts(recorder: RecorderProcess, tmp_path: Path, kind: str) -> None:
    """A byte that is not UTF-8 in a query comes out of the recorder and goes into a capture."""
    with recorder.connect() as client:
        client.sendall(b"GET /x?q=\xff HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        read_until_closed(client)
    assert there_and_back(recorder.trace(), tmp_path, kind).path == "/x"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", ["*", "x[::1", "@h/x", "//x/y", "/x#y", "http://h/x"])
def test_a_path_that_is_odd_in_a_url(tmp_path: Path, kind: str, path: str) -> None:
    """What a client may ask for in place of a path names no other host in the capture."""
    trace = trace_of(tmp_path / "a.jsonl", path=path)
    assert next(exchange.url for exchange in captured_of(trace)).startswith("http://127.0.0.1:3850/")
    assert there_and_back(trace, tmp_path, kind).path.startswith("/")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "upstream", ["http://[::1", "http://h:99999", "http://h\0x", "http://h x", "ftp://h", "h", "http://", "http://é"]
)
def test_an_upstream_that_is_no_address_is_refused(tmp_path: Path, kind: str, upstream: str) -> None:
    """The header's address is that of every exchange in a capture."""
    with pytest.raises(UsageError, match="is not an address") as refusal:
        write(kind, trace_of(tmp_path / "a.jsonl", {"upstream": upstream}))
    assert refusal.value.remedy is not None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("created", "t0"),
    [("0001-01-01T00:00:00+14:00", 0.0), ("9999-12-31T23:59:59-14:00", 0.0), ("2026-11-21T20:17:00Z", 9e14)],
)
def test_an_instant_that_no_date_names_is_refused(tmp_path: Path, kind: str, created: str, t0: float) -> None:
    """Where it stands is said."""
    with pytest.raises(UsageError, match="is out of range") as refusal:
        write(kind, trace_of(tmp_path / "a.jsonl", {"created": created}, t0=t0, t1=t0))
    assert refusal.value.where == "exchange 1"


@pytest.mark.parametrize("created", ["0001-01-01T00:00:00", "soon"])
def test_a_beginning_that_cannot_be_told_is_1970(tmp_path: Path, created: str) -> None:
    """The durations hold all the same."""
    (exchange,) = captured_of(trace_of(tmp_path / "a.jsonl", {"created": created}))
    assert exchange.ended - exchange.begun == 1.0


@pytest.mark.parametrize("word", ["weird", "", 7])
def test_an_error_that_no_trace_knows_is_what_the_status_says(tmp_path: Path, word: object) -> None:
    """An exchange has an answer or an error, whatever other tools call it."""
    entry = {
        "startedDateTime": "2026-11-21T20:17:00Z",
        "request": {"method": "GET", "url": "http://h/x"},
        "_signet": {"error": word},
    }
    entries = [{**entry, "response": {"status": status}} for status in (None, 0, 200)]
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": entries}}))
    errors = [exchange.error for exchange in har.read(str(tmp_path / "a.har")).exchanges]
    assert errors == ["client_closed", "upstream_reset", None]


@pytest.mark.parametrize(
    ("started", "took"),
    [("0001-01-01T00:00:00+14:00", 1), ("9999-12-31T23:59:59-14:00", 1), ("2026-11-21T20:17:00Z", 1e300)],
)
def test_a_har_entry_of_no_year_is_refused(tmp_path: Path, started: str, took: float) -> None:
    """An offset or a duration may lead out of the calendar; the entry is named."""
    entry = {
        "startedDateTime": started,
        "time": took,
        "request": {"method": "GET", "url": "http://h/x"},
        "response": {"status": 200},
    }
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": [entry]}}))
    with pytest.raises(UsageError) as refusal:
        har.read(str(tmp_path / "a.har"))
    assert str(refusal.value.where).endswith("entry 1")


def test_fields_of_a_har_form_are_redacted(tmp_path: Path) -> None:
    """A form that is listed by its fields is one like any other, the first field too."""
    posted = {"mimeType": "x", "params": [{"name": "password", "value": "abc"}, {"name": "a", "value": "1"}]}
    entry = {
        "startedDateTime": "2026-11-21T20:17:00Z",
        "request": {"method": "POST", "url": "http://h/x", "postData": posted},
        "response": {"status": 200},
    }
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": [entry]}}))
    write_trace(str(tmp_path / "b.jsonl"), har.read(str(tmp_path / "a.har")).exchanges, Redactor({}))
    (exchange,) = read(tmp_path / "b.jsonl").exchanges
    assert exchange.request.body is not None
    assert exchange.request.body.value == "password=<redacted:1>&a=1"


@pytest.mark.parametrize("size", [6_000, 600_000])
def test_a_full_disk_leaves_no_half_file(tmp_path: Path, size: int) -> None:
    """Whether writing fails or closing does."""
    target = tmp_path / "a.har"
    with small_files(4096), pytest.raises(UsageError, match="cannot be written"):
        write_new(str(target), [b"x" * size])
    assert not target.exists()


def test_a_capture_is_its_owners_alone(tmp_path: Path) -> None:
    """As a recording is; and a name that no file can have is refused."""
    write_new(str(tmp_path / "a.har"), [b"x"])
    assert stat.S_IMODE((tmp_path / "a.har").stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="exists already"):
        write_new(str(tmp_path / "a.har"), [b"y"])
    with pytest.raises(UsageError, match="cannot be written"):
        write_new(str(tmp_path / "a\0b"), [b"y"])
