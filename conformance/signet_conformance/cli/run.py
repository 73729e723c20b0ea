"""`signet-conformance run`: drives a connector and judges it, without pytest.

Examples:
  signet-conformance run reference
  signet-conformance run mine --report report
  signet-conformance run mine -k SIG-FAIL --quiet
  signet-conformance run mine --watch
  signet-conformance run mine --daemon http://127.0.0.1:3850 --allow-writes
  signet-conformance run mine --scenario signet-failures/ended.json
  signet-conformance run openclaw --face all --report report

Exit status: 0 conforming, 1 a MUST is breached (with --strict a SHOULD too),
2 wrong usage, 3 nothing was tested, 4 not everything could be judged. With
--face all it is that of the worst run, in the order 4, 1, 3.
"""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from signet_conformance import targets
from signet_conformance.children.foreground import interrupted_by
from signet_conformance.children.temporary import let_go
from signet_conformance.cli.commands import PROGRAM, epilog_of
from signet_conformance.cli.shared_options import known_options, only_option, select_requirements, strict_option
from signet_conformance.errors import EXIT_INTERRUPTED, SignetConformanceError, UsageError, printable
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.outcome.options import KnownOptions
from signet_conformance.reports import FORMATS
from signet_conformance.running import request
from signet_conformance.running.performance import DrivenPerformance
from signet_conformance.running.request import DEFAULT_SESSIONS, DrivenRequest, Invocation, RunOptions, worst
from signet_conformance.targets.face import with_faces
from signet_conformance.targets.real import HarnessChoice, options_for
from signet_conformance.trace.recordings import recordings_in

if TYPE_CHECKING:
    from signet_conformance.running.progress import Tell


def _target_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in targets.known_names() if name.startswith(incomplete)]


@click.command(
    "run", help="Drive TARGET through scenarios and generated sessions, and judge it.", epilog=epilog_of(__doc__)
)
@click.argument("target", metavar="TARGET", shell_complete=_target_names)
@click.option(
    "--face",
    metavar="NAME",
    help="Play this release of the target's harness (a face of the kit, such as openclaw-2026.9.6, or a .json file), "
    "or all: a run in each release that the kit plays, each report in its own folder below --report.",
)
@click.option(
    "--harness",
    metavar="fake|real",
    help="fake (the default): the kit plays the harness of the target's connector. real: the program itself runs, with"
    " a scripted model, in an isolated home.",
)
@click.option(
    "--harness-version",
    metavar="RELEASE",
    help="The release of the real program (default: the newest that is installed; with --install-harness the newest"
    " that its registry has).",
)
@click.option("--every-scenario", is_flag=True, help="Have the real program perform every scripted scenario.")
@click.option("--install-harness", is_flag=True, help="Install the real program first if it is not installed.")
@click.option(
    "--daemon",
    metavar="WHERE",
    help="embedded (the default), the URL of a running daemon, or a command that starts one.",
)
@click.option(
    "--allow-writes",
    is_flag=True,
    help="Let the run write into the daemon at that URL: sessions, memories, transcripts, summaries, a secret.",
)
@click.option(
    "--allow-default-port",
    is_flag=True,
    help="Drive even if a daemon listens at 127.0.0.1:3850, where a connector that ignores its address would call it.",
)
@click.option(
    "--contract",
    metavar="VERSION",
    help="Judge by this contract version (default: that of the daemon), and run the embedded daemon of it.",
)
@click.option(
    "--scenarios",
    metavar="N",
    help=f"Perform N generated sessions beside the scripted ones (default: {DEFAULT_SESSIONS}, or the target's own"
    " number; none with --scenario or -k).",
)
@click.option(
    "--scenario",
    "files",
    multiple=True,
    metavar="FILE",
    help="Perform this scenario instead of the scripted ones; repeatable.",
)
@click.option(
    "--seed",
    metavar="SEED",
    help="A whole number, which determines the generated sessions (default: 1), or random to draw one.",
)
@only_option(
    "Judge by this requirement alone, or by a family of them (SIG-AGENT) or a glob, and perform only the scenarios that"
    " can decide it; repeatable."
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="With -k, perform every scenario that can decide it. Without --all, the run begins with those that breached it"
    " last time, and ends at the first breach.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Drive again whenever the connector's files change, first what was broken, and show what changed; Ctrl-C ends"
    " it. No generated sessions unless --scenarios asks for them.",
)
@strict_option
@click.option("--coverage", is_flag=True, help="Show which parts of the contract the run did not exercise.")
@click.option("--coverage-fail-under", metavar="PERCENT", help="Fail (exit 1) when it exercises less than that.")
@click.option("--profile", is_flag=True, help="Show where the time of the run went.")
@click.option("--report", metavar="DIR", help="Write the traces and a report in every format to this folder.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object (signet-report/1) instead of text.")
@click.option(
    "--verbose",
    "-v",
    is_flag=True,
    help="Show each WARN in full beside a FAIL, what was exercised, and the outages of generated sessions.",
)
@click.option(
    "--summary",
    is_flag=True,
    help="Show a line for each kind of breach and each undecided requirement, and the closing line.",
)
@click.option("--quiet", "-q", is_flag=True, help="Show no progress, and of the verdicts what --summary shows.")
@known_options
def command(
    *,
    target: str,
    face: str | None,
    harness: str | None,
    harness_version: str | None,
    install_harness: bool,
    every_scenario: bool,
    only: tuple[str, ...],
    watch: bool,
    coverage: bool,
    as_json: bool,
    verbose: bool,
    summary: bool,
    quiet: bool,
    known: KnownOptions,
    **options: Any,
) -> int:
    """Drive and judge; the exit status is the run's."""
    if watch:
        excluded = {
            "--face all": face == "all",
            "--harness real": harness == "real",
            "--coverage": coverage,
            "--coverage-fail-under": options["coverage_fail_under"],
            "--profile": options["profile"],
            "--report": options["report"],
            "--json": as_json,
            "--write-baseline": known.write_baseline,
        }
        for option in (name for name, is_given in excluded.items() if is_given):
            raise UsageError("cannot be used with --watch", where=option, remedy="leave it out, or leave out --watch")
        options["scenarios"] = options["scenarios"] or "0"

    def reload() -> targets.Target:
        return with_faces(targets.load(target, option="TARGET"), face, "--face")[0]

    run_options = RunOptions(
        **options,
        only=select_requirements(only, "-k/--only"),
        known=KnownFailures.parse(known),
        harness=HarnessChoice(harness, harness_version, install=install_harness, every=every_scenario),
    )
    display = _Display(as_json, summary or quiet, quiet, coverage, verbose)
    runs = [
        _Run(driven_request, face, reload if watch else None, display)
        for driven_request in request.read_requests(
            run_options, targets.load(target, option="TARGET"), face, lambda option: f"--{option}"
        )
    ]
    statuses = []
    for run in runs:
        try:
            statuses.append(run.perform())
        finally:
            run.discard_traces()
        if statuses[-1] == EXIT_INTERRUPTED:
            return EXIT_INTERRUPTED
    return worst(statuses)


