"""The annotations of a lane: a breach at the line that sent it, else of its trace; a stale entry at its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from signet_conformance.finding import FOLDING_ORDER, Verdict
from signet_conformance.github_action.github import Annotation
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.reports.cause_words import seen
from signet_conformance.reports.causes import Cause, Causes
from signet_conformance.reports.requirement_pages import explain_command, page_address

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
MAX_NAMED = 3
"""Requirements of one cause that the title of its annotation names."""
_LEVELS = {Verdict.ERROR: "error", Verdict.FAIL: "error", Verdict.WARN: "warning"}


def counts(conclusion: Conclusion) -> dict[str, int]:
    """How many requirements have each verdict, all six named."""
    tally = Counter(conclusion.verdicts.values())
    return {verdict.value: tally[verdict] for verdict in FOLDING_ORDER}


def remarks(conclusion: Conclusion, workspace: Path) -> Iterator[Annotation]:
    """A remark for each cause, at the line of the trace that shows it best; then for entries that fail the lane."""
    shown: Counter[str] = Counter()
    for cause in Causes.of(conclusion).connector():
        if cause.is_known:
            continue
        shown[level := _LEVELS[cause.verdict]] += 1
        if shown[level] <= MAX_ANNOTATIONS:
            yield _cause(cause, workspace)
    if over := sum(max(0, count - MAX_ANNOTATIONS) for count in shown.values()):
        yield Annotation("notice", "Signet conformance", f"{over} more causes: see the summary")
    for word, entries, advice in (
        ("stale", conclusion.known.stale, "it no longer fails: remove the entry"),
        ("expired", conclusion.known.expired, "mend the connector, or agree on a later date"),
    ):
        for file, entry in entries:
            text = f"the entry of {entry.requirement} at {entry.target} is {word}: {advice}"
            yield Annotation("error", "Signet baseline", text, relative(Path(file.path), workspace))


def _cause(cause: Cause, workspace: Path) -> Annotation:
    level, first = _LEVELS[cause.verdict], cause.first
    title = f"{cause.verdict.value} {', '.join(cause.requirements[:MAX_NAMED])}"
    page = page_address(cause.requirement) or explain_command(cause.requirement)
    text = f"{', '.join(filter(None, [first.example.what, seen(cause)]))} ({page})"
    for source in first.example.sources:
        if (file := Path.cwd() / source.file).is_relative_to(workspace):
            return Annotation(level, title, text, relative(file, workspace), source.line)
    if not first.file:
        return Annotation(level, title, text)
    return Annotation(level, title, text, relative(Path(first.file), workspace), first.example.line or 1)


def relative(path: Path, workspace: Path) -> str:
    """A path as GitHub knows it: from the workspace."""
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)
