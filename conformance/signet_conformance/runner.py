"""A run: daemon, recorder and connector are launched, scenarios performed, one trace recorded for each.

The runner judges nothing. What it leaves behind is a folder of traces, with the kit's own marks for
every step, fault and model turn.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signet_conformance.drivers.command import CommandDriver
from signet_conformance.errors import KitError, NothingTestedError, SignetConformanceError, UsageError, printable
from signet_conformance.processes import LineProcess
from signet_conformance.scenarios.script import CONNECTOR_STEPS, Scenario
from signet_conformance.targets import Target

READY_TIMEOUT_S = 60.0
CONTROL_TIMEOUT_S = 30.0
IDLE_TIMEOUT_S = 20.0
STEP_MARGIN_S = 60.0
"""What a step may take beyond the target's own bounds before the connector counts as hung."""

CANARY_VARIABLE = "SIGNET_CONFORMANCE_CANARY"
SECRET_NAME = "ACME_DEPLOY_TOKEN"

_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "PYTHONHASHSEED", "VIRTUAL_ENV", "COVERAGE_PROCESS_START")
"""What a child may see of our environment: never a credential, never the user's own Signet settings."""

Progress = Callable[[int, int, Scenario], None]


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """One performed scenario: its trace, and the error that cut it short, if any."""

    scenario: str
    trace: Path
    error: str | None = None


