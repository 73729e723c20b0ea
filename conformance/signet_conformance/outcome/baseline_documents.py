"""The files of known failures as documents: signet-baseline/1, signet-flaky/1, and the lines of signet-audit/1."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from datetime import date
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.dataclasses import dataclass
from pydantic_core import to_jsonable_python

from signet_conformance.contract import requirements
from signet_conformance.errors import printable
from signet_conformance.files.documents import Document, Items, Telling, refusal, shown_value
from signet_conformance.finding import COVERABLE, Verdict

_DAY = r"\d{4}-\d{2}-\d{2}"


def _day(value: object) -> date:
    if isinstance(value, date):
        return value
    if isinstance(value, str) and re.fullmatch(_DAY, value, re.ASCII):
        with contextlib.suppress(ValueError):
            return date.fromisoformat(value)
    raise refusal(f"is {shown_value(value)}, expected a day", "write it like 2026-06-01")


def _known_requirement(name: str) -> str:
    if name not in requirements():
        near = get_close_matches(name, requirements(), 1, 0.4)
        raise refusal(
            f"no requirement is called {printable(name, 60)!r}",
            f"signet-conformance explain {near[0]}" if near else "signet-conformance explain",
        )
    return name


def _failure(value: Any) -> Verdict:
    if value not in COVERABLE:
        raise refusal(f"is {shown_value(value)}", f"one of {', '.join(COVERABLE)}")
    return Verdict(value)


Day = Annotated[date, BeforeValidator(_day), WithJsonSchema({"type": "string", "pattern": f"^{_DAY}$"})]
"""A day as people write it, such as 2026-06-01."""
RequirementId = Annotated[
    str, AfterValidator(_known_requirement), WithJsonSchema({"type": "string", "pattern": r"^SIG-[A-Z]+-\d{3}$"})
]
Failure = Annotated[
    Verdict,
    BeforeValidator(_failure),
    WithJsonSchema({"type": "string", "enum": [verdict.value for verdict in COVERABLE]}),
]


# Not strict: that would refuse the object in a file. Its members convert no values anyway.
@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Entry:
    """One known failure."""

    requirement: RequirementId
    """the id of a requirement such as SIG-END-003"""
    target: Telling
    """the target that fails it; * for every target"""
    owner: Telling
    """a text: the person or team responsible for the failure"""
    reason: Telling
    """a text: why the failure is accepted, for others who follow it up"""
    created: Day
    """the day of the entry"""
    expires: Day
    """the last day on which the failure is accepted"""
    verdict: Failure = Verdict.FAIL
    """the worst verdict that is accepted: with WARN, a FAIL of the requirement fails the run"""
    face: Telling | None = None
    """the release of the target's harness in which it fails, such as openclaw-2026.9.6"""

    def to_json(self) -> dict[str, str]:
        """The entry as a file holds it."""
        row: dict[str, str] = to_jsonable_python(self, exclude_none=True)
        return row


class _Entries(Document):
    format: str
    entries: Items[Entry]

    @classmethod
    def place(cls, where: str, pointer: Sequence[str | int]) -> tuple[str, Sequence[str | int]]:
        """The file, and the entry by its number in it."""
        return (f"{where}, entry {int(pointer[1]) + 1}", pointer[2:]) if len(pointer) > 1 else (where, pointer)


class Baseline(_Entries):
    """Failures that do not fail the run, each with an owner, a reason and a last day.

    An entry fails the run if its requirement passes again, or if its last day has passed.
    """

    model_config = ConfigDict(title="Known failures (signet-baseline/1)")
    schema_file: ClassVar[str] = "baseline/signet-baseline-1.schema.json"

    format: Literal["signet-baseline/1"]


class FlakyList(_Entries):
    """Requirements that fail now and then, without failing the run.

    An entry fails the run if its last day has passed.
    """

    model_config = ConfigDict(title="Flaky requirements (signet-flaky/1)")
    schema_file: ClassVar[str] = "baseline/signet-flaky-1.schema.json"

    format: Literal["signet-flaky/1"]


class AuditLine(Document):
    """A failure that was let pass: who ran the kit, when, what passed, and why.

    One JSON object a line, only ever appended.
    """

    model_config = ConfigDict(title="One line of an audit file (signet-audit/1)")
    schema_file: ClassVar[str] = "baseline/signet-audit-1.schema.json"

    format: Literal["signet-audit/1"]
    when: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00$")]
    who: Telling
    what: Literal["override", "flaky"]
    requirement: RequirementId
    target: Telling
    verdict: Failure
    why: Telling
    owner: Telling
    expires: Day
