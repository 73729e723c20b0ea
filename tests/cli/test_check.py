"""Facts about `signet-conformance check`: what it judges, what it prints, how it exits."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click import unstyle

from signet_conformance.contract import requirements
from tests.support.command_line import Invoke, Process
from tests.support.trace_files import BREACHING, CONFORMING, HEADER, health, post, start, write

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
    assert "FAIL SIG-AGENT-002 MUST" in done.stdout


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--strict",), 1)])
def test_a_warn_alone_fails_only_when_strict(
    invoke: Invoke, tmp_path: Path, options: tuple[str, ...], status: int
) -> None:
    """A breach of a SHOULD ends with 0, with --strict with 1."""
    trace = write(tmp_path / "a.jsonl", CONFORMING[1:])
    done = invoke("check", trace, "-k", "SIG-HEALTH-001", *options)
    assert "WARN SIG-HEALTH-001 SHOULD" in done.stdout
    assert done.exit_code == status


def test_nothing_tested_exits_3(invoke: Invoke, tmp_path: Path) -> None:
    """A trace without any subject ends with 3: it is never green."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), "-k", "SIG-CMP-*")
    assert done.exit_code == 3
    assert done.stdout.splitlines()[-1] == "nothing was tested in 1 trace (exit 3)"


def test_an_unreadable_file_does_not_hide_the_others(invoke: Invoke, tmp_path: Path) -> None:
    """The files that can be read are reported, the other is named, and the run ends with 2."""
    good = write(tmp_path / "a.jsonl", BREACHING)
    done = invoke("check", "missing.jsonl", good)
    assert done.exit_code == 2
    assert "FAIL SIG-AGENT-002" in done.stdout
    assert "error: missing.jsonl: cannot be read: No such file or directory\ntry: " in done.stderr
    assert "1 not readable (exit 2)" in done.stdout


def test_a_folder_stands_for_the_traces_below_it(invoke: Invoke, tmp_path: Path) -> None:
    """Each *.jsonl in the folder and its subfolders is judged, in order; other files are not."""
    (tmp_path / "runs" / "deep").mkdir(parents=True)
    for name in ("b.jsonl", "a.jsonl", "deep/c.jsonl"):
        write(tmp_path / "runs" / name, CONFORMING)
    (tmp_path / "runs" / "notes.txt").write_text("no trace")
    document = json.loads(invoke("check", "runs", "--json").stdout)
    assert [one["file"] for one in document["traces"]] == ["runs/a.jsonl", "runs/b.jsonl", "runs/deep/c.jsonl"]


def test_a_glob_is_expanded_and_a_file_counts_once(invoke: Invoke, tmp_path: Path) -> None:
    """A pattern that the shell left alone is expanded; a file that is named twice is judged once."""
    write(tmp_path / "a.jsonl", CONFORMING)
    document = json.loads(invoke("check", "*.jsonl", "a.jsonl", "--json").stdout)
    assert [one["file"] for one in document["traces"]] == ["a.jsonl"]


def test_a_name_with_brackets_is_a_file_before_it_is_a_glob(invoke: Invoke, tmp_path: Path) -> None:
    """A file whose name looks like a pattern can be named."""
    write(tmp_path / "a[1].jsonl", CONFORMING)
    assert invoke("check", "a[1].jsonl").exit_code == 0


@pytest.mark.parametrize("argument", ["empty", "*.jsonl", ""])
def test_an_argument_that_names_nothing_exits_2(invoke: Invoke, tmp_path: Path, argument: str) -> None:
    """A folder without traces, a pattern without matches and an empty word are complaints with a remedy."""
    (tmp_path / "empty").mkdir()
    done = invoke("check", argument)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert "\ntry: " in done.stderr


