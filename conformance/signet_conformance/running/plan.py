"""What a run performs, and how the command that started it is spelt."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from signet_conformance.running.stopwatch import Stopwatch

if TYPE_CHECKING:  # scenarios bring pydantic along, which a run over recordings has no use for
    from signet_conformance.scenarios.scenario import Scenario
    from signet_conformance.targets import Target

EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a face of the kit is called to drive a target: its `words`, and what stands before an option's name."""

    words: tuple[str, ...]
    prefix: str = "--"

    def command(self, *options: tuple[str, str]) -> str:
        """The command with these options, as it can be pasted into a shell."""
        return shlex.join([*self.words, *(word for name, value in options for word in (self.prefix + name, value))])


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run performs. `scenarios` stand in for the scripted ones when there are any.

    `generated` counts the generated sessions, which `seed` determines. With `report`, the scenarios that show a
    breach are saved beside the traces. `only` are the requirements that were asked for, None for all: scripted
    scenarios that cannot decide any of them are left out. `invocation` is what a replay of a part of the run begins
    with.
    """

    target: Target
    daemon: str = EMBEDDED
    scenarios: tuple[Scenario, ...] = ()
    generated: int = 0
    seed: int = 1
    report: bool = False
    only: frozenset[str] | None = None
    invocation: Invocation | None = None
    allow_writes: bool = False
    allow_default_port: bool = False
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    def replay(self, scenario: Path) -> str:
        """The command that performs a saved scenario again, as it can be pasted where the run was started."""
        shown = scenario.relative_to(Path.cwd()) if scenario.is_relative_to(Path.cwd()) else scenario
        return self._command(("scenario", str(shown)))

    def replay_sessions(self) -> str:
        """The command that performs the generated sessions again."""
        return self._command(("scenarios", str(self.generated)), ("seed", str(self.seed)))

    def _command(self, *options: tuple[str, str]) -> str:
        invocation = self.invocation or Invocation(("signet-conformance", "run", self.target.name))
        daemon = () if self.daemon == EMBEDDED else (("daemon", self.daemon),)
        command = invocation.command(*daemon, *options)
        if self.allow_default_port:
            command += f" {invocation.prefix}allow-default-port"
        return f"{command} {invocation.prefix}allow-writes" if self.allow_writes and daemon else command
