"""`signet-conformance selftest`: proves that the kit notices each breach and blames no conforming connector.

Examples:
  signet-conformance selftest
  signet-conformance selftest --only never-starts --only SIG-END-005
  signet-conformance selftest --json > matrix.json

Each mutant is the reference adapter, or the embedded daemon, with one change
(schemas/mutants.json). Some are also tried in another conforming connector,
which starts a session at its first prompt. Each variant is unusual and conforms
(schemas/variants.json). Exit status: 0 if every mutant fails the requirement that
it breaks and no unrelated MUST, no variant is blamed, and the reference passes;
1 if not; 4 if a part of the kit itself failed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

import click

from signet_conformance.children.temporary import temporary_folder
from signet_conformance.cli.commands import epilog_of
from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import UsageError, pip_install, printable
from signet_conformance.reports.terminal import steps, terminal_width, wants_colour
from signet_conformance.rules import run_rules
from signet_conformance.selftest import matrix
from signet_conformance.selftest.mutants import Mutant, Variant, mutants, variants
from signet_conformance.selftest.trials import PerformedTrial, Trial, of_variants, perform, reference_scenarios, trials

RED = 1
REFERENCE = "the reference"
_CODINGS = ("brotli", "zstandard")
"""Without these packages the recorder keeps only bodies of text: any other could be compressed and hold a secret."""


@click.command(
    "selftest",
    help="Break the reference in every way that the kit must notice; print which requirement failed.",
    epilog=epilog_of(__doc__),
)
@click.option("--only", "only", multiple=True, metavar="ID", help="A mutant, a variant, or all those of a requirement.")
@click.option("--workers", type=click.IntRange(1, 8), default=2, show_default=True, help="How many trials run at once.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object (signet-selftest/1).")
@click.option("--traces", "folder", metavar="DIR", help="Keep the traces in this new folder.")
def command(*, only: tuple[str, ...], workers: int, as_json: bool, folder: str | None) -> int:
    """Perform the trials and print the matrix."""
    chosen_mutants, chosen_variants = _select(only)
    began = time.monotonic()
    with temporary_folder("signet-selftest-traces-") as temporary:
        place = _new_folder(folder) if folder else temporary
        selftest = _perform_trials(chosen_mutants, chosen_variants, place, workers, whole=not only)
    seconds = time.monotonic() - began
    exempt = mutants().exempt
    if as_json:
        print(json.dumps(matrix.as_json(selftest, exempt, seconds), indent=2))
        return 0 if selftest.green else RED
    width, colour = terminal_width(), wants_colour(sys.stdout)
    print(*matrix.matrix_lines(selftest, exempt, width, colour), sep="\n", end="\n\n")
    if unreached := matrix.unreached_lines(selftest, width, colour):
        print(*unreached, sep="\n", end="\n\n")
    if complaints := matrix.complaint_lines(selftest, width, colour):
        print(*complaints, sep="\n", end="\n\n")
    print(matrix.closing_line(selftest, seconds, colour))
    return 0 if selftest.green else RED


def _select(only: Sequence[str]) -> tuple[Sequence[Mutant], Sequence[Variant]]:
    """The chosen mutants and variants. A requirement chooses the mutants that break it and the variants it judges."""
    all_mutants, all_variants = mutants().mutants, variants().variants
    names = {name: {name, mutant.breaks} for name, mutant in all_mutants.items()}
    names |= {name: {name, *variant.rows} for name, variant in all_variants.items()}
    for word in only:
        if not any(word in words for words in names.values()):
            near = get_close_matches(word, sorted(set().union(*names.values())), 3)
            raise UsageError(
                f"{printable(word, 60)!r} is no mutant, variant or requirement",
                where="--only",
                remedy=f"did you mean {' or '.join(near)}?" if near else "leave --only out to see all of them",
            )
    chosen = {name for name, words in names.items() if not only or not words.isdisjoint(only)}
    chosen_mutants = [mutant for name, mutant in all_mutants.items() if name in chosen]
    return chosen_mutants, [variant for name, variant in all_variants.items() if name in chosen]


def _new_folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(parents=True)
    except OSError as failure:
        reason = failure.strerror or str(failure)
        raise UsageError(reason, where=f"--traces {printable(name)}", remedy="name a new folder") from None
    return folder.resolve()


def _perform_trials(
    chosen_mutants: Sequence[Mutant], chosen_variants: Sequence[Variant], folder: Path, workers: int, *, whole: bool
) -> matrix.Selftest:
    planned = trials(chosen_mutants, chosen_variants)
    _demand_packages(planned)
    controls: dict[str, dict[str, JudgedTrace]] = {name: {} for name in (REFERENCE, *mutants().bases)}
    postponed: list[PerformedTrial] = []
    grades: list[matrix.Grade] = []
    scripts = {scenario.name for scenario in reference_scenarios()}
    with steps(len(planned), "trials", sys.stderr) as tell_step:

        def grade_trial(performed: PerformedTrial) -> None:
            grades.append(matrix.grade(performed, controls[_base_of(performed)]))
            tell_step(matrix.progress_line(grades[-1]), bool(grades[-1].complaints))

        for performed in perform(planned, folder, workers):
            trial = performed.trial
            if matrix.is_control(performed) and performed.judged is not None and trial.scenario.name in scripts:
                controls[_base_of(performed)][trial.scenario.name] = performed.judged
            if trial.mutant is not None and trial.mutant.breaks in run_rules():
                # Its verdict needs the whole run of the reference.
                postponed.append(performed)
            else:
                grade_trial(performed)
        for performed in postponed:
            grade_trial(performed)
    grades = _retry_alone(grades, folder, workers)
    order = {trial.name: place for place, trial in enumerate(planned)}
    grades.sort(key=lambda grade: order.get(grade.trial.name, len(order)))
    if not whole:
        return matrix.Selftest(grades)
    known = mutants()
    gaps = matrix.unreached(grades)
    runs = [complaint for who, traces in controls.items() for complaint in matrix.whole_run_of(traces, who)]
    complaints = [*matrix.completeness(known), *runs, *matrix.reasons_missing(gaps, known.unreached)]
    return matrix.Selftest(grades, complaints, {name: known.unreached.get(name, "no reason is given") for name in gaps})


def _base_of(performed: PerformedTrial) -> str:
    return REFERENCE if performed.trial.base is None else performed.trial.base.id


def _demand_packages(planned: Sequence[Trial]) -> None:
    changes = [change for trial in planned for variant in trial.variants for change in variant.changes]
    needed = _CODINGS if any("not_utf8" in change for change in changes) else ()
    if missing := sorted(package for package in needed if find_spec(package) is None):
        raise UsageError(
            f"some trials need packages that are not installed: {', '.join(missing)}",
            remedy=f"{pip_install('codings')}, or choose other trials, such as --only never-starts",
        )


def _retry_alone(grades: Sequence[matrix.Grade], folder: Path, workers: int) -> list[matrix.Grade]:
    """Try variants that were blamed together one by one; return the grades, with theirs if one is blamed alone."""
    blamed = [grade for grade in grades if grade.complaints and len(grade.trial.variants) > 1]
    if not blamed:
        return list(grades)
    alone = [of_variants((variant,)) for grade in blamed for variant in grade.trial.variants]
    retried = [matrix.grade(performed, {}) for performed in perform(alone, folder, workers)]
    if not any(grade.complaints for grade in retried):
        # The kit blames them only together, which is still a false blame.
        return list(grades)
    return [grade for grade in grades if grade not in blamed] + retried
