"""`signet-conformance init`: the lane, the settings and a baseline, written into a connector's repository."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from signet_conformance import targets
from signet_conformance.cli.commands import tell
from signet_conformance.cli.run import run_lines
from signet_conformance.errors import NothingTestedError, UsageError, printable
from signet_conformance.files.new_file import create_file
from signet_conformance.finding import Verdict
from signet_conformance.github_action.discovery import Connector, discover, settings_text
from signet_conformance.github_action.inputs import FIELDS, Inputs, read_inputs
from signet_conformance.github_action.language import build_lines
from signet_conformance.github_action.origin import checked_pin, installed_pin
from signet_conformance.github_action.performing import CANCELLED, perform
from signet_conformance.github_action.workflow import Workflow
from signet_conformance.outcome import baseline
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.outcome.known_failures import DEFAULT_DAYS, user_name
from signet_conformance.running.shown_progress import shown_progress
from signet_conformance.targets.settings import FILE as SETTINGS

WORKFLOW = Path(".github", "workflows", "signet-conformance.yml")
BASELINE = "signet-baseline.json"
IGNORE = ".gitignore"
_IGNORED = ("signet-failures/",)
_REASON = "failed when the lane was set up"
_SPELT = {
    "SIGNET_LANE_TARGET": ("--target", "call it by letters, digits, dots, dashes and underscores in the settings"),
    "SIGNET_LANE_SCENARIOS": ("--scenarios", "a whole number, such as --scenarios 200"),
    "SIGNET_LANE_WORKING_DIRECTORY": ("FOLDER", "a lane takes paths of letters, digits, dots, dashes and underscores"),
}
"""Input of the lane to the name that `init` uses for it, and the remedy for a value that the lane refuses."""
_EPILOG = """\b
Examples:
  signet-conformance init
  signet-conformance init --dry-run
  signet-conformance init packages/connector --target pi

