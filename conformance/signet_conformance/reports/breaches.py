"""What a run breaches, gathered as its traces come: a requirement with the first traces that show it, bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from signet_conformance.engine import Judged
from signet_conformance.errors import printable
from signet_conformance.finding import FOLDING_ORDER, Judgement, Verdict
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.reports.ending import Ending
from signet_conformance.reports.evidence import BREACHES, MAX_KINDS, Evidence, evidence, kinds, known_requirement

MAX_TRACES = 3
"""Traces whose evidence is kept for one requirement; the others are counted."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What one trace shows of a breach. `file` is empty where only the run as a whole shows it.

    `more` counts kinds of breach that are left out, `known` says why the failure may stand.
    """

    file: str
    kinds: tuple[Evidence, ...]
    more: int
    known: str


@dataclass(slots=True)
class Breach:
    """One requirement that a run breaches.

    `traces` counts the traces with this verdict, `known` those of them where the failure is known. `path` is the
    first of them, `replay` the command that judges it again; both are empty where no single trace shows the breach.
    """

    requirement: str
    verdict: Verdict
    level: str
    message: str
    path: str
    replay: str = ""
    traces: int = 0
    known: int = 0
    shown: list[Shown] = field(default_factory=list)

    @property
    def is_known(self) -> bool:
        """Whether each trace that shows it is one where the failure is known."""
        return self.known == self.traces


class Breaches:
    """Gathers the breaches of a run; those of the daemon and of the harness stand apart."""

    def __init__(self) -> None:
        self._connector: dict[str, Breach] = {}
        self._daemon: dict[str, Breach] = {}
        self._harness: dict[str, Breach] = {}

    def add(self, judged: Judged, known: Mapping[str, str]) -> None:
        """Take one trace; `known` is as for a report."""
        for name, judgement in judged.judgements.items():
            _add(self._connector, judged, judgement, known.get(name, ""))
        for judgement in judged.daemon.values():
            _add(self._daemon, judged, judgement, "")
        for judgement in judged.harness.values():
            _add(self._harness, judged, judgement, "")

    def end(self, ending: Ending) -> None:
        """Add what only the run as a whole breaches; drop breaches whose verdict the generated sessions changed."""
        whole = ending.run_level_breaches()
        if whole is not None:
            for judgement in whole.judgements.values():
                _add(self._connector, whole, judgement, ending.known.get(judgement.requirement, ""))
        verdicts = ending.verdicts()
        self._connector = {
            name: breach
            for name, breach in self._connector.items()
            if verdicts.get(name, breach.verdict) is breach.verdict
        }
        # `check -k` takes no requirement of the daemon's side, so those get no replay.
        for name, breach in self._connector.items():
            if breach.path:
                breach.replay = shell_command(["signet-conformance", "check", breach.path, *ending.options, "-k", name])

    def connector(self) -> list[Breach]:
        """Errors of the kit first, then FAIL, then WARN; in the catalogue's order."""
        return sorted(self._connector.values(), key=lambda breach: BREACHES.index(breach.verdict))

    def daemon(self) -> list[Breach]:
        """What the daemon breaches, in the same order."""
        return sorted(self._daemon.values(), key=lambda breach: BREACHES.index(breach.verdict))

    def harness(self) -> list[Breach]:
        """What the harness breaches at its model, in the same order."""
        return sorted(self._harness.values(), key=lambda breach: BREACHES.index(breach.verdict))


def _add(breaches: dict[str, Breach], judged: Judged, judgement: Judgement, known: str) -> None:
    if judgement.verdict not in BREACHES:
        return
    name = judgement.requirement
    before = breaches.get(name)
    if before is None or FOLDING_ORDER.index(judgement.verdict) < FOLDING_ORDER.index(before.verdict):
        requirement = known_requirement(name)
        level = requirement.level_at(judged.daemon_version) if requirement is not None else ""
        before = breaches[name] = Breach(
            name, judgement.verdict, level, printable(judgement.message, 400), judged.trace.path or ""
        )
    if judgement.verdict is not before.verdict:
        return
    before.traces += 1
    before.known += bool(known)
    if len(before.shown) < MAX_TRACES:
        before.shown.append(_shown(judged, judgement, known))


def _shown(judged: Judged, judgement: Judgement, known: str) -> Shown:
    groups = kinds(judgement.findings)
    pieces = tuple(evidence(judged, kind) for kind in groups[:MAX_KINDS])
    return Shown(
        printable(judged.trace.path or "", 400),
        pieces or (Evidence(printable(judgement.message, 400)),),
        max(0, len(groups) - MAX_KINDS),
        printable(known, 300),
    )
