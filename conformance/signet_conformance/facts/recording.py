"""A trace in the form that rules read."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from functools import cached_property, partial, wraps
from itertools import accumulate
from math import inf
from typing import Any, TypeVar

from signet_conformance.contract import REFERENCE_DAEMON, version_key
from signet_conformance.contract.routes import operation_table, routes_of
from signet_conformance.errors import ContractError
from signet_conformance.facts.calls import END, LIFECYCLE, PROMPT, START, Call, HeldCall
from signet_conformance.facts.light_calls import LightCalls, pack_calls
from signet_conformance.facts.timeline import Timeline
from signet_conformance.trace import Trace
from signet_conformance.trace.file_exchanges import FileExchanges
from signet_conformance.trace.marks import (
    KitMark,
    LoadedMark,
    MarkT,
    ScenarioMark,
    SessionKeyMark,
    StepMark,
    kit_marks,
)


class NeedsWholeError(Exception):
    """A rule asked a piece of a recording for something that only the whole recording shows."""


_Hooks = Mapping[str, Sequence[Call]]


def _demand_hooks(hooks_of: _Hooks | None) -> _Hooks:
    if hooks_of is None:
        raise NeedsWholeError
    return hooks_of


class _ByNumber(Mapping[int, Call]):
    """Calls in the order of their numbers, looked up by these without an index of them."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls

    def __getitem__(self, seq: int) -> Call:
        place = bisect_left(self._calls, seq, key=_by_seq)
        if place < len(self._calls) and self._calls[place].seq == seq:
            return self._calls[place]
        raise KeyError(seq)

    def __iter__(self) -> Iterator[int]:
        return map(_by_seq, self._calls)

    def __len__(self) -> int:
        return len(self._calls)


