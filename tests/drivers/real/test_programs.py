"""The drivers of real programs, each against a small program that speaks as the real one does: what a run comes to."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from signet_conformance import engine, targets, trace
from signet_conformance.children import forks
from signet_conformance.drivers.hosts.observing import FOLDER, Observations
from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real import json_rpc
from signet_conformance.drivers.hosts.real.conversation import Launch, Open, ProgramConversation
from signet_conformance.drivers.hosts.real.json_lines import ClaudeStream, PiRpc
from signet_conformance.drivers.hosts.real.json_rpc import AcpSession, CodexAppServer, HermesAcp
from signet_conformance.drivers.hosts.real.opencode_server import OpencodeServer
from signet_conformance.drivers.watched_driver import WatchedDriver
from signet_conformance.finding import Verdict
from signet_conformance.running.recorded_daemon import RecordedDaemon
from signet_conformance.scenarios.scenario import read_scenarios
from signet_conformance.targets.program import PLACE_VARIABLE, find_program_profile
from signet_conformance.targets.real import HarnessChoice, with_harness
from signet_conformance.trace import Exchange, Trace
from signet_conformance.trace.marks import LoadedMark, SkippedMark, StepMark, marks_of
from tests.support.processes import Watched as WatchedProcesses, descendants, wait_until
from tests.support.stand_ins import PROGRAMS, STAND_IN, install_stand_in, write_target

pytestmark = pytest.mark.waits

REFUSING = ("codex", "pi")
"""Those that say what they refuse; of the others only their no request at the daemon tells."""
WORDS = "this file has an unknown member: statusLine"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH")

Run = Callable[..., tuple[Trace, str | None]]


def say(*texts: str, **start: Any) -> list[dict[str, Any]]:
    """A session in which the user types these texts; `/compact` and `/clear` are steps of their own."""
    steps: list[dict[str, Any]] = [
        {"step": "start", "session": "s1", "agent": 0, "project": "/workspace/src/acme", **start}
    ]
    own = {"/compact": {"step": "compact", "summary": "Short."}, "/clear": {"step": "clear"}}
    steps += [{"session": "s1", **own.get(text, {"step": "prompt", "text": text, "reply": "Yes."})} for text in texts]
    return [*steps, {"step": "end", "session": "s1"}]


@pytest.fixture(scope="module")
def recorded_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedDaemon]:
    """A daemon with a recorder and a model, for all programs in turn."""
    home = tmp_path_factory.mktemp("recorded-daemon")
    made = RecordedDaemon(
        targets.load("reference"), "embedded", home, canary="canary-5c1e07", token="sig_sk_" + "51" * 20, model=True
    )
    with forks.server():
        yield made
        made.close()


@pytest.fixture
def blamed() -> list[str]:
    """Who is named as most likely at fault for each scenario that was performed, as if it had broken off."""
    return []


@pytest.fixture
def run(recorded_daemon: RecordedDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blamed: list[str]) -> Run:
    """Has a program perform steps; what was recorded, and why it broke off."""

    def perform(name: str, steps: list[dict[str, Any]], mode: str = "") -> tuple[Trace, str | None]:
        install_stand_in(name, tmp_path / "programs")
        monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path / "programs"))
        write_target(name, tmp_path, mode)
        recorded_daemon.target = with_harness(targets.load(name, tmp_path), HarnessChoice("real"), "--harness")
        shutil.rmtree(recorded_daemon.home, ignore_errors=True)
        out = tmp_path / "run.jsonl"
        (tmp_path / "talk.json").write_text(json.dumps({"name": "talk", "title": "A talk", "steps": steps}))
        (scenario,) = read_scenarios(tmp_path / "talk.json")
        recorded_daemon.start()
        Path(recorded_daemon.home).mkdir(exist_ok=True)
        driver = WatchedDriver(recorded_daemon.launch({}))
        error = recorded_daemon.perform(scenario, driver, out)
        blamed.append(driver.describe(scenario, error or "", recorded_daemon.target, "").fault)
        assert _left() == []
        return trace.read(out), error

    return perform


@needs_node
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_talked_with_to_its_end(name: str, run: Run) -> None:
    """Each step is performed; what the program refuses of the installation, or its silence, is SIG-LOAD-002."""
    refuses = name in REFUSING
    steps = [*say("Which database?", "/compact", "/clear", "And now?"), {"step": "resume", "session": "s1"}]
    steps += [{"step": "prompt", "session": "s1", "text": "Where were we?"}, {"step": "end", "session": "s1"}]
    recorded, error = run(name, steps, "refuses" if refuses else "")
    assert error is None
    assert [mark for mark in recorded.marks if mark.name == "skipped"] == []
    assert [(mark.host, mark.release, mark.real) for mark in marks_of(recorded, LoadedMark)] == [(name, "0.0.1", True)]
    model = trace.read(Path(recorded.path).with_suffix(".model.jsonl"))
    asked = [_asked(exchange) for exchange in model.exchanges]
    summary = "/compact" if name in ("claude-code", "hermes-agent") else "Summarize."
    assert asked == ["Which database?", summary, "And now?", "Where were we?"]
    judgement = engine.judge(recorded).judgements["SIG-LOAD-002"]
    assert judgement.verdict is Verdict.FAIL
    told = " ".join(str(finding.message) for finding in judgement.findings)
    assert (WORDS if refuses else "asked its model") in told


@needs_node
def test_a_session_that_claude_code_keeps_nothing_of_is_not_resumed(run: Run) -> None:
    """Nothing was said in it: the program ends at once, and what was to follow in it is skipped."""
    start = {"step": "start", "session": "s1", "agent": "atlas-agent", "project": "/workspace/atlas"}
    steps = [start, *({"step": kind, "session": "s1"} for kind in ("end", "resume", "end"))]
    recorded, error = run("claude-code", steps)
    assert error is None
    first, then = [mark.reason for mark in marks_of(recorded, SkippedMark)]
    assert "No conversation found" in first
    assert "never opened" in then


@needs_node
def test_a_title_that_hermes_asks_for_is_no_turn(run: Run) -> None:
    """It is answered beside the talk: the words of a turn are an answer to that turn."""
    recorded, error = run("hermes-agent", say("Which database?", "And then?"), "titles")
    assert error is None
    model = trace.read(Path(recorded.path).with_suffix(".model.jsonl"))
    answers = [(_asked(exchange), "Billing" in str(exchange.response)) for exchange in model.exchanges]
    assert answers[:3] == [("Which database?", False), ("User: Which database?", True), ("And then?", False)]


@needs_node
def test_a_session_of_another_agent_has_the_connector_installed_for_it(run: Run) -> None:
    """Hermes reads its agent from what the installer left in the home, over its environment."""
    steps = say("Which database?")
    steps += [
        {**step, "session": "s2", **({"agent": 1} if step["step"] == "start" else {})} for step in say("And now?")
    ]
    recorded, error = run("hermes-agent", steps)
    assert error is None
    model = trace.read(Path(recorded.path).with_suffix(".model.jsonl"))
    bodies = [exchange.request.body.object for exchange in model.exchanges if exchange.request.body is not None]
    assert [body["system"] for body in bodies if body is not None] == ["atlas-agent", "Beacon-Agent"]


@needs_node
@pytest.mark.parametrize(("mode", "called"), [("defers", ["ToolSearch", "mcp__signet__memory_search"]),
                                              ("defers-nothing", ["ToolSearch"]), ("", [])])  # fmt: skip
def test_a_tool_that_is_named_to_the_model_only_is_asked_for_first(mode: str, called: list[str], run: Run) -> None:
    """Claude Code 2.1.332 offers a memory server's tools when the model has looked for them; a lack is no fault."""
    steps = say("Which database?")
    steps.insert(2, {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "refunds"}})
    recorded, error = run("claude-code", steps, mode)
    assert error is None
    reasons = [mark.reason for mark in marks_of(recorded, SkippedMark)]
    assert reasons == ([] if mode == "defers" else ["memory_search is not offered to the model"])
    model = trace.read(Path(recorded.path).with_suffix(".model.jsonl"))
    body = model.exchanges[-1].request.body
    messages = body.object["messages"] if body is not None and body.object is not None else []
    calls = [block["name"] for said in messages if said["role"] == "assistant" for block in said["content"]]
    assert calls == called


