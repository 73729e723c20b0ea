"""Grades each trial of the self-test, and shows the kill matrix (requirement by mutant) as text and as JSON.

Only the requirement that a mutant breaks may kill it; a conforming connector must not be blamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field as member
from typing import Any

from rich.text import Text

from signet_conformance.contract import MUST, catalogue
from signet_conformance.engine import JudgedTrace, run_judgements
from signet_conformance.errors import printable
from signet_conformance.finding import BREACHES, Judgement, Verdict
from signet_conformance.reports.terminal import MAX_WIDTH, STRONG, VERDICT_STYLES, Paragraph, draw, one_line
from signet_conformance.rules import daemon_rules, harness_rules, rules, run_rules
from signet_conformance.selftest.mutants import FILE, Mutant, Mutants, mutants
from signet_conformance.selftest.trials import CONTRACT, PerformedTrial, Trial


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of one trial. `breached` has the breached requirements of both sides with their verdicts.

    `complaints` say what is wrong; empty for a mutant killed as expected, or a reference that passes. `decided`
    are the requirements that it passes or breaches.
    """

    trial: Trial
    breached: Mapping[str, Verdict]
    complaints: Sequence[str] = ()
    decided: AbstractSet[str] = frozenset()

    @property
    def killed(self) -> bool:
        """Whether the requirement that the mutant breaks has exactly the mutant's verdict."""
        mutant = self.trial.mutant
        return mutant is not None and self.breached.get(mutant.breaks) == mutant.verdict


@dataclass(frozen=True, slots=True)
class Selftest:
    """All grades, with complaints about the mutants as a whole.

    `unreached` has the requirements that never judge a conforming connector, with the reason; only a whole self-test
    knows it.
    """

    grades: Sequence[Grade]
    complaints: Sequence[str] = member(default=())
    unreached: Mapping[str, str] = member(default_factory=dict)

    @property
    def green(self) -> bool:
        """Whether there is no complaint."""
        return not self.complaints and not any(grade.complaints for grade in self.grades)

    @property
    def killed(self) -> Sequence[Grade]:
        """The trials whose mutants were killed."""
        return [grade for grade in self.grades if grade.killed]

    @property
    def mutants(self) -> Sequence[Grade]:
        """The trials of mutants."""
        return [grade for grade in self.grades if grade.trial.mutant is not None]

    @property
    def controls(self) -> Sequence[Grade]:
        """The trials of the reference."""
        return [grade for grade in self.grades if grade.trial.is_control]

    @property
    def variants(self) -> Sequence[Grade]:
        """The trials of variants, each of which may be of several."""
        return [grade for grade in self.grades if grade.trial.variants]


def unreached(grades: Sequence[Grade]) -> Sequence[str]:
    """Return, in order, the requirements that decide about neither the reference nor a variant at any version."""
    reached = {name for grade in grades if grade.trial.mutant is None for name in grade.decided}
    return [name for name in catalogue() if name not in reached | run_rules().keys()]


def reasons_missing(names: Sequence[str], known: Mapping[str, str]) -> Iterator[str]:
    """Yield complaints about the reasons for unreached requirements."""
    for name in names:
        if name not in known:
            yield f"no conforming connector reaches {name}: add a scenario, variant, or reason to unreached in {FILE}"
    for name in known:
        if name not in names:
            yield f"{name} is listed under unreached in {FILE}, but is reached"


def completeness(known: Mutants) -> Iterator[str]:
    """Yield complaints: rules that no mutant breaks, mutants and exemptions without a rule."""
    judged = {*rules(), *daemon_rules(), *harness_rules()}
    broken = {mutant.breaks for mutant in known.mutants.values()}
    for name in sorted(judged - broken - set(known.exempt)):
        yield f"{name} has a rule and no mutant: add one to schemas/mutants.json, or a reason under its no_mutant"
    for mutant in known.mutants.values():
        for name in sorted({mutant.breaks, *mutant.also} - judged):
            yield f"mutant {mutant.id} names {name}, which has no rule"
    for name in sorted(set(known.exempt) & broken):
        yield f"{name} is exempt, and has a mutant"
    for name in sorted(set(known.exempt) - judged):
        yield f"{name} is exempt, and has no rule"


def grade(performed: PerformedTrial, controls: Mapping[str, JudgedTrace]) -> Grade:
    """Grade a trial. `controls` are its base's own traces at the usual contract, by scenario."""
    if performed.judged is None or performed.error is not None:
        return Grade(performed.trial, {}, [f"could not be performed: {performed.error}"])
    every = {**performed.judged.judgements, **performed.judged.daemon, **performed.judged.harness}
    breached = {name: judgement.verdict for name, judgement in every.items() if judgement.verdict in BREACHES}
    decided = breached.keys() | {name for name, judgement in every.items() if judgement.verdict is Verdict.PASS}
    mutant = performed.trial.mutant
    if performed.trial.variants:
        return Grade(performed.trial, breached, list(_blame(performed, every, breached)), decided)
    if mutant is None:
        tolerated = mutants().tolerated.get(performed.trial.scenario.name, {})
        blamed = [f"breaks {name}" for name in breached if name not in tolerated]
        return Grade(performed.trial, breached, blamed, decided)
    if mutant.breaks in run_rules() and mutant.breaks not in breached:
        over_run = run_judgements([*({**controls, mutant.scenario: performed.judged}).values()]).get(mutant.breaks)
        if over_run is not None and over_run.verdict in BREACHES:
            breached[mutant.breaks] = over_run.verdict
    return Grade(performed.trial, breached, list(_complaints(mutant, breached, performed.judged.daemon_version)))


