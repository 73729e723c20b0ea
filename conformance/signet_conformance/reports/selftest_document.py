"""The kill matrix as a document: signet-selftest/1."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from signet_conformance.files.documents import Document, Items, Maybe, Part


class Tested(Part):
    """The mutants that break one requirement."""

    killed_by: Annotated[Items[str], Field(description="The mutants that were found out.")] = ()
    survived: Annotated[Items[str], Field(description="The mutants that were not.")] = ()
    exempt: Annotated[Maybe[str], Field(description="Why the requirement needs no mutant.")] = None


class KillMatrix(Document):
    """What a selftest showed: which mutants break each requirement, and which survived."""

    model_config = ConfigDict(title="Kill matrix (signet-selftest/1)", extra="ignore")
    schema_file: ClassVar[str] = "selftest/signet-selftest-1.schema.json"

    format: Literal["signet-selftest/1"]
    green: Annotated[bool, Field(description="Whether every mutant was killed and the reference passed.")] = False
    seconds: Maybe[float] = None
    complaints: Annotated[Items[str], Field(description="What keeps the whole from being green.")] = ()
    unreached: Annotated[
        dict[str, str],
        Field(description="Requirement to the reason why neither the reference nor a variant is judged by it."),
    ] = Field(default_factory=dict)
    reference: Annotated[
        Items[dict[str, Any]], Field(description="Each scenario of the reference, which must breach nothing.")
    ] = ()
    mutants: Annotated[Items[dict[str, Any]], Field(description="Each mutant, and what it breached.")] = ()
    variants: Annotated[
        Items[dict[str, Any]], Field(description="Each odd but conforming connector, which must not be blamed.")
    ] = ()
    requirements: dict[str, Tested]
