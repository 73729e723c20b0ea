"""A hook's process: what it is given, what counts of what it says, and that nothing of it outlives its timeout."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from signet_conformance.drivers.hosts.hook_process import blocks, run_hook
from signet_conformance.drivers.hosts.hook_settings import Hook, missing_hooks, oddities_of, read_hook_file

TOLD = {"hook_event_name": "SessionStart", "session_id": "s-1"}
FACE = {"harness": "h", "version": "1", "timeout_unit_s": 1, "default_timeout_s": 60, "events": {"SessionStart": []}}


def test_hook_reads_the_harness_s_json(tmp_path: Path) -> None:
    """The JSON comes on stdin, the folder is the project's, and plain text reaches the model."""
    run = run_hook(Hook("cat; echo; pwd", 30.0), TOLD, dict(os.environ), tmp_path)
    assert run.status == 0
    assert run.context.splitlines() == ['{"hook_event_name": "SessionStart", "session_id": "s-1"}', str(tmp_path)]


@pytest.mark.parametrize(
    ("said", "context"),
    [
        ('{"hookSpecificOutput": {"additionalContext": "remember"}}', "remember"),
        ('{"continue": true}', ""),
        ("plain words", "plain words"),
    ],
)
def test_context_of_an_output(said: str, context: str, tmp_path: Path) -> None:
    """JSON reaches the model by its additional context only."""
    assert run_hook(Hook(f"echo '{said}'", 30.0), TOLD, dict(os.environ), tmp_path).context == context


@pytest.mark.parametrize("timeout_s", [3_600_000.0, sys.float_info.max])
def test_a_timeout_may_be_longer_than_the_system_can_wait_for(timeout_s: float, tmp_path: Path) -> None:
    """A connector that counts in milliseconds gives a harness that counts in seconds such timeouts."""
    assert run_hook(Hook("exit 3", timeout_s), TOLD, dict(os.environ), tmp_path).status == 3


def test_a_timeout_below_zero_is_over_at_once(tmp_path: Path) -> None:
    """The hook is killed, and not waited for."""
    assert run_hook(Hook("sleep 60", -1.0), TOLD, dict(os.environ), tmp_path).status is None


def test_failed_hook_says_nothing_to_the_model(tmp_path: Path) -> None:
    """What a hook with another status than 0 prints is kept, but no context."""
    run = run_hook(Hook("echo partly; exit 3", 30.0), TOLD, dict(os.environ), tmp_path)
    assert (run.status, run.stdout, run.context) == (3, "partly\n", "")


SPIN = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
while time.process_time() < float(sys.argv[1]):
    pass
"""


@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="the system does not say who queues for a processor"
)
def test_hook_that_shares_a_processor_is_late(tmp_path: Path) -> None:
    """A machine that lets a hook wait for its turn is what made it slow; the timer beside it sleeps, and is on time."""
    other = subprocess.Popen([sys.executable, "-c", SPIN, "60"])
    try:
        script = tmp_path / "spin.py"
        script.write_text(SPIN)
        run = run_hook(Hook(f"{sys.executable} {script} 0.3; true", 60.0), TOLD, dict(os.environ), tmp_path)
    finally:
        other.kill()
        other.wait()
    assert 100 < run.late_ms <= run.ms - 200


SAYS_NO = '{"decision": "block", "reason": "no"}'
DENIES = '{"hookSpecificOutput": {"permissionDecision": "deny"}}'
ALL = ("status", "decision", "continue", "permission")


@pytest.mark.parametrize(
    ("command", "ways", "needs_reason", "blocked"),
    [
        ("echo why >&2; exit 2", ALL, True, True),
        ("exit 2", ALL, False, True),
        ("exit 2", ALL, True, False),
        ("echo why >&2; exit 2", ("decision",), False, False),
        ("echo why >&2; exit 1", ALL, False, False),
        (f"echo '{SAYS_NO}'", ALL, True, True),
        (f"echo '{SAYS_NO}'", ("status",), True, False),
        (f"echo '{SAYS_NO}'; exit 1", ALL, True, False),
        ('echo \'{"decision": "block"}\'', ALL, True, False),
        ('echo \'{"decision": "block"}\'', ALL, False, True),
        ('echo \'{"decision": "approve"}\'', ALL, False, False),
        ("echo '{\"continue\": false}'", ALL, True, True),
        ("echo '{\"continue\": true}'", ALL, True, False),
        (f"echo '{DENIES}'", ALL, True, True),
        (f"echo '{DENIES}'", ("status", "decision"), True, False),
        ("echo '[2]'", ALL, False, False),
        ("echo words", ALL, False, False),
    ],
)
def test_what_blocks(command: str, ways: Sequence[str], needs_reason: bool, blocked: bool, tmp_path: Path) -> None:
    """A run blocks by what its harness's face names: the status 2, or an object on a run that went well."""
    run = run_hook(Hook(command, 30.0), TOLD, dict(os.environ), tmp_path)
    assert blocks(run, ways, needs_reason=needs_reason) is blocked


