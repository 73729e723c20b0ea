"""A file for each session that is open at the daemon, so that another process ends the sessions of a killed one.

The file exists from before the session's start until its end was accepted. The process that has the session open keeps
it locked; if it is not locked, that process is dead, or the daemon did not accept the session's end.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from signet_reference_harness import kept_lines
from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.errors import ConfigError, IdentityError, os_errors
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.run.inputs import Folders
from signet_reference_harness.run.session_file import SessionFile, StoredSession, read_session
from signet_reference_harness.session import Session
from signet_reference_harness.session.conversation import Conversation
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.session.lifecycle import Lifecycle

SUFFIX: Final = ".json"
POLL_S: Final = 0.05
"""How often to check whether another process has ended a session."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """The identity of the session, the origin of its daemon, and the file with its conversation."""

    session: str
    agent: str
    project: str
    daemon: str
    file: str


class OpenMark(kept_lines.HeldFile):
    """The file of an open session, locked by this process. :meth:`release` it."""

    def __init__(self, path: Path, handle: int, session: OpenSession) -> None:
        super().__init__(path, handle)
        self.session = session

    @classmethod
    def create(cls, folder: Path, session: Lifecycle, file: Path) -> Self:
        """Mark a session as open, before it is started at the daemon. Raises ConfigError.

        The caller has the session's file open, so that no other process marks it too.
        """
        identity, daemon = session.identity, session.client.config.origin
        of = OpenSession(identity.key, identity.agent, identity.project, daemon, str(file))
        path = folder / f"{sha256(f'{of.daemon} {of.session}'.encode()).hexdigest()[:32]}{SUFFIX}"
        with os_errors(f"{path}: cannot be written", "give --state-dir a folder of yours on a disk with room"):
            return cls(path, kept_lines.put_in_place(path, [kept_lines.as_line(asdict(of), str)]), of)

    @classmethod
    async def abandoned_in(cls, folder: Path, daemon: str, own: str, *, seized: bool) -> AsyncIterator[Self]:
        """Yield the sessions at that daemon that dead processes have left open; each now belongs to this process.

        `own` is the key of the session that this process is about to open. If another process has that locked, it is
        ending it, and this waits for it; with `seized` that process is stuck, and counts as dead.
        """
        for path in _files(folder):
            with suppress(OSError, ValueError, TypeError):
                handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    of = OpenSession(**json.loads(path.read_bytes()))
                    ours = of.session == own
                    while not (locked := kept_lines.lock(handle)) and ours and not seized:  # noqa: ASYNC110 - it is a process
                        await asyncio.sleep(POLL_S)
                    current = os.fstat(handle).st_ino == path.stat().st_ino
                    if of.daemon == daemon and current and (locked or ours):
                        mark, handle = cls(path, handle, of), -1
                        yield mark
                finally:
                    if handle >= 0:
                        os.close(handle)

    def release(self, *, owed: bool) -> None:
        """Close the file, and remove it unless the end is still `owed`: then it stays for the next process."""
        if not owed:
            self.remove()
        self.close()


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{SUFFIX}"))


async def open_session(
    host: SessionHost,
    identity: SessionIdentity,
    folders: Folders,
    stored: StoredSession | None,
    scrub: kept_lines.Scrub,
    *,
    seized: bool = False,
) -> tuple[Session, SessionFile]:
    """Return a session with its `stored` conversation, and its file, after ending the sessions that were left open.

    Raises ConfigError if another process works in the session, unless that process is stuck (`seized`).
    """
    size = 0 if stored is None else stored.size
    file = SessionFile.open(folders.sessions, identity, scrub, size=size, seize=seized)
    try:
        await _end_abandoned(host.client, folders.open_sessions, identity.key, seized=seized)
        session = host.session_for(identity.key, project=identity.project, agent=identity.agent, key=identity.key)
    except BaseException:
        file.close()
        raise
    session.results = file.results
    if stored is not None:
        session.conversation = stored.conversation
    return session, file


async def _end_abandoned(client: AdapterClient, folder: Path, own: str, *, seized: bool) -> None:
    """End each session that :meth:`OpenMark.abandoned_in` finds, with the conversation in its file.

    If the daemon does not answer one end, the others are left to the next process, since each would wait as long.
    """
    async for mark in OpenMark.abandoned_in(folder, client.config.origin, own, seized=seized):
        owed = True
        try:
            identity = SessionIdentity(mark.session.session, mark.session.agent, mark.session.project)
            left = Lifecycle(identity, client, lambda: 0, conversation=_conversation(Path(mark.session.file)))
            await left.end_abandoned()
            owed = left.owes_end
        except IdentityError:
            owed = False
        finally:
            mark.release(owed=owed)
        if owed and not client.is_answering:
            return


def _conversation(file: Path) -> Conversation:
    """Read the conversation from the session's file; it is empty if the file cannot be read."""
    try:
        return read_session(file).conversation
    except ConfigError:
        return Conversation()
