"""Programs that speak lines of JSON on their streams, one process a session: Claude Code, pi and oh-my-pi."""

from __future__ import annotations

import json
import time
import uuid
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signet_conformance.drivers.hosts.observing import await_hook
from signet_conformance.drivers.hosts.protocol import Skipped, StepError
from signet_conformance.drivers.hosts.real.conversation import Launch, ProcessConversation
from signet_conformance.drivers.hosts.real.process import ProgramProcess, deadline_in
from signet_conformance.drivers.hosts.real.refusals import Refusal
from signet_conformance.files.json_values import member_of, object_in

START_S = 200.0


class LinesProcess(ProcessConversation[ProgramProcess]):
    """A session with a program that speaks lines of JSON on its streams, and quits when its input ends."""

    def _listen(self, process: ProgramProcess) -> None:
        while (line := process.receive(0)) is not None:
            self._take(line)

    @abstractmethod
    def _take(self, said: Mapping[str, Any]) -> None:
        """Take in one line that the program says."""


HOOK_S = 25.0
"""Longer than a hook for the start takes that waits for a daemon without an answer."""
UNOBSERVED_S = 3.0
_OPTIONS = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
_INITIALIZE = {"type": "control_request", "request_id": "begin", "request": {"subtype": "initialize", "hooks": {}}}
_SERVERS = {"type": "control_request", "request_id": "servers", "request": {"subtype": "mcp_status"}}
_LOOK_S = 0.1
_NO_CONVERSATION = "No conversation found"
"""The program's last words when it is to resume a session that it does not know."""


class ClaudeStream(LinesProcess):
    """A session of Claude Code: `claude -p` with JSON on both streams. A turn ends with a `result`."""

    title = "Claude Code"

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._id: str = str(uuid.uuid4())

    def open(self) -> None:
        """Start it in a session whose id is ours."""
        self._start("--session-id", self._id)

    def resume(self) -> None:
        """Start it with the id of the session."""
        self._start("--resume", self._id)

    def say(self, text: str) -> None:
        """Send what the user says."""
        self._over = False
        message = {"role": "user", "content": text}
        self._running.send({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": self._id})

    def compact(self) -> None:
        """Type its own command."""
        self.say("/compact")

    def clear(self) -> None:
        """Type its own command; a new session has an id of its own."""
        self.say("/clear")
        # Each look takes in what the program has said.
        while not self.is_over():
            time.sleep(_LOOK_S)

    def _start(self, *more: str) -> None:
        launch = self._launch
        self._process = process = ProgramProcess([*launch.command, *_OPTIONS, *more], launch.env, launch.cwd)
        hooks_before, deadline = launch.observed.hooks_ended(), deadline_in(START_S)
        process.send(_INITIALIZE)
        if process.await_message(_is_response, lambda _said: None, START_S) is None:
            if any(_NO_CONVERSATION in words for words in process.words):
                raise Skipped(f"Claude Code: {_NO_CONVERSATION}: it does not keep a session in which nothing was said")
            raise StepError(f"Claude Code did not begin its session{process.last_words}")
        # It reports a hook for the start only with the first turn. A user types after it.
        self._await_start(hooks_before)
        self._await_servers(process, deadline)

    def _await_start(self, hooks_before: int) -> None:
        """Wait for the hook of the start, if there is one; a command that is not observed gets a while."""
        settings = Path(self._launch.env["HOME"]) / ".claude" / "settings.json"
        try:
            rows = json.loads(settings.read_bytes())["hooks"]["SessionStart"]
            commands = [str(hook["command"]) for row in rows for hook in row["hooks"]]
        except (OSError, ValueError, LookupError, TypeError):
            return
        if any(set(command.split()[:1]) & self._launch.observed.names for command in commands):
            await_hook(self._launch.observed, hooks_before, HOOK_S)
        elif commands:
            time.sleep(UNOBSERVED_S)

    def _await_servers(self, process: ProgramProcess, deadline: float) -> None:
        """Wait until no memory server is still starting: in a turn before that the model has no tools of theirs."""
        while (left_s := deadline - time.monotonic()) > 0:
            process.send(_SERVERS)
            said = process.await_message(_is_response, self._take, left_s)
            servers = member_of(said, "response", "response", "mcpServers")
            # A release that does not know the question refuses it.
            if not any(server.get("status") == "pending" for server in servers or ()):
                return
            # The program tells of a server only when it is asked.
            time.sleep(_LOOK_S)

    def _take(self, said: Mapping[str, Any]) -> None:
        session = said.get("session_id")
        if isinstance(session, str):
            self._id = session
        if said.get("type") == "result":
            self._over = True
            if said.get("is_error"):
                self._words.append(str(said.get("result") or said.get("subtype"))[:300])


def _is_response(said: Mapping[str, Any]) -> bool:
    return said.get("type") == "control_response"


class PiRpc(LinesProcess):
    """A session of pi or oh-my-pi: `--mode rpc`. Its RPC has no command that quits: the end of its input does."""

    title = "pi"

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._file: str | None = None

    def open(self) -> None:
        """Start it, and wait for its state."""
        self._start()

    def resume(self) -> None:
        """Start it with the session's file."""
        self._start(*(("--session", self._file) if self._file is not None else ()))

    def say(self, text: str) -> None:
        """Prompt it."""
        self._over = False
        self._running.send({"id": "prompt", "type": "prompt", "message": text})

    def compact(self) -> None:
        """Have it compact."""
        self._over = False
        self._running.send({"id": "compact", "type": "compact"})

    def clear(self) -> None:
        """Begin a new session in the same process."""
        self._ask("new_session")
        self._learn()

    def _start(self, *more: str) -> None:
        launch = self._launch
        self._process = ProgramProcess([*launch.command, "--mode", "rpc", *more], launch.env, launch.cwd)
        self._learn()

    def _learn(self) -> None:
        state = self._ask("get_state")
        self._file, self._id = state.get("sessionFile"), state.get("sessionId")

    def _ask(self, command: str) -> Mapping[str, Any]:
        process = self._running
        process.send({"id": command, "type": command})
        said = process.await_message(
            lambda said: said.get("type") == "response" and said.get("id") == command, self._take, START_S
        )
        if said is None:
            raise process.failure(f"pi did not answer {command} within {START_S:g} s")
        if said.get("success") is not True:
            raise StepError(f"pi refused {command}: {said.get('error')}")
        return object_in(said.get("data"))

    def _take(self, said: Mapping[str, Any]) -> None:
        kind = said.get("type")
        if kind == "agent_end" and not said.get("willRetry"):
            self._over = True
        elif kind == "response" and said.get("id") in ("prompt", "compact"):
            refused = said.get("success") is not True
            self._over = self._over or refused or said.get("id") == "compact"
            if refused:
                self._words.append(f"{said.get('command')}: {said.get('error')}")
        elif kind == "extension_error":
            self._words.append(f"extension_error: {said.get('event')}: {said.get('error')}")
            if said.get("event") in (None, "load"):
                self._refused.append(Refusal(str(said.get("extensionPath")), str(said.get("error"))))
