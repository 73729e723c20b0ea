"""The tools and fields of the contract that a model cannot reach through a connector. Information, never a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, json
from msgspec.structs import replace

from signet_conformance.contract import contract_version_of, request_members, spelling, version_document
from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import first_of
from signet_conformance.facts import Call
from signet_conformance.files.json_values import objects_in
from signet_conformance.outcome.next_contract import next_contract
from signet_conformance.rules.tool_requests import is_value
from signet_conformance.trace.marks import OfferedMark, StepMark, marks_of


class ContractTool(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool of the contract. It needs one of the `operations`, and one of the members in `needs`."""

    operations: tuple[str, ...]
    needs: frozenset[str] = frozenset()


_TOOLS = json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, ContractTool])
_OF_THE_CONNECTOR = frozenset(
    {"runtimepath", "harness", "sessionkey", "sessionid", "agentid", "project", "idempotencykey", "mode"}
)
"""Fields that the connector fills in, not the model."""


_PREFIX = "signet_"
"""The prefix of tools whose plain names the host uses itself."""
_MOST_NAMED = 6


class UnreachableParts(Struct, frozen=True):
    """What cannot be reached: `tools`, `fields` by tool, and `unfillable` tools, whose schema has no needed member.

    `dropped` are those of the `fields` that the tool offers but passes on in no request. `later` is what cannot be
    reached of the next contract `version`, if the connector's release is between two.
    """

    tools: tuple[str, ...] = ()
    fields: Mapping[str, tuple[str, ...]] = {}
    unfillable: tuple[str, ...] = ()
    dropped: Mapping[str, tuple[str, ...]] = {}
    version: str | None = None
    later: UnreachableParts | None = None

    @property
    def points(self) -> frozenset[str]:
        """A name for each part that cannot be reached."""
        fields = (f"{tool}.{field}" for tool, names in self.fields.items() for field in names)
        later = frozenset() if self.later is None else self.later.points
        return frozenset({*self.tools, *fields, *self.unfillable}) | later

    @property
    def words(self) -> str:
        """The first names in one line; empty if everything can be reached."""
        dropped = {tool: frozenset(names) for tool, names in self.dropped.items()}
        absent = {tool: [n for n in names if n not in dropped.get(tool, ())] for tool, names in self.fields.items()}
        parts = [f"{tool}: {_first(names)}" for tool, names in absent.items() if names]
        parts += [f"{tool} offers {_first(names)} but sends it in no request" for tool, names in self.dropped.items()]
        parts += [f"tools: {_first(self.tools)}"] if self.tools else []
        parts += [f"schema without the needed fields: {_first(self.unfillable)}"] if self.unfillable else []
        parts += [f"of contract {self.version}: {self.later.words}"] if self.later and self.later.words else []
        return "; ".join(parts)


def _first(names: Sequence[str]) -> str:
    return first_of(names, _MOST_NAMED)