def test_options_declare_what_the_header_lacks(invoke: Invoke, tmp_path: Path) -> None:
    """--agent, --harness, --bound, --capability and --token stand in for the header, and a replay repeats them."""
    bare = {name: value for name, value in HEADER.items() if name != "declared"}
    trace = write(tmp_path / "a.jsonl", BREACHING, bare)
    options = ["--agent=atlas-agent", "--harness=openclaw", "--bound=start=15", "--capability=health", "--token"]
    document = json.loads(invoke("check", trace, *options, "--json").stdout)
    assert document["traces"][0]["declared"] == {
        "agents": ["atlas-agent"],
        "harness": "openclaw",
        "bounds_s": {"start": 15.0},
        "capabilities": ["health"],
        "token": True,
    }
    assert f"check {trace} {' '.join(options)} -k SIG-AGENT-002" in invoke("check", trace, *options).stdout


def test_options_come_before_the_header_and_bounds_merge(invoke: Invoke, tmp_path: Path) -> None:
    """An option replaces what the header declares; a bound leaves the other bounds alone."""
    trace = write(tmp_path / "a.jsonl", CONFORMING)
    done = invoke("check", trace, "--agent", "beacon", "--bound", "prompt=2", "--json")
    declared = json.loads(done.stdout)["traces"][0]["declared"]
    assert declared == {"agents": ["beacon"], "harness": "openclaw", "bounds_s": {"start": 15.0, "prompt": 2.0}}


def test_a_target_declares_what_its_profile_says(invoke: Invoke, tmp_path: Path) -> None:
    """--target takes harness and capabilities from the profile."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), "--target", "reference", "--json")
    declared = json.loads(done.stdout)["traces"][0]["declared"]
    assert declared["harness"] == "reference"
    assert "session-start" in declared["capabilities"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "nosuch"), "nosuch"),
        (("--contract", "9.9"), "no contract version is called '9.9'"),
        (("--bound", "start"), "'start' is not a bound"),
        (("--bound", "strat=5"), "'strat=5' is not a bound"),
        (("--bound", "start=nan"), "'start=nan' is not a bound"),
        (("--bound", "start=-1"), "'start=-1' is not a bound"),
        (("--agent", "  "), "the value is blank"),
        (("--capability", "session-strat"), "session-start"),
        (("-k", "SIG-AGENT-02"), "near it: SIG-AGENT-002"),
        (("-k", "NOPE-*"), "there is no requirement 'NOPE-*'"),
        (("--bund", "x"), "No such option"),
    ],
)
def test_a_wrong_option_exits_2_with_value_and_remedy(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """What is off is named with its value and what to write instead; no trace is judged."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "\ntry: " in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("family", ["SIG-AGENT", "sig-agent", "SIG-AGENT-*"])
def test_only_takes_a_family(invoke: Invoke, tmp_path: Path, family: str) -> None:
    """-k SIG-AGENT judges by every requirement of that name, as it does in pytest."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), "-k", family, "--json")
    found = set(json.loads(done.stdout)["together"])
    assert found == {name for name in requirements() if name.startswith("SIG-AGENT-")}


def test_an_unknown_requirement_is_told_by_the_options_that_name_one(invoke: Invoke, tmp_path: Path) -> None:
    """Neither of the two spellings hides behind the other."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), "-k", "SIG-AGNT")
    assert done.stderr.startswith("error: -k/--only: there is no requirement 'SIG-AGNT'")


def test_only_takes_ids_and_globs(invoke: Invoke, tmp_path: Path) -> None:
    """-k judges the named requirements alone, whatever the case of the letters."""
    done = invoke(
        "check", write(tmp_path / "a.jsonl", CONFORMING), "-k", "sig-agent-00[12]", "-k", "SIG-END-005", "--json"
    )
    assert set(json.loads(done.stdout)["together"]) == {"SIG-AGENT-001", "SIG-AGENT-002", "SIG-END-005"}


