"""A run writes into no workspace but its own, unless that is allowed, and leaves no daemon behind."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from signet_conformance.children.environment import TAG, tagged_ids
from signet_conformance.children.watchdog import WATCHDOG_VARIABLE
from signet_conformance.errors import NothingTestedError, UsageError
from signet_conformance.running.daemon import DaemonUnderTest, demand_consent
from tests.support.processes import wait_until

SERVER = """
import http.server, json, os, sys
workspace = %s
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"status": "healthy", "version": "0.145.7", "agentsDir": workspace}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
open(os.path.join(os.environ["SIGNET_PATH"], "environment.json"), "w").write(json.dumps(dict(os.environ)))
http.server.HTTPServer((os.environ["SIGNET_HOST"], int(os.environ["SIGNET_PORT"])), Health).serve_forever()
"""
OWN = 'os.environ["SIGNET_PATH"]'
DETACHED = """
import os, sys, time
if os.fork():
    time.sleep(%s)
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for stream in (0, 1, 2):
    os.close(stream)
os.execv(sys.executable, [sys.executable, %r])
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[str]:
    """The address of a daemon that somebody runs: an embedded one."""
    command = [sys.executable, "-m", "signet_conformance.daemon", "--until-stdin-closes"]
    command += ["--workspace", str(tmp_path / "theirs")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.stdin.close()


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`signet-conformance run reference` with one short scenario."""
    scenario = {"name": "short", "steps": [{"step": "start", "session": "s1", "project": "/p"}]}
    (cwd / "short.json").write_text(json.dumps(scenario))
    command = [sys.executable, "-m", "signet_conformance.cli", "run", "reference", "--scenario", "short.json", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_a_daemon_at_an_address_is_not_written_to(daemon: str, tmp_path: Path) -> None:
    """Status 2: whose workspace it is, what the run would do there, how to allow it; nothing was sent but /health."""
    done = run("--daemon", daemon, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    for told in (f"daemon {daemon}", str(tmp_path / "theirs"), "the run would write", "--allow-writes"):
        assert told in done.stderr
    assert httpx.get(f"{daemon}/api/secrets").json()["secrets"] == []


def test_a_daemon_at_an_address_is_written_to_where_that_is_allowed(daemon: str, tmp_path: Path) -> None:
    """The run says first into which workspace it writes."""
    done = run("--daemon", daemon, "--allow-writes", cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    assert f"writing into daemon {daemon}: version 0.145.7, workspace {tmp_path / 'theirs'}" in done.stderr
    assert httpx.get(f"{daemon}/api/secrets").json()["secrets"] != []


def test_the_face_says_how_writing_is_allowed(daemon: str) -> None:
    """The remedy names the option as it is spelt where the run was started."""
    with pytest.raises(UsageError) as refusal:
        demand_consent(daemon, print, allowed=False, option="--signet-allow-writes")
    assert "--signet-allow-writes" in str(refusal.value)


def test_a_command_gets_a_workspace_of_its_own(tmp_path: Path) -> None:
    """Port, host, workspace and home by variables; what else the user's environment says of Signet stays away."""
    (tmp_path / "daemon.py").write_text(SERVER % OWN)
    folder = tmp_path / "own"
    folder.mkdir()
    under_test = DaemonUnderTest(f"{sys.executable} {tmp_path / 'daemon.py'}", folder)
    under_test.start()
    seen = json.loads((folder / "environment.json").read_text())
    under_test.close()
    assert {seen[name] for name in ("SIGNET_PATH", "SIGNET_WORKSPACE", "HOME")} == {str(folder)}
    assert under_test.url == f"http://{seen['SIGNET_HOST']}:{seen['SIGNET_PORT']}"
    assert {name for name in seen if name.startswith("SIGNET_")} == {
        *("SIGNET_PATH", "SIGNET_WORKSPACE", "SIGNET_HOST", "SIGNET_PORT", TAG, WATCHDOG_VARIABLE)
    }
    assert tagged_ids(seen[TAG]) == []


def test_a_command_that_keeps_to_another_workspace_is_refused(tmp_path: Path) -> None:
    """A daemon that heeds no variable would write into the user's own memories."""
    (tmp_path / "daemon.py").write_text(SERVER % repr("/somewhere/else"))
    (tmp_path / "own").mkdir()
    under_test = DaemonUnderTest(f"{sys.executable} {tmp_path / 'daemon.py'}", tmp_path / "own")
    with pytest.raises(UsageError, match="/somewhere/else"):
        under_test.start()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{under_test.url}/health")


@pytest.mark.parametrize("lingers_s", ["0", "3"])
def test_a_command_that_goes_into_the_background_is_refused(tmp_path: Path, lingers_s: str) -> None:
    """Status 2 and why, whether it ends before its daemon answers or later; its daemon is ended."""
    (tmp_path / "daemon.py").write_text(SERVER % OWN)
    (tmp_path / "detached.py").write_text(DETACHED % (lingers_s, str(tmp_path / "daemon.py")))
    (tmp_path / "own").mkdir()
    under_test = DaemonUnderTest(f"{sys.executable} {tmp_path / 'detached.py'}", tmp_path / "own")
    with pytest.raises(UsageError, match="background"):
        under_test.start()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{under_test.url}/health")


def test_a_command_that_ends_is_no_daemon_in_the_background(tmp_path: Path) -> None:
    """Where nothing is left of it, it ended before it answered."""
    (tmp_path / "own").mkdir()
    with pytest.raises(NothingTestedError, match="ended before it answered"):
        DaemonUnderTest("true", tmp_path / "own").start()


def test_marked_processes_are_found_wherever_they_went() -> None:
    """Not those of other marks."""
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"],
        stdin=subprocess.PIPE,
        env={**os.environ, TAG: "of-this-test"},
        start_new_session=True,
    )
    try:
        wait_until(lambda: tagged_ids("of-this-test") == [child.pid], "the child was not found")
        assert tagged_ids("of-this") == []
    finally:
        child.communicate(b"\n")


def test_a_command_that_ended_is_to_be_looked_at(tmp_path: Path) -> None:
    """With the end of its standard error, which is told to be that."""
    with pytest.raises(NothingTestedError) as refused:
        DaemonUnderTest(f"{sys.executable} -c {shlex.quote('raise SystemExit(7 * chr(55))')}", tmp_path).start()
    told = "run the command by hand, or use --daemon embedded; its standard error ends with:\n    7777777"
    assert refused.value.remedy == told


def test_a_command_that_goes_on_and_is_not_reached_listens_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has to take the port that it was given."""
    monkeypatch.setattr("signet_conformance.running.daemon.READY_TIMEOUT_S", 0.5)
    with pytest.raises(NothingTestedError, match="no daemon answers GET") as refused:
        DaemonUnderTest(f"{sys.executable} -c {shlex.quote('import sys; sys.stdin.read()')}", tmp_path).start()
    assert refused.value.remedy == "let the command listen at the port in SIGNET_PORT, or use --daemon embedded"
