"""What one exchange means to the daemon: operation, session key, effective agent, runtime path, acceptance.

A :class:`Call` is an exchange with these facts worked out once, by the daemon's own precedence
(the subject terms of schemas/requirements; 0.145.7). A :class:`Recording` is a trace with its calls in
order and the indexes that rules read. Both are read-only.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from math import inf
from typing import Any
from urllib.parse import unquote

from signet_conformance.contract import (
    REFERENCE_DAEMON,
    RouteTable,
    operation_table,
    routes_of,
    served_path,
    version_key,
)
from signet_conformance.errors import ContractError
from signet_conformance.trace import Body, Exchange, Trace, fault_kinds
from signet_conformance.trace.marks import KitMark, MarkT, kit_marks

START, PROMPT, END = "session-start", "user-prompt-submit", "session-end"
PRE, COMPLETE, CHECKPOINT = "pre-compaction", "compaction-complete", "session-checkpoint-extract"
SKILL, NOTIFY = "skill-invocation", "notifications"
HOOK_REMEMBER, HOOK_RECALL = "hooks-remember", "hooks-recall"
REMEMBER, RECALL, SEARCH_SESSIONS = "memory-remember", "memory-recall", "sessions-search"
FEEDBACK, MEMORY_SEARCH = "memory-feedback", "memory-search"
GET, PATCH, DELETE, MODIFY, FORGET = "memory-get", "memory-patch", "memory-delete", "memory-modify", "memory-forget"
LIST, EXEC, EXEC_JOB, HEALTH = "memories-list", "secrets-exec", "secrets-exec-job", "health"

LIFECYCLE = frozenset({START, PROMPT, END, PRE, COMPLETE, CHECKPOINT})
"""The hooks that claim a session."""
CLAIM_CHECKING = frozenset({HOOK_REMEMBER, HOOK_RECALL})
SAVES = frozenset({REMEMBER, HOOK_REMEMBER})
AGENT_CALLS = LIFECYCLE | CLAIM_CHECKING | {SKILL, REMEMBER, RECALL, SEARCH_SESSIONS, FEEDBACK}
"""The calls that run as an agent which the connector chooses."""

RESERVED_KEY_HEADER = "x-signet-session-key"
AGENT_HEADER = "x-signet-agent-id"
PATH_HEADER = "x-signet-runtime-path"

EMPTY: Mapping[str, Any] = {}


def text_or_none(value: object) -> str | None:
    """The trimmed string, or None when it is blank: absent, not a string, empty or white space."""
    if isinstance(value, str):
        trimmed = value.strip()
        return trimmed or None
    return None


def pattern_agent(raw_key: str | None) -> str | None:
    """The agent that a raw key of the form `agent:<id>` or `agent:<id>:…` names."""
    if raw_key is None or not raw_key.startswith("agent:"):
        return None
    return raw_key.split(":", 2)[1].strip() or None


def normalised_key(raw_key: str | None) -> str | None:
    """The daemon's own key: trimmed, one leading `session:` removed; None when nothing is left."""
    if raw_key is None:
        return None
    return raw_key.strip().removeprefix("session:") or None


