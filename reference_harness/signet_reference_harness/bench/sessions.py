"""Perform scenarios on a Signet daemon through the sessions of the reference harness."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from signet_reference_harness.bench import suite
from signet_reference_harness.bench.log import BenchFailureError
from signet_reference_harness.bench.performing import Latencies, MemoryRow, Player, StepMemories
from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.daemon_client.reply import OPERATIONS, FailureClass, Reply
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.providers import CompletionResult
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session import Session
from signet_reference_harness.session.host import SessionHost

LEAST_QUOTED: Final = 12
"""Characters. A shorter prompt is too common to be recognised in a memory by its words."""
MOST_QUOTED: Final = 200


class Items:
    """The facts and prompts of one scenario so far."""

    def __init__(self) -> None:
        self._by_memory: dict[str, str] = {}
        self.memories: dict[str, list[str]] = {}
        """The ids of the memories that hold a fact, by its name."""
        self._texts: dict[str, str] = {}

    def add_fact(self, name: str, text: str, memories: list[str]) -> None:
        """Note a fact and the ids of the memories that hold it: several for a long text."""
        self.memories[name] = memories
        self._texts[name] = _quoted(text)
        for memory in memories:
            self._by_memory.setdefault(memory, name)

    def add_prompt(self, name: str, text: str) -> None:
        """Note a prompt: a memory that quotes it counts as the prompt."""
        self._texts[name] = _quoted(text)

    def canonical_name(self, name: str) -> str:
        """The first fact that is stored as the same memory as the fact `name`: often this fact itself."""
        memories = self.memories.get(name)
        return self._by_memory[memories[0]] if memories else name

    def name_of(self, row: Mapping[str, Any]) -> str:
        """The fact or prompt that a row of the daemon holds, else `other:` and the beginning of its content's hash."""
        known = self._by_memory.get(str(row.get("id")))
        if known is not None:
            return known
        content = str(row.get("content", ""))
        flat = _flat(content)
        for name, text in self._texts.items():
            if name not in self.memories and len(text) >= LEAST_QUOTED and text in flat:
                return name
        return f"other:{hashlib.sha256(content.encode(errors='surrogatepass')).hexdigest()[:12]}"

    def quoted_in(self, text: str) -> list[str]:
        """The facts and prompts that an injected text holds by id or by words, in the order of their first mention."""
        flat = _flat(text)
        places: dict[str, int] = {}
        for name, words in self._texts.items():
            mentions = [flat.find(memory) for memory in self.memories.get(name, ())]
            mentions += [flat.find(words)] if len(words) >= LEAST_QUOTED else []
            mentions = [place for place in mentions if place >= 0]
            if mentions:
                first = self.canonical_name(name)
                places[first] = min(*mentions, places.get(first, mentions[0]))
        return sorted(places, key=lambda name: places[name])


