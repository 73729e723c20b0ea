"""How traces are judged: which sides, each trace for itself, and how the work on a long one is shared out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import engine, rules as rules_module
from signet_conformance.contract import daemon_requirements, harness_requirements, requirements
from signet_conformance.engine import judge, judge_each
from signet_conformance.facts import Recording
from signet_conformance.finding import Reason, Verdict
from signet_conformance.rules import rule_for
from signet_conformance.rules.outcome import PASS, Outcome
from signet_conformance.trace import Trace
from tests.support.case_traces import build
from tests.support.daemon_items import PROMPTED, STEP, Item, end, prompt, start
from tests.support.trace_parts import exchange, trace

FORGOTTEN = prompt({**PROMPTED, "sessionKnown": False})
BROKEN: Sequence[Item] = [STEP, start(), FORGOTTEN, prompt()]
"""A driven session whose first prompt, #3, is answered as if the session had never been started."""
RESTS = "SIG-PROMPT-006"
"""It rests on the answers to prompts."""


def recorded(folder: Path, items: Sequence[Item]) -> Trace:
    """A recording of these items."""
    return build(folder / "trace.jsonl", items, {"daemon_version": "0.145.7"})


def test_three_sides_are_judged() -> None:
    """Every requirement on the connector, on the daemon and on the harness, each side in the catalogue's order."""
    judged = judge(trace(exchange(1)))
    assert list(judged.judgements) == list(requirements())
    assert list(judged.daemon) == list(daemon_requirements())
    assert list(judged.harness) == list(harness_requirements())


@pytest.mark.parametrize(("items", "daemon"), [(BROKEN[1:], []), (BROKEN, list(daemon_requirements()))])
def test_sides_beside_some_requirements(tmp_path: Path, items: Sequence[Item], daemon: list[str]) -> None:
    """Asked for some requirements, a driven recording is held against the daemon's side too: it may excuse a breach."""
    judged = judge(recorded(tmp_path, items), frozenset({RESTS}))
    assert (list(judged.judgements), list(judged.daemon), list(judged.harness)) == ([RESTS], daemon, [])


@pytest.mark.parametrize("only", [None, frozenset({RESTS})])
def test_broken_answer_excuses_what_rests_on_it(tmp_path: Path, only: frozenset[str] | None) -> None:
    """Whether all or some requirements are asked for, the answer is named that broke the contract."""
    judgement = judge(recorded(tmp_path, BROKEN), only).judgements[RESTS]
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.message.startswith("rests on the answer of #3, which breaks SIG-DAEMON-011")


def test_answer_that_nobody_can_judge_excuses_nothing(tmp_path: Path) -> None:
    """Without an answer of the daemon's that surely breaks the contract, a breach is the connector's."""
    restarted = {"mark": "fault", "data": {"kind": "restart", "on": True}}
    judged = judge(recorded(tmp_path, [*BROKEN[:2], restarted, *BROKEN[2:]]))
    assert judged.daemon["SIG-DAEMON-011"].verdict is not Verdict.FAIL
    assert judged.judgements[RESTS].verdict is Verdict.WARN


def test_each_trace_is_judged_for_itself(tmp_path: Path) -> None:
    """What is said of a trace is the same whichever are judged beside it: another's broken answer excuses nothing."""
    (tmp_path / "other").mkdir()
    traces = [
        recorded(tmp_path, BROKEN),
        recorded(tmp_path / "other", [STEP, start(), prompt(), end(), end()]),
        trace(exchange(1, harness="")),
    ]
    together = judge_each(traces)
    assert [judged.trace for judged in together] == traces
    for judged, given in zip(together, traces, strict=True):
        alone = judge(given)
        assert judged.judgements == alone.judgements
        assert (judged.daemon, judged.harness) == (alone.daemon, alone.harness)


def test_later_requirement_that_is_kept_says_so_alone() -> None:
    """Only of a breach is it told what a later daemon would say."""
    gated = judge(trace(exchange(1, harness="openclaw", agentId="atlas-agent"))).judgements["SIG-AGENT-005"]
    assert (gated.reason, gated.message) == (
        Reason.GATED,
        "in force since daemon 0.161.2; this one is 0.145.7",
    )


