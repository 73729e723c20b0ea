"""The outcomes that a rule yields: a plain PASS for a subject that conforms, or a finding with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal

from msgspec import UNSET

from signet_conformance.contract import catalogue, requirements
from signet_conformance.facts import Call, Recording
from signet_conformance.facts.whole_run import WholeRun
from signet_conformance.files.json_values import member_of, names_in, pointer
from signet_conformance.finding import Finding, Side, Verdict

Outcome = Finding | Literal[Verdict.PASS]
Rule = Callable[[Recording], Iterator[Outcome]]
"""A short generator over an immutable recording. It never prints and never raises for a breach."""
RunRule = Callable[[WholeRun], Iterator[Outcome]]
"""A rule over all traces of a run; its results replace what each trace alone left undecided."""

PASS: Literal[Verdict.PASS] = Verdict.PASS
_BODY = "/request/body/json"


def _finding(
    verdict: Verdict,
    *calls: Call,
    message: str,
    pointer: str = "",
    expected: str = "",
    received: Any = UNSET,
    fold: str = "",
    elements: Iterable[str] = (),
    side: Side = Side.CONNECTOR,
    asked: Iterable[Any] = (),
) -> Finding:
    if received is UNSET:
        is_in_body = bool(calls) and pointer.startswith(_BODY)
        received = member_of(calls[0].body, *names_in(pointer.removeprefix(_BODY))) if is_in_body else None
    exchanges = tuple(call.seq for call in calls)
    model = tuple(dict.fromkeys(request.seq for request in asked))
    return Finding(verdict, exchanges, message, pointer, expected, received, side, fold, model, tuple(elements))


fail = partial(_finding, Verdict.FAIL)
"""A breach of a MUST by `*calls`, the breaching one first.

`received` is by default the member of its body that `pointer` names.
A rule that knows several kinds of breach at one pointer names each by `fold`: a code that is the same in every run.
"""
warn = partial(_finding, Verdict.WARN)
"""A breach of a SHOULD, or of the part of a MUST that the catalogue marks so; otherwise as :func:`fail`."""
unclear = partial(_finding, Verdict.INCONCLUSIVE, side=Side.HARNESS)
"""An undecided finding on the harness: neither the daemon's nor the model's recording shows whether it is a breach."""
pass_harness = partial(_finding, Verdict.PASS, side=Side.HARNESS)
"""A PASS for a subject, with a note on it."""


def breach_of(
    requirement: str,
    name: str,
    /,
    *calls: Call,
    received: Any = UNSET,
    asked: Iterable[Any] = (),
    elements: Iterable[str] = (),
    **facts: Any,
) -> Finding:
    """A breach by `*calls`, the breaching one first, as the requirement's entry describes it under `name`.

    `facts` fill the places in its texts, which may also speak of the first call as `call` and of its `route`.
    """
    entry = catalogue()[requirement]
    breach = entry.breaches[name]
    if calls:
        facts |= {"call": calls[0], "route": route_of(calls[0])}
    if received is UNSET:
        received = breach.received.format_map(facts) if isinstance(breach.received, str) else breach.received
    return _finding(
        Verdict(breach.verdict),
        *calls,
        message=breach.message.format_map(facts),
        pointer=breach.pointer.format_map(facts),
        expected=breach.expected.format_map(facts),
        received=received,
        fold=name if breach.fold is None else breach.fold.format_map(facts),
        side=Side(entry.side),
        asked=asked,
        elements=elements,
    )


def pass_if(conforms: object) -> Literal[Verdict.PASS] | None:
    """Return PASS for a subject that conforms, and None for any other, so that a finding can follow after `or`."""
    return PASS if conforms else None


def undecided(*calls: Call, message: str, fold: str = "") -> Finding:
    """An undecided finding: the recording does not show whether it is a breach. `fold` is the kind it looks like."""
    return _finding(Verdict.INCONCLUSIVE, *calls, message=message, fold=fold)


def subjects_of(recording: Recording, requirement: str, *, cut: bool = False) -> list[Call]:
    """The calls of the operations that the entry of a requirement names; those with a cut body only on request."""
    return recording.of(*requirements()[requirement].operations, cut=cut)


def judge_cut(call: Call) -> Outcome:
    """Judge a call whose body was recorded only in part: it conforms if the daemon accepts it."""
    return PASS if call.accepted else undecided(call, message="only a part of the body was recorded")


def no_subject(why: str) -> Finding:
    """Nothing can be subject to the requirement, for a reason that the reader should know."""
    return _finding(Verdict.NOT_APPLICABLE, message=why)


def route_of(call: Call) -> str:
    """The route of a call as a kind of breach names it: method and operation, or the path outside the contract."""
    return f"{call.method} {call.operation or call.path}"


def in_body(*names: str | int) -> str:
    """The JSON pointer to a member of the request body, from the exchange's line."""
    return _BODY + pointer(*names)
