"""Sessions that processes left open at the daemon, and the next process that takes one up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from signet_reference_harness.chat.chat_session import ChatSession
from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.run.inputs import Folders
from signet_reference_harness.run.open_sessions import OpenMark, open_session
from signet_reference_harness.session.host import SessionHost
from tests.reference_harness.recording_daemon import END, Answer, RecordingDaemon

PROJECT = "/srv/atlas"


def test_of_the_ends_that_are_owed_one_is_tried_while_the_daemon_is_ill(
    daemon: RecordingDaemon, config: HarnessConfig, tmp_path: Path
) -> None:
    """Each of the others would take as long; all of them wait for the next process."""
    daemon.always["/health"] = Answer({"error": "ill"}, 500)
    folders = Folders(project=Path(PROJECT), state=tmp_path, sessions=tmp_path / "s", open_sessions=tmp_path / "open")
    folders.sessions.mkdir()
    folders.open_sessions.mkdir()

    async def taken_up() -> None:
        host = SessionHost(config)
        for key in ("k1", "k2"):
            left = host.session_for(key, project=PROJECT, agent="atlas", key=key)
            OpenMark.create(folders.open_sessions, left, folders.sessions / key).close()
        _, file = await open_session(host, SessionIdentity("k3", "atlas", PROJECT), folders, None, str)
        file.close()
        await host.client.aclose()

    asyncio.run(taken_up())
    assert [request.path for request in daemon.requests] == ["/health"]
    assert len(list(folders.open_sessions.iterdir())) == 2


def test_an_end_that_was_lost_in_a_chat_is_repeated_once(
    daemon: RecordingDaemon, config: HarnessConfig, tmp_path: Path
) -> None:
    """When the chat ends: no session that is taken up meanwhile, and no later process, ends that one too."""
    daemon.always[END] = Answer({"error": "ill"}, 500)
    folders = Folders(project=Path(PROJECT), state=tmp_path, sessions=tmp_path / "s", open_sessions=tmp_path / "open")
    folders.sessions.mkdir()
    folders.open_sessions.mkdir()

    async def chat() -> None:
        host = SessionHost(config)
        nobody: Any = None  # no turn is taken
        opened = ChatSession(host, nobody, folders, str, "no model")
        for key in ("k1", "k2"):
            await opened.switch_to(SessionIdentity(key, "atlas", PROJECT), None)
        del daemon.always[END]
        await opened.switch_to(SessionIdentity("k3", "atlas", PROJECT), None)
        await opened.end()
        await host.aclose()
        opened.close()

    def ends() -> list[str]:
        return [request.body["sessionKey"] for request in daemon.requests if request.path == END]

    asyncio.run(chat())
    assert sorted(ends()) == ["k1", "k1", "k2", "k3"]
    assert not list(folders.open_sessions.iterdir())
