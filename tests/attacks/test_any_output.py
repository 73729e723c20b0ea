"""Whatever a recording or a capture says, every command ends as it should and prints nothing that anybody obeys."""

from __future__ import annotations

import copy
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from signet_conformance.cli.commands import commands
from signet_conformance.reports import FORMATS
from signet_conformance.trace import encode
from tests.engine.generated import TRACES, Line
from tests.support.every_format import asking_for

BAD_VALUES: list[Any] = [
    "\ud800", "a\udfffb", {"\ud800": ["\udfff"]}, "\x00", "\r\n", " ", "-", "--help", "%0A%00", "A" * 70_000,
    "::set-output name=x::y", "a\n::error file=a::b", "  ::add-mask::a", "##[command]a", "a ##[group]b",
    "##vso[task.setvariable variable=a]b", "##teamcity[message text='a']", "\u2028::warning::a",
    None, True, False, 0, -1, 1.5, 2**31, 2**63, 2**64, 10**30, 1e300, float("nan"), float("inf"), float("-inf"),
    [], [[]], {}, {"a": {}}, [None], [["a"]], [["a", "b", "c"]], [[1, 2]],
]  # fmt: skip
COMMAND = re.compile(
    r"^\s*::(?:set-|add-|stop-|save-|remove-|debug|warning|error|notice|group|endgroup|echo)|##\[|##vso\[|##teamcity\[",
    re.IGNORECASE | re.MULTILINE,
)
Change = tuple[int, Any]
CHANGES = st.lists(st.tuples(st.integers(0, 2**20), st.sampled_from(BAD_VALUES)), max_size=4)

READING: dict[str, list[str]] = {
    "check": ["check", "a.jsonl", "--all", "--coverage"],
    "check of two": ["check", "a.jsonl", "b.jsonl"],
    **{f"check --{name}": ["check", "a.jsonl", *asking_for(kind, f"out{kind.suffix}")]
       for name, kind in FORMATS.items()},
    "check --json to the terminal": ["check", "a.jsonl", "--json"],
    "check --html --coverage": ["check", "a.jsonl", "--coverage", "--html", "coverage.html"],
    "show": ["show", "a.jsonl"],
    "show --bodies": ["show", "a.jsonl", "--bodies"],
    "diff": ["diff", "a.jsonl", "b.jsonl", "--all"],
    "diff --json": ["diff", "a.jsonl", "b.jsonl", "--json"],
    "diff --html": ["diff", "a.jsonl", "b.jsonl", "--html", "diff.html"],
    "convert to har": ["convert", "a.jsonl", "out.har"],
    "convert to flows": ["convert", "a.jsonl", "out.flow"],
}  # fmt: skip
OF_REPORTS: dict[str, list[str]] = {
    "matrix": ["matrix", "out.json"],
    "matrix --json": ["matrix", "out.json", "--json"],
    "matrix --html": ["matrix", "out.json", "--html", "matrix.html"],
    "matrix --badge": ["matrix", "out.json", "--badge", "badge.svg", "--connector-version", "1"],
}
HAR = {
    "log": {
        "version": "1.2",
        "creator": {"name": "a", "version": "1"},
        "entries": [
            {
                "startedDateTime": "2026-11-22T10:00:00.000Z",
                "time": 5,
                "connection": "7",
                "request": {
                    "method": "POST",
                    "url": "http://127.0.0.1:3850/api/hooks/session-start?a=b",
                    "httpVersion": "HTTP/1.1",
                    "headers": [{"name": "content-type", "value": "application/json"}],
                    "queryString": [{"name": "a", "value": "b"}],
                    "postData": {"mimeType": "application/json", "text": '{"harness":"openclaw"}'},
                },
                "response": {
                    "status": 200,
                    "headers": [{"name": "content-type", "value": "application/json"}],
                    "content": {"text": "e30=", "encoding": "base64", "mimeType": "application/json"},
                },
                "timings": {"wait": 5},
            }
        ],
    }
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that is the working folder of every example."""
    folder = tmp_path_factory.mktemp("any")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        # What crashes raises here: the property fails with the traceback.
        patch.setenv("SIGNET_CONFORMANCE_TRACEBACK", "1")
        yield folder


@pytest.fixture(scope="module")
def whole_files(place: Path) -> dict[str, bytes]:
    """A HAR file, what it is converted to, and what that is converted to, by name."""
    (place / "whole.har").write_text(json.dumps(HAR))
    assert run(["convert", "whole.har", "whole.jsonl"])[0] == 0
    assert run(["convert", "whole.jsonl", "whole.flow"])[0] == 0
    return {file.name: file.read_bytes() for file in place.glob("whole.*")}


def run(words: list[str]) -> tuple[int, str]:
    """The exit status of a command line, and all that it printed, as a terminal would get it."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", printed)
        patch.setattr(sys, "stderr", printed)
        with pytest.raises(SystemExit) as ended:
            commands.main(words)
    assert isinstance(printed.buffer, io.BytesIO)
    return int(str(ended.value.code)), printed.buffer.getvalue().decode()


