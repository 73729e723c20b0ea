"""The kinds of connector that the kit can drive, one module each; a new kind is one more line of the table."""

from __future__ import annotations

from collections.abc import Mapping

from signet_conformance.targets.kinds import (
    command,
    command_hooks,
    http_adapter,
    mcp,
    node_plugin,
    python_plugin,
)
from signet_conformance.targets.kinds.kind import Kind

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        command.KIND,
        command_hooks.KIND,
        http_adapter.KIND,
        mcp.KIND,
        node_plugin.KIND,
        python_plugin.KIND,
    )
}
"""Each kind by the name that profiles give as their driver."""

DEFAULT = command.KIND
"""The kind of a target that names none."""
