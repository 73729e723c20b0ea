"""Tools and fields of the contract that the model cannot reach through a connector. Information, never a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from msgspec import Struct

from signet_conformance.contract import contract_version_of, document, version_document
from signet_conformance.engine import Judged
from signet_conformance.trace.marks import OfferedMark, marks_of

_TOOLS: Mapping[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "memory_search": (("memory-recall", "hooks-recall", "memory-search"), frozenset({"query"})),
    "memory_store": (("memory-remember", "hooks-remember"), frozenset({"content"})),
    "memory_get": (("memory-get",), frozenset({"id"})),
    "memory_list": (("memories-list",), frozenset()),
    "memory_modify": (("memory-patch", "memory-modify"), frozenset({"id", "patches"})),
    "memory_forget": (("memory-delete", "memory-forget"), frozenset({"id", "ids", "query"})),
    "memory_feedback": (("memory-feedback",), frozenset()),
    "session_search": (("sessions-search",), frozenset({"query"})),
    "secret_list": (("secrets-list",), frozenset()),
    "secret_exec": (("secrets-exec",), frozenset({"command"})),
    "secret_exec_status": (("secrets-exec-job",), frozenset({"jobid", "id"})),
}
"""Tool of the contract to its operations, of which one is enough, and to the members of which it needs one."""
_OF_THE_CONNECTOR = frozenset(
    {"runtimepath", "harness", "sessionkey", "sessionid", "agentid", "project", "idempotencykey", "mode"}
)
"""Fields that a connector fills in by itself, and no model."""


_PREFIX = "signet_"
"""What connectors put before the names of tools that the host has already."""
_MOST_NAMED = 6


class Reach(Struct, frozen=True):
    """What cannot be reached: `tools`, `fields` by tool, and `unfillable` tools, whose schema names nothing of use."""

    tools: tuple[str, ...] = ()
    fields: Mapping[str, tuple[str, ...]] = {}
    unfillable: tuple[str, ...] = ()

    @property
    def points(self) -> frozenset[str]:
        """Each thing that cannot be reached, as one text."""
        fields = (f"{tool}.{field}" for tool, names in self.fields.items() for field in names)
        return frozenset({*self.tools, *fields, *self.unfillable})

    @property
    def words(self) -> str:
        """The first of it in one line; empty where everything can be reached."""
        parts = [f"{tool}: {_first(names)}" for tool, names in self.fields.items() if names]
        parts += [f"tools: {_first(self.tools)}"] if self.tools else []
        parts += [f"no schema that could be filled: {_first(self.unfillable)}"] if self.unfillable else []
        return "; ".join(parts)


def _first(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class ReachMeter:
    """Collects what tools offer and what is sent, trace by trace."""

    def __init__(self) -> None:
        self._offered: dict[str, set[str]] = {}
        self._sent: dict[str, set[str]] = {}
        self._contract: str | None = None

    def add(self, judged: Judged) -> None:
        """Take one judged trace into account."""
        offered = list(marks_of(judged.trace, OfferedMark))
        if not offered:
            return
        for mark in offered:
            self._contract = self._contract or contract_version_of(judged.daemon_version)
            for tool, members in mark.tools.items():
                self._offered.setdefault(tool.removeprefix(_PREFIX), set()).update(members)
        for operations, _ in _TOOLS.values():
            for call in judged.recording.of(*operations, cut=True):
                self._sent.setdefault(str(call.operation), set()).update((*call.body, *call.query))

    def reach(self) -> Reach | None:
        """What no step could reach; None where no tool of the connector is known."""
        if self._contract is None:
            return None
        files = version_document(self._contract)["operations"]
        known = {tool: row for tool, row in _TOOLS.items() if any(name in files for name in row[0])}
        served = {tool for tool, (operations, _) in known.items() if any(name in self._sent for name in operations)}
        return Reach(
            tools=tuple(tool for tool in known if tool not in served and tool not in self._offered),
            fields={
                tool: fields
                for tool, (operations, _) in known.items()
                if tool in self._offered and (fields := self._missing(tool, operations))
            },
            unfillable=tuple(
                tool
                for tool, (_, needed) in known.items()
                if tool in self._offered and needed and not needed & set(map(_plain, self._offered[tool]))
            ),
        )

    def _missing(self, tool: str, operations: tuple[str, ...]) -> tuple[str, ...]:
        files = version_document(str(self._contract))["operations"]
        used = [name for name in operations if name in self._sent] or [name for name in operations if name in files][:1]
        sent = set().union(*(self._sent.get(name, set()) for name in used))
        reached = {*map(_plain, self._offered[tool]), *map(_plain, sent), *_OF_THE_CONNECTOR}
        fields: dict[str, str] = {}
        for name in used:
            for field in _fields(files[name]["request"]["file"]) if name in files else ():
                fields.setdefault(_plain(field), field)
        return tuple(field for plain, field in fields.items() if plain not in reached)


@cache
def _fields(file: str) -> tuple[str, ...]:
    return tuple(document(file).get("properties", {}))


def _plain(name: str) -> str:
    """A member's name as connectors and the daemon spell it alike: agent_id is agentId."""
    return name.replace("_", "").lower()
