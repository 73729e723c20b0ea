"""The annotations of a lane: a breach at the line of its trace, an entry that fails the lane at its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from signet_conformance.finding import FOLDING_ORDER, Verdict
from signet_conformance.github_action.github import Annotation
from signet_conformance.outcome.conclusion import Conclusion

WORDS: Mapping[int, str] = {
    0: "conforming",
    1: "breached",
    2: "unusable",
    3: "untested",
    4: "unjudged",
    130: "cancelled",
}
"""Exit status to the word in the lane's output `verdict`."""
MAX_ANNOTATIONS = 10
"""GitHub shows ten errors and ten warnings of a step."""
_LEVELS = {Verdict.ERROR: "error", Verdict.FAIL: "error", Verdict.WARN: "warning"}


def counts(conclusion: Conclusion) -> dict[str, int]:
    """How many requirements have each verdict, all six named."""
    tally = Counter(conclusion.verdicts.values())
    return {verdict.value: tally[verdict] for verdict in FOLDING_ORDER}


def breaches(conclusion: Conclusion) -> Iterator[str]:
    """The requirements that are breached and not known to be, the worst first."""
    for verdict in _LEVELS:
        for name, reached in conclusion.verdicts.items():
            if reached is verdict and name not in conclusion.known_reasons:
                yield name


def remarks(conclusion: Conclusion, workspace: Path) -> Iterator[Annotation]:
    """A remark for each breach, at the line of the trace that shows it first; then for entries that fail the lane."""
    shown: Counter[str] = Counter()
    for name in breaches(conclusion):
        shown[level := _LEVELS[conclusion.verdicts[name]]] += 1
        if shown[level] <= MAX_ANNOTATIONS:
            yield _breach(conclusion, name, workspace)
    if over := sum(max(0, count - MAX_ANNOTATIONS) for count in shown.values()):
        yield Annotation("notice", "Signet conformance", f"{over} more requirements are breached: see the summary")
    for word, entries, advice in (
        ("stale", conclusion.known.stale, "it no longer fails: remove the entry"),
        ("expired", conclusion.known.expired, "mend the connector, or agree on a later date"),
    ):
        for file, entry in entries:
            text = f"the entry of {entry.requirement} at {entry.target} is {word}: {advice}"
            yield Annotation("error", "Signet baseline", text, relative(Path(file.path), workspace))


def _breach(conclusion: Conclusion, name: str, workspace: Path) -> Annotation:
    verdict = conclusion.verdicts[name]
    title = f"{verdict.value} {name}"
    advice = f"signet-conformance explain {name}"
    first = next(iter(conclusion.evidence(name)), None)
    if first is None:
        return Annotation(_LEVELS[verdict], title, f"see the log; {advice}")
    text = f"{first.finding.message} ({advice})"
    if first.file is None:
        return Annotation(_LEVELS[verdict], title, text)
    return Annotation(_LEVELS[verdict], title, text, relative(Path(first.file), workspace), first.line)


def relative(path: Path, workspace: Path) -> str:
    """A path as GitHub knows it: from the workspace."""
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)
