"""What a trace file may not be: each complaint names file and line, says what is off, and ends in a remedy."""

from __future__ import annotations

import codecs
import gzip
import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from signet_conformance.errors import TraceError
from signet_conformance.trace import FORMAT, Body, Declared, Message, Trace, encode, read, reading

HEADER_LINE = {"kind": "header", "format": FORMAT}
HEADER = encode(HEADER_LINE)
REQUEST: dict[str, Any] = {"method": "GET", "path": "/health"}
GOOD: dict[str, Any] = {"kind": "exchange", "seq": 1, "t0": 0.0, "t1": 0.5, "request": REQUEST}
MARK: dict[str, Any] = {"kind": "mark", "seq": 1, "t": 0.0, "name": "step"}


def _nested(depth: int) -> bytes:
    body = b'{"json":' + b"[" * depth + b"]" * depth + b"}"
    return encode(GOOD).replace(b'"path":"/health"', b'"path":"/health","body":' + body)


def _read_bytes(folder: Path, content: bytes, name: str = "trace.jsonl") -> Trace:
    file = folder / name
    file.write_bytes(content)
    return read(file)


def _complaint(folder: Path, content: bytes, name: str = "trace.jsonl") -> TraceError:
    with pytest.raises(TraceError) as caught:
        _read_bytes(folder, content, name)
    error = caught.value
    assert error.remedy
    assert all(c.isprintable() or c == "\n" for c in str(error)), str(error)
    assert len(str(error)) < 1500
    return error


