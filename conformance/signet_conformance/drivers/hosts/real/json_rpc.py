"""JSON-RPC over the streams of a program, and sessions of programs that speak it: Codex, Hermes, and what ACP needs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.conversation import Launch, ProcessConversation
from signet_conformance.drivers.hosts.real.process import ProgramProcess, deadline_in
from signet_conformance.drivers.hosts.real.refusals import Refusal
from signet_conformance.files.json_values import list_in, member_of, object_in

ANSWER_S = 200.0


class JsonRpc(ProgramProcess):
    """A program that speaks JSON-RPC. `on_message` gets its notifications; each request of the program is granted."""

    def __init__(
        self, title: str, command: Sequence[str], launch: Launch, on_message: Callable[[Mapping[str, Any]], None]
    ) -> None:
        super().__init__(command, launch.env, launch.cwd)
        self._title = title
        self._on_message = on_message
        self._next = 0

    def ask(self, method: str, params: Mapping[str, Any], timeout_s: float | None = None) -> Mapping[str, Any]:
        """Call a method and return its result, by default within ANSWER_S.

        Raises StepError with the program's words when it refuses, or does not answer.
        """
        timeout_s = ANSWER_S if timeout_s is None else timeout_s
        number = self.begin(method, params)
        said = self.await_message(lambda said: said.get("id") == number and "method" not in said, self._hear, timeout_s)
        if said is None:
            raise self.failure(f"{self._title} did not answer {method} within {timeout_s:g} s")
        if "error" in said:
            raise StepError(f"{self._title} refused {method}: {str(said['error'])[:500]}")
        return object_in(said.get("result"))

    def begin(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request without waiting; its answer is a message with the number that this returns."""
        self._next += 1
        self.send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def tell(self, method: str) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method})

    def listen(self) -> None:
        """Handle the messages that have arrived."""
        while (message := self.receive(0)) is not None:
            self._hear(message)

    def _hear(self, said: Mapping[str, Any]) -> None:
        if "method" in said and "id" in said:
            answer = {"decision": "accept", "action": "accept", "content": {}}
            self.send({"jsonrpc": "2.0", "id": said["id"], "result": answer})
        else:
            self._on_message(said)


class RpcSession(ProcessConversation[JsonRpc]):
    """A session with a program that speaks JSON-RPC."""

    def _listen(self, process: JsonRpc) -> None:
        process.listen()

    def _launch_rpc(self, *words: str) -> JsonRpc:
        self._process = JsonRpc(self.title, [*self._launch.command, *words], self._launch, self._hear)
        return self._process

    def _hear(self, said: Mapping[str, Any]) -> None:
        """Handle a message of the program that answers no waiting call."""
        raise NotImplementedError


