"""How the kit's own programs that play a harness are launched; they stand in drivers/hosts and are not imported."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import TargetError
from signet_conformance.targets.files import find_program, find_runtime, installed_program, made
from signet_conformance.targets.server import server_url

if TYPE_CHECKING:
    from signet_conformance.targets import Target

_PACKAGE = "signet_conformance.drivers.hosts"
HOSTS = Path(__file__).parents[1] / "drivers" / "hosts"


def python_host(name: str) -> tuple[str, ...]:
    """The words that launch a host in Python."""
    return sys.executable, "-P", "-m", f"{_PACKAGE}.{name}"


def host_file(name: str) -> str:
    """The path of a host in JavaScript."""
    return str(HOSTS / name)


def options(target: Target, *names: str) -> dict[str, Any]:
    """Those of a profile's settings that a host reads, as far as they are set."""
    return target.profile.model_dump(include=set(names), exclude_unset=True)


def served(target: Target) -> Mapping[str, Any]:
    """The address of a server on this machine, and the command that starts it where it does not run already.

    Raises TargetError when the server is not on this machine, or the program that starts it is not.
    """
    url = server_url(target)
    if target.command:
        find_program(target)
    return {"command": target.command, "url": url, "paths": target.profile.paths}


def installed_programs(target: Target) -> Mapping[str, list[str]]:
    """The connector's own programs by the name under which it installs them; those of PATH are left out.

    Raises TargetError when one is nowhere: each of its hooks would fail, and the connector be blamed for it. Where
    settings name a connector's file or a file of hooks, it may call other programs or none.
    """
    is_own = target.profile.config is not None or target.profile.module is not None
    commands: dict[str, list[str]] = {}
    for name in target.profile.programs:
        place = installed_program(target, name)
        if isinstance(place, Path):
            commands[name] = [find_runtime(target, place), str(place)]
        elif place is None and not is_own:
            raise TargetError(
                f"{name}, which the connector calls by this name, is neither built nor on PATH",
                where=f"--target {target.name}",
                remedy=made(target),
            )
    return commands
