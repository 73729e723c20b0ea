"""The rules for adapters behind HTTP (signet-adapter/1), in whatever language they are written.

The tests are quick, and each is named for its rule. The whole proof is `signet-conformance run` with a target whose
driver is `http-adapter`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from signet_conformance.contracts import fakes
from signet_conformance.contracts.fakes import demand
from signet_conformance.drivers.hosts import http_adapter as driver

SESSION: Mapping[str, Any] = {"sessionKey": "5c0f3f0e-contract", "agentId": "atlas-agent", "project": "/srv/acme"}
STARTED: Mapping[str, Any] = {**SESSION, "source": "startup"}
INJECTED = "The gateway listens at port 50051, as the team decided in March."
TRANSCRIPT = "User: Which port?\nAssistant: 50051."
PATHS = frozenset({"plugin", "legacy"})


@dataclass(frozen=True)
class RunningServer:
    """A server that runs, and the daemon whose address it was given."""

    daemon: fakes.RecordingDaemon
    server: driver.AdapterServer
    bound_s: float
    paths: Mapping[str, str]

    def call(self, method: str, **params: Any) -> driver.AdapterAnswer:
        """Call a method of the session; the test fails if the answer is late."""
        answer = self.server.call(self.paths.get(method, f"/{method}"), {**SESSION, **params}, self.bound_s)
        demand(not answer.timed_out, f"{method} was not answered within {self.bound_s:g} s")
        return answer

    def start_session(self, method: str, **params: Any) -> driver.AdapterAnswer:
        """Start the session and call a method of it. Both must succeed; the test skips an absent optional one."""
        for name, arguments in (("onSessionStart", STARTED), (method, params)):
            answer = self.call(name, **arguments)
            if answer.absent and name not in ("onSessionStart", "onUserPromptSubmit", "onSessionEnd"):
                pytest.skip(f"the adapter serves no {name}")
            _check_answer(name, answer)
        return answer

    def hook(self, path: str) -> fakes.Request:
        """The last request to a path of the daemon; the test fails when there was none."""
        requests = [request for request in self.daemon.requests if request.path == path]
        demand(requests, f"the daemon was never asked {path}; it was asked {self.daemon.paths() or 'nothing'}")
        return requests[-1]


class AdapterServerContract:
    """Subclass it, and set `command` to the command that starts your server.

    `{port}` in `command` becomes the port to listen at. The environment holds the port as PORT, and the daemon's
    address as SIGNET_DAEMON_URL. `harness` is the name that the adapter must send (default: any). `paths` maps the
    methods that are not served under their own names. Each call must be answered within `bound_s` seconds.
    """

    command: ClassVar[Sequence[str]] = ()
    harness: ClassVar[str | None] = None
    paths: ClassVar[Mapping[str, str]] = {}
    bound_s: ClassVar[float] = 30.0

    @pytest.fixture
    def served(self) -> Iterator[RunningServer]:
        """The server, with a daemon that records its requests."""
        if not self.command:
            raise NotImplementedError('say command = ["node", "server.mjs", "{port}"]: how your server is started')
        with contextlib.ExitStack() as stack:
            daemon = fakes.RecordingDaemon()
            stack.callback(daemon.stop)
            environment = stack.enter_context(pytest.MonkeyPatch.context())
            for name in [name for name in os.environ if name.startswith("SIGNET_")]:
                environment.delenv(name)
            environment.setenv("SIGNET_DAEMON_URL", daemon.origin)
            server = driver.AdapterServer(self.command, "http://127.0.0.1:{port}", daemon.origin)
            stack.callback(server.close)
            yield RunningServer(daemon, server, self.bound_s, self.paths)

    def test_a_start_claims_the_session(self, served: RunningServer) -> None:
        """A call of onSessionStart is a session-start with harness, key and project."""
        _check_answer("onSessionStart", served.call("onSessionStart", **STARTED))
        self._check_hook(served.hook(fakes.START), "project")

    def test_a_prompt_is_told_in_the_user_s_words(self, served: RunningServer) -> None:
        """A call of onUserPromptSubmit is a user-prompt-submit with the text in userMessage or userPrompt."""
        served.start_session("onUserPromptSubmit", prompt="Which port?")
        asked = served.hook(fakes.PROMPT)
        self._check_hook(asked)
        text = asked.body.get("userMessage") or asked.body.get("userPrompt")
        demand(text == "Which port?", f"the prompt is told as {asked.body!r}: put its text in userMessage")

    def test_what_the_daemon_injects_reaches_the_harness(self, served: RunningServer) -> None:
        """The adapter answers a start and a prompt with the `inject` that the daemon gave."""
        served.daemon.always[fakes.START] = fakes.Answer({"inject": INJECTED, "memories": []})
        start = served.call("onSessionStart", **STARTED)
        demand(
            start.body.get("inject") == INJECTED,
            f"onSessionStart answered {dict(start.body)!r}: give it the daemon's inject",
        )
        served.daemon.always[fakes.PROMPT] = fakes.Answer(
            {"inject": INJECTED[::-1], "memoryCount": 1, "sessionKnown": True}
        )
        turn = served.call("onUserPromptSubmit", prompt="Which port?")
        demand(
            turn.body.get("inject") == INJECTED[::-1],
            f"onUserPromptSubmit answered {dict(turn.body)!r}: give it the daemon's inject",
        )

    def test_an_end_hands_over_the_transcript(self, served: RunningServer) -> None:
        """A call of onSessionEnd is a session-end with the key, the project as cwd, and what was said."""
        served.start_session("onSessionEnd", reason="exit", transcript=TRANSCRIPT)
        end = served.hook(fakes.END)
        self._check_hook(end, "cwd")
        handed = str(end.body.get("transcript") or "").strip() or end.body.get("transcriptPath")
        demand(handed, f"the end hands over no transcript: {end.body!r}")

    def test_a_compaction_is_told_before_and_after(self, served: RunningServer) -> None:
        """An answer to onPreCompaction has the daemon's summaryPrompt; onCompactionComplete hands the summary over."""
        asked = served.start_session("onPreCompaction", messageCount=2)
        self._check_hook(served.hook(fakes.PRE))
        demand(
            asked.body.get("summaryPrompt") == "Summarise.",
            f"onPreCompaction answered {dict(asked.body)!r}: give it the daemon's summaryPrompt",
        )
        done = served.call("onCompactionComplete", summary="It is port 50051.")
        demand(not done.absent, "the adapter serves onPreCompaction, but no onCompactionComplete")
        complete = served.hook(fakes.COMPLETE)
        self._check_hook(complete)
        demand(complete.body.get("summary") == "It is port 50051.", f"the summary is told as {complete.body!r}")

    def test_a_daemon_that_is_away_costs_no_turn(self, served: RunningServer) -> None:
        """Without a daemon at the address, every call is answered 2xx, with nothing to inject."""
        served.daemon.refuse()
        for method, params in (("onSessionStart", STARTED), ("onUserPromptSubmit", {"prompt": "Which port?"})):
            answer = served.call(method, **params)
            _check_answer(method, answer, "with the daemon away")
            demand(not answer.body.get("inject"), f"{method} injects {answer.body.get('inject')!r} of no daemon")
        # The fixture stops it again.
        served.daemon.listen_again()

    @pytest.mark.parametrize("broken", ["status", "not JSON", "wrong shape", "reset"])
    def test_a_daemon_that_fails_costs_no_turn(self, served: RunningServer, broken: str) -> None:
        """A 500, an answer that is not JSON or of a wrong shape, and a reset connection do not make the call fail."""
        answer = {
            "status": fakes.Answer({"error": "Hook execution failed"}, 500),
            "not JSON": fakes.Answer(text="<html>"),
            "wrong shape": fakes.Answer({"inject": 42, "memories": {}}),
            "reset": fakes.Answer(fault="reset"),
        }[broken]
        served.daemon.always[fakes.START] = served.daemon.always[fakes.PROMPT] = answer
        for method, params in (("onSessionStart", STARTED), ("onUserPromptSubmit", {"prompt": "Which port?"})):
            _check_answer(method, served.call(method, **params), f"when the daemon answers with {broken}")

    def test_a_method_that_is_not_there_is_refused(self, served: RunningServer) -> None:
        """404, 405 or 501 say so; the kit takes any other status for an answer."""
        answer = served.server.call("/onDance", dict(SESSION), self.bound_s)
        demand(answer.absent, f"POST /onDance was answered {answer.status}, not 404, 405 or 501")

    def test_it_goes_on_after_a_call_that_it_cannot_read(self, served: RunningServer) -> None:
        """Parameters without a session do not end the server."""
        served.server.call(self.paths.get("onSessionStart", "/onSessionStart"), {}, self.bound_s)
        _check_answer("onSessionStart", served.call("onSessionStart", **STARTED), "after one without parameters")

    def _check_hook(self, hook: fakes.Request, project: str | None = None) -> None:
        """Check a hook's harness, key, agent, any runtime path, and the project in the member that `project` names."""
        operation = hook.path.rsplit("/", 1)[-1]
        body = hook.body if isinstance(hook.body, dict) else {}
        name = body.get("harness")
        demand(isinstance(name, str) and name.strip(), f"{operation} says no harness: {body!r}")
        demand(self.harness in (None, name), f"{operation} says the harness {name!r}, not {self.harness!r}")
        key = str(body.get("sessionKey") or body.get("sessionId") or "").removeprefix("session:")
        demand(key == SESSION["sessionKey"], f"{operation} says the session key {key!r}, not {SESSION['sessionKey']!r}")
        agent = body.get("agentId")
        demand(agent == SESSION["agentId"], f"{operation} says the agent {agent!r}, not {SESSION['agentId']!r}")
        path = hook.headers.get("x-signet-runtime-path", body.get("runtimePath"))
        demand(path is None or path in PATHS, f"{operation} says the runtime path {path!r}, not plugin or legacy")
        if project is not None:
            value = body.get(project)
            demand(value == SESSION["project"], f"{operation} says the {project} {value!r}, not {SESSION['project']!r}")


def _check_answer(method: str, answer: driver.AdapterAnswer, when: str = "") -> None:
    good = answer.status is not None and 200 <= answer.status < 300 and not answer.thrown
    got = answer.thrown or f"status {answer.status}"
    demand(
        good, f"{method} was answered with {got}{' ' if when else ''}{when}: 200 with an object, or 204, is expected"
    )