BAD_FILES = {
    "empty": (b"", 1, "the file is empty"),
    "blank lines": (b"\n \n", 1, "the file is empty"),
    "binary": (b"\x00\xff\x1b[31m\x9c" * 40, 1, f"not a {FORMAT} file"),
    "text": (b"GET /health HTTP/1.1\r\n", 1, f"not a {FORMAT} file"),
    "no header": (encode(GOOD), 1, "not a signet-trace/1 header"),
    "a list": (b"[]\n", 1, "not a signet-trace/1 header"),
    "a later format": (encode({"kind": "header", "format": "signet-trace/2"}), 1, 'the format is "signet-trace/2"'),
    "no format": (encode({"kind": "header"}), 1, "the format is null"),
    "hostile format": (encode({"kind": "header", "format": "\x1b[2J\u202e" * 99}), 1, "the format is"),
    "declared is a list": (encode({**HEADER_LINE, "declared": [1]}), 1, "declared is not an object"),
    "second header": (HEADER + HEADER, 2, 'kind is "header"'),
    "no object": (HEADER + b"7\n" + encode(GOOD), 2, "not an object"),
    "damaged in the middle": (HEADER + b'{"kind":"exch\n' + encode(GOOD), 2, "not JSON"),
    "terminated damage at the end": (HEADER + encode(GOOD) + b'{"kind":"exch\n', 3, "not JSON"),
    "bad UTF-8": (HEADER + b'{"kind":"\xff"}\n', 2, "not JSON"),
    "duplicate number": (HEADER + encode(GOOD) + encode(MARK), 3, "number 1 occurs twice"),
    "deep": (HEADER + _nested(5_000), 2, "nested deeper than 200 levels"),
    "very deep": (HEADER + _nested(200_000), 2, "nested deeper than 200 levels"),
    "deep, half an emoji": (
        HEADER + _nested(5_000).replace(b"/health", b"\\ud800"),
        2,
        "nested deeper than 200 levels",
    ),
    "somewhat deep, half an emoji": (
        HEADER + _nested(400).replace(b"/health", b"\\ud800"),
        2,
        "nested deeper than 200",
    ),
    "deep header": (b'{"kind":' * 5_000 + b"1" + b"}" * 5_000 + b"\n", 1, "nested deeper than 200 levels"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_trace_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    """File and line of the damage are named, and what it is."""
    content, line, message = BAD_FILES[name]
    error = _complaint(tmp_path, content)
    assert error.where == f"{tmp_path / 'trace.jsonl'}:{line}"
    assert message in error.message


BAD_LINES: dict[str, tuple[dict[str, Any], str]] = {
    "kind is unknown": ({**GOOD, "kind": "exchang\x07"}, 'kind is "exchang\\u0007"'),
    "kind is absent": ({"seq": 1}, "kind is null"),
    "seq is text": ({**GOOD, "seq": "1"}, 'seq is "1"'),
    "seq is true": ({**GOOD, "seq": True}, "seq is true"),
    "seq is a fraction": ({**GOOD, "seq": 1.5}, "seq is 1.5"),
    "t0 is text": ({**GOOD, "t0": "now"}, "t0 and t1 are"),
    "t1 is absent": ({k: v for k, v in GOOD.items() if k != "t1"}, "t0 and t1 are"),
    "t0 is NaN": ({**GOOD, "t0": float("nan")}, "t0 and t1 are"),
    "t1 is infinite": ({**GOOD, "t1": float("inf")}, "t0 and t1 are"),
    "t1 is huge": ({**GOOD, "t1": 10**400}, "t0 and t1 are"),
    "request is absent": ({**GOOD, "request": None}, "without its request object"),
    "method is a number": ({**GOOD, "request": {**REQUEST, "method": 7}}, "must be strings"),
    "path is absent": ({**GOOD, "request": {"method": "GET"}}, "must be strings"),
    "path holds the query": ({**GOOD, "request": {**REQUEST, "path": "/health?a=1"}}, "expected it without the query"),
    "query is an object": ({**GOOD, "request": {**REQUEST, "query": {"q": "x"}}}, "request.query is"),
    "a header is no pair": ({**GOOD, "request": {**REQUEST, "headers": [["a"]]}}, "request.headers holds"),
    "a header is a number": ({**GOOD, "request": {**REQUEST, "headers": [["a", 1]]}}, "request.headers holds"),
    "body is bare": ({**GOOD, "request": {**REQUEST, "body": {"harness": "x"}}}, "request.body is"),
    "body is text": ({**GOOD, "request": {**REQUEST, "body": "\x1b[0m"}}, "request.body is"),
    "response is a list": ({**GOOD, "response": []}, "response is neither null nor"),
    "status is text": ({**GOOD, "response": {"status": "200"}}, "response is neither null nor"),
    "status is half an emoji": ({**GOOD, "response": {"status": "\ud83d"}}, "response is neither null nor"),
    "response header is bad": ({**GOOD, "response": {"status": 200, "headers": ["a"]}}, "response.headers holds"),
    "response body is bare": ({**GOOD, "response": {"status": 200, "body": {"a": 1}}}, "response.body is"),
    "error kind is a number": ({**GOOD, "error": {"kind": 7}}, "error.kind must be a string"),
    "fault is text": ({**GOOD, "fault": "reset"}, "fault must be an object"),
    "mark without a name": ({"kind": "mark", "seq": 1, "t": 0}, "a mark needs a name"),
    "mark without a number": ({"kind": "mark", "t": 0, "name": "step"}, "seq is null"),
    "mark at no time": ({**MARK, "t": "now"}, "a mark needs a name"),
    "mark at NaN": ({**MARK, "t": float("nan")}, "a mark needs a name"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_line_that_is_no_exchange_or_mark_is_refused(name: str, tmp_path: Path) -> None:
    """A whole line of a wrong shape is damage, with its member and value, though it is the last."""
    line, message = BAD_LINES[name]
    error = _complaint(tmp_path, HEADER + encode(line))
    assert error.where == f"{tmp_path / 'trace.jsonl'}:2"
    assert message in error.message


@pytest.mark.parametrize("name", BAD_LINES)
def test_the_same_line_without_its_end_is_torn(name: str, tmp_path: Path) -> None:
    """Without its line break the last line is torn: it is left out with a warning, the rest counts."""
    good = {**GOOD, "seq": 2}
    trace = _read_bytes(tmp_path, HEADER + encode(good) + encode(BAD_LINES[name][0]).rstrip(b"\n"))
    assert [e.seq for e in trace.exchanges] == [2]
    assert len(trace.warnings) == 1
    assert f"{tmp_path / 'trace.jsonl'}:3: the last line is torn" in trace.warnings[0]
    assert trace.warnings[0].isprintable()


BAD_DECLARED: dict[str, Any] = {
    "agents": ["atlas-agent", " "],
    "harness": 7,
    "bounds_s": {"start": 0},
    "capabilities": "session-start",
    "token": "yes",
    "canaries": {"<redacted:1>": None},
}


@pytest.mark.parametrize("member", BAD_DECLARED)
def test_a_bad_declared_member_is_named(member: str, tmp_path: Path) -> None:
    """The member of `declared` that cannot be used is named with its value."""
    line = {"kind": "header", "format": FORMAT, "declared": {member: BAD_DECLARED[member]}}
    error = _complaint(tmp_path, encode(line))
    assert error.where == f"{tmp_path / 'trace.jsonl'}:1"
    assert f"declared.{member} is {json.dumps(BAD_DECLARED[member])}" in error.message


@pytest.mark.parametrize("bounds", [{"start": True}, {"start": -1}, {"prompt": "5"}, {"prompt": float("nan")}, [5]])
def test_a_bound_is_a_positive_number_of_seconds(bounds: Any) -> None:
    """Anything but a positive number is no bound."""
    with pytest.raises(TraceError, match=r"declared\.bounds_s"):
        Declared.from_json({"bounds_s": bounds})


def test_an_over_long_line_is_refused_before_it_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line over the limit is refused by its length; one of exactly the limit is read."""
    line = encode(GOOD)
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", len(line))
    assert len(_read_bytes(tmp_path, HEADER + line).exchanges) == 1
    error = _complaint(tmp_path, HEADER + line.replace(b"/health", b"/healthy"))
    assert error.where == f"{tmp_path / 'trace.jsonl'}:2"
    assert "the line is longer than" in error.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A missing file is an error of the reader, not a traceback."""
    with pytest.raises(TraceError, match="cannot be read") as caught:
        read(tmp_path / "absent.jsonl")
    assert caught.value.where == str(tmp_path / "absent.jsonl")
    assert caught.value.remedy


def test_a_folder_is_named_as_one(tmp_path: Path) -> None:
    """A folder is no trace file."""
    with pytest.raises(TraceError, match="is a folder"):
        read(tmp_path)


@pytest.mark.parametrize(
    "content", [None, b"", b"junk", HEADER + b"junk\n"], ids=["missing", "empty", "junk", "damaged"]
)
def test_a_hostile_file_name_is_printed_harmlessly(content: bytes | None, tmp_path: Path) -> None:
    """Control characters and line breaks of a file's name reach no terminal."""
    file = tmp_path / "a\x1b[31m\nb\u202e.jsonl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        read(file)
    assert str(caught.value.where).isprintable()


def test_a_name_with_a_null_byte_is_an_error(tmp_path: Path) -> None:
    """No file can have such a name; that is said, not raised as a traceback."""
    with pytest.raises(TraceError):
        read(f"{tmp_path}/a\0b.jsonl")


def test_lone_surrogates_are_read(tmp_path: Path) -> None:
    """JavaScript sends half emoji; a strict parser's refusal does not make the line damage."""
    line = {**GOOD, "request": {**REQUEST, "body": {"json": {"userMessage": "half \ud83d"}}}}
    body = _read_bytes(tmp_path, HEADER + encode(line)).exchanges[0].request.body
    assert body is not None
    assert body.object == {"userMessage": "half \ud83d"}


def test_nan_inside_a_body_is_read(tmp_path: Path) -> None:
    """NaN is no JSON, but some writers produce it; inside a body it harms nobody."""
    line = {**GOOD, "request": {**REQUEST, "body": {"json": {"score": float("nan")}}}}
    body = _read_bytes(tmp_path, HEADER + encode(line)).exchanges[0].request.body
    assert body is not None
    assert isinstance(body.value["score"], float)


def test_moderate_nesting_is_read(tmp_path: Path) -> None:
    """What a connector may really send is far below the limit."""
    assert _read_bytes(tmp_path, HEADER + _nested(120)).exchanges[0].request.body is not None


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8], ids=["plain", "byte-order mark"])
def test_what_editors_add_does_no_harm(mark: bytes, tmp_path: Path) -> None:
    """A file that went through an editor is still a trace: blank lines, carriage returns, a byte-order mark."""
    content = HEADER.replace(b"\n", b"\r\n") + b"\r\n\n" + encode(GOOD).replace(b"\n", b"\r\n")
    trace = _read_bytes(tmp_path, mark + content)
    assert [e.line for e in trace.exchanges] == [4]
    assert trace.warnings == ()


@pytest.mark.parametrize(
    ("name", "held_bytes"),
    [("trace.jsonl", reading.HELD_BYTES), ("trace.jsonl", 0), ("trace.jsonl.gz", reading.HELD_BYTES)],
    ids=["held", "in the file", "packed"],
)
@pytest.mark.parametrize(
    "blank", [b"\n" * 4095, b"\n" * 4096, b"\r\n" * 5000, b" \n\n" * 3000, b"\n" * 4100 + b" " * 5000 + b"\n"],
    ids=["nearly a piece", "a piece", "carriage returns", "spaces", "a long line"],
)  # fmt: skip
def test_lines_behind_many_blank_ones_keep_their_numbers(
    blank: bytes, name: str, held_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many blank lines are passed at once, each exchange is read whole, and by the number of its line."""
    monkeypatch.setattr(reading, "HELD_BYTES", held_bytes)
    content = HEADER + blank + b"  " + encode(GOOD) + blank + encode({**GOOD, "seq": 2}) + blank
    packed = gzip.compress(content) if name.endswith(".gz") else content
    between = blank.count(b"\n")
    exchanges = list(_read_bytes(tmp_path, packed, name).exchanges)
    assert [(each.seq, each.line) for each in exchanges] == [(1, 2 + between), (2, 3 + 2 * between)]


def test_blank_lines_are_not_read_one_by_one(tmp_path: Path) -> None:
    """A file of them is passed in pieces: far fewer calls are made than it has lines."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        _read_bytes(tmp_path, HEADER + b"\n" * 100_000)
    finally:
        sys.setprofile(before)
    assert calls < 10_000


def test_a_header_alone_is_an_empty_trace(tmp_path: Path) -> None:
    """A recording in which nothing happened is a trace, with or without the final line break."""
    for content in (HEADER, HEADER.rstrip()):
        trace = _read_bytes(tmp_path, content)
        assert (trace.exchanges, trace.marks, trace.warnings) == ((), (), ())


def test_methods_are_read_in_upper_case(tmp_path: Path) -> None:
    """The case of a method does not count."""
    assert (
        _read_bytes(tmp_path, HEADER + encode({**GOOD, "request": {**REQUEST, "method": "post"}}))
        .exchanges[0]
        .request.method
        == "POST"
    )


def test_an_error_may_be_its_kind_alone(tmp_path: Path) -> None:
    """`error` is an object with a kind, or the kind itself."""
    for error in ({"kind": "client_closed"}, "client_closed"):
        assert _read_bytes(tmp_path, HEADER + encode({**GOOD, "error": error})).exchanges[0].error == "client_closed"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(Body(json={"a": 1}), {"a": 1}, id="object"),
        pytest.param(Body(json=[1]), None, id="list"),
        pytest.param(Body(json=None), None, id="null"),
        pytest.param(Body(text=' \r\n{"a":1}'), {"a": 1}, id="text"),
        pytest.param(Body(text='\ufeff{"a":1}'), {"a": 1}, id="byte-order-mark"),
        pytest.param(Body(text='{"a":'), None, id="torn"),
        pytest.param(Body(text="[1]"), None, id="text-list"),
        pytest.param(Body(text='{"a":' * 5_000), None, id="deep"),
        pytest.param(Body(text='{"a":"\\ud800"}'), {"a": "\ud800"}, id="half-an-emoji-escaped"),
        pytest.param(Body(text='{"a":"\ud800"}'), {"a": "\ud800"}, id="half-an-emoji"),
        pytest.param(Body(base64="eyJhIjoi6SJ9"), {"a": "\ufffd"}, id="bytes-that-are-no-utf-8"),
        pytest.param(Body(base64="H4sI"), None, id="compressed"),
        pytest.param(Body(cut=True, text='{"a":1}'), None, id="cut"),
    ],
)
def test_the_object_of_a_body(body: Body, expected: dict[str, Any] | None) -> None:
    """A body is an object as JSON, or as text that parses as one; nothing kept in part is."""
    assert body.object == expected


def test_the_first_header_of_a_name_counts() -> None:
    """Header names have no case; of repeats the first counts."""
    message = Message([["X-Note", "one"], ["x-note", "two"]], None)
    assert message.header("x-note") == "one"
    assert message.header("x-other") is None
