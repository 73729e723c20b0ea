"""Tools of others: those that installed packages register, and those that the configuration names."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any, Final, cast

from signet_reference_harness.errors import ConfigError
from signet_reference_harness.tools import Tool

GROUP: Final = "signet_reference_harness.tools"
"""The entry point group: each entry names a tool, or something without arguments that makes one."""


def installed_tools() -> list[Tool]:
    """The tools that installed packages register. Raises ConfigError."""
    return [tool_of(entry.value, f"entry point {entry.name!r} of {GROUP}") for entry in entry_points(group=GROUP)]


def configured_tools(places: Sequence[str]) -> list[Tool]:
    """The tools at these places, each `module:attribute`. Raises ConfigError."""
    return [tool_of(place, f"tool {place!r}") for place in places]


def tool_of(place: str, where: str) -> Tool:
    """The tool at `module:attribute`, made if it is a class or a function. Raises ConfigError naming `where`."""
    module, _, attribute = place.partition(":")
    if not module or not attribute:
        raise ConfigError(f"{where}: is not of the form module:attribute", remedy="name it such as my_tools:Weather")
    try:
        value: Any = importlib.import_module(module.strip())
        for name in attribute.strip().split("."):
            value = getattr(value, name)
        if isinstance(value, type) or not hasattr(value, "execute"):
            value = value()
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{where}: cannot be loaded: {type(error).__name__}: {error}", remedy="install its package, or leave it out"
        ) from error
    for name, kind in (("name", str), ("description", str)):
        if not isinstance(getattr(value, name, None), kind) or not getattr(value, name).strip():
            raise ConfigError(f"{where}: has no {name}", remedy=f"give the tool a {name}")
    if not callable(getattr(value, "execute", None)) or not hasattr(value, "input_schema"):
        raise ConfigError(f"{where}: has no 'execute' or no 'input_schema'", remedy="implement the Tool interface")
    if not hasattr(value, "run_before_generation"):
        raise ConfigError(f"{where}: has no 'run_before_generation'", remedy="set it to False, usually")
    return cast(Tool, value)
