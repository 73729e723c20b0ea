"""Damaged and hostile traces: a clear error, bounded memory, no terminal codes in the output."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import fields

from signet_conformance.reports import FORMATS
from signet_conformance.trace.marks import KINDS, ScenarioEndMark, SentMark
from tests.support.command_line import Invoke, Process
from tests.support.every_format import asking_for
from tests.support.trace_files import BREACHING, CONFORMING, HEADER, KEY, Line, end, health, post, recall, start, write

GIB = 2**30
HEADER_LINE = json.dumps(HEADER).encode() + b"\n"

DAMAGED = {
    "empty": (b"", ":1: the file is empty"),
    "binary": (bytes(range(256)) * 40, ":1: not a signet-trace/1 file"),
    "truncated-header": (HEADER_LINE[:40], ":1: not a signet-trace/1 file"),
    "not-an-object": (b"[]\n", ":1: the first line is not a signet-trace/1 header"),
    "other-format": (HEADER_LINE.replace(b"trace/1", b"trace/9"), ':1: the format is "signet-trace/9"'),
    "deeply-nested-header": (b"[" * 100_000 + b"\n", ":1: not a signet-trace/1 file: JSON nested deeper"),
    "deeply-nested-line": (HEADER_LINE + b'{"a":' * 100_000 + b"\n{}\n", ":2: JSON nested deeper than 200 levels"),
    "damaged-line": (HEADER_LINE + b'{"kind":"exchange"\n{}\n', ":2: not JSON"),
    "unknown-kind": (HEADER_LINE + b'{"kind":"\x1b[31m"}\n', ":2: "),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_its_line_and_a_remedy(process: Process, tmp_path: Path, name: str) -> None:
    """Each kind of damage ends with 2, names file and line, gives a remedy, and shows no traceback."""
    content, said = DAMAGED[name]
    (tmp_path / "bad.jsonl").write_bytes(content)
    done = process("check", "bad.jsonl")
    assert done.returncode == 2
    assert f"error: bad.jsonl{said}" in done.stderr
    assert "\ntry: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr


def test_a_torn_last_line_is_reported_and_the_rest_counts(invoke: Invoke, tmp_path: Path) -> None:
    """A killed recorder leaves a part of a line: it is reported, and the other exchanges are judged."""
    trace = write(tmp_path / "a.jsonl", CONFORMING)
    trace.write_bytes(trace.read_bytes()[:-30])
    done = invoke("check", "a.jsonl")
    assert done.exit_code == 0
    assert "note: a.jsonl:5: the last line is torn" in done.stdout


def test_a_line_of_a_gibibyte_costs_less_memory_than_itself(tmp_path: Path) -> None:
    """A line that is far too long is refused before it is read completely."""
    with (tmp_path / "huge.jsonl").open("wb") as stream:
        stream.truncate(GIB)
    done = subprocess.run(
        [sys.executable, "-m", "signet_conformance.cli", "check", "huge.jsonl"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (GIB, GIB)),
    )
    assert done.returncode == 2
    assert "error: huge.jsonl:1: the line is longer than" in done.stderr


HOSTILE = "\x1b]0;owned\x07\u202e\u2066\x9b31m\x00\r\x7f"


def test_nothing_of_a_trace_reaches_the_terminal_raw(process: Process, tmp_path: Path) -> None:
    """Escapes, bidirectional marks and control characters are escaped, in text and in JSON."""
    declared = {"agents": [f"atlas{HOSTILE}"], "harness": HOSTILE}
    exchanges = [
        health(),
        post(f"/api/hooks/{HOSTILE}", {"harness": HOSTILE, HOSTILE: HOSTILE}, fault={"kind": HOSTILE}),
        start(harness=HOSTILE, sessionKey=HOSTILE, agentId=HOSTILE, project=HOSTILE),
        {"kind": "mark", "t": 3.0, "name": HOSTILE, "data": {HOSTILE: HOSTILE}},
        recall(query=7, agentId=HOSTILE, sessionKey=HOSTILE, limit=HOSTILE),
        end(harness="", sessionKey=HOSTILE, transcript=[HOSTILE]),
    ]
    exchanges[2]["request"]["query"] = [[HOSTILE, HOSTILE]]
    exchanges[4]["error"] = {"kind": HOSTILE}
    exchanges[5]["request"]["method"] = HOSTILE
    write(tmp_path / "a.jsonl", exchanges, {**HEADER, "declared": declared, "daemon_version": f"0.145.7{HOSTILE}"})
    for options in ((), ("--all",), ("--json",)):
        done = process("check", "a.jsonl", *options)
        assert done.returncode == 1, done.stderr
        shown = done.stdout + done.stderr
        assert {c for c in shown if not c.isprintable()} == {"\n"}
        assert "\ufffd" not in shown


@pytest.mark.parametrize("value", [[["x"]], [[]], "\ud800", ["\ud800"], {"\ud800": ["\ud800"]}, 2**70, None], ids=repr)
def test_a_mark_may_hold_anything(invoke: Invoke, tmp_path: Path, value: object) -> None:
    """Whatever the members of the kit's marks hold, the recording is shown, and every report is written."""
    marks = [
        {"kind": "mark", "t": 9.0, "name": name, "data": dict.fromkeys((field.name for field in fields(kind)), value)}
        for name, kind in KINDS.items()
        if name != ScenarioEndMark.NAME  # one with an error breaks the recording off
    ]
    for name in ("a.jsonl", "b.jsonl"):
        write(tmp_path / name, [*BREACHING, *marks])
    written = [word for kind in FORMATS.values() for word in asking_for(kind, f"out{kind.suffix}")]
    done = invoke("check", "a.jsonl", "b.jsonl", "--coverage", *written)
    assert done.exit_code == 1, done.output
    rows = json.loads((tmp_path / "out.json").read_text())["together"].values()
    assert "ERROR" not in {row["verdict"] for row in rows}
    assert all((tmp_path / f"out{kind.suffix}").stat().st_size for kind in FORMATS.values())
    assert invoke("show", "a.jsonl", "--bodies").exit_code == 0


