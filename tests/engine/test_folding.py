"""How the findings of a rule become one verdict, and how a rule that crashes becomes the kit's own error."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import pytest

from signet_conformance import rules as rules_module
from signet_conformance.contract import requirements
from signet_conformance.engine import MAX_FINDINGS, exit_status, folding, judge
from signet_conformance.errors import UsageError
from signet_conformance.facts import Recording
from signet_conformance.finding import Finding, Judgement, Reason, Verdict
from signet_conformance.rules import rule_for
from signet_conformance.rules.outcome import PASS, Outcome, no_subject
from tests.support.trace_parts import exchange, trace

OWN = "ACME-RULE-001"
LAW = ("FAIL", "WARN", "PASS", "INCONCLUSIVE")
"""The law's order: the first that occurs among the findings is the verdict."""


@pytest.fixture(autouse=True)
def own_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules registered by a test end with it."""
    monkeypatch.setattr(rules_module, "_added", {})


def _register(*outcomes: Outcome, name: str = OWN, crash: Exception | None = None) -> None:
    @rule_for(name)
    def rule(recording: Recording) -> Iterator[Outcome]:
        assert recording.calls
        yield from outcomes
        if crash is not None:
            raise crash


def _found(verdict: str, number: int = 1, message: str = "") -> Outcome:
    return PASS if verdict == "PASS" else Finding(Verdict(verdict), (number,), message or f"{verdict} {number}")


def _own() -> Judgement:
    return judge(trace(exchange(1)), frozenset({OWN})).judgements[OWN]


@pytest.mark.parametrize(
    "verdicts", [order for size in (1, 2, 3, 4) for some in combinations(LAW, size) for order in permutations(some)]
)
def test_the_highest_finding_is_the_verdict(verdicts: tuple[str, ...]) -> None:
    """FAIL before WARN before PASS before INCONCLUSIVE, whatever the order in which they were found."""
    _register(*(_found(verdict, number) for number, verdict in enumerate(verdicts, start=1)))
    judgement = _own()
    highest = min(verdicts, key=LAW.index)
    assert judgement.verdict == highest
    assert judgement.subjects == len(verdicts)
    expected = [] if highest == "PASS" else [verdicts.index(highest) + 1]
    assert [finding.exchanges[0] for finding in judgement.findings] == expected


def test_no_finding_is_not_applicable() -> None:
    """A rule that found no subject is neither passed nor failed."""
    _register()
    judgement = _own()
    assert (judgement.verdict, judgement.reason, judgement.subjects) == (Verdict.NOT_APPLICABLE, Reason.NO_SUBJECT, 0)


def test_why_nothing_is_subject_to_it_is_told() -> None:
    """Where a rule knows why, the first reason stands in place of the usual words."""
    _register(no_subject("the application owns it"), no_subject("nobody owns it"))
    judgement = _own()
    assert (judgement.verdict, judgement.reason) == (Verdict.NOT_APPLICABLE, Reason.NO_SUBJECT)
    assert (judgement.message, judgement.findings) == ("the application owns it", ())


@pytest.mark.parametrize(("count", "words"), [(1, "1 subject"), (2, "2 subjects"), (3, "3 subjects")])
def test_subjects_that_conform_are_counted(count: int, words: str) -> None:
    """One is told in the singular."""
    _register(*[PASS] * count)
    assert _own().message == words


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [("FAIL", Reason.BREACH), ("WARN", Reason.BREACH), ("PASS", Reason.CONFORMING), ("INCONCLUSIVE", Reason.UNDECIDED)],
)
def test_the_reason_of_a_verdict(verdict: str, reason: Reason) -> None:
    """Each verdict has its reason code."""
    _register(_found(verdict))
    assert _own().reason is reason


def test_one_pass_outweighs_any_number_of_undecided() -> None:
    """A subject that was seen to conform counts more than those that could not be judged."""
    _register(*[_found("INCONCLUSIVE", n) for n in range(1, 50)], PASS)
    assert _own().verdict is Verdict.PASS


def test_findings_beyond_the_bound_name_their_exchanges_alone() -> None:
    """Findings beyond the bound are kept without what was sent, so that each broken exchange is marked and counted."""
    _register(*[Finding(Verdict.FAIL, (n,), "no", received=n) for n in range(1, MAX_FINDINGS + 51)])
    judgement = _own()
    assert {finding.exchanges for finding in judgement.findings} == {(n,) for n in range(1, MAX_FINDINGS + 51)}
    assert judgement.subjects == MAX_FINDINGS + 50
    assert [finding.received for finding in judgement.findings] == [*range(1, MAX_FINDINGS + 1), *[None] * 50]


def test_a_breach_after_many_findings_is_kept() -> None:
    """However many undecided findings come first, the first breach is not lost."""
    _register(*[_found("INCONCLUSIVE", n) for n in range(1, MAX_FINDINGS + 51)], _found("FAIL", 7))
    judgement = _own()
    assert judgement.verdict is Verdict.FAIL
    assert [finding.exchanges for finding in judgement.findings] == [(7,)]


def test_messages_are_folded() -> None:
    """A message that occurs often stands once, and of many the first three stand."""
    _register(*[_found("FAIL", n, message) for n, message in enumerate("aabacad", start=1)])
    assert _own().message == "a; b; c …"


def test_three_messages_stand_alone() -> None:
    """Where three messages are all there are, nothing says that there are more."""
    _register(*[_found("FAIL", n, message) for n, message in enumerate("abca", start=1)])
    assert _own().message == "a; b; c"


def test_findings_beyond_the_utmost_bound_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after the utmost bound is a subject, and no finding is kept of it."""
    monkeypatch.setattr(folding, "MOST_FINDINGS", MAX_FINDINGS + 10)
    _register(PASS, *[_found("FAIL", n) for n in range(1, MAX_FINDINGS + 51)])
    judgement = _own()
    assert len(judgement.findings) == MAX_FINDINGS + 10
    assert judgement.subjects == MAX_FINDINGS + 51


