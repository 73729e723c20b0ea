"""What a rule yields: a plain PASS for a subject that conforms, or a finding with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from signet_conformance.facts import Call, Recording, WholeRun
from signet_conformance.files.json_values import pointer
from signet_conformance.finding import Finding, Verdict

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
    elements: Iterable[str] = (),
) -> Finding:
    return Finding(
        verdict=verdict,
        exchanges=tuple(call.seq for call in calls),
        message=message,
        pointer=pointer,
        expected=expected,
        received=received,
        fold=fold,
        elements=tuple(elements),
    )


def fail(
    *calls: Call,
    message: str,
    pointer: str = "",
    expected: str = "",
    received: Any = None,
    fold: str = "",
    elements: Iterable[str] = (),
) -> Finding:
    """A breach of a MUST; the first call is the breaching one.

    A rule that knows several kinds of breach at one pointer names each by `fold`: a code that is the same in every run.
    """
    return _finding(Verdict.FAIL, calls, message, pointer, expected, received, fold, elements)


def warn(
    *calls: Call,
    message: str,
    pointer: str = "",
    expected: str = "",
    received: Any = None,
    fold: str = "",
    elements: Iterable[str] = (),
) -> Finding:
    """A breach of a SHOULD, or of the part of a MUST that the catalogue marks so; otherwise as :func:`fail`."""
    return _finding(Verdict.WARN, calls, message, pointer, expected, received, fold, elements)


def undecided(*calls: Call, message: str, fold: str = "") -> Finding:
    """The recording does not tell: neither conforming nor a breach. `fold` is the kind of what looks like a breach."""
    return _finding(Verdict.INCONCLUSIVE, calls, message, "", "", None, fold)


def no_subject(why: str) -> Finding:
    """Nothing can be subject to the requirement, for a reason that the reader shall know."""
    return _finding(Verdict.NOT_APPLICABLE, (), why, "", "", None, "")


def route_of(call: Call) -> str:
    """The route of a call as a kind of breach names it: method and operation, outside the contract the path."""
    return f"{call.method} {call.operation or call.path}"


def in_body(*names: str | int) -> str:
    """The JSON pointer to a member of the request body, from the exchange's line."""
    return "/request/body/json" + pointer(*names)
