"""Which requirements on the connector rest on answers: a broken answer excuses what the connector made of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from signet_conformance.contract import requirements
from signet_conformance.facts import Recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.outcome import undecided
from signet_conformance.trace.marks import StepMark


def excused(requirement: str, finding: Finding, recording: Recording, broken: Mapping[int, str]) -> Finding:
    """`finding`, or in place of a breach an undecided one where it rests on an answer that breaks the contract.

    `broken` is exchange number to the requirement on the daemon that its answer breaks. An answer counts when
    the finding names it, or when it came before, to an operation that the requirement rests on, in the same session.
    A recording without step marks is judged by the letter: an answer there may have been shortened by hand.
    """
    if not recording.marks(StepMark):
        return finding
    operations = _operations(requirement)
    if finding.verdict not in (Verdict.FAIL, Verdict.WARN) or operations is None or not finding.exchanges:
        return finding
    seq = next((s for s in broken if s in finding.exchanges or _concerns(operations, s, finding, recording)), None)
    if seq is None:
        return finding
    return undecided(
        *(recording.by_seq[number] for number in finding.exchanges if number in recording.by_seq),
        message=f"rests on the answer of #{seq}, which breaks {broken[seq]}: the daemon's breach, not the connector's",
    )


def _operations(requirement: str) -> frozenset[str] | None:
    """The operations whose answers a verdict rests on; None when it rests on no answer, as an id of a user's own."""
    entry = requirements().get(requirement)
    return None if entry is None else entry.rests_on


def _concerns(operations: Collection[str], seq: int, finding: Finding, recording: Recording) -> bool:
    call = recording.by_seq[seq]
    if call.operation not in operations or seq > max(finding.exchanges):
        return False
    return call.key is None or call.key in _keys(finding.exchanges, recording)


def _keys(numbers: Collection[int], recording: Recording) -> set[str | None]:
    return {recording.by_seq[number].key for number in numbers if number in recording.by_seq}
