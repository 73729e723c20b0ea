"""`signet-conformance init`: the lane, the settings and a baseline, written into a connector's repository.

Examples:
  signet-conformance init
  signet-conformance init --dry-run
  signet-conformance init packages/connector --target pi
  signet-conformance init packages/one packages/two

Writes .github/workflows/signet-conformance.yml, signet-conformance.toml, and
signet-baseline.json if something fails or warns: the lane is strict, and new
failures and warnings fail it. No file is ever replaced. The recordings and
reports of the run stay in signet-report, which git ignores.
The exit status is that of the run without the baseline, or the highest of
several such runs; 0 with --no-run or --dry-run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from signet_conformance import targets
from signet_conformance.cli.commands import PROGRAM, epilog_of, refuse_empty, tell
from signet_conformance.cli.run_lines import run_lines
from signet_conformance.errors import EXIT_INTERRUPTED, NothingTestedError, UsageError, counted, os_errors, printable
from signet_conformance.files import create_file, real_path
from signet_conformance.finding import COVERABLE, Verdict
from signet_conformance.github_action import LaneRun, discovery, perform, workflow
from signet_conformance.github_action.inputs import Inputs, with_new_report
from signet_conformance.outcome import known_failures
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.outcome.known_failures import user_name
from signet_conformance.outcome.options import DEFAULT_DAYS
from signet_conformance.reports import FORMATS
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.reports.run_text import ClosingText, closing, closing_lines, note_lines, silence
from signet_conformance.reports.terminal import terminal_width, wants_colour
from signet_conformance.running.progress import show_progress
from signet_conformance.targets.settings import FILE as SETTINGS

WORKFLOW = Path(".github", "workflows", "signet-conformance.yml")
_REASON = "broken when the lane was set up"
_MOST_NOTES = 5


class _SetUp(Struct):
    """One connector that is set up, and the result of its run; `status` is None without a run.

    `lane_status` is the exit status of the second run, which uses the new baseline. `answered` says whether the run
    reached a verdict, `silent` whether the connector made no request. `blank` is the language of a driver whose places
    marked FILL IN are still empty.
    """

    place: workflow.ConnectorFolder
    connector: discovery.FoundConnector
    inputs: Inputs
    status: int | None = None
    conclusion: Conclusion | None = None
    lane_status: int | None = None
    answered: bool = False
    silent: bool = False
    blank: discovery.Language | None = None

    @property
    def failing(self) -> Mapping[str, Verdict]:
        """The requirements that fail or warn and are not in the baseline."""
        if self.conclusion is None:
            return {}
        known = self.conclusion.known_reasons
        return {
            n: verdict for n, verdict in self.conclusion.verdicts.items() if verdict in COVERABLE and n not in known
        }

    def run(self) -> None:
        """Drive the connector."""
        # An empty driver records nothing: the scripted scenarios show that, generated sessions would add nothing.
        inputs = self.inputs if self.blank is None else replace(self.inputs, scenarios="0")
        inputs = with_new_report(inputs, ci=False)
        self.status, self.conclusion = _run(inputs, self.connector)
        self.answered = self.conclusion is not None
        if self.conclusion is not None and not self.conclusion.recorded:
            self.silent = _is_silent(self.conclusion)
            if self.silent and self.blank is not None:
                shutil.rmtree(inputs.report, ignore_errors=True)
            # A baseline of what a silent connector fails would make a lane green that tests nothing.
            self.status, self.conclusion = NothingTestedError.exit_status, None


@click.command(
    "init",
    help="Write the lane, settings and a baseline into the repository around each FOLDER (here), and run once.",
    epilog=epilog_of(__doc__),
)
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", callback=refuse_empty)
@click.option("--target", metavar="NAME", help="The connector, if the folder does not show which it is.")
@click.option("--all", "every", is_flag=True, help="Each connector of a folder that holds several.")
@click.option("--kit", metavar="OWNER/REPOSITORY@COMMIT", help="The kit's action that the lane uses.")
@click.option(
    "--scenarios",
    metavar="N",
    help="Generated sessions, in the run and in the lane (default: the target's own number).",
)
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing and run nothing.")
@click.option("--no-run", is_flag=True, help="Do not drive the connector; no baseline is written then.")
def command(
    *,
    folders: tuple[str, ...],
    target: str | None,
    every: bool,
    kit: str | None,
    scenarios: str | None,
    dry_run: bool,
    no_run: bool,
) -> int:
    """Write what is missing, then run."""
    places = _places(folders or (".",))
    pin = workflow.installed_pin() if kit is None else workflow.checked_pin(kit)
    declared = {place: _connectors(place, target, every=every) for place in places}
    # Refuse values that a lane does not accept before anything is written.
    inputs = {(place, each.name): place.inputs(each.name, scenarios) for place in places for each in declared[place]}
    writer = InitWriter(places[0].root, dry_run)
    for place, connectors in declared.items():
        _write_settings(writer, place, connectors)
    set_up = [
        _SetUp(place, each, inputs[place, each.name]) for place, connectors in declared.items() for each in connectors
    ]
    writer.extend(places[0].root / workflow.IGNORE, places[0].ignored)
    for each in [] if dry_run else set_up:
        each.blank = None if each.connector.known else discovery.blank_driver(each.place.folder)
        if no_run:
            continue
        each.run()
        if each.status == EXIT_INTERRUPTED:
            return EXIT_INTERRUPTED
    for place in places:
        failing = {each.connector.name: each.failing for each in set_up if each.place == place and each.failing}
        if failing:
            writer.write(place.folder / workflow.BASELINE, _baseline_text(failing))
    driven = [each.place.driven(each.connector.name, each.inputs.scenarios) for each in set_up]
    writer.write(places[0].root / WORKFLOW, workflow.Workflow(driven, pin).text())
    # Run the lane once before saying that it passes.
    for each in set_up:
        if each.failing and each.place.folder / workflow.BASELINE not in writer.existing:
            print(f"\nonce more, as the lane will run {each.connector.name}:", flush=True)
            each.lane_status = _run_lane(replace(each.inputs, baseline=each.place.folder / workflow.BASELINE))
            if each.lane_status == EXIT_INTERRUPTED:
                return EXIT_INTERRUPTED
    for each in set_up:
        if lines := [*_closing(each, writer)]:
            print("", *([] if len(set_up) == 1 else [f"{each.connector.name}:"]), *lines, sep="\n")
    print()
    if pin is None:
        print("the lane installs the kit from your package index;")
        print("to pin the kit's action instead: --kit OWNER/REPOSITORY@COMMIT")
    for place in places:
        if (outside := discovery.npm_package_outside(place.folder, place.root)) is not None:
            print(*_packing(outside), sep="\n")
    given_options = {"--target": target, "--kit": kit, "--scenarios": scenarios}
    options = ["--all"] if every and target is None else []
    options += [word for name, value in given_options.items() if value is not None for word in (name, value)]
    again = shell_command([PROGRAM, "init", *folders, *options])
    print(*dict.fromkeys(_next_step(each, again) for each in set_up), sep="\n")
    return max(each.status or 0 for each in set_up)


def _packing(outside: str) -> Iterator[str]:
    """How the kit's package for npm comes into the repository; `outside` is where package.json takes it from."""
    yield "the lane cannot build yet: package.json takes the kit's package from outside of this repository;"
    yield f"put it inside: {shell_command(['npm', 'pack', outside])} && npm install -D ./signet-conformance-*.tgz"


