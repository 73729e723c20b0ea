"""Which requirements are in force: by the daemon that a trace met, or by the contract version asked for."""

from __future__ import annotations

import pytest

from signet_conformance.contract import requirements, version_key
from signet_conformance.engine import judge
from signet_conformance.errors import ContractError
from signet_conformance.finding import Reason, Verdict
from signet_conformance.trace import Trace
from tests.support.trace_parts import exchange, trace

GATED_AT_REFERENCE = {
    "SIG-START-008",
    "SIG-PROMPT-008",
    "SIG-END-008",
    "SIG-END-011",
    "SIG-AGENT-005",
    "SIG-AGENT-007",
    "SIG-NOTE-001",
}
"""The law's own list for daemon 0.145.7."""
LATER = {name: r.since for name, r in requirements().items() if r.since is not None}
INJECTED = "Deploy window is Friday 16:00 UTC; ask before a schema change."


def _gated(daemon_version: str | None) -> set[str]:
    judged = judge(trace(exchange(1, harness="openclaw"), daemon_version=daemon_version))
    return {name for name, j in judged.judgements.items() if j.reason is Reason.GATED}


def _before(version: str) -> str:
    major, minor, patch = version_key(version)
    return f"{major}.{minor}.{patch - 1}" if patch else f"{major}.{minor - 1}.99"


@pytest.mark.parametrize("daemon_version", [None, "0.145.7", "v0.145.7", "0.145.7-beta.2", "main"])
def test_the_reference_daemon_gates_what_the_law_lists(daemon_version: str | None) -> None:
    """A trace without a version, or with one that is not a version, met 0.145.7; there six requirements are gated."""
    assert _gated(daemon_version) == GATED_AT_REFERENCE


@pytest.mark.parametrize("requirement", LATER)
def test_a_requirement_is_in_force_from_its_version_on(requirement: str) -> None:
    """The release before is not judged by it, its own and every later one are."""
    since = str(LATER[requirement])
    assert requirement in _gated(_before(since))
    assert requirement not in _gated(since)
    assert requirement not in _gated("0.999.0")


def test_the_newest_daemon_gates_nothing() -> None:
    """Every requirement is in force at the end."""
    assert _gated("0.205.0") == set()


def test_versions_are_compared_as_numbers() -> None:
    """0.99 came before 0.145."""
    assert "SIG-START-005" in _gated("0.99.0")
    assert "SIG-START-005" not in _gated("0.145")


def test_a_gated_breach_is_told_but_not_scored() -> None:
    """The verdict is NOT-APPLICABLE whatever is in the trace; the message says what a later daemon would say."""
    judgement = judge(trace(exchange(1, harness="openclaw", agentId=" "))).judgements["SIG-AGENT-005"]
    assert (judgement.verdict, judgement.findings) == (Verdict.NOT_APPLICABLE, ())
    assert "in force since daemon 0.161.2; this one is 0.145.7" in judgement.message
    assert "unscored: WARN" in judgement.message


def test_a_contract_version_may_be_asked_for() -> None:
    """The contract asked for decides what is in force, not the daemon that the trace met."""
    recording = trace(exchange(1, harness="openclaw", agentId=" "), daemon_version="0.205.0")
    assert judge(recording).judgements["SIG-AGENT-005"].verdict is Verdict.WARN
    judged = judge(recording, contract="0.145")
    assert judged.daemon_version == "0.145.7"
    assert judged.judgements["SIG-AGENT-005"].reason is Reason.GATED


def test_an_unknown_contract_version_is_refused() -> None:
    """The known ones are named."""
    with pytest.raises(ContractError, match=r"no contract version is called '7\.1'") as caught:
        judge(trace(exchange(1)), contract="7.1")
    assert "0.145" in str(caught.value.remedy)


def _echo(daemon_version: str) -> Trace:
    first, second = exchange(1), exchange(2, "/api/hooks/user-prompt-submit", userMessage=INJECTED)
    assert first.response is not None
    assert first.response.body is not None
    first.response.body.value["inject"] = INJECTED
    return trace(first, second, daemon_version=daemon_version)


@pytest.mark.parametrize(
    ("daemon_version", "verdict"),
    [("0.145.7", Verdict.WARN), ("0.188.99", Verdict.WARN), ("0.189", Verdict.FAIL), ("0.205.0", Verdict.FAIL)],
)
def test_a_should_may_become_a_must(daemon_version: str, verdict: Verdict) -> None:
    """PROMPT-007 is a SHOULD that became a MUST with 0.189."""
    assert judge(_echo(daemon_version)).judgements["SIG-PROMPT-007"].verdict is verdict
