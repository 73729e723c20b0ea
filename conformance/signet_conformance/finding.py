"""Findings of rules, and the verdicts and reason codes that the engine makes of them."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import astuple


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
BREACHES = (Verdict.ERROR, Verdict.FAIL, Verdict.WARN)
"""The verdicts that something is wrong, the worst first."""
COVERABLE = (Verdict.FAIL, Verdict.WARN)
"""The breaches that an entry of known failures may cover."""
TESTED = (*COVERABLE, Verdict.PASS)
"""The verdicts that rest on what a connector did."""


class Reason(StrEnum):
    """Why a verdict is what it is, as a code that programs may compare."""

    CONFORMING = "conforming"
    BREACH = "breach"
    NO_SUBJECT = "no-subject"
    GATED = "gated"
    UNDECIDED = "undecided"
    NO_RULE = "no-rule"
    CRASHED = "crashed"


_VARYING = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # a UUID
    r"|(?<![0-9A-Za-z])(?=[a-z]*[0-9])[0-9a-f]{8,}(?![0-9A-Za-z])"  # any other id in hexadecimal
    r"|(?<![0-9A-Za-z.])[0-9]{5,}(?![0-9A-Za-z.])"  # a number that counts or dates
    r"|(?<=/)[0-9]+(?=/|$)",  # an index
    re.IGNORECASE,
)
"""Parts of a kind that differ between runs and do not say what is breached."""


class Side(StrEnum):
    """Whose breach it is."""

    CONNECTOR = "connector"
    DAEMON = "daemon"
    HARNESS = "harness"


class Finding(Struct, frozen=True):
    """One piece of evidence. `pointer` is a JSON pointer into the first exchange's line of the trace.

    `fold` names the kind of breach where a rule knows several: a code that no wording and no run changes. `elements`
    are the members of a list that the finding is about, such as operations: each is a breach by itself when two runs
    are compared. `model` are numbers of exchanges in the recording of the model, `exchanges` those of the daemon's.
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
    elements: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of the breach, as a code that is equal in all runs: the rule's own, or the place in the exchange."""
        return _VARYING.sub("*", self.fold or self.pointer) or "breach"

    @property
    def group(self) -> str:
        """Equal for repeats of one defect: reports show the first of a group and count the others."""
        return self.fold or self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle fast: findings go from process to process by the hundred, and the default way is ten times slower."""
        return Finding, astuple(self)


class Judgement(Struct, frozen=True):
    """The verdict of one requirement with what led to it. `subjects` counts what the rule looked at."""

    requirement: str
    verdict: Verdict
    reason: Reason
    message: str
    findings: tuple[Finding, ...] = field(default=())
    subjects: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle fast, as findings do."""
        return Judgement, astuple(self)
