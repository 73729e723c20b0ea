"""The kind `http-adapter`: a server of the connector's author serves the five methods of a runtime adapter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from signet_conformance.targets.hosts import python_host, served
from signet_conformance.targets.kinds.kind import Kind
from signet_conformance.targets.needs import Need, server_needs

if TYPE_CHECKING:
    from signet_conformance.targets import Target


def _command_line(target: Target) -> tuple[str, ...]:
    return *python_host("http_adapter"), json.dumps(served(target))


def _needs(target: Target) -> Iterator[Need]:
    yield from server_needs(target)


KIND = Kind(
    name="http-adapter",
    reads=frozenset({"command", "paths", "url"}),
    command_line=_command_line,
    needs=_needs,
    has_face=False,
)
