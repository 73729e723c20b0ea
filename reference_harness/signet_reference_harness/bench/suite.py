"""A suite in JSON lines: its head, then scenarios, each followed by its steps. Errors name the line."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field, JsonValue, RootModel

from signet_reference_harness.documents import DocumentError, StrictModel, parse_document, read_file

FORMAT = "signet-bench-suite/1"
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Names = Annotated[tuple[Name, ...], Field(strict=False)]
OWN_SESSION = "own"
"""The session of a step that names none. It is started when it is first used, and ended with its scenario."""


class Head(StrictModel):
    """The first line: the suite's name, its source, and its known errors."""

    kind: Literal["suite"]
    format: Literal["signet-bench-suite/1"]
    name: Name
    licence: Annotated[str, Field(min_length=1)]
    """an SPDX expression, or the owner's words"""
    source: str = ""
    """the source of the facts and questions"""
    about: str = ""
    known_defects: Annotated[tuple[str, ...], Field(strict=False)] = ()


class SuiteScenario(StrictModel):
    """Begins a scenario; the steps up to the next scenario belong to it, in order.

    Scenarios with the same `database` run one after another against one daemon and its database; each other
    scenario has a daemon and an empty database of its own.
    """

    kind: Literal["scenario"]
    id: Name
    database: Name | None = None
    agent: Name | None = None
    """the agent of sessions that name none (default: bench-ID)"""
    project: Annotated[str | None, Field(pattern=r"^/")] = None
    """the project's folder (default: /home/bench/ID)"""
    about: str = ""


class SuiteFact(StrictModel):
    """A fact that is stored in the memory of the session's agent."""

    kind: Literal["fact"]
    id: Name
    text: Text
    session: Name = OWN_SESSION
    at: str | None = None
    """an ISO 8601 time: since when it is remembered (createdAt)"""
    fields: dict[str, JsonValue] = Field(default_factory=dict)
    """an object: more members of the request, such as tags, importance, pinned, structured"""


class _QuestionStep(StrictModel):
    """A step that returns memories, and its demands on them. Each name is that of an earlier fact or prompt."""

    evidence: Names = ()
    """a list of facts, any of which answers the question; figures are computed from their ranks"""
    expect: Names = ()
    """a list of facts: the run asserts that each of them is returned"""
    absent: Names = ()
    """a list of facts: the run asserts that none of them is returned"""
    category: str | None = None


class SuiteQuery(_QuestionStep):
    """A question that is recalled: POST memory/recall."""

    kind: Literal["query"]
    id: Name
    text: Text
    session: Name = OWN_SESSION
    fields: dict[str, JsonValue] = Field(default_factory=dict)
    """an object: more members of the request, such as project, type, tags, since, until"""
    only_new: bool = False
    """true: leave out rows that this session has seen"""
    answer: str | None = None
    """the answer that a model should give, if a model is asked"""


class SuiteStart(_QuestionStep):
    """Opens a session, or opens it again."""

    kind: Literal["start"]
    session: Name
    id: Name | None = None
    agent: Name | None = None
    project: Annotated[str | None, Field(pattern=r"^/")] = None


class SuiteTurn(_QuestionStep):
    """One turn: the user's words are sent to the daemon; the model's reply is given here."""

    kind: Literal["prompt"]
    text: Text
    reply: Text = "Noted."
    session: Name = OWN_SESSION
    id: Name | None = None


class SuiteForget(StrictModel):
    """Deletes a fact from memory."""

    kind: Literal["forget"]
    fact: Name
    session: Name = OWN_SESSION


class SuiteCompaction(StrictModel):
    """The conversation of the session is replaced by a summary."""

    kind: Literal["compaction"]
    summary: Text
    session: Name = OWN_SESSION


class SuiteClear(StrictModel):
    """The session's conversation is cleared."""

    kind: Literal["clear"]
    session: Name = OWN_SESSION


class SuiteEnd(StrictModel):
    """Closes a session. Sessions that are open at the end of their scenario are closed there."""

    kind: Literal["end"]
    session: Name = OWN_SESSION


QuestionStep = SuiteQuery | SuiteStart | SuiteTurn
Step = SuiteFact | SuiteQuery | SuiteStart | SuiteTurn | SuiteForget | SuiteCompaction | SuiteClear | SuiteEnd