\b
Writes .github/workflows/signet-conformance.yml, signet-conformance.toml, and
signet-baseline.json when something fails. No file is ever replaced.
The exit status is that of the run at the end; 0 with --no-run or --dry-run.
"""


@click.command(
    "init",
    help="Write the lane, settings and a baseline into the repository around FOLDER (here), and run once.",
    epilog=_EPILOG,
)
@click.argument("folder", default=".", metavar="[FOLDER]")
@click.option("--target", metavar="NAME", help="The connector, where the folder does not tell which it is.")
@click.option("--kit", metavar="OWNER/REPOSITORY@COMMIT", help="The kit's action that the lane uses.")
@click.option(
    "--scenarios",
    metavar="N",
    help="Generated sessions, in the run at the end and in the lane (default: the target's own number).",
)
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing and run nothing.")
@click.option("--no-run", is_flag=True, help="Do not drive the connector at the end; no baseline is written then.")
def command(
    *, folder: str, target: str | None, kit: str | None, scenarios: str | None, dry_run: bool, no_run: bool
) -> int:
    """Write what is missing, then run."""
    place = _Place.find(folder)
    pin = installed_pin() if kit is None else checked_pin(kit)
    connector = discover(place.folder, target)
    if target is not None and not (connector.settings or connector.known):
        targets.load(target, place.folder)
    inputs = place.inputs(connector.name, scenarios)
    writer = _Writer(place, dry_run)
    if not connector.settings:
        writer.write(place.folder / SETTINGS, settings_text(connector))
    if not connector.settings and connector.language is not None:
        writer.write(place.folder / connector.language.driver, connector.language.driver_text())
    status, conclusion = (0, None) if dry_run or no_run else _run(inputs, connector)
    if status == CANCELLED:
        return status
    if conclusion is not None and not conclusion.recorded:
        # A baseline of what a silent connector fails would make a lane green that tests nothing.
        status, conclusion = NothingTestedError.exit_status, None
    failing = _failing(conclusion)
    if failing:
        writer.write(place.folder / BASELINE, _baseline_text(connector.name, failing))
    writer.write(place.root / WORKFLOW, place.workflow(connector.name, pin, inputs.scenarios).text())
    writer.extend(place.root / IGNORE, place.ignored)
    # A promise about the lane is made only after the lane was performed as it will be.
    seen = None
    if failing and BASELINE not in writer.left:
        print("\nonce more, as the lane will run:", flush=True)
        seen, _ = _run(replace(inputs, baseline=place.folder / BASELINE), connector)
        if seen == CANCELLED:
            return seen
    for line in _closing(connector, pin, status, failing, writer, ran=conclusion is not None, seen=seen):
        print(line)
    return status


@dataclass(frozen=True, slots=True)
class _Place:
    """The connector's folder, and the root of the repository that it is in."""

    folder: Path
    root: Path

    @classmethod
    def find(cls, given: str) -> _Place:
        folder = Path(given).resolve()
        if not folder.is_dir():
            raise UsageError("is not a folder", where=printable(given, 400), remedy="name the folder of the connector")
        return cls(folder, next((p for p in (folder, *folder.parents) if (p / ".git").exists()), folder))

    @property
    def directory(self) -> str:
        return self.folder.relative_to(self.root).as_posix()

    def inputs(self, target: str, scenarios: str | None) -> Inputs:
        known = BASELINE if (self.folder / BASELINE).is_file() else ""
        given = {"target": target, "working-directory": self.directory, "scenarios": scenarios or "", "baseline": known}
        variables = {field.variable: given.get(field.name, "") for field in FIELDS}
        try:
            return read_inputs({**variables, "GITHUB_WORKSPACE": str(self.root)}, self.root)
        except UsageError as failure:
            # The caller of `init` has set no variable of the lane.
            option, remedy = _SPELT.get(str(failure.where), (failure.where, failure.remedy))
            raise UsageError(failure.message, where=option, remedy=remedy) from None

    def workflow(self, target: str, pin: str | None, scenarios: str | None) -> Workflow:
        inputs = [("target", target)]
        if scenarios is not None:
            # What the baseline was written from is what the lane has to perform.
            inputs.append(("scenarios", scenarios))
        if (self.folder / BASELINE).is_file():
            inputs.append(("baseline", BASELINE))
        if self.directory != ".":
            inputs.append(("working-directory", self.directory))
        # A repository of many packages has one lock file, at its root.
        build = build_lines(self.folder)
        if self.folder != self.root and (of_root := build_lines(self.root)):
            return Workflow(inputs, pin, of_root)
        return Workflow(inputs, pin, build, self.directory)

    @property
    def ignored(self) -> Sequence[str]:
        """What runs leave in the repository and git should not see, by the lines that its .gitignore lacks."""
        try:
            there = (self.root / IGNORE).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            there = []
        return [line for line in _IGNORED if line not in {known.strip().strip("/") + "/" for known in there}]


class _Writer:
    """Writes files that do not exist yet, and reports what it did with each."""

    def __init__(self, place: _Place, dry_run: bool) -> None:
        self._place = place
        self._dry_run = dry_run
        self.left: list[str] = []

    def write(self, path: Path, text: str) -> None:
        """Write a file; an existing one stays as it is."""
        name = printable(path.relative_to(self._place.root), 400)
        if os.path.lexists(path):
            print(f"left      {name}: it exists already")
            self.left.append(path.name)
        elif self._dry_run:
            print(f"would write {name}:")
            print("".join(f"    {line}\n" for line in text.splitlines()), end="")
        else:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                create_file(path, text)
            except OSError as failure:
                raise UsageError(
                    f"cannot be written: {failure.strerror}", where=str(path), remedy="check the permissions"
                ) from None
            print(f"wrote     {name}")

    def extend(self, path: Path, lines: Sequence[str]) -> None:
        """Add lines at the end of a file that people keep, or begin it with them."""
        name = printable(path.relative_to(self._place.root), 400)
        if not lines or path.is_symlink():
            return
        if self._dry_run:
            print(f"would add to {name}: {', '.join(lines)}")
            return
        try:
            before = path.read_bytes() if path.exists() else b""
            gap = b"\n" if before and not before.endswith(b"\n") else b""
            with path.open("ab") as stream:
                stream.write(gap + "".join(f"{line}\n" for line in lines).encode())
        except OSError as failure:
            raise UsageError(
                f"cannot be written: {failure.strerror}", where=str(path), remedy="check the permissions"
            ) from None
        print(f"added to  {name}: {', '.join(lines)}")