@needs_node
def test_a_tool_for_which_a_program_fetches_something_is_not_called(run: Run) -> None:
    """The step is skipped with the reason of the program's profile, and its turn ends."""
    steps = say("Prepare the release.", "And then?")
    steps.insert(2, {"step": "tool", "session": "s1", "tool": "skill", "arguments": {"name": "release-notes"}})
    recorded, error = run("opencode", steps)
    assert error is None
    (skipped,) = marks_of(recorded, SkippedMark)
    assert skipped.reason == f"opencode: {find_program_profile('opencode').profile.cannot_call['skill']}"
    assert [mark.name for mark in recorded.marks if mark.name == "model"] == ["model", "model"]


@needs_node
def test_the_step_of_a_tool_is_marked_before_what_the_program_does_in_it(run: Run) -> None:
    """Nothing tells what the program hands to the tool; what it sends meanwhile belongs to the step all the same."""
    steps = say("Which database?")
    steps.insert(2, {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "refunds"}})
    recorded, _ = run("claude-code", steps, "defers")
    model = trace.read(Path(recorded.path).with_suffix(".model.jsonl"))
    (tool,) = (mark for mark in marks_of(model, StepMark) if mark.step == "tool")
    assert tool.seq < model.exchanges[-1].seq
    assert tool.arguments is None