def _flat(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    return _flat(text)[:MOST_QUOTED].rstrip()


KEY_NAMESPACE: Final = uuid5(NAMESPACE_URL, "signet-reference-harness/bench")
PATIENCE_S: Final = 60.0
"""The timeout of each call: longer than a user would wait, so that slow answers are measured, too."""


class TimedClient(AdapterClient):
    """A daemon client that notes how long each call took, and keeps the last reply of each operation."""

    def __init__(self, origin: str, token: str | None, latencies: Latencies) -> None:
        super().__init__(HarnessConfig(origin=origin, token=token, timeouts_s=dict.fromkeys(OPERATIONS, PATIENCE_S)))
        self._latencies = latencies
        self.last: dict[str, tuple[Reply, float]] = {}
        self.failed: Reply | None = None
        """The first failed reply since the last :meth:`demand_answered`."""

    async def _call(self, session: SessionIdentity, operation: str, *args: Any, **kwargs: Any) -> Reply:
        began = time.perf_counter()
        reply = await super()._call(session, operation, *args, **kwargs)
        ms = (time.perf_counter() - began) * 1000
        self._latencies.note(operation, ms)
        self.last[operation] = reply, ms
        if reply.failure is not None and self.failed is None:
            self.failed = reply
        return reply

    def demand_answered(self) -> None:
        """Raise BenchFailureError if a call has failed since the last use of this method."""
        reply, self.failed = self.failed, None
        if reply is None:
            return
        is_gone = reply.failure in {FailureClass.OFFLINE, FailureClass.TIMEOUT}
        problem = "the daemon is gone" if is_gone else "the daemon refused or broke off"
        raise BenchFailureError(f"{problem}: {reply.operation}: {reply.failure}: {reply.detail or reply.error}")


class DaemonPlayer(Player):
    """Performs one scenario on a daemon. `mark` makes its keys and agents differ from those of other runs."""

    def __init__(self, client: TimedClient, scenario_run: suite.ScenarioRun, limit: int, mark: str) -> None:
        self._client = client
        self._scenario_run = scenario_run
        self._limit = limit
        self._mark = mark
        self._items = Items()
        self._host = SessionHost(client.config, (), client=client)
        self._sessions: dict[str, Session] = {}

    def canonical_name(self, name: str) -> str:
        """The first fact in the same memory: equal texts of one agent are one memory."""
        return self._items.canonical_name(name)

    async def fact(self, step: suite.SuiteFact) -> None:
        """POST hooks/remember."""
        session = await self._open(step.session)
        extra = dict(step.fields) | ({"createdAt": step.at} if step.at is not None else {})
        reply = await self._client.remember(session.identity, step.text, extra)
        self._client.demand_answered()
        ids = reply.body.get("ids", [reply.body.get("id")])
        if not isinstance(ids, list) or not ids or not all(isinstance(each, str) for each in ids):
            raise BenchFailureError("hooks-remember: the answer names no memory")
        self._items.add_fact(step.id, step.text, ids)

    async def forget(self, step: suite.SuiteForget) -> None:
        """POST memory/forget, by the ids of the fact's memories."""
        session = await self._open(step.session)
        ids = self._items.memories.get(step.fact, [])
        order = {"mode": "execute", "ids": ids, "limit": len(ids), "reason": "the suite forgets it"}
        reply = await self._client.operate(session.identity, "memory-forget", order)
        self._client.demand_answered()
        if reply.body.get("deleted") not in (None, len(ids)):
            raise BenchFailureError(f"memory-forget: {reply.body.get('deleted')} of {len(ids)} memories were deleted")

    async def query(self, step: suite.SuiteQuery) -> StepMemories:
        """POST memory/recall. Memories that the session has seen are returned again, unless the step is `only_new`."""
        session = await self._open(step.session)
        extra = {**step.fields, **({} if step.only_new else {"includeRecalled": True})}
        reply = await self._client.recall(session.identity, step.text, self._limit, extra)
        self._client.demand_answered()
        rows = reply.body.get("results")
        return self._memories("memory-recall", rows if isinstance(rows, list) else [])

    async def start(self, step: suite.SuiteStart) -> StepMemories | None:
        """POST session-start."""
        session = self._session(step.session, step.agent, step.project)
        await session.start("resume" if session.openings else "startup")
        self._client.demand_answered()
        rows = self._client.last["session-start"][0].body.get("memories")
        if isinstance(rows, list) and rows:
            return self._memories("session-start", rows)
        return self._injected("session-start")

    async def prompt(self, step: suite.SuiteTurn) -> StepMemories:
        """POST user-prompt-submit, then a turn with the model's reply from the step."""
        session = await self._open(step.session)
        self._client.last.pop("user-prompt-submit", None)
        turn = await session.turn(step.text, ScriptedProvider([CompletionResult(content=step.reply)]))
        self._client.demand_answered()
        if turn.error is not None:
            raise BenchFailureError(f"the turn failed: {turn.error}")
        memories = self._injected("user-prompt-submit")
        if step.id is not None:
            self._items.add_prompt(step.id, step.text)
        return memories

    async def compaction(self, step: suite.SuiteCompaction) -> None:
        """POST pre-compaction, then compaction-complete."""
        session = await self._open(step.session)
        await session.pre_compaction()
        await session.compaction_complete(step.summary)
        self._client.demand_answered()

    async def clear(self, step: suite.SuiteClear) -> None:
        """POST session-end for a clear, and the start that follows it."""
        await (await self._open(step.session)).clear()
        self._client.demand_answered()

    async def end(self, step: suite.SuiteEnd) -> None:
        """POST session-end."""
        await self._close(self._sessions.get(step.session))

    async def close(self) -> None:
        """Close the open sessions, in the order in which they were opened."""
        for session in self._sessions.values():
            await self._close(session)

    async def _close(self, session: Session | None) -> None:
        if session is None or not session.is_open:
            return
        await self._host.end(session)
        self._client.demand_answered()

    async def _open(self, name: str) -> Session:
        session = self._session(name, None, None)
        if not session.is_open:
            await session.start("resume" if session.openings else "startup")
            self._client.demand_answered()
        return session

    def _session(self, name: str, agent: str | None, project: str | None) -> Session:
        if name not in self._sessions:
            key = str(uuid5(KEY_NAMESPACE, f"{self._mark}/{self._scenario_run.scenario.id}/{name}"))
            agent = (agent or self._scenario_run.agent) + (f"-{self._mark}" if self._mark else "")
            project = project or self._scenario_run.project
            self._sessions[name] = self._host.session_for(name, project=project, agent=agent, key=key)
        return self._sessions[name]

    def _memories(self, operation: str, rows: list[Any]) -> StepMemories:
        kept: dict[str, MemoryRow] = {}
        for row in rows:
            if isinstance(row, dict):
                item = self._items.name_of(row)
                score, source = row.get("score"), row.get("source")
                rounded = round(float(score), 6) if isinstance(score, int | float) else None
                kept.setdefault(item, MemoryRow(item, rounded, source if isinstance(source, str) else None))
        return StepMemories(operation, tuple(kept.values()), self._client.last[operation][1])

    def _injected(self, operation: str) -> StepMemories:
        if operation not in self._client.last:
            return StepMemories(operation, (), 0.0)
        reply, ms = self._client.last[operation]
        names = self._items.quoted_in(reply.text("inject"))
        return StepMemories(operation, tuple(MemoryRow(name, source=operation) for name in names), ms)
