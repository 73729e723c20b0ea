"""Hypothesis strategies for whole sessions, and how they are run outside of a test.

`sessions(features)` draws scenarios that a connector can perform. A scenario is drawn as a list of intents ("clear in
the second session") and written out against a model of the open sessions: steps that an intent needs (a start, the rest
of a compaction) are added, impossible intents are dropped, and each open session is ended at the close. So the scenario
stays valid whatever intents Hypothesis removes.

`draw` returns the scenarios of a seed in chunks; `smallest` finds the smallest one for which a condition holds. A
chunk's scenarios depend on the seed and its number alone, so the first N scenarios of a seed are equal for every N and
any order of performing them.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, strategies as st

from signet_conformance.scenarios.features import CHUNK, HALVES, Features
from signet_conformance.scenarios.outages import Outage, holds, outage_of
from signet_conformance.scenarios.reducing import remove_steps, shorten_prompts
from signet_conformance.scenarios.scenario import Scenario, identity
from signet_conformance.scenarios.writing import (
    DETAIL,
    FACTS,
    QUERIES,
    REPLIES,
    SUMMARIES,
    Digits,
    ScenarioWriter,
    number,
    prompt_text,
    weighted,
)
from signet_conformance.trace.fault_kinds import FAULT_KINDS

FEWEST_INTENTS = 4
"""Small sessions show little, since intents may be dropped; shrinking makes them from larger ones."""
MOST_INTENTS = 12
MOST_BESIDE = 4
"""The most intents before an outage, and after it."""
_KEPT = 64
"""How many strategies are cached: Hypothesis validates a new one, which takes as long as two draws."""


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
      started and ended again (SIG-END-005). A process that outlives the session can send a different request; one that
      ends with it does not know about the refusal.
    - After 503 the identical request has to come later each time (SIG-HTTP-011), after 429 at the time that the answer
      names. The kit performs the steps within milliseconds: a start that is due at once would come too soon, or not at
      all, and then SIG-FAIL-001 and SIG-FAIL-003 miss the hooks after it. So 503 is used only for operations whose
      requests differ each time.
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
    """A fault for one or two steps, or for one request: `fault`, `match`, `count`, `lasts` (in steps)."""
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


@lru_cache(maxsize=_KEPT)
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
        lambda intent: (table[intent[0]], (0, 0, 1, 2)[intent[1]], _draw_details(features, table[intent[0]], intent[2]))
    )


Intent = tuple[str, int, Any]
_RATINGS = (None,) * 7 + (0.5,)
"""Ratings of a memory; None for a turn without one."""


def _draw_details(features: Features, kind: str, detail: int) -> Any:
    digits = Digits(detail)
    match kind:
        case "prompt":
            return digits.pick(REPLIES), digits.pick(_RATINGS), prompt_text(digits)
        case "tool":
            more = digits.pick((False, False, True))
            return digits.pick(features.tools), digits.pick(FACTS), digits.pick(QUERIES), more
        case "sub-agent":
            return digits.pick(REPLIES), prompt_text(digits)
        case "long":
            # It takes dozens of steps, so it is rare, and drawn only for connectors that react to it.
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


@lru_cache(maxsize=_KEPT)
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
    """Write intents out as a scenario. `surroundings` determine the number of sessions and the first agent."""
    session_count, first_agent = surroundings.pick((1, 2, 2, 3)), surroundings.pick((0, 0, 0, 1))
    writer = ScenarioWriter(
        session_count, features.agents, first_agent, can_resume="resume" in features.steps, lives_on=features.lives_on
    )
    for kind, session_number, details in chosen:
        writer.carry_out(kind, session_number, details)
    return writer.scenario(name)


_DRAWN = 40
"""Examples for a chunk: some are drawn twice."""
_DRAWN_WITH_OUTAGE = 6
"""Examples for a session with an outage: the first, the smallest of all, never has it."""
MOST_ATTEMPTS = 400
LONGEST_SHRINK_S = 60.0

Shows = Callable[[Scenario], bool]


@dataclass(frozen=True, slots=True)
class _Origin:
    """The source of scenarios: a chunk of a seed, or the place in it of a session with an outage."""

    seed: int
    chunk: int
    place: int | None = None
    outage: Outage | None = None

    def number(self) -> int:
        words = f"{self.seed}/{self.chunk}" + ("" if self.place is None else f"/{self.place}")
        return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8])


def draw(features: Features, seed: int, chunk: int) -> Sequence[Scenario]:
    """Draw the scenarios of a chunk, all different, at most CHUNK, named after chunk and place.

    The number of a scenario in the run determines its outage.
    """
    return [scenario for scenario, _ in _draw_chunk(features, seed, chunk)]


def _draw_chunk(features: Features, seed: int, chunk: int) -> Sequence[tuple[Scenario, _Origin]]:
    by_chance = _Origin(seed, chunk)
    outages = [outage_of(features, chunk * CHUNK + place) for place in range(CHUNK)]
    others = iter(_draw_different(features, by_chance, outages.count(None)))
    drawn: dict[str, tuple[Scenario, _Origin]] = {}
    for place, outage in enumerate(outages):
        origin = by_chance if outage is None else _Origin(seed, chunk, place, outage)
        scenario = next(others, None) if outage is None else _draw_with(outage, features, origin)
        if scenario is not None:
            drawn.setdefault(identity(scenario), (replace(scenario, name=f"generated-{chunk}-{place}"), origin))
    return list(drawn.values())


def _draw_different(features: Features, origin: _Origin, enough: int) -> Sequence[Scenario]:
    drawn: dict[str, Scenario] = {}

    class EnoughError(Exception):
        """Stops Hypothesis, which otherwise draws up to its own limit."""

    def keep(scenario: Scenario) -> None:
        if len(drawn) < enough and (origin.outage is None or holds(scenario, origin.outage)):
            drawn.setdefault(identity(scenario), scenario)
        if len(drawn) >= enough:
            raise EnoughError

    with contextlib.suppress(EnoughError):
        _run(features, origin, (Phase.generate,), keep)
    return list(drawn.values())


def _draw_with(outage: Outage, features: Features, origin: _Origin) -> Scenario:
    drawn = _draw_different(features, origin, 1)
    return drawn[0] if drawn else write(features, Digits(0), [("outage", 0, (outage, Digits(0)))], "generated")


def smallest(
    features: Features, seed: int, chunk: int, known: Sequence[bool], shows: Shows
) -> tuple[Scenario | None, int]:
    """Find the smallest scenario that `shows` is true of. Returns it and the number of scenarios tried.

    `known` are the answers of `shows` for the scenarios of the chunk, in their order; the search begins at the first
    true one, and returns None without one. Steps are removed first, then long prompts are shortened.
    """
    drawn = _draw_chunk(features, seed, chunk)
    answers = {identity(scenario): answer for (scenario, _), answer in zip(drawn, known, strict=False)}
    first = next((place for place, answer in enumerate(known) if answer), None)
    if first is None:
        return None, 0
    deadline = time.monotonic() + LONGEST_SHRINK_S
    tried = 0
    smallest_so_far: Scenario | None = None

    class ShownError(Exception):
        """Tells Hypothesis that an example is a hit."""

    def is_shown_by(scenario: Scenario) -> bool:
        # After enough attempts, or enough time, keep the smallest so far.
        nonlocal tried
        name = identity(scenario)
        if name not in answers:
            if tried >= MOST_ATTEMPTS or time.monotonic() > deadline:
                return False
            tried += 1
            answers[name] = shows(scenario)
        return answers[name]

    def attempt(scenario: Scenario) -> None:
        nonlocal smallest_so_far
        # Scenarios before the first known hit are not tried.
        if (smallest_so_far is not None or identity(scenario) in answers) and is_shown_by(scenario):
            # The last hit is the smallest, whatever Hypothesis tries in between.
            smallest_so_far = scenario
            raise ShownError

    with contextlib.suppress(ShownError):
        _run(features, drawn[first][1], (Phase.generate, Phase.shrink), attempt)
    left = remove_steps(smallest_so_far or drawn[first][0], is_shown_by)
    return shorten_prompts(left, is_shown_by), tried


def _run(features: Features, origin: _Origin, phases: Sequence[Phase], body: Callable[[Scenario], Any]) -> None:
    # Give every setting that changes the draws: a profile of the surrounding process must not.
    @hypothesis.seed(origin.number())
    @hypothesis.settings(
        max_examples=_DRAWN if origin.outage is None else _DRAWN_WITH_OUTAGE,
        phases=phases,
        database=None,
        deadline=None,
        derandomize=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        backend="hypothesis",
    )
    @hypothesis.given(sessions(features, outage=origin.outage))
    def run(scenario: Scenario) -> None:
        body(scenario)

    with _no_constants():
        run()


@contextlib.contextmanager
def _no_constants() -> Iterator[None]:
    """Keep Hypothesis from looking for constants in imported modules: no number that is drawn here could be one.

    It would parse the source of each module that is not in site-packages, a user's whole program under pytest, and
    write what it finds into `.hypothesis` in the current folder.
    """
    names = vars(sys.modules.get("hypothesis.internal.conjecture.providers", hypothesis))
    look_up = names.get("_get_local_constants")  # older releases have none
    if look_up is None:
        yield
        return
    names["_get_local_constants"] = lambda: names["_local_constants"]
    try:
        yield
    finally:
        names["_get_local_constants"] = look_up