class Shared:
    """What is handed to the workers: the groups of requirements, and by how many processes each is to be judged."""

    def __init__(self) -> None:
        self.groups: Sequence[Sequence[str]] = ()
        self.workers: list[int] = []

    def spread(
        self, work: Callable[[Sequence[str]], Any], groups: Sequence[Sequence[str]], workers: int
    ) -> Iterator[Any]:
        """Do the work here, group by group."""
        self.groups = groups
        self.workers.append(workers)
        return map(work, groups)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Shared:
    """What is shared out; a recording of three exchanges is a long one."""
    seen = Shared()
    monkeypatch.setattr(engine, "spread", seen.spread)
    monkeypatch.setattr(engine, "_LONG", 3)
    monkeypatch.setattr(rules_module, "_added", {})
    return seen


LONG = trace(*(exchange(number, harness="") for number in range(1, 4)))


@pytest.mark.parametrize(
    ("given", "workers", "shared_by"),
    [(LONG, 2, [2]), (LONG, 7, [7]), (LONG, 1, []), (trace(exchange(1), exchange(2)), 2, [])],
    ids=["long", "many", "one worker", "short"],
)
def test_long_recording_is_shared_out(shared: Shared, given: Trace, workers: int, shared_by: list[int]) -> None:
    """As many workers judge it as are asked for; a short one is judged here, and so is each without workers."""
    judge(given, workers=workers)
    assert shared.workers == shared_by


def test_work_is_not_shared_out_unless_asked_for(shared: Shared) -> None:
    """Who asks for no workers may have other threads, and forks of such a process are not safe."""
    judge(LONG)
    judge_each([LONG])
    assert shared.workers == []


def test_driven_recording_is_judged_in_one_process(shared: Shared, tmp_path: Path) -> None:
    """What an answer excuses is known in its turn only."""
    judged = judge(recorded(tmp_path, BROKEN), workers=2)
    assert judged.judgements[RESTS].verdict is Verdict.INCONCLUSIVE
    assert shared.workers == []


def test_workers_are_given_each_requirement_once(shared: Shared) -> None:
    """Every built-in rule is in one group, four at most; what takes longest is begun first."""
    judge(LONG, workers=2)
    names = [name for group in shared.groups for name in group]
    assert sorted(names) == sorted([*requirements(), *daemon_requirements()])
    texts = ("SIG-PROMPT-003", "SIG-PROMPT-010", "SIG-PROMPT-012", "SIG-END-012")
    first = [("SIG-PROMPT-007",), texts, ("SIG-DAEMON-001",)]
    assert [tuple(group) for group in shared.groups[:3]] == first
    assert {len(group) for group in shared.groups[3:-1]} == {4}
    assert 1 <= len(shared.groups[-1]) <= 4


def test_group_of_which_nothing_is_asked_is_left_out(shared: Shared) -> None:
    """Asked for few requirements, no worker is begun for none."""
    judge(LONG, frozenset({"SIG-END-012", "SIG-START-001"}), workers=2)
    assert [tuple(group) for group in shared.groups] == [("SIG-END-012",), ("SIG-START-001",)]


def test_rule_of_a_user_is_asked_here(shared: Shared) -> None:
    """What it yields may not be handed from process to process."""

    @rule_for("ACME-RULE-001")
    def rule(recording: Recording) -> Iterator[Outcome]:
        assert recording.calls
        yield PASS

    judged = judge(LONG, workers=2)
    assert "ACME-RULE-001" not in {name for group in shared.groups for name in group}
    assert judged.judgements["ACME-RULE-001"].verdict is Verdict.PASS


def test_shared_work_comes_to_the_same(shared: Shared) -> None:
    """The judgements of the daemon's side and of the connector's, in the catalogue's order."""
    alone = judge(LONG)
    judged = judge(LONG, workers=2)
    assert shared.workers == [2]
    assert list(judged.judgements.items()) == list(alone.judgements.items())
    assert list(judged.daemon.items()) == list(alone.daemon.items())
