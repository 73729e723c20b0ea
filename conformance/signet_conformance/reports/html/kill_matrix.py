"""The kill matrix of a selftest in a page: which mutants break each requirement, and which survived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from signet_conformance.errors import printable
from signet_conformance.files import read_json
from signet_conformance.files.documents import Document, Items, Maybe, Part, demand
from signet_conformance.reports.html.page import Markup, element, facts, joined, requirement_page, row, table

_REMEDY = "write one with: signet-conformance selftest --json"


def read_kill_matrix(path: str) -> Mapping[str, RequirementMutants]:
    """A kill matrix from a file. Raises UsageError when it is not a signet-selftest/1."""
    where = f"--selftest {printable(path, 400)}"
    return demand(KillMatrix, read_json(path, _REMEDY, where=where), where, remedy=_REMEDY).requirements


def section(rows: Mapping[str, RequirementMutants]) -> Markup:
    """A row for each tested requirement: the mutants that were killed, those that survived, why it is exempt."""
    killed = sum(len(each.killed_by) for each in rows.values())
    survived = sum(len(each.survived) for each in rows.values())
    lead = element("p", f"{killed} mutants killed, {survived} survived.")
    by_name = ((name, _facts(each)) for name, each in rows.items())
    tested = (row(name, facts((*labelled, ("page", requirement_page(name))))) for name, labelled in by_name if labelled)
    return joined((lead, table("Which mutants break which requirement", ("Requirement", "Mutants"), tested)))


def _facts(tested: RequirementMutants) -> list[tuple[str, str | Markup]]:
    survived = ", ".join(tested.survived)
    labelled: list[tuple[str, str | Markup]] = [
        ("killed by", ", ".join(tested.killed_by)),
        ("survived", element("strong", survived) if survived else ""),
        ("exempt", tested.exempt or ""),
    ]
    return [(label, value) for label, value in labelled if value]


class RequirementMutants(Part):
    """The mutants that break one requirement."""

    killed_by: Items[str] = ()
    """The mutants that were caught."""
    survived: Items[str] = ()
    """The mutants that were not caught."""
    exempt: Maybe[str] = None
    """Why the requirement needs no mutant."""


class KillMatrix(Document):
    """The result of a selftest: which mutants break each requirement, and which survived."""

    model_config = ConfigDict(title="Kill matrix (signet-selftest/1)", extra="ignore")
    schema_file: ClassVar[str] = "selftest/signet-selftest-1.schema.json"

    format: Literal["signet-selftest/1"]
    green: bool = False
    """Whether every mutant was caught, and the reference and the variants passed."""
    seconds: Maybe[float] = None
    complaints: Items[str] = ()
    """The reasons why the result is not green."""
    unreached: dict[str, str] = Field(default_factory=dict)
    """Requirement to the reason why it judges neither the reference nor a variant."""
    reference: Items[dict[str, Any]] = ()
    """Each scenario of the reference, which must breach nothing."""
    mutants: Items[dict[str, Any]] = ()
    """Each mutant, and what it breached."""
    variants: Items[dict[str, Any]] = ()
    """Each odd but conforming connector, which must not be blamed."""
    requirements: dict[str, RequirementMutants]
