"""Trace and contract in, verdicts out, as plain values: the engine never prints and opens nothing."""

from __future__ import annotations

from signet_conformance.engine.folding import Judged, JudgedRun, exit_status, fold_run, fold_verdicts, run_judgements
from signet_conformance.engine.judging import judge, judge_each, judge_run
from signet_conformance.engine.tally import MAX_FINDINGS

__all__ = [
    "MAX_FINDINGS",
    "Judged",
    "JudgedRun",
    "exit_status",
    "fold_run",
    "fold_verdicts",
    "judge",
    "judge_each",
    "judge_run",
    "run_judgements",
]
