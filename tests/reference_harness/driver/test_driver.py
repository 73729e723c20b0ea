"""The driver protocol, spoken with the real process."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.reference_harness.recording_daemon import END, PROMPT, START, Answer, RecordingDaemon
from tests.reference_harness.sessions import PROJECT
from tests.support import warm

HARNESS = [sys.executable, "-m", "signet_reference_harness"]
SPACIOUS = {
    "SIGNET_HEALTH_TIMEOUT": "20000",
    "SIGNET_SESSION_START_TIMEOUT": "20000",
    "SIGNET_PROMPT_SUBMIT_TIMEOUT": "20000",
}
START_STEP = {"step": "start", "session": "s1", "agent": "atlas-agent", "project": PROJECT, "key": "key-s1"}


class Peer:
    """A harness process and its two pipes."""

    def __init__(self, origin: str, **environ: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SIGNET_")}
        self.process = warm.begin(HARNESS, {**inherited, "SIGNET_DAEMON_URL": origin, **SPACIOUS, **environ})
        self.asked = 0

    def send(self, line: str) -> None:
        """Write one line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next answer."""
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def ask(self, op: str, **more: Any) -> dict[str, Any]:
        """One request and its answer."""
        self.asked += 1
        self.send(json.dumps({"id": self.asked, "op": op, **more}))
        answer = self.read()
        assert answer["id"] == self.asked
        return answer

    def step(self, **step: Any) -> dict[str, Any]:
        """The result of a step that is expected to be performed."""
        answer = self.ask("step", step=step)
        assert answer["ok"], answer
        result: dict[str, Any] = answer["result"]
        return result

    def leave(self) -> tuple[int, str]:
        """Close the input; exit status and standard error."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        return self.process.wait(30), self.process.stderr.read().decode()

    def end(self) -> None:
        """End it, whatever state it is in."""
        self.process.kill()
        warm.end(self.process, 30)


@pytest.fixture
def peer(daemon: RecordingDaemon) -> Iterator[Callable[..., Peer]]:
    """Starts harness processes on the recording daemon, and leaves none behind."""
    started: list[Peer] = []

    def begin(**environ: str) -> Peer:
        started.append(Peer(daemon.origin, **environ))
        return started[-1]

    yield begin
    for driver in started:
        driver.end()


Begin = Callable[..., Peer]


@pytest.fixture(scope="module")
def serving() -> Iterator[Peer]:
    """One harness process for all lines that cannot be performed: after each of them it has to go on."""
    harness = Peer("http://127.0.0.1:1")
    try:
        yield harness
        assert harness.leave() == (0, "")
    finally:
        harness.end()


def test_host_that_was_killed_goes_on_with_its_session(daemon: RecordingDaemon, peer: Begin) -> None:
    """In the same process the session is taken up again; in another one it is started as the step tells."""
    harness, other = peer(), peer()
    key = harness.step(**START_STEP)["key"]
    again = harness.step(step="restart_host", session="s1")
    assert (again["opened"], again["key"]) == (True, key)
    anew = harness.step(step="restart_host", session="s1", anew=True)
    assert anew["key"] != key
    elsewhere = other.step(**{**START_STEP, "step": "restart_host", "key": "native-7"})
    assert (elsewhere["opened"], elsewhere["key"]) == (True, "native-7")
    for each in (harness, other):
        assert each.leave() == (0, "")
    assert [body["source"] for body in daemon.bodies(START)] == ["startup", "resume", "resume", "resume"]


def test_whole_scenario_is_performed(daemon: RecordingDaemon, peer: Begin) -> None:
    """Every step of the vocabulary reaches the daemon, in order, and its result tells of it."""
    harness = peer()
    assert harness.ask("hello")["result"]["protocol"] == "signet-driver/1"
    assert harness.step(**START_STEP)["opened"] is True
    turn = harness.step(step="prompt", session="s1", text="hello", reply="hi")
    assert (turn["turn"], turn["reply"], turn["injected"], turn["failures"]) == (True, "hi", False, [])
    assert harness.step(step="tool", session="s1", tool="memory_search", arguments={"query": "x"})["done"] is True
    assert harness.step(step="compact", session="s1", summary="sum")["completed"] is True
    harness.step(step="pre_compaction", session="s1")
    harness.step(step="compaction_complete", session="s1", summary="sum")
    harness.step(step="clear", session="s1")
    harness.step(step="checkpoint", session="s1")
    assert harness.step(step="end", session="s1")["ended"] is True
    assert harness.step(step="resume", session="s1")["opened"] is True
    assert harness.ask("flush")["ok"]
    assert harness.ask("exit")["ok"]
    assert harness.leave() == (0, "")
    assert daemon.paths() == [
        "session-start",
        "user-prompt-submit",
        "recall",
        "pre-compaction",
        "compaction-complete",
        "pre-compaction",
        "compaction-complete",
        "session-end",
        "session-start",
        "session-checkpoint-extract",
        "session-end",
        "session-start",
        "session-end",
    ]


