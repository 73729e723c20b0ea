"""The rows that an audit writes, as classes: signet-audit-rows/1. Their JSON Schemas are in the schemas folder.

A row is a JSON object a line; `kind` says which. Hashes are 16 hexadecimal digits and compare within one audit.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from signet_conformance.finding import Verdict

Id = Annotated[str, Meta(pattern="^[0-9a-f]{16}$", description="The id of a recording; the manifest says where it is.")]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
Name = Annotated[str, Meta(min_length=1, max_length=110, description="A name or release; hidden-… for other texts.")]
RequirementId = Annotated[str, Meta(min_length=1, max_length=80)]
Requirements = tuple[RequirementId, ...]
Instant = Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$", description="UTC.")]
Seconds = Annotated[float, Meta(description="Seconds since 1970, UTC.")]
Count = Annotated[int, Meta(ge=0)]
Breach = Literal["ERROR", "FAIL", "WARN", "INCONCLUSIVE"]
VERDICT_LISTS = {
    "errors": Verdict.ERROR,
    "failed": Verdict.FAIL,
    "warned": Verdict.WARN,
    "passed": Verdict.PASS,
    "undecided": Verdict.INCONCLUSIVE,
}
"""The lists of a recording's row, the first that counts first, each with its verdict."""
Unreadable = Literal["gone", "refused", "damaged", "not-delivered"]


class RecordingRow(Struct, frozen=True, kw_only=True, tag_field="kind", tag="recording"):
    """A recording of the data set, whether it could be judged or not.

    There is one list of requirements for each verdict; a requirement in no list was not applicable.
    """

    schema_file: ClassVar[str] = "audit/signet-audit-recording-1.schema.json"

    recording: Id
    outcome: Literal["judged", "broken-off", "unreadable"]
    """What became of the recording; broken-off: its scenario was not performed to its end, so it decides nothing."""
    why: Unreadable | None = None
    """Why the recording could not be read."""
    connector: Name | None = None
    connector_release: Name | None = None
    host: Name | None = None
    host_release: Name | None = None
    harness: Name | None = None
    daemon: Name | None = None
    kit: Name | None = None
    """The release of the kit that recorded it."""
    recorder: Name | None = None
    """The id of the recorder's process."""
    created: Instant | None = None
    torn: bool = False
    """Whether its last line was torn or left out."""
    exchanges: Count = 0
    sessions: Count = 0
    tested: bool = False
    """Whether it has a lifecycle hook or a memory operation."""
    passed: Requirements = ()
    failed: Requirements = ()
    warned: Requirements = ()
    undecided: Requirements = ()
    errors: Requirements = ()


class SessionRow(Struct, frozen=True, kw_only=True, tag_field="kind", tag="session"):
    """The part of a session that one recording shows; a session may have rows from several recordings."""

    schema_file: ClassVar[str] = "audit/signet-audit-session-1.schema.json"

    recording: Id
    session: Hash
    """The hash of the session's key."""
    agent: Name
    project: Hash | None = None
    """The hash of the project for which the session was started."""
    native: Hash | None = None
    """The hash of the sessionId that was sent."""
    starts: Count
    prompts: Count
    ends: Count
    hooks: Count
    first_operation: Name
    last_operation: Name
    first: Seconds | None = None
    last: Seconds | None = None
    first_exchange: Count
    last_exchange: Count


class BreachRow(Struct, frozen=True, kw_only=True, tag_field="kind", tag="breach"):
    """A breach or an undecided verdict of one requirement in a recording, or in one session of it."""

    schema_file: ClassVar[str] = "audit/signet-audit-breach-1.schema.json"

    recording: Id
    requirement: RequirementId
    verdict: Breach
    session: Hash | None = None
    """The session that the breach is about, if it is about one."""
    count: Count = 1
    """The number of findings."""
    exchanges: tuple[int, ...] = ()
    """The exchanges of the first finding, five at most."""
    pointer: str = ""
    """JSON Pointer into the first exchange; * in place of a name that the contract does not have."""
    between: tuple[Id, ...] = ()
    """The other recordings, if only several together show it; twenty at most."""


class SaveRow(Struct, frozen=True, kw_only=True, tag_field="kind", tag="save"):
    """A save with an idempotency key: what recordings are compared by, in the files of batches only."""

    recording: Id
    idempotency: Hash
    content: Hash
    exchange: int
    at: float | None = None


Row = RecordingRow | SessionRow | BreachRow | SaveRow