def test_a_number_below_zero_crashes_no_rule(invoke: Invoke, tmp_path: Path) -> None:
    """A recording may number its lines in any way; its number decides the place of a user's words."""

    def step(number: int, kind: str, **more: object) -> Line:
        return {
            "kind": "mark",
            "seq": number,
            "t": 0.0,
            "name": "step",
            "data": {"step": kind, "session": "s1", **more},
        }

    key = {"kind": "mark", "name": "session_key", "data": {"session": "s1", "key": KEY}}
    said = ["Which database holds the orders?", "And which one the invoices of May?"]
    told = "".join(f"User: {text}\nAssistant: Understood.\n" for text in said)
    prompts = [step(number, "prompt", text=text, reply="x") for number, text in zip((4, -1), said, strict=True)]
    write(tmp_path / "a.jsonl", [step(1, "start"), start(), key, *prompts, step(6, "end"), end(transcript=told)])
    rows = json.loads(invoke("check", "a.jsonl", "--json").stdout)["together"]
    assert rows["SIG-END-013"]["verdict"] == "PASS"
    assert "ERROR" not in {row["verdict"] for row in rows.values()}


def test_a_file_of_the_connector_may_have_any_name(invoke: Invoke, tmp_path: Path) -> None:
    """The place of a request in the connector's code is shown, even with half a character in its name."""
    sent = [["POST", "/api/memory/recall", "src/\ud800.js:3"]] * 2
    mark = {"kind": "mark", "t": 9.0, "name": SentMark.NAME, "data": {"index": 0, "requests": sent}}
    write(tmp_path / "a.jsonl", [*BREACHING, mark])
    written = [word for kind in FORMATS.values() for word in asking_for(kind, f"out{kind.suffix}")]
    assert invoke("check", "a.jsonl", *written).exit_code == 1
    places = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    }
    assert "src/%ED%A0%80.js" in places


def test_lone_surrogates_come_out_escaped(process: Process, tmp_path: Path) -> None:
    """Half a character, as JavaScript sends it, is escaped, in text and in JSON."""
    write(tmp_path / "a.jsonl", [health(), post("/api/nowhere/\ud800", {"harness": "\udfff"})])
    for options in ((), ("--json",)):
        done = process("check", "a.jsonl", *options)
        assert done.returncode == 1, done.stderr
        assert "/api/nowhere/\\ud800" in done.stdout


def test_a_hostile_file_name_is_escaped_and_its_command_can_still_be_pasted(process: Process, tmp_path: Path) -> None:
    """The replay command quotes a name with control characters so that a shell gets exactly that name."""
    write(tmp_path / "a'\x1b[31m b.jsonl", [post("/nowhere", {})])
    done = process("check", "a*")
    assert "\x1b" not in done.stdout
    replay = next(line for line in done.stdout.splitlines() if "replay" in line and "SIG-HTTP-003" in line)
    quoted = replay.split(" check ", 1)[1].rsplit(" -k ", 1)[0]
    printed = subprocess.run(["bash", "-c", f"printf %s {quoted}"], capture_output=True, text=True, check=True)  # noqa: S607  any bash
    assert printed.stdout == "a'\x1b[31m b.jsonl"
