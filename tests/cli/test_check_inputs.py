"""What `signet-conformance check` reads: files, folders, globs, and what options declare and select."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance.contract import requirements
from tests.support.command_line import Invoke
from tests.support.trace_files import BREACHING, CONFORMING, HEADER, write


def test_an_unreadable_file_does_not_hide_the_others(invoke: Invoke, tmp_path: Path) -> None:
    """Readable files are judged, the unreadable one is named, and the run ends with 2."""
    good = write(tmp_path / "a.jsonl", BREACHING)
    done = invoke("check", "missing.jsonl", good)
    assert done.exit_code == 2
    assert "FAIL SIG-AGENT-002" in done.stdout
    assert "error: missing.jsonl: cannot be read: No such file or directory\ntry: " in done.stderr
    assert "1 not readable (exit 2)" in done.stdout


def test_a_name_that_is_too_long_does_not_hide_the_others(invoke: Invoke, tmp_path: Path) -> None:
    """A file name that is too long is a file that cannot be read, not a failure of the kit."""
    good = write(tmp_path / "a.jsonl", BREACHING)
    done = invoke("check", "x" * 300, good)
    assert done.exit_code == 2
    assert "FAIL SIG-AGENT-002" in done.stdout
    told = f"error: {'x' * 300}: cannot be read: File name too long\ntry: check the path and its permissions\n"
    assert done.stderr == told


@pytest.mark.parametrize("argument", ["-a.jsonl", "."])
def test_the_replay_of_a_file_with_a_dash_takes_it_for_no_option(invoke: Invoke, tmp_path: Path, argument: str) -> None:
    """A printed command can be pasted, whatever the name of the file."""
    write(tmp_path / "-a.jsonl", BREACHING)
    assert "signet-conformance check ./-a.jsonl -k SIG-AGENT-001" in invoke("check", "--", argument).stdout


def test_a_folder_means_the_traces_below_it(invoke: Invoke, tmp_path: Path) -> None:
    """Each *.jsonl in the folder and its subfolders is judged, in order; other files are not."""
    (tmp_path / "runs" / "deep").mkdir(parents=True)
    for name in ("b.jsonl", "a.jsonl", "deep/c.jsonl"):
        write(tmp_path / "runs" / name, CONFORMING)
    (tmp_path / "runs" / "notes.txt").write_text("no trace")
    document = json.loads(invoke("check", "runs", "--json").stdout)
    assert [listed["file"] for listed in document["traces"]] == ["runs/a.jsonl", "runs/b.jsonl", "runs/deep/c.jsonl"]


def test_a_glob_is_expanded_and_a_file_counts_once(invoke: Invoke, tmp_path: Path) -> None:
    """A pattern that the shell did not expand is expanded; a file that is named twice is judged once."""
    write(tmp_path / "a.jsonl", CONFORMING)
    document = json.loads(invoke("check", "*.jsonl", "a.jsonl", "--json").stdout)
    assert [listed["file"] for listed in document["traces"]] == ["a.jsonl"]


def test_a_name_with_brackets_is_a_file_before_it_is_a_glob(invoke: Invoke, tmp_path: Path) -> None:
    """A file whose name looks like a pattern can be named."""
    write(tmp_path / "a[1].jsonl", CONFORMING)
    assert invoke("check", "a[1].jsonl").exit_code == 0


@pytest.mark.parametrize("argument", ["empty", "*.jsonl", ""])
def test_an_argument_that_names_nothing_exits_2(invoke: Invoke, tmp_path: Path, argument: str) -> None:
    """A folder without traces, a pattern without matches and an empty word are errors with a remedy."""
    (tmp_path / "empty").mkdir()
    done = invoke("check", argument)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert "\ntry: " in done.stderr


def test_options_declare_what_the_header_lacks(invoke: Invoke, tmp_path: Path) -> None:
    """--agent, --harness, --bound, --capability and --token replace the header, and the replay command repeats them."""
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
    assert f"check {trace} {' '.join(options)} -k SIG-AGENT-001" in invoke("check", trace, *options).stdout


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("a.jsonl", "./a.jsonl"), "a.jsonl"),
        (("a.jsonl", "."), "a.jsonl"),
        (("b.jsonl", "a.jsonl"), "a.jsonl"),
        (("c/a.jsonl", "a.jsonl"), "c/a.jsonl"),
    ],
)
def test_a_file_with_several_names_counts_once(invoke: Invoke, tmp_path: Path, words: list[str], kept: str) -> None:
    """By a link, a folder or another spelling it is the same recording; a note names what was passed over."""
    write(tmp_path / "a.jsonl", CONFORMING)
    (tmp_path / "b.jsonl").symlink_to("a.jsonl")
    (tmp_path / "c").symlink_to(".")
    done = invoke("check", *words, "--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert [listed["file"] for listed in document["traces"]] == [kept]
    assert document["warnings"]
    assert all(note.endswith(f" is the same file as {kept}: passed over") for note in document["warnings"])


def test_options_come_before_the_header_and_bounds_merge(invoke: Invoke, tmp_path: Path) -> None:
    """An option replaces the header's declaration; a bound leaves the other bounds as they are."""
    trace = write(tmp_path / "a.jsonl", CONFORMING)
    done = invoke("check", trace, "--agent", "beacon", "--bound", "prompt=2", "--json")
    declared = json.loads(done.stdout)["traces"][0]["declared"]
    assert declared == {"agents": ["beacon"], "harness": "openclaw", "bounds_s": {"start": 15.0, "prompt": 2.0}}