def _run(inputs: Inputs, connector: Connector) -> tuple[int, Conclusion | None]:
    """Drive the connector once; the exit status and the conclusion, None where no verdict was reached.

    The folder with report and traces stays where something fails.
    """
    target = targets.load(connector.name, inputs.folder)
    # Only what the settings name as a path of this machine: npm's packages hold slashes too.
    missing = [word for word in target.command if Path(word).is_absolute() and not os.path.lexists(word)]
    if missing:
        failure = NothingTestedError(
            f"the connector cannot be driven yet: there is no {printable(missing[-1], 200)}",
            where=connector.name,
            remedy="write it, by docs/driver-protocol.md in the kit's repository, or let init write one in its place",
        )
        tell(failure)
        return failure.exit_status, None
    sys.stdout.flush()
    folder = Path(tempfile.mkdtemp(prefix="signet-init-")).resolve()
    report = folder / "report"
    with shown_progress(sys.stderr) as shown:
        ended = perform(replace(inputs, report=report), shown)
    if ended.failure is not None:
        tell(ended.failure)
    if not ended.performances:
        return ended.status, None
    (performance,) = ended.performances
    print(*run_lines(performance), sep="\n")
    if ended.status == 0:
        shutil.rmtree(folder, ignore_errors=True)
    return ended.status, performance.conclusion


def _failing(conclusion: Conclusion | None) -> Mapping[str, Verdict]:
    """The requirements that fail and are not known to."""
    if conclusion is None:
        return {}
    failing = (name for name, verdict in conclusion.verdicts.items() if verdict is Verdict.FAIL)
    return {name: Verdict.FAIL for name in failing if name not in conclusion.known_reasons}


def _baseline_text(target: str, failing: Mapping[str, Verdict]) -> str:
    today = datetime.now(UTC).date()
    expires = today + timedelta(days=DEFAULT_DAYS)
    return baseline.document(baseline.entries_for({target: failing}, user_name(), _REASON, today, expires))


def _closing(
    connector: Connector,
    pin: str | None,
    status: int,
    failing: Mapping[str, Verdict],
    writer: _Writer,
    *,
    ran: bool,
    seen: int | None,
) -> Iterator[str]:
    """What to do next."""
    yield ""
    if failing:
        until = datetime.now(UTC).date() + timedelta(days=DEFAULT_DAYS)
        yield f"fails now: {', '.join(failing)}"
        if BASELINE not in writer.left:
            if seen == 0:
                yield f"{BASELINE} lets the lane pass until {until.isoformat()}: it was seen to;"
            else:
                yield f"the lane is still red with {BASELINE} (exit {seen}), by what is said above;"
            yield "edit the owner and the reason of each entry"
            if WORKFLOW.name in writer.left:
                yield f'add to the lane in your {WORKFLOW.name}: baseline: "{BASELINE}"'
        yield f"read the first: signet-conformance explain {next(iter(failing))}"
    elif status == NothingTestedError.exit_status and connector.language is not None:
        yield f"the lane is still red: nothing was tested. {connector.language.driver} answers the kit already;"
        yield "fill in its five places marked FILL IN, then run this command again"
    elif ran and status == 0:
        yield "nothing fails: the lane is green from its first run"
    if pin is None:
        yield (
            "the lane installs the kit from your package index; "
            "to pin the kit's action instead: --kit OWNER/REPOSITORY@COMMIT"
        )
    yield f"the same run by hand: signet-conformance run {connector.name}"
