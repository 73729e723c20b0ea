"""Facts about a page that grows with its recordings: who may see it, what it shows, and that it ends."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from urllib.parse import urlsplit

import httpx
import pytest

from signet_conformance.cli.watch import PageState, RecordingWatcher, served, watched
from signet_conformance.errors import UsageError
from signet_conformance.outcome.conclusion import Terms
from tests.support import plain_http
from tests.support.browser import Browser, browser, missing
from tests.support.recorder import read_until_closed
from tests.support.trace_files import BREACHING, write

TIMEOUT_S = 60.0


class Live:
    """A recording that a test lets grow, its page, and its messages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.told: SimpleQueue[PageState | str] = SimpleQueue()
        self.growing = RecordingWatcher([str(path)], Terms(), self.told.put)
        self.url = ""

    def grow(self, count: int) -> PageState:
        """Let the recording hold its first `count` exchanges; return the state of the page then."""
        whole = write(self.path.with_suffix(".whole"), BREACHING).read_text().splitlines(keepends=True)
        lines = whole[: count + 1]
        held = self.path.read_text().count("\n") if self.path.exists() else 0
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write("".join(lines[held:]))
        while True:
            seen = self.told.get(timeout=TIMEOUT_S)
            if isinstance(seen, PageState) and seen.exchanges == count:
                return seen


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """A page of a recording that does not exist yet."""
    made = Live(tmp_path / "run.jsonl")
    with served(made.growing) as made.url, made.growing:
        yield made


def test_findings_are_reported_as_they_happen_and_each_once(live: Live) -> None:
    """Watch waits for a recording that does not exist yet, and writes each finding once, with its exchange."""
    assert live.grow(2).new == []
    first = live.grow(3).new
    assert [line for line in first if line.startswith("FAIL SIG-AGENT-002 #3:")]
    again = live.grow(5).new
    assert [line for line in again if line.startswith("FAIL SIG-AGENT-002 #4:")]
    assert not set(first) & set(again)


def test_an_unreadable_recording_is_reported_once(tmp_path: Path) -> None:
    """The watching thread continues with the other recordings."""
    told: SimpleQueue[PageState | str] = SimpleQueue()
    run = write(tmp_path / "run.jsonl", BREACHING)
    with RecordingWatcher(["x" * 300, str(run)], Terms(), told.put):
        complaint, seen = told.get(timeout=60), told.get(timeout=60)
    assert isinstance(complaint, str)
    assert "cannot be read: File name too long" in complaint
    assert isinstance(seen, PageState)
    assert seen.exchanges == len(BREACHING)


def test_the_page_and_its_states_are_served_below_the_token(live: Live) -> None:
    """The page names no other host; a request for a later state is answered when there is one."""
    seen = live.grow(3)
    page = plain_http.get(live.url)
    assert page.status_code == 200
    assert "connect-src 'self'" in page.text
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["x-frame-options"] == "DENY"
    told = plain_http.get(f"{live.url}version?after={seen.version - 1}").json()
    assert (told["version"], told["exchanges"], told["ended"]) == (seen.version, 3, False)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_another_page_gets_nothing(live: Live, headers: dict[str, str]) -> None:
    """A request for another host or from another origin gets an empty 404, even with the right token."""
    for address in (live.url, f"{live.url}version?after=0"):
        answer = plain_http.get(address, headers=headers)
        assert (answer.status_code, answer.text) == (404, "")


def test_without_the_token_there_is_nothing(live: Live) -> None:
    """Neither the root, nor a guess, nor an unknown name below the token shows that there is a page."""
    root = live.url.rsplit("/", 2)[0]
    for address in (f"{root}/", f"{root}/guess/", f"{root}/guess/version", f"{live.url}other"):
        answer = plain_http.get(address)
        assert (answer.status_code, answer.text) == (404, "")


