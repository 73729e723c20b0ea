"""Findings on the daemon's side, and the answers that tell something of it: of its own, whole, of one process."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from signet_conformance.facts import Call, Recording, once_a_recording
from signet_conformance.files.json_values import pointer as pointer_of
from signet_conformance.finding import Finding, Side, Verdict
from signet_conformance.rules.outcome import undecided
from signet_conformance.trace.marks import FaultMark, StepMark
from signet_conformance.trace.model import NOT_CARRIED

_INDEX = re.compile(r"/\d+(?=/|$)")


def breach(
    call: Call, *others: Call, message: str, pointer: str = "", expected: str = "", received: Any = None, fold: str = ""
) -> Finding:
    """A breach by the daemon; the answer of the first call is the breaching one."""
    return Finding(
        verdict=Verdict.FAIL,
        exchanges=(call.seq, *(other.seq for other in others)),
        message=message,
        pointer=pointer,
        expected=expected,
        received=received,
        side=Side.DAEMON,
        fold=f"{call.operation}: {fold or _INDEX.sub('/*', pointer)}",
    )


def forgot(
    recording: Recording, call: Call, *others: Call, message: str, pointer: str, expected: str, received: Any = None
) -> Finding:
    """What shows that the daemon lost something it had kept: a breach only if the kit would have marked a restart."""
    if not recording.marks(StepMark):
        return undecided(call, *others, message=f"{message}; no mark says whether it was restarted")
    return breach(call, *others, message=message, pointer=pointer, expected=expected, received=received)


def in_answer(*names: str | int) -> str:
    """The JSON pointer to a member of the response body, from the exchange's line."""
    return "/response/body/json" + pointer_of(*names)


def is_own_answer(call: Call) -> bool:
    """Whether the answer is the daemon's own, and arrived: neither a fault's doing nor lost on the way."""
    return call.delivered and call.fault is None and call.error is None


@once_a_recording
def whole_answers(recording: Recording) -> Sequence[Call]:
    """The calls with an answer of the daemon's own that was recorded whole."""
    return [
        call
        for call in recording.calls
        if is_own_answer(call)
        and (response := call.exchange.response) is not None
        and (response.body is None or response.body.kind != "cut")
    ]


def is_served(call: Call) -> bool:
    """Whether the daemon did, or refused for its session's sake, what it was asked: not bypassed, not invalid."""
    return (
        is_own_answer(call)
        and (call.accepted or call.status == 409)
        and not (call.answer or {}).get("bypassed")
        and call.header("x-signet-no-hooks") != "1"
    )


def interrupted(recording: Recording, earlier: Call, later: Call) -> bool:
    """Whether the daemon was, or may have been, another process between two calls, or at the later one."""
    places = _interruptions(recording)
    index = bisect_right(places, earlier.seq)
    return index < len(places) and places[index] <= later.seq


@once_a_recording
def _interruptions(recording: Recording) -> Sequence[int]:
    restarts = [mark.seq for mark in recording.marks(FaultMark) if mark.is_restart]
    return sorted([*restarts, *(call.seq for call in recording.troubled if call.fault is None and _is_lost(call))])


def _is_lost(call: Call) -> bool:
    return call.error not in (None, "client_closed", NOT_CARRIED) or (call.status is not None and call.status >= 500)
