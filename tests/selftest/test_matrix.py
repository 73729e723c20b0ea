"""Facts about how the kill matrix is printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from signet_conformance.contract import catalogue
from signet_conformance.engine import JudgedTrace
from signet_conformance.files.documents import demand
from signet_conformance.finding import Finding, Judgement, Reason, Side, Verdict
from signet_conformance.reports.html.kill_matrix import KillMatrix
from signet_conformance.selftest.matrix import (
    Grade,
    Selftest,
    as_json,
    closing_line,
    complaint_lines,
    grade,
    matrix_lines,
    progress_line,
    reasons_missing,
    unreached,
    unreached_lines,
)
from signet_conformance.selftest.mutants import Mutant, mutant, mutants
from signet_conformance.selftest.trials import PerformedTrial, Trial, scenario_of
from signet_conformance.trace import Header, Trace


def trial(name: str | None) -> Trial:
    """The trial of a mutant, or of the reference."""
    broken = None if name is None else mutant(name)
    return Trial(name or "reference-0-145-plain", scenario_of(broken or mutant("never-ends")), "0.145", broken)


KILLED = Grade(trial("ends-another-session"), {"SIG-END-002": Verdict.FAIL, "SIG-END-005": Verdict.WARN})
SURVIVED = Grade(trial("never-ends"), {}, ["survived: SIG-END-005 is not in breach, not WARN"])
PASSES = Grade(trial(None), {})
SELFTEST = Selftest([PASSES, KILLED, SURVIVED], ["SIG-END-006 has a rule and no mutant"])
EVERY = Selftest(
    [Grade(trial(name), {broken.breaks: Verdict(broken.verdict)}) for name, broken in mutants().mutants.items()]
)


def test_a_requirement_has_its_mutants_in_its_line() -> None:
    """A survivor is marked, and a mutant of another requirement stands in parentheses."""
    assert matrix_lines(SELFTEST, {"SIG-END-008": "none can"}) == [
        "SIG-END-002     MUST   ends-another-session",
        "SIG-END-005     SHOULD !never-ends (ends-another-session)",
        "SIG-END-008     SHOULD exempt: none can",
    ]


def test_what_nothing_reaches_is_named_with_its_reason() -> None:
    """Each requirement has a line with why; where everything is reached nothing is said."""
    assert unreached_lines(SELFTEST) == []
    left = Selftest([], unreached={"SIG-DAEMON-003": "a connector would have to change its path"})
    assert unreached_lines(left) == [
        "Passed in no scenario, by neither the reference nor a variant:",
        "  SIG-DAEMON-003 a connector would have to change its path",
    ]
    assert as_json(left, {}, 1.0)["unreached"] == dict(left.unreached)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_fit_the_terminal(width: int) -> None:
    """No line is wider than the terminal, and a wide one is not filled beyond comfort."""
    lines = matrix_lines(EVERY, mutants().exempt, width)
    assert max(map(len, lines)) <= min(width, 120)
    assert sum(line.startswith("SIG-") for line in lines) == len(catalogue())


def test_colour_only_on_request() -> None:
    """Without colour there is no escape; with it a survivor is coloured and no word changes."""
    plain, coloured = matrix_lines(SELFTEST, {}), matrix_lines(SELFTEST, {}, colour=True)
    assert "\x1b" not in "".join(plain)
    assert "\x1b[1;31m" in "".join(coloured)
    import click

    assert [click.unstyle(line) for line in coloured] == plain


def test_complaints_say_what_is_red() -> None:
    """Each complaint names the whole, or the mutant with what it does."""
    assert list(complaint_lines(SELFTEST, 120)) == [
        "RED SIG-END-006 has a rule and no mutant",
        "RED never-ends, which does not end its sessions: survived: SIG-END-005 is not in breach, not WARN",
    ]


def test_progress_has_a_line_a_trial() -> None:
    """It says by what a mutant was killed, or why it was not."""
    assert progress_line(KILLED) == "ends-another-session: killed by SIG-END-002 FAIL"
    assert progress_line(SURVIVED) == "never-ends: survived: SIG-END-005 is not in breach, not WARN"
    assert progress_line(PASSES) == "reference at 0.145, plain: passes"


def test_the_closing_line_counts() -> None:
    """Colour of the whole, mutants killed, scenarios that the reference passes, seconds."""
    line = closing_line(SELFTEST, 1.25)
    assert (
        line == "red: 1 of 2 mutants killed, 0 of 0 variants not blamed, the reference passes 1 of 1 scenarios, 1.2 s"
    )
    assert closing_line(EVERY, 1.0).startswith(f"green: {len(mutants().mutants)} of {len(mutants().mutants)} mutants")


def test_base_is_named_where_a_mutant_is_tried_in_it() -> None:
    """Its trials are counted apart, and each says in what it was performed."""
    base = mutants().bases["at-prompt"]
    again = Grade(replace(KILLED.trial, name="at-prompt-ends-another-session", base=base), KILLED.breached)
    survivor = Grade(replace(SURVIVED.trial, base=base), {}, ["survived"])
    both = Selftest([PASSES, KILLED, again, survivor])
    assert "1 of 1 mutants killed, 1 of 2 again in another base, " in closing_line(both, 1.0)
    (complaint,) = complaint_lines(both, 200)
    assert complaint.startswith("RED never-ends, which does not end its sessions, in the base at-prompt: survived")
    rows = as_json(both, {}, 1.0)["mutants"]
    assert [row["base"] for row in rows] == ["reference", "at-prompt", "at-prompt"]


def test_json_holds_the_whole_matrix() -> None:
    """Every mutant has all that it breaches, every requirement who killed whom."""
    document = json.loads(json.dumps(as_json(SELFTEST, {}, 1.25)))
    assert demand(KillMatrix, document, "here").to_json() == document
    assert (document["format"], document["green"], document["seconds"]) == ("signet-selftest/1", False, 1.2)
    assert document["mutants"][0]["breached"] == {"SIG-END-002": "FAIL", "SIG-END-005": "WARN"}
    assert document["requirements"]["SIG-END-002"] == {"killed_by": ["ends-another-session"], "survived": []}
    assert document["requirements"]["SIG-END-005"] == {"killed_by": [], "survived": ["never-ends"]}
    assert list(document["requirements"]) == list(catalogue())


NEVER_STARTS = mutant("never-starts")
WITH_ALSO = mutant("changes-the-agent")
COVERAGE = "SIG-COV-001"


def judged(verdicts: Mapping[str, str], daemon: Mapping[str, str] | None = None) -> JudgedTrace:
    """A trace with these verdicts."""

    def judgements(given: Mapping[str, str], side: Side) -> Mapping[str, Judgement]:
        return {
            name: Judgement(
                name, Verdict(verdict), Reason.BREACH, "so", (Finding(Verdict(verdict), (1,), "so", side=side),)
            )
            for name, verdict in given.items()
        }

    return JudgedTrace(
        Trace(Header(), (), ()), "0.145.7", judgements(verdicts, Side.CONNECTOR), judgements(daemon or {}, Side.DAEMON)
    )


def graded(one: Mutant | None, verdicts: Mapping[str, str], daemon: Mapping[str, str] | None = None) -> Grade:
    """The grade of a mutant, or of the reference, with these verdicts."""
    trial = Trial("x", scenario_of(one or NEVER_STARTS), "0.145", one)
    return grade(PerformedTrial(trial, judged(verdicts, daemon)), {})


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
    assert missing.startswith("no conforming connector reaches SIG-END-005: add a scenario, variant, or reason")
    assert needless == "SIG-END-006 is listed under unreached in schemas/mutants.json, but is reached"


def test_little_is_left_that_nothing_reaches() -> None:
    """Each of these is a requirement on the daemon that only a breach of the connector brings about."""
    unreached_here = mutants().unreached
    assert unreached_here
    assert all(requirement.startswith("SIG-DAEMON-") for requirement in unreached_here)


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
    assert (should.complaints, [*should.breached]) == ([], ["SIG-START-004", "SIG-END-005"])


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
    assert grade(PerformedTrial(trial, judged({"SIG-END-005": "WARN"})), {}).complaints == []


def test_a_trial_that_was_cut_short_is_red() -> None:
    """What could not be performed proves nothing."""
    trial = Trial("x", scenario_of(NEVER_STARTS), "0.145", NEVER_STARTS)
    outcome = grade(PerformedTrial(trial, judged({"SIG-START-004": "FAIL"}), "the connector hung"), {})
    assert (outcome.killed, outcome.complaints) == (False, ["could not be performed: the connector hung"])


def test_green_is_without_any_complaint() -> None:
    """One complaint, of a trial or of the whole, makes the selftest red."""
    clean, red = Grade(Trial("x", scenario_of(NEVER_STARTS), "0.145"), {}), graded(NEVER_STARTS, {})
    assert Selftest([clean]).green
    assert not Selftest([clean], ["a rule without a mutant"]).green
    assert not Selftest([clean, red]).green
