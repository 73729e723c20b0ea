"""One exchange as the daemon understands it, by the daemon's own precedence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from signet_conformance.contract.routes import RouteTable, served_path
from signet_conformance.files.json_values import only_text
from signet_conformance.trace import Body, Exchange, fault_kinds
from signet_conformance.trace.glance import SESSION_HEADER, normalised_key

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
"""The calls that run as an agent that the connector chooses."""

FIRST_CALLS = LIFECYCLE | CLAIM_CHECKING | {
    SKILL, RECALL, REMEMBER, MEMORY_SEARCH, MODIFY, FORGET, FEEDBACK, GET, PATCH, DELETE, LIST, SEARCH_SESSIONS, EXEC,
}  # fmt: skip
"""What counts as the first hook or memory request; polls of a catalogue, policies and heartbeats do not."""
BOUNDS: Mapping[str, str] = {
    START: "start",
    PROMPT: "prompt",
    END: "end",
    **dict.fromkeys((PRE, COMPLETE), "compact"),
    **dict.fromkeys((*SAVES, RECALL, HOOK_RECALL, GET, MODIFY, FORGET, PATCH, DELETE), "tool"),
}
"""Maps operations for which the user or the model waits to the names of their bounds, which a target may declare."""

PARENT_MEMBERS = ("parentSessionKey", "parentKey", "parentId", "parentID")
_SUB_AGENT_MEMBERS = frozenset({"harnessAgentId", *PARENT_MEMBERS})
"""The members by which a hook says that its session is a sub-agent's."""
AGENT_HEADER = "x-signet-agent-id"
PATH_HEADER = "x-signet-runtime-path"

EMPTY: Mapping[str, Any] = {}


def text_or_none(value: object) -> str | None:
    """The trimmed string, or None when it is blank: absent, not a string, empty or white space."""
    return value.strip() or None if isinstance(value, str) else None


