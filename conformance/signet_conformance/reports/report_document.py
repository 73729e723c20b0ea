"""A report that is read back, as a document: signet-report/1. What writes it is json_document."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, model_validator

from signet_conformance.files.documents import Document, Items, Maybe, Part, Text, refusal
from signet_conformance.finding import Verdict

_POINTER = r"^(/([^~]|~[01])*)*$"
_BREACHES = (Verdict.FAIL, Verdict.WARN)


def _pointer(text: str) -> str:
    # A name with half an emoji stands in some recordings: pydantic's own patterns refuse such text.
    if text and (not text.startswith("/") or re.search("~(?![01])", text)):
        raise refusal("is not a JSON pointer", "such as /request/body/json/agentId; empty for the whole exchange")
    return text


Outcome = Annotated[Verdict, Field(strict=False)]
Notes = Items[str]


class _Open(Part):
    """An object whose unknown members are ignored."""

    model_config = ConfigDict(extra="ignore")


class ReportFinding(_Open):
    """One piece of evidence."""

    exchanges: Annotated[Items[int], Field(description="Numbers (seq) in the trace; the breaching one first.")]
    model: Annotated[
        Items[int], Field(description="Numbers (seq) in the recording of the harness's model; the breaching one first.")
    ] = ()
    side: Literal["connector", "daemon", "harness"]
    pointer: Annotated[
        str,
        AfterValidator(_pointer),
        WithJsonSchema({"type": "string", "pattern": _POINTER}),
        Field(description="JSON Pointer into the line of the first exchange; empty = all of it."),
    ]
    expected: str
    received: Annotated[Any, Field(description="The value that was found; null also where there was none.")]
    message: Text
    verdict: Maybe[Outcome] = None
    file: Annotated[
        Maybe[str], Field(description="In `together`: the recording; absent where only all of them show it.")
    ] = None
    kind: Annotated[
        Maybe[str],
        Field(description="The kind of breach: a code that is the same in every run, whatever the wording."),
    ] = None
    operation: Annotated[Maybe[str], Field(description="The operation of the first exchange, if it is of one.")] = None
    elements: Annotated[
        Items[str], Field(description="The members of a list that the finding is about: each is a breach by itself.")
    ] = ()
    fold: Annotated[Maybe[str], Field(description="Equal for repeats of one defect.")] = None


class ReportVerdict(_Open):
    """The verdict of one requirement, with its evidence."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {
                    "if": {"required": ["verdict"], "properties": {"verdict": {"enum": [*_BREACHES]}}},
                    "then": {"properties": {"findings": {"minItems": 1}}},
                }
            ]
        }
    )

    verdict: Outcome
    reason: Annotated[
        str,
        Field(
            pattern="^[a-z]+(-[a-z]+)*$",
            description="A code that programs compare, such as conforming, breach, no-subject, gated, undecided, "
            "crashed.",
        ),
    ]
    message: Maybe[str] = None
    title: Maybe[str] = None
    level: Maybe[Literal["MUST", "SHOULD", "MAY"]] = None
    explain: Annotated[
        Maybe[str], Field(description="The command that shows the requirement's page; with a breach.")
    ] = None
    subjects: Annotated[Maybe[Annotated[int, Field(ge=0)]], Field(description="How many subjects were looked at.")] = (
        None
    )
    found: Annotated[Maybe[Annotated[int, Field(ge=0)]], Field(description="How many findings there are.")] = None
    listed: Annotated[Maybe[Annotated[int, Field(ge=0)]], Field(description="How many of them stand here.")] = None
    findings: Items[ReportFinding]

    @model_validator(mode="after")
    def _breach_with_evidence(self) -> Self:
        if self.verdict in _BREACHES and not self.findings:
            raise refusal(f"is {self.verdict.value} without a finding", "a breach is told with its evidence")
        return self


Verdicts = dict[Annotated[str, Field(pattern="^[A-Z][A-Z0-9]*(-[A-Z0-9]+)+$")], ReportVerdict]


class ReportAlso(_Open):
    """Another requirement that a cause breaches."""

    requirement: Text
    verdict: Outcome


class ReportSource(_Open):
    """A line of the connector's code."""

    file: Annotated[Text, Field(description="Relative to where the run was started, if it lies below.")]
    line: Annotated[int, Field(ge=1)]


class ReportProblem(_Open):
    """One thing that is wrong, with its smallest example."""

    what: Text
    file: Maybe[str] = None
    exchange: Annotated[Maybe[int], Field(description="Its number (seq) in that file.")] = None
    line: Annotated[Maybe[Annotated[int, Field(ge=1)]], Field(description="The line of that file.")] = None
    pointer: str = ""
    expected: str = ""
    received: Annotated[str, Field(description="As a line of text.")] = ""
    sources: Annotated[
        Items[ReportSource],
        Field(description="The places that sent the exchange, the innermost first; where the driver can tell."),
    ] = ()
    times: Annotated[int, Field(ge=1, description="How many findings tell of it.")]


Count = Annotated[int, Field(ge=0)]


