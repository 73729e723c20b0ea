"""From a target to a running connector: which program speaks signet-driver/1 for it, and how many of them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol

from signet_conformance.drivers.pool import Fleet
from signet_conformance.drivers.process import DriverProcess, OnEvent, Starting
from signet_conformance.errors import TargetError
from signet_conformance.targets import Target
from signet_conformance.targets.real import real_command_line


class Driver(Protocol):
    """What performs steps: one connector process, or several behind one face."""

    def hello(self) -> Mapping[str, Any]:
        """Greet the connector, which may speak to the daemon from now on."""

    def perform(self, step: Mapping[str, Any], on_event: OnEvent) -> Mapping[str, Any]:
        """Hand one step over and return its result; raise TargetError when it cannot be performed."""

    def flush(self) -> None:
        """Wait until all background work is done."""

    def close(self) -> None:
        """End the connector and everything it started."""


def launch(
    target: Target,
    env: Mapping[str, str],
    cwd: str,
    step_timeout_s: float,
    starting: Starting = contextlib.nullcontext,
) -> Driver:
    """Start the connector of a target, in folder `cwd` with `env`; raise TargetError naming what this machine lacks.

    A process is started and greeted within `starting()`.
    """
    ready = dataclasses.replace(target, command=command_line(target))
    env = {**env, **target.env}
    if target.kind.own_program and target.processes == "one":
        return DriverProcess(ready, env, cwd, step_timeout_s, starting)
    return Fleet(ready, env, cwd, step_timeout_s, starting)


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
