"""Grades trials: a mutant must be killed by the requirement it breaks alone, and a conforming connector not blamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as member

from signet_conformance.contract import MUST, catalogue
from signet_conformance.engine import Judged, run_judgements
from signet_conformance.finding import Verdict
from signet_conformance.rules import DAEMON_RULES, rules, run_rules
from signet_conformance.rules.model import MODEL_RULES
from signet_conformance.selftest.mutants import FILE, Mutant, Mutants, mutants
from signet_conformance.selftest.trials import CONTRACT, Performed, Trial

_BREACHES = (Verdict.ERROR, Verdict.FAIL, Verdict.WARN)


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of one trial. `breached` are the requirements in breach, of both sides, with their verdicts.

    `complaints` say what is wrong; empty for a mutant killed cleanly, or a reference that passes. `decided` are the
    requirements that it passes or breaches.
    """

    trial: Trial
    breached: Mapping[str, Verdict]
    complaints: Sequence[str] = ()
    decided: frozenset[str] = frozenset()

    @property
    def killed(self) -> bool:
        """Whether the requirement that the mutant breaks has exactly the mutant's verdict."""
        mutant = self.trial.mutant
        return mutant is not None and self.breached.get(mutant.breaks) == mutant.verdict

    @property
    def beside(self) -> Sequence[str]:
        """The other requirements in breach."""
        mutant = self.trial.mutant
        return [name for name in self.breached if mutant is None or name != mutant.breaks]


@dataclass(frozen=True, slots=True)
class Selftest:
    """All grades, with complaints about the mutants as a whole.

    `unreached` is requirement to the reason why nothing that conforms is judged by it; only a whole selftest knows it.
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
        """The mutants that were killed."""
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
    """Return the requirements that judge neither the reference nor a variant, at any contract version, in order."""
    reached = {name for grade in grades if grade.trial.mutant is None for name in grade.decided}
    return [name for name in catalogue() if name not in reached | run_rules().keys()]


def reasons_missing(names: Sequence[str], known: Mapping[str, str]) -> Iterator[str]:
    """Yield complaints about the reasons for unreached requirements."""
    for name in names:
        if name not in known:
            yield f"nothing that conforms reaches {name}: add a scenario, a variant, or a reason to unreached in {FILE}"
    for name in known:
        if name not in names:
            yield f"{name} stands under unreached in {FILE}, and is reached"


def completeness(known: Mutants) -> Iterator[str]:
    """Yield complaints: rules that no mutant breaks, mutants and exemptions without a rule."""
    judged = {*rules(), *DAEMON_RULES, *MODEL_RULES}
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


def grade(performed: Performed, controls: Mapping[str, Judged]) -> Grade:
    """Grade a trial. `controls` are its base's own traces at the usual contract, by scenario."""
    if performed.judged is None or performed.error is not None:
        return Grade(performed.trial, {}, [f"could not be performed: {performed.error}"])
    breached = dict(_breached(performed.judged))
    mutant = performed.trial.mutant
    decided = _decided(performed.judged)
    if performed.trial.variants:
        return Grade(performed.trial, breached, list(_blame(performed, performed.judged, breached)), decided)
    if mutant is None:
        tolerated = mutants().tolerated.get(performed.trial.scenario.name, {})
        blamed = [f"breaks {name}" for name in breached if name not in tolerated]
        return Grade(performed.trial, breached, blamed, decided)
    if mutant.breaks in run_rules() and mutant.breaks not in breached:
        over_run = run_judgements([*({**controls, mutant.scenario: performed.judged}).values()]).get(mutant.breaks)
        if over_run is not None and over_run.verdict in _BREACHES:
            breached[mutant.breaks] = over_run.verdict
    return Grade(performed.trial, breached, list(_complaints(mutant, breached, performed.judged.daemon_version)))


def whole_run_of(controls: Mapping[str, Judged], who: str) -> Iterator[str]:
    """Yield complaints about all scripted scenarios of the reference or a base as one run."""
    judgements = run_judgements(list(controls.values()))
    for name in run_rules():
        judgement = judgements.get(name)
        if judgement is None or judgement.verdict is not Verdict.PASS:
            yield f"the whole run of {who} breaks {name}: {'undecided' if judgement is None else judgement.message}"


def is_control(performed: Performed) -> bool:
    """Return True for a trial of the reference, or of a base, at the usual contract."""
    return performed.trial.is_control and performed.trial.contract == CONTRACT and performed.judged is not None


def _decided(judged: Judged) -> frozenset[str]:
    every = {**judged.judgements, **judged.daemon, **judged.harness}
    return frozenset(name for name, judgement in every.items() if judgement.verdict in (*_BREACHES, Verdict.PASS))


def _breached(judged: Judged) -> Iterator[tuple[str, Verdict]]:
    for name, judgement in {**judged.judgements, **judged.daemon, **judged.harness}.items():
        if judgement.verdict in _BREACHES:
            yield name, judgement.verdict


def _blame(performed: Performed, judged: Judged, breached: Mapping[str, Verdict]) -> Iterator[str]:
    """Yield complaints about variants: a breach, no change, a requirement that did not judge."""
    verdicts = {**judged.judgements, **judged.daemon, **judged.harness}
    allowed = {name for variant in performed.trial.variants for name in variant.allowed}
    for name, verdict in breached.items():
        if name not in allowed or verdict is not Verdict.WARN:
            yield f"conforms, and {name} says {verdict}: {verdicts[name].message}"
    for variant in performed.trial.variants:
        if variant.id not in performed.applied:
            yield f"{variant.id} changed nothing"
        for name in variant.rows:
            judgement = verdicts.get(name)
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
