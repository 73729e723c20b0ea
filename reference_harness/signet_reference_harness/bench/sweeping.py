"""A sweep: one suite under several settings, as one table and a plot.

    suite: suite.jsonl          # beside this file; without it the suite that the package brings
    runs:
      words: {subject: fts5}
      newest: {subject: recent, limit: 5}
      mine: {daemon: "signet-daemon", agent: {memory: {pipelineV2: {enabled: false}}}}

`agent` is written as agent.yaml into the workspace of each daemon of the run's own.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field
from rich.console import Console
from rich.table import Table

from signet_reference_harness.bench import figures
from signet_reference_harness.bench.command import BenchOptions, own_suite, plan_of
from signet_reference_harness.bench.comparing import STYLE
from signet_reference_harness.bench.result import Figure, Result, subject_name, write_text
from signet_reference_harness.bench.running import run
from signet_reference_harness.bench.suite import read_suite
from signet_reference_harness.documents import StrictModel, demand
from signet_reference_harness.errors import ConfigError, pip_install, printable

SHOWN: Final = ("hit@10", "mrr@10")
"""The figures that are printed with their intervals; the plot has the last."""
WIDTH, ROW, LEFT = 720, 28, 220
"""Pixels of the plot: of all of it, of a row, and of the names."""


class SweepRun(StrictModel):
    """The settings of one run, as the options of `bench run` have them."""

    subject: str | None = None
    daemon: str | None = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    clock: str = "real"
    agent: dict[str, Any] | None = None


class Sweep(StrictModel):
    """The settings file."""

    suite: str | None = None
    runs: Annotated[dict[str, SweepRun], Field(min_length=1)]


def read_sweep(path: Path) -> Sweep:
    """The settings in a YAML file. Raises ConfigError and DocumentError."""
    try:
        import yaml
    except ImportError:
        raise ConfigError(
            f"{path} cannot be read without the package 'pyyaml'", remedy=pip_install("harness")
        ) from None
    try:
        value = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}", remedy="name a YAML file with a member 'runs'") from None
    sweep = demand(Sweep, value, str(path))
    for name, settings in sweep.runs.items():
        if not name.replace("-", "").replace("_", "").isalnum():
            raise ConfigError(f"{path}: /runs: {name[:60]!r} names no folder", remedy="use letters, digits, - and _")
        if settings.agent is not None and settings.daemon is None:
            raise ConfigError(
                f"{path}: /runs/{name}: only a daemon of its own reads 'agent'", remedy="give its command"
            )
    return sweep


def perform(path: Path, out: Path, *, jobs: int | None, quiet: bool, page_file: Path | None) -> int:
    """Do every run of the sweep, print one table, and return the exit status. Runs that are done are not repeated."""
    figures.demand_installed()
    sweep = read_sweep(path)
    suite = own_suite() if sweep.suite is None else read_suite(path.parent / sweep.suite)
    plans = {
        name: plan_of(BenchOptions.of_run(settings.model_dump(), out / name, jobs), suite)
        for name, settings in sweep.runs.items()
    }
    results = {name: run(plan, quiet=quiet).result for name, plan in plans.items()}
    told = {name: result.overall.model_dump(mode="json") for name, result in results.items()}
    write_text(json.dumps({"suite": suite.head.name, "runs": told}, indent=1) + "\n", out / "sweep.json")
    if page_file is not None:
        write_text(page(suite.head.name, results), page_file)
    Console(soft_wrap=True).print(_table(results))
    return 0


def _table(results: Mapping[str, Result]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("run", "subject", "n", *SHOWN):
        table.add_column(name, justify="right" if name == "n" else "left", no_wrap=True)
    for name, result in results.items():
        cells = [_with_interval(result, figure) for figure in SHOWN]
        subject = printable(subject_name(result.subject))
        table.add_row(printable(name), subject, str(result.overall.questions), *cells)
    return table


def _with_interval(result: Result, figure: str) -> str:
    bounds = result.overall.intervals.get(figure)
    value = result.overall.figures.get(figure)
    if value is None:
        return "none"
    return f"{value:.3f}" if bounds is None else f"{value:.3f} ({bounds[0]:.3f} to {bounds[1]:.3f})"


def page(suite: str, results: Mapping[str, Result]) -> str:
    """The plot of a figure with its intervals, as a page that fetches nothing and runs nothing."""
    figure = SHOWN[-1]
    title = html.escape(f"{suite}: {figure}")
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>",
            f'<svg width="{WIDTH}" height="{ROW * len(results)}" role="img" aria-label="{title}">',
            *(_bar(place, name, result, figure) for place, (name, result) in enumerate(results.items())),
            "</svg></body></html>",
            "",
        ]
    )


def _bar(place: int, name: str, result: Result, figure: str) -> str:
    middle, scale = place * ROW + ROW // 2, WIDTH - LEFT - 80
    value: Figure = result.overall.figures.get(figure, 0.0)
    low, high = result.overall.intervals.get(figure, (value, value))
    at, begin, end = (LEFT + round(each * scale) for each in (value, low, high))
    return (
        f'<text x="0" y="{middle + 5}" fill="currentColor">{html.escape(name)}</text>'
        f'<line x1="{begin}" x2="{end}" y1="{middle}" y2="{middle}" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{at}" cy="{middle}" r="5" fill="currentColor"/>'
        f'<text x="{end + 12}" y="{middle + 5}" fill="currentColor">{value:.3f}</text>'
    )
