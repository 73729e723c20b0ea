"""The kind `mcp`: a memory server, which the kit speaks to as the harness of a model would."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import TargetError
from signet_conformance.targets.face import Face, find_face
from signet_conformance.targets.files import find_file, find_program, find_runtime
from signet_conformance.targets.hosts import host_file, installed_programs, options, python_host, served
from signet_conformance.targets.kinds.kind import LOADED, Kind
from signet_conformance.targets.needs import Need, loaded_needs, program_needs, server_needs
from signet_conformance.targets.server import PORT

if TYPE_CHECKING:
    from signet_conformance.targets import Target

_INSTALL_CLIENT = "pip install 'signet-conformance[harness]'"


def _command_line(target: Target) -> tuple[str, ...]:
    face = find_face(target)
    given = {**options(target, "tools"), **_server(target, face)}
    return *python_host("mcp"), str(face.path), json.dumps(given)


def _server(target: Target, face: Face) -> Mapping[str, Any]:
    """How the server is reached: by its address, or by the words that start it on standard input and output.

    Where the face says in which file the harness finds it, the connector's file is its installer, which names it there.
    """
    if target.profile.url is not None:
        if find_spec("mcp") is None:
            raise TargetError("the official MCP client is not installed", where=target.where, remedy=_INSTALL_CLIENT)
        return served(target)
    if not target.command:
        module = find_file(target)
        runtime = find_runtime(target, module)
        if face.data.mcp is not None:
            install = [runtime, host_file("install.mjs")]
            return {"install": install, "module": str(module), "programs": installed_programs(target)}
        return {"server": [runtime, str(module)]}
    if any(PORT in word for word in target.command):
        raise TargetError(
            f"a command with {PORT} starts a server over HTTP, and no url says where",
            where=target.where,
            remedy=f'url = "http://127.0.0.1:{PORT}/mcp"',
        )
    return {"server": [find_program(target), *target.command[1:]]}


def _needs(target: Target) -> Iterator[Need]:
    if target.profile.url is not None:
        yield from server_needs(target)
        client = find_spec("mcp")
        yield Need("the official MCP client", None if client is None else client.origin, _INSTALL_CLIENT)
    elif target.command:
        yield from program_needs(target, "a memory server over standard input and output")
    else:
        yield from loaded_needs(target)


KIND = Kind(
    name="mcp",
    reads=LOADED | {"command", "face", "programs", "tools", "url"},
    instead={"command": LOADED | {"programs"}, "url": LOADED | {"programs"}},
    command_line=_command_line,
    needs=_needs,
    named='such as command = ["node", "{root}/server.mjs"], or url = "http://127.0.0.1:8080/mcp"',
)