def test_an_unknown_address_gets_404(live: Live, capfd: pytest.CaptureFixture[str]) -> None:
    """Any request of a program on this machine is answered, and nothing is printed."""
    address = urlsplit(live.url)
    with socket.create_connection(("127.0.0.1", address.port or 0)) as client:
        client.sendall(f"GET http://[/ HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
        assert read_until_closed(client).startswith(b"HTTP/1.0 404")
    assert capfd.readouterr().err == ""


def test_a_broken_recording_is_reported_once(live: Live) -> None:
    """An unreadable recording is named once; the page stays."""
    live.path.write_text("not a trace\n")
    complaint = live.told.get(timeout=TIMEOUT_S)
    assert isinstance(complaint, str)
    assert str(live.path) in complaint
    assert plain_http.get(live.url).status_code == 200


def test_a_port_that_is_taken_is_named(live: Live) -> None:
    """The error names the port."""
    port = httpx.URL(live.url).port or 0
    with pytest.raises(UsageError, match=f"127.0.0.1:{port}"), served(live.growing, port):
        pass


@pytest.mark.skipif(missing() is not None, reason=f"no browser: {missing()}")
def test_the_page_grows_under_its_reader(live: Live) -> None:
    """New exchanges and findings appear without a reload; the open exchange stays, with the focus."""
    live.grow(2)
    with browser() as window:
        window.visit(live.url)
        window.script("window.same = true; document.querySelector('#session-view button[data-seq=\"2\"]').click()")
        window.script("document.querySelector('#session-view button[data-seq=\"2\"]').focus()")
        live.grow(5)
        window.wait_for("document.querySelectorAll('#session-view button[data-seq]').length === 5")
        window.wait_for("document.querySelector('#live').textContent.includes('5 exchanges')")
        assert _told(window) == [True, "2", "#2 POST /api/hooks/session-start", True]
        assert window.complaints() == []
        asked = window.requests()
        assert asked
        assert [url for url in asked if not url.startswith(live.url)] == []


def _told(window: Browser) -> list[object]:
    told: list[object] = window.script("""
        return [window.same === true, document.activeElement.dataset.seq,
            document.querySelector("#exchange-view h3").textContent,
            document.querySelector("#breaches").textContent.includes("SIG-AGENT-002")];
    """)
    return told


def test_the_address_is_printed_before_anything_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is printed before the thread starts that prints findings."""
    looking: dict[str, bool] = {}

    class Heard(io.StringIO):
        def write(self, text: str) -> int:
            looking[text.partition(":")[0]] = any(thread.name == "signet watch" for thread in threading.enumerate())
            return len(text)

    monkeypatch.setattr(sys, "stderr", Heard())
    with watched([str(write(tmp_path / "run.jsonl", BREACHING))], Terms()):
        pass
    assert looking["watch it"] is False
    assert any("SIG-AGENT-002" in told for told in looking)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_command_ends_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    """It prints its address first, and ends with status 0 when it is interrupted or its terminal is closed."""
    path = write(tmp_path / "run.jsonl", BREACHING)
    words = [sys.executable, "-m", "signet_conformance.cli", "watch", str(path)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ}) as child:
        assert child.stderr is not None
        lines = iter(child.stderr.readline, "")
        address = next(line for line in lines if line.startswith("watch it: "))
        assert next(line for line in lines if "SIG-AGENT-002" in line)
        assert json.loads(plain_http.get(f"{address.split(': ')[1].strip()}version").text)["exchanges"] == 5
        child.send_signal(number)
        child.stderr.read()
        assert child.wait(TIMEOUT_S) == 0


def test_a_recording_that_is_not_there_yet_is_named(tmp_path: Path) -> None:
    """A misspelt name is shown in this message; a glob without a match is a note on one line."""
    words = [sys.executable, "-m", "signet_conformance.cli", "watch", "rnu.jsonl", "*.jsonl"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ}) as child:
        assert child.stderr is not None
        lines = [child.stderr.readline() for _ in range(4)]
        child.send_signal(signal.SIGINT)
        child.stderr.read()
        child.wait(TIMEOUT_S)
    assert "rnu.jsonl does not exist yet: waiting for it\n" in lines
    assert "note: *.jsonl: no file matches\n" in lines
