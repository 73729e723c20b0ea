"""A runtime adapter behind HTTP: a conforming one passes in any language, a broken one is found out and never hangs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from signet_conformance.contract import document
from signet_conformance.drivers.hosts import server_process
from signet_conformance.drivers.hosts.http_adapter import AdapterServer
from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.launch import command_line
from signet_conformance.errors import TargetError
from signet_conformance.finding import Verdict
from signet_conformance.running.workers import RunWorkers
from signet_conformance.scenarios.scenario import scripted
from signet_conformance.targets import load

from .conftest import FIXTURES, PROMPT, SCENARIOS, START, Broken, Made, performed

PYTHON = [sys.executable, str(FIXTURES / "adapter_server.py"), "{port}"]
DRIVER = {"driver": "http-adapter", "harness": "adapter", "agents": ["atlas-agent", "beacon-agent"], "token": True}
EXPECTED: Mapping[str, Mapping[str, Verdict]] = {
    "conforming": {},
    "lacks-compaction": {},
    "misnames": {"SIG-PROMPT-001": Verdict.FAIL, "SIG-PROMPT-002": Verdict.FAIL},
    "drops-agent": {"SIG-AGENT-001": Verdict.FAIL, "SIG-AGENT-002": Verdict.FAIL},
}
COMPACT = {"step": "compact", "session": "s1", "summary": "Asked for the database."}
LINES = {**PROMPT, "reply": "None.\nUser: thanks"}
CLEAR, END = {"step": "clear", "session": "s1"}, {"step": "end", "session": "s1"}


@pytest.mark.parametrize("mode", EXPECTED)
def test_adapter_in_python(mode: str, made: Made, broken: Broken) -> None:
    """An adapter that is whole, or lacks methods, breaks nothing; one that misnames or drops a member is found out."""
    target = made("mine", mode=mode, command=PYTHON, **DRIVER)
    assert broken(target, ("compaction",) if EXPECTED[mode] else SCENARIOS) == EXPECTED[mode]


def test_adapter_of_the_reference_harness(broken: Broken) -> None:
    """The target that comes with the kit conforms, also with the daemon away and at a compaction."""
    assert broken(load("reference-adapter"), ("compaction", "daemon-refuses")) == {}


def test_adapter_in_javascript(made: Made, broken: Broken, runtime: str) -> None:
    """The server's language does not matter; its port stands in the environment too."""
    command = [runtime, str(FIXTURES / "adapter_server.mjs")]
    assert broken(made("mine", command=command, **DRIVER)) == {}


def test_calls_fit_their_schema(made: Made, tmp_path: Path) -> None:
    """Each method is called where the harness comes to it, with the parameters that the schema describes."""
    out = tmp_path / "calls.jsonl"
    resume = {"step": "resume", "session": "s1", "agent": "atlas-agent", "project": "/workspace/atlas"}
    target = made("mine", command=PYTHON, **DRIVER)
    results = performed(
        target, tmp_path / "home", [START, PROMPT, COMPACT, CLEAR, LINES, LINES, END, resume], FIXTURE_OUT=str(out)
    )
    calls = [json.loads(line) for line in out.read_text().splitlines()]
    validator = jsonschema_rs.validator_for(document("driver/signet-adapter-1.schema.json"))
    assert [call for call in calls if not validator.is_valid(call)] == []
    assert [call["method"] for call in calls] == [
        "onSessionStart", "onUserPromptSubmit", "onPreCompaction", "onCompactionComplete", "onSessionEnd",
        "onSessionStart", "onUserPromptSubmit", "onUserPromptSubmit", "onSessionEnd", "onSessionStart",
    ]  # fmt: skip
    assert [call["params"].get("source") for call in calls if call["method"] == "onSessionStart"] == [
        "startup", "clear", "resume",
    ]  # fmt: skip
    assert results[0]["key"] != results[3]["key"] == results[7]["key"]
    said = [call["params"] for call in calls if call["method"] == "onUserPromptSubmit"]
    assert [params.get("lastAssistantMessage") for params in said] == [None, None, LINES["reply"]]
    last = [call["params"]["transcript"] for call in calls if call["method"] == "onSessionEnd"][-1]
    assert last.split("\n") == ["User: Which database?", "Assistant: None. User: thanks"] * 2


def test_paths_of_the_adapter_s_own(made: Made, tmp_path: Path) -> None:
    """A method is called under the path that the settings give it."""
    target = made("mine", mode="starts-elsewhere", command=PYTHON, paths={}, **DRIVER)
    (skipped,) = performed(target, tmp_path / "home", [START])
    assert skipped["skipped"] == "the adapter serves no onSessionStart"
    target.profile.paths["onSessionStart"] = "/begin"
    (started,) = performed(target, tmp_path / "home2", [START])
    assert [call["status"] for call in started["calls"]] == [200]
    assert all(call["late_ms"] >= 0 for call in started["calls"])


def test_method_that_is_not_served_is_skipped(made: Made, tmp_path: Path) -> None:
    """404 says that there is no such method: the step is skipped, the session goes on."""
    target = made("mine", mode="lacks-compaction", command=PYTHON, **DRIVER)
    *_, skipped, after = performed(target, tmp_path / "home", [START, PROMPT, COMPACT, PROMPT])
    assert skipped["skipped"] == "the adapter serves no onPreCompaction and no onCompactionComplete"
    assert after["turn"] is True


