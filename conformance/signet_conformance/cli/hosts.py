"""`signet-conformance hosts`: the programs that the kit can launch, and the releases of each.

Examples:
  signet-conformance hosts
  signet-conformance hosts codex --json
  signet-conformance hosts --bisect 0.160.0 0.169.0 --target codex -k SIG-LOAD

npm and pip look up the releases. --bisect installs releases between OLD and
NEW, drives the target in each, and names the one in which a verdict changed.

Exit status: 0; 3 when no registry answered, or OLD or NEW cannot be driven.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from signet_conformance import targets
from signet_conformance.children.temporary import temporary_folder
from signet_conformance.cli.commands import epilog_of
from signet_conformance.errors import NothingTestedError, UsageError, printable
from signet_conformance.reports.terminal import STRONG, labelled, print_drawn
from signet_conformance.targets.program import find_program_profile, program_names
from signet_conformance.targets.program_releases import Releases, bisect, published_releases, releases_of
from signet_conformance.targets.real import program_of
from signet_conformance.targets.releases import numbers

MOST_NAMED = 8
"""How many releases of a longer list are named."""
_JUDGED = (0, 1)
"""The exit statuses of a run that was performed and judged completely."""


@click.command(
    "hosts",
    help="List the real programs that the kit can start: which releases are published, known, proven and installed.",
    epilog=epilog_of(__doc__),
)
@click.argument("named", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object, program to its releases.")
@click.option("--bisect", nargs=2, metavar="OLD NEW", help="Find the release in which the verdict of --target changed.")
@click.option("--target", metavar="TARGET", help="The connector that --bisect drives.")
@click.option("--only", "-k", "only", multiple=True, metavar="REQUIREMENT", help="What --bisect compares; repeatable.")
def command(
    *, named: tuple[str, ...], as_json: bool, bisect: tuple[str, str] | None, target: str | None, only: tuple[str, ...]
) -> int:
    """Print the releases, or search among them."""
    if bisect is not None:
        if target is None or named or as_json:
            releases = " ".join(printable(release, 40) for release in bisect)
            raise UsageError(
                "needs --target, and neither NAME nor --json",
                where="--bisect",
                remedy=f"signet-conformance hosts --bisect {releases} --target TARGET",
            )
        return _bisect(target, *bisect, only)
    if target is not None or only:
        where = "--target" if target is not None else "-k/--only"
        raise UsageError("goes with --bisect only", where=where, remedy="add --bisect OLD NEW")
    if unknown := sorted({*named}.difference(program_names())):
        raise UsageError(
            f"the kit cannot start a program called {printable(unknown[0], 60)!r}",
            where="NAME",
            remedy=f"one of {', '.join(program_names())}",
        )
    programs = [releases_of(find_program_profile(name)) for name in named or program_names()]
    if as_json:
        print(json.dumps({each.name: _document(each) for each in programs}, indent=2))
    else:
        print_drawn(block for each in programs for block in _block(each))
    return 0 if any(each.published for each in programs) else NothingTestedError.exit_status


def _document(releases: Releases) -> Mapping[str, Any]:
    return {
        "package": releases.package,
        "published": None if releases.published is None else [*releases.published],
        "known": dict(releases.known),
        "proven": dict(releases.proven),
        "installed": [*releases.installed],
        "newer_than_proven": [*releases.newer],
        **({"why": releases.why} if releases.why else {}),
    }


def _block(host: Releases) -> Sequence[RenderableType]:
    known = ", ".join(f"{release} ({what})" for release, what in host.known.items())
    return [
        Text.assemble((host.name, STRONG), f" {host.package}"),
        labelled("published", printable(host.why, 300) if host.published is None else _list_newest(host.published)),
        labelled("known", printable(known, 600) or "nothing"),
        labelled("proven", ", ".join(host.proven)),
        labelled("installed", _list_newest(host.installed) or "nothing"),
        *([labelled("not tried", _list_newest(host.newer))] if host.newer else []),
    ]


def _list_newest(releases: Sequence[str]) -> str:
    """The newest releases of a list, and how many more there are."""
    newest = sorted(releases, key=numbers, reverse=True)
    more = f", and {len(newest) - MOST_NAMED} older" if len(newest) > MOST_NAMED else ""
    return printable(", ".join(newest[:MOST_NAMED]), 400) + more


def _bisect(name: str, old: str, new: str, only: Sequence[str]) -> int:
    """Search for the release in which the verdicts changed, and print which verdicts did."""
    program = find_program_profile(program_of(targets.load(name), "--target"))
    between = [each for each in published_releases(program.profile) if numbers(old) <= numbers(each) <= numbers(new)]
    if [*between[:1], *between[-1:]] != [old, new] or old == new:
        raise UsageError(
            f"{printable(old, 40)} and {printable(new, 40)} are not an older and a newer release of"
            f" {program.profile.package}",
            where="--bisect",
            remedy=f"signet-conformance hosts {program.name} --json lists them",
        )

    def outcome(release: str) -> Mapping[str, str] | None:
        try:
            verdicts = _verdicts(name, release, only)
        except NothingTestedError as failure:
            print(f"{release}: could not be driven: {printable(failure.message, 400)}", flush=True)
            return None
        print(f"{release}: {_describe(verdicts)}", flush=True)
        return verdicts

    bisection = bisect(between, outcome)
    if bisection.first is None or bisection.last is None:
        print(f"{old} and {new} have the same verdicts: {_describe(bisection.tried[new])}")
        return 0
    left_out = f" (not driven: {', '.join(bisection.untested)})" if bisection.untested else ""
    print(f"changed in {program.name} {bisection.first}; {bisection.last} still had the verdicts of {old}{left_out}")
    before, after = bisection.tried[bisection.last], bisection.tried[bisection.first]
    for requirement in sorted({*before, *after}):
        if before.get(requirement) != after.get(requirement):
            print(f"  {requirement}: {before.get(requirement, 'no breach')} -> {after.get(requirement, 'no breach')}")
    return 0


def _verdicts(name: str, release: str, only: Sequence[str]) -> Mapping[str, str]:
    """The target's breaches in a release, by requirement.

    Raises NothingTestedError with the run's message if the run was not completed.
    """
    with temporary_folder("signet-bisect-") as folder:
        report = Path(folder) / "report"
        words = [word for each in only for word in ("-k", each)]
        lane = ["--harness", "real", "--harness-version", release, "--install-harness", "--report", str(report)]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "signet_conformance.cli", "run", name, *lane, *words, "-q"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
        if done.returncode not in _JUDGED:
            lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
            why = next((line for line in lines if "error:" in line or "broke off" in line), " ".join(lines[-1:]))
            raise NothingTestedError(f"{why.strip()} (status {done.returncode})", where="--bisect")
        rows = json.loads((report / "report.json").read_bytes())["together"]
    return {each: row["verdict"] for each, row in rows.items() if row["verdict"] in ("FAIL", "WARN", "ERROR")}


def _describe(verdicts: Mapping[str, str]) -> str:
    return ", ".join(f"{verdict} {name}" for name, verdict in verdicts.items()) or "no breach"
