"""Turns drawn intents into the steps of a valid scenario, with a model of the open sessions; picks its texts.

A seed alone must determine the sessions. Hypothesis mixes constants of imported modules into the numbers and texts that
it draws, so the numbers here are drawn from a range without constants. They shrink towards 0, which picks the first
entry of every table: the simplest one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st

from signet_conformance.errors import counted
from signet_conformance.scenarios import steps
from signet_conformance.scenarios.outages import Outage, fault_of
from signet_conformance.scenarios.scenario import Scenario

T = TypeVar("T")

DETAIL = 1 << 24
"""The number of different details. Hypothesis would prefer small ones among more."""
_FAR_FROM_CONSTANTS = 1 << 200

_BLOCKS = (
    0x0061, 0x00E0, 0x03B1, 0x0430, 0x05D0, 0x0627, 0x0915, 0x0E01,
    0x4E00, 0xAC00, 0x1F600, 0x0300, 0x2000, 0x1D400, 0x0000, 0x2028,
)  # fmt: skip
"""First code points of letters, scripts from right to left, combining marks, invisible and control characters."""
_BLOCK_SIZE = 32


def number(limit: int) -> st.SearchStrategy[int]:
    """Draw a whole number from 0 to `limit` - 1, each as likely."""
    drawn = st.integers(_FAR_FROM_CONSTANTS, _FAR_FROM_CONSTANTS + limit - 1)
    return drawn.map(lambda value: value - _FAR_FROM_CONSTANTS)


def weighted(weights: Mapping[T, int]) -> Sequence[T]:
    """Return a table that holds each key as often as its weight says."""
    return [key for key, weight in weights.items() for _ in range(weight)]


class Digits:
    """A whole number, read as a row of choices. One number makes a whole intent, so it shrinks as one."""

    def __init__(self, value: int) -> None:
        self._left = value

    def pick(self, table: Sequence[T]) -> T:
        """Return the entry that the next digit picks from a table."""
        self._left, index = divmod(self._left, len(table))
        return table[index]

    def unicode_text(self) -> str:
        """Return eight characters of one or more scripts, invisible and control characters included, no surrogates."""
        step, first, offset = self.pick(range(3)), self.pick(range(len(_BLOCKS))), self.pick(range(_BLOCK_SIZE))
        blocks = [_BLOCKS[(first + place * step) % len(_BLOCKS)] for place in range(8)]
        return "".join(chr(block + (offset + 5 * place) % _BLOCK_SIZE) for place, block in enumerate(blocks))


LARGEST_PROMPT_BYTES = 150_000

_TEXTS: Mapping[str, Sequence[str]] = json.loads(Path(__file__).with_name("texts.json").read_bytes())
REPLIES, SUMMARIES, FACTS, QUERIES = (_TEXTS[name] for name in ("replies", "summaries", "facts", "queries"))
_SIZES = (1_000, 10_000, LARGEST_PROMPT_BYTES, LARGEST_PROMPT_BYTES)

_PROMPT_KINDS = weighted({"line": 46, "strange": 15, "slash": 2, "long": 1})


def prompt_text(digits: Digits) -> str:
    """Return the text of a user's turn, never blank: mostly a line, sometimes of any script, rarely up to 150 kB."""
    line, kind = digits.pick(_TEXTS["prompts"]), digits.pick(_PROMPT_KINDS)
    if kind == "strange":
        return f"{line} {digits.unicode_text()}"
    if kind == "slash":
        # Commands of a harness, which may not pass them on to the connector.
        return digits.pick(_TEXTS["commands"])
    return _repeated(line, digits.pick(_SIZES)) if kind == "long" else line


