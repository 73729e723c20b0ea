"""Whole traces written and read back, torn anywhere, damaged anywhere: what was whole counts, nothing crashes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from signet_conformance.errors import TraceError
from signet_conformance.trace import FORMAT, Body, Declared, Exchange, Header, Mark, Trace, encode, read

TEXT = st.text(st.characters(exclude_categories=()), max_size=12)
"""Any text, lone surrogates included: JavaScript cuts emoji in two."""
NAMES = st.text(min_size=1, max_size=8)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(TEXT, children, max_size=3),
    max_leaves=8,
)
PAIRS = st.lists(st.lists(TEXT, min_size=2, max_size=2), max_size=3)
BODIES = st.one_of(
    st.none(),
    st.fixed_dictionaries({"json": JSON}),
    st.fixed_dictionaries({"text": TEXT, "media_type": st.none() | TEXT}),
    st.fixed_dictionaries({"base64": TEXT, "media_type": st.none() | TEXT}),
    st.fixed_dictionaries({"cut": st.just(True), "text": TEXT, "size": st.integers(0), "sha256": TEXT}),
)
PATHS = TEXT.map(lambda text: text.replace("?", ""))
"""A line whose path holds its query is refused."""
SECONDS = st.floats(0, 1e9)
NUMBERED = st.just(0)
"""Replaced by the place in the file."""
EXCHANGES = st.fixed_dictionaries(
    {
        "kind": st.just("exchange"),
        "seq": NUMBERED,
        "conn": st.none() | st.integers(),
        "t0": SECONDS,
        "t1": SECONDS,
        "request": st.fixed_dictionaries(
            {
                "method": st.sampled_from(["GET", "POST"]),
                "path": PATHS,
                "query": PAIRS,
                "headers": PAIRS,
                "body": BODIES,
            }
        ),
        "response": st.none()
        | st.fixed_dictionaries({"status": st.integers(100, 599), "headers": PAIRS, "body": BODIES}),
        "error": st.none() | st.fixed_dictionaries({"kind": TEXT}),
        "fault": st.none() | st.dictionaries(TEXT, JSON, max_size=2),
    }
)
MARKS = st.fixed_dictionaries(
    {
        "kind": st.just("mark"),
        "seq": NUMBERED,
        "t": SECONDS,
        "name": TEXT,
        "data": st.dictionaries(TEXT, JSON, max_size=2),
    }
)
DECLARED = st.builds(
    Declared,
    agents=st.lists(NAMES.map(str.strip).filter(bool), max_size=3).map(tuple),
    harness=st.none() | TEXT,
    bounds_s=st.dictionaries(TEXT, st.floats(0.001, 1e6), max_size=2),
    capabilities=st.none() | st.lists(TEXT, max_size=3).map(tuple),
    token=st.booleans(),
    canaries=st.dictionaries(TEXT, TEXT, max_size=2),
)
HEADERS = st.builds(Header, *[st.none() | TEXT for _ in range(4)], DECLARED)
Line = dict[str, Any]
fewer_examples = settings(max_examples=60)
WHOLE: st.SearchStrategy[list[Line]] = st.builds(
    lambda header, lines: [header.to_json(), *(line | {"seq": n} for n, line in enumerate(lines, start=1))],
    HEADERS,
    st.lists(EXCHANGES | MARKS, max_size=4),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file that every example of a property writes anew."""
    return tmp_path_factory.mktemp("traces") / "trace.jsonl"


def _written(lines: Sequence[Line]) -> bytes:
    return b"".join(encode(line) for line in lines)


def _read_bytes(file: Path, content: bytes) -> Trace:
    file.write_bytes(content)
    return read(file)


def _body_line(body: Body | None) -> Line | None:
    if body is None:
        return None
    if body.kind == "json":
        return {"json": body.value}
    if body.kind == "cut":
        return {"cut": True, "text": body.value, "size": body.size, "sha256": body.sha256}
    return {body.kind: body.value, "media_type": body.media_type}


def _exchange_line(exchange: Exchange) -> Line:
    request, response = exchange.request, exchange.response
    return {
        "kind": "exchange",
        "seq": exchange.seq,
        "conn": exchange.conn,
        "t0": exchange.t0,
        "t1": exchange.t1,
        "request": {
            "method": request.method,
            "path": request.path,
            "query": [list(pair) for pair in request.query],
            "headers": [list(pair) for pair in request.headers],
            "body": _body_line(request.body),
        },
        "response": None
        if response is None
        else {
            "status": response.status,
            "headers": [list(pair) for pair in response.headers],
            "body": _body_line(response.body),
        },
        "error": None if exchange.error is None else {"kind": exchange.error},
        "fault": exchange.fault,
    }


def _mark_line(mark: Mark) -> Line:
    return {"kind": "mark", "seq": mark.seq, "t": mark.t, "name": mark.name, "data": mark.data}


def _lines_of(trace: Trace) -> list[Line]:
    numbered: list[Mapping[str, Any]] = [_exchange_line(e) for e in trace.exchanges]
    numbered += [_mark_line(m) for m in trace.marks]
    return [trace.header.to_json(), *(dict(line) for line in sorted(numbered, key=lambda line: line["seq"]))]


@fewer_examples
@given(lines=WHOLE)
def test_a_trace_is_read_as_it_was_written(file: Path, lines: list[Line]) -> None:
    """Writing and reading changes nothing: every field comes back, in order, without a warning."""
    trace = _read_bytes(file, _written(lines))
    assert _lines_of(trace) == [json.loads(json.dumps(line)) for line in lines]
    assert trace.warnings == ()


