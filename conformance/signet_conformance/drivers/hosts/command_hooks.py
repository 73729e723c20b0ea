"""A harness that runs a connector's commands: Claude Code, Codex, Kimi, Muse Code.

    python -m signet_conformance.drivers.hosts.command_hooks FACE.json MODULE OPTIONS

The connector's own installer writes its hooks into an empty home, or the option `config` names a file that
holds them. Each event of a step runs the hooks that are configured for it, with the harness's JSON on stdin.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from signet_conformance.drivers.hosts.hook_process import HookRun, blocks, run_hook
from signet_conformance.drivers.hosts.hook_settings import lacking, read_hooks, refusal, remarks
from signet_conformance.drivers.hosts.installed import install, mcp_command
from signet_conformance.drivers.hosts.mcp_server import McpServer
from signet_conformance.drivers.hosts.places import Projects, with_programs
from signet_conformance.drivers.hosts.protocol import Peer, Skipped, StepError
from signet_conformance.drivers.hosts.tools import keep_back, use_tool
from signet_conformance.drivers.hosts.transcript import Transcript


class Session:
    """One session of the harness: its id, its transcript, what the turn under way still has to say."""

    def __init__(self, face: Mapping[str, Any], cwd: Path, agent: object) -> None:
        self.cwd = cwd
        self.agent = agent if isinstance(agent, str) else None
        self.renew(face)
        self.server: McpServer | None = None
        self.said = False
        self.blocked = False

    def renew(self, face: Mapping[str, Any]) -> None:
        """A new native session in the same folder."""
        self.id = str(uuid.uuid4())
        # Not every harness lets a hook read what was said.
        self.transcript = Transcript(face["transcript"], self.id, self.cwd) if "transcript" in face else None
        self.turn_id = str(uuid.uuid4())
        self.reply: str | None = None


class CommandHooks:
    """Performs steps by running the configured hooks."""

    def __init__(self, face: Mapping[str, Any], module: str, options: Mapping[str, Any], peer: Peer) -> None:
        self._face = face
        self._options = options
        self._peer = peer
        self._sessions: dict[str, Session] = {}
        self._projects = Projects()
        home = Path.home()
        self._env = {**os.environ, "PATH": with_programs(options.get("programs", {}), home / ".signet-conformance-bin")}
        settings = home / face["settings"] if "config" not in options else Path(options["config"])
        if "config" not in options and not settings.exists():
            # Where hooks inherit nothing, what they need has to be written down.
            install(options["install"], module, self._env, remote="environment" in face)
        self._hooks = read_hooks(settings, face)
        self._settings = settings
        self._runs: list[HookRun] = []

    @property
    def _name(self) -> str:
        return f"{self._face['harness']}-{self._face['version']}"

    def about(self) -> Mapping[str, Any]:
        """The hooks that are installed, whether the harness takes their file, and what is remarkable about it.

        A file that the harness refuses is read all the same, so that the run shows what else is wrong.
        """
        words = refusal(self._settings, self._face)
        said = (
            []
            if words is None
            else [f"{self._name} refuses {self._settings.name} ({words}), and runs none of its hooks"]
        )
        installed = {
            "file": self._settings.name,
            "accepted": words is None,
            **({} if words is None else {"words": words}),
        }
        return {
            "harness": self._face["harness"],
            "face": self._name,
            "events": sorted(self._hooks),
            "installed": [installed],
            "unheard": [*said, *lacking(self._hooks, self._options.get("capabilities", ()))],
            "remarks": remarks(self._hooks, self._face),
        }

    def perform(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform one step; the result tells each hook's status, duration and output."""
        kind = str(step.get("step"))
        if kind not in self._face["steps"] and kind != "tool":
            raise Skipped(f"{self._name} has no counterpart for {kind}")
        session = self._session(step)
        if kind == "prompt":
            keep_back(step.get("text"))
        if kind in ("compact", "pre_compaction") and not session.said:
            raise Skipped("nothing was said since the last compaction: the harness compacts nothing")
        if kind == "tool" and session.blocked:
            raise Skipped("a hook blocked the prompt: without the model's turn there is no call of a tool")
        result: dict[str, Any] = {}
        try:
            if kind == "tool":
                result = dict(self._tool(session, step))
            else:
                session.blocked = not self._events(session, step, self._face["steps"][kind])
            if kind == "prompt":
                result["turn"] = not session.blocked
            said = kind == "prompt" and not session.blocked
            session.said = said or (session.said and kind not in ("compact", "pre_compaction", "clear"))
        finally:
            if kind in ("prompt", "tool") and not step.get("more"):
                self._end_turn(session, step)
        runs, self._runs = self._runs, []
        injected = "\n".join(run.context for run in runs if run.context)
        return {
            "session": step.get("session"),
            "key": session.id,
            **result,
            "injected": injected,
            "hooks": [r.to_json() for r in runs],
        }

    def _session(self, step: Mapping[str, Any]) -> Session:
        name = str(step.get("session"))
        if step["step"] == "start":
            self._sessions[name] = Session(self._face, self._projects.folder(step.get("project")), step.get("agent"))
        if name not in self._sessions:
            raise StepError(f"session {name!r} is not known: start it first")
        return self._sessions[name]

    def _events(self, session: Session, step: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> bool:
        """Go through what a step comes to, up to a hook that blocks it; whether none did."""
        for event in events:
            if event.get("model"):
                self._peer.model_turn(step.get("session"))
            elif event.get("say") and session.transcript is not None:
                session.transcript.say(event["say"], str(step.get("text") or step.get("summary") or ""))
            elif event.get("renew"):
                session.renew(self._face)
            elif event.get("event") and not self._fire(session, step, event):
                return False
        if step["step"] == "prompt":
            session.reply = str(step.get("reply") or "Understood.")
        return True

    def _end_turn(self, session: Session, step: Mapping[str, Any]) -> None:
        if session.reply is None:
            return
        if session.transcript is not None:
            session.transcript.say("assistant", session.reply)
        for hook in self._face["turn_end"]:
            self._fire(session, {**step, "reply": session.reply}, hook)
        session.reply = None
        session.turn_id = str(uuid.uuid4())

    def _fire(self, session: Session, step: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
        """Run the hooks of an event; whether the harness goes on after them."""
        event = str(told["event"])
        bag = {
            "session_id": session.id,
            "transcript_path": None if session.transcript is None else str(session.transcript.path),
            "cwd": str(session.cwd),
            "hook_event_name": event,
            "prompt": step.get("text"),
            "turn_id": session.turn_id,
            "last_assistant_message": step.get("reply"),
            **self._face["constants"],
            **{name: value for name, value in told.items() if name != "event"},
        }
        constants = self._face["constants"]
        members = (name for name in self._face["events"][event] if bag.get(name) is not None or name in constants)
        stdin = {name: bag[name] for name in members}
        env = {**self._env_of(session), **{name: str(session.cwd) for name in self._face.get("project_variables", ())}}
        strict = bool(self._face.get("bracketed_output_is_json"))
        ways = self._face.get("blocked_by", {}).get(event, ())
        needs_reason = bool(self._face.get("blocking_needs_reason"))
        goes_on = True
        for hook in self._hooks.get(event, ()):
            if hook.matches(bag.get(self._face["matchers"].get(event))):
                run = run_hook(hook, stdin, env, session.cwd, strict=strict)
                blocked = blocks(run, ways, needs_reason=needs_reason)
                self._runs.append(replace(run, blocked=blocked))
                goes_on = goes_on and not blocked
        return goes_on

    def _env_of(self, session: Session) -> Mapping[str, str]:
        """What the harness of a session hands on of its own environment, in which its user has set the agent."""
        own = self._env if session.agent is None else {**self._env, "SIGNET_AGENT_ID": session.agent}
        kept = self._face.get("environment")
        return own if kept is None else {name: own[name] for name in kept if name in own}

    def _tool(self, session: Session, step: Mapping[str, Any]) -> Mapping[str, Any]:
        if session.server is None:
            command, env = mcp_command(Path.home(), self._face)
            session.server = McpServer(
                command, {**self._env_of(session), **env}, str(session.cwd), self._face["harness"]
            )
        return use_tool(step, session.server.tools, self._options.get("tools", {}), session.server.call)

    def flush(self) -> None:
        """Nothing is left: every hook has ended before its step is answered."""

    def close(self) -> None:
        """End the memory servers."""
        for session in self._sessions.values():
            if session.server is not None:
                session.server.close()


def main(arguments: Sequence[str]) -> None:
    """Serve standard input."""
    face_path, module, options = arguments
    face = json.loads(Path(face_path).read_bytes())
    Peer().serve(lambda peer: CommandHooks(face, module, json.loads(options), peer))


if __name__ == "__main__":
    main(sys.argv[1:])
