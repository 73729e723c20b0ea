"""Mutation testing of rules, engine and timeline: change the code in one place; a test must fail.

The tool prints the changes that no test noticed and that mutation_survivors.json does not explain; the exit status is
then 1. It runs the tests in tests/rules, tests/engine and tests/facts. It needs cosmic-ray, which makes the changes.

An outcome in the file of outcomes is valid until the top-level statement of its change is edited. `--minutes 0` tries
nothing and reports the outcomes in the file. `--listed` shows whether mutation_survivors.json is still true.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import math
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

import pytest
from mutation_changes import Change, changes_of
from mutation_trial import NO_PYTHON, SURVIVED, Trial

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "conformance" / "signet_conformance"
MODULES = (
    *sorted((PACKAGE / "rules").rglob("*.py")),
    *sorted((PACKAGE / "engine").glob("*.py")),
    *(PACKAGE / "facts" / name for name in ("sessions.py", "timeline.py")),
)
WITNESSES = [str(ROOT / "tests" / room) for room in ("rules", "engine", "facts")]
PAGE = Path(__file__).with_name("rule-mutation.md")
EXPLAINED = Path(__file__).with_name("mutation_survivors.json")
KEPT = ROOT / ".mutation-outcomes.jsonl"
MARK = "<!-- figures: written by ci/tools/mutation.py --write -->"


@dataclass(frozen=True)
class Explanation:
    """The reason why some changes survive: those in `module`, by one of the operators, on a line that `code` matches.

    `same` says that they alter no verdict, message or named exchange of any recording.
    """

    module: str
    operator: str
    code: str
    why: str
    same: bool

    def fits(self, change: Change) -> bool:
        """Whether this explains the survival of a change."""
        return (
            fnmatch(_name(change.module), self.module)
            and any(fnmatch(change.operator.removeprefix("core/"), operator) for operator in self.operator.split())
            and re.search(self.code, " ⇒ ".join(change.lines)) is not None
        )


def main() -> int:
    """Make the changes, run the tests, and report; return 1 if a change survived without an explanation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", nargs="*", help="only these, such as rules/end.py (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="how many changes to try at a time (default: 1)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--since", metavar="REV", help="only top-level statements that are not in this revision")
    which.add_argument("--listed", action="store_true", help="only listed survivors and untried changes")
    parser.add_argument(
        "--resume", action="store_true", help="try only changes that survived or have no outcome in the file"
    )
    parser.add_argument("--keep", type=Path, default=KEPT, help=f"the file of outcomes (default: {KEPT.name})")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no trial after this time")
    parser.add_argument("--write", action="store_true", help="write the figures into ci/tools/rule-mutation.md")
    options = parser.parse_args()
    if unknown := set(options.module) - {_name(module) for module in MODULES}:
        parser.error(f"no such module: {', '.join(sorted(unknown))}; they are named like rules/end.py")
    if options.since and _git("rev-parse", "--verify", f"{options.since}^{{commit}}") is None:
        parser.error(f"--since: git knows no revision {options.since}")
    part = bool(options.module or options.since or options.listed)
    if options.write and part:
        parser.error("--write needs the figures of all modules: leave out MODULE, --since and --listed")
    explanations = [Explanation(**entry) for entry in json.loads(EXPLAINED.read_text("utf-8"))]
    changes = [
        change
        for module in MODULES
        if not options.module or _name(module) in options.module
        for change in changes_of(module, _source_of(module, options.since))
    ]
    kept = _read_outcomes(changes, options.keep)
    if options.listed:
        changes = [c for c in changes if c not in kept or any(e.fits(c) for e in explanations)]
    noticed_by = {change: by for change, (_, by) in kept.items()}
    outcomes = {change: outcome for change, (outcome, _) in kept.items() if options.resume and outcome != SURVIVED}
    again = [change for change in changes if change not in outcomes]
    if not options.minutes:
        outcomes = {change: outcome for change, (outcome, _) in kept.items()}

    def note(change: Change, outcome: str, by: str) -> None:
        outcomes[change] = outcome
        with options.keep.open("a", encoding="utf-8") as file:
            file.write(json.dumps([_identity(change), outcome, by]) + "\n")

    if options.minutes > 0:
        until = time.monotonic() + 60 * options.minutes
        trial = Trial(MODULES, again, note, jobs=options.jobs, until=until, noticed_by=noticed_by)
        pytest_options = ("-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}")
        status = pytest.main([*pytest_options, *WITNESSES], plugins=[trial])
        if status != 0:
            return int(status)
    untried = sum(change not in outcomes for change in changes)
    changes = [change for change in changes if outcomes.get(change, NO_PYTHON) != NO_PYTHON]
    survivors = [change for change in changes if outcomes[change] == SURVIVED]
    explained = {change: next((e for e in explanations if e.fits(change)), None) for change in survivors}
    figures = _figures(changes, explained, untried)
    print(figures)
    if options.write:
        before, _, _ = PAGE.read_text("utf-8").partition(MARK)
        PAGE.write_text(f"{before}{MARK}\n\n{figures}\n{_table(explanations, explained)}", "utf-8")
    return _print_unexplained(explanations, explained, whole=not part)