def test_a_target_declares_what_its_profile_says(invoke: Invoke, tmp_path: Path) -> None:
    """--target declares harness and capabilities of the profile."""
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
        (("--capability", "session-strat"), "try: did you mean session-start"),
        (("--capability", "nope"), "try: one of session-start, "),
        (("-k", "SIG-AGENT-02"), "did you mean SIG-AGENT-002"),
        (("-k", "NOPE-*"), "no requirement is called 'NOPE-*'"),
        (("--bund", "x"), "No such option"),
    ],
)
def test_a_wrong_option_exits_2_with_value_and_remedy(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """The wrong value is named with a remedy, and no trace is judged."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "\ntry: " in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("family", ["SIG-AGENT", "sig-agent", "SIG-AGENT-*"])
def test_only_takes_a_family(invoke: Invoke, tmp_path: Path, family: str) -> None:
    """-k SIG-AGENT judges by every requirement of that name, as it does in pytest."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), "-k", family, "--json")
    judged = set(json.loads(done.stdout)["together"])
    assert judged == {name for name in requirements() if name.startswith("SIG-AGENT-")}


def test_an_unknown_requirement_names_both_spellings_of_the_option(invoke: Invoke, tmp_path: Path) -> None:
    """The error names both spellings of the option."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), "-k", "SIG-AGNT")
    assert done.stderr.startswith("error: -k/--only: no requirement is called 'SIG-AGNT'")


def test_only_takes_ids_and_globs(invoke: Invoke, tmp_path: Path) -> None:
    """-k judges only the named requirements, in upper or lower case."""
    done = invoke(
        "check", write(tmp_path / "a.jsonl", CONFORMING), "-k", "sig-agent-00[12]", "-k", "SIG-END-005", "--json"
    )
    assert set(json.loads(done.stdout)["together"]) == {"SIG-AGENT-001", "SIG-AGENT-002", "SIG-END-005"}


def test_a_file_behind_json_is_not_read_as_a_recording(invoke: Invoke, tmp_path: Path) -> None:
    """`--json FILE` takes no file; the error gives the command that writes the report there."""
    write(tmp_path / "a.jsonl", CONFORMING)
    done = invoke("check", "a.jsonl", "--json", "out.json")
    assert done.exit_code == 2
    assert "try: signet-conformance check a.jsonl --json --output out.json\n" in done.stderr


def test_a_dash_is_standard_input(tmp_path: Path) -> None:
    """A recording from a pipe is judged like one in a file."""
    recording = write(tmp_path / "a.jsonl", BREACHING).read_bytes()
    words = [sys.executable, "-m", "signet_conformance.cli", "check", "-", "-q"]
    done = subprocess.run(words, input=recording, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.splitlines()[-1].startswith(b"2 FAIL; ")


def test_errors_of_standard_input_name_it(tmp_path: Path) -> None:
    """Errors say standard input, not /dev/fd/0: for a file that is no recording, and for one that ends too early."""
    words = [sys.executable, "-m", "signet_conformance.cli", "check", "-"]
    empty = subprocess.run(words, input=b"", capture_output=True, timeout=60, check=False)
    assert empty.stderr.startswith(b"error: standard input:1: the file is empty")
    torn = write(tmp_path / "a.jsonl", BREACHING).read_bytes()[:-20]
    done = subprocess.run(words, input=torn, capture_output=True, timeout=60, check=False)
    assert b"note: standard input:" in done.stdout
    assert b"/dev/fd" not in done.stdout + done.stderr


@pytest.mark.parametrize(("pattern", "near"), [("SIG-AGNT", "SIG-AGENT,"), ("agnet", "SIG-AGENT")])
def test_an_unknown_pattern_is_answered_with_near_names(
    invoke: Invoke, tmp_path: Path, pattern: str, near: str
) -> None:
    """The nearest names include families."""
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING), "-k", pattern)
    assert done.exit_code == 2
    assert f"did you mean {near}" in done.stderr


def test_a_family_needs_no_prefix(invoke: Invoke, tmp_path: Path) -> None:
    """`-k agent` means SIG-AGENT."""
    done = invoke("check", write(tmp_path / "a.jsonl", BREACHING), "-k", "agent", "--json")
    names = json.loads(done.stdout)["traces"][0]["verdicts"]
    assert names
    assert all(name.startswith("SIG-AGENT-") for name in names)


def test_workers_report_as_one_process_does(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files judged by several processes are reported in their order, with those that cannot be read."""
    monkeypatch.setattr("signet_conformance.cli.checking._LEAST_BYTES", 0)
    monkeypatch.setattr("signet_conformance.cli.checking._BATCH_FILES", 2)
    for number, lines in enumerate([CONFORMING, BREACHING, b"no trace\n", CONFORMING, BREACHING]):
        file = tmp_path / f"{number}.jsonl"
        file.write_bytes(lines) if isinstance(lines, bytes) else write(file, lines)
    alone, several = (invoke("check", ".", "--all", "--workers", workers) for workers in ("1", "3"))
    assert several.stdout == alone.stdout
    assert several.stderr == alone.stderr
    assert alone.exit_code == several.exit_code == 2
    assert "2.jsonl:1: not a signet-trace/1 file" in several.stderr
