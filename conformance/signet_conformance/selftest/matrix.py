"""The kill matrix: requirement by mutant, in lines that fit a narrow terminal, and as a JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from signet_conformance.errors import printable
from signet_conformance.finding import Verdict
from signet_conformance.reports.layout import painted, paragraph, strong, usable_width
from signet_conformance.selftest.grading import Grade, Selftest, all_requirements

FORMAT = "signet-selftest/1"


def matrix_lines(selftest: Selftest, exempt: Mapping[str, str], width: int = 80, colour: bool = False) -> list[str]:
    """One paragraph a requirement: the mutants that break it, and in parentheses those that break it beside theirs.

    A mutant that survived stands with a `!`.
    """
    width = usable_width(width)
    own = _by_requirement(selftest.mutants)
    lines = []
    for name, requirement in all_requirements().items():
        cells = [_cell(grade, colour) for grade in own.get(name, ())]
        beside = [
            grade.trial.name
            for grade in selftest.mutants
            if name in grade.breached and grade.trial.mutant is not None and grade.trial.mutant.breaks != name
        ]
        cells += [f"({mutant})" for mutant in beside]
        if name in exempt:
            cells.append(f"exempt: {exempt[name]}")
        if cells:
            lines += paragraph(f"{name:<15} {requirement.level:<6} {' '.join(cells)}", width, "", " " * 4)
    return [line.replace(name := line.split(" ")[0], strong(name, colour), 1) for line in lines]


def _by_requirement(grades: Sequence[Grade]) -> Mapping[str, Sequence[Grade]]:
    found: dict[str, list[Grade]] = {}
    for grade in grades:
        if grade.trial.mutant is not None:
            found.setdefault(grade.trial.mutant.breaks, []).append(grade)
    return found


def _cell(grade: Grade, colour: bool) -> str:
    if not grade.killed:
        return painted(f"!{grade.trial.name}", Verdict.FAIL, colour)
    return f"{grade.trial.name}"


def complaint_lines(selftest: Selftest, width: int = 80, colour: bool = False) -> Iterator[str]:
    """What keeps the selftest from being green, most general first."""
    width = usable_width(width)
    for complaint in selftest.complaints:
        yield from paragraph(f"{painted('RED', Verdict.FAIL, colour)} {printable(complaint, 600)}", width, "", "    ")
    for grade in selftest.grades:
        mutant = grade.trial.mutant
        what = f"reference, {grade.trial.scenario.name}" if mutant is None else f"{mutant.id}, which {mutant.title}"
        for complaint in grade.complaints:
            text = f"{painted('RED', Verdict.FAIL, colour)} {what}: {printable(complaint, 600)}"
            yield from paragraph(text, width, "", "    ")


def progress_line(grade: Grade, number: int, total: int) -> str:
    """One trial as one line."""
    mutant = grade.trial.mutant
    if mutant is None:
        outcome = "; ".join(grade.complaints) or "passes"
        what = f"reference at {grade.trial.contract}, {grade.trial.scenario.name}"
    else:
        outcome = "; ".join(grade.complaints) or f"killed by {mutant.breaks} {mutant.verdict}"
        what = mutant.id
    return f"{number}/{total} {what}: {printable(outcome, 300)}"


def closing_line(selftest: Selftest, seconds: float, colour: bool = False) -> str:
    """The outcome in one line."""
    passing = sum(not grade.complaints for grade in selftest.controls)
    word = painted("green", Verdict.PASS, colour) if selftest.green else painted("red", Verdict.FAIL, colour)
    return (
        f"{word}: {len(selftest.killed)} of {len(selftest.mutants)} mutants killed, "
        f"the reference passes {passing} of {len(selftest.controls)} scenarios, {seconds:.1f} s"
    )


def as_json(selftest: Selftest, exempt: Mapping[str, str], seconds: float) -> dict[str, Any]:
    """The selftest as one JSON object (signet-selftest/1)."""
    own = _by_requirement(selftest.mutants)
    return {
        "format": FORMAT,
        "green": selftest.green,
        "seconds": round(seconds, 1),
        "complaints": list(selftest.complaints),
        "reference": [
            {
                "scenario": grade.trial.scenario.name,
                "contract": grade.trial.contract,
                "breached": dict(grade.breached),
                "complaints": list(grade.complaints),
            }
            for grade in selftest.controls
        ],
        "mutants": [
            {
                "id": grade.trial.name,
                "side": mutant.side,
                "breaks": mutant.breaks,
                "verdict": mutant.verdict,
                "scenario": mutant.scenario,
                "contract": mutant.contract,
                "killed": grade.killed,
                "breached": dict(grade.breached),
                "complaints": list(grade.complaints),
            }
            for grade in selftest.mutants
            if (mutant := grade.trial.mutant) is not None
        ],
        "requirements": {
            name: {
                "killed_by": [grade.trial.name for grade in own.get(name, ()) if grade.killed],
                "survived": [grade.trial.name for grade in own.get(name, ()) if not grade.killed],
                **({"exempt": exempt[name]} if name in exempt else {}),
            }
            for name in all_requirements()
        },
    }
