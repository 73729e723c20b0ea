"""Several processes that glance at the parts of a file see what one that reads it line by line sees."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from signet_conformance.errors import TraceError
from signet_conformance.trace import glance as glance_module, read_ahead, reading
from signet_conformance.trace.file_exchanges import FileExchanges
from signet_conformance.trace.glance import glance_over
from tests.support.processes import children_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux alone")
HEADER = json.dumps({"kind": "header", "format": "signet-trace/1"})
KEYS = ("", "s-1", "s-2", "session:s-1", "ä")


def exchange(seq: int, *, key: str = "", other: str = "", status: int = 200, blanks: int = 0) -> str:
    """The line of an exchange that names one key, or two."""
    body = {"json": {"sessionKey": key, "sessionId": other}}
    request = {"method": "POST", "path": "/x", "query": [], "headers": [], "body": body}
    answer = {"status": status, "headers": [], "body": None}
    line = {"kind": "exchange", "seq": seq, "t0": seq, "t1": seq, "request": request, "response": answer}
    return json.dumps({**line, "said": " " * blanks}, ensure_ascii=False)


ODD = st.sampled_from(
    [
        "", "  ", "{}", "[", json.dumps({"kind": "mark", "seq": 900, "t": 0, "name": "x", "data": {}}),
        exchange(901).replace("/x", "\\ud83d"), exchange(1), exchange(-5), exchange(2**70),
    ]
)  # fmt: skip
LINES = st.lists(
    st.builds(
        lambda key, other, status, blanks: {"key": key, "other": other, "status": status, "blanks": blanks},
        st.sampled_from(KEYS), st.sampled_from(KEYS), st.sampled_from([200, 200, 500]), st.integers(0, 90),
    ),
    max_size=40,
)  # fmt: skip


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small it is, a recording is read by several."""
    monkeypatch.setattr(reading, "SHARED_BYTES", 0)
    monkeypatch.setattr(reading, "HELD_BYTES", 0)
    monkeypatch.setattr(reading, "LEAST_BYTES", 0)


def seen(path: Path, workers: int) -> Any:
    """All that reading a file tells, or why it cannot be read."""
    try:
        trace = reading.read(path, workers=workers)
    except TraceError as failure:
        return str(failure)
    file_exchanges = trace.exchanges
    if not isinstance(file_exchanges, FileExchanges):
        return file_exchanges, trace.marks, trace.warnings
    columns = (
        file_exchanges.numbers,
        file_exchanges._offsets,
        file_exchanges._lengths,
        file_exchanges._lines,
        file_exchanges._sessions.groups,
    )
    return [list(column) for column in columns], file_exchanges.troubled, trace.marks, trace.warnings


@pytest.mark.usefixtures("shared")
@given(
    lines=LINES, odd=st.lists(st.tuples(st.integers(0, 40), ODD), max_size=2), torn=st.booleans(),
    workers=st.integers(2, 5), turned=st.booleans(),
)  # fmt: skip
@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_they_see_the_same(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lines: list[dict[str, Any]],
    odd: list[tuple[int, str]],
    torn: bool,
    workers: int,
    turned: bool,
) -> None:
    """Wherever a line stands that has to be looked at closely, and in whatever order the numbers are."""
    monkeypatch.setattr(glance_module, "spread", lambda work, items, _: map(work, items))
    numbers = range(len(lines), 0, -1) if turned else range(1, len(lines) + 1)
    written = [exchange(number, **line) for number, line in zip(numbers, lines, strict=True)]
    for place, line in odd:
        written.insert(place, line)
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join([HEADER, *written]) + ("" if torn else "\n"))
    assert seen(path, workers) == seen(path, 1)


@pytest.mark.usefixtures("shared")
def test_forks_do_it(tmp_path: Path) -> None:
    """What they tell crosses the border between processes."""
    path = tmp_path / "trace.jsonl"
    lines = [
        exchange(n, key=f"s-{n // 6}", other="s-0" if n == 50 else "", status=500 if n == 7 else 200)
        for n in range(200)
    ]
    path.write_text("\n".join([HEADER, *lines, ""]))
    assert seen(path, 3) == seen(path, 1)


@pytest.mark.usefixtures("shared")
def test_a_file_that_was_begun_ahead_is_read_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the processes that look through it already, which end when they have told what they saw."""
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join([HEADER, *(exchange(n, key=f"s-{n // 6}") for n in range(200)), ""]))
    before = children_of(os.getpid())
    with read_ahead(path, workers=3):
        assert len(children_of(os.getpid()) - before) == 3
        monkeypatch.setattr(glance_module, "spread", None)  # nobody else is asked
        assert seen(path, 3) == seen(path, 1)
        assert children_of(os.getpid()) <= before


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("other", [False, True], ids=["it grew", "another file"])
def test_what_was_begun_ahead_is_asked_of_that_very_file_alone(tmp_path: Path, other: bool) -> None:
    """One that has grown since, and any other one, is looked through anew."""
    path, read = tmp_path / "trace.jsonl", tmp_path / ("other.jsonl" if other else "trace.jsonl")
    path.write_text("\n".join([HEADER, *map(exchange, range(200)), ""]))
    before = children_of(os.getpid())
    with read_ahead(path, workers=2):
        with read.open("a") as more:
            more.write("\n".join([HEADER, *map(exchange, range(200, 300)), ""] if other else [exchange(200), ""]))
        assert seen(read, 2) == seen(read, 1)
    assert children_of(os.getpid()) <= before


@pytest.mark.usefixtures("shared")
def test_reading_ahead_says_nothing_of_what_cannot_be_read(tmp_path: Path) -> None:
    """A folder, a pipe that nobody writes to, a file of another kind or none at all: its reader says what is wrong."""
    pipe, packed, header = tmp_path / "pipe", tmp_path / "trace.jsonl.gz", tmp_path / "header.jsonl"
    os.mkfifo(pipe)
    packed.write_bytes(gzip.compress(HEADER.encode()))
    header.write_text(HEADER)
    before = children_of(os.getpid())
    for path in (tmp_path, pipe, packed, header, tmp_path / "missing", "a\0b", ""):
        with read_ahead(path, workers=2):
            assert children_of(os.getpid()) <= before


def test_parts_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    """Each is read by one process alone, and the position of the stream stays."""
    path = tmp_path / "trace.jsonl"
    lines = [exchange(number, blanks=number % 50) + "\n" for number in range(300)]
    path.write_text("".join(lines))
    with path.open("rb") as stream:
        told = glance_over(stream, 0, path.stat().st_size, 4, 10_000)
        assert stream.tell() == 0
    assert [number for glances in told for number in glances.numbers] == list(range(300))
    assert min(len(glances.numbers) for glances in told) > 50
    assert [glances.begins for glances in told[1:]] == [glances.ends for glances in told[:-1]]


def test_a_line_that_is_too_long_is_left_to_who_reads_line_by_line(tmp_path: Path) -> None:
    """With all that comes after it; what comes before it is seen."""
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(exchange(number, blanks=3000 * (number == 70)) + "\n" for number in range(100)))
    with path.open("rb") as stream:
        told = glance_over(stream, 0, path.stat().st_size, 3, 1000)
    assert [number for glances in told for number in glances.numbers] == list(range(70))