def whole_run_of(controls: Mapping[str, JudgedTrace], who: str) -> Iterator[str]:
    """Yield complaints about all scripted scenarios of the reference or a base as one run."""
    judgements = run_judgements(list(controls.values()))
    for name in run_rules():
        judgement = judgements.get(name)
        if judgement is None or judgement.verdict is not Verdict.PASS:
            yield f"the whole run of {who} breaks {name}: {'undecided' if judgement is None else judgement.message}"


def is_control(performed: PerformedTrial) -> bool:
    """Return True for a trial of the reference, or of a base, at the usual contract."""
    usual = performed.trial.contract == CONTRACT and performed.trial.face is None
    return performed.trial.is_control and usual and performed.judged is not None


def _blame(
    performed: PerformedTrial, judgements: Mapping[str, Judgement], breached: Mapping[str, Verdict]
) -> Iterator[str]:
    """Yield complaints about variants: a breach, no change, a requirement that did not judge."""
    allowed = {name for variant in performed.trial.variants for name in variant.allowed}
    for name, verdict in breached.items():
        if name not in allowed or verdict is not Verdict.WARN:
            yield f"conforms, and {name} says {verdict}: {judgements[name].message}"
    for variant in performed.trial.variants:
        if variant.id not in performed.applied:
            yield f"{variant.id} changed nothing"
        for name in variant.rows:
            judgement = judgements.get(name)
            if judgement is None or judgement.verdict is Verdict.NOT_APPLICABLE:
                yield f"{variant.id} was not judged by {name}, which it names"
        for name in variant.allowed:
            if name not in breached:
                yield f"{variant.id} does not break {name}, which it names under allowed"


def _complaints(mutant: Mutant, breached: Mapping[str, Verdict], version: str) -> Iterator[str]:
    own = breached.get(mutant.breaks)
    if own != mutant.verdict:
        yield f"survived: {mutant.breaks} is {own or 'not in breach'}, not {mutant.verdict}"
    known = catalogue()
    for name, verdict in breached.items():
        if name == mutant.breaks or name in mutant.also:
            continue
        if verdict is Verdict.ERROR or (verdict is Verdict.FAIL and known[name].level_at(version) == MUST):
            yield f"breaks {name} too, which has nothing to do with it"
    for name in mutant.also:
        if name not in breached:
            yield f"does not break {name}, which it names under also"


FORMAT = "signet-selftest/1"
_RED = VERDICT_STYLES[Verdict.FAIL]


def matrix_lines(selftest: Selftest, exempt: Mapping[str, str], width: int = 80, colour: bool = False) -> list[str]:
    """One paragraph for each requirement: its mutants, and in parentheses those of others that also break it.

    `!` marks a mutant that survived.
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
        title = f"{_base_name(grade)}, {grade.trial.scenario.name}"
        if mutant is not None:
            title = f"{mutant.id}, which {mutant.title}" + ("" if base is None else f", in the base {base.id}")
        if grade.trial.variants:
            title = "; ".join(f"{variant.id}, which {variant.title}" for variant in grade.trial.variants)
        complaints += [f"{title}: {printable(complaint, 600)}" for complaint in grade.complaints]
    red = Text.assemble(("RED", _RED), " ")
    return draw((Paragraph(Text.assemble(red, complaint), 0, 4) for complaint in complaints), width, colour)


def unreached_lines(selftest: Selftest, width: int = 80, colour: bool = False) -> list[str]:
    """The requirements that never judge a conforming connector, each with the reason; no lines without any."""
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
        title = ", ".join(variant.id for variant in grade.trial.variants)
    elif mutant is None:
        outcome = "; ".join(grade.complaints) or "passes"
        host = "" if grade.trial.face is None else f", in the host {grade.trial.face}"
        title = f"{_base_name(grade)} at {grade.trial.contract}, {grade.trial.scenario.name}{host}"
    else:
        outcome = "; ".join(grade.complaints) or f"killed by {mutant.breaks} {mutant.verdict}"
        title = grade.trial.name
    return f"{title}: {printable(outcome, 300)}"


def closing_line(selftest: Selftest, seconds: float, colour: bool = False) -> str:
    """The outcome in one line."""
    again = [grade for grade in selftest.mutants if grade.trial.base is not None]
    title = "the bases pass" if again else "the reference passes"
    killed_again = sum(grade.killed for grade in again)
    passing = sum(not grade.complaints for grade in selftest.controls)
    odd = sum(len(grade.trial.variants) for grade in selftest.variants)
    conforming = sum(len(grade.trial.variants) for grade in selftest.variants if not grade.complaints)
    word = Text.assemble(("green", VERDICT_STYLES[Verdict.PASS]) if selftest.green else ("red", _RED))
    counts = (
        f": {len(selftest.killed) - killed_again} of {len(selftest.mutants) - len(again)} mutants killed, "
        + (f"{killed_again} of {len(again)} again in another base, " if again else "")
        + f"{conforming} of {odd} variants not blamed, "
        f"{title} {passing} of {len(selftest.controls)} scenarios, {seconds:.1f} s"
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
