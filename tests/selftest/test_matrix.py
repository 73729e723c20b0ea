"""Facts about how the kill matrix is printed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from signet_conformance.contract import catalogue
from signet_conformance.files.documents import demand
from signet_conformance.finding import Verdict
from signet_conformance.reports.html.kill_matrix import KillMatrix
from signet_conformance.selftest.grading import Grade, Selftest
from signet_conformance.selftest.matrix import (
    as_json,
    closing_line,
    complaint_lines,
    matrix_lines,
    progress_line,
    unreached_lines,
)
from signet_conformance.selftest.mutants import mutant, mutants
from signet_conformance.selftest.trials import Trial, scenario_of


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
