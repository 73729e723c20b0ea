"""Figures, compared with values computed by hand."""

from __future__ import annotations

import math

import pytest

from signet_reference_harness.bench import answering, figures


def test_figures_follow_from_ranks() -> None:
    """Hits and reciprocal rank count the best evidence, recall all evidence, nDCG the places."""
    ranking = ["x", "b", "y", "a", *(f"z{n}" for n in range(6))]
    computed = figures.of_questions({"q\0 1": (["a", "b", "c"], ranking), "empty": (["a"], [])})
    ideal = sum(1 / math.log2(place + 1) for place in (1, 2, 3))
    assert computed["q\0 1"] == {
        "hit@1": 0.0,
        "hit@5": 1.0,
        "hit@10": 1.0,
        "recall@1": 0.0,
        "recall@5": round(2 / 3, 6),
        "recall@10": round(2 / 3, 6),
        "mrr@10": 0.5,
        "ndcg@10": round((1 / math.log2(3) + 1 / math.log2(5)) / ideal, 6),
    }
    assert set(computed["empty"].values()) == {0.0}


def test_what_stands_below_the_tenth_place_does_not_count() -> None:
    """All figures use ten rows."""
    computed = figures.of_questions({"q": (["a"], [*(f"z{n}" for n in range(10)), "a"])})
    assert set(computed["q"].values()) == {0.0}


def test_an_interval_is_the_same_each_time_and_holds_the_mean() -> None:
    """The seed is fixed; equal values have an interval without width."""
    values = [0.0, 1.0, 1.0, 0.0, 1.0] * 8
    low, high = figures.interval(values) or (1.0, 0.0)
    assert figures.interval(values) == (low, high)
    assert 0.4 < low < 0.6 < high < 0.8
    assert figures.interval([0.25] * 4) == (0.25, 0.25)
    assert figures.interval([1.0]) is None


def test_percentiles_are_values_that_were_measured() -> None:
    """By nearest rank."""
    assert figures.percentiles([float(n) for n in range(1, 101)]) == {"count": 100, "p50": 50, "p90": 90, "p99": 99}
    assert figures.percentiles([7.0]) == {"count": 1, "p50": 7.0, "p90": 7.0, "p99": 7.0}


@pytest.mark.parametrize(
    ("answer", "expected", "category", "f1"),
    [
        ("The red hut!", "red hut", None, 1.0),
        ("She was painting huts", "painted hut", "single-hop", round(2 * (2 / 4) * 1 / (2 / 4 + 1), 6)),
        ("blue", "red", "temporal", 0.0),
        ("pears, plums", "plums, figs", "multi-hop", 0.5),
        ("yes", "yes; she said so", "open-domain", 1.0),
        ("It is not mentioned.", None, "adversarial", 1.0),
        ("In May.", "In June.", "adversarial", 0.0),
        ("", "red", None, 0.0),
    ],
)
def test_f1_counts_stems_as_locomo_does(answer: str, expected: str | None, category: str | None, f1: float) -> None:
    """Lists by their parts, without added reasons, refusals by their words."""
    assert answering.f1_score(answer, expected, category) == f1


def test_exact_looks_past_case_punctuation_and_articles() -> None:
    """It ignores nothing else."""
    assert answering.exact_match("The Red, hut.", "red hut") == 1.0
    assert answering.exact_match("red huts", "red hut") == 0.0