@needs_node
def test_what_ends_a_compaction_ends_no_turn_after_it(run: Run) -> None:
    """OpenCode tells that a session is idle after it has answered: the turn that follows is one all the same."""
    recorded, error = run("opencode", say("Which database?", "/compact", "And then?"))
    assert error is None
    assert [mark.name for mark in recorded.marks if mark.name == "model"] == ["model", "model"]


@needs_node
def test_a_turn_that_a_plugin_loses_before_it_begins_is_over(run: Run) -> None:
    """OpenCode tells of the error, and never that the session is idle; its model hears of the turns around."""
    recorded, error = run("opencode", say("Which database?", "lose", "And then?"))
    assert error is None
    assert [mark.name for mark in recorded.marks if mark.name == "model"] == ["model", "model"]


@needs_node
def test_no_words_of_a_user_end_what_opencode_tells(run: Run) -> None:
    """It repeats them in its events, with the line separators that JSON leaves as they are: the next turn ends too."""
    recorded, error = run("opencode", say("One line\u2028another\x85a third", "And then?"))
    assert error is None
    assert [mark.name for mark in recorded.marks if mark.name == "model"] == ["model", "model"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("die", "pi has ended (status 7): panic: the index is out of bounds"),
        ("abort", "pi has ended (status -6): Error: nobody awaits it | at told (file://"),
        ("out", "pi tried to leave this machine: a request for http://telemetry.example.org/ through a proxy"),
    ],
)
def test_a_program_that_dies_or_goes_elsewhere_breaks_its_scenario_off(
    text: str, why: str, run: Run, blamed: list[str]
) -> None:
    """The reason is told, in the program's own words with its status; nothing of it is left, and nothing was sent.

    The program is named before its connector, whose author would look in the wrong place.
    """
    _, error = run("pi", say(text))
    assert error is not None
    assert why in error
    assert blamed == ["pi, as its message says, or the way in which the kit drives it; otherwise the connector in it"]


@needs_node
@pytest.mark.parametrize("name", ["pi", "opencode"])
def test_a_program_that_its_connector_ends_is_a_breach(name: str, run: Run) -> None:
    """The turn is lost, and what follows in that session; a session that is resumed goes on, and so does another."""
    steps = [*say("Which database?", "throw", "And then?"), {"step": "resume", "session": "s1"}]
    steps += [{"step": "prompt", "session": "s1", "text": "Where were we?"}, {"step": "end", "session": "s1"}]
    recorded, error = run(name, steps)
    assert error is None
    finding = engine.judge(recorded).judgements["SIG-LOAD-001"].findings[0]
    assert str(finding.message).startswith("step 2: a promise or timer of its own cancelled the user's turn")
    assert str(finding.received).startswith("Error: nobody awaits it at told (file://")
    skipped = [(mark.index, mark.reason) for mark in marks_of(recorded, SkippedMark)]
    assert skipped == [(index, "the program has ended, and session s1 with it") for index in (3, 4)]
    model = trace.read(Path(recorded.path).with_suffix(".model.jsonl"))
    assert [_asked(exchange) for exchange in model.exchanges] == ["Which database?", "Where were we?"]


def test_a_program_that_does_not_begin_over_the_installation_is_a_breach(run: Run) -> None:
    """Its words are the connector's, and no session can be opened."""
    recorded, error = run("opencode", say("Which database?"), "refuses")
    assert error is None
    (finding,) = engine.judge(recorded).judgements["SIG-LOAD-002"].findings
    assert str(finding.received) == f"{WORDS} plugin"
    assert "opencode.json" in str(finding.message)
    assert [mark.index for mark in marks_of(recorded, SkippedMark)] == [0, 1, 2]


def test_a_program_that_does_not_begin_over_what_the_kit_wrote_breaks_off(run: Run) -> None:
    """The connector's author can do nothing about it."""
    _, error = run("opencode", say("Which database?"), "refuses-ours")
    assert error is not None
    assert "OpenCode ended before it listened (status 1): " in error


DRIVERS: dict[str, Open] = {
    "claude-code": ClaudeStream,
    "codex": CodexAppServer,
    "hermes-agent": HermesAcp,
    "opencode": OpencodeServer,
    "pi": PiRpc,
}

