"""Facts about what all commands share: help, unknown words, failures of the kit itself."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance import __version__
from signet_conformance.cli.commands import COMMANDS
from tests.support.command_line import Invoke, Process
from tests.support.trace_files import CONFORMING, write


def test_the_version_is_printed(invoke: Invoke) -> None:
    """--version names the program and its version."""
    assert invoke("--version").stdout == f"signet-conformance {__version__}\n"


def test_the_overview_names_every_command_and_the_exit_statuses(invoke: Invoke) -> None:
    """--help lists the table of commands, examples and what the exit statuses mean."""
    shown = invoke("--help").stdout
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert "Examples:" in shown
    assert "Exit status: 0 conforming" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself_with_examples(invoke: Invoke, name: str) -> None:
    """--help of a command ends with 0; a command with arguments shows examples."""
    done = invoke(name, "--help")
    assert done.exit_code == 0
    assert name in {"contract", "targets"} or "Examples:" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_terminal_of_80_columns(invoke: Invoke, name: str) -> None:
    """Sentences are as wide as the terminal at most; indented commands, tables and samples may be wider."""
    lines = invoke(name, "--help").stdout.splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith((" " * 4, "Usage:"))] == []


@pytest.mark.parametrize("group", ["contract", "face", "audit"])
def test_the_list_of_a_group_has_whole_sentences(invoke: Invoke, group: str) -> None:
    """At 80 columns no line about a command is cut off."""
    usage, *lines = invoke(group, "--help").stdout.splitlines()
    assert usage.startswith("Usage: ")
    assert [line for line in lines if line.endswith("...")] == []


def test_an_unknown_command_is_answered_with_the_nearest(invoke: Invoke) -> None:
    """A misspelt command ends with 2 and names the nearest command."""
    done = invoke("chek")
    assert done.exit_code == 2
    assert done.stderr == "error: unknown command 'chek'\ntry: signet-conformance check --help\n"


def test_a_missing_argument_is_wrong_usage(invoke: Invoke) -> None:
    """`check` without a trace ends with 2 and points to its help."""
    done = invoke("check")
    assert done.exit_code == 2
    assert "try: signet-conformance check --help" in done.stderr


@pytest.mark.parametrize(
    ("words", "said", "helps"),
    [
        (("check", "x", "--agent"), "Option '--agent' requires an argument.", "check"),
        (("run", "x", "-k"), "Option '-k' requires an argument.", "run"),
        (("check", "x", "--no-such"), "No such option '--no-such'.", "check"),
        (("audit", "x", "--no-such"), "No such option '--no-such'.", "audit"),
        (("--no-such",), "No such option '--no-such'.", None),
    ],
)
def test_a_wrong_option_is_answered_with_the_help_of_its_command(
    invoke: Invoke, words: tuple[str, ...], said: str, helps: str | None
) -> None:
    """The command that judges data sets is hidden, so the error names its group's help."""
    done = invoke(*words)
    named = "signet-conformance" if helps is None else f"signet-conformance {helps}"
    assert (done.exit_code, done.stderr) == (2, f"error: {said}\ntry: {named} --help\n")