class Call:
    """One exchange as the daemon understands it.

    `method` is in upper case, `path` as the daemon matches it, without query; `is_hook`: it lies under /api/hooks/.
    `body` is the request's JSON object, empty when it has none; `answer` is the response's JSON object
    or None, `readable` whether the response is JSON at all and not null. `cut` tells
    that the request body was recorded in part only and has no readable field.
    """

    __slots__ = (
        "_agent", "_headers", "_raw_key", "accepted", "answer", "body", "cut", "delivered", "exchange", "fault",
        "is_hook", "key", "method", "operation", "path", "query", "readable", "seq", "served", "status", "t0", "t1",
    )  # fmt: skip

    def __init__(self, exchange: Exchange, served: RouteTable, operations: RouteTable) -> None:
        request, response = exchange.request, exchange.response
        self.exchange = exchange
        self.method = request.method
        self.path = served_path(request.path)
        self.is_hook = self.path.startswith("/api/hooks/")
        self.seq = exchange.seq
        self.t0 = exchange.t0
        self.t1 = exchange.t1
        self.served = served.find(request.method, request.path) is not None
        route = None if request.method in ("HEAD", "OPTIONS") else operations.find(request.method, request.path)
        self.operation = route.operation if route is not None else None
        self.cut = request.body is not None and request.body.kind == "cut"
        self.body: Mapping[str, Any] = (request.body.object if request.body is not None else None) or EMPTY
        # The first of repeated parameters counts.
        self.query: Mapping[str, str] = {pair[0]: pair[1] for pair in reversed(request.query)} if request.query else {}
        self._headers: Mapping[str, str] | None = None
        self.fault: str | None = None
        if exchange.fault is not None:
            kind = exchange.fault.get("kind")
            self.fault = kind if isinstance(kind, str) else "unknown"
        self.delivered = response is not None and exchange.error != "client_closed"
        self.status = response.status if response is not None else None
        self.answer = response.body.object if response is not None and response.body is not None else None
        self.readable = self.answer is not None or (
            response is not None
            and response.body is not None
            and response.body.kind == "json"
            and response.body.value is not None
        )
        self.accepted = (
            self.delivered
            and self.status is not None
            and 200 <= self.status < 300
            and self.answer is not None
            and self.fault not in fault_kinds.SPOILING
        )
        self._raw_key: str | bool | None = False
        self._agent: str | None = None
        self.key = None if self.cut else normalised_key(self.raw_key)

    def header(self, name: str) -> str | None:
        """The first value of a request header by lower-case name."""
        if self._headers is None:
            self._headers = _first_of_each_name(self.exchange.request.headers)
        return self._headers.get(name)

    @property
    def raw_key(self) -> str | None:
        """The first non-blank key the daemon reads for this operation, as sent."""
        if self._raw_key is False:
            self._raw_key = next((v for v in self._key_sources() if isinstance(v, str) and v.strip()), None)
        return self._raw_key  # type: ignore[return-value]  # False only until here

    def _key_sources(self) -> Iterable[object]:
        operation, body = self.operation, self.body
        if operation in (END, SKILL):
            return body.get("sessionKey"), body.get("sessionId")
        if operation in LIFECYCLE or operation in (HOOK_RECALL, SEARCH_SESSIONS):
            return (body.get("sessionKey"),)
        if operation in SAVES:
            return self.header(RESERVED_KEY_HEADER), body.get("sessionKey")
        if operation in (RECALL, FEEDBACK, MEMORY_SEARCH, GET):
            return body.get("sessionKey"), self.header(RESERVED_KEY_HEADER)
        return ()

    @property
    def runtime_path(self) -> str | None:
        """`plugin` or `legacy`: the header if not empty, else the body; None for any other value."""
        value = self.header(PATH_HEADER) or self.body.get("runtimePath")
        return value if value in ("plugin", "legacy") else None

    @property
    def agent(self) -> str:
        """The agent the daemon runs this call as, by the precedence of its operation; `default` at last."""
        if self._agent is None:
            sources = _AGENT_SOURCES.get(self.operation or "")
            agent = next((v for v in map(text_or_none, sources(self)) if v), None) if sources else None
            self._agent = agent or "default"
        return self._agent

    @property
    def text(self) -> str | None:
        """The text of a prompt: `userMessage` if not blank, else `userPrompt`; None when both are blank."""
        for name in ("userMessage", "userPrompt"):
            value = self.body.get(name)
            if isinstance(value, str) and value.strip():
                return value
        return None

    @property
    def identity(self) -> tuple[str, str, frozenset[tuple[str, str]], object]:
        """What makes two requests the same: method, path, query as a set, and body. Headers do not count."""
        request = self.exchange.request
        body: Body | None = request.body
        if body is None:
            content: object = None
        elif body.kind == "cut":
            content = ("cut", body.size, body.sha256)
        elif (obj := body.object) is not None:
            content = json.dumps(obj, sort_keys=True)
        else:
            content = json.dumps([body.kind, body.value], sort_keys=True)
        return request.method, request.path, frozenset((n, v) for n, v in request.query), content

    @property
    def memory_id(self) -> str:
        """The decoded segment after /api/memory/ of a request that names one memory."""
        return unquote(self.path.removeprefix("/api/memory/"))


def _from_query(call: Call) -> tuple[object, ...]:
    return call.query.get("agentId"), call.query.get("agent_id"), call.header(AGENT_HEADER)


def _hook_agent(call: Call) -> Iterable[object]:
    return call.body.get("agentId"), pattern_agent(call.raw_key)


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