REDACTION = "<redacted:"
"""The beginning of the token that the recorder writes in a secret's place."""
_LINE_END = re.compile(r"\r\n?")
_WHITE = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\ufeff"
"""White space that Python or JavaScript strips from the ends of a text."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@lru_cache(maxsize=16)
def plain(text: str | None) -> str:
    """A text without what a connector may leave out: outer white space, control characters, the kind of line ends.

    Cached, since rules compare a text with several others; only few texts, since one may be megabytes long.
    """
    if text is None:
        return ""
    if not text.isprintable():  # most texts are one line, and printable
        text = _CONTROL.sub("", _LINE_END.sub("\n", text))
    return text.strip(_WHITE)


def _first_text(values: Iterable[object]) -> str | None:
    """The first string that is not blank, as it is."""
    for value in values:
        if isinstance(value, str) and value.strip():
            return value
    return None


def pattern_agent(raw_key: str | None) -> str | None:
    """The agent that a raw key of the form `agent:<id>` or `agent:<id>:…` names."""
    if raw_key is None or not raw_key.startswith("agent:"):
        return None
    return raw_key.split(":", 2)[1].strip() or None


class Call:
    """One exchange as the daemon understands it.

    `method` is in upper case, `path` as the daemon matches it, without query; `is_hook` if it is under /api/hooks/.
    `body` is the request's JSON object, empty without one; `answer` is the response's JSON object or None, and it is
    `readable` if it is a JSON object or list. `cut` if the request body was only partly recorded, so that no field can
    be read. `error` is the exchange's. `incomplete` if the client left without an answer before the whole request had
    come: no daemon has handled it, so it has no operation and no field that can be read.
    """

    __slots__ = ()

    exchange: Exchange
    seq: int
    t0: float
    t1: float
    method: str
    path: str
    is_hook: bool
    error: str | None
    served: bool
    operation: str | None
    cut: bool
    incomplete: bool
    body: Mapping[str, Any]
    query: Mapping[str, str]
    fault: str | None
    delivered: bool
    status: int | None
    answer: Mapping[str, Any] | None
    readable: bool
    accepted: bool
    key: str | None
    raw_key: str | None
    """The first non-blank key the daemon reads for this operation, as sent."""
    agent: str
    """The agent as which the daemon runs this call, by the precedence of its operation; `default` if nothing names one.
    """
    runtime_path: str | None
    """`plugin` or `legacy`: the header if not empty, else the body; None for any other value."""

    def header(self, name: str) -> str | None:
        """The first value of a request header by lower-case name."""
        raise NotImplementedError

    def body_text(self, name: str) -> str | None:
        """The trimmed text of a member of the request's body; None if it is blank or not a text."""
        return text_or_none(self.body.get(name))

    def answer_value(self, name: str) -> Any:
        """Return the value of a member of the answer, or None if it has no such member."""
        answer = self.answer
        return None if answer is None else answer.get(name)

    def is_answered(self, low: int, high: int) -> bool:
        """Return True if there is an answer with a status from `low` up to `high`, without the latter."""
        return self.status is not None and low <= self.status < high

    @property
    def text(self) -> str | None:
        """The text of a prompt: `userMessage` if not blank, else `userPrompt`; None when both are blank."""
        return _first_text(map(self.body.get, ("userMessage", "userPrompt")))

    def says_again(self, before: Call) -> bool:
        """Whether a prompt says what another one said: the same text, after the same reply."""
        text = self.text
        return (
            text is not None
            and text == before.text
            and self.body.get("lastAssistantMessage") == before.body.get("lastAssistantMessage")
        )

    @property
    def names_sub_agent(self) -> bool:
        """Whether it says that its session is a sub-agent's."""
        return any(self.body_text(name) is not None for name in _SUB_AGENT_MEMBERS & self.body.keys())

    @property
    def took_s(self) -> float:
        """How many seconds the call took, except those for which the recorder itself held the answer back."""
        return self.t1 - self.t0 - (self.exchange.held_ms or 0.0) / 1000

    @property
    def is_stub(self) -> bool:
        """Whether a start was answered with the stub that a repeated start gets instead of context."""
        answer = self.answer
        if answer is None or self.operation != START:
            return False
        identity, inject = answer.get("identity"), answer.get("inject")
        return (
            answer.get("memories") == []
            and identity == {"name": "Agent"}
            and isinstance(inject, str)
            and inject.startswith("[memory active")
        )

    @property
    def identity(self) -> tuple[str, str, frozenset[tuple[str, str]], object]:
        """The values that make two requests the same: method, path, query as a set, and body. Headers do not count."""
        request = self.exchange.request
        body: Body | None = request.body
        if body is None:
            content: object = None
        elif body.kind == "cut":
            # A request whose body is unknown equals no other.
            content = ("cut", body.size, body.sha256 or self.seq)
        elif (obj := body.object) is not None:
            content = json.dumps(obj, sort_keys=True)
        else:
            content = json.dumps([body.kind, body.value], sort_keys=True)
        return request.method, request.path, frozenset((n, v) for n, v in request.query), content

    @property
    def memory_id(self) -> str:
        """The decoded segment after /api/memory/ of a request that names one memory."""
        return unquote(self.path.removeprefix("/api/memory/"))


