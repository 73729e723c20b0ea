"""`signet-conformance show`: the timeline, its filters, and following a growing recording."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance.trace import read
from tests.support.command_line import Invoke, Process
from tests.support.trace_files import BREACHING, end, health, recall, start, write


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A session whose recalls run as another agent."""
    mark = {"kind": "mark", "t": 0.5, "name": "step", "data": {"step": "start"}}
    return write(tmp_path / "run.jsonl", [*BREACHING, mark])


def numbers(output: str) -> list[int]:
    """The numbers of the exchanges in the output."""
    words = [word for line in output.splitlines() for word in line.split() if word.startswith("#")]
    return [int(word[1:]) for word in words]


def test_every_exchange_and_mark_is_shown_with_its_times(invoke: Invoke, run: Path) -> None:
    """Each line has time, duration, caller, request and answer."""
    output = invoke("show", run).output
    assert numbers(output) == [1, 2, 3, 4, 5, 6]
    assert "   +2.000s     10 ms  #2 POST /api/hooks/session-start key=s-41c7" in output
    assert "#6 step: start" in output


def test_findings_stand_beside_their_exchange(invoke: Invoke, run: Path) -> None:
    """A breach is shown below its first exchange; the command that explains its requirement is named once."""
    lines = invoke("show", run).output.splitlines()
    at = next(index for index, line in enumerate(lines) if "#3 POST" in line)
    assert any("FAIL SIG-AGENT-002" in line for line in lines[at : at + 8])
    assert sum(line.endswith("signet-conformance explain SIG-AGENT-002") for line in lines) == 1


def test_the_worst_finding_of_an_exchange_comes_first(invoke: Invoke, tmp_path: Path) -> None:
    """The first line below an exchange is the most serious one."""
    unhealthy = write(tmp_path / "a.jsonl", [recall(agentId="another"), *BREACHING])
    lines = invoke("show", unhealthy, "--exchange", "1").output.splitlines()
    verdicts = [line.split()[0] for line in lines if line.lstrip().startswith(("FAIL SIG", "WARN SIG"))]
    assert (set(verdicts), verdicts) == ({"FAIL", "WARN"}, sorted(verdicts))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--session", "s-41*"], [2, 3, 4, 5]),
        (["--session", "-"], [1]),
        (["--agent", "atlas-agent"], [2, 5]),
        (["--operation", "session-*"], [2, 5]),
        (["--operation", "/health"], [1]),
        (["--requirement", "SIG-AGENT-002"], [3, 4]),
        (["--exchange", "3", "--exchange", "5"], [3, 5]),
        (["--session", "nobody"], []),
    ],
)
def test_filters(invoke: Invoke, run: Path, words: list[str], shown: list[int]) -> None:
    """Key, agent, operation, requirement and number each select exchanges, and no marks."""
    assert numbers(invoke("show", run, *words).output) == shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--session", "nobody"], "--session is one of -, s-41c7"),
        (["--agent", "nobody"], "--agent is one of default, atlas-agent"),
        (["--operation", "nothing"], "--operation is one of health, session-start, memory-recall, session-end"),
        (["--requirement", "SIG-CMP-001"], "--requirement: none of these exchanges has a finding about it"),
    ],
)
def test_a_filter_that_matches_nothing_says_so(invoke: Invoke, run: Path, words: list[str], said: str) -> None:
    """The output says that nothing matches, and which names the recording has."""
    output = invoke("show", run, *words).output
    assert "no exchange is shown" in output
    assert said in output


def test_an_empty_recording_says_so(invoke: Invoke, run: Path, tmp_path: Path) -> None:
    """The line about an empty recording is shown for it, and for no other."""
    assert "the recording holds no exchange" in invoke("show", write(tmp_path / "empty.jsonl", [])).output
    assert "no exchange" not in invoke("show", run).output


def test_bodies_are_shown_on_demand(invoke: Invoke, run: Path) -> None:
    """Headers and bodies are shown only with --bodies and for a single exchange."""
    assert '"query": "window"' not in invoke("show", run).output
    assert '"query": "window"' in invoke("show", run, "--bodies").output
    assert '"query": "window"' in invoke("show", run, "--exchange", 3).output


@pytest.mark.parametrize(
    "words",
    [["--exchange", "99"], ["--requirement", "SIG-NO-001"], ["--until-idle", "3"], ["--follow", "--until-idle", "0"]],
)
def test_wrong_usage_exits_2(process: Process, run: Path, words: list[str]) -> None:
    """An invalid number, requirement or time is refused with a remedy."""
    result = process("show", run, *words)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert "\ntry: " in result.stderr


def test_an_unknown_number_is_answered_with_the_nearest(invoke: Invoke, run: Path) -> None:
    """Marks have numbers too, so the nearest exchanges are named instead of a range."""
    last = [str(call.seq) for call in read(run).exchanges][-4:]
    said = invoke("show", run, "--exchange", 99).stderr
    assert said == f"error: --exchange: #99 is no exchange\ntry: one of {', '.join(last)}\n"


def test_a_narrow_window_is_enough(process: Process, run: Path) -> None:
    """At 40 columns only commands are wider."""
    lines = process("show", run, COLUMNS="40").stdout.splitlines()
    assert [line for line in lines if len(line) > 40 and "signet-conformance explain" not in line] == []


def test_hostile_text_reaches_no_terminal(process: Process, tmp_path: Path) -> None:
    """Escapes and bidirectional marks are escaped, in bodies too, and huge texts are cut."""
    evil = "\x1b]0;owned\x07\u202e" + "x" * 1_000_000
    path = write(tmp_path / "evil.jsonl", [health(), start(project=evil), recall(query=evil, sessionKey=evil), end()])
    result = process("show", path, "--bodies")
    assert result.returncode == 0
    assert not set("\x1b\x07\u202e") & set(result.stdout)
    assert len(result.stdout) < 60_000


def test_following_shows_what_comes_and_ends_when_idle(process: Process, run: Path) -> None:
    """A recording that no longer grows is shown once, and the command ends."""
    result = process("show", run, "--follow", "--until-idle", "0.3")
    assert result.returncode == 0
    assert numbers(result.stdout) == [1, 2, 3, 4, 5, 6]


def test_following_shows_an_exchange_that_ended_late(run: Path) -> None:
    """An exchange whose line comes after higher numbers is shown once; Ctrl-C ends the command with 0."""
    late = {**json.loads(run.read_text().splitlines()[1]), "seq": 0}
    words = [sys.executable, "-m", "signet_conformance.cli", "show", str(run), "--follow"]
    environment = {**os.environ, "COLUMNS": "100"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True) as child:
        assert child.stdout is not None
        seen = ""
        while "#6 step: start" not in seen:
            seen += child.stdout.readline()
        with run.open("a") as stream:
            stream.write(json.dumps(late) + "\n")
        while "#0 GET" not in seen:
            seen += child.stdout.readline()
        child.send_signal(signal.SIGINT)
        rest = child.stdout.read()
        assert child.wait(30) == 0
    assert numbers(seen) == [1, 2, 3, 4, 5, 6, 0]
    assert rest.startswith("findings: signet-conformance show ")