class _Display(Struct, frozen=True):
    """How the run is shown: the options of these names."""

    as_json: bool
    summary: bool
    quiet: bool
    coverage: bool
    verbose: bool


class _Run:
    """One run of the command. Its traces stay if there is a report, or a failure that names them."""

    def __init__(
        self,
        driven_request: DrivenRequest,
        face: str | None,
        reload: Callable[[], targets.Target] | None,
        display: _Display,
    ) -> None:
        self._request = driven_request
        self._target = driven_request.target
        words = (PROGRAM, "run", self._target.name, *options_for(self._target, face))
        self._invocation = Invocation(words)
        self._performance = DrivenPerformance(driven_request)
        self._display = display
        self._reload = reload
        self._keeps_traces = driven_request.report

    def perform(self) -> int:
        """Drive, judge, write and show; return the exit status. Raises SignetConformanceError."""
        if self._reload is not None:
            return self._watch(self._reload)
        try:
            self._drive()
        except SignetConformanceError:
            # The recordings so far may show why.
            self._keeps_traces = bool(recordings_in(self._request.folder))
            raise
        except KeyboardInterrupt:
            print("interrupted: nothing was judged", file=sys.stderr)
            return EXIT_INTERRUPTED
        self._keeps_traces = self._performance.keeps_traces
        baseline = self._performance.write()
        if self._display.as_json:
            self._performance.write_report(FORMATS["json"], sys.stdout)
        else:
            for line in self._lines(self._performance, baseline):
                print(line)
        return self._performance.status

    def _lines(self, performance: DrivenPerformance, baseline: str | None = None) -> Iterator[str]:
        from signet_conformance.cli.run_lines import run_lines

        show = self._display
        return run_lines(performance, baseline, summary=show.summary, coverage=show.coverage, verbose=show.verbose)

    def _watch(self, reload: Callable[[], targets.Target]) -> int:
        from signet_conformance.children.forks import warmed
        from signet_conformance.cli.run_lines import show_loop
        from signet_conformance.running.progress import show_progress
        from signet_conformance.running.watch_loop import Loop

        def progress() -> AbstractContextManager[Tell]:
            return show_progress(sys.stderr, quiet=self._display.quiet)

        if not self._display.quiet:
            print(self._heading(), file=sys.stderr)
        loop = Loop(self._request, self._invocation, reload, progress)
        try:
            with warmed(self._target.name, self._request.daemon), interrupted_by(signal.SIGTERM, signal.SIGHUP):
                with progress() as tell:
                    self._request.demand_consent(tell)
                show_loop(loop, self._lines, brief=self._display.summary)
        except KeyboardInterrupt:
            self._keeps_traces = loop.is_broken
            traces = f"; traces: {printable(self._request.folder, 1000)}" if loop.is_broken else ""
            print(f"interrupted{traces}", file=sys.stderr)
        return EXIT_INTERRUPTED

    def _drive(self) -> None:
        from signet_conformance.running.progress import show_progress

        if not self._display.quiet:
            print(self._heading(), file=sys.stderr)
        # A run that is ended from outside takes its daemons, recorders and connectors along.
        with (
            show_progress(sys.stderr, quiet=self._display.quiet) as tell,
            interrupted_by(signal.SIGTERM, signal.SIGHUP),
        ):
            self._performance.drive(self._invocation, tell)

    def _heading(self) -> str:
        return ", ".join([f"target {printable(self._target.name, 100)}", *self._request.words("--face")])

    def discard_traces(self) -> None:
        """Delete the traces unless a message named them."""
        if not self._keeps_traces:
            shutil.rmtree(self._request.folder, ignore_errors=True)
        let_go(self._request.folder)