def changed(document: Any, changes: list[Change]) -> Any:
    """The document with values replaced, anywhere in it."""
    whole = [copy.deepcopy(document)]
    for number, value in changes:
        spots = list(_spots(whole))[1:]
        container, key = spots[number % len(spots)]
        container[key] = copy.deepcopy(value)
    return whole[0]


def _spots(container: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in container.items() if isinstance(container, dict) else enumerate(container):
        yield container, key
        if isinstance(value, dict | list):
            yield from _spots(value)


def write(file: Path, lines: list[Line]) -> None:
    """Write lines as a recorder of any kind would, NaN and half characters included."""
    file.write_bytes(b"".join(encode(line) for line in lines))


def clean(folder: Path) -> None:
    """Remove what the example before wrote."""
    for file in folder.iterdir():
        file.unlink()


def demand_harmless(words: list[str], allowed: tuple[int, ...]) -> int:
    """Run it; the exit status, which is one of these."""
    status, printed = run(words)
    assert status in allowed, (words, printed)
    assert {c for c in printed if not c.isprintable()} <= {"\n"}, words
    assert not (obeyed := COMMAND.search(printed)), (words, obeyed)
    return status


@settings(max_examples=12)
@given(lines=TRACES, changes=CHANGES)
def test_any_recording_is_read_or_refused(place: Path, lines: list[Line], changes: list[Change]) -> None:
    """By every command that reads one, in every format; a report that was written makes a matrix."""
    clean(place)
    write(place / "a.jsonl", changed(lines, changes))
    write(place / "b.jsonl", lines)
    for words in READING.values():
        # 4 where a mark says that a scenario broke off, and never because a rule raised.
        demand_harmless(words, (0, 1, 2, 3, 4))
    if (place / "out.json").exists():
        verdicts = {row["verdict"] for row in json.loads((place / "out.json").read_text())["together"].values()}
        assert "ERROR" not in verdicts
        for words in OF_REPORTS.values():
            demand_harmless(words, (0, 1, 2))


@settings(max_examples=12)
@given(lines=TRACES, changes=CHANGES)
def test_any_report_makes_a_matrix_or_is_refused(place: Path, lines: list[Line], changes: list[Change]) -> None:
    """Whatever stands in its members."""
    clean(place)
    write(place / "a.jsonl", lines)
    run(["check", "a.jsonl", "--json", "--output", "whole.json"])
    if (place / "whole.json").exists():
        whole = json.loads((place / "whole.json").read_text())
        (place / "out.json").write_text(json.dumps(changed(whole, changes)))
        for words in OF_REPORTS.values():
            demand_harmless(words, (0, 1, 2))


@settings(max_examples=60)
@given(changes=CHANGES)
def test_any_capture_is_converted_or_refused(place: Path, changes: list[Change]) -> None:
    """And what it is converted to can be read, and converted back."""
    clean(place)
    (place / "a.har").write_text(json.dumps(changed(HAR, changes)))
    if demand_harmless(["convert", "a.har", "a.jsonl"], (0, 2)) == 0:
        # 4 where the capture lacks a body, which is not the converter's to make up.
        demand_harmless(["check", "a.jsonl"], (0, 1, 3, 4))
        demand_harmless(["convert", "a.jsonl", "back.har"], (0,))
        demand_harmless(["convert", "a.jsonl", "back.flow"], (0,))


@settings(max_examples=40)
@given(data=st.data())
def test_any_bytes_are_no_traceback(place: Path, whole_files: dict[str, bytes], data: st.DataObject) -> None:
    """Of a trace, a HAR or a flow file that was cut, or had bytes of it replaced."""
    clean(place)
    name = data.draw(st.sampled_from(sorted(whole_files)))
    raw = bytearray(whole_files[name])
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)), max_size=6)):
        raw[at] = byte
    broken = place / f"broken{Path(name).suffix}"
    broken.write_bytes(raw[: data.draw(st.integers(0, len(raw)) | st.just(len(raw)))])
    if broken.suffix == ".jsonl":
        (place / "b.jsonl").write_bytes(whole_files["whole.jsonl"])
        for words in READING.values():
            demand_harmless([broken.name if word == "a.jsonl" else word for word in words], (0, 1, 2, 3))
    else:
        demand_harmless(["convert", broken.name, "out.jsonl"], (0, 2))