def test_prompt_tells_injection_failures_and_tools(daemon: RecordingDaemon, peer: Begin) -> None:
    """A prompt's result tells what was injected, which calls failed, and that the turn took place."""
    daemon.always[START] = Answer({"inject": "context", "memories": []})
    daemon.always[PROMPT] = Answer({"error": "boom\x1b[31m"}, 500)
    harness = peer()
    harness.step(**START_STEP)
    tools = [{"tool": "memory_search", "arguments": {"query": "x"}}]
    result = harness.step(step="prompt", session="s1", text="hello", tools=tools)
    assert (result["turn"], result["injected"], result["tools"][0]["done"]) == (True, True, True)
    assert result["failures"] == [
        {"operation": "user-prompt-submit", "class": "http", "status": 500, "detail": "status 500 boom?[31m"}
    ]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("{", "StepError"),
        ("[1]", "StepError"),
        ("\xff", "StepError"),
        ("[" * 50_000, "StepError"),
        ('{"op": "dance"}', "StepError"),
        ('{"op": ["step"]}', "StepError"),
        ('{"op": "step"}', "StepError"),
        ('{"op": "step", "step": {"step": "fly", "session": "s1"}}', "StepError"),
        ('{"op": "step", "step": {"step": ["x"], "session": "s1"}}', "StepError"),
        ('{"op": "step", "step": {"step": "prompt", "session": "nobody", "text": "x"}}', "StepError"),
        ('{"op": "step", "step": {"step": "start", "session": 5}}', "StepError"),
        ('{"op": "step", "step": {"step": "start", "session": "s1"}}', "StepError"),
        ('{"op": "step", "step": {"step": "start", "session": "s1", "project": "/w", "source": "x"}}', "StepError"),
        ('{"op": "step", "step": {"step": "start", "session": "s1", "project": "/w", "source": []}}', "StepError"),
        ('{"op": "step", "step": {"step": "start", "session": "s1", "project": "w"}}', "IdentityError"),
    ],
)
def test_bad_line_is_answered_and_the_next_one_served(serving: Peer, line: str, error: str) -> None:
    """A line that cannot be performed gets one clear error, and the process goes on."""
    serving.send(line)
    answer = serving.read()
    assert (answer["ok"], answer["error"]["type"]) == (False, error)
    assert "Traceback" not in answer["error"]["message"]
    assert serving.ask("hello")["ok"]


def test_a_start_that_is_refused_leaves_no_session(peer: Begin) -> None:
    """What is wrong with a step is told before its session is made: the next start may name another project."""
    harness = peer()
    refused = harness.ask("step", step={**START_STEP, "project": "/elsewhere", "source": "x"})
    assert refused["error"]["type"] == "StepError"
    assert harness.step(**START_STEP)["opened"] is True


def test_step_of_a_closed_session_is_refused(peer: Begin) -> None:
    """A session has to be open for all but start and resume."""
    harness = peer()
    harness.step(**START_STEP)
    harness.step(step="end", session="s1")
    answer = harness.ask("step", step={"step": "prompt", "session": "s1", "text": "x"})
    assert "not open" in answer["error"]["message"]


def test_steps_of_one_session_keep_their_order(daemon: RecordingDaemon, peer: Begin) -> None:
    """Lines sent ahead of their answers are performed in order within a session."""
    harness = peer()
    texts = [f"prompt {number}" for number in range(5)]
    steps = [START_STEP, *({"step": "prompt", "session": "s1", "text": text} for text in texts)]
    for number, step in enumerate(steps):
        harness.send(json.dumps({"id": number, "op": "step", "step": step}))
    harness.send(json.dumps({"id": "f", "op": "flush"}))
    assert [harness.read()["id"] for _ in range(len(steps) + 1)] == [*range(len(steps)), "f"]
    assert [body["userMessage"] for body in daemon.bodies(PROMPT)] == texts


@pytest.mark.parametrize("following", ["flush", "start"])
def test_refused_end_is_sent_before_whatever_comes_next(daemon: RecordingDaemon, peer: Begin, following: str) -> None:
    """An end that found no listener is sent at the next step of any session, and before a flush is answered."""
    harness = peer()
    harness.step(**START_STEP)
    daemon.refuse()
    assert harness.step(step="end", session="s1")["ended"] is False
    daemon.listen_again()
    if following == "flush":
        assert harness.ask("flush")["ok"]
    else:
        harness.step(**{**START_STEP, "session": "s2", "key": "key-s2"})
    assert daemon.paths()[:3] == ["session-start", "session-end", "session-start"][: len(daemon.paths())]
    assert [body["sessionKey"] for body in daemon.bodies(END)] == ["key-s1"]


@pytest.mark.parametrize("goodbye", ["end of input", "termination"])
def test_open_sessions_are_ended_at_the_end(daemon: RecordingDaemon, peer: Begin, goodbye: str) -> None:
    """When the input ends, or the process is told to, open sessions end and the exit status is 0."""
    harness = peer()
    harness.step(**START_STEP)
    if goodbye == "termination":
        harness.process.send_signal(signal.SIGTERM)
        harness.process.wait(30)
    assert harness.leave() == (0, "")
    assert [body["reason"] for body in daemon.bodies(END)] == ["session_shutdown"]


def test_bypass_performs_turns_without_requests(daemon: RecordingDaemon, peer: Begin) -> None:
    """With the bypass set the turn takes place, and nothing is sent."""
    harness = peer(SIGNET_BYPASS="1")
    harness.step(**START_STEP)
    assert harness.step(step="prompt", session="s1", text="hello", reply="hi")["reply"] == "hi"
    assert harness.leave() == (0, "")
    assert daemon.requests == []


def test_unusable_environment_ends_with_status_2(peer: Begin) -> None:
    """A wrong variable is named on standard error, without a traceback."""
    status, errors = peer(SIGNET_PROMPT_SUBMIT_TIMEOUT="soon").leave()
    assert status == 2
    assert "SIGNET_PROMPT_SUBMIT_TIMEOUT" in errors
    assert "Traceback" not in errors
