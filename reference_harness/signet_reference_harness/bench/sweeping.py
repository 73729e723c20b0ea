"""A sweep: one suite under several settings, as one table and a plot.

    suite: suite.jsonl          # beside this file; without it the suite that the package brings
    runs:
      words: {subject: fts5}
      newest: {subject: recent, limit: 5}
      mine: {daemon: "signet-daemon", agent: {memory: {pipelineV2: {enabled: false}}}}

`agent` is written as agent.yaml into the workspace of each daemon of the run's own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from rich.console import Console

from signet_reference_harness.bench import figures
from signet_reference_harness.bench.command import BenchOptions, own_suite, plan_of
from signet_reference_harness.bench.comparing import compare, plot_page, show_side_by_side
from signet_reference_harness.bench.result import write_text
from signet_reference_harness.bench.running import run
from signet_reference_harness.bench.suite import read_suite
from signet_reference_harness.documents import StrictModel, demand
from signet_reference_harness.errors import ConfigError, pip_install


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
        name: plan_of(BenchOptions(**settings.model_dump(), out=out / name, jobs=jobs), suite)
        for name, settings in sweep.runs.items()
    }
    results = {name: run(plan, quiet=quiet).result for name, plan in plans.items()}
    told = {name: result.overall.model_dump(mode="json") for name, result in results.items()}
    write_text(json.dumps({"suite": suite.head.name, "runs": told}, indent=1) + "\n", out / "sweep.json")
    if page_file is not None:
        write_text(plot_page(results), page_file)
    first, *others = results.values()
    show_side_by_side(results, [compare(first, other) for other in others], Console(soft_wrap=True))
    return 0
