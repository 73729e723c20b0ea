"""The kind `node-plugin`: a module that a harness in JavaScript loads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from signet_conformance.targets.face import find_face
from signet_conformance.targets.files import find_file, find_runtime
from signet_conformance.targets.hosts import host_file, options
from signet_conformance.targets.kinds.kind import LOADED, SCRIPTS, Kind
from signet_conformance.targets.needs import Need, loaded_needs

if TYPE_CHECKING:
    from signet_conformance.targets import Target


def _command_line(target: Target) -> tuple[str, ...]:
    face = str(find_face(target).path)
    given = json.dumps(options(target, "tools", "plugin_config"))
    module = find_file(target)
    return find_runtime(target, module), host_file("node_host.mjs"), face, str(module), given


def _needs(target: Target) -> Iterator[Need]:
    yield from loaded_needs(target)


KIND = Kind(
    name="node-plugin",
    reads=LOADED | {"face", "plugin_config", "tools"},
    command_line=_command_line,
    needs=_needs,
    plays="code",
    endings=SCRIPTS,
    resumes_anew=None,
)