def test_all_shows_every_requirement(invoke: Invoke, tmp_path: Path) -> None:
    """--all lists PASS and NOT-APPLICABLE too, so that each requirement has its line."""
    done = invoke("check", write(tmp_path / "a.jsonl", BREACHING), "--all")
    assert len({word for word in done.stdout.split() if word.startswith("SIG-")}) >= REQUIREMENT_IDS
    assert "NOT-APPLICABLE SIG-CMP-001" in done.stdout
    assert "PASS SIG-START-001" in done.stdout


def test_quiet_shows_one_line(invoke: Invoke, tmp_path: Path) -> None:
    """--quiet leaves the closing line."""
    done = invoke("check", write(tmp_path / "a.jsonl", BREACHING), "--quiet")
    assert done.stdout.count("\n") == 1
    assert "FAIL" in done.stdout


def test_output_takes_the_report(invoke: Invoke, tmp_path: Path) -> None:
    """--output writes the report to a new file; the terminal gets the closing line and the name."""
    done = invoke("check", write(tmp_path / "a.jsonl", BREACHING), "--json", "--output", "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["exit"] == 1
    assert done.stdout.endswith("report: report.json\n")


def test_output_replaces_nothing_unasked(invoke: Invoke, tmp_path: Path) -> None:
    """An existing file is left as it is with 2; --force replaces it as a whole."""
    trace = write(tmp_path / "a.jsonl", BREACHING)
    report = tmp_path / "report.txt"
    report.write_text("mine")
    refused = invoke("check", trace, "--output", report)
    assert (refused.exit_code, report.read_text()) == (2, "mine")
    assert "exists already" in refused.stderr
    assert "--force" in refused.stderr
    assert invoke("check", trace, "--output", report, "--force").exit_code == 1
    assert report.read_text().startswith(str(trace))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "report.txt"]


@pytest.mark.parametrize("output", ["no/such/folder.txt", "."])
def test_an_output_that_cannot_be_written_exits_2(invoke: Invoke, tmp_path: Path, output: str) -> None:
    """A missing folder, or a folder in the file's place, is a complaint and leaves nothing behind."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), "--output", output, "--force")
    assert done.exit_code == 2
    assert f"error: {output}: cannot be written" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_report_is_not_left_half_written(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the run is interrupted, --output leaves no file and the exit status is 130."""
    trace = write(tmp_path / "a.jsonl", CONFORMING)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("signet_conformance.cli.judging.read_recording", interrupt)
    done = invoke("check", trace, "--output", "report.txt")
    assert done.exit_code == 130
    assert not (tmp_path / "report.txt").exists()


def test_what_only_the_run_breaches_is_replayed_over_its_traces(invoke: Invoke, tmp_path: Path) -> None:
    """The command that replays a breach of the whole run names what was judged, and shows it again."""
    ended = {"kind": "mark", "t": 9.0, "name": "scenario_end", "data": {}}
    header = {**HEADER, "declared": {**HEADER["declared"], "capabilities": ["health", "session-start", "session-end"]}}
    (tmp_path / "runs").mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        write(tmp_path / "runs" / name, [health(), start(), ended], header)
    done = invoke("check", "runs")
    replay = next(line for line in done.stdout.splitlines() if line.endswith("-k SIG-COV-001"))
    words = shlex.split(replay)
    assert words[1:] == ["signet-conformance", "check", "runs", "-k", "SIG-COV-001"]
    assert "FAIL SIG-COV-001" in invoke(*words[2:]).stdout


def test_a_second_file_does_not_repeat_the_explanation(invoke: Invoke, tmp_path: Path) -> None:
    """Why and what to change are said once a run for each requirement."""
    files = [write(tmp_path / name, BREACHING) for name in ("a.jsonl", "b.jsonl")]
    stdout = invoke("check", *files).stdout
    assert stdout.count("FAIL SIG-AGENT-002") == 2
    assert stdout.count("  why       The call runs as the agent default") == 1
    assert "\ntogether " in stdout


