"""Computes figures from ranks with ir-measures, and their intervals by a bootstrap of scipy's with a fixed seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

from signet_reference_harness.errors import ConfigError, pip_install

CUTS: Final = (1, 5, 10)
MEASURES: Final = {
    **{f"hit@{cut}": ("Success", cut) for cut in CUTS},
    **{f"recall@{cut}": ("R", cut) for cut in CUTS},
    "mrr@10": ("RR", 10),
    "ndcg@10": ("nDCG", 10),
}
"""Our name of a figure, with its measure in ir-measures and the number of rows that it looks at."""
PACKAGES: Final = ("ir_measures", "scipy", "snowballstemmer")
SEED: Final = 20_240_817
RESAMPLES: Final = 2_000
CONFIDENCE: Final = 0.95
DIGITS: Final = 6

Figures = dict[str, float]


def demand_installed(*packages: str) -> None:
    """Raise ConfigError if a package is not installed; by default, check those that compute figures."""
    missing = [name for name in packages or PACKAGES if find_spec(name) is None]
    if missing:
        raise ConfigError(f"needed packages are not installed: {', '.join(missing)}", remedy=pip_install("bench"))


def of_questions(questions: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> dict[str, Figures]:
    """The figures of each question, from its evidence and its ranking (best first); neither repeats a name."""
    import ir_measures

    names = {getattr(ir_measures, measure) @ cut: name for name, (measure, cut) in MEASURES.items()}
    # trec_eval aborts the process on some names, so it gets numbers.
    ids = {str(number): question for number, question in enumerate(questions)}
    relevant = [
        ir_measures.Qrel(number, item, 1) for number, question in ids.items() for item in questions[question][0]
    ]
    ranked = [
        # The score falls with the rank, so there are no ties.
        ir_measures.ScoredDoc(number, item, float(-rank))
        for number, question in ids.items()
        for rank, item in enumerate(questions[question][1], 1)
    ]
    figures = {question: dict.fromkeys(MEASURES, 0.0) for question in questions}
    for metric in ir_measures.iter_calc(list(names), relevant, ranked) if relevant else ():
        figures[ids[metric.query_id]][names[metric.measure]] = rounded(metric.value)
    return figures


def mean(figures: Sequence[Figures]) -> Figures:
    """The mean of each figure over questions."""
    if not figures:
        return {}
    return {name: rounded(math.fsum(each[name] for each in figures) / len(figures)) for name in MEASURES}


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The confidence interval of the mean at 95 %; None for fewer than two values."""
    if len(values) < 2:
        return None
    if len(set(values)) == 1:
        return rounded(values[0]), rounded(values[0])
    import numpy as np
    from scipy.stats import bootstrap

    bounds: Any = bootstrap(
        (np.asarray(values),),
        np.mean,
        n_resamples=RESAMPLES,
        batch=200,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    return rounded(float(bounds.low)), rounded(float(bounds.high))


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p90 and p99 by nearest rank, and the number of values."""
    ordered = sorted(values)
    picked = {f"p{at}": ordered[max(0, math.ceil(at / 100 * len(ordered)) - 1)] for at in (50, 90, 99)}
    return {"count": len(ordered), **picked}


def rounded(value: float) -> float:
    """`value` to six digits after the point; never a negative zero."""
    return round(value, DIGITS) + 0.0
