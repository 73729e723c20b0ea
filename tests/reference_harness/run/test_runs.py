"""Runs: one that was killed goes on from its last checkpoint, and one that is over refuses."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.errors import ConfigError
from signet_reference_harness.messages import Thinking, ToolCall
from signet_reference_harness.providers import CompletionResult, StopReason, Usage
from signet_reference_harness.run.run_journal import (
    LEASE_S,
    UNKNOWN,
    LeaseLostError,
    RunJournal,
    RunRecord,
    read_run,
)
from signet_reference_harness.run.session_file import read_session
from signet_reference_harness.tools import ToolResult
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.recording_daemon import END, RECALL, START, Answer, RecordingDaemon

from .conftest import Do
from .killed import DEPLOYED, PAUSE_VARIABLE, REPLY, STEPS, started
from .test_task import model

WRITES = {
    1: "the run's first line",
    2: "the session's first line",
    3: "the mark that the session is open",
    5: "an answer of the model",
    6: "that a tool is about to run",
    7: "what the tool brought",
    13: "the last answer",
    20: "what the turn came to, in the session",
    21: "what the run came to",
}
"""Writes to files in a run of two tool calls, in which it is killed."""
RECORDED = RunRecord(
    run="r1", session="s1", agent="atlas", project="/workspace/acme", prompt="Hello.", sessions="/s", turns=0
)
NO_PROMPT = (
    b'{"kind":"header","format":"signet-run/2","run":"r1","session":"s1","agent":"a","project":"/p","prompt":5,'
    b'"sessions":"/s","turns":0}\n'
)
"""The first line of a run whose prompt is no text."""
ANSWER = CompletionResult(content="Hi.", usage=Usage(3, 4))


@pytest.mark.parametrize("kill_at", WRITES, ids=WRITES.values())
def test_a_run_that_was_killed_in_a_write_comes_to_the_same_end(
    project: Path, tmp_path: Path, daemon: RecordingDaemon, kill_at: int
) -> None:
    """The line is torn. The next process finishes the run and repeats nothing; the daemon sees each opening's end."""
    run, session = tmp_path / "state" / "runs" / "r1.jsonl", tmp_path / "state" / "sessions" / "s1.jsonl"
    options = {"cwd": project, "prompt": "Deploy.", "run_id": "r1", "session": "s1"}
    assert exit_status(started(options, os.environ, kill_at)) == -signal.SIGKILL
    if not run.exists():
        assert (kill_at, exit_status(started(options, os.environ))) == (1, 0)
        return
    assert exit_status(started({"resume": "r1"}, os.environ)) == 0
    over = read_session(session)
    assert (over.turns, over.runs) == ((("user", "Deploy."), ("assistant", REPLY)), {"r1": "done"})
    results = [message.content for message in over.conversation.messages if message.role == "tool"]
    unknown = [place for place, told in zip(STEPS, results, strict=True) if UNKNOWN in told]
    deployed = (project / DEPLOYED).read_text().splitlines()
    assert sorted(deployed) == sorted(set(deployed))
    assert set(STEPS) - set(deployed) <= set(unknown)
    assert unknown == (["staging"] if kill_at == 7 else [])
    opened = [path for path in daemon.paths() if path in ("session-start", "session-end")]
    assert opened == ["session-start", "session-end"] * (1 if kill_at <= 3 else 2)
    assert read_run(run, "r1").status == "done"
    assert list((tmp_path / "state" / "open-sessions").iterdir()) == []


def exit_status(process: BaseProcess) -> int | None:
    """How the process ended, once it has."""
    process.join()
    return process.exitcode


def test_the_next_run_ends_the_session_that_a_killed_one_left_open(
    do: Do, project: Path, daemon: RecordingDaemon, serve: Serve
) -> None:
    """Nobody resumes: the end goes out before anything is told of another session, with what was said in it."""
    options = {"cwd": project, "prompt": "Deploy.", "session": "s1", "run_id": "r1"}
    assert exit_status(started(options, os.environ, 6)) == -signal.SIGKILL
    done = do(prompt="Hello.", session="s2", **model(serve(turns=[{"content": "Hi."}]).url))
    assert done.status == 0
    hooks = [
        (request.path.rpartition("/")[2], request.body["sessionKey"])
        for request in daemon.requests
        if "/hooks/session" in request.path
    ]
    ends = [("session-end", "s1"), ("session-start", "s2"), ("session-end", "s2")]
    assert hooks == [("session-start", "s1"), *ends]
    assert daemon.bodies(END)[0]["reason"] == "session_shutdown"


