"""From a target to a running connector: which program speaks signet-driver/1 for it, and how many of them."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from signet_conformance.drivers.command import CommandDriver, OnEvent
from signet_conformance.drivers.pool import Fleet
from signet_conformance.errors import TargetError
from signet_conformance.targets import Target
from signet_conformance.targets.face import find_face
from signet_conformance.targets.files import find_file, find_program, find_runtime, first_of
from signet_conformance.targets.server import PORT, server_url

HOSTS = Path(__file__).parent / "hosts"
_HOST_PACKAGE = "signet_conformance.drivers.hosts"
_OPTIONS = {"tools", "plugin_config", "config"}


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


def launch(target: Target, env: Mapping[str, str], cwd: str, step_timeout_s: float) -> Driver:
    """Start the connector of a target, in folder `cwd` with `env`; raise TargetError naming what this machine lacks."""
    ready = dataclasses.replace(target, command=command_line(target))
    env = {**env, **target.env}
    if target.driver == "command" and target.processes == "one":
        return CommandDriver(ready, env, cwd, step_timeout_s)
    return Fleet(ready, env, cwd, step_timeout_s)


def command_line(target: Target) -> tuple[str, ...]:
    """The program that speaks signet-driver/1 for a target. Raises TargetError naming what this machine lacks."""
    if target.driver == "command":
        return _given_command(target)
    if target.driver == "http-adapter":
        return sys.executable, "-m", f"{_HOST_PACKAGE}.http_adapter", json.dumps(_served(target))
    face = str(find_face(target).path)
    options: dict[str, Any] = target.profile.model_dump(include=_OPTIONS, exclude_unset=True)
    if target.driver == "node-plugin":
        return find_runtime(target), str(HOSTS / "node_host.mjs"), face, str(find_file(target)), json.dumps(options)
    host = sys.executable, "-m", f"{_HOST_PACKAGE}.{target.driver.replace('-', '_')}", face
    if target.driver == "mcp":
        return *host, json.dumps({**options, **_memory_server(target)})
    if "config" in options:
        options["config"], module = str(target.folder / options["config"]), ""
    else:
        module = str(find_file(target))
    if target.driver == "command-hooks":
        options["capabilities"] = target.declared.capabilities or ()
        options["install"] = [find_runtime(target), str(HOSTS / "install.mjs")]
    options["programs"] = _programs(target)
    return *host, module, json.dumps(options)


def _memory_server(target: Target) -> Mapping[str, Any]:
    """How a memory server is reached: by its address, or by the words that start it on standard input and output."""
    if target.profile.url is not None:
        _demand_client(target)
        return _served(target)
    if not target.command:
        return {"server": [find_runtime(target), str(find_file(target))]}
    if any(PORT in word for word in target.command):
        raise TargetError(
            f"a command with {PORT} starts a server over HTTP, and no url says where",
            where=target.where,
            remedy=f'url = "http://127.0.0.1:{PORT}/mcp"',
        )
    return {"server": [find_program(target), *target.command[1:]]}


def _demand_client(target: Target) -> None:
    if find_spec("mcp") is None:
        raise TargetError(
            "the official MCP client is not installed",
            where=target.where,
            remedy="pip install 'signet-conformance[harness]'",
        )


def _served(target: Target) -> Mapping[str, Any]:
    """The address of a server on this machine, and the command that starts it where it does not run already."""
    url = server_url(target)
    if target.command:
        find_program(target)
    return {"command": target.command, "url": url, "paths": target.profile.paths}


def _given_command(target: Target) -> tuple[str, ...]:
    """The command of the profile, with the connector's file and its runtime in their places."""
    if not target.command:
        raise TargetError(f"no program drives {target.name} yet", where=target.where, remedy=target.profile.build)
    found: Mapping[str, Callable[[], str]] = {
        "{runtime}": lambda: find_runtime(target),
        "{module}": lambda: str(find_file(target)),
    }
    return tuple(found[word]() if word in found else word for word in target.command)


def _programs(target: Target) -> Mapping[str, list[str]]:
    """The connector's own programs by the name under which it installs them; those not found are taken from PATH."""
    found = {name: first_of(target, places) for name, places in target.profile.programs.items()}
    return {name: [find_runtime(target), str(path)] for name, path in found.items() if path is not None}
