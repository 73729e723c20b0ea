"""A report that is read back, as a document: signet-report/1. What writes it is json_document."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, model_validator

from signet_conformance.files import read_json
from signet_conformance.files.documents import Document, Items, Maybe, Part, Text, demand, refusal
from signet_conformance.finding import COVERABLE, Verdict

_POINTER = r"^(/([^~]|~[01])*)*$"


def _pointer(text: str) -> str:
    # Some recordings hold a name with a lone surrogate, which pydantic's own patterns refuse.
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

    exchanges: Items[int]
    """Numbers (seq) in the trace; the breaching one first."""
    model: Items[int] = ()
    """Numbers (seq) in the recording of the harness's model; the breaching one first."""
    side: Literal["connector", "daemon", "harness"]
    pointer: Annotated[str, AfterValidator(_pointer), WithJsonSchema({"type": "string", "pattern": _POINTER})]
    """JSON Pointer into the line of the first exchange; empty for the whole line."""
    expected: str
    received: Any
    """The value that was found; null also if there was no value."""
    message: Text
    verdict: Maybe[Outcome] = None
    file: Maybe[str] = None
    """In `together`, the recording; absent if only all recordings together show it."""
    kind: Maybe[str] = None
    """The kind of breach: a code that is the same in every run, whatever the wording."""
    operation: Maybe[str] = None
    """The operation of the first exchange, if it has one."""
    elements: Items[str] = ()
    """The members of a list that the finding is about; each is a breach of its own."""
    fold: Maybe[str] = None
    """A text that is equal for repeats of one defect."""


class ReportVerdict(_Open):
    """The verdict of one requirement, with its evidence."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {
                    "if": {"required": ["verdict"], "properties": {"verdict": {"enum": [*COVERABLE]}}},
                    "then": {"properties": {"findings": {"minItems": 1}}},
                }
            ]
        }
    )

    verdict: Outcome
    reason: Annotated[str, Field(pattern="^[a-z]+(-[a-z]+)*$")]
    """A code that programs compare, such as conforming, breach, no-subject, gated, undecided, crashed."""
    message: Maybe[str] = None
    title: Maybe[str] = None
    level: Maybe[Literal["MUST", "SHOULD", "MAY"]] = None
    explain: Maybe[str] = None
    """The command that shows the requirement's page; present with a breach."""
    subjects: Maybe[Annotated[int, Field(ge=0)]] = None
    """How many subjects were looked at."""
    found: Maybe[Annotated[int, Field(ge=0)]] = None
    """How many findings there are in all."""
    listed: Maybe[Annotated[int, Field(ge=0)]] = None
    """How many of the findings are listed here."""
    findings: Items[ReportFinding]

    @model_validator(mode="after")
    def _breach_with_evidence(self) -> Self:
        if self.verdict in COVERABLE and not self.findings:
            raise refusal(f"is {self.verdict.value} without a finding", "a breach needs its evidence")
        return self


Verdicts = dict[Annotated[str, Field(pattern="^[A-Z][A-Z0-9]*(-[A-Z0-9]+)+$")], ReportVerdict]


class ReportAlso(_Open):
    """Another requirement that a cause breaches."""

    requirement: Text
    verdict: Outcome


class ReportSource(_Open):
    """A line of the connector's code."""

    file: Text
    """The path, relative to the folder in which the run was started, if it is below that."""
    line: Annotated[int, Field(ge=1)]


class ReportProblem(_Open):
    """One thing that is wrong, with its smallest example."""

    what: Text
    file: Maybe[str] = None
    exchange: Maybe[int] = None
    """Its number (seq) in that file."""
    line: Maybe[Annotated[int, Field(ge=1)]] = None
    """The line number in that file."""
    pointer: str = ""
    expected: str = ""
    received: str = ""
    """The received value as one line of text."""
    sources: Items[ReportSource] = ()
    """The places in the connector's code that sent the exchange, the innermost first, if the driver can tell."""
    times: Annotated[int, Field(ge=1)]
    """How many findings show the problem."""


Count = Annotated[int, Field(ge=0)]


