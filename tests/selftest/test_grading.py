"""Facts about when a mutant counts as killed, and the reference as passing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from signet_conformance.engine import Judged
from signet_conformance.finding import Finding, Judgement, Reason, Side, Verdict
from signet_conformance.selftest.grading import Grade, Selftest, grade, reasons_missing, unreached
from signet_conformance.selftest.mutants import Mutant, mutant, mutants
from signet_conformance.selftest.trials import Performed, Trial, scenario_of
from signet_conformance.trace import Header, Trace

NEVER_STARTS = mutant("never-starts")
WITH_ALSO = mutant("changes-the-agent")
COVERAGE = "SIG-COV-001"


def judged(verdicts: Mapping[str, str], daemon: Mapping[str, str] | None = None) -> Judged:
    """A trace with these verdicts."""

    def judgements(given: Mapping[str, str], side: Side) -> Mapping[str, Judgement]:
        return {
            name: Judgement(
                name, Verdict(verdict), Reason.BREACH, "so", (Finding(Verdict(verdict), (1,), "so", side=side),)
            )
            for name, verdict in given.items()
        }

    return Judged(
        Trace(Header(), (), ()), "0.145.7", judgements(verdicts, Side.CONNECTOR), judgements(daemon or {}, Side.DAEMON)
    )


def graded(one: Mutant | None, verdicts: Mapping[str, str], daemon: Mapping[str, str] | None = None) -> Grade:
    """The grade of a mutant, or of the reference, with these verdicts."""
    trial = Trial("x", scenario_of(one or NEVER_STARTS), "0.145", one)
    return grade(Performed(trial, judged(verdicts, daemon)), {})


def test_what_only_a_mutant_is_judged_by_is_not_reached() -> None:
    """What the reference or a variant passes is reached; what is open, or what only a mutant breaks, is not."""
    passes = graded(None, {"SIG-START-004": "PASS", "SIG-END-005": "INCONCLUSIVE"}, {"SIG-DAEMON-001": "PASS"})
    breaks = graded(NEVER_STARTS, {"SIG-START-004": "FAIL", "SIG-END-006": "WARN"})
    left = unreached([passes, breaks])
    assert {"SIG-START-004", "SIG-DAEMON-001", COVERAGE}.isdisjoint(left)
    assert {"SIG-END-005", "SIG-END-006"} <= set(left)


def test_reasons_are_held_against_what_is_reached() -> None:
    """A requirement without a reason is complained of, and a reason for one that is reached."""
    missing, needless = reasons_missing(["SIG-END-005"], {"SIG-END-006": "none can"})
    assert missing.startswith("nothing that conforms reaches SIG-END-005: add a scenario, a variant, or a reason")
    assert needless == "SIG-END-006 stands under unreached in schemas/mutants.json, and is reached"


def test_little_is_left_that_nothing_reaches() -> None:
    """Each of these is a requirement on the daemon that only a breach of the connector brings about."""
    assert set(mutants().unreached) == {"SIG-DAEMON-003", "SIG-DAEMON-004", "SIG-DAEMON-005"}


def test_its_own_verdict_kills() -> None:
    """A mutant is killed when its requirement has exactly the verdict that it must have."""
    outcome = graded(NEVER_STARTS, {"SIG-START-004": "FAIL", "SIG-END-005": "PASS"})
    assert (outcome.killed, outcome.complaints) == (True, [])


def test_another_verdict_of_its_own_does_not_kill() -> None:
    """A FAIL that was only a WARN, or INCONCLUSIVE, lets it survive."""
    for verdict in ("WARN", "INCONCLUSIVE", "PASS"):
        outcome = graded(NEVER_STARTS, {"SIG-START-004": verdict})
        assert not outcome.killed
        assert outcome.complaints[0].startswith("survived: SIG-START-004 is")


def test_an_unrelated_must_is_complained_of() -> None:
    """A MUST that breaks beside it, on either side, keeps it from green; a SHOULD is shown."""
    own = {"SIG-START-004": "FAIL"}
    must = graded(NEVER_STARTS, {**own, "SIG-END-001": "FAIL"})
    daemon = graded(NEVER_STARTS, own, {"SIG-DAEMON-001": "FAIL"})
    should = graded(NEVER_STARTS, {**own, "SIG-END-005": "WARN"})
    assert must.complaints == ["breaks SIG-END-001 too, which has nothing to do with it"]
    assert daemon.complaints == ["breaks SIG-DAEMON-001 too, which has nothing to do with it"]
    assert (should.complaints, should.beside) == ([], ["SIG-END-005"])


def test_a_crashed_rule_is_complained_of() -> None:
    """An ERROR is the kit's, whatever the level."""
    outcome = graded(NEVER_STARTS, {"SIG-START-004": "FAIL", "SIG-END-005": "ERROR"})
    assert outcome.complaints == ["breaks SIG-END-005 too, which has nothing to do with it"]


def test_what_breaks_necessarily_is_allowed_and_has_to() -> None:
    """A requirement under `also` may break, and is complained of when it does not."""
    both = graded(WITH_ALSO, {"SIG-AGENT-001": "FAIL", "SIG-AGENT-002": "FAIL"})
    alone = graded(WITH_ALSO, {"SIG-AGENT-001": "FAIL", "SIG-AGENT-002": "PASS"})
    assert both.complaints == []
    assert alone.complaints == ["does not break SIG-AGENT-002, which it names under also"]


def test_the_reference_breaks_nothing() -> None:
    """Any breach of the reference is complained of, but for what its scenario is known to bring about."""
    assert graded(None, {"SIG-END-005": "WARN"}).complaints == ["breaks SIG-END-005"]
    trial = Trial("x", replace(scenario_of(NEVER_STARTS), name="start-conflict"), "0.145")
    assert grade(Performed(trial, judged({"SIG-END-005": "WARN"})), {}).complaints == []


def test_a_trial_that_was_cut_short_is_red() -> None:
    """What could not be performed proves nothing."""
    trial = Trial("x", scenario_of(NEVER_STARTS), "0.145", NEVER_STARTS)
    outcome = grade(Performed(trial, judged({"SIG-START-004": "FAIL"}), "the connector hung"), {})
    assert (outcome.killed, outcome.complaints) == (False, ["could not be performed: the connector hung"])


def test_green_is_without_any_complaint() -> None:
    """One complaint, of a trial or of the whole, makes the selftest red."""
    clean, red = Grade(Trial("x", scenario_of(NEVER_STARTS), "0.145"), {}), graded(NEVER_STARTS, {})
    assert Selftest([clean]).green
    assert not Selftest([clean], ["a rule without a mutant"]).green
    assert not Selftest([clean, red]).green
