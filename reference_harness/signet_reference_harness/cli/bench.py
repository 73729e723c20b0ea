"""`signet-harness bench`: measures memory quality, repeatably and without a person."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from signet_reference_harness.cli import DocumentedCommand

FOLDER = click.Path(path_type=Path)


@click.group("bench", help="Measure memory quality: suites, baselines, comparisons.")
def bench() -> None:
    """Do nothing: its commands do the work."""


@bench.command("run", help="Run SUITE (default: the kit's own small one) and print its figures.", cls=DocumentedCommand)
@click.argument("suite", type=FOLDER, required=False)
@click.option(
    "--subject",
    metavar="NAME",
    help="The subject: embedded, embedded:VERSION (the default: embedded), or a baseline: fts5, bm25s, recent.",
)
@click.option("--daemon", metavar="WHERE", help="Measure a real daemon: a command that starts one, or its URL.")
@click.option("--allow-writes", is_flag=True, help="Let the run write into the daemon at a URL.")
@click.option("--from-db", type=FOLDER, metavar="FILE", help="Begin each database with a copy of this memories.db.")
@click.option(
    "--clock",
    type=click.Choice(["real", "fixed"]),
    default="real",
    show_default=True,
    help="fixed: the embedded daemon's clock stands still, so that recency is the same in each run.",
)
@click.option("--out", type=FOLDER, metavar="DIR", help="Where log and results go (default: a folder in signet-bench).")
@click.option("--record", is_flag=True, help="Record the traffic with each daemon, as DIR/traces/NAME.jsonl.")
@click.option("--limit", type=click.IntRange(1, 50), default=10, show_default=True, help="Memories to ask for.")
@click.option("--jobs", type=click.IntRange(1, 64), metavar="N", help="Databases side by side (default: CPUs).")
@click.option("--keep", is_flag=True, help="Keep the daemons' folders.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--emit-pairs", type=FOLDER, metavar="FILE", help="Write training pairs for a predictive scorer.")
@click.option("--answer", is_flag=True, help="Let a model answer the questions too (default provider: ollama).")
@click.option("--provider", metavar="NAME", help="As --answer, by this provider: ollama, anthropic, openai, …")
@click.option("--api", metavar="API", help="The provider's interface.")
@click.option("--model", metavar="NAME", help="The model that answers.")
@click.option("--base-url", metavar="URL", help="Where the interface is served.")
@click.option("--api-key", metavar="KEY", help="The provider's key; an environment variable hides it from others.")
@click.option(
    "--judge",
    metavar="JUDGE",
    help="Let a judge score the answers too: model, or MODULE:ATTRIBUTE for one of your own.",
)
@click.option("--judge-model", metavar="NAME", help="As --judge model, by this model of the provider.")
@click.option("--price", type=click.FloatRange(0), metavar="DOLLARS", help="Price of a million input tokens.")
def run(**given: Any) -> int:
    """Perform the run; return the exit status.

    Examples:
      signet-harness bench run
      signet-harness bench run suite.jsonl --subject fts5
      signet-harness bench run suite.jsonl --daemon "signet-daemon" --out runs/today

    Exit status: 0 done, 1 an assertion of the suite failed or the run cannot go on,
    2 wrong usage or a broken suite, 130 ended by Ctrl-C. Repeat the command to
    continue where it was ended.
    """
    from signet_reference_harness.bench.command import BenchOptions, perform

    return perform(BenchOptions(**given))


@bench.command("sweep", help="Run one suite under each of the SETTINGS, and show them side by side.")
@click.argument("settings", type=FOLDER)
@click.option("--out", type=FOLDER, metavar="DIR", required=True, help="Where each run gets a folder.")
@click.option("--jobs", type=click.IntRange(1, 64), metavar="N", help="Databases side by side (default: CPUs).")
@click.option("--html", "page_file", type=FOLDER, metavar="FILE", help="Write the comparison and a plot as a page.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def sweep(settings: Path, out: Path, page_file: Path | None, jobs: int | None, *, quiet: bool) -> int:
    """Perform the runs; return the exit status."""
    from signet_reference_harness.bench.command import perform_sweep

    return perform_sweep(settings, out, jobs=jobs, quiet=quiet, page_file=page_file)


@bench.command("validate", help="Check SUITE, and say what is in it.")
@click.argument("suite", type=FOLDER)
def validate(suite: Path) -> int:
    """Read the suite, and print its counts and digest."""
    from signet_reference_harness.bench.suite import read_suite

    read = read_suite(suite)
    click.echo(f"{suite}: {read.head.name}: {_list_counts(read.counts())}")
    click.echo(f"sha256 {read.sha256}")
    return 0


@bench.command("convert", help="Make a suite of FILE, in the format in which the data set NAME is published.")
@click.argument("name", type=click.Choice(["locomo", "locomo-captions", "longmemeval", "memoryagentbench", "beam"]))
@click.argument("file", type=FOLDER)
@click.option("--out", type=FOLDER, metavar="SUITE", help="Where the suite goes (default: standard output).")
def convert(name: str, file: Path, out: Path | None) -> int:
    """Convert the file, and check the result."""
    from signet_reference_harness.bench.data_sets import convert
    from signet_reference_harness.bench.result import write_text
    from signet_reference_harness.bench.suite import parse_suite

    data = convert(name, file)
    suite = parse_suite(data, str(out or f"{name}.jsonl"))
    if out is None:
        sys.stdout.buffer.write(data)
        return 0
    write_text(data.decode(), out)
    click.echo(f"{out}: {_list_counts(suite.counts())}", err=True)
    return 0


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in counts.items())


@bench.command("compare", help="Compare RESULTS of one suite: two by question, more side by side with the first.")
@click.argument("results", type=FOLDER, nargs=-1, required=True)
@click.option("--html", "page_file", type=FOLDER, metavar="FILE", help="Write the comparison and a plot as a page.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON; of more than two, a list of pairs.")
def compare(results: tuple[Path, ...], page_file: Path | None, *, as_json: bool) -> int:
    """Compare the results, and show the differences."""
    from signet_reference_harness.bench import comparing, figures
    from signet_reference_harness.bench.result import document_text, write_text

    figures.demand_installed()
    read = comparing.read_results(results)
    first, *others = read.values()
    comparisons = [comparing.compare(first, other) for other in others]
    is_pair = len(comparisons) == 1
    if page_file is not None:
        write_text(comparing.page_of(read, comparisons), page_file)
    if as_json:
        texts = [document_text(each) for each in comparisons]
        click.echo(texts[0] if is_pair else f"[{','.join(texts)}]\n", nl=False)
    elif is_pair:
        comparing.show(comparisons[0], comparing.wide_console())
    else:
        comparing.show_side_by_side(read, comparisons, comparing.wide_console())
    return 0
