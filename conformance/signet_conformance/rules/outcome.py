"""What a rule yields: a plain PASS for a subject that conforms, or a finding with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

from signet_conformance.facts import Call, Recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.whole_run import WholeRun

Outcome = Finding | Literal[Verdict.PASS]
Rule = Callable[[Recording], Iterator[Outcome]]
"""A short generator over an immutable recording. It never prints and never raises for a breach."""
RunRule = Callable[[WholeRun], Iterator[Outcome]]
"""A rule over all traces of a run: what it yields takes the place of what the traces, each alone, left undecided."""

PASS: Literal[Verdict.PASS] = Verdict.PASS


def _finding(
    verdict: Verdict,
    calls: tuple[Call, ...],
    message: str,
    pointer: str,
    expected: str,
    received: Any,
    fold: str,
) -> Finding:
    return Finding(
        verdict=verdict,
        exchanges=tuple(call.seq for call in calls),
        message=message,
        pointer=pointer,
        expected=expected,
        received=received,
        fold=fold or message,
    )


def fail(
    *calls: Call, message: str, pointer: str = "", expected: str = "", received: Any = None, fold: str = ""
) -> Finding:
    """A breach of a MUST; the first call is the breaching one."""
    return _finding(Verdict.FAIL, calls, message, pointer, expected, received, fold)


def warn(
    *calls: Call, message: str, pointer: str = "", expected: str = "", received: Any = None, fold: str = ""
) -> Finding:
    """A breach of a SHOULD, or of the part of a MUST that the catalogue marks so."""
    return _finding(Verdict.WARN, calls, message, pointer, expected, received, fold)


def undecided(*calls: Call, message: str) -> Finding:
    """The recording does not tell: neither conforming nor a breach."""
    return _finding(Verdict.INCONCLUSIVE, calls, message, "", "", None, "")


def no_subject(why: str) -> Finding:
    """Nothing can be subject to the requirement, for a reason that the reader shall know."""
    return _finding(Verdict.NOT_APPLICABLE, (), why, "", "", None, "")


def in_body(*names: str | int) -> str:
    """The JSON pointer to a member of the request body, from the exchange's line."""
    return "/request/body/json" + "".join(f"/{str(name).replace('~', '~0').replace('/', '~1')}" for name in names)
