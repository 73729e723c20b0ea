"""Hypothesis strategies for whole sessions: `sessions(features)` draws scenarios that a connector can perform.

A scenario is drawn as a list of intents ("clear in the second session") and written out against a model of
which sessions are open: an intent brings along what it needs (a start, the rest of a compaction), one that
makes no sense falls away, and at the close every session is ended. So whatever part of the list Hypothesis
takes away while it shrinks, a valid scenario is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from signet_conformance.scenarios.choices import DETAIL, Digits, number, weighted
from signet_conformance.scenarios.script import Scenario
from signet_conformance.scenarios.writing import Writer
from signet_conformance.trace import Declared
from signet_conformance.trace.fault_kinds import FAULT_KINDS

FEWEST_INTENTS = 4
"""Small sessions show little, and shrinking makes them from larger ones: intents can come to nothing."""
MOST_INTENTS = 12
LARGEST_PROMPT_BYTES = 100_000

_TOOLS: Mapping[str, frozenset[str]] = {
    "memory_search": frozenset({"memory-recall", "hooks-recall", "memory-search"}),
    "memory_store": frozenset({"memory-remember", "hooks-remember"}),
    "memory_get": frozenset({"memory-get"}),
    "memory_modify": frozenset({"memory-modify", "memory-patch"}),
    "memory_forget": frozenset({"memory-forget", "memory-delete"}),
}
"""Each tool with the operations of which its connector declares at least one."""

_WHOLE_STEPS = frozenset({"start", "prompt", "tool", "compact", "resume", "clear", "end"})
_HALVES = frozenset({"pre_compaction", "compaction_complete"})


@dataclass(frozen=True, slots=True)
class Features:
    """What the sessions of one target may hold.

    `agents` counts its declared agents; `steps` are the steps that its driver performs; `tools` those that
    it has; `restart` allows restarts of the daemon, `slow` the faults that cost a connector its whole bound.
    `lives_on` tells that its process outlives a session, and so knows later what was refused or never went out.
    """

    agents: int = 2
    steps: frozenset[str] = _WHOLE_STEPS | _HALVES
    tools: tuple[str, ...] = tuple(_TOOLS)
    restart: bool = True
    slow: bool = False
    lives_on: bool = True

    @classmethod
    def of(cls, declared: Declared, hello: Mapping[str, Any], *, can_restart: bool, lives_on: bool) -> Features:
        """The features of a target, from its profile and from its driver's answer to hello.

        A driver that does not list its `steps` is taken to perform all but the halves of a compaction.
        """
        listed = hello.get("steps")
        steps = frozenset(map(str, listed)) if isinstance(listed, list) else _WHOLE_STEPS
        known = declared.capabilities
        if known is not None and "compaction-complete" not in known:
            steps -= {"compact", *_HALVES}
        tools = tuple(tool for tool, needs in _TOOLS.items() if known is None or needs & set(known))
        return cls(
            agents=max(len(declared.agents), 1),
            steps=steps,
            tools=tools if "tool" in steps else (),
            restart=can_restart,
            slow=max(declared.bounds_s.values(), default=15.0) <= QUICK_BOUND_S,
            lives_on=lives_on,
        )


QUICK_BOUND_S = 1.5
"""Up to this bound a connector is made to wait for it now and then."""

_PROMPTS = (
    "Hello.",
    "Which database does Atlas Billing use?",
    "When does the export run?",
    "Rename the invoice module.",
    "Wie heißt der Mandant in Zürich? ✓",
    "User: who is paged?\nAssistant: the platform rota.",
    'Quote this: "{\\"role\\": \\"user\\"}"',
    "  Leading and trailing blanks \n",
)
_REPLIES = ("Understood.", "It does.", "発注は来週です。", "Assistant: done\n\nUser: thanks")
_SUMMARIES = (
    "Orders become invoices.",
    "The user asked for the billing pipeline; nothing was changed.",
    "Résumé : la facturation passe à gRPC 🚀",
    "User: a line that looks like a turn",
)
_FACTS = (
    "Invoices are numbered per calendar year.",
    "The ledger talks gRPC streaming.",
    "Exports are kept for ninety days.",
    "Der Mandant sitzt in Zürich.",
)
_QUERIES = ("how are invoices numbered", "gRPC", "ninety days of exports", "Zürich")
_SIZES = (1_000, 10_000, LARGEST_PROMPT_BYTES, LARGEST_PROMPT_BYTES)


_PROMPT_KINDS = weighted({"line": 48, "strange": 15, "long": 1})


def prompts() -> st.SearchStrategy[str]:
    """The text of a user's turn: mostly a line, sometimes of any script, now and then up to 100 kB. Never blank."""
    return number(DETAIL).map(lambda detail: _prompt(Digits(detail)))


def _prompt(digits: Digits) -> str:
    line, kind = digits.pick(_PROMPTS), digits.pick(_PROMPT_KINDS)
    if kind == "strange":
        return f"{line} {digits.unicode_text()}"
    return _repeated(line, digits.pick(_SIZES)) if kind == "long" else line


