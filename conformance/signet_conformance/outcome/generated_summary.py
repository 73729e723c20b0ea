"""The results of a run's generated sessions: kept in the run's folder, printed at its end, merged into its verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, get_args

from msgspec import Struct, field, json

from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import counted
from signet_conformance.files import shown_path
from signet_conformance.finding import BREACHES, Judgement, Reason, Verdict
from signet_conformance.outcome.recording_gaps import Lack, in_words, lacks_of
from signet_conformance.rules import run_rules

FILE = "generated.json"
LONG = 200
"""Characters. The shrinking of a longer prompt is mentioned in the output."""


class VerdictCounts(Struct):
    """The verdicts of every requirement over many traces: how often each, and over how many subjects.

    `exchanges` counts what the traces hold together, `gaps` what they lack.
    """

    verdicts: dict[str, Counter[Verdict]] = field(default_factory=dict)
    subjects: Counter[str] = field(default_factory=Counter)
    exchanges: int = 0
    gaps: Counter[Lack] = field(default_factory=Counter)

    def add(self, judged: JudgedTrace) -> None:
        """Count the verdicts of one trace."""
        for name, judgement in judged.judgements.items():
            self.verdicts.setdefault(name, Counter())[judgement.verdict] += 1
            self.subjects[name] += judgement.subjects
        self.exchanges += len(judged.trace.exchanges)
        for at, times in lacks_of(judged).items():
            self.gaps[at.lack] += times

    def merge(self, other: VerdictCounts) -> None:
        """Count those of another tally too."""
        for name, verdicts in other.verdicts.items():
            self.verdicts.setdefault(name, Counter()).update(verdicts)
        self.subjects.update(other.subjects)
        self.exchanges += other.exchanges
        self.gaps.update(other.gaps)


class GeneratedBreach(Struct, frozen=True):
    """A requirement that a generated scenario showed breached.

    `confirmed` tells whether a fresh connector showed the same; `also` names other requirements that its trace breaches
    with an equal verdict. `steps` counts the steps of the saved scenario, `drawn` those before shrinking, `tried` the
    sessions that shrinking performed, 0 if it was not shrunk. `characters` and `drawn_characters` are the lengths of
    the longest prompt, after and before shrinking. `smaller` counts the steps of a smaller scenario that a fresh
    connector did not confirm; the saved scenario is then the one that was drawn. `traces` are the confirming one, or,
    of an unconfirmed breach, the one with and the one without it.
    """

    requirement: str
    verdict: Verdict
    confirmed: bool
    also: tuple[str, ...]
    steps: int
    drawn: int
    tried: int
    scenario: str
    traces: tuple[str, ...]
    replay: str
    characters: int = 0
    drawn_characters: int = 0
    smaller: int | None = None


class DaemonBreach(Struct, frozen=True):
    """A requirement on the daemon that `sessions` generated sessions showed breached: no verdict of the connector.

    `confirmed` tells whether the first of them showed it again with a fresh connector; its trace is then one of the
    run's traces, and is reported with them.
    """

    requirement: str
    verdict: Verdict
    confirmed: bool
    sessions: int


class Failure(Struct, frozen=True):
    """A generated scenario that the connector could not perform; `confirmed` when a fresh one could not either."""

    error: str
    confirmed: bool
    scenario: str
    replay: str


class GeneratedSummary(Struct):
    """The generated sessions of a run.

    `outages` counts the sessions with each outage that users really have, by its name; `skipped` counts the steps of
    each kind for which connector or harness had no counterpart; `lost` names outages that the sessions could not have,
    and what to do about it.
    """

    seed: int
    performed: int = 0
    tally: VerdictCounts = field(default_factory=VerdictCounts)
    breaches: list[GeneratedBreach] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    daemon: list[DaemonBreach] = field(default_factory=list)
    outages: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    @property
    def has_unconfirmed(self) -> bool:
        """Whether a fresh connector did not show a breach again."""
        return not all(breach.confirmed for breach in self.breaches)

    def write(self, folder: Path) -> None:
        """Write it into the folder of the run, for xdist workers."""
        (folder / FILE).write_bytes(json.format(json.encode(self), indent=1))

    @classmethod
    def from_folder(cls, folder: Path) -> Self | None:
        """The summary that a run left; None when it generated nothing."""
        path = folder / FILE
        return json.decode(path.read_bytes(), type=cls, dec_hook=_counter) if path.is_file() else None

    def lines(self) -> Iterator[str]:
        """The closing lines of a run: the number of breaches, then each breach with the file that reproduces it."""
        yield self._line()
        for breach in self.breaches:
            count = counted(breach.steps, "step")
            names = ", ".join((breach.requirement, *breach.also))
            again = "" if breach.confirmed else ", which a second performance did not show"
            yield f"  {breach.verdict} {names} in {count}{again}, saved as {shown_path(breach.scenario)}"

    def coverage_lines(self) -> Iterator[str]:
        """List how many sessions had each outage, which steps were skipped, and which outages no session had."""
        if self.outages:
            counts = ", ".join(f"{name} {count}" for name, count in self.outages.items())
            yield f"generated sessions that held an outage: {counts}"
        if self.skipped:
            skipped = ", ".join(f"{step} {count}" for step, count in self.skipped.items())
            yield f"steps of generated sessions that were skipped: {skipped}"
        yield from self.gap_lines()
        yield from self.lost

    def gap_lines(self) -> Iterator[str]:
        """List the requests and bodies that could not be judged, which make the run incomplete."""
        yield from (f"not judged in generated sessions: {gaps}" for gaps in in_words(self.tally.gaps))

    def _line(self) -> str:
        confirmed = sum(breach.confirmed for breach in self.breaches)
        flaky = len(self.breaches) - confirmed + sum(not failure.confirmed for failure in self.failures)
        more = "more " if self._repeats_breaches() else ""
        breaches = f"{confirmed} {more}breach{'' if confirmed == 1 else 'es'} found and confirmed"
        passing = ", ".join(
            f"{breach.requirement} ({breach.sessions})" for breach in self.daemon if not breach.confirmed
        )
        return (
            f"{self.performed} generated sessions of seed {self.seed}: {breaches}"
            + (f", {flaky} that a fresh connector did not show again" if flaky else "")
            + (f"; on the daemon's side, not shown again by a fresh connector: {passing}" if passing else "")
        )

    def _repeats_breaches(self) -> bool:
        """Whether the sessions breached what the scripted scenarios had breached before them."""
        of_sessions = {name for breach in self.breaches for name in (breach.requirement, *breach.also)}
        breached = {name for name, verdicts in self.tally.verdicts.items() if verdicts.keys() & BREACHES}
        return not breached <= of_sessions


def _counter(kind: Any, counts: Any) -> Counter[Any]:
    """Read a counter from its object in a file; msgspec reads no counter by itself."""
    (of,) = get_args(kind)
    return Counter({of(name): times for name, times in counts.items()})


def with_generated(judgements: Mapping[str, Judgement], summary: GeneratedSummary | None) -> Mapping[str, Judgement]:
    """Merge the verdicts of generated sessions into those of a run.

    Traces that confirm a breach are among the run's own already. The rest is added here: sessions that conform where no
    other trace had a subject, and breaches that a fresh connector did not show again, which leave a requirement
    undecided rather than failed or passed.
    """
    if summary is None:
        return judgements
    together = {name: _with_tally(judgement, summary.tally) for name, judgement in judgements.items()}
    for breach in summary.breaches:
        before = together[breach.requirement]
        if not breach.confirmed and before.verdict not in BREACHES:
            message = (
                f"{breach.verdict} in a generated session ({breach.traces[0]}), but not when a fresh connector"
                f" performed it again ({breach.traces[-1]}); replay: {breach.replay}"
            )
            together[breach.requirement] = Judgement(
                before.requirement, Verdict.INCONCLUSIVE, Reason.UNDECIDED, message, subjects=before.subjects
            )
    return together


def _with_tally(judgement: Judgement, tally: VerdictCounts) -> Judgement:
    counts = tally.verdicts.get(judgement.requirement)
    undecided = judgement.verdict is Verdict.INCONCLUSIVE or judgement.reason is Reason.NO_SUBJECT
    if not counts or judgement.requirement in run_rules() or not (undecided or judgement.verdict is Verdict.PASS):
        return judgement
    subjects = judgement.subjects + tally.subjects[judgement.requirement]
    if judgement.verdict is Verdict.PASS or counts[Verdict.PASS]:
        message = counted(subjects, "subject")
        return Judgement(judgement.requirement, Verdict.PASS, Reason.CONFORMING, message, subjects=subjects)
    if judgement.reason is Reason.NO_SUBJECT and counts[Verdict.INCONCLUSIVE]:
        message = "no generated session decides it"
        return Judgement(judgement.requirement, Verdict.INCONCLUSIVE, Reason.UNDECIDED, message, subjects=subjects)
    return judgement


def breach_lines(breaches: Iterable[GeneratedBreach], requirement: str) -> Sequence[str]:
    """The lines about the generated sessions that breach a requirement."""
    return [
        line
        for breach in breaches
        if breach.confirmed and requirement in (breach.requirement, *breach.also)
        for line in (_how_found(breach), f"replay: {breach.replay}")
    ]


def _how_found(breach: GeneratedBreach) -> str:
    steps = counted(breach.steps, "step")
    if breach.smaller is not None:
        return (
            f"generated session that shows it, as it was drawn: {steps} (one of {breach.smaller} showed it only"
            f" with other sessions before it; {breach.tried} tried): {breach.scenario}"
        )
    if breach.tried == 0:
        return f"generated session that shows it, as it was drawn, not shrunk: {steps}: {breach.scenario}"
    cut = (
        f", with {breach.characters:,} of {breach.drawn_characters:,} characters in its longest prompt"
        if breach.characters < breach.drawn_characters and breach.drawn_characters > LONG
        else ""
    )
    if breach.steps < breach.drawn or cut:
        return (
            f"smallest generated session that shows it: {steps}{cut}"
            f" (found with {breach.drawn}; {breach.tried} tried): {breach.scenario}"
        )
    return f"generated session that shows it: {steps}, no smaller one does ({breach.tried} tried): {breach.scenario}"
