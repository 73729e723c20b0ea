"""The examples of the catalogue: what `explain` shows as a breach is one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from signet_conformance.contract import requirements
from signet_conformance.engine import judge
from signet_conformance.finding import Verdict
from tests.support.case_traces import build

UNDECIDED_ALONE = {"SIG-FAIL-001", "SIG-FAIL-003", "SIG-FAIL-005"}
"""Their breach is that nothing follows, which a trace alone cannot tell from its end."""
TOLD_BY_MARKS = {"SIG-LOAD-001", "SIG-LOAD-002", "SIG-LOAD-003", "SIG-LOAD-004", "SIG-LOAD-005", "SIG-SEC-004"}
"""Their breach is no exchange."""


def _items(example: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item["mark"] | {"mark": item["mark"]["name"]} if "mark" in item else item for item in example]


def test_the_example_of_a_requirement_breaches_it(tmp_path: Path) -> None:
    """A requirement's own example is found in breach, naming an exchange of the example where it is one."""
    for requirement, entry in requirements().items():
        trace = build(tmp_path / f"{requirement}.jsonl", _items(entry.example), entry.example_context)
        judgement = judge(trace).judgements[requirement]
        said = f"{requirement}: {judgement.verdict}: {judgement.message}"
        if requirement in UNDECIDED_ALONE:
            assert judgement.verdict is Verdict.INCONCLUSIVE, said
        else:
            assert judgement.verdict in (Verdict.FAIL, Verdict.WARN), said
            assert judgement.findings[0].exchanges or requirement in TOLD_BY_MARKS, said
