"""What a report is told: each judged trace as it comes, and the run as a whole when the last one was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from signet_conformance.contract import REFERENCE_DAEMON, contract_version_of, version_key
from signet_conformance.engine import Judged
from signet_conformance.finding import Judgement, Verdict
from signet_conformance.outcome.coverage import Coverage
from signet_conformance.outcome.together import Together, together


@dataclass(frozen=True, slots=True)
class Ending:
    """A run that was judged to its end.

    `judged` are its traces, of which the essence is enough, `status` is its exit status, `notes` are lines about
    what was passed over or let pass. `judgements` stand in for what the traces alone come to: generated sessions
    decide requirements too. `contract` is the version that was asked for, `options` are words of a command line that
    judges a trace of the run as the run did. `known` says why what only the run as a whole breaches may stand,
    `because` what fails the run beside its verdicts. `selftest` is a kill matrix (signet-selftest/1) to show beside.
    """

    judged: Sequence[Judged]
    status: int
    notes: Sequence[str] = ()
    coverage: Coverage | None = None
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    contract: str | None = None
    options: Sequence[str] = ()
    known: Mapping[str, str] = field(default_factory=dict)
    because: str = ""
    selftest: Mapping[str, Any] | None = None

    def together(self) -> Mapping[str, Together]:
        """Each requirement over the whole run, in the catalogue's order."""
        found = dict(together(self.judged))
        for name, judgement in self.judgements.items():
            before = found.get(name)
            if before is None or before.verdict is not judgement.verdict:
                evidence = [(None, finding) for finding in judgement.findings[:1]]
                found[name] = Together(judgement.verdict, judgement.reason, evidence)
            elif before.reason is not judgement.reason:
                found[name] = replace(before, reason=judgement.reason)
        return found

    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict of each requirement over the whole run."""
        return {name: one.verdict for name, one in self.together().items()}

    def contract_version(self) -> str:
        """The contract version of the run: the one asked for, or the newest that a daemon of the traces serves."""
        served = [contract_version_of(one.daemon_version) for one in self.judged]
        return self.contract or max(served or [contract_version_of(REFERENCE_DAEMON)], key=version_key)


class Report(Protocol):
    """One report of a run, written somewhere as the run goes."""

    def add(self, judged: Judged, known: Mapping[str, str]) -> None:
        """Take one trace. `known` names the requirements whose failure is known in it, each with why it may stand."""

    def close(self, ending: Ending) -> None:
        """Write what can be said of the whole run only; nothing is added after it."""