def test_a_driven_run_is_judged_as_a_whole(invoke: Invoke, tmp_path: Path) -> None:
    """Traces with the end marks of scenarios are held against the declared operations together."""
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
    done = process("check", write(tmp_path / "a.jsonl", exchanges))  # type: ignore[arg-type]  # the last is broken on purpose
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_check_loads_nothing_that_it_does_not_need(process: Process, tmp_path: Path) -> None:
    """Judging a conforming trace imports neither proxies, servers, test frameworks nor terminals' toolkits."""
    trace = write(tmp_path / "a.jsonl", CONFORMING)
    done = process("check", trace, "--json", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "jsonschema_rs" in loaded
    unwanted = {"rich", "hypothesis", "mitmproxy", "starlette", "uvicorn", "httpx", "pytest", "pydantic", "jsonschema"}
    assert not loaded & unwanted


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path) -> None:
    """A pipe that is closed early ends the run quietly, with the status that a shell expects."""
    trace = write(tmp_path / "a.jsonl", BREACHING * 60)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "signet_conformance.cli", "check", str(trace)],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_report_is_not_blamed_for_a_reader_that_leaves(tmp_path: Path) -> None:
    """Where a report is written beside what is piped, a closed pipe is still that of the pipe; no half report stays."""
    trace, page = write(tmp_path / "a.jsonl", BREACHING * 60), tmp_path / "page.html"
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "signet_conformance.cli", "check", str(trace), "--html", str(page)]
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr, page.exists()) == (141, b"", False)


@pytest.mark.parametrize("option", ["--html", "--sarif", "--output", "--write-baseline"])
def test_a_report_never_replaces_what_is_judged(invoke: Invoke, tmp_path: Path, option: str) -> None:
    """Not with --force either, and by whatever path it is named: a recording cannot be made again."""
    trace = write(tmp_path / "a.jsonl", BREACHING)
    before = trace.read_bytes()
    (tmp_path / "folder").mkdir()
    done = invoke(
        "check", "a.jsonl", "--force", "--reason", "r", "--write-baseline", "b.json", option, "folder/../a.jsonl"
    )
    assert (done.exit_code, trace.read_bytes() == before) == (2, True)


@pytest.mark.parametrize("option", ["--html", "--output", "--write-baseline"])
def test_an_empty_name_is_no_files(invoke: Invoke, tmp_path: Path, option: str) -> None:
    """A variable that was never set names no report, and the message says so before anything is judged."""
    trace = write(tmp_path / "a.jsonl", CONFORMING)
    done = invoke("check", trace, *(("--reason", "r") if option == "--write-baseline" else ()), option, "")
    assert (done.exit_code, done.stdout, done.stderr.splitlines()[0]) == (
        2,
        "",
        "error: an empty name does not name a file",
    )


@pytest.mark.parametrize(("lines", "status"), [(CONFORMING, 0), (BREACHING, 1)], ids=["conforming", "breaching"])
def test_a_closed_stdout_changes_no_status(tmp_path: Path, lines: list[dict[str, Any]], status: int) -> None:
    """A program that was started without stdout and stderr says nothing and ends as it would have."""
    trace = write(tmp_path / "a.jsonl", lines)
    command = f"{shlex.join([sys.executable, '-m', 'signet_conformance.cli', 'check', str(trace)])} >&- 2>&-"
    assert subprocess.run(["/bin/sh", "-c", command], check=False, timeout=60).returncode == status


def test_a_failed_run_without_a_breach_is_not_called_conforming(invoke: Invoke, tmp_path: Path) -> None:
    """A bound on coverage that is not reached ends with 1, and the closing line does not contradict it."""
    write(tmp_path / "a.jsonl", CONFORMING)
    done = invoke("check", "a.jsonl", "-q", "-k", "SIG-AGENT-001", "--coverage-fail-under", "99")
    assert (done.exit_code, done.stdout.splitlines()[-1].split(";")[0]) == (1, "failed by too little coverage")


