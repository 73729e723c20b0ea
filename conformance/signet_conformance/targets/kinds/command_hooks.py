"""The kind `command-hooks`: programs that a harness runs at its events, as a file of hooks tells it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from signet_conformance.targets.face import find_face
from signet_conformance.targets.files import find_file, find_runtime
from signet_conformance.targets.hosts import host_file, installed_programs, options, python_host
from signet_conformance.targets.kinds.kind import FILE, LOADED, SCRIPTS, Kind
from signet_conformance.targets.needs import Need, loaded_needs, runtime_need

if TYPE_CHECKING:
    from signet_conformance.targets import Target


def _command_line(target: Target) -> tuple[str, ...]:
    face = str(find_face(target).path)
    given = options(target, "tools", "config")
    module = None if target.profile.config is not None else find_file(target)
    if target.profile.config is not None:
        given["config"] = str(target.folder / target.profile.config)
    given["capabilities"] = target.declared.capabilities or ()
    given["install"] = [find_runtime(target, module), host_file("install.mjs")]
    given["programs"] = installed_programs(target)
    return *python_host("command_hooks"), face, str(module or ""), json.dumps(given)


def _needs(target: Target) -> Iterator[Need]:
    if target.profile.config is None:
        yield from loaded_needs(target)
        return
    yield runtime_need(target)
    path = target.folder / target.profile.config
    remedy = f"{path} does not exist: mend the setting config"
    yield Need("the file of hooks", str(path) if path.is_file() else None, remedy)


KIND = Kind(
    name="command-hooks",
    reads=LOADED | {"config", "face", "programs", "tools"},
    instead={"config": FILE},
    command_line=_command_line,
    needs=_needs,
    plays="settings",
    endings=SCRIPTS,
    resumes_anew=False,
    process_a_hook=True,
)
