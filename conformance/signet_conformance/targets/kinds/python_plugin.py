"""The kind `python-plugin`: a module that a harness in Python loads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from signet_conformance.targets.face import find_face
from signet_conformance.targets.files import find_file
from signet_conformance.targets.hosts import installed_programs, options, python_host
from signet_conformance.targets.kinds.kind import FILE, Kind
from signet_conformance.targets.needs import Need, connector_need

if TYPE_CHECKING:
    from signet_conformance.targets import Target


def _command_line(target: Target) -> tuple[str, ...]:
    face = str(find_face(target).path)
    given = {**options(target, "tools"), "programs": installed_programs(target)}
    return *python_host("python_plugin"), face, str(find_file(target)), json.dumps(given)


def _needs(target: Target) -> Iterator[Need]:
    yield connector_need(target)


KIND = Kind(
    name="python-plugin",
    reads=FILE | {"face", "tools"},
    command_line=_command_line,
    needs=_needs,
    plays="calls",
    endings=(".py",),
)
