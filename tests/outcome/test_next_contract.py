"""Facts about what the next contract would say of a release between two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import BREACHES, Verdict
from signet_conformance.outcome.conclusion import Conclusion, Judging, Terms
from signet_conformance.outcome.next_contract import NewerJudging, next_contract
from signet_conformance.trace import read
from tests.support.trace_files import BREACHING, CONFORMING, HEADER, write

BETWEEN = "0.112.0"
"""A release between contracts 0.109 and 0.145."""


def header(daemon: str = "0.109.15") -> dict[str, Any]:
    """The header of a recording with a daemon."""
    return {**HEADER, "daemon_version": daemon}


@pytest.mark.parametrize(
    ("daemon", "release", "contract"),
    [
        ("0.109.15", "0.112.0", "0.145"),
        ("0.109.15", "0.109.15", None),
        ("0.109.15", "0.123.15", None),
        ("0.58.1", "0.99.7", "0.109"),
        ("0.145.7", "0.145.7", None),
        ("0.145.7", "0.150.0", "0.205"),
        ("0.145.7", "1.4.0", None),
        ("0.145.7", "unreleased", None),
        ("0.900.0", "0.901.0", None),
        ("0.109.15", None, None),
    ],
)
def test_which_contract_comes_next(daemon: str, release: str | None, contract: str | None, tmp_path: Path) -> None:
    """The one after that of the daemon, where the release is later than what that was read from, and before it."""
    trace = read(write(tmp_path / "trace.jsonl", CONFORMING, header(daemon)))
    assert next_contract(judge(trace), release) == contract


def test_only_what_the_older_one_lets_pass_is_told(tmp_path: Path) -> None:
    """The requirement, how many traces breach it, and in which words; what both breach is none of it."""
    judging = NewerJudging(None, BETWEEN)
    for exchanges in (BREACHING, CONFORMING, BREACHING):
        judged = judge(read(write(tmp_path / "trace.jsonl", exchanges, header())))
        judging.add(judged)
    newer = judging.newer()
    assert newer is not None
    assert (newer.version, newer.of) == ("0.145", 3)
    breach = newer.breaches["SIG-AGENT-002"]
    assert (breach.verdict, breach.traces) == (Verdict.FAIL, 2)
    assert breach.message.startswith("memory-recall runs as 'default'")
    assert newer.words.startswith("would breach 0.145: SIG-AGENT-002 in 2 of 3")
    assert not set(newer.breaches) & {name for name, each in judged.judgements.items() if each.verdict in BREACHES}


def test_it_changes_no_exit_status(tmp_path: Path) -> None:
    """A run ends as it does where only its own contract is asked, whatever the next one says."""
    trace = read(write(tmp_path / "trace.jsonl", BREACHING, header()))

    def conclude(release: str | None) -> Conclusion:
        judging = Judging(Terms(connector=release, only=frozenset({"SIG-AGENT-002", "SIG-START-001"})))
        for judged in judging.judge_traces([trace]):
            judging.add(judged)
        return judging.conclude()

    alone, between = conclude(None), conclude(BETWEEN)
    assert (alone.status, alone.newer) == (0, None)
    assert between.status == 0
    assert between.newer is not None
    assert [*between.newer.breaches] == ["SIG-AGENT-002"]
