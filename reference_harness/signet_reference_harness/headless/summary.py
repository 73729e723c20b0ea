"""What a task came to, as a document: written in every case, the same for the same run but for times and ids."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from signet_reference_harness.documents import Document, Part
from signet_reference_harness.errors import HarnessError
from signet_reference_harness.providers.completion import StopReason, Usage

Status = Literal["done", "failed", "invalid", "timeout", "cancelled"]
OutputFormat = Literal["text", "json", "stream-json", "none"]

EXIT_STATUSES: dict[Status, int] = {"done": 0, "failed": 1, "invalid": 2, "timeout": 124, "cancelled": 130}
DONE = frozenset({StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.LENGTH, StopReason.ROUND_LIMIT})
"""Outcomes that leave a reply to work with; each other one is an error of the provider or of the agent."""


class SummaryFolders(Part):
    """Where the task worked: the project, and what the harness keeps beside it. Null where it was not settled."""

    project: str | None = None
    state: str | None = None
    sessions: str | None = None


class Failure(Part):
    """What went wrong: the class of the error, what was said of it, and the provider's own reason if it gave one."""

    model_config = ConfigDict(populate_by_name=True)

    kind: Annotated[str, Field(alias="class")]
    message: str
    raw_reason: str | None = None


class Tokens(Part):
    """What the provider counted, over all rounds."""

    input_tokens: int = 0
    output_tokens: int = 0


class Summary(Document):
    """What `signet-harness run` leaves behind of a task."""

    model_config = ConfigDict(title="Summary of a headless run")
    schema_file: ClassVar[str] = "harness/signet-run-summary.schema.json"

    format: Literal["signet-run-summary/1"] = "signet-run-summary/1"
    status: Status
    outcome: Annotated[
        Annotated[StopReason, Field(strict=False)] | Literal["deferred"] | None,
        Field(description="why the turn ended; deferred: the provider asked for a longer wait"),
    ] = None
    session: str | None = None
    agent: str | None = None
    provider: str | None = None
    model: str | None = None
    folders: SummaryFolders = SummaryFolders()
    session_file: str | None = None
    output_format: OutputFormat | None = None
    elapsed_ms: Annotated[float, Field(ge=0)] = 0.0
    deferred_s: Annotated[float | None, Field(ge=0, description="how long the provider wants to be left alone")] = None
    error: Failure | None = None
    usage: Tokens = Tokens()
    rounds: Annotated[int, Field(ge=0, description="times the model was asked")] = 0


def tokens(usage: Usage) -> Tokens:
    """The usage of a turn as the summary has it."""
    return Tokens(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)


def write_summary(summary: Summary, path: Path) -> None:
    """Put the summary in the place of whatever `path` holds, whole or not at all. Raises HarnessError."""
    text = json.dumps(summary.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False) + "\n"
    try:
        # Beside the file, so that the last step is a rename on one disk.
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise HarnessError(
            f"--summary {path}: cannot be written: {error.strerror or error}", remedy="name a file in a folder of yours"
        ) from None
