"""Several processes of one connector behind one driver: one for each agent, or one for each session.

Where a harness is a program that serves one user at a terminal, two sessions at a time are two programs,
and the agent is what each was started with.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from signet_conformance.drivers.command import CommandDriver, OnEvent
from signet_conformance.targets import Target

_REMEMBERED = ("agent", "project", "key")


class Fleet:
    """Launches a process for a session, or for an agent, when its first step comes."""

    def __init__(self, target: Target, env: Mapping[str, str], cwd: str, step_timeout_s: float) -> None:
        self._target = target
        self._env = env
        self._cwd = cwd
        self._timeout_s = step_timeout_s
        self._crews: dict[str, CommandDriver] = {}
        self._greeted: set[str] = set()
        self._sessions: dict[str, dict[str, Any]] = {}
        # Started ahead, like any connector: starting up is most of what it costs.
        self._spare: CommandDriver | None = self._new(self._default_agent)

    @property
    def _default_agent(self) -> str | None:
        return self._target.declared.agents[0] if self._target.declared.agents else None

    def _new(self, agent: str | None) -> CommandDriver:
        env = {**self._env, **({} if agent is None else {"SIGNET_AGENT_ID": agent})}
        return CommandDriver(self._target, env, self._cwd, self._timeout_s)

    def hello(self) -> Mapping[str, Any]:
        """Nothing is greeted before its first session starts; what is known of the target stands here."""
        return {"processes": self._target.processes}

    def perform(self, step: Mapping[str, Any], on_event: OnEvent) -> Mapping[str, Any]:
        """Hand the step to the process of its session; raise TargetError when it cannot be performed."""
        session = str(step.get("session"))
        known = self._sessions.setdefault(session, {})
        known.update({name: step[name] for name in _REMEMBERED if step.get(name) is not None})
        crew = session if self._target.processes == "session" else str(known.get("agent"))
        # A process that is started for a session again has to be told what the first one knew.
        given = {**{name: known[name] for name in _REMEMBERED if name in known}, **step}
        result = self._crew(crew, known.get("agent")).perform(given, on_event)
        if isinstance(result.get("key"), str):
            known["key"] = result["key"]
        if step.get("step") == "end" and self._target.processes == "session":
            self._leave(crew)
        return result

    def _crew(self, name: str, agent: Any) -> CommandDriver:
        if name not in self._crews:
            wanted = agent if isinstance(agent, str) else self._default_agent
            spare, self._spare = (self._spare, None) if wanted == self._default_agent else (None, self._spare)
            self._crews[name] = self._new(wanted) if spare is None else spare
        if name not in self._greeted:
            self._crews[name].hello()
            self._greeted.add(name)
        return self._crews[name]

    def _leave(self, name: str) -> None:
        crew = self._crews.pop(name)
        self._greeted.discard(name)
        try:
            crew.flush()
        finally:
            crew.close()

    def flush(self) -> None:
        """Wait until no process has anything left to do in the background."""
        for name in self._greeted:
            self._crews[name].flush()

    def close(self) -> None:
        """End every process and everything it started."""
        with contextlib.ExitStack() as ends:
            for crew in (*self._crews.values(), *([] if self._spare is None else [self._spare])):
                ends.callback(crew.close)
            self._crews.clear()
            self._spare = None