def test_a_crash_is_the_kits_error() -> None:
    """A rule that raises is reported as the kit's failure, with the kind of failure, not as the connector's."""
    _register(_found("FAIL"), crash=KeyError("sessionKey"))
    judgement = _own()
    assert (judgement.verdict, judgement.reason) == (Verdict.ERROR, Reason.CRASHED)
    assert "KeyError" in judgement.message
    assert judgement.findings == ()


def test_a_crash_ends_no_other_rule() -> None:
    """The other requirements are judged as if the crashed rule were not there."""
    before = judge(trace(exchange(1))).judgements
    _register(crash=ValueError("x" * 5_000))
    after = judge(trace(exchange(1))).judgements
    assert {name: j for name, j in after.items() if name != OWN} == before
    assert len(after[OWN].message) <= 300


def test_own_rules_come_last() -> None:
    """Judgements stand in the catalogue's order, those of users' rules after them in theirs."""
    _register(PASS, name="ACME-B")
    _register(PASS, name="ACME-A")
    assert list(judge(trace(exchange(1))).judgements) == [*requirements(), "ACME-B", "ACME-A"]


def test_only_some_are_judged() -> None:
    """Of the requirements asked for, known ones are judged, in the catalogue's order."""
    some = frozenset({"SIG-START-001", "SIG-HTTP-001", "SIG-NOPE-999"})
    assert list(judge(trace(exchange(1)), some).judgements) == ["SIG-HTTP-001", "SIG-START-001"]


@pytest.mark.parametrize("taken", ["SIG-HTTP-001", "SIG-START-001", OWN], ids=["written", "field check", "own"])
def test_an_id_has_one_rule(taken: str) -> None:
    """A second rule for an id is refused with a way out, whether the first is built in or one's own."""
    _register(PASS)
    with pytest.raises(UsageError, match=f"{taken} has a rule already") as caught:
        _register(PASS, name=taken)
    assert caught.value.remedy


def test_every_requirement_has_a_rule() -> None:
    """Nothing in the catalogue is left unjudged."""
    assert set(rules_module.rules()) == set(requirements())


def test_a_registered_rule_is_given_back() -> None:
    """The decorator leaves the function as it is, so that it can be called and tested."""

    def rule(_: Recording) -> Iterator[Outcome]:
        yield PASS

    assert rule_for(OWN)(rule) is rule


@pytest.mark.parametrize(
    ("verdicts", "status", "strict"),
    [
        ([], 3, 3),
        (["NOT-APPLICABLE"], 3, 3),
        (["INCONCLUSIVE", "NOT-APPLICABLE"], 3, 3),
        (["PASS"], 0, 0),
        (["PASS", "INCONCLUSIVE", "NOT-APPLICABLE"], 0, 0),
        (["WARN"], 0, 1),
        (["PASS", "WARN"], 0, 1),
        (["FAIL"], 1, 1),
        (["FAIL", "WARN", "PASS"], 1, 1),
        (["ERROR"], 4, 4),
        (["ERROR", "FAIL", "PASS"], 4, 4),
    ],
)
def test_the_exit_status(verdicts: list[str], status: int, strict: int) -> None:
    """0 conforming, 1 a breach (a WARN too when strict), 3 nothing was tested, 4 the kit failed."""
    yielded = [Verdict(verdict) for verdict in verdicts]
    assert exit_status(yielded) == status
    assert exit_status(yielded, strict=True) == strict


@pytest.mark.parametrize(
    ("verdicts", "status"), [(["PASS"], 3), (["PASS", "WARN"], 3), (["FAIL", "PASS"], 1), (["ERROR", "FAIL"], 4)]
)
def test_silence_alone_tests_nothing(verdicts: list[str], status: int) -> None:
    """Where nothing was recorded a PASS is no test passed; a FAIL and an ERROR stay what they are."""
    assert exit_status([Verdict(verdict) for verdict in verdicts], recorded=False) == status