class Recording:
    """A trace in the form that rules read: calls in order, by operation, and the lifecycle hooks of each key.

    A call that the connector still owed to a session of an earlier recording stands in `calls` alone.

    `calls` are those of the trace if they are known already. A `piece` holds some of a recording's exchanges and all of
    its marks; it raises NeedsWholeError for a question that needs the other exchanges. A recording `of_sessions` holds
    all exchanges that name a key, if it holds any; `troubled` are the recording's calls that went wrong.
    """

    def __init__(
        self,
        trace: Trace,
        daemon_version: str | None = None,
        *,
        calls: list[Call] | None = None,
        piece: bool = False,
        of_sessions: bool = False,
        troubled: Sequence[Call] | None = None,
    ) -> None:
        self.trace = trace
        self._piece = piece
        self._lacks_hooks = piece and not of_sessions
        self._troubled = troubled
        self.memo: dict[object, Any] = {}
        self._marks: dict[type[KitMark], Any] = {}
        self.declared = trace.header.declared
        self.model = trace.model
        """The recording of the harness and its model; None if no model server was recorded."""
        self.daemon_version = daemon_version or _known_version(trace.header.daemon_version)
        self.routes = routes_of(self.daemon_version)
        self.calls = self._calls() if calls is None else calls
        self._by_operation: dict[str, list[Call]] = {}
        self.hooks: list[Call] = []
        self._hooks_of: dict[str, list[Call]] = {}
        self._owed: set[int] = set()
        """The numbers of the calls that the connector owed to sessions of recordings before this one."""
        earlier = _earlier_keys(self.kit_marks)
        for call in self.calls:
            if call.operation is None:
                continue
            # With a start or a prompt a session goes on here; all else may come late.
            if earlier and call.key in earlier - self._hooks_of.keys() and call.operation not in (START, PROMPT):
                self._owed.add(call.seq)
                continue
            self._by_operation.setdefault(call.operation, []).append(call)
            if call.operation in LIFECYCLE and not call.cut:
                self.hooks.append(call)
                if call.key is not None:
                    self._hooks_of.setdefault(call.key, []).append(call)

    def _calls(self) -> list[Call]:
        operations, exchanges = operation_table(), self.trace.exchanges
        if not isinstance(exchanges, FileExchanges):
            return [HeldCall(exchange, self.routes, operations) for exchange in exchanges]
        light = LightCalls(exchanges)
        for piece in exchanges.pieces():
            calls = (HeldCall(exchange, self.routes, operations) for exchange in exchanges[piece])
            light.add(range(len(exchanges))[piece], pack_calls(calls))
        return light.calls

    @property
    def whole(self) -> Recording:
        """This recording, for a question that only a whole one can answer. Raises NeedsWholeError for a piece."""
        if self._piece:
            raise NeedsWholeError
        return self

    @property
    def hooks_of(self) -> _Hooks:
        """The lifecycle hooks of each key in order; the key that was used first comes first."""
        return _demand_hooks(None if self._lacks_hooks else self._hooks_of)

    @property
    def troubled(self) -> Sequence[Call]:
        """The calls of the whole recording that ended with an error, or were answered with a status of 500 or more."""
        if self._troubled is None:
            self._troubled = [
                call for call in self.whole.calls if call.error is not None or call.is_answered(500, 1000)
            ]
        return self._troubled

    @cached_property
    def timeline(self) -> Timeline:
        """What each call belongs to, according to the kit's marks."""
        # It must not refer to this recording: pieces are dropped while the collector of cycles is paused.
        hooks_of = None if self._lacks_hooks else self._hooks_of
        calls = [call for call in self.calls if call.seq not in self._owed] if self._owed else self.calls
        return Timeline(self.kit_marks, calls, partial(_demand_hooks, hooks_of))

    @cached_property
    def requests(self) -> Sequence[Call]:
        """The calls whose requests came completely, so that a daemon can have handled them."""
        return [call for call in self.calls if not call.incomplete]

    @cached_property
    def host_age(self) -> str:
        """A remark in brackets, after a blank, on a host that came out after the connector; else empty."""
        ahead = next((mark.ahead for mark in self.marks(LoadedMark) if len(mark.ahead) == 2), None)
        return "" if ahead is None else f" (a host of {ahead[0]}, newer than this connector of {ahead[1]})"

    @property
    def is_held(self) -> bool:
        """Whether its exchanges are in memory, and not read from a file on demand."""
        return not isinstance(self.trace.exchanges, FileExchanges)

    @property
    def may_go_on(self) -> bool:
        """Whether more may come than the recording holds: it still grows, or ends before its scenario does."""
        return self.trace.growing or self.timeline.is_broken_off

    def may_last(self, step: StepMark) -> bool:
        """Whether more may come of a step than the recording holds."""
        return self.may_go_on and self.timeline.next_step(step) == inf

    def at_least(self, version: str) -> bool:
        """Whether the daemon of this recording is of that version or later."""
        return version_key(self.daemon_version) >= version_key(version)

    def of(self, *operations: str, cut: bool = False) -> list[Call]:
        """The calls of these operations in order; those with a cut body only on request."""
        held = [self._by_operation[name] for name in operations if name in self._by_operation]
        if not held:
            return []
        calls = [call for each in held for call in each if cut or not call.cut]
        if len(held) > 1:
            calls.sort(key=_by_seq)
        return calls

    @cached_property
    def by_seq(self) -> Mapping[int, Call]:
        """The calls by their number."""
        return _ByNumber(self.calls)

    @cached_property
    def keyed_hooks(self) -> list[Call]:
        """The lifecycle hooks that have a key, in order."""
        return [call for call in self.hooks if call.key is not None]

    @cached_property
    def _transitions(self) -> Mapping[str, tuple[list[int], list[bool]]]:
        """For each key: the numbers at which its session opened or closed, and which of the two."""
        result: dict[str, tuple[list[int], list[bool]]] = {}
        for key, hooks in self.hooks_of.items():
            numbers: list[int] = []
            states: list[bool] = []
            for call in hooks:
                if call.operation in (START, PROMPT, END):
                    opens = call.operation != END
                    if opens != (states[-1] if states else False):
                        numbers.append(call.seq)
                        states.append(opens)
            result[key] = numbers, states
        return result

    def is_open(self, key: str | None, seq: int) -> bool:
        """Whether the session of `key` is open just before the exchange numbered `seq`."""
        if key is None or key not in self._transitions:
            return False
        numbers, states = self._transitions[key]
        index = bisect_left(numbers, seq)
        return index > 0 and states[index - 1]

    @cached_property
    def _open_counts(self) -> tuple[list[int], list[int]]:
        if self._piece:
            raise NeedsWholeError
        changes = sorted(
            (number, 1 if opens else -1)
            for numbers, states in self._transitions.values()
            for number, opens in zip(numbers, states, strict=True)
        )
        return [number for number, _ in changes], list(accumulate(change for _, change in changes))

    def any_open(self, seq: int) -> bool:
        """Whether any keyed session is open just before the exchange numbered `seq`."""
        numbers, counts = self._open_counts
        index = bisect_left(numbers, seq)
        return index > 0 and counts[index - 1] > 0

    @cached_property
    def abandoned_since(self) -> float:
        """The lowest number from which on some keyed session is open and never ends; infinite when every session ends.

        While a recording may go on, no session is known never to end.
        """
        if self.may_go_on:
            return inf
        if self._piece:
            raise NeedsWholeError
        return min(
            (numbers[-1] for numbers, states in self._transitions.values() if states and states[-1]), default=inf
        )

    def earlier(self, call: Call) -> Sequence[Call]:
        """The hooks of the call's key before it, in order."""
        if call.key is None:
            return ()
        hooks = self.hooks_of.get(call.key, ())
        return hooks[: bisect_left(hooks, call.seq, key=_by_seq)]

    def later(self, call: Call) -> Sequence[Call]:
        """The hooks of the call's key after it, in order."""
        if call.key is None:
            return ()
        hooks = self.hooks_of.get(call.key, ())
        return hooks[bisect_right(hooks, call.seq, key=_by_seq) :]

    @cached_property
    def mark_times(self) -> Mapping[int, float]:
        """When each mark was written, in seconds, by its number."""
        return {mark.seq: mark.t for mark in self.trace.marks}

    @cached_property
    def kit_marks(self) -> Sequence[KitMark]:
        """The kit's marks, in order."""
        return tuple(kit_marks(self.trace))

    def marks(self, kind: type[MarkT]) -> Sequence[MarkT]:
        """The marks of one kind, in order."""
        found = self._marks.get(kind)
        if found is None:
            found = self._marks[kind] = tuple(mark for mark in self.kit_marks if isinstance(mark, kind))
        return found


def _earlier_keys(marks: Sequence[KitMark]) -> AbstractSet[str]:
    """The keys of sessions of earlier recordings, without those that the host gives to sessions of this one."""
    earlier = {key for mark in marks if isinstance(mark, ScenarioMark) for key in mark.earlier_keys}
    return earlier - {mark.key for mark in marks if isinstance(mark, SessionKeyMark)} if earlier else earlier


Worked = TypeVar("Worked")


def once_a_recording(work: Callable[[Recording], Worked]) -> Callable[[Recording], Worked]:
    """Decorate a function of a recording alone: it works out its value once for each."""

    @wraps(work)
    def look_up(recording: Recording) -> Worked:
        if look_up not in recording.memo:
            recording.memo[look_up] = work(recording)
        value: Worked = recording.memo[look_up]
        return value

    return look_up


def _known_version(version: str | None) -> str:
    """The version of a header; the reference daemon's if it has no readable one (a development build)."""
    try:
        version_key(version or "")
    except ContractError:
        return REFERENCE_DAEMON
    return version or REFERENCE_DAEMON


def _by_seq(call: Call) -> int:
    return call.seq