def clean_environment(home: Path, **extra: str) -> dict[str, str]:
    """An environment for a child: a home of its own, no inherited credentials."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "NO_COLOR": "1", **extra}


class DaemonUnderTest:
    """The daemon of a run: the embedded one, one that runs already, or one that a command starts."""

    def __init__(self, choice: str, folder: Path) -> None:
        self._choice = choice
        self._folder = folder
        self._process: LineProcess | None = None
        self.url = ""

    def start(self, port: int = 0) -> None:
        """Launch it, or look whether it is there; sets `url`."""
        if self._choice.startswith(("http://", "https://")):
            self.url = self._choice.rstrip("/")
            _wait_healthy(self.url, 5.0, self._choice)
            return
        if self._choice == "embedded":
            command = [
                sys.executable, "-m", "signet_conformance.daemon",
                "--port", str(port), "--workspace", str(self._folder), "--until-stdin-closes",
            ]  # fmt: skip
            self._process = LineProcess("the embedded daemon", command, env=clean_environment(self._folder))
            self.url = str(self._process.receive(READY_TIMEOUT_S)["url"])
            return
        port = port or _free_port()
        command = shlex.split(self._choice)
        if not command:
            raise UsageError("is empty", where="--daemon", remedy="embedded, a URL, or a command that starts a daemon")
        env = clean_environment(self._folder, SIGNET_PORT=str(port), SIGNET_HOST="127.0.0.1", SIGNET_PATH=str(self._folder))
        self._process = LineProcess("the daemon", command, env=env, error=NothingTestedError)
        self.url = f"http://127.0.0.1:{port}"
        _wait_healthy(self.url, READY_TIMEOUT_S, self._choice, self._process)

    @property
    def can_restart(self) -> bool:
        """Whether the kit started it, and so may end it."""
        return self._process is not None

    def restart(self) -> None:
        """End it and start it again on the same port, with the same workspace."""
        port = int(self.url.rsplit(":", 1)[1])
        self.close()
        self.start(port)

    def close(self) -> None:
        """End what was started."""
        if self._process is not None:
            self._process.close()
            self._process = None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:  # noqa: S310 - http(s) checked by the caller
            return int(answer.status) == 200
    except (OSError, urllib.error.URLError, ValueError):
        return False


def _wait_healthy(url: str, timeout_s: float, choice: str, process: LineProcess | None = None) -> None:
    deadline = time.monotonic() + timeout_s
    while not _healthy(url):
        ended = process is not None and process.returncode is not None
        if ended or time.monotonic() > deadline:
            tail = "" if process is None else "".join(f"\n    {printable(line, 300)}" for line in list(process.stderr)[-5:])
            raise NothingTestedError(
                "the daemon ended before it answered" if ended else f"no daemon answers GET {url}/health",
                where=f"--daemon {printable(choice)}",
                remedy=f"start it, or use --daemon embedded{tail}",
            )
        time.sleep(0.05)


class Recorder:
    """The recorder process and its control channel."""

    def __init__(self, upstream: str, folder: Path, canary: str) -> None:
        command = [
            sys.executable, "-m", "signet_recording_proxy",
            "--upstream", upstream, "--out", str(folder / "before.jsonl"), "--control", "--canary-env", CANARY_VARIABLE,
        ]  # fmt: skip
        env = clean_environment(folder, **{CANARY_VARIABLE: canary})
        self._process = LineProcess("the recorder", command, env=env)
        self.url = str(self._process.receive(READY_TIMEOUT_S)["url"])

    def ask(self, op: str, timeout_s: float = CONTROL_TIMEOUT_S, **members: Any) -> Mapping[str, Any]:
        """Send one command; raise KitError when the recorder refuses it."""
        answer = self._process.ask({"op": op, **members}, timeout_s)
        if answer.get("ok") is not True:
            raise KitError(f"the recorder refused {op}: {printable(answer.get('error'), 300)}", remedy=answer.get("remedy"))
        return answer

    def mark(self, name: str, /, **data: Any) -> None:
        """Write a mark into the trace."""
        self.ask("mark", name=name, data=data)

    def close(self) -> None:
        """End it."""
        self._process.close()


class Run:
    """Performs scenarios against one target. A context manager: everything it launched ends with it."""

    def __init__(self, target: Target, folder: Path, daemon: str = "embedded") -> None:
        self._target = target
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._home = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="signet-conformance-")))
        self._daemon = DaemonUnderTest(daemon, self._home / "agents")
        self._token = f"sig_sk_{secrets.token_hex(20)}"
        self._canary = f"canary-{secrets.token_hex(12)}"
        self._id = uuid.uuid4().hex[:8]

    def __enter__(self) -> Run:
        try:
            for folder in (self._folder, self._home / "agents", self._home / "home", self._home / "recorder"):
                folder.mkdir(parents=True, exist_ok=True)
            self._daemon.start()
            self._stack.callback(self._daemon.close)
            self._recorder = Recorder(self._daemon.url, self._home / "recorder", self._canary)
            self._stack.callback(self._recorder.close)
            self._plant_secret()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _plant_secret(self) -> None:
        """Store the canary as a secret, so that a connector that leaks one leaks something we can recognise."""
        body = b'{"value": "%s"}' % self._canary.encode()
        request = urllib.request.Request(  # noqa: S310 - the daemon's own address
            f"{self._daemon.url}/api/secrets/{SECRET_NAME}", data=body, headers={"content-type": "application/json"}, method="POST"
        )
        # A daemon that keeps no secrets is one where none can leak.
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=10):  # noqa: S310
            pass

    def perform(self, scenarios: Sequence[Scenario], progress: Progress | None = None) -> Iterator[ScenarioRun]:
        """Perform each scenario with a connector process of its own; yield its trace when it is done."""
        usable = [s for s in scenarios if not self._without_sense(s)]
        waiting: CommandDriver | None = None
        try:
            for index, scenario in enumerate(usable):
                if progress is not None:
                    progress(index + 1, len(usable), scenario)
                driver = waiting if waiting is not None else self._launch(scenario)
                # The next connector starts while this scenario runs: starting up is most of what it costs.
                waiting = self._launch(usable[index + 1]) if index + 1 < len(usable) else None
                yield self._perform_one(scenario, driver)
        finally:
            if waiting is not None:
                waiting.close()

    def _without_sense(self, scenario: Scenario) -> bool:
        declared = self._target.declared.capabilities
        lacks = declared is not None and any(need not in declared for need in scenario.needs)
        return lacks or (any(s["step"] == "restart_daemon" for s in scenario.steps) and not self._daemon.can_restart)

    def _launch(self, scenario: Scenario) -> CommandDriver:
        declared = self._target.declared
        extra = {
            "SIGNET_DAEMON_URL": self._recorder.url,
            "SIGNET_PATH": str(self._home / "home" / ".agents"),
            **({"SIGNET_AGENT_ID": declared.agents[0]} if declared.agents else {}),
            **({"SIGNET_TOKEN": self._token} if declared.token else {}),
            **scenario.env,
        }
        timeout_s = max(declared.bounds_s.values(), default=15.0) * 4 + STEP_MARGIN_S
        return CommandDriver(self._target, clean_environment(self._home / "home", **extra), str(self._home / "home"), timeout_s)

    def _perform_one(self, scenario: Scenario, driver: CommandDriver) -> ScenarioRun:
        out = self._folder / f"{scenario.name}.jsonl"
        header = {"target": self._target.name, "declared": self._target.declared.to_json()}
        self._recorder.ask("trace", out=str(out), header=header)
        self._recorder.mark("scenario", name=scenario.name, title=scenario.title)
        error: str | None = None
        try:
            if scenario.env.get("SIGNET_BYPASS") == "1":
                self._recorder.mark("bypass", on=True)
            driver.hello()
            performance = _Performance(self._recorder, self._daemon, self._target, driver, f"{self._id}-{scenario.name}")
            for index, step in enumerate(scenario.steps):
                performance.step(index, step)
            driver.flush()
        except SignetConformanceError as failure:
            error = str(failure)
        finally:
            driver.close()
            self._recorder.ask("fault_off", id=None)
            with contextlib.suppress(KitError):
                self._recorder.ask("idle", timeout_s=IDLE_TIMEOUT_S)
            self._recorder.mark("scenario_end", name=scenario.name, error=error)
        return ScenarioRun(scenario.name, out, error)


class _Performance:
    """One scenario under way: what steps before left behind for those after."""

    def __init__(self, recorder: Recorder, daemon: DaemonUnderTest, target: Target, driver: CommandDriver, unique: str) -> None:
        self._recorder = recorder
        self._daemon = daemon
        self._target = target
        self._driver = driver
        self._unique = unique
        self._results: dict[str, Mapping[str, Any]] = {}

    def step(self, index: int, step: Mapping[str, Any]) -> None:
        """Perform one step, with its mark before it."""
        kind = step["step"]
        if kind in CONNECTOR_STEPS:
            given = self._filled(step)
            self._recorder.mark("step", index=index, **{k: v for k, v in given.items() if k != "arguments"})
            result = self._driver.perform(given, self._on_event)
            if "as" in step:
                content = result.get("content")
                self._results[step["as"]] = content if isinstance(content, Mapping) else {}
        elif kind == "fault":
            self._recorder.ask("fault", fault=self._fault(step["fault"]), match=step.get("match"))
        elif kind == "fault_off":
            self._recorder.ask("fault_off", id=None)
        else:
            self._recorder.mark("fault", kind="restart", on=True)
            self._daemon.restart()
            self._recorder.mark("fault", kind="restart", on=False)

    def _on_event(self, event: Mapping[str, Any]) -> None:
        if event.get("event") == "model":
            self._recorder.mark("model", session=event.get("session"))

    def _fault(self, fault: Mapping[str, Any]) -> Mapping[str, Any]:
        if fault.get("delay_s") != "beyond":
            return fault
        # Past the bound and its grace, so that only a connector that gives up in time gets away.
        return {**fault, "delay_s": max(self._target.declared.bounds_s.values(), default=15.0) + 2.0}

    def _filled(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """The step with an agent for its number, and earlier results in place of references."""
        given = {k: v for k, v in step.items() if k != "as"}
        agents = self._target.declared.agents
        if isinstance(given.get("agent"), int):
            given["agent"] = agents[min(given["agent"], len(agents) - 1)] if agents else None
        if "arguments" in given:
            given["arguments"] = self._resolve(given["arguments"])
        return given

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            if set(value) == {"from", "pointer"}:
                found: Any = self._results.get(value["from"], {})
                for part in value["pointer"].strip("/").split("/"):
                    found = found.get(part) if isinstance(found, Mapping) else None
                return found if found is not None else "00000000-0000-4000-8000-000000000000"
            return {k: self._resolve(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._resolve(v) for v in value]
        return value