def test_hook_that_outruns_its_timeout_blocks_nothing(tmp_path: Path) -> None:
    """A harness goes on without a hook that it has killed."""
    assert not blocks(run_hook(Hook("sleep 60", 0.2), TOLD, dict(os.environ), tmp_path), ALL, needs_reason=False)


def test_timeout_ends_the_whole_group(tmp_path: Path) -> None:
    """A hook that outruns its timeout is killed with what it started in the background."""
    pid_file = tmp_path / "pid"
    run = run_hook(Hook(f"sleep 600 & echo $! > {pid_file}; wait", 2.0), TOLD, dict(os.environ), tmp_path)
    assert run.status is None
    assert run.to_json()["timed_out"] is True
    try:
        descriptor = os.pidfd_open(int(pid_file.read_text()))
    except ProcessLookupError:
        return
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    assert ended.poll(60_000)
    os.close(descriptor)


def test_what_a_hook_leaves_in_the_background_goes_on(tmp_path: Path) -> None:
    """A harness waits for the hook alone: it may leave the rest of its work to a process that it started."""
    go, told, pid = (tmp_path / name for name in ("go", "told", "pid"))
    os.mkfifo(go)
    left = f"{{ read line < {go}; echo $line > {told}; }} > /dev/null 2>&1 & echo $! > {pid}"
    assert run_hook(Hook(left, 60.0), TOLD, dict(os.environ), tmp_path).status == 0
    descriptor = os.pidfd_open(int(pid.read_text()))
    writing = os.open(go, os.O_RDWR)
    os.write(writing, b"the end\n")
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    assert ended.poll(60_000)
    assert told.read_text() == "the end\n"
    os.close(descriptor)
    os.close(writing)


def test_flood_is_cut(tmp_path: Path) -> None:
    """A hook that floods its output ends like any other, and only the first part is kept."""
    run = run_hook(Hook("head -c 20000000 /dev/zero | tr '\\0' x", 60.0), TOLD, dict(os.environ), tmp_path)
    assert run.status == 0
    assert len(run.stdout) < 5_000_000


def test_remarks_on_a_configuration(tmp_path: Path) -> None:
    """Hooks that lack, timeouts in another unit and secrets inside commands are told."""
    path = tmp_path / "settings.json"
    command = "SIGNET_TOKEN='sig_sk_0123456789abcdef' signet hook session-start"
    hook = f'{{"type": "command", "command": "{command}", "timeout": 17000}}'
    path.write_text(f'{{"hooks": {{"SessionStart": [{{"hooks": [{hook}]}}], "Nonesuch": [{{"hooks": [{hook}]}}]}}}}')
    hooks = read_hook_file(path, FACE).hooks
    steps = {"start": [{"event": "SessionStart"}], "end": [{"event": "SessionEnd", "reason": "exit"}]}
    fires = {"steps": steps, "turn_end": [{"event": "Stop"}]}
    unheard = missing_hooks(hooks, ("session-start", "user-prompt-submit", "session-end", "health"), fires)
    assert unheard == ["no hook for SessionEnd or Stop, though session-end is declared"]
    said = oddities_of(hooks, FACE)
    assert "SessionStart: a timeout of 17000 s, since h counts in seconds" in said
    assert "SessionStart: the command holds what looks like a secret" in said


@pytest.mark.parametrize(
    ("matchers", "remark"),
    [
        (["start"], "SessionStart: no hook runs: 'start' matches none of clear, startup"),
        (["start", "begin"], "SessionStart: no hook runs: 'begin', 'start' matches none of clear, startup"),
        (["start", "clear"], None),
        (["start.*"], None),
        ([None], None),
    ],
)
def test_an_event_without_a_hook_that_runs_is_remarked_on(matchers: Sequence[str | None], remark: str | None) -> None:
    """The face says with which sources its sessions start; a hook for none of them never runs."""
    starts = [{"event": "SessionStart", "source": source} for source in ("startup", "clear")]
    face = {**FACE, "matchers": {"SessionStart": "source"}, "steps": {"start": starts}}
    hooks = {"SessionStart": [Hook("signet", 5.0, matcher) for matcher in matchers]}
    assert oddities_of(hooks, face) == ([] if remark is None else [remark])


def test_a_matcher_is_not_remarked_on_where_the_step_says_with_what_it_is_compared() -> None:
    """Which tool is called is known in the step alone."""
    face = {**FACE, "matchers": {"PreToolUse": "tool_name"}, "steps": {"tool": [{"event": "PreToolUse"}]}}
    assert oddities_of({"PreToolUse": [Hook("signet", 5.0, "Edit")]}, face) == []
