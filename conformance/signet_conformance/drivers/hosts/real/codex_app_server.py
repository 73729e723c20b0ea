"""Codex by `codex app-server`, the core of its terminal program too: a process per session, JSON-RPC on its streams."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.conversation import Launch
from signet_conformance.drivers.hosts.real.json_rpc import JsonRpc
from signet_conformance.drivers.hosts.real.process import ProgramProcess, deadline_in
from signet_conformance.drivers.hosts.real.refusals import Refusal

QUIT_S = 40.0
_FIRST_S, _SERVERS_S = 2.0, 30.0
_REFUSES = re.compile(r"\b(fail|invalid|skip|ignor|unknown|unsupported|not supported)", re.IGNORECASE)
"""Words of a warning that says that a hook is refused. Other warnings, such as of a shortened timeout, are not."""
_ASKED_ABOUT = ("untrusted", "modified")
_FREE = {"approvalPolicy": "never", "sandbox": "danger-full-access"}


class CodexAppServer:
    """A thread of Codex."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._rpc: JsonRpc | None = None
        self._over = True
        self._thread: str | None = None
        self._words: list[str] = []
        self._refused: list[Refusal] = []
        self._servers: dict[str, str] = {}

    @property
    def key(self) -> str | None:
        """The id of the thread."""
        return self._thread

    @property
    def words(self) -> Sequence[str]:
        """Its output outside of the conversation."""
        return [*self._words, *(self._rpc.process.words if self._rpc is not None else ())]

    @property
    def refusals(self) -> Sequence[Refusal]:
        """Its complaints about hooks and about its configuration."""
        return self._refused

    def open(self) -> None:
        """Start it with a new thread."""
        rpc = self._start()
        self._trust_hooks(rpc)
        self._thread = _thread_id(rpc.ask("thread/start", {"cwd": str(self._launch.cwd), **_FREE}))
        self._await_servers(rpc)

    def resume(self) -> None:
        """Start it again with the thread that was left."""
        params = {"threadId": self._thread, "cwd": str(self._launch.cwd), **_FREE}
        rpc = self._start()
        self._thread = _thread_id(rpc.ask("thread/resume", params))
        self._await_servers(rpc)

    def say(self, text: str) -> None:
        """Begin a turn."""
        self._over = False
        self._running.ask("turn/start", {"threadId": self._thread, "input": [{"type": "text", "text": text}]})

    def is_over(self) -> bool:
        """Whether Codex has reported the turn as completed."""
        self._running.listen()
        if self._running.process.has_ended and not self._over:
            raise self._running.process.failure("Codex has ended")
        return self._over

    def compact(self) -> None:
        """Ask for a compaction of the thread, which Codex reports as a turn."""
        self._over = False
        self._running.ask("thread/compact/start", {"threadId": self._thread})

    def clear(self) -> None:
        """Leave the thread as Codex's own screen does, and begin a new one in the same process."""
        self._running.ask("thread/unsubscribe", {"threadId": self._thread})
        params = {"cwd": str(self._launch.cwd), "sessionStartSource": "clear", **_FREE}
        self._thread = _thread_id(self._running.ask("thread/start", params))

    def end(self, *, for_good: bool = True) -> None:
        """Leave the thread, and end the process; the thread stays in a file."""
        del for_good
        rpc, self._rpc = self._rpc, None
        if rpc is not None:
            self._over = True
            if not rpc.process.end(QUIT_S):
                raise StepError(
                    f"Codex did not end within {QUIT_S:g} s after its input had ended{rpc.process.last_words}"
                )

    @property
    def _running(self) -> JsonRpc:
        if self._rpc is None:
            raise StepError("no session is open: start it first")
        return self._rpc

    def _start(self) -> JsonRpc:
        launch = self._launch
        self._over = True
        process = ProgramProcess([*launch.command, "app-server"], launch.env, launch.cwd)
        self._rpc = rpc = JsonRpc("Codex", process, self._hear)
        rpc.ask("initialize", {"clientInfo": {"name": "signet-conformance", "version": "1"}})
        rpc.tell("initialized")
        return rpc

    def _trust_hooks(self, rpc: JsonRpc) -> None:
        """Record what Codex refuses of its hooks, and trust the hooks that it would ask its user about."""
        listed = rpc.ask("hooks/list", {"cwds": [str(self._launch.cwd)]}).get("data")
        asked_about: dict[str, Mapping[str, str]] = {}
        for row in listed if isinstance(listed, list) else []:
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
        """Wait until its memory servers run, as they do by the time that a user has typed a prompt."""
        begun, deadline = deadline_in(_FIRST_S), deadline_in(_SERVERS_S)
        while time.monotonic() < (deadline if "starting" in self._servers.values() else begun):
            rpc.listen()
            if self._servers and "starting" not in self._servers.values():
                return
            time.sleep(0.05)

    def _hear(self, said: Mapping[str, Any]) -> None:
        params = said.get("params")
        params = params if isinstance(params, dict) else {}
        match said.get("method"):
            case "turn/completed":
                self._over = True
                turn = params.get("turn")
                error = turn.get("error") if isinstance(turn, dict) else None
                if error:
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
        raise StepError("Codex told no id of the thread that it began")
    return str(thread["id"])
