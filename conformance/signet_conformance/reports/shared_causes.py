"""Mistakes that break several requirements, each in its own way: told once, by the sentence that names the mistake.

A mistake is recognised over a whole run, by what its traces never or always show. Where that is in doubt, the breaches
stay apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from signet_conformance.facts import END, PROMPT, START
from signet_conformance.reports.problems import Problem
from signet_conformance.rules.host_ids import SUB_AGENTS_KEY

COVERAGE = "SIG-COV-001"
_NEVER_CALLED = ("told", COVERAGE, "never called")
_MOST = 0.5
"""The least share of the traces with an operation in which a hook has to fire twice, to fire twice by itself."""
_TRACES = 3
"""Fewer traces do not tell a hook that fires twice from one that did so once."""


class Seen(Struct, frozen=True):
    """What the traces of a run show: how many of them call each operation.

    `absent` are the operations that are declared, and that a whole run never called.
    """

    called: Counter[str]
    absent: Collection[str]


class SharedCause(Struct, frozen=True):
    """A mistake, as a sentence, with the requirement that shows it best and all of its problems."""

    says: str
    leads: str
    problems: Sequence[Problem]


def shared_causes(problems: Sequence[Problem], seen: Seen) -> Iterator[SharedCause]:
    """Recognise the mistakes in the problems of a run; each problem belongs to one of them at most."""
    left = list(problems)
    for recognise in _MISTAKES:
        found = recognise(left, seen)
        if found is not None and len({name for problem in found.problems for name in problem.breaches}) > 1:
            yield found
            told = {id(problem) for problem in found.problems}
            left = [problem for problem in left if id(problem) not in told]


_Kinds = Mapping[str, Collection[str] | None]
"""Requirement to the kinds of its breaches that a mistake brings about; None for all of them."""
_WITHOUT_A_START: _Kinds = {
    "SIG-START-004": None,
    "SIG-PROMPT-006": None,
    "SIG-CKPT-001": {"outside its session"},
    "SIG-CMP-007": None,
    "SIG-END-006": {"second end"},
    "SIG-END-009": {"goes on"},
}
_WITHOUT_AN_END: _Kinds = {"SIG-END-005": None, "SIG-END-010": {"never ended"}, "SIG-START-005": None}
_SUB_AGENT: _Kinds = {"SIG-START-007": None, "SIG-AGENT-001": None, "SIG-AGENT-002": None, "SIG-AGENT-004": None}


def _never(operation: str, says: str, leads: str, kinds: _Kinds) -> Callable[..., SharedCause | None]:
    def recognise(problems: Sequence[Problem], seen: Seen) -> SharedCause | None:
        if seen.called[operation] or not any(leads in problem.breaches for problem in problems):
            return None
        only = set(seen.absent) == {operation}
        mine = [p for p in problems if _is_of(p, kinds) or (only and p.key == _NEVER_CALLED)]
        return SharedCause(says, leads, mine)

    return recognise


def _is_of(problem: Problem, kinds: _Kinds) -> bool:
    return all(name in kinds and _kind(problem) in (kinds[name] or {_kind(problem)}) for name in problem.breaches)


def _kind(problem: Problem) -> str:
    return problem.key[-1]


_TWICE: Mapping[str, tuple[str, str | None]] = {
    PROMPT: ("SIG-PROMPT-003", "twice"),
    END: ("SIG-END-006", "second end"),
    START: ("SIG-START-005", None),
    "compaction-complete": ("SIG-CMP-004", None),
}
"""Operation to the requirement that its hook breaches where it fires twice, and to the kind of breach."""
_REPEATS = ("SIG-HTTP-010", "SIG-HTTP-011", "SIG-HTTP-015")


def _fires_twice(problems: Sequence[Problem], seen: Seen) -> SharedCause | None:
    doubled: dict[str, Problem] = {}
    for operation, (name, kind) in _TWICE.items():
        for problem in problems:
            shows = name in problem.breaches and kind in (None, _kind(problem))
            traces = len(problem.traces)
            if shows and traces >= max(_TRACES, _MOST * seen.called[operation]):
                doubled.setdefault(operation, problem)
    if not doubled:
        return None
    first = max(doubled, key=lambda operation: len(doubled[operation].traces))
    leads, _ = _TWICE[first]
    own = {id(problem) for problem in doubled.values()}
    mine = [
        problem
        for problem in problems
        if id(problem) in own
        or leads in problem.breaches
        or (problem.breaches.keys() <= {*_REPEATS} and problem.calls.keys() <= doubled.keys())
        or (END in doubled and problem.key == ("told", "SIG-END-009", "goes on"))
    ]
    hooks = "hook fires" if len(doubled) == 1 else "hooks fire"
    return SharedCause(f"its {hooks} twice: {', '.join(doubled)}", leads, mine)


def _sub_agent(problems: Sequence[Problem], _: Seen) -> SharedCause | None:
    leads = "SIG-START-007"
    if not any(leads in problem.breaches for problem in problems):
        return None
    return SharedCause(
        "a sub-agent is taken for an agent of its own", leads, [p for p in problems if _is_of(p, _SUB_AGENT)]
    )


_OF_ONE_KEY = frozenset(
    {
        "SIG-SESS-001",
        "SIG-START-005",
        "SIG-PROMPT-006",
        "SIG-PROMPT-012",
        "SIG-PROMPT-013",
        "SIG-END-005",
        "SIG-END-006",
        "SIG-END-007",
        "SIG-END-009",
        "SIG-END-012",
        "SIG-END-013",
    }
)
"""What breaks too where a sub-agent starts, speaks and ends under the key of the session that called it."""


def _sub_agent_s_session(problems: Sequence[Problem], _: Seen) -> SharedCause | None:
    leads = "SIG-SESS-005"
    shared = [problem for problem in problems if leads in problem.breaches and _kind(problem) == SUB_AGENTS_KEY]
    if not shared:
        return None
    traces = set[int]().union(*(problem.traces for problem in shared))
    follows = [p for p in problems if p.breaches.keys() <= _OF_ONE_KEY and p.traces <= traces]
    says = "a sub-agent's start and end are sent for the session that called it"
    return SharedCause(says, leads, [*shared, *follows])


_SILENT = {"silent", "not again"}
_NEVER_HEARD = (("told", "SIG-PROMPT-011", "never submitted"), ("told", "SIG-END-005", "no end"))
"""What a connector breaks too that does not call any more, or whose handler throws."""


def _falls_silent(problems: Sequence[Problem], _: Seen) -> SharedCause | None:
    silent = [problem for problem in problems if _kind(problem) in _SILENT]
    leads = next((name for name in ("SIG-FAIL-001", "SIG-FAIL-003") if any(name in p.breaches for p in silent)), None)
    if leads is None:
        return None
    says = "after trouble with the daemon the connector falls silent"
    return SharedCause(says, leads, [*silent, *_following(silent, problems)])


def _loses_turns(problems: Sequence[Problem], _: Seen) -> SharedCause | None:
    leads = "SIG-LOAD-001"
    lost = [problem for problem in problems if leads in problem.breaches and _kind(problem).startswith("lost ")]
    events = [_kind(problem).removeprefix("lost ") for problem in lost]
    if not events:
        return None
    # A fault of the kit's is not why a handler throws that throws without one too.
    lost += [problem for problem in problems if _kind(problem) in {f"blocked {event}" for event in events}]
    says = f"the user's turn is lost in {', '.join(dict.fromkeys(events))}"
    return SharedCause(says, leads, [*lost, *_following(lost, problems)])


def _following(reasons: Sequence[Problem], problems: Sequence[Problem]) -> Iterator[Problem]:
    """What is never heard in the traces of some problems, and in no other trace."""
    traces = set[int]().union(*(problem.traces for problem in reasons))
    yield from (problem for problem in problems if problem.key in _NEVER_HEARD and problem.traces <= traces)


_MISTAKES = (
    _loses_turns,
    _never(START, "the connector never starts a session", "SIG-START-004", _WITHOUT_A_START),
    _never(END, "the connector never ends a session", "SIG-END-005", _WITHOUT_AN_END),
    _fires_twice,
    _sub_agent,
    _sub_agent_s_session,
    _falls_silent,
)