class HeldCall(Call):
    """A call with its exchange in memory."""

    __slots__ = (
        "_headers", "accepted", "agent", "answer", "body", "cut", "delivered", "error", "exchange", "fault",
        "incomplete", "is_hook", "key", "method", "operation", "path", "query", "raw_key", "readable", "runtime_path",
        "seq", "served", "status", "t0", "t1",
    )  # fmt: skip

    def __init__(self, exchange: Exchange, served: RouteTable, operations: RouteTable) -> None:
        request, response = exchange.request, exchange.response
        self.exchange = exchange
        self.method = request.method
        self.path = served_path(request.path)
        self.is_hook = self.path.startswith("/api/hooks/")
        self.seq = exchange.seq
        self.error = exchange.error
        self.t0 = exchange.t0
        self.t1 = exchange.t1
        self.served = served.find(request.method, request.path) is not None
        self.incomplete = exchange.is_unhandled
        unread = self.incomplete or request.method in ("HEAD", "OPTIONS")
        route = None if unread else operations.find(request.method, request.path)
        self.operation = route.operation if route is not None else None
        self.cut = self.incomplete or (request.body is not None and request.body.kind == "cut")
        self.body: Mapping[str, Any] = EMPTY if self.cut or request.body is None else request.body.object or EMPTY
        # The first of repeated parameters counts.
        self.query: Mapping[str, str] = (
            {pair[0]: pair[1] for pair in reversed(request.query)} if request.query else EMPTY
        )
        self._headers = first_of_each_name(request.headers)
        self.fault: str | None = None
        if exchange.fault is not None:
            kind = exchange.fault.get("kind")
            self.fault = kind if isinstance(kind, str) else "unknown"
        self.delivered = response is not None and self.error != "client_closed"
        self.status = response.status if response is not None else None
        self.answer = response.body.object if response is not None and response.body is not None else None
        self.readable = self.answer is not None or (
            response is not None
            and response.body is not None
            and response.body.kind == "json"
            and isinstance(response.body.value, list)
        )
        self.accepted = (
            self.delivered
            and self.status is not None
            and 200 <= self.status < 300
            and self.answer is not None
            and self.fault not in fault_kinds.SPOILING
        )
        # Rules ask for these several times a call.
        self.raw_key = _first_text(self._key_sources())
        self.key = None if self.cut else normalised_key(self.raw_key)
        sources = _AGENT_SOURCES.get(self.operation or "")
        self.agent = (text_or_none(_first_text(sources(self))) if sources else None) or "default"
        path = self._headers.get(PATH_HEADER) or self.body.get("runtimePath")
        self.runtime_path = path if path in ("plugin", "legacy") else None

    def header(self, name: str) -> str | None:
        """The first value of a request header by lower-case name."""
        return self._headers.get(name)

    def _key_sources(self) -> Iterable[object]:
        operation, body = self.operation, self.body
        if operation in (END, SKILL):
            return body.get("sessionKey"), body.get("sessionId")
        if operation in LIFECYCLE or operation in (HOOK_RECALL, SEARCH_SESSIONS):
            return (body.get("sessionKey"),)
        if operation in SAVES:
            return self.header(SESSION_HEADER), body.get("sessionKey")
        if operation in (RECALL, FEEDBACK, MEMORY_SEARCH, GET):
            return body.get("sessionKey"), self.header(SESSION_HEADER)
        return ()


def _from_query(call: Call) -> tuple[object, ...]:
    return call.query.get("agentId"), call.query.get("agent_id"), call.header(AGENT_HEADER)


def _hook_agent(call: Call) -> Iterable[object]:
    return call.body.get("agentId"), pattern_agent(call.raw_key)


_AGENT_SOURCES: Mapping[str, Callable[[Call], Iterable[object]]] = {
    **dict.fromkeys((*LIFECYCLE, SKILL, NOTIFY), _hook_agent),
    REMEMBER: lambda c: (c.body.get("agentId"), pattern_agent(c.header(SESSION_HEADER))),
    HOOK_REMEMBER: lambda c: (
        c.body.get("agentId"),
        pattern_agent(c.header(SESSION_HEADER)),
        pattern_agent(only_text(c.body.get("sessionKey"))),
    ),
    RECALL: lambda c: (
        c.body.get("agentId"),
        pattern_agent(only_text(c.body.get("sessionKey"))),
        pattern_agent(c.header(SESSION_HEADER)),
    ),
    HOOK_RECALL: lambda c: (
        c.body.get("agentId"),
        c.header(AGENT_HEADER),
        pattern_agent(only_text(c.body.get("sessionKey"))),
    ),
    SEARCH_SESSIONS: lambda c: (
        c.body.get("agentId"),
        c.body.get("agent_id"),
        c.query.get("agent_id"),
        pattern_agent(only_text(c.body.get("currentSessionKey"))),
        pattern_agent(only_text(c.body.get("sessionKey"))),
    ),
    FEEDBACK: lambda c: (c.body.get("agentId"),),
    GET: lambda c: (*_from_query(c), pattern_agent(c.header(SESSION_HEADER))),
    MEMORY_SEARCH: lambda c: (
        *_from_query(c),
        pattern_agent(c.header(SESSION_HEADER)),
        pattern_agent(c.query.get("sessionKey")),
        pattern_agent(c.query.get("session_key")),
    ),
}
"""The sources of each operation's agent; the first non-blank one counts (0.145.7)."""


@lru_cache(64)
def first_of_each_name(headers: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """The first value of each header by its lower-case name."""
    return {name.lower(): value for name, value in reversed(headers)}
