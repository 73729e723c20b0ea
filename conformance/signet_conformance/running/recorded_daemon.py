"""A daemon with a recorder in front of it, where connectors perform scenarios.

It writes a trace for each scenario, with the kit's marks for every step, fault and model turn, and judges nothing.
"""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from signet_conformance import trace
from signet_conformance.children.environment import TAG, clean_environment, new_tag
from signet_conformance.drivers.answers import loaded_marks
from signet_conformance.drivers.installing import INSTALL_VARIABLE
from signet_conformance.drivers.launch import launch
from signet_conformance.drivers.model_process import CONTROL_VARIABLE, MODEL_VARIABLE, ModelProcess
from signet_conformance.drivers.played_model import PlayedModel
from signet_conformance.drivers.process import ConnectorDriver, ConnectorNotLoadedError
from signet_conformance.drivers.watched_driver import WatchedDriver
from signet_conformance.errors import KitError, NothingTestedError, SignetConformanceError, TargetError
from signet_conformance.outcome.time_spent import TimePart
from signet_conformance.running.daemon import READY_TIMEOUT_S, DaemonUnderTest, ask_directly
from signet_conformance.running.default_port import StrayRequests
from signet_conformance.running.leftover_processes import LeftBehind, end_left, latest_request
from signet_conformance.running.performer import StepPerformer, is_resumed, turn_goes_on
from signet_conformance.running.recorder import CANARY_VARIABLE, ModelRecorder, RecorderClient, mark_command
from signet_conformance.running.stopwatch import Stopwatch
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.targets import Target
from signet_conformance.targets.face import ahead_of_connector, face_of_harness, find_face
from signet_conformance.targets.face_parts import AnswerPlaces
from signet_conformance.trace import GIVEN_CREDENTIAL
from signet_conformance.trace.marks import BypassMark, LoadedMark, ScenarioEndMark, ScenarioMark, UnheardPortMark
from signet_conformance.trace.recordings import model_side

IDLE_TIMEOUT_S = 20.0
STEP_MARGIN_S = 60.0
"""A step hangs if it takes this much longer than four times the target's longest bound."""
REAL_STEP_S = 900.0
"""The bound for a step of a real program: its driver gives up earlier, with a better message."""
DEFAULT_AGENT = "default"
COMPILE_CACHES = {"node": "NODE_COMPILE_CACHE", "bun": "BUN_RUNTIME_TRANSPILER_CACHE_PATH"}
"""Runtime to the variable that names its compile cache. Node reads it from 22.1 on."""
SECRET_NAME = "ACME_DEPLOY_TOKEN"  # noqa: S105 - a name


