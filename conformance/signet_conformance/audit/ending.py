"""How an audit ends: which failures are known, and the exit status."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from signet_conformance.audit.summary import Summary
from signet_conformance.engine import exit_status
from signet_conformance.errors import UsageError
from signet_conformance.finding import Verdict
from signet_conformance.outcome.baseline import COVERABLE, KnownInRun, Verdicts
from signet_conformance.outcome.known_failures import KnownFailures, failing_text

FailOn = Literal["breach", "new", "never"]
FAIL_ON: tuple[FailOn, ...] = ("breach", "new", "never")


@dataclass(frozen=True)
class Ending:
    """A summary held against files of known failures. `fail_on` says which breaches make the exit status 1.

    `breach`: as `check`, each FAIL that no entry lets pass, and an entry that is stale or has expired. `new`: a FAIL
    that no entry speaks of. `never`: none.
    """

    summary: Summary
    known: KnownFailures
    fail_on: FailOn

    @cached_property
    def verdicts(self) -> Verdicts:
        """The worst verdict of each requirement, by connector."""
        return {
            connector: {name: Verdict(verdict) for name, verdict in its.items()}
            for connector, its in self.summary.verdicts.items()
        }

    @cached_property
    def held(self) -> KnownInRun:
        """What the files of known failures say."""
        return self.known.held(self.verdicts)

    def is_known(self, requirement: str, connector: str) -> bool:
        """Whether an entry lets a connector's breach of a requirement pass."""
        return (requirement, connector) in self.held.covered

    @cached_property
    def status(self) -> int:
        """2 where a recording could not be read, else 4, 3, 1 or 0 as of the verdicts."""
        if self.summary.unreadable:
            return UsageError.exit_status
        expired = {entry.requirement for _, entry in self.held.expired} if self.fail_on == "new" else frozenset[str]()
        left = [
            Verdict.WARN if self.fail_on == "never" and verdict is Verdict.FAIL else verdict
            for connector, its in self.verdicts.items()
            for name, verdict in its.items()
            if not self.is_known(name, connector) and not (name in expired and verdict in COVERABLE)
        ]
        # What is known to fail was tested, even where nothing else was.
        known = [Verdict.PASS] if self.held.covered or expired else []
        status = exit_status([*left, *known], recorded=self.summary.tested > 0)
        return 1 if status == 0 and self.fail_on == "breach" and self.held.fails else status

    @property
    def because(self) -> str:
        """What fails the audit beside its verdicts, in words; empty where nothing does."""
        return failing_text(self.held) if self.fail_on == "breach" else ""
