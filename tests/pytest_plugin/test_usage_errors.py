"""A run that cannot be used ends at once: what, where and what to do on stderr, a status of its own, no traceback."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from tests.support.inner_pytest import Finished
from tests.support.repository import Repository


def assert_told(done: Finished, status: int, *pieces: str) -> None:
    """The run ended with this status, told all of this on stderr, once, and showed no inside of kit or pytest."""
    assert done.status == status, done.everything
    for piece in pieces:
        assert piece in done.err, done.err
    assert done.err.startswith("error: ")
    assert "\ntry: " in done.err
    assert done.everything.count(done.err.splitlines()[0].removeprefix("error: ")) == 1
    for inside in ("Traceback", "INTERNALERROR", "pytest_run.py", "pytest_options.py", "Exit", "!!"):
        assert inside not in done.everything, done.everything


def test_no_target(repository: Repository) -> None:
    """A run with neither target nor recording says how to name one."""
    assert_told(repository.conform(), 2, "no target is named", "try: add --target NAME", "signet-conformance targets")


@pytest.mark.parametrize("distributed", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_option_of_the_kit_without_the_kit(repository: Repository, distributed: tuple[str, ...]) -> None:
    """It would be a green run that tested nothing; in `addopts` it waits for the runs that ask for the kit."""
    repository.write("test_own.py", "def test_own() -> None:\n    pass\n")
    done = repository.run("--signet-target=reference", *distributed)
    assert_told(done, 2, "--signet-target: does nothing without --signet-conformance", "add --signet-conformance")
    assert "passed" not in done.out
    repository.write("pytest.ini", "[pytest]\naddopts = --signet-target=reference\n")
    assert repository.run(*distributed).status == 0


def test_option_of_the_repository_s_own_is_not_the_kit_s(repository: Repository) -> None:
    """Though it begins as the kit's do."""
    own = "def pytest_addoption(parser):\n    parser.addoption('--signet-daemon-url')\n"
    repository.write("conftest.py", own)
    repository.write("test_own.py", "def test_own() -> None:\n    pass\n")
    assert repository.run("--signet-daemon-url=http://127.0.0.1:1").status == 0


def test_paths_that_are_given_as_such(repository: Repository) -> None:
    """A program that calls pytest gives it paths, in a run that does not ask for the kit too."""
    repository.write("test_own.py", "def test_own() -> None:\n    pass\n")
    program = "import pathlib, pytest, sys; sys.exit(pytest.main([pathlib.Path('test_own.py')]))"
    assert repository.launch([sys.executable, "-c", program]).status == 0


@pytest.mark.parametrize("option", ["--target", "--signet-target"])
def test_target_without_a_name(repository: Repository, option: str) -> None:
    """The option alone is the kit's to refuse, with the kit's status."""
    assert_told(repository.conform(option), 2, "names no target", "--target NAME")


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([("prompt", "s1")], "step 0: prompt in session s1, which is not open"),
        ([("start", "s1"), ("compact", "s2")], "step 1: compact in session s2, which is not open"),
        ([("start", "s1"), ("end", "s1"), ("tool", "s1")], "step 2: tool in session s1, which is not open"),
    ],
)
def test_scenario_in_a_session_that_is_not_open(
    repository: Repository, steps: list[tuple[str, str]], said: str
) -> None:
    """It is refused with the number of the step before anything is launched."""
    rows = [{"step": kind, "session": session, "text": "", "tool": "recall"} for kind, session in steps]
    repository.write("mine.json", json.dumps({"name": "mine", "steps": rows}))
    done = repository.conform("--target=reference", "--scenario=mine.json")
    assert_told(done, 2, f"mine.json: scenario mine, {said}", '{"step": "start", "session"')
    assert "test session starts" not in done.out


