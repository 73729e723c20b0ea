"""A trace file only grows, and is closed when nothing can follow."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from signet_conformance import trace
from signet_conformance.errors import KitError, UsageError
from signet_conformance.trace import Header, encode
from signet_recording_proxy.trace_file import TraceFile


def line(seq: int) -> bytes:
    """The smallest exchange."""
    request = {"method": "GET", "path": "/", "query": [], "headers": [], "body": None}
    return encode({"kind": "exchange", "seq": seq, "t0": 0, "t1": 0, "request": request, "response": None})


def open_files() -> set[str]:
    """The descriptors this process holds."""
    return {entry.name for entry in Path("/dev/fd").iterdir()}


def test_it_can_be_read_at_any_time(tmp_path: Path) -> None:
    """Header, marks and exchanges stand in the file as soon as they are written."""
    file = TraceFile(str(tmp_path / "t"), Header(target="pi"))
    assert trace.read(tmp_path / "t").header.created == file.header.created
    first = file.begin_exchange()
    assert file.mark("step", {"a": 1}) == 2
    file.end_exchange(line(first))
    file.write_waiting()
    read = trace.read(tmp_path / "t")
    assert ([e.seq for e in read.exchanges], [m.seq for m in read.marks]) == ([1], [2])


def test_an_existing_file_is_refused(tmp_path: Path) -> None:
    """Not even an empty file is taken, nor a link to nowhere."""
    (tmp_path / "t").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("t", "link"):
        with pytest.raises(UsageError, match="exists"):
            TraceFile(str(tmp_path / name), Header())


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    """Traffic is private even without its secrets."""
    TraceFile(str(tmp_path / "t"), Header())
    assert (tmp_path / "t").stat().st_mode & 0o077 == 0


def test_a_superseded_file_closes_after_its_last_exchange(tmp_path: Path) -> None:
    """It takes the lines of exchanges that began in it, and then lets go of the file."""
    before = open_files()
    file = TraceFile(str(tmp_path / "t"), Header())
    seq = file.begin_exchange()
    file.supersede()
    assert len(open_files() - before) == 1
    file.end_exchange(line(seq))
    file.write_waiting()
    assert len(trace.read(tmp_path / "t").exchanges) == 1
    assert open_files() == before


def test_what_comes_after_a_full_disk_stands_in_lines_of_its_own(tmp_path: Path) -> None:
    """Of a line that did not fit nothing is left: what is written once there is room can be read."""
    file = TraceFile(str(tmp_path / "t"), Header())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "t").stat().st_size + 10, hard))
    try:
        with pytest.raises(KitError, match="cannot be written"):
            file.mark("step", {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    file.mark("step", {"a": 1})
    file.demand_intact()
    assert [mark.data for mark in trace.read(tmp_path / "t").marks] == [{"a": 1}]
