"""Which requirements on the connector rest on answers: a broken answer excuses what the connector made of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from signet_conformance.facts import (
    COMPLETE,
    END,
    EXEC,
    EXEC_JOB,
    FORGET,
    HEALTH,
    HOOK_REMEMBER,
    PROMPT,
    REMEMBER,
    START,
    Recording,
)
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.outcome import undecided
from signet_conformance.trace.marks import StepMark

_NAMED: frozenset[str] = frozenset()
"""The answers concerned are those that the finding itself names, whatever their operation."""

RESTS_ON: Mapping[str, frozenset[str]] = {
    "SIG-HTTP-010": _NAMED,
    "SIG-HTTP-011": _NAMED,
    "SIG-HTTP-012": _NAMED,
    "SIG-HEALTH-001": frozenset({HEALTH}),
    "SIG-START-004": frozenset({PROMPT}),
    "SIG-START-005": frozenset({START, PROMPT, COMPLETE}),
    "SIG-PROMPT-005": frozenset({PROMPT}),
    "SIG-PROMPT-006": frozenset({PROMPT}),
    "SIG-PROMPT-007": _NAMED,
    "SIG-END-006": frozenset({END}),
    "SIG-CMP-003": frozenset({COMPLETE}),
    "SIG-CMP-004": frozenset({COMPLETE}),
    "SIG-REM-002": frozenset({REMEMBER, HOOK_REMEMBER}),
    "SIG-MEM-005": frozenset({FORGET}),
    "SIG-SEC-002": frozenset({EXEC, EXEC_JOB}),
}
"""The operations whose answers a requirement's verdict is drawn from."""


def excused(requirement: str, finding: Finding, recording: Recording, broken: Mapping[int, str]) -> Finding:
    """`finding`, or in place of a breach an undecided one where it rests on an answer that breaks the contract.

    `broken` is exchange number to the requirement on the daemon that its answer breaks. An answer counts when
    the finding names it, or when it came before, to an operation that the requirement rests on, in the same session.
    A recording without step marks is judged by the letter: an answer there may have been shortened by hand.
    """
    if not recording.marks(StepMark):
        return finding
    if finding.verdict not in (Verdict.FAIL, Verdict.WARN) or requirement not in RESTS_ON or not finding.exchanges:
        return finding
    seq = next((s for s in broken if s in finding.exchanges or _concerns(requirement, s, finding, recording)), None)
    if seq is None:
        return finding
    return undecided(
        *(recording.by_seq[number] for number in finding.exchanges if number in recording.by_seq),
        message=f"rests on the answer of #{seq}, which breaks {broken[seq]}: the daemon's breach, not the connector's",
    )


def _concerns(requirement: str, seq: int, finding: Finding, recording: Recording) -> bool:
    call = recording.by_seq[seq]
    if call.operation not in RESTS_ON[requirement] or seq > max(finding.exchanges):
        return False
    return call.key is None or call.key in _keys(finding.exchanges, recording)


def _keys(numbers: Collection[int], recording: Recording) -> set[str | None]:
    return {recording.by_seq[number].key for number in numbers if number in recording.by_seq}
