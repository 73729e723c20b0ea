"""The kinds of connector that the kit can drive: settings, needs and launched program of each.

A new kind is one more entry of `KINDS`. The programs in drivers/hosts play harnesses; they are launched, never
imported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import TargetError, pip_install
from signet_conformance.targets import doctor, files
from signet_conformance.targets.face import HostFace, find_face

if TYPE_CHECKING:
    from signet_conformance.targets import Target

HOSTS = Path(__file__).parents[1] / "drivers" / "hosts"
_PACKAGE = "signet_conformance.drivers.hosts"
_FILE = frozenset({"module", "files"})
_LOADED = _FILE | {"runtime"}
_SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorKind:
    """One kind of connector, as `driver` of a profile names it.

    `reads`: its settings beside those of every kind. `instead` maps a setting to the settings that it replaces.
    `command_line` returns the command of the program that speaks signet-driver/1 for a target; it raises TargetError
    naming what this machine lacks. `needs` yields its prerequisites. `plays`: the member of a host face without which
    the harness cannot be played. `has_face`: whether a harness is played at all. `endings`: the file names' endings
    that the host loads; None leaves it to the runtime. `named`: an example of how the settings name such a connector.

    `runs_in_folder`: whether the host runs in a folder that the kit makes for the project, instead of just handing the
    connector a path. `resumes_anew`: whether a host resumes a session in another process than the one that began it;
    None leaves it to the face. `own_program`: whether the connector's author provides the program that performs the
    steps. `process_per_hook`: whether the connector is a new process at each hook, which remembers nothing.
    """

    name: str
    reads: frozenset[str]
    command_line: Callable[[Target], tuple[str, ...]]
    needs: Callable[[Target], Iterator[doctor.Prerequisite]]
    instead: Mapping[str, frozenset[str]] = field(default_factory=dict)
    plays: str | None = None
    has_face: bool = True
    endings: tuple[str, ...] | None = None
    named: str = 'such as module = "dist/index.js", a path from the folder of the settings'
    runs_in_folder: bool = False
    resumes_anew: bool | None = True
    own_program: bool = False
    process_per_hook: bool = False


def python_host(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """The command that launches a host in Python with its options."""
    return sys.executable, "-P", "-m", f"{_PACKAGE}.{name}", json.dumps(options)


def host_file(name: str) -> str:
    """The path of a host in JavaScript."""
    return str(HOSTS / name)


def installed_programs(target: Target) -> Mapping[str, list[str]]:
    """The commands of the connector's own programs, by the names under which it installs them; not those of PATH.

    Raises TargetError for a program that does not exist: each of its hooks would fail, and the connector be blamed.
    If the settings name the connector's file or a file of hooks, a missing program is no error.
    """
    is_own = target.profile.config is not None or target.profile.module is not None
    commands: dict[str, list[str]] = {}
    for name in target.profile.programs:
        place = files.installed_program(target, name)
        if isinstance(place, Path):
            commands[name] = files.program_command(target, place)
        elif place is None and not is_own:
            raise TargetError(
                f"{name}, which the connector calls by this name, is neither built nor on PATH",
                where=f"--target {target.name}",
                remedy=files.build_remedy(target),
            )
    return commands


def _server(target: Target) -> Mapping[str, Any]:
    """The options of a host that calls a server on this machine.

    Raises TargetError when the server is on another machine, or the program that starts it does not exist.
    """
    url = doctor.server_url(target)
    if target.command:
        files.find_program(target)
    return {"command": target.command, "url": url, "paths": target.profile.paths}


def _own_command(target: Target) -> tuple[str, ...]:
    """The profile's command, with the paths of the connector's file and its runtime filled in."""
    if not target.command:
        raise TargetError(f"no program drives {target.name} yet", where=target.where, remedy=target.profile.build)
    places: Mapping[str, Callable[[], str]] = {
        "{runtime}": lambda: files.find_runtime(target),
        "{module}": lambda: str(files.find_file(target)),
    }
    return tuple(places[word]() if word in places else word for word in target.command)


def _command_hooks(target: Target) -> tuple[str, ...]:
    options = {"tools": target.profile.tools, "face": str(find_face(target).path)}
    if target.profile.config is not None:
        options["config"] = str(target.folder / target.profile.config)
    else:
        module = files.find_file(target)
        options["module"] = str(module)
        options["install"] = [files.find_runtime(target, module), host_file("install.mjs")]
    options["capabilities"] = target.declared.capabilities or ()
    options["programs"] = installed_programs(target)
    return python_host("command_hooks", options)


def _command_hooks_needs(target: Target) -> Iterator[doctor.Prerequisite]:
    if target.profile.config is None:
        yield from doctor.loaded_needs(target)
        return
    path = target.folder / target.profile.config
    remedy = f"{path} does not exist: correct the setting config"
    yield doctor.Prerequisite("the file of hooks", str(path) if path.is_file() else None, remedy)


def _mcp(target: Target) -> tuple[str, ...]:
    face = find_face(target)
    options = {"face": str(face.path), "tools": target.profile.tools, **_mcp_server(target, face)}
    return python_host("mcp", {**options, "capabilities": target.declared.capabilities or ()})


def _mcp_server(target: Target, face: HostFace) -> Mapping[str, Any]:
    """Options that say how the server is reached: its address, or a command that starts it on stdin and stdout.

    If the face names the file in which the harness finds the server, the connector's file is its installer.
    """
    if target.profile.url is not None:
        if find_spec("mcp") is None:
            raise TargetError(
                "the official MCP client is not installed", where=target.where, remedy=pip_install("harness")
            )
        return _server(target)
    if not target.command:
        module = files.find_file(target)
        runtime = files.find_runtime(target, module)
        if face.data.mcp is not None:
            install = [runtime, host_file("install.mjs")]
            return {"install": install, "module": str(module), "programs": installed_programs(target)}
        return {"server": [runtime, str(module)]}
    if any(doctor.PORT in word for word in target.command):
        raise TargetError(
            f"a command with {doctor.PORT} starts a server over HTTP, and no url says where",
            where=target.where,
            remedy=f'url = "http://127.0.0.1:{doctor.PORT}/mcp"',
        )
    return {"server": [files.find_program(target), *target.command[1:]]}


def _mcp_needs(target: Target) -> Iterator[doctor.Prerequisite]:
    if target.profile.url is not None:
        yield from doctor.server_needs(target)
        client = find_spec("mcp")
        yield doctor.Prerequisite(
            "the official MCP client", None if client is None else client.origin, pip_install("harness")
        )
    elif target.command:
        yield from doctor.program_needs(target, "a memory server over standard input and output")
    else:
        yield from doctor.loaded_needs(target)


def _node_plugin(target: Target) -> tuple[str, ...]:
    face = str(find_face(target).path)
    module = files.find_file(target)
    options = json.dumps(target.profile.model_dump(include={"tools", "plugin_config"}, exclude_unset=True))
    return files.find_runtime(target, module), host_file("node_host.mjs"), face, str(module), options


def _python_plugin(target: Target) -> tuple[str, ...]:
    named = {"face": str(find_face(target).path), "module": str(files.find_file(target))}
    return python_host("python_plugin", {"tools": target.profile.tools, **named})


DEFAULT = ConnectorKind(
    name="command",
    reads=_LOADED | {"command"},
    command_line=_own_command,
    needs=lambda target: doctor.program_needs(target, "a program that speaks signet-driver/1"),
    has_face=False,
    own_program=True,
)
"""The kind of a target that names none: a program of the connector's author performs the steps."""