class SuiteLine(RootModel[Annotated[Head | SuiteScenario | Step, Field(discriminator="kind")]]):
    """One line of a benchmark suite."""

    model_config = ConfigDict(title="Line of a benchmark suite")
    schema_file: ClassVar[str] = "harness/signet-bench-suite-1.schema.json"


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """A scenario with its steps, each with the number of its line."""

    line: int
    scenario: SuiteScenario
    steps: tuple[tuple[int, Step], ...]

    @property
    def database(self) -> str:
        """The name of its database. The blank keeps a scenario's own database apart from a named one."""
        return self.scenario.database or f"scenario {self.scenario.id}"

    @property
    def agent(self) -> str:
        """The agent of its sessions that name none."""
        return self.scenario.agent or f"bench-{self.scenario.id}"

    @property
    def project(self) -> str:
        """The project of its sessions that name none."""
        return self.scenario.project or f"/home/bench/{self.scenario.id}"


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite that was read and checked. `sha256` is that of its bytes."""

    path: str
    sha256: str
    head: Head
    scenario_runs: tuple[ScenarioRun, ...]

    @property
    def databases(self) -> dict[str, list[ScenarioRun]]:
        """The scenarios by database, in the order of the file."""
        grouped: dict[str, list[ScenarioRun]] = {}
        for scenario_run in self.scenario_runs:
            grouped.setdefault(scenario_run.database, []).append(scenario_run)
        return grouped

    def steps(self) -> list[Step]:
        """Every step of every scenario."""
        return [step for scenario_run in self.scenario_runs for _, step in scenario_run.steps]

    def counts(self) -> dict[str, int]:
        """The number of scenarios, facts, questions and other parts."""
        steps = self.steps()
        asked: list[Any] = [step for step in steps if isinstance(step, QuestionStep)]
        return {
            "scenarios": len(self.scenario_runs),
            "databases": len(self.databases),
            "facts": sum(isinstance(step, SuiteFact) for step in steps),
            "questions": sum(bool(step.evidence) for step in asked),
            "questions_without_evidence": sum(isinstance(step, SuiteQuery) and not step.evidence for step in asked),
            "assertions": sum(len(step.expect) + len(step.absent) for step in asked),
            "steps": len(steps),
        }


UNANSWERABLE: Final = frozenset({"adversarial", "abstention"})
"""Categories of questions that the facts do not answer, though some name evidence. They have figures of their own."""
LARGEST_SUITE: Final = 1024 * 1024 * 1024
MOST_PROBLEMS: Final = 20
SCHEMA_REMEDY: Final = "write it as schemas/harness/signet-bench-suite-1.schema.json says"


class SuiteError(DocumentError):
    """Raised for a suite that breaks the format: `problems` are its faults; the message lists the first ones."""

    def __init__(self, problems: list[DocumentError]) -> None:
        self.problems = problems
        first = problems[0]
        shown = "\n".join(problem.message for problem in problems[:MOST_PROBLEMS])
        more = len(problems) - MOST_PROBLEMS
        super().__init__(f"{shown}\nand {more} more" if more > 0 else shown, remedy=first.remedy or SCHEMA_REMEDY)


def read_suite(path: Path) -> Suite:
    """The suite in a file. Raises SuiteError with all faults of the format, DocumentError for an unreadable file."""
    return parse_suite(read_file(path, LARGEST_SUITE, smaller="split it by scenarios"), str(path))


def parse_suite(data: bytes, where: str) -> Suite:
    """The suite in `data`; errors call its place `where`. Raises SuiteError."""
    reader = _Reader(where)
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            try:
                reader.take(number, parse_document(SuiteLine, line, f"{where}:{number}").root)
            except DocumentError as problem:
                reader.problems.append(problem)
    return reader.suite(hashlib.sha256(data).hexdigest())


class _Reader:
    def __init__(self, where: str) -> None:
        self._where = where
        self._head: Head | None = None
        self._scenarios: dict[str, int] = {}
        self._scenario_runs: list[tuple[int, SuiteScenario, list[tuple[int, Step]]]] = []
        self._ids: dict[str, int] = {}
        """The names of the facts, queries and turns of the current scenario, with their lines."""
        self._items: set[str] = set()
        """Those of them that can be evidence."""
        self._sessions: set[str] = set()
        self.problems: list[DocumentError] = []

    def suite(self, sha256: str) -> Suite:
        if self._head is None and not self.problems:
            self._refuse(1, "the file holds no line", "begin it with a line of kind suite")
        elif not self._scenario_runs and not self.problems:
            self._refuse(1, "the suite holds no scenario", "add a line of kind scenario")
        if self._head is None or self.problems:
            raise SuiteError(self.problems)
        scenario_runs = (ScenarioRun(line, scenario, tuple(steps)) for line, scenario, steps in self._scenario_runs)
        return Suite(self._where, sha256, self._head, tuple(scenario_runs))

    def take(self, number: int, line: Head | SuiteScenario | Step) -> None:
        if isinstance(line, Head):
            if self._head is not None:
                self._refuse(number, "a second line of kind suite", "take it out: a file holds one suite")
            self._head = self._head or line
        elif self._head is None:
            # Reported once: the other lines may be right.
            self._head = Head(kind="suite", format="signet-bench-suite/1", name="unnamed", licence="unknown")
            self._refuse(number, "the suite does not begin with its head", "put a line of kind suite first")
        elif isinstance(line, SuiteScenario):
            before = self._scenarios.setdefault(line.id, number)
            self._scenario_runs.append((number, line, []))
            self._ids, self._items, self._sessions = {}, set(), {OWN_SESSION}
            if before != number:
                self._refuse(number, f"scenario {line.id!r} is in line {before} already", "give it another id")
        elif not self._scenario_runs:
            self._refuse(number, f"{line.kind} before any scenario", "put a line of kind scenario before it")
        else:
            # Added even if it is refused, so that later steps that depend on it are not refused too.
            self._scenario_runs[-1][2].append((number, line))
            self._check(number, line)

    def _check(self, number: int, step: Step) -> None:
        if isinstance(step, SuiteStart):
            self._sessions.add(step.session)
        elif step.session not in self._sessions:
            remedy = f"add a line of kind start for {step.session!r}"
            self._refuse(number, f"session {step.session!r} has not been started", remedy)
        references = [("fact", step.fact)] if isinstance(step, SuiteForget) else []
        if isinstance(step, QuestionStep):
            members = ("evidence", "expect", "absent")
            references = [(member, name) for member in members for name in getattr(step, member)]
        for member, name in references:
            if name not in self._items:
                message = f"{member} {name!r} is not the id of a fact or prompt above it in this scenario"
                self._refuse(number, message, "name one that is stored before it is asked for, or take it out")
        step_id = getattr(step, "id", None)
        if step_id is None:
            return
        before = self._ids.setdefault(step_id, number)
        if before != number:
            self._refuse(number, f"id {step_id!r} is in line {before} already", "give each step its own id")
        if isinstance(step, SuiteFact | SuiteTurn):
            self._items.add(step_id)

    def _refuse(self, number: int, message: str, remedy: str) -> None:
        self.problems.append(DocumentError(f"{self._where}:{number}: {message}", remedy=remedy))
