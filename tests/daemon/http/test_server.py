"""The daemon as a program: its ready line, its ends, and what it refuses to touch."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

import signet_conformance
from signet_conformance.children.environment import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMMAND = (sys.executable, "-m", "signet_conformance.daemon")
FOR_USERS = (sys.executable, "-m", "signet_conformance.cli", "daemon")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(signet_conformance.__file__).parents[1])}


@contextmanager
def serving(
    *arguments: str, command: Sequence[str] = COMMAND, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A running daemon and its ready line."""
    process = subprocess.Popen(
        [*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**ENVIRONMENT, **variables}, start_new_session=True,
    )  # fmt: skip
    assert process.stdout
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.terminate()  # so that it removes its folder
        try:
            process.communicate(timeout=180)
        finally:
            process.kill()


def refused(*arguments: str) -> str:
    """What the daemon says when it will not start; its status is 2 and nothing is printed on stdout."""
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, env=ENVIRONMENT, timeout=180, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_ends_it_cleanly(number: signal.Signals) -> None:
    """One JSON line says where it is; a signal ends it with status 0 and removes the temporary workspace."""
    with serving() as (process, ready):
        assert ready["version"] == "0.145.7"
        assert httpx.get(f"{ready['url']}/health").json()["agentsDir"] == ready["workspace"]
        assert Path(ready["workspace"], "memories.db").exists()
        process.send_signal(number)
        rest, errors = process.communicate(timeout=180)
        assert (process.returncode, rest, errors) == (0, "", "")
    assert not Path(ready["workspace"]).exists()


def test_closed_stdin_ends_it() -> None:
    """With --until-stdin-closes a dead parent leaves no daemon behind."""
    with serving("--until-stdin-closes") as (process, _):
        process.communicate(timeout=180)
        assert process.returncode == 0


def test_peer_is_that_of_the_socket() -> None:
    """The mode hybrid trusts this machine, and believes no header that names another one as the client."""
    with serving("--auth", "hybrid", command=FOR_USERS) as (_, ready):
        headers = {"x-forwarded-for": "203.0.113.9"}
        assert httpx.get(f"{ready['url']}/api/memories", headers=headers).status_code == 200
        assert httpx.get(f"{ready['url']}/api/auth/whoami", headers=headers).json()["trustedLocal"] is True


def test_workspace_is_kept(tmp_path: Path) -> None:
    """A named workspace keeps its memories from one daemon to the next."""
    for expected in (0, 1):
        with serving("--workspace", str(tmp_path)) as (_, ready):
            stats = httpx.get(f"{ready['url']}/api/memories").json()["stats"]
            assert stats["total"] == expected
            httpx.post(f"{ready['url']}/api/memory/remember", json={"content": "kept"})


def test_port_in_use_is_refused() -> None:
    """A port of another program is named, with what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = refused("--port", str(port))
    assert f"127.0.0.1:{port}: the port is in use by another program" in message
    assert "try: name another one: --port 0 takes a free one" in message


def test_port_is_that_of_the_environment() -> None:
    """A real daemon listens at SIGNET_PORT; the option says more."""
    port = str(free_port())
    with serving(command=FOR_USERS, SIGNET_PORT=port) as (_, ready):
        assert ready["url"] == f"http://127.0.0.1:{port}"
        with serving("--port", "0", command=FOR_USERS, SIGNET_PORT=port) as (_, other):
            assert other["url"] != ready["url"]


@pytest.mark.parametrize("host", ["::", "192.0.2.1", "example.org"])
def test_other_hosts_need_a_flag(host: str) -> None:
    """Addresses that other machines can reach are refused without --allow-remote."""
    assert "--allow-remote" in refused("--host", host)


def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    """A memories.db that the kit did not make is neither changed nor replaced."""
    text, other = tmp_path / "text", tmp_path / "other"
    text.mkdir()
    other.mkdir()
    (text / "memories.db").write_text("somebody's notes")
    with sqlite3.connect(other / "memories.db") as connection:
        connection.execute("CREATE TABLE memories (id TEXT)")
    connection.close()
    for folder in (text, other):
        before = (folder / "memories.db").read_bytes()
        assert "was not made by the embedded daemon" in refused("--workspace", str(folder))
        assert (folder / "memories.db").read_bytes() == before
        assert [path.name for path in folder.iterdir()] == ["memories.db"]


def test_a_file_is_no_workspace(tmp_path: Path) -> None:
    """A workspace that cannot be a folder is refused with its path."""
    path = tmp_path / "file"
    path.write_text("x")
    assert str(path) in refused("--workspace", str(path))