class ReportCause(_Open):
    """Breaches with one cause, over all traces and requirements."""

    requirement: Annotated[Text, Field(description="The requirement that leads, by which the problems are told.")]
    says: Annotated[
        Maybe[Text], Field(description="The mistake, where one breaks several requirements, each in its own way.")
    ] = None
    verdict: Outcome
    known: Annotated[bool, Field(description="Whether each of its failures is known.")] = False
    also: Annotated[Items[ReportAlso], Field(description="Other requirements that it breaches.")] = ()
    traces: Annotated[Count, Field(description="How many traces show it; 0 where only all of them together do.")]
    of: Annotated[Count, Field(description="How many traces there are.")]
    sessions: Annotated[Count, Field(description="How many sessions show it.")]
    calls: Annotated[
        dict[str, Annotated[int, Field(ge=1)]], Field(description="Operation to how many calls of it show it.")
    ] = Field(default_factory=dict)
    problems: Annotated[Items[ReportProblem], Field(description="The worst first.")]


class ReportDeclared(_Open):
    """As in the trace's header, or as given on the command line."""

    harness: Maybe[str] = None
    capabilities: Maybe[Items[str]] = None
    agents: Items[str] = ()
    bounds_s: dict[str, float] = Field(default_factory=dict)
    token: bool = False
    canaries: Annotated[
        dict[str, str], Field(description="Secrets that the recorder was told of: the mark in the trace to the name.")
    ] = Field(default_factory=dict)


class ReportModel(_Open):
    """The harness's side, judged apart: it changes no verdict of the connector and no exit status."""

    file: Annotated[Text, Field(description="The recording of the model.")]
    played: Annotated[
        bool, Field(description="true where no model was asked: a host that the kit plays wrote its requests.")
    ] = False
    verdicts: Verdicts


class ReportGap(_Open):
    """Traffic that could not be judged, for a reason of the recorder or of a capture."""

    lack: Annotated[Text, Field(description="not carried, not decoded, not captured, or not kept whole.")]
    route: Annotated[Text, Field(description="Method and operation; outside the contract the path.")]
    times: Annotated[int, Field(ge=1)]


class ReportLacks(_Open):
    """Parts of a run that were not judged."""

    unread: Annotated[Items[str], Field(description="Recordings that could not be read.")] = ()
    scenarios: Annotated[Items[str], Field(description="Scenarios that broke off or were given up.")] = ()
    others: Annotated[
        bool, Field(description="Whether the run ended early, so that nothing says which scenarios it lacks.")
    ] = False


class ReportTrace(_Open):
    """One recording."""

    file: Text
    target: Annotated[Maybe[str], Field(description="The connector, as the trace's header names it.")] = None
    scenario: Annotated[
        Maybe[Text], Field(description="The scenario that was performed; that of a generated session is a requirement.")
    ] = None
    operations: Annotated[
        dict[str, Annotated[int, Field(ge=1)]], Field(description="Operation to how often it was called.")
    ] = Field(default_factory=dict)
    declared: ReportDeclared
    verdicts: Verdicts
    daemon: Annotated[
        Verdicts,
        Field(
            description="The daemon's side, judged apart: it changes no verdict of the connector and no exit status."
        ),
    ] = Field(default_factory=dict)
    model: Annotated[
        Maybe[ReportModel], Field(description="The requests to the harness's model, where they were recorded.")
    ] = None
    gaps: Annotated[Items[ReportGap], Field(description="What of its traffic could not be judged.")] = ()
    remarks: Annotated[Notes, Field(description="As of the whole report.")] = ()
    warnings: Annotated[
        Notes, Field(description="Warnings, such as a torn last line or a file that was left out.")
    ] = ()


class ReportPlayed(_Open):
    """A harness that the kit played for the connector."""

    host: Text
    release: Annotated[Text, Field(description="The release of it that was played.")]
    newer: Annotated[Notes, Field(description="The later releases that the kit knew when it ran.")] = ()
    real: Annotated[bool, Field(description="Whether it is the program that people run, and was launched.")] = False


class ReportRun(_Open):
    """The facts that distinguish a run from others."""

    created: Annotated[Maybe[Text], Field(description="When its first recording began.")] = None
    commit: Annotated[
        Maybe[str],
        Field(
            pattern="^([0-9a-f]{40}|[0-9a-f]{64})$",
            description="The commit that was checked out where the report was made, or the one that CI named.",
        ),
    ] = None
    branch: Maybe[Text] = None
    seed: Annotated[Maybe[Annotated[int, Field(ge=0)]], Field(description="That of the generated sessions.")] = None
    connector: Annotated[Maybe[Text], Field(description="The connector's own release.")] = None


class CoveragePart(_Open):
    """One part of the contract: operations, fields, answers or requirements."""

    exercised: Items[str]
    missed: Items[str]


class ReportCoverage(_Open):
    """How much of the contract the traces exercise."""

    percent: Annotated[float, Field(ge=0, le=100)]
    parts: dict[str, CoveragePart]


class LaterBreach(_Open):
    """A requirement that the next contract would find breached."""

    verdict: Outcome
    traces: Annotated[int, Field(ge=1, description="How many traces breach it.")]
    message: Text
    file: Annotated[Maybe[str], Field(description="The first of them.")] = None


