"""The adapter behind HTTP: what is answered to whom, and how the program starts and ends."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from signet_conformance.contract import document
from signet_reference_harness.adapter import SessionAdapter, create_adapter, server as adapter_server
from signet_reference_harness.adapter.server import RuntimeAdapterServer
from signet_reference_harness.cli import main
from signet_reference_harness.daemon_client.adapter import PromptSubmitParams, PromptSubmitResult
from tests.reference_harness.recording_daemon import END, PRE, PROMPT, START, Answer, RecordingDaemon
from tests.reference_harness.sessions import PATIENT

PROGRAM = Path(__file__).resolve().parents[3] / "examples" / "harness-javascript" / "harness.mjs"
BEGUN = {"sessionKey": "k-1", "project": "/srv/acme", "source": "startup"}
Call = tuple[str, Any]


def answers(daemon: RecordingDaemon, *calls: Call, host: str = "127.0.0.1:1", **headers: str) -> list[httpx.Response]:
    """The answers to some calls, each a method with its parameters, or with a body as bytes."""

    async def run() -> list[httpx.Response]:
        async with create_adapter("acme-shell", daemon.origin, environ=PATIENT) as adapter:
            transport = httpx.ASGITransport(RuntimeAdapterServer(adapter, "atlas"))
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}", headers=headers) as client:
                return [await client.post(f"/{method}", content=body(said)) for method, said in calls]

    return asyncio.run(run())


def body(said: Any) -> bytes:
    """What is posted."""
    return said if isinstance(said, bytes) else json.dumps(said).encode()


def test_each_method_is_a_hook(daemon: RecordingDaemon) -> None:
    """The answer holds what is for the model; a later call means the project and the agent of the first."""
    daemon.always[START] = Answer({"inject": "Be brief.", "memories": []})
    start, asked, compacting, compacted, ended = answers(
        daemon,
        ("onSessionStart", {**BEGUN, "agentId": "nova"}),
        ("onUserPromptSubmit", {"sessionKey": "k-1", "prompt": "hello", "lastAssistantMessage": "hi"}),
        ("onPreCompaction", {"sessionKey": "k-1", "messageCount": 2}),
        ("onCompactionComplete", {"sessionKey": "k-1", "summary": "Greetings."}),
        ("onSessionEnd", {"sessionKey": "k-1", "reason": "exit", "transcript": "User: hello"}),
    )
    assert [start.json(), asked.json(), compacted.json(), ended.json()] == [
        {"inject": "Be brief."}, {"inject": ""}, {}, {},
    ]  # fmt: skip
    assert compacting.json() == {"summaryPrompt": "Summarise.", "guidelines": ""}
    assert daemon.paths() == [
        "session-start", "user-prompt-submit", "pre-compaction", "compaction-complete", "session-end",
    ]  # fmt: skip
    assert {request.body["agentId"] for request in daemon.requests[1:]} == {"nova"}
    assert daemon.bodies(PROMPT)[0]["lastAssistantMessage"] == "hi"


def test_what_the_daemon_does_is_no_error_of_the_call(daemon: RecordingDaemon) -> None:
    """The answer is 200 and says the failure; the next call is served."""
    daemon.always[PRE] = Answer({"error": "shutting\x1b[31m down"}, 503)
    _, refused, ended = answers(
        daemon,
        ("onSessionStart", BEGUN),
        ("onPreCompaction", {"sessionKey": "k-1", "messageCount": 2}),
        ("onSessionEnd", {"sessionKey": "k-1", "reason": "clear", "transcript": "User: hello"}),
    )
    assert (refused.status_code, refused.json()["failure"]) == (200, "http: status 503 shutting\\x1b[31m down")
    assert (ended.json(), daemon.bodies(END)[0]["reason"]) == ({}, "clear")


@pytest.mark.parametrize(
    ("method", "said", "status", "message"),
    [
        ("onSessionStart", b"{", 400, "onSessionStart:1:2: is not JSON"),
        ("onSessionStart", b"[" * 100_000, 400, "onSessionStart: is not JSON"),
        ("onSessionStart", b"9" * 5000, 400, "onSessionStart: is not JSON"),
        ("onSessionStart", [], 400, "onSessionStart: the whole: is a list"),
        ("onSessionStart", {"sessionKey": "k"}, 400, "onSessionStart: the whole: lacks source"),
        ("onSessionStart", {**BEGUN, "source": "x"}, 400, 'onSessionStart: /source: is "x"'),
        ("onSessionStart", {**BEGUN, "project": "acme"}, 400, "project 'acme' is not an absolute path"),
        ("onSessionStart", {**BEGUN, "sessionKey": "main"}, 400, "session key 'main' would be shared"),
        ("onSessionStart", {**BEGUN, "agentId": "acme-shell"}, 400, "agent 'acme-shell' is the name of the harness"),
        ("onPreCompaction", {"sessionKey": "k", "messageCount": 2}, 400, "the project of session 'k' is not known"),
        ("onPreCompaction", {"sessionKey": "k", "messageCount": "2"}, 400, 'onPreCompaction: /messageCount: is "2"'),
        ("onDance", {}, 404, "there is no method 'onDance'"),
        ("", {}, 404, "there is no method ''"),
    ],
)
def test_call_that_cannot_be_made_is_told(
    daemon: RecordingDaemon, method: str, said: Any, status: int, message: str
) -> None:
    """The answer names method, member and value; the daemon hears nothing."""
    (answer,) = answers(daemon, (method, said))
    assert answer.status_code == status
    assert answer.json()["error"].startswith(message)
    assert daemon.requests == []


@pytest.mark.parametrize(
    "given",
    [
        {"host": "evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_a_foreign_page_is_refused(daemon: RecordingDaemon, given: Mapping[str, str]) -> None:
    """What a browser sends for a page of another origin, or by another name, is 403 and reaches no daemon."""
    (answer,) = answers(daemon, ("onSessionStart", BEGUN), **given)
    assert answer.status_code == 403
    assert daemon.requests == []


@pytest.mark.parametrize("any_host", [True, False])
def test_another_name_is_answered_only_where_that_was_asked_for(config: Any, any_host: bool) -> None:
    """A server beyond the loopback is called by other names; a page of another origin is refused all the same."""

    async def run() -> list[int]:
        async with SessionAdapter(config) as adapter:
            transport = httpx.ASGITransport(RuntimeAdapterServer(adapter, "atlas", any_host=any_host))
            async with httpx.AsyncClient(transport=transport, base_url="http://build.example:80") as client:
                origins = [{}, {"origin": "https://evil.example"}]
                return [(await client.post("/onDance", headers=headers)).status_code for headers in origins]

    assert asyncio.run(run()) == [404 if any_host else 403, 403]


@pytest.mark.parametrize(("name", "status"), [("192.0.2.7:8080", 404), ("[2001:db8::7]:8080", 404), ("acme.test", 403)])
def test_a_page_is_own_by_an_address_and_by_no_domain(config: Any, name: str, status: int) -> None:
    """The owner of a domain may point it at this machine, so a server beyond the loopback serves no page of one."""

    async def run() -> int:
        async with SessionAdapter(config) as adapter:
            transport = httpx.ASGITransport(RuntimeAdapterServer(adapter, "atlas", any_host=True))
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{name}") as client:
                return (await client.post("/onDance", headers={"origin": f"http://{name}"})).status_code

    assert asyncio.run(run()) == status


def test_a_call_that_is_too_large_is_refused(daemon: RecordingDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is 413 as soon as the limit is passed."""
    monkeypatch.setattr(adapter_server, "MOST_BODY", 100)
    (answer,) = answers(daemon, ("onSessionStart", {**BEGUN, "more": "x" * 100}))
    assert (answer.status_code, answer.json()["error"]) == (413, "the call is larger than 100 bytes")


