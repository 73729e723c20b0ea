"""A harness that runs a connector's commands: Claude Code, Codex, Kimi, Muse Code.

    python -m signet_conformance.drivers.hosts.command_hooks OPTIONS

The connector's own installer, the option `module`, writes its hooks into an empty home, or the option `config` names a
file that holds them. Each event of a step runs the hooks that are configured for it, with the harness's JSON on stdin.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from signet_conformance.children.environment import TAG
from signet_conformance.children.processes import ChildEndedError
from signet_conformance.drivers.hosts import hook_settings, host_program, installed, registry
from signet_conformance.drivers.hosts.hook_process import HookRun, blocks, run_hook
from signet_conformance.drivers.hosts.host_transcript import HostTranscript
from signet_conformance.drivers.hosts.mcp_server import McpServer
from signet_conformance.drivers.hosts.protocol import Peer, Projects, Skipped, StepError, with_programs
from signet_conformance.drivers.hosts.tools import demand_no_own_command, use_tool

_TOOL_PREFIXES = ("memory-", "secrets-", "sessions-", "hooks-")
"""Prefixes of the operations that a memory server's tools call."""
_NOT_SENT = ("event", "next_turn", "quit")
"""Members of an action that say when it is performed; the event's JSON does not have them."""


class Thread:
    """One native session: its id, its transcript, and the event that its next turn begins with."""

    def __init__(self, face: Mapping[str, Any], cwd: Path) -> None:
        self.id = str(uuid.uuid4())
        # Not every harness lets a hook read the conversation.
        self.transcript = HostTranscript(face["transcript"], self.id, cwd) if "transcript" in face else None
        self.due: Mapping[str, Any] | None = None
        self.is_used = False
        """Whether it has a message."""


class HookSession:
    """One session of a scenario: its native session (`thread`), those that a clear `left`, the `reply` of its turn."""

    def __init__(self, face: Mapping[str, Any], cwd: Path, agent: object) -> None:
        self.cwd = cwd
        self.agent = agent if isinstance(agent, str) else None
        self.thread = Thread(face, cwd)
        self.left: list[Thread] = []
        self.turn_id = str(uuid.uuid4())
        self.reply: str | None = None
        self.server: McpServer | None = None
        self.tools: Mapping[str, Any] = {}
        self.hidden_tools: frozenset[str] = frozenset()
        self.is_fresh = False
        """Whether there are messages since the last compaction."""
        self.compacting = False
        """Whether a compaction has begun and not ended."""
        self.blocked = False
        self.is_lost = False
        """Whether the harness could not resume it: nothing more takes place in it."""

    def drop_process_state(self) -> None:
        """Drop the state in memory and close the memory server; what is on disk stays."""
        self.left, self.reply, self.thread.due = [], None, None
        if self.server is not None:
            self.server.close()
            self.server = None

    def renew(self, face: Mapping[str, Any]) -> None:
        """Begin a new native session in the same folder."""
        self.left.append(self.thread)
        self.thread = Thread(face, self.cwd)
        self.turn_id = str(uuid.uuid4())
        self.reply = None


