"""Facts about what excuses a breach: a broken answer of the daemon, and what was sent and is not in the recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from signet_conformance.contract import requirements
from signet_conformance.facts import Recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.excuses import EXCUSES, excuse_breach
from tests.support.case_traces import build
from tests.support.daemon_items import STEP, Item, prompt, start

ITEMS = [STEP, start(), prompt(), prompt(sessionKey="k2"), prompt(sessionKey=""), prompt(), prompt()]
"""Numbered from 1: a step; a start and prompts of one session, but #4 of another and #5 of none."""
PROMPTS = "SIG-PROMPT-006"
"""It rests on the answers to prompts."""


def judged(
    folder: Path, broken: Mapping[int, str], finding: Finding, requirement: str = PROMPTS, items: Sequence[Item] = ITEMS
) -> Finding:
    """What is left of a finding over these items."""
    return excuse_breach(requirement, finding, Recording(build(folder / "trace.jsonl", items, shared=False)), broken)


def breach(*exchanges: int, verdict: Verdict = Verdict.FAIL) -> Finding:
    """A finding that names these exchanges."""
    return Finding(verdict, exchanges, "a breach")


@pytest.mark.parametrize(
    ("broken", "exchanges", "is_excused"),
    [
        (3, (6,), True),
        (3, (3,), True),
        (2, (2,), True),
        (2, (6,), False),
        (4, (6,), False),
        (3, (4,), False),
        (4, (4,), True),
        (5, (6,), True),
        (7, (6,), False),
        (6, (7, 3), True),
        (6, (3, 7), True),
        (7, (3, 6), False),
        (3, (99,), False),
        (5, (99,), True),
        (3, (), False),
    ],
)
def test_answer_that_excuses(broken: int, exchanges: tuple[int, ...], is_excused: bool, tmp_path: Path) -> None:
    """One that the finding names, or an earlier one to an operation it rests on, of its session or of none."""
    finding = breach(*exchanges)
    left = judged(tmp_path, {broken: "SIG-DAEMON-011"}, finding)
    assert (left is not finding) is is_excused
    assert left.verdict is (Verdict.INCONCLUSIVE if is_excused else Verdict.FAIL)


def test_what_an_excuse_says(tmp_path: Path) -> None:
    """The answer, what it breaks, and the exchanges of the finding that were recorded; the first answer counts."""
    left = judged(tmp_path, {6: "SIG-DAEMON-001", 3: "SIG-DAEMON-011"}, breach(7, 99, verdict=Verdict.WARN))
    assert left.exchanges == (7,)
    assert left.message.startswith("rests on the answer of #6, which breaks SIG-DAEMON-001:")


@pytest.mark.parametrize("verdict", [Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE])
def test_only_a_breach_is_excused(verdict: Verdict, tmp_path: Path) -> None:
    """Whatever else a rule says stays as it is."""
    finding = breach(6, verdict=verdict)
    assert judged(tmp_path, {3: "SIG-DAEMON-011"}, finding) is finding


@pytest.mark.parametrize("requirement", ["SIG-START-001", "ACME-RULE-001"])
def test_a_requirement_that_rests_on_no_answer(requirement: str, tmp_path: Path) -> None:
    """The contract's own, or a user's: nothing excuses a breach of it."""
    finding = breach(3)
    assert judged(tmp_path, {3: "SIG-DAEMON-011"}, finding, requirement) is finding


def test_a_recording_without_steps_is_judged_by_the_letter(tmp_path: Path) -> None:
    """An answer there may have been shortened by hand."""
    finding = breach(2)
    assert judged(tmp_path, {2: "SIG-DAEMON-011"}, finding, items=ITEMS[1:]) is finding


def test_hook_that_may_be_lost_excuses_a_breach(tmp_path: Path) -> None:
    """Nothing listened between the calls of the finding: it is undecided, says why, and names what the breach named."""
    away = [{"mark": "fault", "data": {"kind": "refuse", "on": on}} for on in (True, False)]
    items = [STEP, start(), prompt(), *away, prompt()]
    left = judged(tmp_path, {}, breach(3, 6), PROMPTS, items)
    assert (left.verdict, left.exchanges) == (Verdict.INCONCLUSIVE, (3, 6))
    assert left.message == "no daemon listened for a while in between: a start may be lost"
    before = judged(tmp_path, {}, breach(2, 3), PROMPTS, items)
    assert before.verdict is Verdict.FAIL


@pytest.mark.parametrize(("index", "left"), [(0, Verdict.FAIL), (4, Verdict.INCONCLUSIVE)])
def test_step_whose_mark_is_missing_excuses_a_breach(index: int, left: Verdict, tmp_path: Path) -> None:
    """A requirement that compares a request with the steps cannot be judged without all of them."""
    items = [{"mark": "step", "data": {"step": "prompt", "session": "s1", "index": index}}, prompt()]
    assert judged(tmp_path, {}, breach(2), "SIG-PROMPT-012", items).verdict is left


@pytest.mark.parametrize(("requirement", "left"), [("SIG-PROMPT-012", Verdict.INCONCLUSIVE), (PROMPTS, Verdict.FAIL)])
def test_hook_of_a_second_installation_is_one_breach(requirement: str, left: Verdict, tmp_path: Path) -> None:
    """What breaks a requirement because each hook is sent twice is SIG-LOAD-005's; without that mark it stands."""
    items = [{"mark": "reinstalled", "data": {"how": "once", "twice": ["a hook"]}}, STEP, prompt(), prompt()]
    assert judged(tmp_path, {}, breach(4, 3), requirement, items).verdict is left
    assert judged(tmp_path, {}, breach(4, 3), requirement, [STEP, *items]).verdict is Verdict.FAIL


def test_excuse_is_for_the_breaches_that_it_names(tmp_path: Path) -> None:
    """Another breach of the same requirement stands."""
    items = [{"mark": "fault", "data": {"kind": "refuse", "on": True}}, STEP, prompt()]
    lost = Finding(Verdict.FAIL, (3,), "no start", fold="unstarted key")
    session = [{"mark": "step", "data": {"step": "start", "session": "s1"}}, *items[2:]]
    opened = [items[0], *session]
    assert judged(tmp_path, {}, lost, "SIG-PROMPT-005", opened).verdict is Verdict.INCONCLUSIVE
    other = Finding(Verdict.FAIL, (3,), "no key", fold="keyless turn")
    assert judged(tmp_path, {}, other, "SIG-PROMPT-005", opened) is other


def test_every_excuse_is_of_a_requirement_on_the_connector() -> None:
    """An id that was mistyped would excuse nothing, without a word."""
    assert set(EXCUSES) <= set(requirements())