def test_reports_are_written_beside_what_is_shown(invoke: Invoke, tmp_path: Path) -> None:
    """Markdown, SARIF and a page come with the text or the JSON report, and are named below the closing line."""
    write(tmp_path / "a.jsonl", BREACHING)
    done = invoke("check", "a.jsonl", "--markdown", "r.md", "--sarif", "r.sarif", "--html", "r.html")
    assert done.exit_code == 1
    assert done.stdout.endswith("report: r.md\nreport: r.sarif\nreport: r.html\n")
    assert (tmp_path / "r.md").read_text().startswith("## Signet conformance")
    assert json.loads((tmp_path / "r.sarif").read_bytes())["version"] == "2.1.0"
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "r.html").stat().st_mode & 0o077 == 0, "it holds bodies, and traces are private"
    assert json.loads(invoke("check", "a.jsonl", "--json", "--html", "r2.html").stdout)["exit"] == 1


def test_a_report_replaces_nothing_and_shares_no_file(invoke: Invoke, tmp_path: Path) -> None:
    """A file that is there, or that two reports are to go to, ends the run with 2 before anything is judged."""
    write(tmp_path / "a.jsonl", BREACHING)
    (tmp_path / "r.md").write_text("theirs")
    done = invoke("check", "a.jsonl", "--markdown", "r.md", "--sarif", "new.sarif")
    assert (done.exit_code, (tmp_path / "r.md").read_text()) == (2, "theirs")
    assert "exists already" in done.stderr
    assert not (tmp_path / "new.sarif").exists()
    done = invoke("check", "a.jsonl", "--html", "same", "--sarif", "./same")
    assert (done.exit_code, "two reports go to one file" in done.stderr) == (2, True)
    assert invoke("check", "a.jsonl", "--markdown", "r.md", "--force", "-q").exit_code == 1
    assert (tmp_path / "r.md").read_text().startswith("## Signet")


@pytest.mark.parametrize("content", ["", "[]", '{"format": "signet-selftest/1"}', '{"format": "signet-report/1"}'])
def test_a_kill_matrix_is_one(invoke: Invoke, tmp_path: Path, content: str) -> None:
    """What is no signet-selftest/1 is refused by name, and so is one without a page to show it in."""
    write(tmp_path / "a.jsonl", CONFORMING)
    (tmp_path / "s.json").write_text(content)
    done = invoke("check", "a.jsonl", "--html", "r.html", "--selftest", "s.json")
    assert (done.exit_code, done.stderr.startswith("error: --selftest s.json: ")) == (2, True)
    assert invoke("check", "a.jsonl", "--selftest", "s.json").exit_code == 2


def test_the_json_report_holds_the_coverage_that_was_asked_for(invoke: Invoke, tmp_path: Path) -> None:
    """`--coverage` puts percent and points into the document, `--coverage-fail-under` a note of what was missed."""
    write(tmp_path / "a.jsonl", CONFORMING)
    report = json.loads(invoke("check", "a.jsonl", "--json", "--coverage").stdout)
    assert "session-start" in report["coverage"]["parts"]["operations"]["exercised"]
    assert "warnings" not in report
    assert "coverage" not in json.loads(invoke("check", "a.jsonl", "--json").stdout)
    below = json.loads(invoke("check", "a.jsonl", "--json", "--coverage-fail-under", "99").stdout)
    assert below["warnings"] == ["coverage is less than 99 %: exercise more, or lower the bound"]


def test_forced_colours_come_through_a_pipe(process: Process, tmp_path: Path) -> None:
    """FORCE_COLOR colours what goes into a pipe; NO_COLOR has the last word, and no word changes by colour."""
    trace = write(tmp_path / "a.jsonl", BREACHING)
    plain = process("check", trace).stdout
    forced = process("check", trace, FORCE_COLOR="1", TERM="dumb").stdout
    assert "\x1b" not in plain
    assert "\x1b[1;31mFAIL\x1b[0m" in forced
    assert unstyle(forced) == plain
    assert process("check", trace, FORCE_COLOR="1", NO_COLOR="1").stdout == plain
