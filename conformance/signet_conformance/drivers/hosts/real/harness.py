"""Drives a real program through scenarios, with a model that answers with the replies of the steps.

    python -m signet_conformance.drivers.hosts.real.harness OPTIONS

OPTIONS is a JSON object, made by `targets.real`. The variable SIGNET_CONFORMANCE_MODEL is the address of
the model for the program, and SIGNET_CONFORMANCE_MODEL_CONTROL that of the server behind it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.children.processes import LineProcess
from signet_conformance.children.watchdog import WATCHDOG_VARIABLE
from signet_conformance.drivers.hosts.installed import install_connector, prepare
from signet_conformance.drivers.hosts.model_server import Model, ModelRequest
from signet_conformance.drivers.hosts.observing import OBSERVERS, Observations, observe
from signet_conformance.drivers.hosts.protocol import Peer, Projects, Skipped, StepError
from signet_conformance.drivers.hosts.real.conversation import Launch, Open, ProgramConversation, Services
from signet_conformance.drivers.hosts.real.json_lines import ClaudeStream, PiRpc
from signet_conformance.drivers.hosts.real.json_rpc import CodexAppServer, HermesAcp
from signet_conformance.drivers.hosts.real.openclaw import OpenclawAcp
from signet_conformance.drivers.hosts.real.opencode_server import OpencodeServer
from signet_conformance.drivers.hosts.real.process import EndedError, end_with_us
from signet_conformance.drivers.hosts.real.refusals import ConnectorRefusedError, Refusal, thrown_by
from signet_conformance.drivers.hosts.real.watch import Watch
from signet_conformance.drivers.hosts.tools import demand_no_own_command, tool_calls
from signet_conformance.drivers.model_process import CONTROL_VARIABLE, MODEL_VARIABLE
from signet_conformance.errors import KitError
from signet_conformance.files.json_values import fill_in, list_in, member_of, merge

TURN_S = 200.0
LATE_S = 5.0
"""How long after its answer to a compaction a program may still ask its model for the summary."""
_LOOK_S = 0.1
_REGISTERS_S = 60.0
_NOWHERE = "http://127.0.0.1:1"
_BY_SIGNAL = 128
"""From this status on, a shell reports that a signal ended the program."""
_OURS = "SIGNET_CONFORMANCE_"
"""Prefix of our own variables. A program gets only one of them: the mark by which the watchdog of the run finds
processes that left its group."""
_NO_STRACE = "strace is not installed: requests to other machines are seen only at the proxy"
_SUMMARY = "The user asked for the billing pipeline."
STRAY = "a promise or timer of its own"
"""The event of an error that came from no handler, as in `strays.mjs`."""
_HALVES = ("pre_compaction", "compaction_complete")
_CONVERSATIONS: Mapping[str, Open] = {
    "pi-rpc": PiRpc,
    "claude-stream": ClaudeStream,
    "codex-app-server": CodexAppServer,
    "hermes-acp": HermesAcp,
    "openclaw-acp": OpenclawAcp,
    "opencode-server": OpencodeServer,
}


def unheard_in(command: Sequence[str], env: Mapping[str, str]) -> Sequence[str]:
    """Return the reasons why the program passes events of a run to no handler of the connector.

    `command` is the kit's host of that release, which registers the connector as the program does, but in a process of
    its own that starts no service and reaches no daemon. It is empty for a program that registers a plugin only once.
    """
    if not command:
        return []
    with tempfile.TemporaryDirectory(prefix=".signet-conformance-registers-", dir=env["HOME"]) as home:
        host_env = {"PATH": env["PATH"], "HOME": home, "SIGNET_DAEMON_URL": _NOWHERE}
        try:
            with LineProcess("the host", command, env=host_env, cwd=home) as host:
                answer = host.ask({"id": 1, "op": "hello", "events": []}, _REGISTERS_S)
        except KitError:
            return []
    return list(map(str, list_in(member_of(answer, "result", "unheard"))))


class RealHarness:
    """Performs the steps of a scenario: each session in a conversation of its own with the program."""

    def __init__(self, options: Mapping[str, Any], peer: Peer) -> None:
        self._options = options
        self._peer = peer
        self._ended: set[str] = set()
        self._projects = Projects()
        self._sessions: dict[str, ProgramConversation] = {}
        self._requests: dict[str, ModelRequest] = {}
        self._replies: dict[str, str] = {}
        self._reported_refusals: list[Refusal] = []
        self._services = Services()
        self._address = os.environ[MODEL_VARIABLE]
        self._model = Model(os.environ[CONTROL_VARIABLE])
        self._model.play(options["beside_the_talk"])
        home = Path.home()
        self._observed = Observations(home)
        if options["observer"] is not None:
            observe(home, options["observer"])
        # The home is the kit's, and removed with all in it, however the run ends.
        folder = Path(tempfile.mkdtemp(prefix=".signet-conformance-watch-", dir=home))
        self._watch = Watch(folder, frozenset(options["asks"]))
        self._refused: set[str] = set()
        self._known = {
            "home": str(home),
            "model": self._address,
            "daemon": os.environ["SIGNET_DAEMON_URL"],
            "nowhere": self._watch.proxy.address,
        }
        # The settings that the kit writes before and after the connector's installer; they override the connector's.
        self._settings: Mapping[str, Any] = fill_in(merge(options["settings"], options["setup"]["then"]), self._known)
        # Programs leave many temporary files: here they are removed with the home.
        temporary = home / ".tmp"
        temporary.mkdir(exist_ok=True)
        self._env = {
            **{name: v for name, v in os.environ.items() if name == WATCHDOG_VARIABLE or not name.startswith(_OURS)},
            **self._watch.proxy.variables,
            "TMPDIR": str(temporary),
            **fill_in(options["env"], self._known),
            "PATH": self._observed.wrap_programs(
                options["programs"], home / ".signet-conformance-bin", self._known["daemon"]
            ),
        }
        prepare(home, options, self._known, self._env)
        self._installed_for = self._env.get("SIGNET_AGENT_ID")

    def about(self) -> Mapping[str, Any]:
        """The program and its release, with remarks."""
        remarks = [*self._options["notes"], *([] if self._watch.has_strace else [_NO_STRACE])]
        unheard = unheard_in(self._options["registers"], self._env)
        about = {"host": self._options["program"], "release": self._options["release"], "remarks": remarks}
        # The program itself passes arguments to tools: no event precedes its hooks.
        return {**about, "unheard": unheard, "tells": []}

    def perform(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform one step, and report the runs of the connector's commands in it."""
        try:
            return self._perform(step)
        except EndedError as ended:
            return self._answer_connector_crash(step, ended)
        finally:
            if runs := self._observed.new_runs():
                self._peer.tell_about({"observed": runs})
            self._report_refused_hosts()

    def _perform(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        kind, name = str(step.get("step")), str(step.get("session"))
        if kind in self._options["cannot"]:
            raise Skipped(f"{self._options['program']}: {self._options['cannot'][kind]}")
        if kind == "start" and step.get("parent") is not None:
            raise Skipped(f"{self._options['program']} begins the session of a sub-agent by itself, and is not told to")
        if kind == "start":
            opened = self._conversation(step)
            return self._open(name, opened, opened.open)
        conversation = self._sessions.get(name)
        if conversation is None:
            raise Skipped(f"session {name} was never opened")
        if name in self._ended and kind != "resume":
            raise Skipped("the program has ended, and session " + name + " with it")
        if kind == "resume":
            return self._open(name, conversation, conversation.resume)
        if kind == "prompt":
            return self._prompt(name, conversation, step)
        if kind == "tool":
            return self._tool(name, conversation, step)
        if kind == "compact":
            return self._compact(name, conversation, str(step.get("summary") or _SUMMARY))
        if kind == "clear":
            return self._open(name, conversation, conversation.clear)
        if kind == "end":
            self._end_turn(name, conversation)
            conversation.end(for_good=not step.get("resumed"))
            return {"ended": True}
        if kind in _HALVES:
            raise Skipped(
                f"{self._options['program']} compacts in one step: its halves are performed only in a played harness"
            )
        raise Skipped(f"{self._options['program']} has no counterpart for {kind}")

    def _conversation(self, step: Mapping[str, Any]) -> ProgramConversation:
        agent = step.get("agent")
        env = {**self._env, **({"SIGNET_AGENT_ID": agent} if isinstance(agent, str) else {})}
        if self._options["setup"]["names_agent"] and env.get("SIGNET_AGENT_ID") != self._installed_for:
            install_connector(Path.home(), self._options, self._known, env)
            self._installed_for = env.get("SIGNET_AGENT_ID")
        cwd = self._projects.folder(step.get("project"))
        command = self._watch.wrap(fill_in(self._options["command"], self._known))
        make = _CONVERSATIONS[self._options["speaks"]]
        return make(
            Launch(
                command, {**env, "PWD": str(cwd)}, cwd, self._address, self._observed, self._options["settles"],
                self._services, self._settings,
            )
        )  # fmt: skip

    def _open(self, name: str, conversation: ProgramConversation, open_it: Callable[[], None]) -> Mapping[str, Any]:
        self._sessions[name] = conversation
        self._ended.discard(name)
        try:
            open_it()
        except (ConnectorRefusedError, Skipped) as refused:
            del self._sessions[name]
            raise Skipped(str(refused)) from None
        finally:
            # Also the refusals of a program that did not start because of them.
            self._report_refusals(conversation)
        return {"opened": True, **self._key(conversation)}

    def _answer_connector_crash(self, step: Mapping[str, Any], ended: EndedError) -> Mapping[str, Any]:
        """Answer a step in which an error of the connector ended the program; raise `ended` for any other end.

        A user would have lost the turn, and would start the program again to resume the session.
        """
        name = str(step.get("session"))
        conversation = self._sessions.get(name)
        home, place, observer = Path.home(), self._options["setup"]["place"], self._options["observer"]
        folders = [Path(self._options["module"]).parent, *([] if place is None else [(home / place).parent])]
        ours = [OBSERVERS, *([] if observer is None else [home / observer["place"]])]
        # A program that a signal or an abort ended did not end because of an error, even if it logged one before.
        threw = 0 < ended.status < _BY_SIGNAL
        thrown = thrown_by(ended.words, folders, ours, self._known["daemon"]) if threw else None
        if thrown is None or conversation is None:
            raise ended
        self._ended.add(name)
        if (request := self._requests.pop(name, None)) is not None:
            self._model.say(request, self._replies[name])
        with contextlib.suppress(StepError):
            conversation.end()
        return {"ended": True, "calls": [{"event": STRAY, "thrown": thrown, "lost": True}]}

    def _report_refusals(self, conversation: ProgramConversation) -> None:
        """Report the files of the connector's installation that the program refuses, each once."""
        new = [refusal for refusal in conversation.refusals if refusal not in self._reported_refusals]
        self._reported_refusals += new
        if new:
            self._peer.tell_about({"installed": [refusal.row(self._options["formerly"]) for refusal in new]})

    def _prompt(self, name: str, conversation: ProgramConversation, step: Mapping[str, Any]) -> Mapping[str, Any]:
        demand_no_own_command(step.get("text"))
        self._end_turn(name, conversation)
        conversation.say(str(step.get("text")))
        request = self._next(conversation)
        if request is None:
            return {"turn": False, "words": [*conversation.words][-3:]}
        self._requests[name] = request
        self._replies[name] = str(step.get("reply") or "Understood.")
        self._peer.model_turn(step.get("session"))
        if not step.get("more"):
            self._end_turn(name, conversation)
        return {"turn": True, **self._key(conversation)}

    def _tool(self, name: str, conversation: ProgramConversation, step: Mapping[str, Any]) -> Mapping[str, Any]:
        request = self._requests.get(name)
        if request is None:
            raise Skipped("the model calls tools only in a user's turn")
        wanted = str(step.get("tool"))
        uncalled = self._options["cannot_call"].get(wanted)
        own = self._options["tools"].get(wanted, wanted)
        # The program may put a server's name before a tool's.
        names = [own, f"{self._options['tool_prefix']}{own}"]
        answer: Mapping[str, Any] = {}
        try:
            if uncalled is not None:
                raise Skipped(f"{self._options['program']}: {uncalled}")
            tool = next((each for each in names if each in request.tools), None)
            tool = tool or self._search(name, conversation, names[-1])
            if tool is None:
                raise Skipped(f"{wanted} is not offered to the model")
            for tool_name, arguments in tool_calls(step, {tool: None}, {wanted: tool}):
                answer = self._call(name, conversation, tool_name, arguments)
        finally:
            if not step.get("more"):
                self._end_turn(name, conversation)
        return answer

    def _call(
        self, name: str, conversation: ProgramConversation, tool: str, arguments: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Let the model call a tool, and return its result."""
        self._model.call(self._requests[name], tool, arguments)
        request = self._next(conversation)
        if request is None:
            del self._requests[name]
            raise StepError(f"the program ended its turn with a tool's call{_last(conversation)}")
        self._requests[name] = request
        return request.tool_result()

    def _search(self, name: str, conversation: ProgramConversation, tool: str) -> str | None:
        """Let the model load a tool that is not offered yet; return its name if it is offered then, else None."""
        search = self._options["search"]
        if search is None or search["tool"] not in self._requests[name].tools:
            return None
        result = self._call(name, conversation, search["tool"], fill_in(search["arguments"], {"tool": tool}))
        return tool if tool in result["text"] or tool in self._requests[name].tools else None

    def _compact(self, name: str, conversation: ProgramConversation, summary: str) -> Mapping[str, Any]:
        self._end_turn(name, conversation)
        conversation.compact()
        # A program may answer before it asks its model, as OpenClaw 2026.6.1 did once in ten runs. Without this
        # wait, its request would count for the next turn.
        answered, may_be_late = False, True
        while True:
            in_time = self._next(conversation)
            request = self._model.await_request(LATE_S) if in_time is None and may_be_late else in_time
            if request is None:
                break
            self._model.say(request, summary)
            answered, may_be_late = True, in_time is None
        if not answered:
            raise Skipped(f"{self._options['program']} asked its model for no summary: it compacted nothing")
        return {"compacted": True}

    def _next(self, conversation: ProgramConversation) -> ModelRequest | None:
        """The program's next request to the model; None when its turn ends. Raises StepError after TURN_S."""
        deadline = time.monotonic() + TURN_S
        while (request := self._model.await_request(_LOOK_S)) is None:
            if conversation.is_over():
                # A last look for a request from just before the end.
                return self._model.await_request(0)
            if time.monotonic() > deadline:
                raise StepError(f"the program did not ask its model within {TURN_S:g} s{_last(conversation)}")
        return request

    def _end_turn(self, name: str, conversation: ProgramConversation) -> None:
        request = self._requests.pop(name, None)
        while request is not None:
            # Further requests of the turn, such as after an answer that it did not understand, get the same answer.
            self._model.say(request, self._replies[name])
            request = self._next(conversation)

    def _key(self, conversation: ProgramConversation) -> Mapping[str, Any]:
        return {} if conversation.key is None else {"key": conversation.key}

    def _report_refused_hosts(self) -> None:
        """Report the hosts of its profile that the program asked the proxy for, which refused the requests."""
        hosts = sorted(self._watch.proxy.refused - self._refused)
        self._refused.update(hosts)
        if hosts:
            asks = self._options["asks"]
            self._peer.tell_about({"remarks": [f"asked for {host} and was refused: {asks[host]}" for host in hosts]})

    def flush(self) -> None:
        """Stop the services that no session needs any more.

        Raises StepError if a program tried to reach another machine.
        """
        self._services.end(idle=True)
        attempts = self._watch.attempts()
        if attempts:
            shown = ", ".join(attempts[:10]) + (", ..." if len(attempts) > 10 else "")
            raise StepError(f"{self._options['program']} tried to leave this machine: {shown}")

    def close(self) -> None:
        """Leave every session that is open."""
        for name, conversation in self._sessions.items():
            try:
                self._end_turn(name, conversation)
                conversation.end()
            except StepError as failure:
                sys.stderr.write(f"{failure}\n")
        self._sessions.clear()
        try:
            self._services.end()
        except StepError as failure:
            sys.stderr.write(f"{failure}\n")
        self._model.close()
        self._watch.proxy.close()


def _last(conversation: ProgramConversation) -> str:
    words = [*conversation.words][-3:]
    return ": " + " | ".join(words) if words else ""


if __name__ == "__main__":
    end_with_us()
    Peer.play(RealHarness)
