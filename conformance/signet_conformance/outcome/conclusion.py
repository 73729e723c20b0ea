"""The conclusion of a run, computed from judged traces as they come.

`check`, `run`, the pytest plugin, the CI lane and every report show a :class:`Conclusion`; none of them decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from signet_conformance.contract import REFERENCE_DAEMON, contract_version_of, harness_requirements, version_key
from signet_conformance.engine import JudgedTrace, exit_status, fold_run, judge, judge_each
from signet_conformance.errors import KitError, NothingTestedError, SignetConformanceError, UsageError, counted
from signet_conformance.facts.steps import SkipMeter
from signet_conformance.finding import BREACHES, COVERABLE, FOLDING_ORDER, TESTED, Finding, Judgement, Verdict
from signet_conformance.outcome.broken_off import Shortfall, broke_off
from signet_conformance.outcome.coverage import Coverage, Meter
from signet_conformance.outcome.generated_summary import GeneratedSummary, with_generated
from signet_conformance.outcome.identity import Identity
from signet_conformance.outcome.known_failures import (
    KnownFailures,
    KnownInRun,
    Verdicts,
    by_target,
    failing_text,
    target_of,
)
from signet_conformance.outcome.next_contract import NewerContract, NewerJudging
from signet_conformance.outcome.options import Declarations
from signet_conformance.outcome.reach import ReachMeter, UnreachableParts
from signet_conformance.outcome.recording_gaps import Lack, in_words, lacks_of
from signet_conformance.outcome.several_traces import PromptMeter, SessionMeter, essence
from signet_conformance.rules import run_rules
from signet_conformance.rules.coverage import was_tested
from signet_conformance.trace import Trace
from signet_conformance.trace.file_exchanges import FileExchanges


class Terms(Struct, frozen=True):
    """How a run is judged.

    `only` are the requirements that were asked for, None for all. `contract` is the version to judge by, without it
    that of each trace's daemon. `strict` lets a WARN fail. `least_coverage` is a percentage. `target` is whose known
    failures count, without it the target that each trace names. `connector` is the release of the connector, if known.
    """

    only: frozenset[str] | None = None
    contract: str | None = None
    strict: bool = False
    least_coverage: float | None = None
    known: KnownFailures = field(default_factory=KnownFailures)
    target: str | None = None
    declared: Declarations = field(default_factory=Declarations)
    connector: str | None = None

    def words(self) -> list[str]:
        """The options of `check` that make it judge a trace of the run as the run did."""
        return [*([] if self.contract is None else [f"--contract={self.contract}"]), *self.declared.words()]

    def known_in(self, judged: JudgedTrace) -> Mapping[str, str]:
        """The requirements whose failure in one trace is known, each with why it may stand."""
        return self.known.reasons(target_of(judged, self.target), judged.verdicts)


class Judging:
    """Judges the traces of a run one after the other and keeps what its conclusion needs.

    That is little of each trace, so that thousands can be judged; `whole` keeps them as they are. Coverage is
    measured where the terms bound it or `measured` asks for it.
    """

    def __init__(self, terms: Terms, *, measured: bool = False, whole: bool = False) -> None:
        self.terms = terms
        self.judged: list[JudgedTrace] = []
        """The judged traces that count, in order."""
        self.broken_off: list[JudgedTrace] = []
        """Traces whose scenario was broken off: what they lack says nothing about the connector."""
        self._was_tested = False
        self._gaps: Counter[Lack] = Counter()
        self._whole = whole
        self._meter = Meter(terms.contract) if measured or terms.least_coverage is not None else None
        self._reach = ReachMeter(terms.connector)
        self._newer = NewerJudging(terms.only, terms.connector)
        self._sessions = SessionMeter()
        self._skips = SkipMeter()
        self._prompts = PromptMeter()
        self._lines: dict[tuple[int, str], int] = {}

    def judge_traces(self, traces: Sequence[Trace], workers: int = 1) -> Sequence[JudgedTrace]:
        """Judge traces by the terms without adding them: another process may do that."""
        declared = [self.terms.declared.applied_to(trace) for trace in traces]
        if len(declared) == 1:
            return [judge(declared[0], self.terms.only, self.terms.contract, workers)]
        return judge_each(declared, self.terms.only, self.terms.contract)

    def add(self, judged: JudgedTrace) -> None:
        """Take a judged trace into account."""
        kept = judged if self._whole else essence(judged)
        if broke_off(judged.trace) is not None:
            self.broken_off.append(kept)
            return
        self._was_tested = self._was_tested or was_tested(judged.recording)
        for at, times in lacks_of(judged).items():
            self._gaps[at.lack] += times
        for name, judgement in judged.judgements.items():
            if judgement.verdict in BREACHES and judgement.findings:
                self._lines[len(self.judged), name] = _line(judged.trace, judgement.findings[0])
        self.judged.append(kept)
        self._reach.add(judged)
        self._newer.add(judged)
        self._sessions.add(judged)
        self._skips.add(judged.trace)
        self._prompts.add(judged)
        if self._meter is not None:
            self._meter.add(judged)

    def conclude(
        self,
        *,
        generated: GeneratedSummary | None = None,
        shortfall: Shortfall | None = None,
        tested: Mapping[str, Verdict] | None = None,
        unread: Sequence[SignetConformanceError] = (),
        notes: Sequence[str] = (),
    ) -> Conclusion:
        """Fold the traces so far into a conclusion.

        `generated` are the results of generated sessions, `shortfall` the scenarios that were not performed, `unread`
        why files could not be judged, `notes` further lines for the reports. `tested` are the requirements that count
        with their verdicts, where not all of them were judged.
        """
        folded = fold_run(self.judged, whole=shortfall is None and not self.broken_off)
        judged, judgements = self.judged, with_generated(folded, generated)
        if tested is not None and not judgements.keys() <= tested.keys():
            judged = [replace(each, judgements=_only(each.judgements, tested)) for each in judged]
            judgements = _only(judgements, tested)
        return Conclusion(
            terms=self.terms,
            judged=tuple(judged),
            judgements=judgements,
            coverage=None if self._meter is None else self._meter.coverage(),
            reach=self._reach.reach(),
            newer=self._newer.newer(),
            in_every_session=tuple(self._sessions.in_every_session()),
            skipped=self._skips.skipped(),
            unsubmitted=self._prompts.unsubmitted,
            generated=generated,
            shortfall=shortfall,
            broken_off=tuple(self.broken_off),
            unread=tuple(unread),
            remarks=tuple(notes),
            _tested=tested,
            _lines=self._lines,
            _was_tested=self._was_tested,
            _gaps=self._gaps,
        )


def _only(judgements: Mapping[str, Judgement], names: Container[str]) -> Mapping[str, Judgement]:
    return {name: judgement for name, judgement in judgements.items() if name in names}


class Conclusion(Struct, frozen=True, dict=True):
    """The verdicts of a run, its exit status and the reasons.

    `judged` are the traces that count, `judgements` the requirements over all of them and the generated sessions, in
    the catalogue's order. `broken_off` are traces of scenarios that were not performed to their end: they decide
    nothing. `unread` says why files could not be judged. `newer` is what the next contract would say,
    `in_every_session` names requirements of which each session breaks one, `skipped` the kinds of step that the driver
    skipped, each with the number of its recordings. `unsubmitted` counts the user's turns where prompts are declared
    and none was ever submitted.
    """

    terms: Terms
    judged: Sequence[JudgedTrace]
    judgements: Mapping[str, Judgement]
    coverage: Coverage | None
    reach: UnreachableParts | None
    newer: NewerContract | None
    in_every_session: Sequence[str]
    skipped: Mapping[str, int]
    unsubmitted: int
    generated: GeneratedSummary | None
    shortfall: Shortfall | None
    broken_off: Sequence[JudgedTrace]
    unread: Sequence[SignetConformanceError]
    remarks: Sequence[str]
    _tested: Mapping[str, Verdict] | None
    _lines: Mapping[tuple[int, str], int]
    _was_tested: bool
    _gaps: Counter[Lack]

    @cached_property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict of each requirement that was tested."""
        every = {name: judgement.verdict for name, judgement in self.judgements.items()}
        if self._tested is None:
            return every
        return {name: self._tested[name] for name in (*every, *self._tested) if name in self._tested}

    @cached_property
    def run_level_breaches(self) -> JudgedTrace | None:
        """What only the run as a whole breaches, as one more judged trace without exchanges; None when nothing is."""
        conforming = (Verdict.PASS, Verdict.NOT_APPLICABLE)
        breached = {
            name: each for name in run_rules() if (each := self.judgements.get(name)) and each.verdict not in conforming
        }
        if not breached:
            return None
        first = self.judged[0]
        return JudgedTrace(Trace(first.trace.header, (), ()), first.daemon_version, breached)

    @property
    def contract(self) -> str:
        """The contract version of the run: the one asked for, or the newest that a daemon of the traces serves."""
        served = [contract_version_of(each.daemon_version) for each in self.judged]
        return self.terms.contract or max(served or [contract_version_of(REFERENCE_DAEMON)], key=version_key)

    @cached_property
    def at_model(self) -> Mapping[str, Judgement]:
        """The judgements on what reached the harness's model: for each requirement the first of the worst verdict."""
        decisive: dict[str, Judgement] = {}
        for judgement in (judgement for each in self.judged for judgement in each.harness.values()):
            other = decisive.setdefault(judgement.requirement, judgement)
            if FOLDING_ORDER.index(judgement.verdict) < FOLDING_ORDER.index(other.verdict):
                decisive[judgement.requirement] = judgement
        return decisive

    @property
    def is_about_model(self) -> bool:
        """Whether only requirements of the harness's side were asked for."""
        return self.terms.only is not None and self.terms.only <= harness_requirements().keys()

    @cached_property
    def recorded(self) -> bool:
        """Whether the connector sent what can be tested; of generated sessions alone any request counts."""
        sessions = 0 if self.generated is None else self.generated.tally.exchanges
        return self._was_tested or (sessions > 0 and not self.judged)

    @cached_property
    def identity(self) -> Identity:
        """The facts that distinguish the run from others."""
        seed = None if self.generated is None else self.generated.seed
        return Identity.of(self.judged, seed, self.terms.connector)

    @property
    def lacks_scenarios(self) -> bool:
        """Whether a scenario of the run was not performed to its end."""
        return self.shortfall is not None or bool(self.broken_off)

    def broken_off_notes(self) -> Sequence[str]:
        """The recordings that decide nothing, a line each."""
        return [
            f"{each.trace.path or 'a trace'}: the scenario was broken off, so its trace decides nothing:"
            f" {broke_off(each.trace)}"
            for each in self.broken_off
        ]

    @property
    def is_interrupted(self) -> bool:
        """Whether the user stopped the run."""
        return self.shortfall is not None and self.shortfall.interrupted_after is not None

    # -- known failures

    @cached_property
    def by_target(self) -> Verdicts:
        """The verdicts that were tested, by target: the one that was named, or those of the recordings."""
        each = by_target(self.judged, self.terms.target, self.judgements)
        return {at: {n: verdicts[n] for n in verdicts if n in self.verdicts} for at, verdicts in each.items()}

    @cached_property
    def known(self) -> KnownInRun:
        """The known failures among the verdicts; empty where nothing was tested."""
        return self.terms.known.in_run(self.by_target) if self.verdicts else KnownInRun()

    @cached_property
    def known_reasons(self) -> Mapping[str, str]:
        """The requirements whose failure is known at each target that has it, with the first entry in words."""
        reasons = {at: self.terms.known.reasons(at, verdicts) for at, verdicts in self.by_target.items()}
        reason_of = {}
        for name, verdict in self.verdicts.items():
            failing = [at for at, verdicts in self.by_target.items() if verdicts.get(name) in COVERABLE]
            if verdict in COVERABLE and failing and all(name in reasons[at] for at in failing):
                reason_of[name] = reasons[failing[0]][name]
        return reason_of

    def write_audit(self) -> None:
        """Log the failures that were accepted. Raises UsageError when that is not possible."""
        if self.known.covered:
            self.terms.known.write_audit(self.known, self.by_target)

    def write_baseline(self) -> str | None:
        """Write the requested baseline. Return a line about it, or None without a request. Raises UsageError."""
        return self.terms.known.write(self.by_target) if self.verdicts else None

    # -- status

    @cached_property
    def status(self) -> int:
        """The exit status: unreadable files decide it first, then missing scenarios, then the verdicts.

        A run without a breach is incomplete where the recorder could not carry or decode something, or no declared
        prompt was ever submitted. That nothing was tested counts before too little coverage of the contract.
        """
        if self.unread:
            return UsageError.exit_status
        if self.lacks_scenarios:
            return KitError.exit_status
        if self._verdicts_status in (0, NothingTestedError.exit_status) and self.known.fails:
            return 1
        if self._verdicts_status == 0 and (self.gaps or self._lacks_prompts_silently):
            return KitError.exit_status
        return 1 if self._verdicts_status == 0 and self.covers_too_little else self._verdicts_status

    @cached_property
    def _verdicts_status(self) -> int:
        if self.is_about_model:
            verdicts = {judgement.verdict for judgement in self.at_model.values()}
            if Verdict.ERROR in verdicts:
                return KitError.exit_status
            # As always, what reached the model changes no exit status.
            return 0 if verdicts.intersection(TESTED) else NothingTestedError.exit_status
        unknown = [verdict for name, verdict in self.verdicts.items() if name not in self.known_reasons]
        # What is known to fail was tested, even where nothing else was.
        tested = [*unknown, Verdict.PASS] if self.known_reasons else unknown
        return exit_status(tested, strict=self.terms.strict, recorded=self.recorded)

    @cached_property
    def because(self) -> str:
        """What fails the run beside its verdicts, in words; empty where nothing does."""
        covers = self.covers_too_little and self._verdicts_status != NothingTestedError.exit_status
        count = len(self.shortfall.broken) if self.shortfall is not None else len(self.broken_off)
        broken = f"{counted(count, 'scenario')} that broke off" if count else ""
        coverage = "too little coverage" if covers else ""
        unsubmitted = f"no prompt was submitted in {counted(self.unsubmitted, 'turn')} of the user, though declared"
        prompts = unsubmitted if self._lacks_prompts_silently else ""
        return " and ".join(filter(None, [broken, failing_text(self.known), *self.gaps, prompts, coverage]))

    @property
    def _lacks_prompts_silently(self) -> bool:
        """Whether prompts are declared, asked for, and never submitted, without a breach that says so."""
        return self._verdicts_status == 0 and self.terms.only is None and self.unsubmitted > 0

    @property
    def gaps(self) -> Sequence[str]:
        """Count in words what the recorder could not carry, decode or keep, and what a capture lacks."""
        generated = Counter[Lack]() if self.generated is None else self.generated.tally.gaps
        return in_words(self._gaps + generated)

    @property
    def covers_too_little(self) -> bool:
        """Whether less of the contract was exercised than the terms ask for."""
        least = self.terms.least_coverage
        return self.coverage is not None and least is not None and self.coverage.percent < least

    def coverage_note(self) -> str | None:
        """What to do about too little coverage; None where it is enough."""
        if not self.covers_too_little:
            return None
        return f"coverage is below {self.terms.least_coverage:g} %: exercise more, or lower the minimum"

    # -- evidence

    def place_of(self, requirement: str) -> tuple[str, int] | None:
        """File and line of the first exchange that decides a requirement (1: none does); None where no trace does."""
        judgement = self.judgements.get(requirement)
        for number, each in enumerate(self.judged):
            own = each.judgements.get(requirement)
            if judgement is None or own is None or own.verdict is not judgement.verdict or not own.findings:
                continue
            if each.trace.path is not None:
                return each.trace.path, self._lines.get((number, requirement), 1)
        return None


def _line(trace: Trace, finding: Finding) -> int:
    """The line of the first exchange of a finding; the header's line without one."""
    first = next(iter(finding.exchanges), None)
    if first is not None and isinstance(trace.exchanges, FileExchanges):
        return trace.exchanges.line_of(first) or 1
    return next((exchange.line for exchange in trace.exchanges if exchange.seq == first), 1)
