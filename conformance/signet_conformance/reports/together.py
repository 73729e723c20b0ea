"""Several judged traces as one: the verdict of each requirement over all of them, with first evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from signet_conformance.engine import Judged, fold_verdicts
from signet_conformance.finding import Finding, Verdict


def essence(judged: Judged) -> Judged:
    """The judged trace without its exchanges and with one finding a requirement: small enough to keep thousands."""
    return replace(
        judged,
        trace=replace(judged.trace, exchanges=(), marks=()),
        judgements={
            name: replace(judgement, findings=judgement.findings[:1]) for name, judgement in judged.judgements.items()
        },
    )


def verdicts_of(judged: Sequence[Judged]) -> Mapping[str, Verdict]:
    """The verdict of each requirement over all traces, in the catalogue's order."""
    return dict(fold_verdicts(judged))


def evidence(judged: Sequence[Judged], name: str, verdict: Verdict) -> list[tuple[str | None, Finding]]:
    """For each trace in which the requirement has this verdict and a finding: its file and its first finding."""
    return [
        (one.trace.path, one.judgements[name].findings[0])
        for one in judged
        if name in one.judgements and one.judgements[name].verdict is verdict and one.judgements[name].findings
    ]