class AcpSession(RpcSession):
    """A session of a program that speaks the Agent Client Protocol; a subclass defines how to resume and clear it."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._turn: int | None = None

    def say(self, text: str) -> None:
        """Begin a turn."""
        prompt = [{"type": "text", "text": text}]
        self._over = False
        self._turn = self._running.begin("session/prompt", {"sessionId": self._id, "prompt": prompt})

    def compact(self) -> None:
        """Type its own command."""
        self.say("/compact")

    def _begin(self, rpc: JsonRpc) -> str:
        """Make a session, or open the one that the command names; return its id."""
        params: dict[str, Any] = {"cwd": str(self._launch.cwd), "mcpServers": []}
        return str(rpc.ask("session/new", params).get("sessionId"))

    def _start(self, *words: str) -> JsonRpc:
        rpc = self._launch_rpc(*words)
        rpc.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        return rpc

    def _hear(self, said: Mapping[str, Any]) -> None:
        if said.get("id") == self._turn and "method" not in said:
            self._over = True


BUSY_S = 60.0
"""How long to wait for a provider's own work after a turn's answer, as a reading user would."""


class HermesAcp(AcpSession):
    """A session of Hermes: `hermes acp`, one process a session."""

    title = "Hermes"
    _answered_at: float | None = None

    def open(self) -> None:
        """Start it with a new session."""
        self._id = self._begin(self._start("acp"))

    def say(self, text: str) -> None:
        """Begin a turn."""
        self._answered_at = None
        super().say(text)

    def is_over(self) -> bool:
        """Whether the prompt was answered, and the provider has stored the turn and prefetched for the next one.

        Threads do that work; without the wait, the next step's fault might meet it by chance.
        """
        if not super().is_over():
            return False
        if self._answered_at is None:
            self._answered_at = time.monotonic()
        return not self._launch.observed.busy or time.monotonic() > self._answered_at + BUSY_S

    def resume(self) -> None:
        """Start it with the session that was left."""
        params: dict[str, Any] = {"sessionId": self._id, "cwd": str(self._launch.cwd), "mcpServers": []}
        self._start("acp").ask("session/load", params)

    def clear(self) -> None:
        """Begin a new session in the same process."""
        self._id = self._begin(self._running)


_FIRST_S, _SERVERS_S = 2.0, 30.0
_REFUSES = re.compile(r"\b(fail|invalid|skip|ignor|unknown|unsupported|not supported)", re.IGNORECASE)
"""Words of warnings that a hook is refused. Others, such as about a shortened timeout, lack them."""
_ASKED_ABOUT = ("untrusted", "modified")
_FREE = {"approvalPolicy": "never", "sandbox": "danger-full-access"}


class CodexAppServer(RpcSession):
    """A thread of Codex by `codex app-server`, the core of its terminal program too; a process per session."""

    title = "Codex"

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._servers: dict[str, str] = {}

    def open(self) -> None:
        """Start it with a new thread."""
        rpc = self._start()
        self._trust_hooks(rpc)
        self._id = _thread_id(rpc.ask("thread/start", {"cwd": str(self._launch.cwd), **_FREE}))
        self._await_servers(rpc)

    def resume(self) -> None:
        """Start it again with the thread that was left."""
        params = {"threadId": self._id, "cwd": str(self._launch.cwd), **_FREE}
        rpc = self._start()
        self._id = _thread_id(rpc.ask("thread/resume", params))
        self._await_servers(rpc)

    def say(self, text: str) -> None:
        """Begin a turn."""
        self._over = False
        self._running.ask("turn/start", {"threadId": self._id, "input": [{"type": "text", "text": text}]})

    def compact(self) -> None:
        """Ask for a compaction of the thread, which Codex reports as a turn."""
        self._over = False
        self._running.ask("thread/compact/start", {"threadId": self._id})

    def clear(self) -> None:
        """Leave the thread as Codex's own screen does, and begin a new one in the same process."""
        self._running.ask("thread/unsubscribe", {"threadId": self._id})
        params = {"cwd": str(self._launch.cwd), "sessionStartSource": "clear", **_FREE}
        self._id = _thread_id(self._running.ask("thread/start", params))

    def _start(self) -> JsonRpc:
        rpc = self._launch_rpc("app-server")
        rpc.ask("initialize", {"clientInfo": {"name": "signet-conformance", "version": "1"}})
        rpc.tell("initialized")
        return rpc

    def _trust_hooks(self, rpc: JsonRpc) -> None:
        """Record the hooks that Codex refuses, and trust those about which it would ask its user."""
        listed = rpc.ask("hooks/list", {"cwds": [str(self._launch.cwd)]}).get("data")
        asked_about: dict[str, Mapping[str, str]] = {}
        for row in list_in(listed):
            self._refused += [Refusal(str(error["path"]), str(error["message"])) for error in row["errors"]]
            self._refused += [Refusal("hooks.json", str(each)) for each in row["warnings"] if _REFUSES.search(each)]
            asked_about |= {
                hook["key"]: {"trusted_hash": hook["currentHash"]}
                for hook in row["hooks"]
                if hook.get("trustStatus") in _ASKED_ABOUT
            }
        if asked_about:
            edit = {"keyPath": "hooks.state", "value": asked_about, "mergeStrategy": "upsert"}
            rpc.ask("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})

    def _await_servers(self, rpc: JsonRpc) -> None:
        """Wait until its memory servers run, as they would before a user has typed a prompt."""
        begun, deadline = deadline_in(_FIRST_S), deadline_in(_SERVERS_S)
        while time.monotonic() < (deadline if "starting" in self._servers.values() else begun):
            rpc.listen()
            if self._servers and "starting" not in self._servers.values():
                return
            time.sleep(0.05)

    def _hear(self, said: Mapping[str, Any]) -> None:
        params = object_in(said.get("params"))
        match said.get("method"):
            case "turn/completed":
                self._over = True
                if error := member_of(params, "turn", "error"):
                    self._words.append(str(error)[:300])
            case "configWarning" if params.get("path"):
                self._refused.append(Refusal(str(params["path"]), str(params.get("summary"))))
            case "mcpServer/startupStatus/updated":
                self._servers[str(params.get("name"))] = str(params.get("status"))
                if params.get("status") == "failed":
                    self._refused.append(Refusal("config.toml", f"{params.get('name')}: {params.get('error')}"))
            case "error" | "warning" | "deprecationNotice" | "configWarning":
                self._words.append(str(params)[:300])


def _thread_id(answer: Mapping[str, Any]) -> str:
    thread = answer.get("thread")
    if not isinstance(thread, dict) or not isinstance(thread.get("id"), str):
        raise StepError("Codex gave no id for the thread that it began")
    return str(thread["id"])
