"""Facts about `signet-conformance check`: what it judges, what it prints, how it exits."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click import unstyle

from tests.support.command_line import Invoke, Process
from tests.support.trace_files import BREACHING, CONFORMING, HEADER, health, post, recall, start, write

REQUIREMENT_IDS = 84


def test_a_conforming_trace_exits_0(invoke: Invoke, tmp_path: Path) -> None:
    """A trace without a breach ends with 0 and says so."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING))
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1].startswith("conforming; ")


def test_a_breach_of_a_must_exits_1(invoke: Invoke, tmp_path: Path) -> None:
    """One FAIL makes the run end with 1."""
    done = invoke("check", write(tmp_path / "a.jsonl", BREACHING))
    assert done.exit_code == 1
    assert "FAIL SIG-AGENT-001 MUST" in done.stdout
    assert "also      FAIL SIG-AGENT-002 MUST" in done.stdout


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--strict",), 1)])
def test_a_warn_alone_fails_only_when_strict(
    invoke: Invoke, tmp_path: Path, options: tuple[str, ...], status: int
) -> None:
    """A breach of a SHOULD ends with 0, with --strict with 1."""
    trace = write(tmp_path / "a.jsonl", CONFORMING[1:])
    done = invoke("check", trace, "-k", "SIG-HEALTH-001", *options)
    assert "WARN SIG-HEALTH-001 SHOULD" in done.stdout
    assert done.exit_code == status


def test_a_body_that_was_not_decoded_is_named_and_not_green(invoke: Invoke, tmp_path: Path) -> None:
    """A body that could not be decoded ends the run with 4, and its request is named first."""
    hidden = recall(agentId="atlas-agent")
    hidden["request"]["body"] = {"cut": True, "size": 9, "sha256": "0" * 64, "text": "", "undecoded": "br"}
    done = invoke("check", write(tmp_path / "a.jsonl", [*CONFORMING, hidden]))
    assert done.exit_code == 4
    told = " ".join(done.stdout.partition("\n\n")[0].split())
    assert "note: not judged: the body of a request is compressed with br" in told
    assert told.endswith("exchange 5 POST /api/memory/recall")
    assert done.stdout.splitlines()[-1].startswith("incomplete: 1 body that could not be decoded")
    short = invoke("check", "-q", tmp_path / "a.jsonl")
    assert (short.exit_code, "note: not judged: the body of a request" in short.stdout) == (4, True)


@pytest.mark.parametrize(("side", "status"), [("request", 4), ("response", 0)])
def test_a_body_over_the_limit_of_the_recorder_hides_nothing(
    invoke: Invoke, tmp_path: Path, side: str, status: int
) -> None:
    """A request of which only a part was kept ends the run with 4 in place of 0; an answer does not."""
    hidden = recall(agentId="atlas-agent")
    hidden[side]["body"] = {"cut": True, "size": 9_000_000, "sha256": "0" * 64, "text": '{"query": "window'}
    done = invoke("check", write(tmp_path / "a.jsonl", [*CONFORMING, hidden]))
    assert done.exit_code == status, done.stdout
    told = "not judged: the body of a request is over the recorder's limit; record with a larger --body-limit"
    assert (told in " ".join(done.stdout.split())) is (status == 4)
    if status == 4:
        assert done.stdout.splitlines()[-1].startswith("incomplete: 1 body over the recorder's limit")


@pytest.mark.parametrize(
    ("path", "status", "ending"),
    [
        ("/api/hooks/session-end", 4, "incomplete: 1 request that the recorder could not pass on"),
        ("/up", 0, "conforming"),
    ],
)
def test_what_the_recorder_could_not_pass_on_is_no_breach(
    invoke: Invoke, tmp_path: Path, path: str, status: int, ending: str
) -> None:
    """It is reported first, as the recorder's problem; if the daemon should have got it, the run is not green."""
    lost = post(path, "no object", error={"kind": "not_carried", "note": "an upgrade to websocket"})
    lost["response"] = None
    lost["request"]["headers"] = []
    done = invoke("check", write(tmp_path / "a.jsonl", [*CONFORMING, lost]))
    assert done.exit_code == status, done.output
    note = (
        "note: the recorder could not carry a request (an upgrade to websocket), so it decides nothing: exchange 5 POST"
    )
    assert f"{note} {path}" in " ".join(done.stdout.partition("\n\n")[0].split())
    assert "FAIL SIG-" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith(ending)


