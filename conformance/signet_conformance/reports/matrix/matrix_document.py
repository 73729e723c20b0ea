"""The matrix of connectors as a document: signet-matrix/1."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from signet_conformance.files.documents import Document, Items, Maybe, Part
from signet_conformance.finding import Verdict

ROWS = 12
"""How many operations make up the integration surface."""

Row = Annotated[int, Field(ge=0, le=ROWS)]


class Parity(Part):
    """How much of the integration surface a connector uses."""

    rows: Row
    of: Literal[12]
    full: bool
    missing: Annotated[
        Items[str],
        Field(
            description="The operations of the surface that it does not use, in their order; empty with full parity.",
            json_schema_extra={"uniqueItems": True},
        ),
    ] = ()


class Connector(Part):
    """One connector in one report."""

    name: str
    report: str
    harness: Annotated[
        Maybe[str], Field(description="The real program that it ran in; left out where the kit played its harness.")
    ] = None
    contract: str
    kit: str
    parity: Parity
    operations: dict[str, Literal["used", "declared only", "drift", "seen", "-"]]
    requirements: dict[str, Annotated[Verdict, Field(strict=False)]]
    full_set: Annotated[
        bool,
        Field(
            description="Whether every requirement in force was judged over a whole run of a declared target: "
            "only then there is a badge."
        ),
    ]


class Difference(Part):
    """A requirement that a connector breaches where the kit plays its harness and not in the real one, or otherwise."""

    name: str
    requirement: str
    played: Annotated[Maybe[Annotated[Verdict, Field(strict=False)]], Field(description="Left out: not judged.")] = None
    real: Annotated[Maybe[Annotated[Verdict, Field(strict=False)]], Field(description="Left out: not judged.")] = None
    harness: str


class Matrix(Document):
    """Connector by operation and connector by requirement, from the reports of their runs."""

    model_config = ConfigDict(title="Connectors side by side (signet-matrix/1)")
    schema_file: ClassVar[str] = "matrix/signet-matrix-1.schema.json"

    format: Literal["signet-matrix/1"]
    surface: Annotated[
        Items[str],
        Field(
            min_length=ROWS,
            max_length=ROWS,
            description="The operations of full parity, in the order of their rows.",
        ),
    ]
    connectors: Items[Connector]
    differences: Annotated[
        Items[Difference], Field(description="Where a connector has a report of a played harness and of a real one.")
    ] = ()