def _places(folders: Sequence[str]) -> Sequence[workflow.ConnectorFolder]:
    places = list(dict.fromkeys(workflow.ConnectorFolder.find(folder) for folder in folders))
    for place in places[1:]:
        if place.root != places[0].root:
            raise UsageError(
                f"is in the repository {printable(place.root, 300)}, and {printable(places[0].folder, 300)} is not",
                where=place.folder,
                remedy="a lane belongs to one repository: run the command once in each",
            )
    return places


def _connectors(
    place: workflow.ConnectorFolder, target: str | None, *, every: bool
) -> Sequence[discovery.FoundConnector]:
    connectors = discovery.discover(place.folder, target)
    if target is not None and not (connectors[0].settings or connectors[0].known):
        targets.load(target, place.folder)
    if len(connectors) > 1 and not every:
        names = [each.name for each in connectors]
        raise UsageError(
            f"there are several connectors here: {', '.join(names)}",
            where=place.directory,
            remedy=f"choose one: --target {names[0]}; or set up a lane with each: --all",
        )
    return connectors


def _write_settings(
    writer: InitWriter, place: workflow.ConnectorFolder, connectors: Sequence[discovery.FoundConnector]
) -> None:
    undeclared = [each for each in connectors if not each.settings]
    if undeclared:
        writer.write(place.folder / SETTINGS, "\n".join(map(discovery.settings_text, undeclared)))
    for each in undeclared:
        if each.language is not None:
            writer.write(place.folder / each.language.driver, each.language.driver_text())


