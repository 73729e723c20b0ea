"""Any page in a browser can make it send requests to this machine; none of them reaches a daemon of the kit."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support import plain_http
from tests.support.browser import Browser, browser, missing
from tests.support.recorder import RecorderProcess

IN_BROWSER = pytest.mark.skipif(missing() is not None, reason=f"no browser: {missing()}")
FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Origin": "http://localhost:5173.evil.example"},
    {"Origin": "http://127.0.0.1:3850@evil.example"},
    {"Origin": "chrome-extension://abcdefghijklmnop"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "Cross-Site", "Origin": "http://localhost:5173"},
]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an embedded daemon in a process of its own, in which no test stores anything."""
    workspace = tmp_path_factory.mktemp("daemon") / "workspace"
    command = [sys.executable, "-m", "signet_conformance.daemon", "--workspace", str(workspace), "--until-stdin-closes"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.stdin.close()


@pytest.fixture
def recorder(daemon: str, tmp_path: Path) -> Iterator[RecorderProcess]:
    """A recorder in front of that daemon."""
    process = RecorderProcess("--upstream", daemon, "--control", out=tmp_path / "trace.jsonl")
    yield process
    process.close()


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page that some other program of this machine serves."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>A page</title>")

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_the_daemon_refuses_what_a_foreign_page_sends(daemon: str, headers: dict[str, str]) -> None:
    """403, and nothing is stored."""
    answer = plain_http.post(f"{daemon}/api/secrets/PWNED", json={"value": "from a page"}, headers=headers)
    assert (answer.status_code, answer.json()) == (403, {"error": "origin not allowed"})
    assert plain_http.options(f"{daemon}/api/secrets/PWNED", headers=headers).status_code == 403
    assert plain_http.get(f"{daemon}/api/secrets").json()["secrets"] == []


@pytest.mark.parametrize("headers", FOREIGN[:-1], ids=str)
def test_the_recorder_refuses_what_a_foreign_page_sends(
    daemon: str, recorder: RecorderProcess, headers: dict[str, str]
) -> None:
    """403, nothing reaches the daemon; the recording holds a mark and no exchange."""
    answer = plain_http.post(f"{recorder.url}/api/secrets/PWNED?a=b", json={"value": "from a page"}, headers=headers)
    assert (answer.status_code, answer.json()) == (403, {"error": "origin not allowed"})
    assert plain_http.get(f"{recorder.url}/health", headers=headers).status_code == 403
    assert plain_http.get(f"{daemon}/api/secrets").json()["secrets"] == []
    trace = recorder.trace()
    assert trace.exchanges == ()
    assert [mark.name for mark in trace.marks] == ["refused", "refused"]
    assert (trace.marks[0].data["method"], trace.marks[0].data["path"]) == ("POST", "/api/secrets/PWNED")


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": ""}], ids=str)
def test_a_page_without_a_name_is_refused_in_words(recorder: RecorderProcess, headers: dict[str, str]) -> None:
    """A page without an origin, or with an empty one, is called so in the warning and in the mark."""
    assert plain_http.get(f"{recorder.url}/health", headers=headers).status_code == 403
    assert recorder.trace().marks[0].data["origin"] == "a page that names no origin"
    recorder.command("exit")
    recorder.process.wait(20)
    assert "warning: a page that names no origin sent a request from a browser: refused\n" in recorder.stderr()


def test_programs_and_the_daemon_s_own_pages_are_served(daemon: str, recorder: RecorderProcess) -> None:
    """No origin, the address itself, what a runtime says of itself, and the daemon's dashboard."""
    for url in (daemon, recorder.url):
        port = url.rpartition(":")[2]
        for headers in (
            {},
            {"Sec-Fetch-Mode": "cors", "User-Agent": "node"},
            {"Origin": url, "Sec-Fetch-Site": "same-origin"},
            {"Origin": f"http://LOCALHOST:{port}", "Host": f"localhost:{port}"},
            {"Sec-Fetch-Site": "none"},
        ):
            assert plain_http.get(f"{url}/api/secrets", headers=headers).status_code == 200, (url, headers)
    assert plain_http.get(f"{daemon}/api/secrets", headers={"Origin": "http://localhost:5173"}).status_code == 200
    assert plain_http.get(f"{recorder.url}/api/secrets", headers={"Origin": daemon}).status_code == 200


def test_a_name_that_is_pointed_here_is_no_own_origin(tmp_path: Path) -> None:
    """Even where any host is served: whoever owns a domain may let it name this machine."""
    command = [sys.executable, "-m", "signet_conformance.daemon", "--allow-remote", "--until-stdin-closes"]
    command += ["--workspace", str(tmp_path / "workspace")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        rebound = {"Host": "evil.example:80", "Origin": "http://evil.example:80"}
        assert plain_http.get(f"{url}/api/secrets", headers=rebound).status_code == 403
        process.stdin.close()


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    """A real browser."""
    with browser() as opened:
        yield opened


@IN_BROWSER
def test_a_page_cannot_run_commands(window: Browser, page: str, daemon: str, recorder: RecorderProcess) -> None:
    """A page on another port of this machine stores no secret and runs nothing, with the browser's help or without."""
    window.visit(page)
    for url in (daemon, recorder.url):
        told = window.promised(
            f"""(async () => {{
                const send = (path, body, mode) => fetch({url!r} + path,
                    {{method: "POST", mode, headers: {{"content-type": "text/plain"}}, body: JSON.stringify(body)}})
                    .then(answer => answer.type, () => "kept back");
                return [
                    await send("/api/secrets/PWNED", {{value: "from a page"}}, "no-cors"),
                    await send("/api/secrets/exec", {{command: "id", secrets: {{PWNED: "PWNED"}}}}, "no-cors"),
                    await send("/api/secrets/PWNED", {{value: "from a page"}}, "cors"),
                ];
            }})()"""
        )
        # An opaque answer: the browser did send it.
        assert told == ["opaque", "opaque", "kept back"]
    assert plain_http.get(f"{daemon}/api/secrets").json()["secrets"] == []
    trace = recorder.trace()
    assert trace.exchanges == ()
    assert {(mark.name, mark.data["origin"]) for mark in trace.marks} == {("refused", page)}


@IN_BROWSER
def test_a_page_in_a_frame_without_an_origin_cannot_either(window: Browser, page: str, daemon: str) -> None:
    """Nor does a form, nor a frame whose origin is null."""
    window.visit(page)
    window.promised(
        f"""new Promise(done => {{
            const frame = document.createElement("iframe");
            frame.sandbox = "allow-scripts allow-forms";
            frame.srcdoc = `<form method=post enctype=text/plain action="{daemon}/api/secrets/PWNED">
                <input name='{{"value":"x","a":"' value='"}}'></form><script>document.forms[0].submit()</script>`;
            let loads = 0;
            frame.onload = () => ++loads == 2 && done(true);
            document.body.append(frame);
            setTimeout(() => done(false), 5000);
        }})"""
    )
    assert plain_http.get(f"{daemon}/api/secrets").json()["secrets"] == []
