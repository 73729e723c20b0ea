"""From a target to a running connector: which program speaks signet-driver/1 for it, and how many processes of it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pwd
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.children.environment import TAG
from signet_conformance.children.temporary import temporary_folder
from signet_conformance.drivers.hosts.installed import objections
from signet_conformance.drivers.hosts.protocol import PROJECTS_VARIABLE, Projects
from signet_conformance.drivers.installing import INSTALL_VARIABLE, Installations, find_installer
from signet_conformance.drivers.process import HANDOVER, ConnectorDriver, DriverProcess, OnEvent, Starting
from signet_conformance.errors import TargetError
from signet_conformance.targets import Target
from signet_conformance.targets.real import real_command_line
from signet_conformance.trace.marks import ONCE

_REMEMBERED = ("agent", "project", "key")
_ALL = "all"


class ConnectorProcesses:
    """Launches a connector process when the first step comes that needs it."""

    def __init__(
        self, target: Target, env: Mapping[str, str], start: Callable[[Mapping[str, str]], DriverProcess]
    ) -> None:
        """`start` starts a process of the connector with an environment."""
        self._target = target
        self._start_process = start
        self._folders = contextlib.ExitStack()
        projects = _projects_folder(self._folders)
        self._env = {**env, PROJECTS_VARIABLE: str(projects)}
        self._projects = Projects(projects)
        self.tag = env.get(TAG, "")
        self._processes: dict[str, DriverProcess] = {}
        self._sessions: dict[str, dict[str, Any]] = {}
        # Started ahead, like any connector: starting up is most of what it costs.
        self._spare: DriverProcess | None = None
        try:
            self._spare = self._new(self._default_agent)
        except BaseException:
            self._folders.close()
            raise

    @property
    def _default_agent(self) -> str | None:
        return self._target.declared.agents[0] if self._target.declared.agents else None

    def _new(self, agent: str | None) -> DriverProcess:
        return self._start_process({**self._env, **({} if agent is None else {"SIGNET_AGENT_ID": agent})})

    def hello(self) -> Mapping[str, Any]:
        """Greet the process that serves the whole run; one for an agent or a session is greeted when it is needed."""
        if self._target.processes == "one":
            return self._start(_ALL, self._default_agent)
        return {}

    def perform(self, step: Mapping[str, Any], on_event: OnEvent) -> Mapping[str, Any]:
        """Hand the step to the process of its session; raise TargetError when it cannot be performed."""
        session = str(step.get("session"))
        known = self._sessions.setdefault(session, {})
        known.update({member: step[member] for member in _REMEMBERED if step.get(member) is not None})
        if step.get("step") in ("start", "resume", "restart_host"):
            # Before its process is there: what that one sends when it comes up belongs to the step.
            folder = self._folder_of(known.get("project"))
            on_event({"event": HANDOVER, **({} if folder is None else {"folder": folder})})
        name = {"one": _ALL, "agent": str(known.get("agent"))}.get(self._target.processes, session)
        if step.get("step") == "restart_host" and not self._target.kind.process_per_hook and name in self._processes:
            self._processes.pop(name).kill()
        if name not in self._processes:
            agent = known.get("agent")
            about = self._start(name, agent if isinstance(agent, str) else self._default_agent)
            on_event({"event": "hello", "about": about})
        # A process that is started for a session again has to be told what the first one knew.
        given = {**{member: known[member] for member in _REMEMBERED if member in known}, **step}
        result = self._processes[name].perform(given, on_event)
        if isinstance(result.get("key"), str):
            known["key"] = result["key"]
        if step.get("step") == "end" and self._target.processes == "session":
            self._end(name)
        return result

    def _folder_of(self, project: object) -> str | None:
        """The folder that the host of a session is run in, or that it hands to the connector; None if not known."""
        if self._target.real is not None or self._target.kind.runs_in_folder:
            return str(self._projects.folder(project))
        return project if isinstance(project, str) and not self._target.kind.own_program else None

    def _start(self, name: str, agent: str | None) -> Mapping[str, Any]:
        """Launch and greet the process of an agent or a session; what it says of itself."""
        spare, self._spare = (self._spare, None) if agent == self._default_agent else (None, self._spare)
        self._processes[name] = self._new(agent) if spare is None else spare
        return self._processes[name].hello()

    def _end(self, name: str) -> None:
        process = self._processes.pop(name)
        try:
            process.flush()
        finally:
            process.close()

    def flush(self) -> None:
        """Wait until no process has anything left to do in the background."""
        for process in self._processes.values():
            process.flush()

    def close(self) -> None:
        """End every process and everything it started, and remove the project folders."""
        with contextlib.ExitStack() as ends:
            ends.callback(self._folders.close)
            for process in (*self._processes.values(), *([] if self._spare is None else [self._spare])):
                ends.callback(process.close)
            self._processes.clear()
            self._spare = None


def _projects_folder(folders: contextlib.ExitStack) -> Path:
    """A folder below the user's cache: a session whose project is below /tmp is noise to the daemon."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    for base in (home / ".cache", Path("/var/tmp")):  # noqa: S108 - the folder below it is private
        with contextlib.suppress(OSError):
            base.mkdir(parents=True, exist_ok=True)
            # Without links: the connector asks the system where it is.
            return folders.enter_context(temporary_folder("signet-conformance-", base.resolve()))
    return folders.enter_context(temporary_folder("signet-conformance-"))