def _next_step(set_up: _SetUp, again: str) -> str:
    """The command to run next, from the current folder; `again` is the present `init` command."""
    name, watching = set_up.connector.name, ""
    filled_in = f", when {set_up.blank.driver} is filled in" if set_up.blank else ""
    if failing := set_up.failing:
        words, watching = ["run", name, "-k", next(iter(failing))], " (--watch repeats it at each change)"
    elif set_up.status:
        return f"next{filled_in}: {again}"
    else:
        words = ["run", name]
    command = shell_command([PROGRAM, *words])
    folder = os.path.relpath(set_up.place.folder)
    return f"next{filled_in}{watching}: {command if folder == '.' else f'cd {shell_command([folder])} && {command}'}"


def _run(inputs: Inputs, connector: discovery.FoundConnector) -> tuple[int, Conclusion | None]:
    """Drive the connector once and keep recordings and reports.

    Return the exit status and the conclusion, which is None where no verdict was reached.
    """
    target = targets.load(connector.name, inputs.folder)
    # Only absolute paths: names of npm packages hold slashes too.
    missing = [word for word in target.command if Path(word).is_absolute() and not os.path.lexists(word)]
    if missing:
        failure = NothingTestedError(
            f"the connector cannot be driven yet: there is no {printable(missing[-1], 200)}",
            where=connector.name,
            remedy="write it as docs/driver-protocol.md in the kit's repository describes, or let init write one",
        )
        tell(failure)
        return failure.exit_status, None
    lane_run = _perform(inputs)
    if not lane_run.performances:
        with contextlib.suppress(OSError):
            inputs.report.rmdir()
        return lane_run.status, None
    (performance,) = lane_run.performances
    if _is_silent(performance.conclusion):
        judged = performance.conclusion.judged
        remarks = note_lines(each.trace for each in judged)
        print(f"no request was recorded in {counted(len(judged), 'scenario')}", *remarks, sep="\n")
        return lane_run.status, performance.conclusion
    lines = [*run_lines(performance, summary=True)]
    # A connector's author looks first for the errors that it raised.
    notes = [note for note in note_lines(performance.recordings.read_so_far) if note not in lines]
    print(*notes[:_MOST_NOTES], *lines, sep="\n")
    if not performance.conclusion.recorded:
        print(*silence(ClosingText(performance.conclusion, lane_run.status, terminal_width())), sep="\n")
    page = os.path.relpath(inputs.report / FORMATS["html"].file)
    print(f"report: {printable(page, 1000)}, and beside it the recordings and every other format")
    return lane_run.status, performance.conclusion


def _run_lane(inputs: Inputs) -> int:
    """Run the lane once and delete its report. Print what makes it red; return the exit status."""
    with tempfile.TemporaryDirectory(prefix="signet-init-") as folder:
        lane_run = _perform(replace(inputs, report=Path(folder).resolve() / "report"))
        for performance in lane_run.performances:
            text = ClosingText(performance.conclusion, lane_run.status, terminal_width(), wants_colour(sys.stdout))
            print(*(closing_lines(text) if lane_run.status else closing(text)), sep="\n")
    return lane_run.status


def _perform(inputs: Inputs) -> LaneRun:
    sys.stdout.flush()
    with show_progress(sys.stderr) as tell_progress:
        lane_run = perform(inputs, tell_progress)
    if lane_run.failure is not None:
        tell(lane_run.failure)
    return lane_run


