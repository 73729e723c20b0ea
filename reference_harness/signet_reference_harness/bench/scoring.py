"""Scores a model's answer against the one that was expected: exactly, and by F1 as the LoCoMo paper has it."""

from __future__ import annotations

import re
import string
from collections import Counter
from functools import cache
from typing import Any, Final

from signet_reference_harness.bench.figures import rounded

ARTICLES: Final = re.compile(r"\b(a|an|the|and)\b")
UNANSWERABLE: Final = frozenset({"adversarial", "abstention"})
"""Categories of questions that the facts do not answer."""
SEVERAL: Final = "multi-hop"
"""The category whose answers are lists: each expected part is compared with each part of the answer."""
ALTERNATIVES: Final = "open-domain"
"""The category whose expected answers hold a reason after a semicolon."""
NOTHING: Final = ("not mentioned", "no information available")


def exact(answer: str, expected: str) -> float:
    """1 when both are the same but for case, punctuation and articles."""
    return float(_plain(answer) == _plain(expected))


def f1(answer: str, expected: str | None, category: str | None) -> float:
    """The harmonic mean of precision and recall over the stems of the words."""
    if category in UNANSWERABLE:
        return float(any(words in answer.lower() for words in NOTHING))
    if expected is None:
        return 0.0
    if category == SEVERAL:
        answers = answer.split(",")
        parts = expected.split(",")
        return rounded(sum(max(_overlap(each, part) for each in answers) for part in parts) / len(parts))
    if category == ALTERNATIVES:
        expected = expected.split(";")[0]
    return rounded(_overlap(answer, expected))


def _overlap(answer: str, expected: str) -> float:
    said, wanted = Counter(_stems(answer)), Counter(_stems(expected))
    common = sum((said & wanted).values())
    if not common:
        return 0.0
    precision, recall = common / said.total(), common / wanted.total()
    return 2 * precision * recall / (precision + recall)


def _plain(text: str) -> str:
    without = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(ARTICLES.sub(" ", without).split())


def _stems(text: str) -> list[str]:
    return list(_stemmer().stemWords(_plain(text).split()))


@cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("porter")