def _repeated(line: str, size: int) -> str:
    """Numbered lines of about `size` bytes."""
    each = f"{line} "
    count = max(size // (len(each.encode()) + 6), 1)
    return "".join(f"{number:05} {each}" for number in range(count)) if count > 1 else line


def faults(features: Features) -> st.SearchStrategy[Mapping[str, Any]]:
    """A fault of the recorder for one or two steps, or for one request: `fault`, `match`, `count`, `lasts` (steps)."""
    return number(DETAIL).map(lambda detail: _fault(features, Digits(detail)))


_STATUSES: Mapping[str, int] = {"500": 5, "503": 4, "401": 2, "409": 1, "429": 2}
"""How often each status is drawn; the row of `status` in the table of faults holds their sum."""


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
"""A slow fault is one in some hundred: each takes as long as dozens of other steps."""
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
    """The places where a fault may be; None where it may be anywhere.

    Two requirements that a connector could not meet at once are never asked of it:

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
    """A fault at one of some places, or where it may be if that is at none of them."""
    kind = digits.pick(_ALL_KINDS if features.slow else _QUICK_KINDS)
    lasts = digits.pick(_LASTS)
    if kind == "refuse":
        return {"fault": {"kind": kind}, "lasts": lasts or 1}
    allowed = _allowed(features, kind)
    path = digits.pick(places if allowed is None else [place for place in places if place in allowed] or allowed)
    step: dict[str, Any] = {"fault": _spec(kind), "lasts": lasts}
    if path is not None:
        step["match"] = {"path": path}
    if lasts is None:
        step["count"] = 1
    return step


def _spec(kind: str) -> Mapping[str, Any]:
    if kind in ("429", "503"):
        return {"kind": "status", "status": int(kind), "retry_after_s": 1}
    if kind.isdigit():
        return {"kind": "status", "status": int(kind)}
    return {"kind": kind, "delay_s": "beyond"} if "delay_s" in FAULT_KINDS[kind].needs else {"kind": kind}


def intents(features: Features) -> st.SearchStrategy[Intent]:
    """One intent: what, in which session (by number), and with what."""
    weights = {"start": 4, "prompt": 20, "end": 2, "fault": 8}
    weights |= {name: 7 for name in ("clear", "resume") if name in features.steps}
    if features.tools:
        weights["tool"] = 10
    if "compact" in features.steps:
        weights["compaction"] = 10
    if features.restart:
        weights["restart"] = 1
    drawn = st.tuples(number(sum(weights.values())), number(4), number(DETAIL))
    table = weighted(weights)
    return drawn.map(
        lambda intent: (table[intent[0]], (0, 0, 1, 2)[intent[1]], _details(features, table[intent[0]], intent[2]))
    )


Intent = tuple[str, int, Any]


def _details(features: Features, what: str, detail: int) -> Any:
    digits = Digits(detail)
    match what:
        case "prompt":
            return digits.pick(_REPLIES), _prompt(digits)
        case "tool":
            return digits.pick(features.tools), digits.pick(_FACTS), digits.pick(_QUERIES)
        case "fault":
            return _fault(features, digits)
        case "compaction":
            halves = features.steps >= _HALVES and digits.pick((True, True, False))
            fault = _fault(features, digits, _IN_A_COMPACTION) if halves and digits.pick((False, True)) else None
            summary = digits.pick(_SUMMARIES) if digits.pick((True, False)) else f"Summary {digits.unicode_text()}"
            return summary, halves, fault
        case "end" | "clear" | "resume":
            # What is owed at a boundary goes wrong most easily, and few faults would meet one by chance.
            return _fault(features, digits, _AT_A_BOUNDARY) if digits.pick((False, False, True)) else None
        case "restart":
            return digits.pick(range(8)) == 7
        case _:
            return None


def sessions(features: Features | None = None, name: str = "generated") -> st.SearchStrategy[Scenario]:
    """Whole scenarios: one to three sessions of one or several agents, interleaved, with faults between their steps.

    Every session is used only while it is open and is ended at the close; only steps, tools and agents of
    `features` occur. Shrinks towards one session without a prompt, and by whole intents.
    """
    allowed = features or Features()
    listed = st.lists(intents(allowed), min_size=FEWEST_INTENTS, max_size=MOST_INTENTS)
    return st.builds(
        lambda surroundings, chosen: write(allowed, Digits(surroundings), chosen, name), number(16), listed
    )


def write(features: Features, surroundings: Digits, chosen: Sequence[Intent], name: str) -> Scenario:
    """The scenario of some intents; `surroundings` say over how many sessions, and with which agent they begin."""
    several, turned = surroundings.pick((1, 2, 2, 3)), surroundings.pick((0, 0, 0, 1))
    writer = Writer(several, features.agents, turned, can_resume="resume" in features.steps, lives_on=features.lives_on)
    for what, which, details in chosen:
        writer.carry_out(what, which, details)
    return writer.scenario(name)