def test_an_end_that_the_daemon_did_not_take_is_repeated_by_the_next_run(
    do: Do, daemon: RecordingDaemon, serve: Serve
) -> None:
    """The daemon was ill when the session ended; once it is well, the end goes out."""
    served = serve(turns=[{"content": "Hi."}] * 2)
    daemon.always[END] = Answer({"error": "ill"}, 503)
    do(prompt="Hello.", session="s1", **model(served.url))
    del daemon.always[END]
    before = len(daemon.bodies(END))
    do(prompt="Hello.", session="s2", **model(served.url))
    assert [body["sessionKey"] for body in daemon.bodies(END)[before:]] == ["s1", "s2"]


def test_a_failed_run_is_gone_on_with(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """The provider failed after a tool: the next process asks on from the tool's result, and the turn counts once."""
    call = {"type": "tool_call", "name": "memory_search", "arguments": {"query": "cache"}}
    served = serve(
        turns=[{"content": [call]}, {"content": "Half an ans", "fault": {"kind": "end"}}, {"content": "Hm."}]
    )
    failed = do(prompt="Cache?", run_id="r1", **model(served.url))
    assert (failed.status, failed.told[0][1]) == (
        1,
        "go on from its last checkpoint: signet-harness run --resume r1",
    )
    asked = len(served.requests())
    done = do(resume="r1", cwd=None, **model(served.url))
    assert (done.status, done.out, done.summary["rounds"], done.summary["run"]) == (0, "Hm.\n", 2, "r1")
    assert len(served.requests()) == asked + 1
    assert daemon.paths().count("recall") == len(["research", "the call", "research again"])
    assert read_session(Path(done.summary["session_file"])).turns == (("user", "Cache?"), ("assistant", "Hm."))
    assert [body.get("source") for body in daemon.bodies(START)] == ["startup", "resume"]


def test_a_run_that_is_over_refuses(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """Neither resumed nor begun again: the reason is told, and nothing is asked of daemon or model."""
    served = serve(turns=[{"content": "Hi."}])
    do(prompt="Hello.", run_id="r1", **model(served.url))
    seen = len(daemon.requests), len(served.requests())
    again = do(resume="r1", cwd=None, **model(served.url)), do(prompt="Hello.", run_id="r1", **model(served.url))
    assert [(each.status, each.told[0][0]) for each in again] == [
        (2, "--resume r1: the run is finished"),
        (2, "--run-id r1: the run is finished"),
    ]
    assert (len(daemon.requests), len(served.requests())) == seen


def test_a_cancelled_run_refuses(project: Path, daemon: RecordingDaemon) -> None:
    """Who ended it by a signal wanted it to end."""
    slow = {**os.environ, PAUSE_VARIABLE: "60"}
    process = started({"cwd": project, "prompt": "Deploy.", "run_id": "r1"}, slow)
    # The last request before the model is asked: a daemon under load may hear of one that was cancelled after the end.
    while not daemon.bodies(RECALL):
        process.join(0.01)
    os.kill(process.pid or 0, signal.SIGTERM)
    assert exit_status(process) == 128 + signal.SIGTERM
    assert exit_status(started({"resume": "r1"}, os.environ)) == 2
    assert daemon.paths()[-1] == "session-end"


def test_a_run_whose_session_has_gone_on_refuses(do: Do, serve: Serve) -> None:
    """Its answers belong to a conversation that is not the session's any more."""
    served = serve(turns=[{"error": {"status": 400, "message": "no"}}, {"content": "Hi."}])
    do(prompt="Cache?", run_id="r1", session="s1", **model(served.url))
    do(prompt="Hello.", session="s1", **model(served.url))
    done = do(resume="r1", cwd=None, **model(served.url))
    assert done.status == 2
    assert "its session s1 has changed since the run began: it had 0 turns then, and has 1 now" in done.told[0][0]


def test_a_start_that_fails_frees_the_id(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """No daemon listened: the run has not begun, and the same command works once there is one."""
    served = serve(turns=[{"content": "Hi."}])
    daemon.refuse()
    failed = do(prompt="Hello.", run_id="r1", **model(served.url))
    daemon.listen_again()
    assert (failed.status, do(prompt="Hello.", run_id="r1", **model(served.url)).status) == (2, 0)


@pytest.mark.parametrize(
    ("given", "named"),
    [({"prompt": "Hello."}, "a prompt"), ({"session": "s1"}, "--session"), ({"run_id": "r2"}, "--run-id")],
)
def test_a_resumed_run_keeps_what_it_was_begun_with(do: Do, given: dict[str, Any], named: str) -> None:
    """What only a new run can be given is refused by its name."""
    done = do(resume="r1", cwd=None, **given)
    assert (done.status, done.told[0][0]) == (2, f"--resume r1: the run has its own: {named}")


def test_a_run_that_does_not_exist_is_2(do: Do, tmp_path: Path) -> None:
    """The file that is missed is named."""
    done = do(resume="r1", cwd=None)
    assert done.status == 2
    assert str(tmp_path / "state" / "runs" / "r1.jsonl") in done.told[0][0]


def journal(folder: Path) -> RunJournal:
    """A new run."""
    return RunJournal.begin(folder, RECORDED)


def test_two_processes_never_hold_one_run(tmp_path: Path) -> None:
    """While its lease lasts it is neither resumed nor begun again; then it is."""
    held = journal(tmp_path)
    for attempt in (lambda: RunJournal.resume(tmp_path, "r1"), lambda: journal(tmp_path)):
        with pytest.raises(ConfigError, match=r"works in the run|which is not finished"):
            attempt()
    held.release()
    RunJournal.resume(tmp_path, "r1").release()


def test_a_lease_whose_time_is_out_is_taken_over(tmp_path: Path) -> None:
    """The holder was silent for too long: when it wakes, it can neither write nor begin a tool."""
    held = journal(tmp_path)
    held.note_answer(ANSWER)
    silent = time.time() - LEASE_S - 1
    os.utime(tmp_path / "r1.jsonl", (silent, silent))
    taken = RunJournal.resume(tmp_path, "r1")
    assert (taken.seized, held.is_held, taken.is_held) == (True, False, True)
    with pytest.raises(LeaseLostError, match="run r1: another process has taken it over"):
        held.note_call("deploy")
    taken.note_call("deploy")
    held.release()
    taken.release()
    assert [result.error for result in read_run(tmp_path / "r1.jsonl", "r1").results] == [UNKNOWN]


def test_what_is_kept_comes_back_as_it_was(tmp_path: Path) -> None:
    """Answers, results and the status; an answer with which the run fails is not kept, and is asked for again."""
    held = journal(tmp_path)
    calling = CompletionResult(
        content="Let me see.",
        tool_calls=(ToolCall("c1", "memory_search", {"query": "cache"}),),
        thinking=(Thinking("hm", "anthropic", {"signature": "s"}),),
        stop_reason=StopReason.TOOL_USE,
        usage=Usage(3, 4),
    )
    result = ToolResult("memory_search", ok=True, content={"results": []})
    held.note_answer(calling)
    held.note_call("memory_search")
    held.note_result(result)
    held.note_answer(CompletionResult(content="Half an ans", stop_reason=StopReason.MALFORMED))
    held.note_outcome("failed")
    held.release()
    read = read_run(tmp_path / "r1.jsonl", "r1")
    assert (read.answers, read.results, read.status) == ([calling], [result], "failed")


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_torn_last_line_costs_that_line_alone(tmp_path: Path, cut: int) -> None:
    """The process was killed while it wrote: what was kept before is there."""
    held = journal(tmp_path)
    held.note_answer(ANSWER)
    held.note_answer(CompletionResult(content="Lost."))
    held.release()
    path = tmp_path / "r1.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    RunJournal.resume(tmp_path, "r1").release()
    assert read_run(path, "r1").answers == [ANSWER]


@pytest.mark.parametrize(
    "line",
    ['{"kind":"outcome","status":[]}', '{"kind":"outcome","status":"x"}', '{"kind":"holder","pid":1e999,"host":""}'],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    """A value of the wrong type is told with its line, which follows those of the header and the holder."""
    journal(tmp_path).release()
    with (tmp_path / "r1.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(ConfigError, match=r"r1\.jsonl:3: is not a line"):
        RunJournal.resume(tmp_path, "r1")


def test_a_lock_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    """No run begins in a folder whose lock is something else."""
    (tmp_path / ".lock").mkdir()
    with pytest.raises(ConfigError, match=r"\.lock: the run cannot be kept"):
        journal(tmp_path)


def test_other_runs_are_listed_though_one_vanishes(tmp_path: Path) -> None:
    """The error lists the other runs, whatever becomes of their files meanwhile."""
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="name one of gone"):
        read_run(tmp_path / "r1.jsonl", "r1")


@pytest.mark.parametrize("damage", [b"", b"[]\n", b'{"kind":"header","format":"signet-run/2"}\n', b"\xff\n", NO_PROMPT])
def test_another_file_is_refused_by_name(tmp_path: Path, damage: bytes) -> None:
    """What is not the file of a run says so, with the file."""
    (tmp_path / "r1.jsonl").write_bytes(damage)
    with pytest.raises(ConfigError, match=r"r1\.jsonl"):
        RunJournal.resume(tmp_path, "r1")


@pytest.mark.parametrize("run", ["../up", "a/b", "", ".hidden", "x" * 129])
def test_an_id_that_cannot_name_a_file_is_refused(tmp_path: Path, run: str) -> None:
    """No run stands outside its folder."""
    with pytest.raises(ConfigError, match="cannot name a file"):
        RunJournal.resume(tmp_path, run)
