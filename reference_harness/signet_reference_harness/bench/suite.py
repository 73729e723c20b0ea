"""What a suite is: JSON lines, the first of which is its head; then scenarios, each followed by its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue, RootModel

from signet_reference_harness.documents import Part

FORMAT = "signet-bench-suite/1"
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Names = Annotated[tuple[Name, ...], Field(strict=False)]
OWN_SESSION = "own"
"""The session of a step that names none. It is started when it is first used, and ended with its scenario."""


class Head(Part):
    """The first line: what the suite is, where it comes from, and what is known to be wrong with it."""

    kind: Literal["suite"]
    format: Literal["signet-bench-suite/1"]
    name: Name
    licence: Annotated[str, Field(min_length=1, description="SPDX expression, or as its owner words it")]
    source: Annotated[str, Field(description="where the facts and questions come from")] = ""
    about: str = ""
    known_defects: Annotated[tuple[str, ...], Field(strict=False)] = ()


class Scenario(Part):
    """Begins a scenario; the steps up to the next one are its own, in their order.

    Scenarios that name the same `database` are performed one after another against one daemon and its database; each
    other scenario has a daemon and an empty database of its own.
    """

    kind: Literal["scenario"]
    id: Name
    database: Name | None = None
    agent: Annotated[Name | None, Field(description="who acts where a session names nobody (default: bench-ID)")] = None
    project: Annotated[str | None, Field(pattern=r"^/", description="default: /home/bench/ID")] = None
    about: str = ""


class Fact(Part):
    """Is stored in the memory of the session's agent."""

    kind: Literal["fact"]
    id: Name
    text: Text
    session: Name = OWN_SESSION
    at: Annotated[str | None, Field(description="ISO 8601: since when it is remembered (createdAt)")] = None
    fields: Annotated[
        dict[str, JsonValue], Field(description="more members of the request: tags, importance, pinned, structured, …")
    ] = Field(default_factory=dict)


class _Asking(Part):
    """What a step may demand of the memories that it brings. Each name is that of an earlier fact or prompt."""

    evidence: Annotated[Names, Field(description="any of these answers it; figures are computed from their ranks")] = ()
    expect: Annotated[Names, Field(description="the run asserts that each of these is brought")] = ()
    absent: Annotated[Names, Field(description="the run asserts that none of these is brought")] = ()
    category: str | None = None


class Query(_Asking):
    """Is recalled: POST memory/recall."""

    kind: Literal["query"]
    id: Name
    text: Text
    session: Name = OWN_SESSION
    fields: Annotated[
        dict[str, JsonValue], Field(description="more members of the request: project, type, tags, since, until, …")
    ] = Field(default_factory=dict)
    only_new: Annotated[bool, Field(description="leave out what this session has been shown already")] = False
    answer: Annotated[str | None, Field(description="what a model should answer, where one is asked")] = None


class Start(_Asking):
    """Opens a session, or opens it again."""

    kind: Literal["start"]
    session: Name
    id: Name | None = None
    agent: Name | None = None
    project: Annotated[str | None, Field(pattern=r"^/")] = None


class Prompt(_Asking):
    """One turn: the user's words go to the daemon, the model's reply is the one given here."""

    kind: Literal["prompt"]
    text: Text
    reply: Text = "Noted."
    session: Name = OWN_SESSION
    id: Name | None = None


class Forget(Part):
    """Takes a fact from memory."""

    kind: Literal["forget"]
    fact: Name
    session: Name = OWN_SESSION


class Compaction(Part):
    """The conversation of the session is replaced by a summary."""

    kind: Literal["compaction"]
    summary: Text
    session: Name = OWN_SESSION


class Clear(Part):
    """The conversation of the session is taken from the model."""

    kind: Literal["clear"]
    session: Name = OWN_SESSION


class End(Part):
    """Closes a session. Those that are open at the end of their scenario are closed then."""

    kind: Literal["end"]
    session: Name = OWN_SESSION


Asking = Query | Start | Prompt
Step = Fact | Query | Start | Prompt | Forget | Compaction | Clear | End


class SuiteLine(RootModel[Annotated[Head | Scenario | Step, Field(discriminator="kind")]]):
    """One line of a benchmark suite."""

    model_config = ConfigDict(title="Line of a benchmark suite")
    schema_file: ClassVar[str] = "harness/signet-bench-suite-1.schema.json"


@dataclass(frozen=True, slots=True)
class Performance:
    """A scenario with its steps, each with the number of its line."""

    line: int
    scenario: Scenario
    steps: tuple[tuple[int, Step], ...]

    @property
    def database(self) -> str:
        """The name of its database; a scenario of its own is told from a named one by a blank."""
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
    """A suite that has been read and found whole. `sha256` is that of its bytes."""

    path: str
    sha256: str
    head: Head
    performances: tuple[Performance, ...]

    @property
    def databases(self) -> dict[str, list[Performance]]:
        """The scenarios by database, in the order of the file."""
        grouped: dict[str, list[Performance]] = {}
        for performance in self.performances:
            grouped.setdefault(performance.database, []).append(performance)
        return grouped

    def steps(self) -> list[Step]:
        """Every step of every scenario."""
        return [step for performance in self.performances for _, step in performance.steps]

    def counts(self) -> dict[str, int]:
        """How much of what it holds."""
        steps = self.steps()
        asked: list[Any] = [step for step in steps if isinstance(step, Asking)]
        return {
            "scenarios": len(self.performances),
            "databases": len(self.databases),
            "facts": sum(isinstance(step, Fact) for step in steps),
            "questions": sum(bool(step.evidence) for step in asked),
            "questions_without_evidence": sum(isinstance(step, Query) and not step.evidence for step in asked),
            "assertions": sum(len(step.expect) + len(step.absent) for step in asked),
            "steps": len(steps),
        }
