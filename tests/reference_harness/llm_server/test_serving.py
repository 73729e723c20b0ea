"""The server as a program: how it starts and ends, which clients it refuses, how it reports bad input."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click
import pytest

from signet_reference_harness.cli import guarded, main
from signet_reference_harness.llm_server.requests import MOST_BYTES, MOST_REQUESTS, Requests
from tests.support import inner_pytest

from .served import Serve, started

COMMAND = [sys.executable, "-m", "signet_reference_harness.cli"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, None])
def test_it_ends_when_it_is_told_to(tmp_path: Path, number: signal.Signals | None) -> None:
    """SIGTERM, SIGINT and the end of standard input end it with status 0, even while a request hangs."""
    fault = {"kind": "hang"}
    with (
        started(tmp_path / "s.json", turns=[{"content": "a", "fault": fault}]) as served,
        served.http.stream("POST", "/v1/messages", json={"stream": True}) as answer,
    ):
        assert answer.status_code == 200
        if number is None:
            assert served.process.stdin is not None
            served.process.stdin.close()
        else:
            served.process.send_signal(number)
        assert served.process.wait() == 0


def test_without_the_option_it_outlives_its_standard_input(tmp_path: Path) -> None:
    """A server in a shell's background has no standard input, and still serves."""
    script = tmp_path / "s.json"
    script.write_text('{"format": "signet-llm/1"}')
    with subprocess.Popen(
        [*COMMAND, "llm", str(script)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"].startswith("http://127.0.0.1:")
        assert process.poll() is None
        process.terminate()


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/messages"), ("GET", "/requests"), ("POST", "/turns")])
def test_a_foreign_page_is_refused(serve: Serve, headers: dict[str, str], method: str, path: str) -> None:
    """A browser's request from a page of another origin, or for another host, gets 403 and is not kept."""
    served = serve(turns=[])
    assert served.http.request(method, path, headers=headers, json={}).status_code == 403
    assert served.requests() == []


def test_a_page_of_its_own_may_ask(serve: Serve) -> None:
    """The server's own origin is not foreign."""
    served = serve(turns=[])
    assert served.http.get("/requests", headers={"origin": served.url}).status_code == 200


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v1/messages", ["error", "message"]),
        ("/v1/chat/completions", ["error", "message"]),
        ("/v1/responses", ["error", "message"]),
        ("/api/chat", ["error"]),
    ],
)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_the_vendor_s_400(serve: Serve, path: str, message: list[str], body: bytes) -> None:
    """The error has the vendor's form and takes no turn; the request is kept with its body."""
    served = serve(turns=[{"content": "Hi"}])
    answer = served.http.post(path, content=body)
    assert answer.status_code == 400
    told: Any = answer.json()
    for member in message:
        told = told[member]
    assert told.startswith("the body is not")
    assert served.http.get("/script").json() == {"left": 1}


