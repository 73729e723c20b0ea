"""What a recording says is never a command to the CI system that reads what the kit prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance.errors import printable, printable_json
from tests.attacks.test_any_output import COMMAND, OF_REPORTS, READING
from tests.support.command_line import Invoke
from tests.support.trace_files import HEADER, end, health, post, recall, start, write


@pytest.mark.parametrize(
    "text",
    [
        *("::set-output name=x::y", "  ::add-mask::x", "::stop-commands::t", "::ERROR file=a::b", "::group::x"),
        *("##[command]x", "##[error]x", "##vso[task.setvariable variable=a]b", "##teamcity[x]", "a##[group]b"),
    ],
)
def test_a_command_of_a_ci_system_is_escaped(text: str) -> None:
    """Wherever it stands, for a line may be broken before it."""
    shown = printable(text)
    assert "::set" not in shown
    assert all(mark not in shown for mark in ("::add", "::stop", "::ERROR", "::group", "##[", "##vso[", "##teamcity["))


@pytest.mark.parametrize("text", ["std::vector", "a::b", "[::1]:3850", "## Heading", "# [x]", "http://[::1]/x"])
def test_other_colons_and_number_signs_stay(text: str) -> None:
    """They mean nothing to anybody."""
    assert printable(text) == text


COMMANDS = "::set-output name=x::y\n::error file=a::b\n  ::add-mask::x\n##[group]x\n##vso[task.x]y\n##teamcity[x]"


def test_no_line_of_any_output_is_a_command(invoke: Invoke, tmp_path: Path) -> None:
    """Whatever reads a recording and prints of it, as text and as JSON."""
    bad = {"harness": COMMANDS, "sessionKey": COMMANDS, "agentId": COMMANDS, COMMANDS: COMMANDS}
    lines = [health(), start(**bad), post(f"/{COMMANDS}", bad, answer=bad), recall(**bad), end(**bad)]
    lines.append({"kind": "mark", "t": 9.0, "name": COMMANDS, "data": {COMMANDS: COMMANDS}})
    write(tmp_path / "a.jsonl", lines, {**HEADER, "target": COMMANDS, "daemon_version": COMMANDS})
    write(tmp_path / "b.jsonl", lines[:3], {**HEADER, "declared": {"agents": [COMMANDS], "harness": COMMANDS}})
    for words in (*READING.values(), *OF_REPORTS.values()):
        done = invoke(*words)
        assert done.exit_code in (0, 1), (words, done.output)
        assert not (obeyed := COMMAND.search(done.output)), (words, obeyed)


def test_json_means_the_same() -> None:
    """Escapes stand for what they replace."""
    assert printable_json('{"a": "##[x] ### \x7f"}') == r'{"a": "\u0023#[x] \u0023## \u007f"}'