def _repeated(line: str, size: int) -> str:
    each = f"{line} "
    count = max(size // (len(each.encode()) + 6), 1)
    return "".join(f"{number:05} {each}" for number in range(count)) if count > 1 else line


PROJECTS = ("/workspace/src/acme-api", "/workspace/src/ledger", "/workspace/src/atlas-billing")

_MANY_ROWS = 27
"""More memories than the daemon forgets at once without a confirmation."""
_MANY_TURNS = 21
"""More turns than connectors wait for before they send a checkpoint."""


@dataclass(slots=True)
class _Session:
    name: str
    agent: int
    project: str
    state: str = "new"
    """new, open or closed."""
    summary: str | None = None
    """The summary of a compaction that is not complete."""
    prompted: bool = False
    """Whether there was a prompt since the session was opened, resumed or cleared: no model calls a tool before."""
    compactions: int = 0
    prompts: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    """The tools used on the newest memory."""


class ScenarioWriter:
    """Writes a scenario step by step. An impossible intent adds no step."""

    def __init__(self, session_count: int, agents: int, first_agent: int, *, can_resume: bool, lives_on: bool) -> None:
        self._sessions: list[_Session] = []
        self._agents = agents
        self._first_agent = first_agent
        for _ in range(session_count):
            self._new_session()
        self._session_count = session_count
        self._can_resume = can_resume
        self._lives_on = lives_on
        self._steps: list[steps.Step] = []
        self._asked: Counter[str] = Counter()
        self._fault: steps.SwitchFaultOn | None = None
        self._fault_lasts: int | None = None

    def carry_out(self, kind: str, session_number: int, details: Any) -> None:
        """Add the steps of an intent in the session of that number."""
        session = self._sessions[session_number % self._session_count]
        match kind:
            case "outage":
                self._write_outage(*details)
            case "fault":
                self._switch_on(details)
            case "restart":
                if details:
                    self._add(steps.RestartDaemon())
            case "start":
                # In an open session only a compaction is completed.
                if session.state != "closed":
                    self._use(session)
            case "end":
                if session.state == "open":
                    self._end(session, details)
            case "resume":
                self._use(session)
                self._end(session, details)
                self._use(session)
            case "long":
                if details is not None and self._use(session):
                    self._write_long_session(details, session)
            case _:
                if self._use(session):
                    self._perform(kind, session, details)

    def scenario(self, name: str) -> Scenario:
        """Close the scenario: switch the fault off, complete compactions, end sessions."""
        self._switch_off()
        if not any(session.state != "new" for session in self._sessions):
            self._use(self._sessions[0])
        for session in self._sessions:
            if session.state == "open":
                self._end(session)
        used = sum(session.state != "new" for session in self._sessions)
        title = f"{counted(used, 'generated session')}, {len(self._steps)} steps"
        return Scenario(name=name, title=title, steps=tuple(self._steps))

    def _new_session(self) -> _Session:
        number = len(self._sessions)
        project = PROJECTS[number % len(PROJECTS)]
        self._sessions.append(_Session(f"s{number + 1}", (number + self._first_agent) % self._agents, project))
        return self._sessions[-1]

    def _write_outage(self, outage: Outage, digits: Digits) -> None:
        # An outage gets sessions that no other intent uses.
        self._switch_off()
        session = self._new_session()
        for word in outage.steps.split():
            name = word.rstrip("?")
            if name != word and digits.pick((True, False)):
                continue
            fault = fault_of(name)
            if fault is not None:
                self._switch_on({**fault, "lasts": None})
            elif name == "off":
                self._switch_off()
            elif name == "next":
                session = self._new_session()
                self._use(session)
            elif name in ("start", "resume"):
                self._use(session)
            elif name == "end":
                self._close(session)
            elif name == "compact":
                self._perform("compaction", session, (digits.pick(SUMMARIES), False, None))
            else:
                self._say(session, prompt_text(digits), digits.pick(REPLIES))

    def _perform(self, kind: str, session: _Session, details: Any) -> None:
        if kind == "prompt":
            reply, rating, text = details
            self._say(session, text, reply, rating)
        elif kind == "sub-agent":
            reply, text = details
            child = self._new_session()
            child.agent, child.project, child.state = session.agent, session.project, "open"
            self._add(
                steps.StartStep(
                    session=child.name,
                    agent=child.agent,
                    project=child.project,
                    parent=session.name,
                    subagent=f"explorer-{child.name}",
                )
            )
            self._say(child, text, reply)
            self._end(child)
        elif kind == "clear":
            self._switch_on(details)
            self._end_refusal_if_needed()
            self._add(steps.ClearStep(session=session.name))
            session.prompted = False
        elif kind == "tool":
            self._ask_for_tools(session)
            self._tool(session, *details)
        else:
            summary, halves, fault = details
            session.compactions += 1
            if session.compactions > 1:
                # Two equal summaries in a session would look like a repeat.
                summary = f"{summary} ({session.compactions})"
            if not halves:
                self._add(steps.CompactStep(session=session.name, summary=summary))
                return
            self._add(steps.PreCompactionStep(session=session.name))
            session.summary = summary
            if fault is not None:
                self._switch_on(fault)
                self._complete(session)

    def _ask_for_tools(self, session: _Session) -> None:
        if not session.prompted:
            self._say(session, "Look into the notes, please.", REPLIES[0])

    def _say(self, session: _Session, text: str, reply: str, rating: float | None = None) -> None:
        session.prompted = True
        session.prompts.append(text)
        if (times := session.prompts.count(text)) > 1:
            # Equal texts would look like a connector that submits one turn twice.
            text = f"{text} ({times})"
        feedback = {} if rating is None else {"feedback": {steps.UNKNOWN_MEMORY: rating}}
        self._add(steps.PromptStep.model_validate({"session": session.name, "text": text, "reply": reply, **feedback}))

    def _write_long_session(self, kind: str, session: _Session) -> None:
        # Many turns make a connector send a checkpoint; many memories are forgotten at once.
        if kind == "turns":
            for number in range(_MANY_TURNS):
                self._say(session, f"Item {number + 1} of the list: what is it about?", REPLIES[0])
            return
        self._ask_for_tools(session)
        first = len(session.stored)
        for number in range(_MANY_ROWS):
            self._store(session, f"Rack plan: unit {number + 1:02} holds a node of its own.")
        ids = [{"from": name, "pointer": "/id"} for name in session.stored[first:]]
        arguments = {"mode": "execute", "ids": ids, "reason": "the plan was replaced"}
        self._add(steps.ToolStep(session=session.name, tool="memory_forget", arguments=arguments))
        session.used.add("memory_forget")

    def _tool(self, session: _Session, tool: str, fact: str, query: str, more: bool) -> None:
        arguments: Mapping[str, Any]
        if tool == "memory_store":
            self._store(session, fact, tags=more)
            return
        if tool == "memory_feedback":
            # The tool's schema asks the model for the session.
            rating = 1 + self._asked[tool]
            self._asked[tool] += 1
            arguments = {"session_key": {"key": session.name}, "ratings": {steps.UNKNOWN_MEMORY: 1 / rating}}
        elif tool == "secret_exec":
            if self._asked[tool]:
                return
            self._asked[tool] += 1
            arguments = {"command": "printenv DEPLOY_TOKEN", "secrets": {"DEPLOY_TOKEN": "ACME_DEPLOY_TOKEN"}}
        elif tool == "memory_search":
            summed_up = {"aggregate": True, "aggregate_budget": "medium", "aggregateBudget": "medium"}
            arguments = {"query": self._numbered(query), "limit": 5, **(summed_up if more else {})}
        else:
            # Each tool is used on a memory once, and no tool on a forgotten one.
            if not session.stored or session.used & {tool, "memory_forget"}:
                self._store(session, fact)
            session.used.add(tool)
            memory = {"from": session.stored[-1], "pointer": "/id"}
            uses: Mapping[str, Mapping[str, Any]] = {
                "memory_get": {"id": memory},
                "memory_modify": {"patches": [{"id": memory, "importance": 0.7, "reason": "confirmed by the team"}]},
                "memory_forget": {"mode": "execute", "ids": [memory], "reason": "it was replaced"},
            }
            arguments = uses[tool]
        self._add(steps.ToolStep(session=session.name, tool=tool, arguments=dict(arguments)))

    def _store(self, session: _Session, fact: str, *, tags: bool = False) -> None:
        name = f"{session.name}-m{len(session.stored) + 1}"
        session.stored.append(name)
        session.used.clear()
        arguments = {"content": self._numbered(fact), **({"tags": "billing,notes"} if tags else {})}
        self._add(steps.ToolStep(session=session.name, tool="memory_store", arguments=arguments, as_=name))

    def _numbered(self, text: str) -> str:
        # A repeated text gets a number: the repeat of a refused call would look like one by the connector.
        self._asked[text] += 1
        return text if self._asked[text] == 1 else f"{text} ({self._asked[text]})"

    def _use(self, session: _Session) -> bool:
        """Open the session, or complete its compaction if it is open. Return False if it cannot be resumed."""
        if session.state == "new":
            self._add(steps.StartStep(session=session.name, agent=session.agent, project=session.project))
        elif session.state == "closed":
            if not self._can_resume:
                return False
            self._add(steps.ResumeStep(session=session.name))
        if session.state != "open":
            session.state, session.prompted = "open", False
        self._complete(session)
        return True

    def _complete(self, session: _Session) -> None:
        if session.summary is not None:
            summary, session.summary = session.summary, None
            self._add(steps.CompactionCompleteStep(session=session.name, summary=summary))

    def _end(self, session: _Session, fault: dict[str, Any] | None = None) -> None:
        if session.state != "open":
            return
        self._complete(session)
        self._switch_on(fault)
        self._end_refusal_if_needed()
        self._close(session)

    def _close(self, session: _Session) -> None:
        session.state = "closed"
        self._add(steps.EndStep(session=session.name))

    def _end_refusal_if_needed(self) -> None:
        # SIG-END-005 wants an end of every started key. An end that meets a closed port leaves no trace, and only a
        # process that outlives its session can send it later.
        if not self._lives_on and self._fault is not None and self._fault.fault["kind"] == "refuse":
            self._switch_off()

    def _switch_on(self, details: dict[str, Any] | None) -> None:
        if details is None:
            return
        self._switch_off()
        self._fault_lasts = details["lasts"]
        self._fault = steps.SwitchFaultOn(**{name: value for name, value in details.items() if name != "lasts"})
        self._steps.append(self._fault)

    def _switch_off(self) -> None:
        if self._fault is None:
            return
        if self._steps[-1] is self._fault:
            self._steps.pop()
        else:
            self._steps.append(steps.SwitchFaultsOff())
        self._fault = None

    def _add(self, step: steps.Step) -> None:
        self._steps.append(step)
        if self._fault is None or self._fault_lasts is None or not isinstance(step, steps.ConnectorStep):
            return
        self._fault_lasts -= 1
        if self._fault_lasts <= 0:
            self._switch_off()