def _source_of(module: Path, revision: str | None) -> str | None:
    """The text of a module in a revision, empty if the module did not exist; None without a revision."""
    if revision is None:
        return None
    return _git("show", f"{revision}:{module.relative_to(ROOT).as_posix()}") or ""


def _git(*words: str) -> str | None:
    command = ("git", *words)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    return done.stdout if done.returncode == 0 else None


def _identity(change: Change) -> str:
    """The identity of a change, which stays the same until its top-level statement is edited."""
    digest = hashlib.sha256(change.original.encode()).hexdigest()[:16]
    line, column = change.position
    return f"{_name(change.module)} {digest} {change.operator} {change.occurrence} {line - change.first}:{column}"


def _read_outcomes(changes: Iterable[Change], file: Path) -> dict[Change, tuple[str, str]]:
    """The last outcome of each change in the file, and the test that noticed the change."""
    if not file.exists():
        return {}
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    outcomes = {identity: (outcome, by) for identity, outcome, by in rows}
    return {change: outcomes[identity] for change in changes if (identity := _identity(change)) in outcomes}


def _name(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def _figures(changes: Sequence[Change], explained: Mapping[Change, Explanation | None], untried: int) -> str:
    same = Counter(_name(change.module) for change, why in explained.items() if why is not None and why.same)
    survived = Counter(_name(change.module) for change in explained)
    made = Counter(_name(change.module) for change in changes)
    rows = [(made[name], made[name] - survived[name], same[name], survived[name] - same[name]) for name in made]
    total = [sum(row[column] for row in rows) for column in range(4)]
    tried, noticed, unchanged, changed = total
    not_tried = f" ({untried} more were not)" if untried else ""
    summary = (
        f"On {datetime.now(UTC):%Y-%m-%d}: {tried} changes were tried{not_tried}, {noticed} of them noticed,"
        f" {len(explained)} not. Of these, {unchanged} change no behaviour."
        f" Of the {noticed + changed} that do, {noticed} were noticed:"
        f" {100 * noticed / max(1, noticed + changed):.1f} %."
    )
    lines = [
        summary,
        "",
        "| module | changes | noticed | survived, the same behaviour | survived, another behaviour |",
        "|---|---|---|---|---|",
        *(" | ".join([f"| `{name}`", *map(str, row)]) + " |" for name, row in zip(made, rows, strict=True)),
        " | ".join(["| together", *map(str, total)]) + " |",
    ]
    return "\n".join(lines)


def _table(explanations: Iterable[Explanation], explained: Mapping[Change, Explanation | None]) -> str:
    counts = Counter(explained.values())
    lines = []
    for same, heading in ((True, "Survivors of the same behaviour"), (False, "Survivors of another behaviour")):
        lines += ["", f"## {heading}", "", "| where | line | changes | why |", "|---|---|---|---|"]
        for entry in explanations:
            if entry.same is same and counts[entry]:
                lines.append(f"| {entry.module} | {_code(entry.code)} | {counts[entry]} | {entry.why} |")
    missing = Counter((_name(change.module), change.lines[0]) for change, why in explained.items() if why is None)
    if missing:
        lines += ["", "## Survivors that a test should notice", "", "| where | line | changes |", "|---|---|---|"]
        lines += [f"| {name} | {_code(line[:100])} | {count} |" for (name, line), count in missing.items()]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"


def _print_unexplained(
    explanations: Iterable[Explanation], explained: Mapping[Change, Explanation | None], *, whole: bool
) -> int:
    by_line: dict[tuple[str, int, str], list[str]] = defaultdict(list)
    for change, why in explained.items():
        if why is None:
            old, new = change.lines
            key = _name(change.module), change.position[0], old
            by_line[key].append(f"    {change.operator.removeprefix('core/')}: {new}")
    for (name, line, old), changed in by_line.items():
        print(f"{name}:{line}: {old}", *changed, sep="\n")
    for entry in explanations:
        if whole and entry not in explained.values():
            print(f"no survivor needs this explanation: {entry.module}: {entry.code}")
    return 1 if by_line else 0


if __name__ == "__main__":
    sys.exit(main())