def test_nothing_tested_exits_3(invoke: Invoke, tmp_path: Path) -> None:
    """A trace without any subject ends the run with 3, never with 0."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), "-k", "SIG-CMP-*")
    assert done.exit_code == 3
    assert done.stdout.splitlines()[-1] == "nothing was tested in 1 trace (exit 3)"


def test_all_shows_every_requirement(invoke: Invoke, tmp_path: Path) -> None:
    """--all lists PASS and NOT-APPLICABLE too, so each requirement has a line."""
    done = invoke("check", write(tmp_path / "a.jsonl", BREACHING), "--all")
    assert len({word for word in done.stdout.split() if word.startswith("SIG-")}) >= REQUIREMENT_IDS
    assert "NOT-APPLICABLE SIG-CMP-001" in done.stdout
    assert "PASS SIG-START-001" in done.stdout


@pytest.mark.parametrize("option", ["--summary", "--quiet", "-q"])
def test_a_summary_is_one_line_a_requirement(invoke: Invoke, tmp_path: Path, option: str) -> None:
    """A breached or undecided requirement has one line above the closing line; a conforming one has none."""
    done = invoke("check", write(tmp_path / "a.jsonl", BREACHING), option)
    *lines, closing = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("FAIL")] == [
        ["FAIL", "SIG-AGENT-001"],
        ["FAIL", "SIG-AGENT-002"],
    ]
    assert len({line.split()[1] for line in lines}) == len(lines)
    assert all(line.startswith(("FAIL SIG-", "WARN SIG-", "INCONCLUSIVE SIG-")) for line in lines)
    assert closing.startswith("2 FAIL; ")
    assert "memory-recall runs as 'default', 2 times" in done.stdout


@pytest.mark.parametrize("option", ["--summary", "-q"])
def test_a_summary_warns_of_a_torn_recording(invoke: Invoke, tmp_path: Path, option: str) -> None:
    """A summary warns of missing lines of the recording above the verdicts."""
    recording = write(tmp_path / "a.jsonl", CONFORMING)
    recording.write_text(recording.read_text() + '{"kind": "exchan')
    done = invoke("check", recording, option)
    assert done.stdout.splitlines()[0].startswith("note: ")
    assert "the last line is torn and was left out" in done.stdout.splitlines()[0]


def test_a_breach_of_the_whole_run_is_replayed_over_its_traces(invoke: Invoke, tmp_path: Path) -> None:
    """The command that replays a breach of the whole run names all its traces, and shows the breach again."""
    ended = {"kind": "mark", "t": 9.0, "name": "scenario_end", "data": {}}
    header = {**HEADER, "declared": {**HEADER["declared"], "capabilities": ["health", "session-start", "mcp"]}}
    (tmp_path / "runs").mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        write(tmp_path / "runs" / name, [health(), start(), ended], header)
    done = invoke("check", "runs")
    replay = next(line for line in done.stdout.splitlines() if line.endswith("-k SIG-COV-001"))
    words = shlex.split(replay)
    assert words[1:] == ["signet-conformance", "check", "runs", "-k", "SIG-COV-001"]
    assert "FAIL SIG-COV-001" in invoke(*words[2:]).stdout


def test_a_second_file_repeats_nothing(invoke: Invoke, tmp_path: Path) -> None:
    """A cause is reported once per run, with the number of places where it shows."""
    files = [write(tmp_path / name, BREACHING) for name in ("a.jsonl", "b.jsonl")]
    stdout = invoke("check", *files).stdout
    assert stdout.count("FAIL SIG-AGENT-002") == 1
    assert stdout.count("  why       ") == 1
    assert "seen      in 2 of 2 traces, 2 sessions, 4 calls (memory-recall)" in stdout
    assert "\ntogether " in stdout


def test_a_driven_run_is_judged_as_a_whole(invoke: Invoke, tmp_path: Path) -> None:
    """Traces with the end marks of scenarios are judged together against the declared operations."""
    ended = {"kind": "mark", "t": 9.0, "name": "scenario_end", "data": {}}
    header = {**HEADER, "declared": {**HEADER["declared"], "capabilities": ["health", "session-start", "session-end"]}}
    files = [write(tmp_path / name, [health(), start(), ended], header) for name in ("a.jsonl", "b.jsonl")]
    done = invoke("check", *files, "-k", "SIG-COV-001")
    assert done.exit_code == 1
    assert "declared but never seen: session-end" in done.stdout


@pytest.mark.parametrize(
    ("exchanges", "status"), [(CONFORMING, 0), (BREACHING, 1), ([], 3), ([post("/x", {}, seq="one")], 2)]
)
def test_the_process_exits_as_promised(process: Process, tmp_path: Path, exchanges: list[object], status: int) -> None:
    """A real process ends with the documented statuses."""
    done = process("check", write(tmp_path / "a.jsonl", exchanges))  # the last is broken on purpose
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_check_loads_nothing_that_it_does_not_need(process: Process, tmp_path: Path) -> None:
    """Judging a conforming trace imports no proxy, server, test framework or terminal toolkit."""
    trace = write(tmp_path / "a.jsonl", CONFORMING)
    done = process("check", trace, "--json", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "jsonschema_rs" in loaded
    unwanted = {"rich", "hypothesis", "mitmproxy", "starlette", "uvicorn", "httpx", "pytest", "pydantic", "jsonschema"}
    assert not loaded & unwanted


def test_its_options_are_read_before_anything_that_judges_is_imported(process: Process) -> None:
    """While rules and reports are imported, other processes already look through a large recording."""
    done = process("check", "--help", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "signet_conformance.trace.glance" in loaded
    assert not loaded & {f"signet_conformance.{room}" for room in ("contract", "engine", "rules", "outcome.conclusion")}


def test_a_failed_run_without_a_breach_is_not_called_conforming(invoke: Invoke, tmp_path: Path) -> None:
    """A missed bound on coverage ends the run with 1, and the closing line does not say conforming."""
    write(tmp_path / "a.jsonl", CONFORMING)
    done = invoke("check", "a.jsonl", "-q", "-k", "SIG-AGENT-001", "--coverage-fail-under", "99")
    assert (done.exit_code, done.stdout.splitlines()[-1].split(";")[0]) == (1, "failed by too little coverage")


@pytest.mark.parametrize("content", ["", "[]", '{"format": "signet-selftest/1"}', '{"format": "signet-report/1"}'])
def test_another_file_is_refused_as_a_kill_matrix(invoke: Invoke, tmp_path: Path, content: str) -> None:
    """A file that is no signet-selftest/1 is refused by name, and so is --selftest without a page."""
    write(tmp_path / "a.jsonl", CONFORMING)
    (tmp_path / "s.json").write_text(content)
    done = invoke("check", "a.jsonl", "--html", "r.html", "--selftest", "s.json")
    assert (done.exit_code, done.stderr.startswith("error: --selftest s.json: ")) == (2, True)
    assert invoke("check", "a.jsonl", "--selftest", "s.json").exit_code == 2


def test_the_json_report_holds_the_coverage_that_was_asked_for(invoke: Invoke, tmp_path: Path) -> None:
    """With `--coverage` the document has percent and points, with `--coverage-fail-under` a note of the gap."""
    write(tmp_path / "a.jsonl", CONFORMING)
    report = json.loads(invoke("check", "a.jsonl", "--json", "--coverage").stdout)
    assert "session-start" in report["coverage"]["parts"]["operations"]["exercised"]
    assert "warnings" not in report
    assert "coverage" not in json.loads(invoke("check", "a.jsonl", "--json").stdout)
    below = json.loads(invoke("check", "a.jsonl", "--json", "--coverage-fail-under", "99").stdout)
    assert below["warnings"] == ["coverage is below 99 %: exercise more, or lower the minimum"]


def test_half_an_emoji_in_an_answer_is_covered_too(invoke: Invoke, tmp_path: Path) -> None:
    """A memory that the daemon cut in the middle of a character changes neither report nor coverage."""
    cut = start()
    cut["response"]["body"]["json"]["inject"] = "cut \ud83d"
    reports = [
        json.loads(invoke("check", write(tmp_path / "a.jsonl", [health(), line]), "--json", "--coverage").stdout)
        for line in (start(), cut)
    ]
    assert reports[0]["coverage"] == reports[1]["coverage"]
    assert "session-start" in reports[1]["coverage"]["parts"]["operations"]["exercised"]


def test_forced_colours_come_through_a_pipe(process: Process, tmp_path: Path) -> None:
    """FORCE_COLOR colours output to a pipe; NO_COLOR wins over it; the words stay the same."""
    trace = write(tmp_path / "a.jsonl", BREACHING)
    plain = process("check", trace).stdout
    forced = process("check", trace, FORCE_COLOR="1", TERM="dumb").stdout
    assert "\x1b" not in plain
    assert "\x1b[1;31mFAIL\x1b[0m" in forced
    assert unstyle(forced) == plain
    assert process("check", trace, FORCE_COLOR="1", NO_COLOR="1").stdout == plain