def test_a_path_that_no_vendor_has_is_answered_with_the_path(serve: Serve) -> None:
    """404 names method and path, and the request is kept."""
    served = serve(turns=[])
    answer = served.http.post("/v1/nowhere", json={"a": 1})
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, "this server has no POST /v1/nowhere")
    (kept,) = served.requests()
    assert (kept["path"], kept["body"], kept["status"]) == ("/v1/nowhere", {"a": 1}, 404)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "POST /turns:1:2: is not JSON"),
        (b'{"turns": [%s]}' % (b"9" * 5000), "POST /turns: is not JSON"),
        (b"[]", "POST /turns: the whole: is a list"),
        (b'{"turns": []}', "POST /turns: /turns: is a list: Tuple should have at least 1 item"),
        (b'{"turns": [{"content": 5}]}', "POST /turns: /turns/0/content: is 5"),
    ],
)
def test_turns_that_cannot_be_read_are_refused_with_their_place(serve: Serve, body: bytes, message: str) -> None:
    """The answer is 400 and names pointer and value."""
    answer = serve(turns=[]).http.post("/turns", content=body)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("", "s.json:1:1: is not JSON: Expecting value"),
        ("[]", "s.json: the whole: is a list: Input should be a valid dictionary"),
        ("{}", 's.json: the whole: lacks format\ntry: write "format": "signet-llm/1"\n'),
        ('{"format": "signet-llm/2"}', "s.json: /format: is \"signet-llm/2\": Input should be 'signet-llm/1'"),
        ('{"format": "signet-llm/1", "turn": []}', "s.json: /turn: unknown member 'turn'"),
        ('{"format": "signet-llm/1", "turns": [{"content": [{"type": "txt"}]}]}', "/turns/0/content/0: type is 'txt'"),
        (
            '{"format": "signet-llm/1", "turns": [{"content": [{"type": "text", "text": "a", "odd": 1}]}]}',
            "/turns/0/content/0/odd: unknown member 'odd'",
        ),
        (
            '{"format": "signet-llm/1", "turns": [{"error": {"status": 200}}]}',
            "/turns/0/error/status: is 200: Input should be greater than or equal to 400",
        ),
        (
            '{"format": "signet-llm/1", "turns": [{"content": "a", "error": {}}]}',
            "/turns/0: is an object: a turn with an error has neither content nor fault",
        ),
        (
            '{"format": "signet-llm/1", "rules": [{"when": {"last_user": {"matches": "("}}, "turn": {}}]}',
            '/rules/0/when/last_user/matches: is "(": no regular expression',
        ),
        (
            '{"format": "signet-llm/1", "turns": [{"delay_ms": 1e9}]}',
            "/turns/0/delay_ms: is 1000000000.0: Input should",
        ),
        ('{"format": "signet-llm/1", "turns": [{"raw": {"google": {}}}]}', '/turns/0/raw/google: is "google": Input'),
    ],
)
def test_a_script_that_cannot_be_read_is_an_error_with_its_place(tmp_path: Path, script: str, message: str) -> None:
    """Exit status 2; file, pointer, value and what was expected on standard error; no traceback."""
    path = tmp_path / "s.json"
    path.write_text(script)
    ended = inner_pytest.finished([*COMMAND, "llm", str(path)], tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert message in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["llm", "no/such.json"], "error: no/such.json: No such file or directory\ntry: "),
        (["llm", "/"], "error: /: Is a directory\ntry: "),
        (["llm", "s.json", "--port", "99999"], "error: Invalid value for '--port'"),
        (["lml"], "error: unknown command 'lml'\ntry: signet-harness llm --help"),
    ],
)
def test_a_command_line_that_is_wrong_is_an_error(arguments: list[str], message: str, tmp_path: Path) -> None:
    """Exit status 2 with a remedy."""
    ended = inner_pytest.finished([*COMMAND, *arguments], tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(message)


def test_a_module_that_was_cut_off_is_no_interruption(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python raises EOFError for a compiled module that a full disk cut off; click takes it for an interruption."""

    def cut_off() -> None:
        raise click.Abort from EOFError("marshal data too short")

    monkeypatch.delenv("SIGNET_HARNESS_TRACEBACK", raising=False)
    assert guarded(cut_off) == 1
    assert "error: the harness failed: EOFError: marshal data too short; please report it" in capsys.readouterr().err


def test_the_command_is_installed() -> None:
    """Its entry point is the command that these tests start as a module."""
    (command,) = entry_points(group="console_scripts", name="signet-harness")
    assert command.load() is main


def test_a_port_that_is_taken_is_an_error(serve: Serve, tmp_path: Path) -> None:
    """Exit status 2; the message names the port, and how to get a free one."""
    path = tmp_path / "s.json"
    path.write_text('{"format": "signet-llm/1"}')
    port = serve(turns=[]).url.rpartition(":")[2]
    command = [*COMMAND, "llm", str(path), "--port", port]
    ended = inner_pytest.finished(command, tmp_path)
    assert ended.status == 2
    assert ended.err.startswith(f"error: port {port} is in use by another program\ntry: leave --port out")


def test_kept_requests_are_bounded() -> None:
    """If they are too many, or too large together, the oldest are dropped and counted; the newest stays."""
    requests = Requests()
    for _ in range(MOST_REQUESTS + 3):
        requests.begin("POST", "/v1/messages", "", [], b"{}")
    assert requests.dropped == 3
    large = requests.begin("POST", "/v1/messages", "", [], b" " * (MOST_BYTES + 1))
    assert requests.dropped == MOST_REQUESTS + 3
    assert asyncio.run(requests.after(0, 0)) == [large]


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("Authorization", "Bearer sk-1", "Bearer [redacted]"),
        ("authorization", "sk-1", "[redacted]"),
        ("x-api-key", "sk-1", "[redacted]"),
        ("x-goog-api-key", "sk-1", "[redacted]"),
        ("Cookie", "a=b", "[redacted]"),
        ("anthropic-version", "2023-06-01", "2023-06-01"),
        ("user-agent", "x/1", "x/1"),
    ],
)
def test_a_header_with_a_credential_is_redacted(name: str, value: str, shown: str) -> None:
    """Its name and scheme stay; other headers are unchanged."""
    kept = Requests().begin("GET", "/", f"beta=1&api_key={value}", [(name, value)], b"")
    assert kept.headers == ((name, shown),)
    assert kept.query == "beta=1&api_key=[redacted]"
