"""Findings of rules, and the verdicts and reason codes that the engine makes of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct, field


class Verdict(StrEnum):
    """The outcome of one requirement over one trace, or over a whole run."""

    PASS = "PASS"  # noqa: S105 - a verdict, no password
    FAIL = "FAIL"
    WARN = "WARN"
    NOT_APPLICABLE = "NOT-APPLICABLE"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


FOLDING_ORDER = (Verdict.ERROR, Verdict.FAIL, Verdict.WARN, Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE)
"""The first of these that occurs among the findings of a requirement is its verdict."""


class Reason(StrEnum):
    """Why a verdict is what it is, as a code that programs may compare."""

    CONFORMING = "conforming"
    BREACH = "breach"
    NO_SUBJECT = "no-subject"
    GATED = "gated"
    UNDECIDED = "undecided"
    NO_RULE = "no-rule"
    CRASHED = "crashed"


class Side(StrEnum):
    """Whose breach it is."""

    CONNECTOR = "connector"
    DAEMON = "daemon"
    HARNESS = "harness"


class Finding(Struct, frozen=True):
    """One piece of evidence. `pointer` is a JSON pointer into the first exchange's line of the trace.

    `fold` groups repeats of one defect: reports show the first of a group and count the others. `model` are numbers of
    exchanges in the recording of the model, `exchanges` those of the daemon's.
    """

    verdict: Verdict
    exchanges: tuple[int, ...]
    message: str
    pointer: str = ""
    expected: str = ""
    received: Any = None
    side: Side = Side.CONNECTOR
    fold: str = ""
    model: tuple[int, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Handed from process to process by the hundred: a dataclass's own way takes ten times as long."""
        told = (self.verdict, self.exchanges, self.message, self.pointer, self.expected, self.received)
        return Finding, (*told, self.side, self.fold, self.model)


class Judgement(Struct, frozen=True):
    """The verdict of one requirement with what led to it. `subjects` counts what the rule looked at."""

    requirement: str
    verdict: Verdict
    reason: Reason
    message: str
    findings: tuple[Finding, ...] = field(default=())
    subjects: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """As for findings."""
        told = (self.requirement, self.verdict, self.reason, self.message, self.findings, self.subjects)
        return Judgement, told