def test_a_failure_of_the_kit_is_one_line_and_exits_4(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected exception is reported in one line, with the way to its traceback."""

    def crash(*_: object) -> None:
        raise RuntimeError("no \x1b[31m luck")

    monkeypatch.delenv("SIGNET_CONFORMANCE_TRACEBACK", raising=False)
    monkeypatch.setattr("signet_conformance.outcome.conclusion.judge", crash)
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING))
    assert done.exit_code == 4
    assert "error: the kit failed: RuntimeError: no \\x1b[31m luck; please report it" in done.stderr
    assert "SIGNET_CONFORMANCE_TRACEBACK=1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [("targets",), ("run", "reference")])
def test_a_folder_that_was_deleted_is_no_failure_of_the_kit(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """A shell may still be in it."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = invoke(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "error: the current folder no longer exists\ntry: change to one that does, such as: cd ~\n"


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("init", ""), "[FOLDER]..."),
        (("record", "--out", "", "--", "true"), "--out"),
        (("record", "--target", "", "--", "true"), "--target"),
        (("daemon", "--workspace", ""), "--workspace"),
        (("compare", "", "new"), "OLD"),
        (("compare", "old", ""), "NEW"),
    ],
)
def test_an_empty_name_is_not_the_current_folder(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...], where: str
) -> None:
    """A shell leaves one for an unset variable; nothing may be written because of it."""
    done = invoke(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"error: {where}: is empty\ntry: give it a value, or leave it out\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_too_few_open_files_are_no_failure_of_the_kit(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Whichever file could not be opened, the remedy is to raise the limit."""

    def starve(*_: object) -> None:
        raise OSError(number, os.strerror(number), "/tmp/signet/default-port.jsonl")

    monkeypatch.delenv("SIGNET_CONFORMANCE_TRACEBACK", raising=False)
    monkeypatch.setattr("signet_conformance.outcome.conclusion.judge", starve)
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: no file can be opened: {os.strerror(number)}\ntry: raise the limit of open")


LONG = "x" * 300


@pytest.mark.parametrize(
    "words",
    [("compare", LONG, LONG), ("matrix", LONG), ("trend", LONG), ("audit", LONG), ("init", LONG)],
    ids=lambda words: words[0],
)
def test_a_path_that_no_machine_takes_is_no_failure_of_the_kit(invoke: Invoke, words: tuple[str, ...]) -> None:
    """The path is named with a remedy, and the run ends as with any unusable input."""
    done = invoke(*words)
    assert done.exit_code == 2
    assert f"{LONG}: cannot be used: File name too long\ntry: check the path and its permissions\n" in done.stderr
    assert "the kit failed" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full, which takes no byte")
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_full_disk_is_no_failure_of_the_kit(tmp_path: Path, unbuffered: str) -> None:
    """If stdout cannot be written, the error has a remedy, whether it shows at once or at the end."""
    trace = write(tmp_path / "a.jsonl", CONFORMING)
    full = Path("/dev/full")
    words = [sys.executable, "-m", "signet_conformance.cli", "check", str(trace)]
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with full.open("w") as out:
        done = subprocess.run(
            words, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, check=False, env=environ
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot be written: No space left on device\ntry: make room there")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full, which takes no byte")
@pytest.mark.parametrize(("word", "status"), [("chekc", 2), ("face", 2)], ids=["an error", "a group's help"])
def test_a_message_that_nobody_can_read_leaves_the_exit_status(word: str, status: int) -> None:
    """Python itself would end with 1, which means that a requirement is breached."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "signet_conformance.cli", word],
            stdout=subprocess.DEVNULL, stderr=full, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == status


def test_a_module_that_was_cut_off_is_no_interruption(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python raises EOFError for a compiled module that a full disk cut off; click would take it for Ctrl-D."""

    def crash(*_: object) -> None:
        raise EOFError("marshal data too short")

    monkeypatch.delenv("SIGNET_CONFORMANCE_TRACEBACK", raising=False)
    monkeypatch.setattr("signet_conformance.outcome.conclusion.judge", crash)
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING))
    assert done.exit_code == 4
    assert "error: the kit failed: EOFError: marshal data too short; please report it" in done.stderr


def test_a_traceback_is_shown_on_request(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable set, the exception itself is raised."""

    def crash(*_: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setenv("SIGNET_CONFORMANCE_TRACEBACK", "1")
    monkeypatch.setattr("signet_conformance.outcome.conclusion.judge", crash)
    done = invoke("check", write(tmp_path / "a.jsonl", CONFORMING))
    assert isinstance(done.exception, RuntimeError)


@pytest.mark.parametrize("words", [(), ("contract",)], ids=["none", "contract"])
def test_a_missing_command_is_answered_with_the_commands(process: Process, words: tuple[str, ...]) -> None:
    """The usage is printed on stderr as in --help, and the status is that of wrong usage."""
    done = process(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: signet-conformance")
    assert "error:" not in done.stderr