class ReinstalledConnector(ConnectorProcesses):
    """A connector that was installed in each way.

    Its answer to the greeting has more rows: `installations`, and `accepted_files`, which includes refused ones.
    """

    installations: Sequence[Mapping[str, Any]] = ()
    accepted_files: Sequence[Mapping[str, Any]] = ()

    def hello(self) -> Mapping[str, Any]:
        """Greet the connector, and add what the installations left."""
        about = super().hello()
        failed = [row["words"] for row in self.installations if row["how"] != ONCE and "words" in row]
        remarks = [f"the installer fails when it runs again, or over an older release: {words}" for words in failed]
        remarks += [row["remark"] for row in self.installations if "remark" in row]
        return {
            **about,
            "installed": [*objections(self.accepted_files, about.get("events", ())), *about.get("installed", ())],
            "reinstalled": [*self.installations, *about.get("reinstalled", ())],
            "remarks": [*about.get("remarks", ()), *remarks],
        }


def launch(
    target: Target, env: Mapping[str, str], cwd: str, step_timeout_s: float, starting: Starting = contextlib.nullcontext
) -> ConnectorDriver:
    """Start the connector of a target, in folder `cwd` with `env`; raise TargetError naming what this machine lacks.

    A process is started and greeted within `starting()`.
    """
    ready = dataclasses.replace(target, command=command_line(target))

    def start(env: Mapping[str, str]) -> DriverProcess:
        return DriverProcess(ready, env, cwd, step_timeout_s, starting)

    env = {**env, **target.env}
    installer = find_installer(target) if INSTALL_VARIABLE in env else None
    if installer is not None:
        installations = Installations(target, installer, env)
        reinstalled = ReinstalledConnector(ready, env, start)
        reinstalled.installations, reinstalled.accepted_files = installations.rows(), installations.accepted_files
        return reinstalled
    if target.kind.own_program and target.processes == "one":
        return start(env)
    return ConnectorProcesses(ready, env, start)


def command_line(target: Target) -> tuple[str, ...]:
    """The program that speaks signet-driver/1 for a target. Raises TargetError naming what this machine lacks."""
    if target.undriven is not None:
        raise TargetError(
            f"the kit cannot drive {target.name} {target.release}: {target.undriven}",
            where=target.where,
            remedy="drive a later release, or name a file of hooks with the setting config",
        )
    if target.real is not None:
        return real_command_line(target, target.real)
    return target.kind.command_line(target)