class CommandHooks:
    """Performs steps by running the configured hooks."""

    def __init__(self, options: Mapping[str, Any], peer: Peer) -> None:
        self._face = face = options["face"]
        self._options = options
        self._peer = peer
        self._sessions: dict[str, HookSession] = {}
        self._projects = Projects()
        home = Path.home()
        programs = home / ".signet-conformance-bin"
        self._env = {**os.environ, "PATH": with_programs(options.get("programs", {}), programs)}
        settings = home / face["settings"] if "config" not in options else Path(options["config"])
        if "config" not in options and not (home / installed.INSTALLED).exists():
            host_program.put_on_path(face, programs)
            # Hooks that inherit no variables need the daemon's address in their settings.
            told_daemon = "environment" in face
            installed.Installer(options["install"], options["module"], told_daemon=told_daemon).run(self._env)
            (home / installed.INSTALLED).touch()
        if "config" in options and not settings.is_file():
            raise StepError(f"{settings}: no hooks are installed there: fix the setting config")
        self._sources = hook_settings.hook_sources(home, settings, face)
        self._hooks = hook_settings.by_event(self._sources)
        self._runs: list[HookRun] = []
        self._model_texts: list[Mapping[str, str]] = []
        self._refused = bool(self._sources) and all(source.refusal is not None for source in self._sources)

    @property
    def _name(self) -> str:
        return f"{self._face['harness']}-{self._face['version']}"

    def about(self) -> Mapping[str, Any]:
        """The installed hooks, whether the harness accepts their files, and what is odd about them."""
        refusals, files = [], []
        for source in self._sources:
            words = source.refusal
            if words is not None:
                refusals.append(f"{self._name} refuses {source.name} ({words}), and would run none of its hooks")
            elif source.unread:
                members = ", ".join(source.unread)
                words = f"no hook in it has a form that the harness reads; its top-level members are {members}"
            row = {"file": source.name, "accepted": words is None}
            files.append(row if words is None else {**row, "words": words})
        duplicates = hook_settings.duplicates_in(self._sources)
        refused = any(source.refusal is not None for source in self._sources)
        unknown = list(
            registry.unknown_events({e: [hook.command for hook in self._hooks[e]] for e in self._hooks}, self._face)
        )
        has_server, misplaced = self._find_server()
        handlers = sum(map(len, self._hooks.values()))
        # The harness takes nothing from a refused file; the refusal itself is reported elsewhere.
        strange = handlers if refused else sum(len(self._hooks[row["event"]]) for row in unknown)
        numbers = {"handlers": handlers - strange, "refused": strange, **({} if has_server else {"tools": 0})}
        return {
            "harness": self._face["harness"],
            "face": self._name,
            "steps": sorted(
                {*self._face["steps"], "tool", *(["attached_prompt"] if "attachments" in self._face else [])}
            ),
            "events": sorted(self._hooks),
            "installed": [*files, *installed.refused_servers(Path.home(), self._face), *unknown, *misplaced],
            "registered": [numbers],
            "reinstalled": [{"how": "once", "twice": duplicates}] if duplicates else [],
            "unheard": [*refusals, *self._lacking(), *self._unaddressed()],
            "remarks": [
                *hook_settings.oddities_of(self._hooks, self._face),
                *hook_settings.unfilled(self._hooks, self._face),
                *host_program.describe_refusals(Path.home(), self._face),
            ],
            "timeouts_s": self._timeouts_s(),
        }

    def _lacking(self) -> Sequence[str]:
        return hook_settings.missing_hooks(self._hooks, self._options.get("capabilities", ()), self._face)

    def _unaddressed(self) -> Iterator[str]:
        """Report hooks of a given file that cannot learn the daemon's address because the harness removes it."""
        variables = self._face.get("environment")
        if "config" in self._options and variables is not None and "SIGNET_DAEMON_URL" not in variables:
            yield (
                f"{self._name} gives hooks no SIGNET_DAEMON_URL, and a file that config names holds no address"
                " of a run: let the setting module name the installer, which writes the address into each command"
            )

    def _timeouts_s(self) -> Mapping[str, float]:
        """The shortest timeout, in seconds, of the hooks of each step that the user waits for."""
        shortest: dict[str, float] = {}
        for kind in ("start", "prompt"):
            events = [action.get("event") or action.get("next_turn") for action in self._face["steps"][kind]]
            timeouts_s = [hook.timeout_s for event in events for hook in self._hooks.get(str(event), ())]
            shortest.update({kind: min(timeouts_s)} if timeouts_s else {})
        return shortest

    def _find_server(self) -> tuple[bool, Sequence[Mapping[str, Any]]]:
        """Whether the harness finds a memory server; if not, also a row for each misplaced file that names one."""
        is_not_played = "mcp" not in self._face or "config" in self._options
        if is_not_played or installed.found_server(Path.home(), self._face) is not None:
            return True, ()
        tools = [name for name in self._options.get("capabilities", ()) if name.startswith(_TOOL_PREFIXES)]
        return False, list(registry.misplaced_servers(Path.home(), self._face, tools))

    def perform(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform one step; the result has each hook's status, duration and output."""
        kind = str(step.get("step"))
        if kind not in self._face["steps"] and kind != "tool":
            raise Skipped(f"{self._name} has no counterpart for {kind}")
        session = self._session(step)
        if kind in ("resume", "restart_host"):
            session.is_lost = not (session.thread.is_used or self._face.get("resumes_unused", True))
        if session.is_lost:
            raise Skipped(f"{self._name} keeps nothing of a session in which nothing was said: it cannot be resumed")
        if kind == "restart_host":
            session.drop_process_state()
        if kind == "prompt":
            self._demand_playable(step)
        if kind in ("compact", "pre_compaction") and not session.is_fresh:
            raise Skipped("nothing was said since the last compaction, so the harness compacts nothing")
        if kind == "compaction_complete" and not session.compacting:
            raise Skipped("no compaction is under way")
        if kind == "tool" and session.blocked:
            raise Skipped("a hook blocked the prompt, so the model has no turn and calls no tool")
        result: dict[str, Any] = {}
        try:
            if kind == "tool":
                result = dict(self._tool(session, step))
            else:
                session.blocked = not self._perform_actions(session, step, self._actions(step))
            if kind == "prompt":
                result["turn"] = not session.blocked
            in_turn = kind == "prompt" and not session.blocked
            session.thread.is_used |= in_turn
            session.is_fresh = in_turn or (session.is_fresh and kind not in ("compact", "pre_compaction", "clear"))
            if kind not in ("prompt", "tool"):
                session.compacting = kind == "pre_compaction" and not session.blocked
        finally:
            if kind in ("prompt", "tool") and not step.get("more"):
                self._end_turn(session, step)
        runs, self._runs = self._runs, []
        for run in runs:
            self._peer.print(run.stderr)
        if session.server is not None:
            session.server.report_output(self._peer)
        injected = "\n".join(run.context for run in runs if run.context)
        return {
            "session": step.get("session"),
            "key": session.thread.id,
            **result,
            "injected": injected,
            "given": self._take_model_texts(),
            "hooks": [r.to_json() for r in runs],
        }

    def _demand_playable(self, prompt: Mapping[str, Any]) -> None:
        """Raise Skipped for a command of the harness itself, or an attachment that it is not known to support."""
        demand_no_own_command(prompt.get("text"))
        attached = prompt.get("attached") or ()
        if unknown := [kind for kind in attached if kind not in self._face.get("attachments", ())]:
            raise Skipped(f"{self._name} is not known to attach {' and '.join(unknown)}")

    def _session(self, step: Mapping[str, Any]) -> HookSession:
        name = str(step.get("session"))
        if step["step"] == "start":
            self._sessions[name] = HookSession(
                self._face, self._projects.folder(step.get("project")), step.get("agent")
            )
        if name not in self._sessions:
            raise StepError(f"session {name!r} is not known: start it first")
        return self._sessions[name]

    def _actions(self, step: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Return the actions of a step; those of an automatic compaction differ from those of the user's command."""
        steps: Mapping[str, Sequence[Mapping[str, Any]]] = self._face["steps"]
        if step["step"] == "compact" and step.get("by_itself") and "pre_compaction" in steps:
            return [*steps["pre_compaction"], {"model": True}, *steps["compaction_complete"]]
        return steps[step["step"]]

    def _perform_actions(
        self, session: HookSession, step: Mapping[str, Any], actions: Sequence[Mapping[str, Any]]
    ) -> bool:
        """Perform a step's actions until a hook blocks one. Return True if none did."""
        thread = session.thread
        if step["step"] == "prompt":
            due, thread.due = thread.due, None
            if due is not None and not self._fire(session, thread, step, due):
                return False
        for action in actions:
            if action.get("model"):
                self._peer.model_turn(step.get("session"), self._take_model_texts(), refused=self._refused)
            elif action.get("say") and thread.transcript is not None:
                text = str(step.get("text") or step.get("summary") or "")
                thread.transcript.add_message(action["say"], text, step.get("attached") or ())
            elif action.get("renew"):
                session.renew(self._face)
                thread = session.thread
            elif action.get("next_turn"):
                thread.due = {**action, "event": action["next_turn"]}
            elif action.get("quit"):
                left, session.left = session.left, []
                for each in (thread, *left):
                    self._fire(session, each, step, {**action, "event": action["quit"]})
            elif action.get("event") and not self._fire(session, thread, step, action):
                return False
        if step["step"] == "prompt":
            session.reply = str(step.get("reply") or "Understood.")
        return True

    def _end_turn(self, session: HookSession, step: Mapping[str, Any]) -> None:
        if session.reply is None:
            return
        if session.thread.transcript is not None:
            session.thread.transcript.add_message("assistant", session.reply)
        for action in self._face["turn_end"]:
            self._fire(session, session.thread, {**step, "reply": session.reply}, action)
        session.reply = None
        session.turn_id = str(uuid.uuid4())

    def _fire(
        self, session: HookSession, thread: Thread, step: Mapping[str, Any], action: Mapping[str, Any], **more: Any
    ) -> bool:
        """Run the hooks of an event. Return True unless one blocks it; `more` are members of its JSON."""
        event = str(action["event"])
        members = {
            "session_id": thread.id,
            "transcript_path": None if thread.transcript is None else str(thread.transcript.path),
            "cwd": str(session.cwd),
            "hook_event_name": event,
            "prompt": step.get("text"),
            "turn_id": session.turn_id,
            "last_assistant_message": step.get("reply"),
            "compact_summary": step.get("summary"),
            **self._face["constants"],
            **{name: value for name, value in action.items() if name not in _NOT_SENT},
            **more,
        }
        constants, names = self._face["constants"], self._face.get("names", {})
        values = {name: members.get(names.get(name, name)) for name in self._face["events"][event]}
        stdin = {name: value for name, value in values.items() if value is not None or name in constants}
        env = {**self._env_of(session), **{name: str(session.cwd) for name in self._face.get("project_variables", ())}}
        strict = bool(self._face.get("bracketed_output_is_json"))
        ways = self._face.get("blocked_by", {}).get(event, ())
        needs_reason = bool(self._face.get("blocking_needs_reason"))
        goes_on = True
        for hook in self._hooks.get(event, ()):
            if hook.matches(members.get(self._face["matchers"].get(event))):
                run = self._read_output(run_hook(hook, stdin, env, session.cwd, strict=strict))
                blocked = blocks(run, ways, needs_reason=needs_reason)
                self._runs.append(replace(run, blocked=blocked))
                goes_on = goes_on and not blocked
                if run.context:
                    occasion = members.get(self._face["matchers"].get(event))
                    source = event if not isinstance(occasion, str) else f"{event} {occasion}"
                    form = {} if run.context == run.stdout.strip() else {"form": "additionalContext"}
                    self._model_texts.append({"source": source, "text": run.context, **form})
        return goes_on

    def _read_output(self, run: HookRun) -> HookRun:
        """Report output that the harness refuses, and drop the context from output that it does not read."""
        if run.status != 0:
            return run
        objection = registry.output_objection(run.event, run.stdout, self._face)
        if objection is not None:
            row = {"file": f"the output of {run.event}", "accepted": False, "words": objection}
            self._peer.tell_about({"installed": [row]})
        return run if registry.reads_as_context(run.event, run.stdout, self._face) else replace(run, context="")

    def _take_model_texts(self) -> Sequence[Mapping[str, str]]:
        """Return and forget the texts that hooks gave to the model."""
        texts, self._model_texts = self._model_texts, []
        return texts

    def _env_of(self, session: HookSession, list_name: str = "environment") -> Mapping[str, str]:
        """The variables that the harness passes on: those that the face lists, or all of them without a list."""
        own = self._env if session.agent is None else {**self._env, "SIGNET_AGENT_ID": session.agent}
        names = self._face.get(list_name)
        return own if names is None else {name: own[name] for name in (*names, TAG) if name in own}

    def _server_env(self, session: HookSession, named: Mapping[str, str]) -> Mapping[str, str]:
        """The environment of a memory server, which gets the daemon's address even if the harness withholds it."""
        env = {**self._env_of(session, "server_environment"), **named}
        # Without it, the server would send to the daemon's default port, past the recorder.
        return {"SIGNET_DAEMON_URL": self._env["SIGNET_DAEMON_URL"], **env} if "SIGNET_DAEMON_URL" in self._env else env

    def _tool(self, session: HookSession, step: Mapping[str, Any]) -> Mapping[str, Any]:
        if session.server is None:
            command, env = installed.mcp_command(Path.home(), self._face)
            server_env, harness = self._server_env(session, env), self._face["harness"]
            try:
                session.server = McpServer(command, server_env, str(session.cwd), harness)
            except ChildEndedError as ended:
                raise Skipped(f"this session has no memory server: {ended.message}") from None
            offered = installed.offered_tools(Path.home(), self._face, session.server.tools)
            session.hidden_tools = frozenset(session.server.tools) - offered.keys()
            session.tools, facts = registry.accept_tools(offered, self._face, self._options.get("tools", {}))
            self._peer.tell_about(facts)
        server, names = session.server, self._options.get("tools", {})
        wanted = names.get(step.get("tool"), step.get("tool"))
        if wanted in session.hidden_tools:
            raise Skipped(f"{Path(self._face['mcp']['file']).name} keeps {wanted} from the model")
        actions = self._face["steps"].get("tool", ({"call": True},))

        def run(name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
            answer: tuple[str, bool] = "", True
            call = f"call_{uuid.uuid4().hex}"
            about: dict[str, Any] = {
                "tool_name": f"{self._face.get('tool_prefix', '')}{name}",
                "tool_input": dict(arguments),
                "tool_use_id": call,
                "tool_call_id": call,
            }
            for action in actions:
                if action.get("call"):
                    began = time.monotonic()
                    answer = server.call(name, arguments)
                    if session.thread.transcript is not None:
                        session.thread.transcript.add_call(str(about["tool_name"]), arguments, call, answer[0])
                    about["duration_ms"] = round((time.monotonic() - began) * 1000)
                    content = [{"type": "text", "text": answer[0]}]
                    result = {"content": content, "isError": answer[1]}
                    about["tool_output"] = answer[0]
                    about["tool_response"] = content if self._face.get("tool_response") == "content" else result
                elif not self._fire(session, session.thread, step, action, **about):
                    return "a hook of the harness refuses the call", True
            return answer

        return {**use_tool(step, session.tools, names, run, self._peer.hand_over), "calls": server.take_failures()}

    def flush(self) -> None:
        """Do nothing: every hook has ended before its step is answered."""

    def close(self) -> None:
        """End the memory servers."""
        for session in self._sessions.values():
            if session.server is not None:
                session.server.close()


if __name__ == "__main__":
    Peer.play(CommandHooks)
