"""`signet-conformance audit`: many recordings judged in batches, on this machine or a cluster.

Examples:
  signet-conformance audit recordings/ --workers 8
  signet-conformance audit 's3://fleet/2026-11-*/' --sample 10000 --out november
  signet-conformance audit query "SELECT connector, count(*) FROM recordings GROUP BY 1"
  signet-conformance audit show 3fb2a91c04d7e865 --exchange 12

If it is stopped or killed, the same command continues it.

Exit status: 0 nothing fails, 1 a MUST is breached (see --fail-on), 2 wrong
usage or a recording that cannot be read, 3 nothing was tested, 4 the kit
failed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from signet_conformance.audit.summary import FAIL_ON, AuditEnding, FailOn
from signet_conformance.cli.commands import command_named, epilog_of
from signet_conformance.cli.output import demand_distinct_files, report_stream
from signet_conformance.cli.shared_options import known_options
from signet_conformance.contract import version_document
from signet_conformance.errors import UsageError, printable
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.outcome.options import KnownOptions

DEFAULT_OUT = "signet-audit"
_DEFAULT_COMMAND = "recordings"


class _Group(click.Group):
    """A group whose default command judges: a first word that names no command is a data set."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command that judges before the words of a data set."""
        visible = [name for name, each in self.commands.items() if not each.hidden]
        if args and args[0] not in (*visible, "--help", "-h"):
            args = [_DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """The help of the command that judges, which is what people look for."""
        judging = self.commands[_DEFAULT_COMMAND]
        with click.Context(judging, info_name=ctx.info_name, parent=ctx.parent) as context:
            return judging.get_help(context)


@click.group(cls=_Group, no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Judge thousands of recordings in batches, and ask the results."""
    if ctx.invoked_subcommand is None:
        raise UsageError("names no data set", where="audit", remedy="signet-conformance audit FOLDER")


_out = click.option("--out", metavar="FOLDER", default=DEFAULT_OUT, show_default=True, help="The folder of the audit.")


def _day(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(
            f"{printable(text, 40)!r} is not a day", where="--since", remedy="write it like 2026-11-01"
        ) from None


@command.command(
    _DEFAULT_COMMAND,
    hidden=True,
    help="Judge all recordings of each DATASET (a folder, a glob, or a prefix of an object store such as s3://…),"
    " in batches. `audit query SQL` queries the results, `audit show ID` shows one of the recordings.",
    epilog=epilog_of(__doc__),
)
@click.argument("datasets", nargs=-1, required=True, metavar="DATASET...")
@_out
@click.option(
    "--workers", type=click.IntRange(1), metavar="N", help="Processes that judge (default: one per processor)."
)
@click.option("--scheduler", metavar="ADDRESS", help="Judge on the Dask cluster of this scheduler instead.")
@click.option("--since", metavar="DAY", callback=_day, help="Only recordings that began on this day or later.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N recordings: always the same ones.")
@click.option("--contract", metavar="VERSION", help="Judge by this contract version, not by that of each daemon.")
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    default="breach",
    show_default=True,
    help="What makes the exit status 1: any breach that no baseline lets pass, one that no baseline names, or nothing.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "parquet"]),
    default="jsonl",
    show_default=True,
    help="How the tables are written.",
)
@click.option("--html", metavar="FILE", help="Write the summary as a page too.")
@click.option("--force", is_flag=True, help="Let the page replace a file.")
@known_options
def recordings(
    *,
    datasets: tuple[str, ...],
    out: str,
    workers: int | None,
    scheduler: str | None,
    since: str | None,
    sample: int | None,
    contract: str | None,
    fail_on: FailOn,
    form: str,
    html: str | None,
    force: bool,
    known: KnownOptions,
) -> int:
    """Judge; the exit status is the audit's."""
    from signet_conformance.audit import import_extra
    from signet_conformance.audit.manifest import AuditTerms, open_manifest
    from signet_conformance.audit.report import draw_page, paragraphs
    from signet_conformance.audit.results import lock_folder, write_tables
    from signet_conformance.audit.running import AuditWorkers, Cluster, judge_all, judge_here
    from signet_conformance.children.spread import processors
    from signet_conformance.reports.terminal import print_drawn

    failures = KnownFailures.parse(known)
    if contract is not None:
        version_document(contract)
    if workers is not None and scheduler is not None:
        raise UsageError("is for this machine, not for --scheduler", where="--workers", remedy="leave one out")
    if fail_on == "new" and not failures.files:
        raise UsageError("needs a baseline", where="--fail-on new", remedy="add --baseline FILE")
    if form == "parquet":
        import_extra("duckdb", "--format parquet")
    demand_distinct_files([html, failures.new_baseline], [file.path for file in failures.files])
    folder = Path(out)
    terms = AuditTerms(datasets=datasets, since=since, sample=sample, contract=contract)
    with ExitStack() as stack:
        judge = judge_here
        if scheduler is None and (count := workers or processors()) > 1:
            # Started before the folder is locked: a worker that lives a moment longer than we must not hold the lock.
            judge = stack.enter_context(AuditWorkers(count)).each
        stack.enter_context(lock_folder(folder))
        manifest, resumed = open_manifest(terms, folder)
        if scheduler is not None:
            judge = stack.enter_context(Cluster(scheduler)).each
        if resumed:
            print(f"{printable(out, 400)}: goes on with its {len(manifest.entries):,} recordings", file=sys.stderr)
        batches = list(manifest.batches())
        judged = judge_all(manifest, batches, folder, judge, stack.enter_context(_counting(len(batches))))
        summary = write_tables(folder, judged, len(manifest.entries), form)
    ending = AuditEnding(summary, failures, fail_on)
    print_drawn(paragraphs(ending, "" if out == DEFAULT_OUT else out, manifest.places()))
    if html is not None:
        with report_stream(html, force) as stream:
            draw_page(ending, stream)
        print(f"report: {printable(html, 1000)}")
    if ending.known_in_run.covered:
        failures.write_audit(ending.known_in_run, ending.verdicts)
    written = failures.write(ending.verdicts)
    if written is not None:
        print(written)
    return ending.status


def _counting(total: int) -> AbstractContextManager[Callable[[str, bool], None]]:
    """Show a count of batches on a terminal, and nothing elsewhere."""
    from signet_conformance.reports.terminal import is_live, steps

    return steps(total, "judging batches", sys.stderr) if is_live(sys.stderr) else nullcontext(lambda *_: None)


@command.command(
    "query",
    help="Query an audit's tables (recordings, sessions, breaches) in SQL. Needs the extra fleet: pip install"
    " 'signet-conformance[fleet]'.",
)
@click.argument("sql")
@_out
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
def query(*, sql: str, out: str, as_json: bool) -> int:
    """Print the rows. The query can read only the results, and can write nothing."""
    from signet_conformance.audit.results import run_query

    columns, rows = run_query(Path(out), sql)
    if as_json:
        for row in rows:
            print(json.dumps(dict(zip(columns, row, strict=True)), default=str))
        return 0
    from rich.table import Table

    from signet_conformance.reports.terminal import draw_table, table_width

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(printable(column, 60))
    for row in rows:
        table.add_row(*("" if value is None else printable(value, 200) for value in row))
    for line in draw_table(table, table_width(sys.stdout)):
        print(line)
    return 0


@command.command("show", help="Show the recording ID of an audit as a timeline.")
@click.argument("recording", metavar="ID")
@_out
@click.option("--exchange", "exchanges", multiple=True, type=int, metavar="N", help="Only exchange N; repeatable.")
@click.option("--requirement", "-k", "only", multiple=True, metavar="ID", help="Only what is found about this one.")
@click.option("--bodies", is_flag=True, help="Show headers and bodies.")
@click.pass_context
def show_recording(
    ctx: click.Context, *, recording: str, out: str, exchanges: tuple[int, ...], only: tuple[str, ...], bodies: bool
) -> Any:
    """Show the recording with this id. One in an object store is copied first."""
    from signet_conformance.audit import stores
    from signet_conformance.audit.manifest import read_manifest

    entry = read_manifest(Path(out)).places().get(recording)
    if entry is None:
        raise UsageError(
            f"no recording of this audit has the id {printable(recording, 40)}",
            where=out,
            remedy="name an id from its results",
        )
    place = entry.place
    with TemporaryDirectory(prefix="signet-audit-") as folder:
        if stores.is_remote(place):
            copied = Path(folder, place.rpartition("/")[2])
            try:
                stores.copy(place, entry.size, copied)
            except stores.ObjectLostError as lost:
                raise UsageError(f"cannot be copied: {lost.why}", where=place, remedy="check the store") from None
            place = str(copied)
        return ctx.invoke(command_named("show"), trace=place, exchanges=exchanges, only=only, bodies=bodies)