def test_tools_are_none_of_an_adapter(made: Made, tmp_path: Path) -> None:
    """A runtime adapter has no tools, so their steps are skipped."""
    tool = {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "x"}}
    _, skipped = performed(made("mine", command=PYTHON, **DRIVER), tmp_path / "home", [START, tool])
    assert skipped["skipped"] == "signet-adapter/1 has no method for tool"


def test_adapter_that_fails_stops_no_turn(made: Made, tmp_path: Path) -> None:
    """An adapter that answers 500 is noted with its status, and the harness continues."""
    _, turn = performed(made("mine", mode="fails", command=PYTHON, **DRIVER), tmp_path / "home", [START, PROMPT])
    assert (turn["turn"], turn["injected"], [call["status"] for call in turn["calls"]]) == (True, "", [500])


@pytest.mark.parametrize(
    ("mode", "noted"), [("prose", "the answer's body is not a JSON object"), ("says-nothing", None), ("null", None)]
)
def test_answer_that_is_no_object_is_noted(mode: str, noted: str | None, made: Made, tmp_path: Path) -> None:
    """A text where an object belongs is noted, an empty body and null say nothing; the harness continues."""
    _, turn = performed(made("mine", mode=mode, command=PYTHON, **DRIVER), tmp_path / "home", [START, PROMPT])
    assert (turn["turn"], [call.get("thrown") for call in turn["calls"]]) == (True, [noted])


def test_adapter_that_ends_is_the_scenario_s_error(made: Made, tmp_path: Path) -> None:
    """A server whose process is gone is an error at a later call; the calls that it died in are noted."""
    # The system may take a connection for a process that is just ending: the next call may be lost as well.
    steps = [START, *[PROMPT] * 500]
    with pytest.raises(TargetError, match=r"the adapter's server (ended with status 7|has ended)"):
        performed(made("mine", mode="dies", command=PYTHON, **DRIVER), tmp_path / "home", steps)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"command": [sys.executable, "-c", "raise SystemExit(3)"]}, "the adapter's server ended with status 3"),
        ({"command": ["no-such-program-here"]}, "no-such-program-here is not on PATH"),
        ({"url": "http://127.0.0.1:1"}, "nothing listens at http://127.0.0.1:1: start the adapter's server"),
    ],
)
def test_server_that_is_not_there(own: Mapping[str, Any], message: str, made: Made, tmp_path: Path) -> None:
    """What cannot be started or reached is one error that says so."""
    with pytest.raises(TargetError, match=message):
        performed(made("mine", **own, **DRIVER), tmp_path / "home", [START])


def test_a_server_that_listens_elsewhere_is_not_to_be_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says that it was started, and which port it was told."""
    monkeypatch.setattr(server_process, "START_TIMEOUT_S", 0.1)
    deaf = [sys.executable, "-c", "import signal; signal.pause()"]
    with pytest.raises(StepError, match=r"0\.1 s after the server was started: let it listen at the port in PORT"):
        server_process.ServerProcess("the server", deaf, "http://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({}, "neither a command nor a url"),
        ({"url": "http://192.0.2.7:80"}, "not an http address on this machine"),
        ({"url": "https://127.0.0.1:80"}, "not an http address on this machine"),
        ({"url": "http://[::1"}, "not an http address on this machine"),
        ({"url": "http://192.0.2.7:{port}", "command": ["x"]}, "not an http address on this machine"),
    ],
)
def test_address_that_is_refused(own: Mapping[str, Any], message: str, made: Made) -> None:
    """Only a server on this machine is spoken to, and one has to be named."""
    with pytest.raises(TargetError, match=message) as caught:
        command_line(made("mine", **own, **DRIVER))
    assert "signet-conformance.toml: targets.mine" in str(caught.value.where)
    assert "http://127.0.0.1:" in str(caught.value.remedy)


def test_deadline_bounds_the_whole_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter that sends a byte now and then is given up at the deadline, however lively it seems."""
    monkeypatch.setenv("FIXTURE_MODE", "trickles")
    server = AdapterServer(PYTHON, "http://127.0.0.1:{port}", "http://127.0.0.1:1")
    try:
        answer = server.call("/onSessionStart", {"sessionKey": "s"}, timeout_s=1.0)
        assert (answer.timed_out, answer.body) == (True, {})
    finally:
        server.close()


@pytest.mark.parametrize(("own", "performed"), [({"command": PYTHON}, True), ({"url": "http://127.0.0.1:1"}, False)])
def test_a_server_that_runs_already_is_not_bypassed(
    own: Mapping[str, Any], performed: bool, made: Made, tmp_path: Path
) -> None:
    """What a scenario puts into the environment reaches only a server that the kit starts: otherwise it is left out."""
    run = RunWorkers(made("mine", **own, **DRIVER), tmp_path / "traces")
    names = {scenario.name for scenario in run.usable(scripted())}
    run.__exit__()
    assert ("bypass" in names) is performed


def test_server_that_runs_already_is_told_the_daemon() -> None:
    """A server that the kit did not start is reached by its address and ends with whoever started it."""
    first = AdapterServer(PYTHON, "http://127.0.0.1:{port}", "")
    try:
        second = AdapterServer((), first._url.geturl(), "http://127.0.0.1:1")
        assert second.call("/onDance", {}).absent
        second.close()
        assert first.call("/onDance", {}).absent
    finally:
        first.close()
    with pytest.raises(StepError, match=r"ended with status|has ended"):
        first.call("/onDance", {})