class ReportNewer(_Open):
    """Breaches of the next contract by a connector whose release lies between two."""

    contract: Text
    of: Annotated[int, Field(ge=1, description="How many traces were judged by it.")]
    breaches: dict[str, LaterBreach]


class ReportUnreached(_Open):
    """Tools and fields of the contract that no step of the run could make the connector send."""

    tools: Annotated[Items[str], Field(description="Tools that are not offered, and whose operations were not called.")]
    fields: Annotated[dict[str, Items[str]], Field(description="Offered tool to the fields that it cannot pass on.")]
    unfillable: Annotated[Items[str], Field(description="Offered tools whose schema names nothing that they need.")]


class ReportGenerated(_Open):
    """The generated sessions of a run."""

    seed: Annotated[int, Field(ge=0)]
    performed: Annotated[int, Field(ge=0, description="How many there were.")]
    outages: Annotated[
        dict[str, Annotated[int, Field(ge=0)]],
        Field(description="How many of them held each outage that users really have, by its name."),
    ] = Field(default_factory=dict)
    skipped: Annotated[
        dict[str, Annotated[int, Field(ge=1)]],
        Field(description="How many steps of each kind were skipped: connector or harness has no counterpart."),
    ] = Field(default_factory=dict)
    gaps: Annotated[
        dict[str, Annotated[int, Field(ge=1)]], Field(description="What of them could not be judged, how often.")
    ] = Field(default_factory=dict)
    lost: Annotated[
        Items[str], Field(description="Outages that no session could have, why, and what to do about it.")
    ] = ()


class ReportPartTime(_Open):
    """Time that the workers of a run spent on one activity."""

    part: Text
    of: Annotated[Text, Field(description="Its group, such as process starts or waiting.")]
    s: Annotated[float, Field(ge=0, description="Seconds, summed over the workers.")]
    times: Count


class ReportTimeSpent(_Open):
    """Where the time of a run went: seconds."""

    wall_s: Annotated[float, Field(ge=0, description="From the start of the process on.")]
    phases: Annotated[dict[str, float], Field(description="Of the clock on the wall, by phase, one after the other.")]
    workers: Count
    parts: Annotated[Items[ReportPartTime], Field(description="Activities of the workers while driving.")]
    cpu_s: Annotated[dict[str, float], Field(description="CPU time by program, with that of its children.")]


class Report(Document, _Open):
    """A run: the verdict of every requirement over every trace.

    Readers ignore members that are not named here.
    """

    model_config = ConfigDict(title="Report (signet-report/1)")
    schema_file: ClassVar[str] = "report/signet-report-1.schema.json"

    format: Literal["signet-report/1"]
    contract: Annotated[
        str, Field(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$", description="Contract version, a file of versions.")
    ]
    kit: Annotated[Text, Field(description="Version of the program that judged.")]
    run: Annotated[Maybe[ReportRun], Field(description="The facts that distinguish the run from others.")] = None
    played: Annotated[
        Items[ReportPlayed], Field(description="The harnesses that the kit played, by the marks of the traces.")
    ] = ()
    traces: Items[ReportTrace]
    together: Annotated[Verdicts, Field(description="The verdict of each requirement over all traces.")] = Field(
        default_factory=dict
    )
    causes: Annotated[
        Items[ReportCause],
        Field(description="Breaches by cause: those of the connector, then those of the daemon and of the harness."),
    ] = ()
    exit: Annotated[int, Field(ge=0, le=255, description="Exit status of the run.")]
    lacks: Annotated[
        Maybe[ReportLacks], Field(description="What was not judged; absent in reports of kits that did not say so.")
    ] = None
    warnings: Annotated[
        Notes, Field(description="Warnings, such as a torn last line or a file that was left out.")
    ] = ()
    remarks: Annotated[
        Notes,
        Field(
            description="Notes that change no verdict: what is off about the connector's installation, such as a "
            "timeout in a wrong unit, and what became of its handlers in the harness."
        ),
    ] = ()
    skipped: Annotated[
        dict[str, Annotated[int, Field(ge=1)]],
        Field(description="Kind of step that the driver skipped, to the number of recordings in which it did."),
    ] = Field(default_factory=dict)
    coverage: Annotated[
        Maybe[ReportCoverage],
        Field(
            description="How much of the contract the traces exercise: operations, fields, answers, requirements; "
            "when it was asked for."
        ),
    ] = None
    newer: Annotated[
        Maybe[ReportNewer],
        Field(
            description="What the next contract would breach beside, where the connector's release lies between two; "
            "it changes no exit status."
        ),
    ] = None
    unreached: Annotated[
        Maybe[ReportUnreached],
        Field(description="What the model cannot reach through the connector, where its tools are known; information."),
    ] = None
    generated: Annotated[Maybe[ReportGenerated], Field(description="The generated sessions, where there were any.")] = (
        None
    )
    time_spent: Annotated[
        Maybe[ReportTimeSpent], Field(description="Where the time of the run went; when it was asked for.")
    ] = None
    events: Annotated[Items[dict[str, Any]], Field(description="The run as it went.")] = ()