def test_members_of_a_later_harness_are_left_aside(daemon: RecordingDaemon) -> None:
    """A member that the server does not know changes nothing."""
    (answer,) = answers(daemon, ("onSessionStart", {**BEGUN, "mood": "good"}))
    assert answer.json() == {"inject": ""}


def test_answers_fit_the_schema(daemon: RecordingDaemon) -> None:
    """What is said to a harness is what signet-adapter/1 describes."""
    schema = document("driver/signet-adapter-1.schema.json")["$defs"]["answer"]
    told = answers(daemon, ("onSessionStart", BEGUN), ("onPreCompaction", {"sessionKey": "k-1", "messageCount": 0}))
    assert [answer for answer in told if not jsonschema_rs.is_valid(schema, answer.json())] == []


class Crashing(SessionAdapter):
    """An adapter of somebody who made a mistake."""

    async def on_user_prompt_submit(self, params: PromptSubmitParams) -> PromptSubmitResult:
        """Never succeeds."""
        raise ZeroDivisionError(params.user_message)


def test_an_adapter_that_crashes_ends_no_server(config: Any) -> None:
    """The call is answered 500 with the class of the error, and the next is served."""

    async def run() -> list[httpx.Response]:
        async with Crashing(config) as adapter:
            transport = httpx.ASGITransport(RuntimeAdapterServer(adapter, "atlas"))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                asked = {**BEGUN, "prompt": "boom"}
                return [await client.post(f"/{name}", json=asked) for name in ("onUserPromptSubmit", "onSessionStart")]

    crashed, served = asyncio.run(run())
    assert (crashed.status_code, crashed.json()["error"]) == (500, "the adapter failed: ZeroDivisionError: boom")
    assert served.status_code == 200