class ReportCause(_Open):
    """Breaches with one cause, over all traces and requirements."""

    requirement: Text
    """The leading requirement, by which the problems are described."""
    says: Maybe[Text] = None
    """The mistake in words, if one mistake breaks several requirements, each in its own way."""
    verdict: Outcome
    known: bool = False
    """Whether all of its failures are known failures."""
    also: Items[ReportAlso] = ()
    """Other requirements that it breaches."""
    traces: Count
    """How many traces show it; 0 if only all traces together show it."""
    of: Count
    """How many traces there are."""
    sessions: Count
    """How many sessions show it."""
    calls: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Operation to the number of its calls that show it."""
    problems: Items[ReportProblem]
    """The worst first."""


class ReportDeclared(_Open):
    """The target's declarations, from the trace's header or from the command line."""

    harness: Maybe[str] = None
    capabilities: Maybe[Items[str]] = None
    agents: Items[str] = ()
    bounds_s: dict[str, float] = Field(default_factory=dict)
    token: bool = False
    canaries: dict[str, str] = Field(default_factory=dict)
    """Secrets that the recorder was told of: token in the trace to the secret's name."""


class ReportModel(_Open):
    """The harness's side, judged apart: it changes no verdict of the connector and no exit status."""

    file: Text
    """The recording of the model."""
    played: bool = False
    """true if no model was asked: a host that the kit plays wrote the requests."""
    verdicts: Verdicts


class ReportGap(_Open):
    """Traffic that could not be judged because the recorder or a capture lacks a part of it."""

    lack: Text
    """not carried, not decoded, not captured, or not kept whole."""
    route: Text
    """Method and operation, or the path if it is outside the contract."""
    times: Annotated[int, Field(ge=1)]


class ReportLacks(_Open):
    """Parts of a run that were not judged."""

    unread: Items[str] = ()
    """Recordings that could not be read."""
    scenarios: Items[str] = ()
    """Scenarios that broke off or were given up."""
    others: bool = False
    """Whether the run ended early, so that the scenarios that it lacks are not known."""


class ReportTrace(_Open):
    """One recording."""

    file: Text
    target: Maybe[str] = None
    """The connector, as the trace's header names it."""
    scenario: Maybe[Text] = None
    """The scenario that was performed; for a generated session, a requirement."""
    operations: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Operation to the number of its calls."""
    declared: ReportDeclared
    verdicts: Verdicts
    daemon: Verdicts = Field(default_factory=dict)
    """The daemon's side, judged apart: it changes no verdict of the connector and no exit status."""
    model: Maybe[ReportModel] = None
    """What reached the harness's model, if that was recorded or is all that was asked for."""
    gaps: Items[ReportGap] = ()
    """Parts of its traffic that could not be judged."""
    remarks: Notes = ()
    """Notes about this recording, as in `remarks` of the whole report."""
    warnings: Notes = ()
    """Warnings, such as a torn last line or a file that was left out."""


class ReportPlayed(_Open):
    """A harness that the kit played for the connector."""

    host: Text
    release: Text
    """The release of the harness that was played."""
    newer: Notes = ()
    """The later releases of the harness that the kit knew at the time of the run."""
    real: bool = False
    """Whether the real program was launched, not played."""


class ReportRun(_Open):
    """The facts that distinguish a run from others."""

    created: Maybe[Text] = None
    """When its first recording began."""
    commit: Annotated[Maybe[str], Field(pattern="^([0-9a-f]{40}|[0-9a-f]{64})$")] = None
    """The commit that was checked out in the folder of the run, or that CI named."""
    branch: Maybe[Text] = None
    seed: Maybe[Annotated[int, Field(ge=0)]] = None
    """The seed of the generated sessions."""
    connector: Maybe[Text] = None
    """The connector's own release."""


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
    traces: Annotated[int, Field(ge=1)]
    """How many traces breach the requirement."""
    message: Text
    file: Maybe[str] = None
    """The first trace that breaches it."""


class ReportNewer(_Open):
    """Breaches of the next contract by a connector whose release is between two."""

    contract: Text
    of: Annotated[int, Field(ge=1)]
    """How many traces were judged by that contract."""
    breaches: dict[str, LaterBreach]


class ReportUnreachedLater(_Open):
    """Tools and fields that only the next contract has, and that no step could make the connector send."""

    contract: str
    """The next contract."""
    tools: Items[str]
    """Tools that the connector does not offer, and whose operations were not called."""
    fields: dict[str, Items[str]]
    """Tool that the connector offers, to the fields that it cannot pass on."""


