"""The requirement on the endpoints a connector uses, and whether a recording tests a connector at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from signet_conformance.contract import contract_version_of
from signet_conformance.contract.routes import contract_set
from signet_conformance.facts import FIRST_CALLS, Recording
from signet_conformance.facts.whole_run import WholeRun
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, undecided
from signet_conformance.trace.marks import StepMark

IMPLIED = frozenset({"secrets-exec-job"})
"""Operations that come with another one: a connector that runs a job also polls it."""


@cache
def _contract_paths(version: str) -> re.Pattern[str]:
    """The paths of a version of the contract, whatever the method: `:name` is a segment, `**` all that is below."""
    patterns = (re.sub(r":[^/]+", "[^/]+", re.escape(path).replace(r"\*\*", ".*")) for path in contract_set(version))
    return re.compile("|".join(patterns))


def endpoints_are_declared(recording: Recording) -> Iterator[Outcome]:
    """A trace calls no path outside the contract. Only a run shows whether a connector calls all that it declares."""
    paths = _contract_paths(contract_version_of(recording.daemon_version))
    for call in recording.requests:
        if not paths.fullmatch(call.path):
            yield breach_of("SIG-COV-001", "outside the contract", call)
    if recording.requests:
        observed = sorted({call.operation for call in recording.calls if call.operation})
        if recording.declared.capabilities is not None:
            why = "only a whole run can show that calls and manifest are equal"
        elif recording.marks(StepMark):
            why = "no coverage manifest is declared, so a turn that is never submitted goes unnoticed (SIG-PROMPT-011)"
        else:
            why = "no coverage manifest is declared"
        yield undecided(message=f"{why}; observed: {', '.join(observed)}")


def observed_operations_are_the_declared_ones(run: WholeRun) -> Iterator[Outcome]:
    """Over a complete run the connector calls every operation that its target declares, and no others."""
    if run.declared.capabilities is None or not run.is_complete:
        return
    declared = [name for name in run.declared.capabilities if run.serves(name)]
    observed = run.operations
    unseen = sorted(set(declared) - observed)
    lost = run.lost_of(unseen)
    absent = [name for name in unseen if name not in lost]
    extra = sorted(observed - set(declared) - IMPLIED)
    expected, received = ", ".join(sorted(declared)), ", ".join(sorted(observed)) or "no operation"
    if lost:
        # Without a PASS beside it, which would hide it.
        why = "; ".join(dict.fromkeys(lost.values()))
        yield undecided(message=f"{why}, and never arrived: the machine may be too slow to show {', '.join(lost)}")
    else:
        yield from [PASS] * (len(observed) - len(extra))
    if absent:
        # The cause, where the driver knows one, before its effects: a message may be cut.
        causes = "".join(f"{cause}; " for cause in run.causes_of(absent)[:3])
        yield breach_of(
            "SIG-COV-001", "never called", elements=absent, received=received, expected=expected, causes=causes,
            names=", ".join(absent),
        )  # fmt: skip
    if extra:
        yield breach_of(
            "SIG-COV-001", "not declared", elements=extra, received=received, expected=expected, names=", ".join(extra)
        )


def was_tested(recording: Recording) -> bool:
    """Whether a recording holds a lifecycle hook or a memory operation.

    If the kit drove the connector, one of them was accepted while nothing was in its way: a connector that the daemon
    always refuses shows nothing else.
    """
    asked = [call for call in recording.calls if call.operation in FIRST_CALLS]
    if not recording.marks(StepMark):
        return bool(asked)
    return any(call.accepted and not recording.timeline.is_disturbed(call) for call in asked)
