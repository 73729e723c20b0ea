"""Facts about the lane's output for a CI runner."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from signet_conformance.errors import UsageError
from signet_conformance.github_action.github import MAX_SUMMARY_BYTES, Annotation, Runner, without_runner


def test_a_hostile_message_is_one_command() -> None:
    """Line ends, escapes and bidirectional marks in a message start no second workflow command."""
    shown = Annotation("error", "FAIL", "a\n::set-output name=x::y\r\x1b[31m\u202eb%0Ac").command()
    assert "\n" not in shown
    assert "\r" not in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.endswith("%250Ac")
    assert shown.startswith("::error title=FAIL::")


def test_a_hostile_file_name_stays_one_member() -> None:
    """Commas and colons in a path end neither the member nor the list of members."""
    shown = Annotation("warning", "WARN", "text", "a,line=9::b.jsonl", 3).command()
    assert shown == "::warning file=a%2Cline=9%3A%3Ab.jsonl,line=3,title=WARN::text"


def test_a_plain_machine_is_told_nothing() -> None:
    """Without the runner's variables, nothing is written, and no workflow command printed."""
    stream = io.StringIO()
    runner = Runner.from_environment({}, stream)
    runner.annotate(Annotation("error", "FAIL", "text"))
    runner.set_output("status", 1)
    runner.add_summary("# text")
    with runner.commands_stopped():
        pass
    assert not stream.getvalue()


@pytest.mark.parametrize(
    ("name", "speak"),
    [
        ("GITHUB_OUTPUT", lambda runner: runner.set_output("status", 0)),
        ("GITHUB_STEP_SUMMARY", lambda runner: runner.add_summary("# text")),
    ],
)
def test_a_runner_s_file_that_cannot_be_written_is_named(
    name: str, speak: Callable[[Runner], None], tmp_path: Path
) -> None:
    """A folder in its place is a usage error with its path."""
    runner = Runner.from_environment({name: str(tmp_path)}, io.StringIO())
    with pytest.raises(UsageError, match="cannot be written") as caught:
        speak(runner)
    assert caught.value.where == str(tmp_path)


def test_outputs_are_added(tmp_path: Path) -> None:
    """The outputs of other steps stay."""
    output = tmp_path / "output"
    output.write_text("before=1\n")
    Runner.from_environment({"GITHUB_OUTPUT": str(output)}, io.StringIO()).set_output("status", 0)
    assert output.read_text() == "before=1\nstatus=0\n"


def test_an_output_is_one_line(tmp_path: Path) -> None:
    """A path behind a symbolic link of the repository sets no second output."""
    output = tmp_path / "output"
    Runner.from_environment({"GITHUB_OUTPUT": str(output)}, io.StringIO()).set_output("report", "a\nverdict=conforming")
    assert len(output.read_text().splitlines()) == 1


def test_what_is_quoted_is_no_command() -> None:
    """Workflow commands are off while it is printed, by a token that cannot be guessed."""
    stream = io.StringIO()
    runner = Runner.from_environment({"GITHUB_ACTIONS": "true"}, stream)
    with runner.commands_stopped():
        print("::error::of a connector", file=stream)
    first, quoted, *_, last = stream.getvalue().splitlines()
    token = first.removeprefix("::stop-commands::")
    assert (quoted, last, len(token)) == ("::error::of a connector", f"::{token}::", 32)


def test_a_summary_is_cut_to_what_github_takes(tmp_path: Path) -> None:
    """A longer one is cut at the end of a line with a note; GitHub would drop all of it."""
    file = tmp_path / "summary"
    runner = Runner.from_environment({"GITHUB_STEP_SUMMARY": str(file)}, io.StringIO())
    runner.add_summary("first\n" + "é" * 100 + "\n")
    runner.add_summary("a line of text é\n" * 100_000)
    whole = file.read_text("utf-8")
    assert len(whole.encode()) <= MAX_SUMMARY_BYTES
    assert whole.endswith("a line of text é\n\nThe summary was cut here; the uploaded report has the rest.\n")


def test_children_cannot_speak_to_the_runner() -> None:
    """Neither the runner's files nor its tokens reach the run."""
    given = {"GITHUB_ENV": "x", "GITHUB_TOKEN": "x", "ACTIONS_RUNTIME_TOKEN": "x", "GITHUB_SHA": "a", "PATH": "/bin"}
    assert without_runner(given) == {"GITHUB_SHA": "a", "PATH": "/bin"}