_AGENT_SOURCES: Mapping[str, Callable[[Call], Iterable[object]]] = {
    **dict.fromkeys((*LIFECYCLE, SKILL, NOTIFY), _hook_agent),
    REMEMBER: lambda c: (c.body.get("agentId"), pattern_agent(c.header(RESERVED_KEY_HEADER))),
    HOOK_REMEMBER: lambda c: (
        c.body.get("agentId"),
        pattern_agent(c.header(RESERVED_KEY_HEADER)),
        pattern_agent(_string(c.body.get("sessionKey"))),
    ),
    RECALL: lambda c: (
        c.body.get("agentId"),
        pattern_agent(_string(c.body.get("sessionKey"))),
        pattern_agent(c.header(RESERVED_KEY_HEADER)),
    ),
    HOOK_RECALL: lambda c: (
        c.body.get("agentId"),
        c.header(AGENT_HEADER),
        pattern_agent(_string(c.body.get("sessionKey"))),
    ),
    SEARCH_SESSIONS: lambda c: (
        c.body.get("agentId"),
        c.body.get("agent_id"),
        c.query.get("agent_id"),
        pattern_agent(_string(c.body.get("currentSessionKey"))),
        pattern_agent(_string(c.body.get("sessionKey"))),
    ),
    FEEDBACK: lambda c: (c.body.get("agentId"),),
    GET: lambda c: (*_from_query(c), pattern_agent(c.header(RESERVED_KEY_HEADER))),
    MEMORY_SEARCH: lambda c: (
        *_from_query(c),
        pattern_agent(c.header(RESERVED_KEY_HEADER)),
        pattern_agent(c.query.get("sessionKey")),
        pattern_agent(c.query.get("session_key")),
    ),
}
"""Where each operation's agent comes from, first non-blank first (0.145.7)."""


class Recording:
    """A trace as rules read it: calls in order, by operation, and the lifecycle hooks of each key."""

    def __init__(self, trace: Trace, daemon_version: str | None = None) -> None:
        self.trace = trace
        self.memo: dict[object, Any] = {}
        self._marks: dict[type[KitMark], Any] = {}
        self.declared = trace.header.declared
        self.model = trace.model
        """The recording of the harness and its model; None where no model server was recorded."""
        self.daemon_version = daemon_version or _known_version(trace.header.daemon_version)
        self.routes = routes_of(self.daemon_version)
        operations = operation_table()
        self.calls: list[Call] = [Call(exchange, self.routes, operations) for exchange in trace.exchanges]
        self._by_operation: dict[str, list[Call]] = {}
        self.hooks: list[Call] = []
        self.hooks_of: dict[str, list[Call]] = {}
        for call in self.calls:
            if call.operation is None:
                continue
            self._by_operation.setdefault(call.operation, []).append(call)
            if call.operation in LIFECYCLE and not call.cut:
                self.hooks.append(call)
                if call.key is not None:
                    self.hooks_of.setdefault(call.key, []).append(call)

    def at_least(self, version: str) -> bool:
        """Whether the daemon of this recording is of that version or later."""
        return version_key(self.daemon_version) >= version_key(version)

    def of(self, *operations: str, cut: bool = False) -> list[Call]:
        """The calls of these operations in order; those with a cut body only on request."""
        calls = [call for name in operations for call in self._by_operation.get(name, ()) if cut or not call.cut]
        if len(operations) > 1:
            calls.sort(key=_by_seq)
        return calls

    @cached_property
    def by_seq(self) -> Mapping[int, Call]:
        """The calls by their number."""
        return {call.seq: call for call in self.calls}

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

        While a recording grows, no session is known never to end.
        """
        if self.trace.growing:
            return inf
        return min(
            (numbers[-1] for numbers, states in self._transitions.values() if states and states[-1]), default=inf
        )

    @cached_property
    def position(self) -> Mapping[int, int]:
        """For each keyed hook by number: its place among the hooks of its key."""
        return {call.seq: index for hooks in self.hooks_of.values() for index, call in enumerate(hooks)}

    def earlier(self, call: Call) -> Sequence[Call]:
        """The hooks of the call's key before it, in order."""
        return self.hooks_of[call.key][: self.position[call.seq]] if call.key is not None else ()

    def later(self, call: Call) -> Sequence[Call]:
        """The hooks of the call's key after it, in order."""
        return self.hooks_of[call.key][self.position[call.seq] + 1 :] if call.key is not None else ()

    @cached_property
    def kit_marks(self) -> Sequence[KitMark]:
        """What the kit's marks say, in order."""
        return tuple(kit_marks(self.trace))

    def marks(self, kind: type[MarkT]) -> Sequence[MarkT]:
        """What the marks of one name say, in order."""
        told = self._marks.get(kind)
        if told is None:
            told = self._marks[kind] = tuple(mark for mark in self.kit_marks if isinstance(mark, kind))
        return told


@lru_cache(64)
def _first_of_each_name(headers: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {name.lower(): value for name, value in reversed(headers)}


def _known_version(version: str | None) -> str:
    """The version of a header; the reference daemon's where it has none that can be read (a development build)."""
    try:
        version_key(version or "")
    except ContractError:
        return REFERENCE_DAEMON
    return version or REFERENCE_DAEMON


def _by_seq(call: Call) -> int:
    return call.seq