@pytest.mark.parametrize("distributed", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_unknown_target(repository: Repository, distributed: tuple[str, ...]) -> None:
    """An unknown target is answered with the nearest known names, and no worker is started."""
    done = repository.conform("--target", "refrence", *distributed)
    assert_told(done, 2, "no target is called 'refrence'", "did you mean reference")
    assert "workers" not in done.out


@pytest.mark.parametrize(
    "arguments",
    [("--target=refrence",), ("--target=reference", "--daemon="), ("--target=reference", "--signet-seed=x")],
)
def test_unusable_run_leaves_no_folder(repository: Repository, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A run that ends before it begins has made neither its temporary folder nor that of its report."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    assert repository.conform(*arguments, TMPDIR=str(temporary)).status == 2
    assert repository.conform(*arguments, "--signet-report=report", TMPDIR=str(temporary)).status == 2
    assert list(temporary.iterdir()) == []
    assert not (repository.folder / "report").exists()


def test_hostile_target_name(repository: Repository) -> None:
    """Control characters of a name reach the terminal escaped."""
    done = repository.conform("--target", "a\x1b[31mb\u202ec")
    assert_told(done, 2, "\\x1b[31m", "\\u202e")
    assert "\x1b[31m" not in done.everything


def test_missing_recording(repository: Repository, tmp_path: Path) -> None:
    """A recording that is not there is named before anything is collected."""
    missing = tmp_path / "missing.jsonl"
    assert_told(repository.conform("--signet-trace", missing), 2, f"--signet-trace {missing}: is not a file")


def test_recording_name_too_long_for_a_file(repository: Repository) -> None:
    """A name that no file system takes is not a file either."""
    assert_told(repository.conform("--signet-trace", "a" * 5000), 2, "is not a file")


@pytest.mark.parametrize(
    ("content", "complaint", "distributed"),
    [
        (b"", ":1: the file is empty", ()),
        (bytes(range(256)) * 64, ":1: not a signet-trace/1 file", ()),
        (b'{"kind":"header","format":"signet-trace/9"}\n', ':1: the format is "signet-trace/9"', ()),
        (b'{"kind":"header","format":"signet-trace/1"}\n{"kind":"exch\n{}\n', ":2: not JSON", ()),
        (b'{"kind":"header","format":"signet-trace/1"}\n{"kind":"exch\n{}\n', ":2: not JSON", ("-n", "2")),
    ],
    ids=["empty", "binary", "other-format", "torn-before-its-end", "torn-before-its-end-xdist"],
)
def test_unreadable_recording(
    repository: Repository, tmp_path: Path, content: bytes, complaint: str, distributed: tuple[str, ...]
) -> None:
    """A recording that cannot be read is one usage error with file and line, not a failure of every requirement."""
    recording = tmp_path / "recording.jsonl"
    recording.write_bytes(content)
    done = repository.conform("--signet-trace", recording, *distributed)
    assert_told(done, 2, f"{recording}{complaint}")
    assert "failed" not in done.out


def test_daemon_beside_a_recording(repository: Repository, conforming: Path) -> None:
    """A recording that is to be judged with a daemon is a misunderstanding, said as one."""
    done = repository.conform("--signet-trace", conforming, "--daemon", "embedded")
    assert_told(done, 2, "a recording needs no daemon", "leave --daemon out")


@pytest.mark.parametrize("report", ["full", "file", "file/below"])
def test_report_folder_that_cannot_be_used(repository: Repository, conforming: Path, report: str) -> None:
    """A report goes to a new or empty folder; what is there already is left as it was."""
    kept = repository.write("full/report.json", "theirs")
    repository.write("file", "theirs")
    done = repository.conform("--signet-trace", conforming, "--signet-report", report)
    assert_told(done, 2, f"--signet-report {report}: ")
    assert kept.read_text() == "theirs"
    assert (repository.folder / "file").read_text() == "theirs"


@pytest.mark.parametrize(
    ("daemon", "complaint"), [("", "is empty"), ("  ", "is empty"), ("'unclosed", "is not a command")]
)
def test_daemon_that_is_no_choice(repository: Repository, daemon: str, complaint: str) -> None:
    """An empty or unparsable --daemon is refused, and never taken for the embedded daemon."""
    done = repository.conform("--target=reference", "--daemon", daemon)
    assert_told(done, 2, "--daemon: ", complaint, "try: embedded")


def test_daemon_url_where_nothing_answers(repository: Repository) -> None:
    """Where nothing answers at the URL of --daemon nothing can be tested: status 3, the URL, what to do."""
    with socket.socket() as taken:
        # Bound and not listening: the port refuses, and nobody else can get it.
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = repository.conform("--target=reference", "--daemon", url)
    assert_told(done, 3, f"--daemon {url}: no daemon answers GET {url}/health", "start it, or use --daemon embedded")


def test_daemon_command_that_does_not_exist(repository: Repository) -> None:
    """A daemon program that is not there is named."""
    done = repository.conform("--target=reference", "--daemon", "no-such-daemon --port 1")
    assert_told(done, 3, "no-such-daemon: the daemon cannot be started: No such file or directory", "on PATH")


def test_daemon_command_that_ends_at_once(repository: Repository) -> None:
    """A daemon that ends before it answers is told with the end of its standard error."""
    daemon = repository.write("daemon.py", "raise SystemExit('the database is locked')")
    done = repository.conform("--target=reference", "--daemon", f"{sys.executable} {daemon}")
    assert_told(done, 3, "the daemon ended before it answered", "the database is locked")


@pytest.mark.parametrize("words", [("--signet-contract", "9.9"), ("--signet-daemon", "embedded:9.9")])
def test_an_unknown_contract_is_told_of_the_option_that_names_it(
    repository: Repository, words: tuple[str, str]
) -> None:
    """The versions that there are stand beside it."""
    spelt = words[0].replace("--signet-daemon", "--daemon")
    done = repository.conform("--target", "reference", *words)
    assert_told(done, 2, f"error: {spelt}: no contract version is called '9.9'", "0.145")