class RecordedDaemon:
    """A daemon with a recorder in front. `canary` is planted as a secret; connectors that take a token get `token`.

    `model`: the harness asks a model, so a scripted one is started too, with a recorder in front of it; a real program
    always gets one.

    The folder `compiled` holds the compile caches of the connector's runtimes; None uses no cache. Both processes
    start with the first connector, so one that is not used costs nothing.
    """

    def __init__(
        self,
        target: Target,
        daemon: str,
        home: Path,
        *,
        canary: str,
        token: str,
        model: bool = False,
        stopwatch: Stopwatch | None = None,
        compiled: Path | None = None,
        left_behind: LeftBehind | None = None,
    ) -> None:
        self.target = target
        self._compiled = compiled
        self._left_behind = left_behind
        self.stopwatch = stopwatch or Stopwatch()
        self._home = home
        self._canary = canary
        self._token = token
        self.daemon = DaemonUnderTest(daemon, home / "agents", self.stopwatch)
        self._stack = contextlib.ExitStack()
        self._started = False
        self._has_model = model
        self._model: ModelRecorder | None = None
        self._model_variables: Mapping[str, str] = {}
        self._between = 0
        self._installations = 0
        self.unheard_port: str | None = None
        """Why requests to the daemon's default port are not recorded; None if they are."""

    def start(self) -> None:
        """Launch daemon and recorder, unless they run."""
        if self._started:
            return
        for folder in (self._home / "agents", self._home / "home", self._home / "recorder"):
            folder.mkdir(parents=True, exist_ok=True)
        self._strays = StrayRequests(self._home / "home")
        self._stack.callback(self.daemon.close)
        with self.stopwatch.on(TimePart.DAEMON_START):
            self.daemon.start()
        if self._has_model or self.target.real is not None:
            with self.stopwatch.on(TimePart.MODEL_START):
                self._start_model()
        folder = self._home / "recorder"
        self._recorder = RecorderClient(self.daemon.url, folder, self._secrets, self.stopwatch, self._model)
        self._stack.callback(self._recorder.close)
        self._recorder.demand_reachable()
        # The kit recognises this text if a connector leaks it; a daemon without secrets is used too.
        self._store(f"secrets/{SECRET_NAME}", {"value": self._canary})
        self._plant_memory()
        self._started = True

    def _start_model(self) -> None:
        server = ModelProcess(clean_environment(self._home / "recorder"))
        self._stack.callback(server.close)
        self._model = ModelRecorder(server.url, self._home / "recorder", self._secrets)
        self._stack.callback(self._model.close)
        self._model_variables = {MODEL_VARIABLE: self._model.url, CONTROL_VARIABLE: server.url}

    @property
    def _secrets(self) -> Mapping[str, str]:
        return {CANARY_VARIABLE: self._canary, GIVEN_CREDENTIAL: self._token}

    @property
    def home(self) -> str:
        """The HOME of connectors at this daemon."""
        return str(self._home / "home")

    def _mark_strays(self) -> None:
        for stray in self._strays.take():
            self._recorder.mark(stray)

    def close(self) -> None:
        """End what was launched."""
        with self.stopwatch.on(TimePart.ENDING):
            self._stack.close()

    def _plant_memory(self) -> None:
        """Store facts about a project that the scenarios ask about, so that the prompt hook injects them.

        Without them no recording shows how a connector uses an answer to a prompt. They are stored for the first agent
        and for the daemon's default agent, under which connectors run that name none. One name has one entity.
        """
        first = next(iter(self.target.declared.agents), DEFAULT_AGENT)
        self._store("memory/remember", _facts_on("Atlas Billing", first))
        if first != DEFAULT_AGENT:
            self._store("memory/remember", _facts_on("atlas billing", DEFAULT_AGENT))

    def _store(self, path: str, body: Mapping[str, Any]) -> None:
        # Not through the recorder. A daemon that refuses is used nevertheless; a busy one gets its starting time.
        request = urllib.request.Request(  # noqa: S310 - the daemon's own address
            f"{self.daemon.url}/api/{path}",
            data=json.dumps(body).encode(),
            headers={"content-type": "application/json"},
            method="POST",
        )
        with contextlib.suppress(OSError), ask_directly(request, timeout_s=READY_TIMEOUT_S):
            pass

    def launch(self, env: Mapping[str, str]) -> ConnectorDriver:
        """Launch a connector process that calls this daemon's recorder, with `env` beside the usual variables."""
        self.start()
        home = self._home / "home"
        if INSTALL_VARIABLE in env:
            self._installations += 1
            home = self._home / f"home-{self._installations}"
            home.mkdir()
        declared = self.target.declared
        extra = {
            "SIGNET_DAEMON_URL": self._recorder.url,
            "SIGNET_PATH": str(home / ".agents"),
            **({"SIGNET_AGENT_ID": declared.agents[0]} if declared.agents else {}),
            **({"SIGNET_TOKEN": self._token} if declared.token else {}),
            **self._model_variables,
            **self._cache_variables,
            TAG: new_tag(),
            **env,
        }
        if self._plays and find_face(self.target).data.tells_plugins:
            self._copy_instructions(home / ".agents")
        # The variables of a scenario are what it tests: they win over the target's own.
        own = {name: value for name, value in self.target.env.items() if name not in env}
        starting = partial(self.stopwatch.on, TimePart.CONNECTOR_START)
        env = clean_environment(home, **extra)
        return launch(replace(self.target, env=own), env, str(home), self.step_timeout_s, starting)

    @property
    def step_timeout_s(self) -> float:
        """How long a step may take; a connector that works on a busy machine gets more."""
        if self.target.real is not None:
            return REAL_STEP_S
        return max(self.target.declared.bounds_s.values(), default=15.0) * 4 + STEP_MARGIN_S

    def _copy_instructions(self, workspace: Path) -> None:
        """Copy the agent's instructions from the daemon's workspace into the user's.

        A plugin that gets no answer to its start reads them there. Installers of commands make files of them.
        """
        own, copy = self._home / "agents" / "AGENTS.md", workspace / "AGENTS.md"
        if own.is_file() and not copy.exists():
            workspace.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(own.read_bytes())

    @property
    def _cache_variables(self) -> Mapping[str, str]:
        """The variables that name the compile caches: a connector's script is loaded hundreds of times.

        Programs of other vendors get only the variables that the harness would give them.
        """
        if self._compiled is None or self.target.real is not None or self.target.kind.own_program:
            return {}
        return {name: str(self._compiled / runtime) for runtime, name in COMPILE_CACHES.items()}

    def end(self, driver: ConnectorDriver) -> None:
        """End a connector and the processes that it left."""
        with self.stopwatch.on(TimePart.ENDING):
            driver.close()
            end_left(driver.tag)

    def _end_and_record_left(self, driver: ConnectorDriver, out: Path) -> None:
        """End a connector; give what it left time for last requests, and record which processes stay."""
        if self._left_behind is None or self.target.real is not None:
            self.end(driver)
            return
        with self.stopwatch.on(TimePart.ENDING):
            driver.close()
            marks = self._left_behind.conclude(driver.tag, lambda: latest_request(trace.read(out)))
        for each in marks:
            self._recorder.mark(each)

    def perform(
        self,
        scenario: Scenario,
        driver: ConnectorDriver,
        out: Path,
        *,
        apart: str | None = None,
        earlier_keys: Iterable[str] = (),
        part: bool = False,
    ) -> str | None:
        """Record `scenario` in the new file `out`. Returns the error that cut it short, None without one.

        The connector is greeted before and ended after it, unless it performs several scenarios: then `apart` is a
        suffix that separates the sessions and projects of this one from those of the others, and `earlier_keys` are
        those of earlier sessions. `part` marks it as one of a part of the scenarios of a run. Raises NothingTestedError
        if the connector cannot be started.
        """
        answers = self._answers
        model = PlayedModel(answers) if answers is not None and apart is None and self._plays else None
        began = ScenarioMark(name=scenario.name, title=scenario.title, earlier_keys=tuple(earlier_keys))
        self._open_recording(began, scenario.bypass, out, with_model=model is not None)
        error: str | None = None
        loaded = True
        performance: StepPerformer | None = None
        try:
            about = driver.hello() if apart is None else {}
            if apart is None:
                self._note(about)
            performance = StepPerformer(
                recorder=self._recorder,
                daemon=self.daemon,
                target=self.target,
                driver=driver,
                apart="" if apart is None else f"-{apart}",
                on_greeting=self._note,
                stopwatch=self.stopwatch,
                model=model,
            )
            performance.note_about(about)
            for index, step in enumerate(scenario.steps):
                hints = {"more": turn_goes_on(scenario.steps, index), "resumed": is_resumed(scenario.steps, index)}
                performance.step(index, step, {name: True for name, holds in hints.items() if holds})
                self._mark_strays()
            with self.stopwatch.on(TimePart.BACKGROUND):
                driver.flush()
            self._mark_strays()
        except ConnectorNotLoadedError as failure:
            # This is the only finding of the scenario.
            self._recorder.mark(LoadedMark(ok=False, words=failure.message, **self._played))
            loaded = False
        except NothingTestedError:
            error = "the connector cannot be started"
            raise
        except SignetConformanceError as failure:
            error = str(failure)
        finally:
            if error is not None or not loaded:
                self.end(driver)
            elif apart is None:
                self._end_and_record_left(driver, out)
                if isinstance(driver, WatchedDriver):
                    error = driver.given_up
            error = self._end_recording(scenario, error, part=part)
        if self.stopwatch.detailed and performance is not None:
            self.stopwatch.look_into_steps(trace.read(out), performance.took_s)
        return error

    def _open_recording(self, began: ScenarioMark, bypass: str | None, out: Path, *, with_model: bool) -> None:
        played = self._played
        header = {
            "target": self.target.name,
            "declared": self.target.declared.to_json(),
            "connector_release": self.target.release,
            "host": played.get("host"),
            "host_release": played.get("release"),
            **self._about_model(),
        }
        self._recorder.ask(
            {"op": "trace", "out": str(out), "header": header, "model": model_side(str(out)) if with_model else None},
            mark_command(began),
            *([] if self.unheard_port is None else [mark_command(UnheardPortMark(words=self.unheard_port))]),
            *([] if bypass is None else [mark_command(BypassMark(on=True, variable=bypass))]),
        )

    def _note(self, about: Mapping[str, Any]) -> None:
        """Write the driver's answer to hello, about the loaded connector and its installation, into the recording."""
        self._recorder.ask(*map(mark_command, loaded_marks(about, self._played)))

    @property
    def _plays(self) -> bool:
        """Whether the harness is one that the kit plays, and asks no model of its own."""
        return self.target.kind.has_face and self.target.real is None and not self._has_model

    @property
    def _answers(self) -> AnswerPlaces | None:
        """How the host, played or real, writes its requests to the model; None if that is not known."""
        real = self.target.real
        if real is not None:
            with contextlib.suppress(TargetError):
                return face_of_harness(real.program.name, real.release).data.answers
        return find_face(self.target).data.answers if self._plays else None

    def _about_model(self) -> Mapping[str, Any]:
        if (answers := self._answers) is not None:
            return answers.in_header()
        # The self-test records the reference's model: injected texts are system text in each request of the turn.
        return {"lasts": "turn", "in_prompt": True} if self._has_model else {}

    @property
    def _played(self) -> dict[str, Any]:
        """The host, played or real, with its release and later ones; empty if the author's program is the host."""
        real, ahead = self.target.real, ahead_of_connector(self.target)
        if real is not None:
            return {"host": real.program.name, "release": real.release, "real": True, "ahead": ahead}
        if not self.target.kind.has_face:
            return {}
        face = find_face(self.target)
        return {
            "host": face.data.harness,
            "release": face.data.version,
            "newer": tuple(face.newer),
            "ahead": ahead,
            "awaits_compaction": face.data.awaits_compaction,
        }

    def _end_recording(self, scenario: Scenario, error: str | None, *, part: bool) -> str | None:
        """End the recording of a scenario. Return the error that broke it off: `error`, or one of the recorder."""
        # From here on requests belong to no scenario: late ones, at the end, or at the next greeting.
        self._between += 1
        next_trace = {"op": "trace", "out": str(self._home / "recorder" / f"between-{self._between}.jsonl")}
        faults_off, idle = {"op": "fault_off", "id": None}, {"op": "idle", "timeout_s": IDLE_TIMEOUT_S}
        # An open request gets its line when it ends, or a line that says that it was cut off.
        with contextlib.suppress(KitError):
            self._recorder.ask(faults_off, idle, part=TimePart.OPEN_REQUESTS)
        with contextlib.suppress(KitError):
            error = error or self._recorder.new_failure()
            self._recorder.ask(mark_command(ScenarioEndMark(name=scenario.name, error=error, part=part)), next_trace)
        return error


def _facts_on(project: str, agent: str) -> Mapping[str, Any]:
    facts = {
        "database": "its database is PostgreSQL 16 behind pgbouncer at port 6432",
        "refund_approval": "a refund above 500 EUR needs the approval of Mira Lindt",
    }
    rows = [{"content": content, "groupKey": "operation", "claimKey": claim} for claim, content in facts.items()]
    aspect = {"entityName": project, "entityType": "project", "aspect": "operation", "attributes": rows}
    return {
        "content": f"Of {project}: {'; '.join(facts.values())}.",
        "agentId": agent,
        "structured": {"entities": [], "aspects": [aspect]},
    }