BOUNDS = {
    "claude-code": ["json_lines.START_S", "process.QUIT_S"],
    "codex": ["json_rpc.ANSWER_S", "process.QUIT_S"],
    "hermes-agent": ["json_rpc.ANSWER_S", "process.QUIT_S"],
    "opencode": ["opencode_server.START_S"],
    "pi": ["json_lines.START_S", "process.QUIT_S"],
}
"""How long each waits for an answer to its start, and for an end."""


@pytest.mark.parametrize("name", DRIVERS)
def test_a_program_that_hangs_is_given_up(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start without an answer ends after its bound, and the program is ended with the session."""
    for bound in BOUNDS[name]:
        monkeypatch.setattr(f"signet_conformance.drivers.hosts.real.{bound}", 0.2)
    session = _session(name, tmp_path, "hangs")
    with pytest.raises(StepError, match=r"did not (answer|listen|begin)"):
        session.open()
    with pytest.raises(StepError):
        session.end()
    assert _left() == []


@pytest.mark.parametrize("name", DRIVERS)
def test_a_program_that_dies_is_told_with_its_words(name: str, tmp_path: Path) -> None:
    """The turn ends with an error that says how the program ended, and the session can be left."""
    session = _session(name, tmp_path)
    session.open()
    session.say("die")
    with pytest.raises(StepError, match=r"has ended \(status 7\): .*panic: the index is out of bounds"):
        _await_end(session)
    with contextlib.suppress(StepError, httpx.HTTPError):
        session.end()
    assert _left() == []


@needs_node
def test_a_compaction_without_a_summary_is_none(run: Run) -> None:
    """A session may be too short for it: the program says it compacts, and asks its model nothing."""
    recorded, error = run("hermes-agent", say("Which database?", "/compact", "And then?"), "too-short")
    assert error is None
    (skipped,) = marks_of(recorded, SkippedMark)
    assert "asked its model for no summary: it compacted nothing" in str(skipped.reason)


@needs_node
def test_a_compaction_may_be_answered_before_the_summary_is_asked_for(run: Run) -> None:
    """What the model is asked then, once or several times, is not taken for the turn after it."""
    recorded, error = run("hermes-agent", say("Which database?", "/compact", "And then?"), "answers-first")
    assert error is None
    assert [mark.reason for mark in marks_of(recorded, SkippedMark)] == []
    model = trace.read(Path(recorded.path).with_suffix(".model.jsonl"))
    answered = [(_asked(exchange), "Short." in str(exchange.response)) for exchange in model.exchanges]
    summaries = [("/compact", True), ("Summarize the rest.", True)]
    assert answered == [("Which database?", False), *summaries, ("And then?", False)]


def test_a_turn_of_hermes_ends_when_its_provider_has_come_to_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is out before: what the daemon is brought to next would meet the provider's requests, or not."""
    session = _session("hermes-agent", tmp_path)
    assert isinstance(session, HermesAcp)
    session.open()
    lock = os.open(tmp_path / FOLDER / "busy", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_SH)
    session.say("silent")
    wait_until(lambda: AcpSession.is_over(session), "its answer is out")
    assert not session.is_over()
    monkeypatch.setattr(json_rpc, "BUSY_S", 0.0)
    wait_until(session.is_over, "it is waited for no longer")
    monkeypatch.undo()
    session.say("silent")
    wait_until(lambda: AcpSession.is_over(session), "its answer is out")
    assert not session.is_over()
    os.close(lock)
    assert session.is_over()
    session.end()


def _asked(exchange: Exchange) -> Any:
    """What the user, or the program, said to the model."""
    assert exchange.request.body is not None
    body: Any = exchange.request.body.json
    return body["messages"][0]["content"]


def test_hooks_of_codex_are_trusted_and_a_timeout_that_it_cuts_is_no_refusal(tmp_path: Path) -> None:
    """The stand-in begins no thread before its hook is trusted, and warns that it cuts a timeout."""
    session = _session("codex", tmp_path)
    session.open()
    assert session.refusals == []
    session.end()


def _session(name: str, home: Path, mode: str = "") -> ProgramConversation:
    """A session with the stand-in for a program, which is not open yet."""
    command = [sys.executable, "-S", "-E", str(STAND_IN), PROGRAMS[name][0]]
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "STAND_IN": mode}
    return DRIVERS[name](Launch(command, env, home, "http://127.0.0.1:9", Observations(home)))


def _await_end(session: ProgramConversation) -> None:
    while not session.is_over():
        pass


def _left() -> list[int]:
    """The stand-ins that have not ended."""
    with WatchedProcesses(pid for pid in descendants(os.getpid()) if STAND_IN.name in _command(pid)) as left:
        return left.left()


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace")
    return ""
