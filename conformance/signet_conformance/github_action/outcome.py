"""What a lane's run came to: the verdicts of its report, less the failures that a baseline knows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signet_conformance import trace
from signet_conformance.errors import KitError, SignetConformanceError, printable
from signet_conformance.finding import FOLDING_ORDER, Verdict
from signet_conformance.github_action.github import Annotation
from signet_conformance.outcome import baseline
from signet_conformance.outcome.baseline import Known

if TYPE_CHECKING:
    from signet_conformance.outcome.baseline_documents import Entry

WORDS: Mapping[int, str] = {
    0: "conforming",
    1: "breached",
    2: "unusable",
    3: "untested",
    4: "unjudged",
    130: "cancelled",
}
"""Exit status to the one word that the output `verdict` says of a lane."""
MAX_ANNOTATIONS = 10
"""GitHub shows ten errors and ten warnings of a step."""
_LEVELS = {Verdict.ERROR: "error", Verdict.FAIL: "error", Verdict.WARN: "warning"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict of each requirement, what a baseline says of them, and the exit status of the lane.

    `together` is the report's own: requirement to verdict, reason and findings.
    """

    target: str
    together: Mapping[str, Any]
    verdicts: Mapping[str, Verdict]
    known: baseline.KnownInRun
    status: int

    def counts(self) -> dict[str, int]:
        """How many requirements have each verdict, all six named."""
        tally = Counter(self.verdicts.values())
        return {verdict.value: tally[verdict] for verdict in FOLDING_ORDER}

    def breaches(self) -> Iterator[str]:
        """The requirements that are breached and not known to be, the worst first."""
        for verdict in _LEVELS:
            yield from (n for n, v in self.verdicts.items() if v is verdict and not self.entry(n))

    def entry(self, requirement: str) -> Entry | None:
        """The entry of the baseline that lets a failure pass."""
        found = self.known.covered.get((requirement, self.target))
        return None if found is None else found[1]


def read_outcome(report: Path, target: str, known: Sequence[Known] = (), today: date | None = None) -> Outcome:
    """Read a run's report, and what the files of known failures say of it. Raises KitError when it is no report.

    The run was told of the same files: its exit status counts what they let pass.
    """
    try:
        document = json.loads(report.read_bytes())
        together = document["together"]
        verdicts = {name: Verdict(one["verdict"]) for name, one in together.items()}
        status = int(document["exit"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as failure:
        raise KitError(
            f"is no report of a run: {printable(failure, 160)}",
            where=str(report),
            remedy="look into the log above: the run ended before its report was written",
        ) from None
    found = baseline.held({target: verdicts}, known, today or datetime.now(UTC).date())
    return Outcome(target, together, verdicts, found, status)


def remarks(outcome: Outcome, workspace: Path) -> Iterator[Annotation]:
    """A remark for each breach, at the line of the trace that shows it first; then for entries that fail the lane."""
    shown: Counter[str] = Counter()
    names = list(outcome.breaches())
    for name in names:
        verdict = outcome.verdicts[name]
        shown[level := _LEVELS[verdict]] += 1
        if shown[level] <= MAX_ANNOTATIONS:
            yield _breach(name, verdict, outcome.together[name], workspace)
    if over := sum(max(0, count - MAX_ANNOTATIONS) for count in shown.values()):
        yield Annotation("notice", "Signet conformance", f"{over} more requirements are breached: see the summary")
    for word, entries, advice in (
        ("stale", outcome.known.stale, "it no longer fails: take the entry out"),
        ("expired", outcome.known.expired, "mend the connector, or agree on a later day"),
    ):
        for file, entry in entries:
            text = f"the entry of {entry.requirement} at {entry.target} is {word}: {advice}"
            yield Annotation("error", "Signet baseline", text, relative(Path(file.path), workspace))


def _breach(name: str, verdict: Verdict, one: Mapping[str, Any], workspace: Path) -> Annotation:
    title = f"{verdict.value} {name}"
    advice = f"signet-conformance explain {name}"
    finding = next(iter(one.get("findings") or ()), None)
    if finding is None:
        return Annotation(_LEVELS[verdict], title, f"see the log; {advice}")
    text = f"{finding['message']} ({advice})"
    file = finding.get("file")
    if file is None:
        return Annotation(_LEVELS[verdict], title, text)
    first = next(iter(finding["exchanges"]), None)
    return Annotation(_LEVELS[verdict], title, text, relative(Path(file), workspace), _line(file, first))


def _line(file: str, exchange: int | None) -> int:
    """The line of a trace that holds an exchange; the header's when it cannot be found."""
    try:
        return next((one.line for one in trace.read(file).exchanges if one.seq == exchange), 1)
    except SignetConformanceError:
        return 1


def relative(path: Path, workspace: Path) -> str:
    """A path as GitHub knows it: from the workspace."""
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)
