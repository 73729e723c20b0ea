"""Hypothesis strategies for whole sessions: `sessions(features)` draws scenarios that a connector can perform.

A scenario is drawn as a list of intents ("clear in the second session") and written out against a model of the open
sessions: steps that an intent needs (a start, the rest of a compaction) are added, an intent without sense is dropped,
and at the close every session is ended. So the scenario stays valid whatever intents Hypothesis removes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from signet_conformance.scenarios.choices import (
    DETAIL,
    FACTS,
    QUERIES,
    REPLIES,
    SUMMARIES,
    Digits,
    number,
    prompt_text,
    weighted,
)
from signet_conformance.scenarios.features import HALVES, Features
from signet_conformance.scenarios.outages import Outage
from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.scenarios.writing import ScenarioWriter
from signet_conformance.trace.fault_kinds import FAULT_KINDS

FEWEST_INTENTS = 4
"""Small sessions show little, since intents may be dropped; shrinking makes them from larger ones."""
MOST_INTENTS = 12
MOST_BESIDE = 4
"""The most intents before an outage, and after it."""


def faults(features: Features) -> st.SearchStrategy[Mapping[str, Any]]:
    """Draw a fault for one or two steps, or for one request: `fault`, `match`, `count`, `lasts` (in steps)."""
    return number(DETAIL).map(lambda detail: _fault(features, Digits(detail)))


_STATUSES: Mapping[str, int] = {"500": 5, "503": 4, "401": 2, "409": 1, "429": 2}
"""Weights of the statuses; the row of `status` in the table of faults has their sum."""


def _shares(*, slow: bool) -> dict[str, int]:
    shares: dict[str, int] = {}
    for kind in FAULT_KINDS.values():
        if kind.slow == slow and kind.share:
            shares.update(_STATUSES if kind.name == "status" else {kind.name: kind.share})
    return shares


_FAULTS = _shares(slow=False)
_SLOW_FAULTS = _shares(slow=True)
_QUICK_KINDS = weighted(_FAULTS)
_ALL_KINDS = weighted({kind: weight * 20 for kind, weight in _FAULTS.items()} | _SLOW_FAULTS)
"""Slow faults are rare, one in some hundred: each takes as long as dozens of other steps."""
_PLACES = (
    None,
    "/api/*",
    "/api/hooks/*",
    "/api/hooks/user-prompt-submit",
    "/api/hooks/session-start",
    "/api/hooks/session-end",
    "/api/hooks/compaction-complete",
    "/api/hooks/remember",
    "/api/memory/*",
)
_WAITED_FOR = ("/api/hooks/user-prompt-submit", "/api/hooks/session-start")
_NEW_EACH_TURN = ("/api/hooks/user-prompt-submit", "/api/hooks/compaction-complete")
_WITHIN_A_SESSION = (*_NEW_EACH_TURN, "/api/hooks/remember", "/api/memory/*")
_AFTER_A_START = (*_WITHIN_A_SESSION, "/api/hooks/session-end")


def _allowed(features: Features, kind: str) -> Sequence[str] | None:
    """Return the paths at which a fault may be; None if it may be at any.

    A connector is never asked to meet two requirements that exclude each other:

    - After 409 on a start SIG-HTTP-012 wants no further hook of the key, SIG-END-005 an end of every started key.
    - After 401 or 409 the identical request may not come again (SIG-HTTP-010), while a resumed session has to be
      started and ended again (SIG-END-005). A process that lives on can tell it with a difference; one that is over
      with the session knows of no refusal.
    - After 503 the identical request has to come later each time (SIG-HTTP-011), after 429 when it was told to. The
      steps follow each other in milliseconds: a start that is owed at once would come too soon, or not at all, and
      then SIG-FAIL-001 and SIG-FAIL-003 miss the hooks after it. The pace is the kit's, so after 503 nothing is owed
      but what says something new each time.
    """
    if kind in _SLOW_FAULTS:
        return _WAITED_FOR
    if kind == "503":
        return _NEW_EACH_TURN
    if kind == "429" or (kind == "409" and features.lives_on):
        return _AFTER_A_START
    return _WITHIN_A_SESSION if kind in ("401", "409") and not features.lives_on else None


_AT_A_BOUNDARY = (None, "/api/hooks/*", "/api/hooks/session-end", "/api/hooks/session-start")
_IN_A_COMPACTION = (None, "/api/hooks/*", "/api/hooks/compaction-complete")
_LASTS = (1, 1, 2, None)


def _fault(features: Features, digits: Digits, places: Sequence[str | None] = _PLACES) -> Mapping[str, Any]:
    kind = digits.pick(_ALL_KINDS if features.slow else _QUICK_KINDS)
    lasts = digits.pick(_LASTS)
    if kind == "refuse":
        return {"fault": {"kind": kind}, "lasts": lasts or 1}
    allowed = _allowed(features, kind)
    path = digits.pick(places if allowed is None else [place for place in places if place in allowed] or allowed)
    step: dict[str, Any] = {"fault": _spec(kind, digits), "lasts": lasts}
    if path is not None:
        step["match"] = {"path": path}
    if lasts is None:
        step["count"] = 1
    return step


_PAUSE_S = 5
"""Seconds of Retry-After: longer than any machine needs for the next steps of a session."""


_ODD_BODIES: Sequence[Mapping[str, Any]] = ({}, {"body": None}, {"body": 42}, {"body": {"error": "internal error"}})
"""Answers of status 200 that a connector may take for an object with the members of its operation."""


def _spec(kind: str, digits: Digits) -> Mapping[str, Any]:
    if kind == "shape":
        return {"kind": kind, **digits.pick(_ODD_BODIES)}
    if kind in ("429", "503"):
        return {"kind": "status", "status": int(kind), "retry_after_s": _PAUSE_S}
    if kind.isdigit():
        return {"kind": "status", "status": int(kind)}
    return {"kind": kind, "delay_s": "beyond"} if "delay_s" in FAULT_KINDS[kind].needs else {"kind": kind}


def intents(features: Features) -> st.SearchStrategy[Intent]:
    """Draw one intent: its kind, the number of its session, and its details."""
    weights = {"start": 4, "prompt": 20, "end": 2, "fault": 8}
    weights |= {name: 7 for name in ("clear", "resume") if name in features.steps}
    if features.tools:
        weights["tool"] = 10
    if "compact" in features.steps:
        weights["compaction"] = 10
    if features.restart:
        weights["restart"] = 1
    weights["sub-agent"] = 2
    weights["long"] = 1
    drawn = st.tuples(number(sum(weights.values())), number(4), number(DETAIL))
    table = weighted(weights)
    return drawn.map(
        lambda intent: (table[intent[0]], (0, 0, 1, 2)[intent[1]], _details(features, table[intent[0]], intent[2]))
    )


Intent = tuple[str, int, Any]
_RATINGS = (None,) * 7 + (0.5,)
"""Ratings of a memory; None for a turn without one."""


def _details(features: Features, what: str, detail: int) -> Any:
    digits = Digits(detail)
    match what:
        case "prompt":
            return digits.pick(REPLIES), digits.pick(_RATINGS), prompt_text(digits)
        case "tool":
            more = digits.pick((False, False, True))
            return digits.pick(features.tools), digits.pick(FACTS), digits.pick(QUERIES), more
        case "sub-agent":
            return digits.pick(REPLIES), prompt_text(digits)
        case "long":
            # Dozens of steps: rare, and only for connectors that react to them.
            rows = {"rows"} if {"memory_store", "memory_forget"} <= set(features.tools) else set()
            kinds = sorted(rows | ({"turns"} if features.checkpoints else set()))
            return digits.pick(kinds) if kinds and digits.pick(range(3)) == 2 else None
        case "fault":
            return _fault(features, digits)
        case "compaction":
            halves = features.steps >= HALVES and digits.pick((True, True, False))
            fault = _fault(features, digits, _IN_A_COMPACTION) if halves and digits.pick((False, True)) else None
            summary = digits.pick(SUMMARIES) if digits.pick((True, False)) else f"Summary {digits.unicode_text()}"
            return summary, halves, fault
        case "end" | "clear" | "resume":
            # Boundaries go wrong most easily, and few faults would be at one by chance.
            return _fault(features, digits, _AT_A_BOUNDARY) if digits.pick((False, False, True)) else None
        case "restart":
            return digits.pick(range(8)) == 7
        case _:
            return None


def sessions(
    features: Features | None = None, name: str = "generated", outage: Outage | None = None
) -> st.SearchStrategy[Scenario]:
    """Draw whole scenarios: one to three interleaved sessions of one or several agents, with faults between the steps.

    Sessions are used only while they are open, and ended at the close; only steps, tools and agents of `features`
    occur. With `outage` nearly all scenarios have it, in a session of its own. Shrinks by whole intents, towards one
    session without a prompt and without the outage.
    """
    allowed = features or Features()
    if outage is None:
        listed = st.lists(intents(allowed), min_size=FEWEST_INTENTS, max_size=MOST_INTENTS)
    else:
        beside = st.lists(intents(allowed), max_size=MOST_BESIDE)
        # 0, to which it shrinks, leaves the outage out.
        itself = number(DETAIL).map(lambda detail: [("outage", 0, (outage, Digits(detail)))] if detail else [])
        listed = st.tuples(beside, itself, beside).map(lambda parts: [*parts[0], *parts[1], *parts[2]])
    return st.builds(
        lambda surroundings, chosen: write(allowed, Digits(surroundings), chosen, name), number(16), listed
    )


def write(features: Features, surroundings: Digits, chosen: Sequence[Intent], name: str) -> Scenario:
    """Write intents out as a scenario. `surroundings` choose the number of sessions and the first agent."""
    several, turned = surroundings.pick((1, 2, 2, 3)), surroundings.pick((0, 0, 0, 1))
    writer = ScenarioWriter(
        several, features.agents, turned, can_resume="resume" in features.steps, lives_on=features.lives_on
    )
    for what, which, details in chosen:
        writer.carry_out(what, which, details)
    return writer.scenario(name)