class ReportUnreached(_Open):
    """Tools and fields of the contract that no step of the run could make the connector send."""

    tools: Items[str]
    """Tools that the connector does not offer, and whose operations were not called."""
    fields: dict[str, Items[str]]
    """Tool that the connector offers, to the fields that it cannot pass on."""
    unfillable: Items[str]
    """Tools that the connector offers with a schema that lacks every field the tool needs."""
    later: Maybe[ReportUnreachedLater] = None
    """The tools and fields that only the next contract has, if the connector's release is between two."""


class ReportGenerated(_Open):
    """The generated sessions of a run."""

    seed: Annotated[int, Field(ge=0)]
    performed: Annotated[int, Field(ge=0)]
    """How many sessions were performed."""
    outages: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Name of each outage that users meet, to the number of sessions that had it."""
    skipped: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Kind of step to how many were skipped, because connector or harness has no counterpart."""
    gaps: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Traffic of these sessions that could not be judged, with how often that was so."""
    lost: Items[str] = ()
    """Outages that no session could have, each with the reason and the remedy."""


class ReportPartTime(_Open):
    """Time that the workers of a run spent on one activity."""

    part: Text
    of: Text
    """The activity's group, such as process starts or waiting."""
    s: Annotated[float, Field(ge=0)]
    """Seconds, summed over the workers."""
    times: Count


class ReportTimeSpent(_Open):
    """How the time of a run was spent, in seconds."""

    wall_s: Annotated[float, Field(ge=0)]
    """Seconds by the clock since the start of the process."""
    phases: dict[str, float]
    """Seconds by the clock of each phase, in order."""
    workers: Count
    parts: Items[ReportPartTime]
    """Activities of the workers while driving."""
    cpu_s: dict[str, float]
    """CPU time by program, with that of its children."""


class Report(Document, _Open):
    """A run: the verdict of every requirement over every trace.

    Readers ignore members that are not named here.
    """

    model_config = ConfigDict(title="Report (signet-report/1)")
    schema_file: ClassVar[str] = "report/signet-report-1.schema.json"

    format: Literal["signet-report/1"]
    contract: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]
    """Contract version, a file of versions."""
    kit: Text
    """Version of the kit that judged."""
    run: Maybe[ReportRun] = None
    """The facts that distinguish the run from others."""
    played: Items[ReportPlayed] = ()
    """The harnesses that the kit played, according to the marks of the traces."""
    traces: Items[ReportTrace]
    together: Verdicts = Field(default_factory=dict)
    """The verdict of each requirement over all traces."""
    causes: Items[ReportCause] = ()
    """Breaches by cause: those of the connector, then those of the daemon and of the harness."""
    exit: Annotated[int, Field(ge=0, le=255)]
    """Exit status of the run."""
    lacks: Maybe[ReportLacks] = None
    """Parts of the run that were not judged; absent in reports of early kits."""
    warnings: Notes = ()
    """Warnings, such as a torn last line or a file that was left out."""
    remarks: Notes = ()
    """Notes that change no verdict: about the connector's installation, such as a timeout in a wrong unit, and about
    its handlers in the harness.
    """
    skipped: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Kind of step that the driver skipped, to the number of recordings in which it was skipped."""
    coverage: Maybe[ReportCoverage] = None
    """How much of the contract the traces exercise: operations, fields, answers, requirements; absent unless it was
    asked for.
    """
    newer: Maybe[ReportNewer] = None
    """Further breaches of the next contract, if the connector's release is between two; they do not change the exit
    status.
    """
    unreached: Maybe[ReportUnreached] = None
    """Tools and fields that the model cannot reach through the connector, if its tools are known; for information."""
    generated: Maybe[ReportGenerated] = None
    """The generated sessions, if there were any."""
    time_spent: Maybe[ReportTimeSpent] = None
    """How the time of the run was spent; absent unless it was asked for."""


MAX_BYTES = 1024 * 1024 * 1024
_REMEDY = "write one with: signet-conformance check TRACE... --json --output FILE"


def read_report(path: str) -> Report:
    """Read a report. Raises UsageError when the file does not hold one."""
    return demand(Report, read_json(path, _REMEDY, most_bytes=MAX_BYTES), path, remedy=_REMEDY)