class ReachMeter:
    """Collects, trace by trace, the members that tools offer and those that requests contain."""

    def __init__(self, release: str | None = None) -> None:
        self._release = release
        self._offered: dict[str, set[str]] = {}
        self._sent: dict[str, set[str]] = {}
        self._given: dict[str, set[str]] = {}
        self._passed: dict[str, set[str]] = {}
        self._contract: str | None = None
        self._next: str | None = None

    def add(self, judged: JudgedTrace) -> None:
        """Take one judged trace."""
        offered = list(marks_of(judged.trace, OfferedMark))
        if not offered:
            return
        for mark in offered:
            self._contract = self._contract or contract_version_of(judged.daemon_version)
            self._next = self._next or next_contract(judged, self._release)
            for tool, members in mark.tools.items():
                self._offered.setdefault(tool.removeprefix(_PREFIX), set()).update(members)
        for known in _TOOLS.values():
            for call in judged.recording.of(*known.operations, cut=True):
                self._sent.setdefault(str(call.operation), set()).update((*call.body, *call.query))
        self._add_steps(judged)

    def _add_steps(self, judged: JudgedTrace) -> None:
        """Note which members each tool was given, and which of them the requests of the same step contain."""
        recording = judged.recording
        for mark in recording.marks(StepMark):
            known = _TOOLS.get(str(mark.tool))
            served = () if known is None else known.operations
            calls = [call for call in recording.timeline.calls_in(mark) if call.operation in served]
            if mark.arguments is None or not any(call.accepted and not call.cut for call in calls):
                continue
            tool, leaves = str(mark.tool), [leaf for call in calls for leaf in _leaves_of(call)]
            names, values = {name for name, _ in leaves}, [value for _, value in leaves]
            members = list(_members(mark.arguments))
            for name, value in members:
                if name not in names and any(_holds(value, each) for other, each in members if other != name):
                    # Another member has the same value, so a request does not show which of the two it contains.
                    continue
                self._given.setdefault(tool, set()).add(name)
                # The connector may send it under another name, or within a text.
                if name in names or any(_holds(each, value) for each in values):
                    self._passed.setdefault(tool, set()).add(name)

    def reach(self) -> UnreachableParts | None:
        """What no step could reach; None if no tool of the connector is known."""
        if self._contract is None:
            return None
        now = self._reach_of(self._contract)
        return now if self._next is None else replace(now, version=self._next, later=self._addition_of(self._next, now))

    def _addition_of(self, version: str, now: UnreachableParts) -> UnreachableParts:
        """What cannot be reached of `version` beyond `now`: further tools, and further fields of offered tools."""
        then = self._reach_of(version)
        fields = {
            tool: tuple(field for field in names if field not in now.fields.get(tool, ()))
            for tool, names in then.fields.items()
        }
        return UnreachableParts(
            tools=tuple(tool for tool in then.tools if tool not in now.tools),
            fields={tool: names for tool, names in fields.items() if names},
        )

    def _reach_of(self, version: str) -> UnreachableParts:
        files = version_document(version)["operations"]
        known = {tool: row for tool, row in _TOOLS.items() if any(name in files for name in row.operations)}
        served = {tool for tool, row in known.items() if any(name in self._sent for name in row.operations)}
        missing = {
            tool: self._missing(tool, row.operations, version) for tool, row in known.items() if tool in self._offered
        }
        offered = {tool: set(map(spelling, members)) for tool, members in self._offered.items()}
        dropped = {
            tool: tuple(field for field in fields if spelling(field) in offered[tool])
            for tool, fields in missing.items()
        }
        return UnreachableParts(
            tools=tuple(tool for tool in known if tool not in served and tool not in self._offered),
            fields={tool: fields for tool, fields in missing.items() if fields},
            dropped={tool: fields for tool, fields in dropped.items() if fields},
            unfillable=tuple(
                tool
                for tool, row in known.items()
                if tool in self._offered and row.needs and not row.needs & set(map(spelling, self._offered[tool]))
            ),
        )

    def _missing(self, tool: str, operations: tuple[str, ...], version: str) -> tuple[str, ...]:
        files = version_document(version)["operations"]
        used = [name for name in operations if name in self._sent] or [name for name in operations if name in files][:1]
        sent = set().union(*(self._sent.get(name, set()) for name in used))
        dropped = self._given.get(tool, set()) - self._passed.get(tool, set())
        reached = {*map(spelling, self._offered[tool])} - dropped
        reached |= {*map(spelling, sent), *_OF_THE_CONNECTOR}
        fields: dict[str, str] = {}
        for name in used:
            for field in request_members(version, name):
                fields.setdefault(spelling(field), field)
        return tuple(field for plain, field in fields.items() if plain not in reached)


def _members(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The arguments of a tool by the spelling of their names; for a batch, those of each change."""
    for each in (arguments, *objects_in(arguments.get("patches"))):
        for name, value in each.items():
            if name != "patches" and value not in (None, False, "", [], {}):
                yield spelling(name), value


def _leaves_of(call: Call) -> Iterator[tuple[str, Any]]:
    """Each member of a request at any depth, by the spelling of its name; members in the path have the name ""."""
    yield "", call.path
    pending: list[tuple[str, Any]] = [*call.query.items(), *call.body.items()]
    while pending:
        name, value = pending.pop()
        yield spelling(name), value
        if isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list):
            pending += ((name, each) for each in value)


def _holds(sent: object, given: object) -> bool:
    return is_value(sent, given) or (isinstance(sent, str) and isinstance(given, str) and given in sent)