def _is_silent(conclusion: Conclusion) -> bool:
    """Whether the connector made no request at all. Where every request was refused, the verdicts say why."""
    return not conclusion.recorded and not any(each.trace.exchanges for each in conclusion.judged)


def _baseline_text(failing: Mapping[str, Mapping[str, Verdict]]) -> str:
    today = datetime.now(UTC).date()
    expires = today + timedelta(days=DEFAULT_DAYS)
    return known_failures.baseline_document(known_failures.entries_for(failing, user_name(), _REASON, today, expires))


def _closing(set_up: _SetUp, writer: InitWriter) -> Iterator[str]:
    if failing := set_up.failing:
        until = datetime.now(UTC).date() + timedelta(days=DEFAULT_DAYS)
        for verdict, word in ((Verdict.FAIL, "fails"), (Verdict.WARN, "warns")):
            if names := [name for name, each in failing.items() if each is verdict]:
                yield f"{word} now: {', '.join(names)}"
        if set_up.place.folder / workflow.BASELINE not in writer.existing:
            if set_up.lane_status == 0:
                yield f"{workflow.BASELINE} lets the lane pass until {until.isoformat()}, as the second run showed;"
            else:
                yield f"the lane is still red with {workflow.BASELINE} (exit {set_up.lane_status}), see above;"
            yield "edit the owner and the reason of each entry"
            if set_up.place.root / WORKFLOW in writer.existing:
                yield f'add to the lane in your {WORKFLOW.name}: baseline: "{workflow.BASELINE}"'
    elif set_up.status == NothingTestedError.exit_status and set_up.answered:
        if set_up.blank is not None:
            yield f"the lane is still red: nothing was tested. {set_up.blank.driver} answers the kit already;"
            yield "fill in its five places marked FILL IN"
        elif not set_up.silent:
            yield "the lane is still red: no hook or memory request was accepted, see above"
        else:
            yield "the lane is still red: nothing was tested. Does the connector call the address in SIGNET_DAEMON_URL?"
    elif set_up.status:
        yield f"the lane is still red (exit {set_up.status}), see above"
    elif set_up.conclusion is not None and set_up.status == 0:
        yield "nothing fails or warns: the lane is green from its first run"


class InitWriter:
    """Writes files that do not exist yet, and reports what it did with each."""

    def __init__(self, root: Path, dry_run: bool) -> None:
        self._root = root
        self._dry_run = dry_run
        self.existing: list[Path] = []
        """The files that existed already."""

    def write(self, path: Path, text: str) -> None:
        """Write a file; an existing one stays as it is."""
        name = printable(path.relative_to(self._root), 400)
        if not real_path(path.parent).is_relative_to(self._root):
            raise UsageError("leads out of the repository", where=name, remedy="replace the symbolic link by a folder")
        if os.path.lexists(path):
            print(f"left      {name}: it exists already")
            self.existing.append(path)
        elif self._dry_run:
            print(f"would write {name}:")
            print("".join(f"    {line}\n" for line in text.splitlines()), end="")
        else:
            with os_errors("cannot be written", where=path, remedy="check the permissions"):
                path.parent.mkdir(parents=True, exist_ok=True)
                create_file(path, [text.encode()])
            print(f"wrote     {name}")

    def extend(self, path: Path, lines: Sequence[str]) -> None:
        """Append lines to a file; create it if it does not exist."""
        name = printable(path.relative_to(self._root), 400)
        if not lines:
            return
        if path.is_symlink():
            print(f"left      {name}: it is a symbolic link. Add to it: {', '.join(lines)}")
            return
        if self._dry_run:
            print(f"would add to {name}: {', '.join(lines)}")
            return
        with os_errors("cannot be written", where=path, remedy="check the permissions"):
            before = path.read_bytes() if path.exists() else b""
            gap = b"\n" if before and not before.endswith(b"\n") else b""
            with path.open("ab") as stream:
                stream.write(gap + "".join(f"{line}\n" for line in lines).encode())
        print(f"added to  {name}: {', '.join(lines)}")
