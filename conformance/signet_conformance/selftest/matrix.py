"""The kill matrix: requirement by mutant, in lines that fit a narrow terminal, and as a JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from signet_conformance.contract import catalogue
from signet_conformance.errors import printable
from signet_conformance.finding import Verdict
from signet_conformance.reports.terminal import MAX_WIDTH, STRONG, VERDICT_STYLES, Paragraph, draw, one_line
from signet_conformance.selftest.grading import Grade, Selftest

FORMAT = "signet-selftest/1"
_RED = VERDICT_STYLES[Verdict.FAIL]


def matrix_lines(selftest: Selftest, exempt: Mapping[str, str], width: int = 80, colour: bool = False) -> list[str]:
    """One paragraph a requirement: the mutants that break it, and in parentheses those that break it beside theirs.

    A mutant that survived stands with a `!`.
    """
    own = _by_requirement(selftest.mutants)
    paragraphs = []
    for name, requirement in catalogue().items():
        cells = [_cell(grade) for grade in own.get(name, ())]
        beside = [
            grade.trial.name
            for grade in selftest.mutants
            if name in grade.breached and grade.trial.mutant is not None and grade.trial.mutant.breaks != name
        ]
        cells += [Text(f"({mutant})") for mutant in beside]
        if name in exempt:
            cells.append(Text(f"exempt: {exempt[name]}"))
        if cells:
            head = Text.assemble((name, STRONG), f"{'':<{15 - len(name)}} {requirement.level:<6} ")
            paragraphs.append(Paragraph(Text.assemble(head, Text(" ").join(cells)), 0, 4))
    return draw(paragraphs, width, colour)


def _by_requirement(grades: Sequence[Grade]) -> Mapping[str, Sequence[Grade]]:
    rows: dict[str, list[Grade]] = {}
    for grade in grades:
        if grade.trial.mutant is not None:
            rows.setdefault(grade.trial.mutant.breaks, []).append(grade)
    return rows


def _base_name(grade: Grade) -> str:
    return "reference" if grade.trial.base is None else grade.trial.base.id


def _cell(grade: Grade) -> Text:
    return Text(grade.trial.name) if grade.killed else Text.assemble((f"!{grade.trial.name}", _RED))


def complaint_lines(selftest: Selftest, width: int = 80, colour: bool = False) -> list[str]:
    """Describe each complaint, the most general first."""
    complaints = [printable(complaint, 600) for complaint in selftest.complaints]
    for grade in selftest.grades:
        mutant = grade.trial.mutant
        base = grade.trial.base
        what = f"{_base_name(grade)}, {grade.trial.scenario.name}"
        if mutant is not None:
            what = f"{mutant.id}, which {mutant.title}" + ("" if base is None else f", in the base {base.id}")
        if grade.trial.variants:
            what = "; ".join(f"{variant.id}, which {variant.title}" for variant in grade.trial.variants)
        complaints += [f"{what}: {printable(complaint, 600)}" for complaint in grade.complaints]
    red = Text.assemble(("RED", _RED), " ")
    return draw((Paragraph(Text.assemble(red, complaint), 0, 4) for complaint in complaints), width, colour)


def unreached_lines(selftest: Selftest, width: int = 80, colour: bool = False) -> list[str]:
    """The requirements that nothing that conforms is judged by, each with the reason; nothing without any."""
    if not selftest.unreached:
        return []
    head = Paragraph("Passed in no scenario, by neither the reference nor a variant:", 0, 4)
    rows = (Paragraph(Text.assemble((name, STRONG), f" {why}"), 2, 4) for name, why in selftest.unreached.items())
    return draw([head, *rows], width, colour)


def progress_line(grade: Grade) -> str:
    """One trial as one line."""
    mutant = grade.trial.mutant
    if grade.trial.variants:
        outcome = "; ".join(grade.complaints) or "not blamed"
        what = ", ".join(variant.id for variant in grade.trial.variants)
    elif mutant is None:
        outcome = "; ".join(grade.complaints) or "passes"
        what = f"{_base_name(grade)} at {grade.trial.contract}, {grade.trial.scenario.name}"
    else:
        outcome = "; ".join(grade.complaints) or f"killed by {mutant.breaks} {mutant.verdict}"
        what = grade.trial.name
    return f"{what}: {printable(outcome, 300)}"


def closing_line(selftest: Selftest, seconds: float, colour: bool = False) -> str:
    """The outcome in one line."""
    again = [grade for grade in selftest.mutants if grade.trial.base is not None]
    who = "the bases pass" if again else "the reference passes"
    killed_again = sum(grade.killed for grade in again)
    passing = sum(not grade.complaints for grade in selftest.controls)
    odd = sum(len(grade.trial.variants) for grade in selftest.variants)
    conforming = sum(len(grade.trial.variants) for grade in selftest.variants if not grade.complaints)
    word = Text.assemble(("green", VERDICT_STYLES[Verdict.PASS]) if selftest.green else ("red", _RED))
    counts = (
        f": {len(selftest.killed) - killed_again} of {len(selftest.mutants) - len(again)} mutants killed, "
        + (f"{killed_again} of {len(again)} again in another base, " if again else "")
        + f"{conforming} of {odd} variants not blamed, "
        f"{who} {passing} of {len(selftest.controls)} scenarios, {seconds:.1f} s"
    )
    (line,) = draw([one_line(Text.assemble(word, counts))], MAX_WIDTH, colour)
    return line


def as_json(selftest: Selftest, exempt: Mapping[str, str], seconds: float) -> dict[str, Any]:
    """The selftest as one JSON object (signet-selftest/1)."""
    own = _by_requirement(selftest.mutants)
    return {
        "format": FORMAT,
        "green": selftest.green,
        "seconds": round(seconds, 1),
        "complaints": list(selftest.complaints),
        "unreached": dict(selftest.unreached),
        "reference": [
            {
                "scenario": grade.trial.scenario.name,
                "base": _base_name(grade),
                "contract": grade.trial.contract,
                "breached": dict(grade.breached),
                "complaints": list(grade.complaints),
            }
            for grade in selftest.controls
        ],
        "mutants": [
            {
                "id": grade.trial.name,
                "base": _base_name(grade),
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
        "variants": [
            {
                "id": variant.id,
                "scenario": variant.scenario,
                "contract": variant.contract,
                "because": variant.because,
                "trace": grade.trial.name,
                "breached": dict(grade.breached),
                "complaints": list(grade.complaints),
            }
            for grade in selftest.variants
            for variant in grade.trial.variants
        ],
        "requirements": {
            name: {
                "killed_by": [grade.trial.name for grade in own.get(name, ()) if grade.killed],
                "survived": [grade.trial.name for grade in own.get(name, ()) if not grade.killed],
                **({"exempt": exempt[name]} if name in exempt else {}),
            }
            for name in catalogue()
        },
    }