@fewer_examples
@given(lines=WHOLE)
def test_a_line_is_read_alike_by_either_reader(file: Path, lines: list[Line]) -> None:
    """What is not checked in one go is read member by member, to the same values of the same types."""
    plain = _read_bytes(file, _written(lines))
    # No member of the format, but one that the quick check trips over.
    padded = _read_bytes(file, _written([lines[0], *({**line, "line": "seven"} for line in lines[1:])]))
    without_raw = [repr([replace(e, raw=b"") for e in trace.exchanges]) for trace in (plain, padded)]
    assert without_raw[0] == without_raw[1]
    assert repr(plain.marks) == repr(padded.marks)


@fewer_examples
@given(declared=DECLARED)
def test_what_is_declared_survives_its_json(declared: Declared) -> None:
    """What a target declares is the same after being written into a header and read from it."""
    assert Declared.from_json(declared.to_json()) == declared


@fewer_examples
@given(lines=WHOLE, data=st.data())
def test_a_file_cut_anywhere_keeps_what_was_whole(file: Path, lines: list[Line], data: st.DataObject) -> None:
    """A cut inside the header is refused by name; a cut further on loses the torn line, warns, and nothing else."""
    content = _written(lines)
    offset = data.draw(st.integers(0, len(content)), label="offset")
    _keep_what_was_whole(file, lines, content, offset)


def test_a_file_cut_at_every_offset_keeps_what_was_whole(file: Path) -> None:
    """The same at every single byte of one file, multi-byte characters included."""
    request = {"method": "GET", "path": "/health", "query": [], "headers": [["x-note", "grün"]], "body": None}
    lines: list[Line] = [
        Header(target="ø").to_json(),
        {"kind": "mark", "seq": 1, "t": 0.5, "name": "step", "data": {"text": "日本"}},
        *(
            {"kind": "exchange", "seq": n, "conn": None, "t0": 1.0, "t1": 2.0, "request": request, "response": None}
            for n in (2, 3)
        ),
    ]
    content = _written(lines)
    for offset in range(len(content) + 1):
        _keep_what_was_whole(file, lines, content, offset)


def _keep_what_was_whole(file: Path, lines: list[Line], content: bytes, offset: int) -> None:
    whole, _, rest = content[:offset].rpartition(b"\n")
    complete = whole.count(b"\n") + bool(whole) if rest or whole else 0
    unterminated = bool(rest) and content[offset : offset + 1] == b"\n"
    complete += unterminated
    if complete == 0:
        with pytest.raises(TraceError):
            _read_bytes(file, content[:offset])
        return
    trace = _read_bytes(file, content[:offset])
    assert _lines_of(trace) == _lines_of(_read_bytes(file, _written(lines[:complete])))
    assert bool(trace.warnings) is (bool(rest) and not unterminated)
    assert all(f"{file}:{complete + 1}: " in warning for warning in trace.warnings)


@fewer_examples
@given(lines=WHOLE, data=st.data())
def test_a_damaged_file_never_crashes(file: Path, lines: list[Line], data: st.DataObject) -> None:
    """Bytes put anywhere end in a trace, or in an error that names the file, the line and a remedy."""
    content = _written(lines)
    start = data.draw(st.integers(0, len(content)), label="start")
    end = data.draw(st.integers(start, len(content)), label="end")
    damage = data.draw(st.binary(max_size=20), label="damage")
    outcome: Trace | TraceError
    try:
        outcome = _read_bytes(file, content[:start] + damage + content[end:])
    except TraceError as error:
        outcome = error
    if isinstance(outcome, Trace):
        assert len(outcome.exchanges) + len(outcome.marks) <= len(lines) + damage.count(b"\n")
    else:
        assert str(outcome.where).startswith(f"{file}:")
        assert outcome.remedy
        assert all(c.isprintable() or c == "\n" for c in str(outcome))


@fewer_examples
@given(lines=WHOLE, junk=st.dictionaries(NAMES.map("x-".__add__), JSON, max_size=3))
def test_unknown_members_change_nothing(file: Path, lines: list[Line], junk: Line) -> None:
    """Members that this kit does not know are kept in the file and do no harm."""
    widened = [{**junk, **line} for line in lines]
    for line in widened:
        for part in ("request", "response", "fault", "error", "declared", "data"):
            if isinstance(line.get(part), dict) and part in ("request", "response", "error", "declared"):
                line[part] = {**junk, **line[part]}
    assert _lines_of(_read_bytes(file, _written(widened))) == _lines_of(_read_bytes(file, _written(lines)))


@fewer_examples
@given(lines=WHOLE, data=st.data())
def test_the_numbers_give_the_order(file: Path, lines: list[Line], data: st.DataObject) -> None:
    """Lines that were written out of order are read in the order of their numbers."""
    shuffled = data.draw(st.permutations(lines[1:]), label="order")
    ordered = _read_bytes(file, _written(lines))
    assert _lines_of(_read_bytes(file, _written([lines[0], *shuffled]))) == _lines_of(ordered)


def test_a_line_keeps_its_place_and_its_bytes(file: Path) -> None:
    """An exchange knows its line in the file and what was written there."""
    request = {"method": "GET", "path": "/health"}
    line = {"kind": "exchange", "seq": 7, "t0": 0, "t1": 1, "request": request}
    trace = _read_bytes(file, encode({"kind": "header", "format": FORMAT}) + b"\n" + encode(line))
    assert trace.exchanges[0].line == 3
    assert json.loads(trace.exchanges[0].raw) == line
    assert trace.path == str(file)
