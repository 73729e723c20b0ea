"""Findings on what the model was asked: with the numbers of its recording beside those of the daemon's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from signet_conformance.facts import Call
from signet_conformance.finding import Finding, Side, Verdict
from signet_conformance.rules.model.asked import Asked


def breach(
    *calls: Call,
    asked: Iterable[Asked] = (),
    message: str,
    expected: str = "",
    received: Any = None,
    fold: str = "",
    verdict: Verdict = Verdict.WARN,
) -> Finding:
    """A breach of the harness, a WARN unless said otherwise; the first request is the breaching one."""
    return Finding(
        verdict=verdict,
        exchanges=tuple(call.seq for call in calls),
        message=message,
        expected=expected,
        received=received,
        side=Side.HARNESS,
        fold=fold,
        model=tuple(dict.fromkeys(request.seq for request in asked)),
    )


def remarked(*calls: Call, asked: Iterable[Asked] = (), message: str) -> Finding:
    """A subject conforms, and there is something to tell of it."""
    return replace(breach(*calls, asked=asked, message=message), verdict=Verdict.PASS)


def unclear(*calls: Call, asked: Iterable[Asked] = (), message: str) -> Finding:
    """The two recordings do not tell."""
    return replace(breach(*calls, asked=asked, message=message), verdict=Verdict.INCONCLUSIVE)