@contextmanager
def serving(daemon: RecordingDaemon) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The program's address, and the program."""
    command = [sys.executable, "-m", "signet_reference_harness.cli", "adapter", "--until-stdin-closes"]
    environ = {**os.environ, **PATIENT, "SIGNET_DAEMON_URL": daemon.origin, "SIGNET_AGENT_ID": "atlas"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"], process


@pytest.mark.parametrize("told", ["SIGTERM", "end of input"])
def test_open_sessions_are_ended_when_the_program_ends(daemon: RecordingDaemon, told: str) -> None:
    """By a signal and by the end of standard input, with status 0 and the daemon told."""
    with serving(daemon) as (url, process):
        httpx.post(f"{url}/onSessionStart", json=BEGUN, timeout=60, trust_env=False).raise_for_status()
        if told == "SIGTERM":
            process.send_signal(signal.SIGTERM)
        else:
            assert process.stdin is not None
            process.stdin.close()
        assert process.wait() == 0
    assert daemon.paths() == ["session-start", "session-end"]


def test_a_harness_in_javascript(daemon: RecordingDaemon) -> None:
    """The example of the page, which starts the adapter and calls it with nothing but fetch, conducts a session."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not on PATH")
    if not PROGRAM.exists():
        pytest.skip("the examples are not beside the tests")
    own = {"SIGNET_DAEMON_URL": daemon.origin, "SIGNET_HARNESS": str(Path(sys.executable).parent / "signet-harness")}
    done = subprocess.run(
        [node, str(PROGRAM), "/srv/acme", "hello", "and now?"],
        env={**os.environ, **PATIENT, **own}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("You said hello, and I know 1 characters.\nYou said and now?")
    assert daemon.paths() == ["session-start", "user-prompt-submit", "user-prompt-submit", "session-end"]
    assert {request.body["harness"] for request in daemon.requests[1:]} == {"acme-shell"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--host", "localhost"], "'localhost' is not an IP address"),
        (["--host", "192.0.2.7"], "192.0.2.7 is not an address of this machine"),
        (["--harness", "my shell"], "the harness's name is 'my shell'"),
        (["--harness", "acme", "--agent", "acme"], "agent 'acme' is the name of the harness"),
        (["--runtime-path", "x"], "'x' is not one of 'plugin', 'legacy'"),
    ],
)
def test_bad_options_are_told(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong use is status 2 and one message with what to do."""
    monkeypatch.setattr(sys, "argv", ["signet-harness", "adapter", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert message in told
    assert "\ntry: " in told