KINDS: Mapping[str, ConnectorKind] = {
    kind.name: kind
    for kind in (
        DEFAULT,
        # Programs that a harness runs at its events, as a file of hooks says.
        ConnectorKind(
            name="command-hooks",
            reads=_LOADED | {"config", "face", "older", "programs", "tools"},
            instead={"config": _FILE},
            command_line=_command_hooks,
            needs=_command_hooks_needs,
            plays="settings",
            endings=_SCRIPTS,
            runs_in_folder=True,
            resumes_anew=False,
            process_per_hook=True,
        ),
        # A server of the connector's author that serves the five methods of a runtime adapter.
        ConnectorKind(
            name="http-adapter",
            reads=frozenset({"command", "paths", "url"}),
            command_line=lambda target: python_host("http_adapter", _server(target)),
            needs=doctor.server_needs,
            has_face=False,
        ),
        # A memory server, which the kit speaks to as the harness of a model would.
        ConnectorKind(
            name="mcp",
            reads=_LOADED | {"command", "face", "older", "programs", "tools", "url"},
            instead={"command": _LOADED | {"programs"}, "url": _LOADED | {"programs"}},
            command_line=_mcp,
            needs=_mcp_needs,
            runs_in_folder=True,
            named='such as command = ["node", "{root}/server.mjs"], or url = "http://127.0.0.1:8080/mcp"',
        ),
        # A module that a harness in JavaScript loads.
        ConnectorKind(
            name="node-plugin",
            reads=_LOADED | {"face", "older", "plugin_config", "tools"},
            command_line=_node_plugin,
            needs=doctor.loaded_needs,
            plays="code",
            endings=_SCRIPTS,
            resumes_anew=None,
        ),
        # A module that a harness in Python loads.
        ConnectorKind(
            name="python-plugin",
            reads=_FILE | {"face", "older", "tools"},
            command_line=_python_plugin,
            needs=lambda target: iter([doctor.connector_need(target)]),
            plays="calls",
            endings=(".py",),
            runs_in_folder=True,
        ),
    )
}
"""The kinds by name: `driver` of a profile."""
