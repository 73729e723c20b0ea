"""`signet-harness bench run` and `sweep`: options, the plan of each run, and what is printed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field
from rich.console import Console
from rich.table import Table

from signet_reference_harness.bench import daemons, figures
from signet_reference_harness.bench.answering import Answerer, Answers, Judge, ModelJudge, load_judge
from signet_reference_harness.bench.baselines import BASELINES, BaselineSubject
from signet_reference_harness.bench.comparing import (
    bare_table,
    compare,
    page_of,
    show_side_by_side,
    speaker,
    wide_console,
)
from signet_reference_harness.bench.log import BenchFailureError
from signet_reference_harness.bench.pairs import pairs_of, pairs_text
from signet_reference_harness.bench.performing import Subject
from signet_reference_harness.bench.programs import Database
from signet_reference_harness.bench.result import RESULT, Result, Times, subject_name, write_text
from signet_reference_harness.bench.running import BenchPlan, run
from signet_reference_harness.bench.suite import UNANSWERABLE, Suite, parse_suite, read_suite
from signet_reference_harness.config import HarnessConfig, url_problem
from signet_reference_harness.documents import StrictModel, demand, parse_yaml, read_file
from signet_reference_harness.errors import ConfigError, os_errors, printable
from signet_reference_harness.providers import settings

OWN_SUITE: Final = "lifecycle.jsonl"
FIXED_CLOCK: Final = "2026-01-15T12:00:00Z"
RUNS: Final = Path("signet-bench")
FAILED: Final = 1
DEFAULT_PROVIDER: Final = "ollama"
"""The provider that answers, unless an option or a variable names another."""
PROVIDER_VARIABLES: Final = (settings.VARIABLES["provider"], settings.VARIABLES["api"])
BY_MODEL: Final = "model"
"""The judge that asks the answering model, by a prompt of this package."""
AT_ONCE: Final = 2
"""How many questions a model is asked at once, unless --jobs is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions(settings.ProviderOptions):
    """The command line; each default means that the option is absent."""

    suite: Path | None = None
    subject: str | None = None
    daemon: str | None = None
    allow_writes: bool = False
    from_db: Path | None = None
    clock: str = "real"
    out: Path | None = None
    record: bool = False
    limit: int = 10
    jobs: int | None = None
    keep: bool = False
    quiet: bool = False
    as_json: bool = False
    emit_pairs: Path | None = None
    judge: str | None = None
    judge_model: str | None = None
    price: float | None = None
    answer: bool = False
    agent: dict[str, Any] | None = None
    """The members of agent.yaml in the workspace of each daemon that the run starts."""


def perform(options: BenchOptions) -> int:
    """Perform the run, print its result, and return the exit status. Raises HarnessError if it cannot begin."""
    figures.demand_installed()
    suite = own_suite() if options.suite is None else read_suite(options.suite)
    answerer = _answerer(options)
    plan = plan_of(options, suite)
    try:
        finished = run(plan, quiet=options.quiet, answerer=answerer)
        if options.emit_pairs is not None:
            write_text(pairs_text(pairs_of(suite, finished.result)), options.emit_pairs)
    except BenchFailureError as failure:
        return _report_failure(failure.message, failure.remedy, plan.folder)
    except KeyboardInterrupt:
        print(f"bench: ended; the same command with --out {plan.folder} goes on", file=sys.stderr)
        raise
    if options.as_json:
        sys.stdout.write((plan.folder / RESULT).read_text("utf-8"))
    else:
        show(finished.result, finished.times, finished.answers, wide_console())
        print(f"results: {plan.folder / RESULT}")
    return FAILED if finished.result.assertions["failed"] else 0


def own_suite() -> Suite:
    """The small suite in the package."""
    file = files("signet_reference_harness.bench") / "suites" / OWN_SUITE
    return parse_suite(file.read_bytes(), OWN_SUITE)


def _answerer(options: BenchOptions) -> Answerer | None:
    if not options.answer and options.provider is None:
        for name in ("judge", "judge_model", "price", "api", "model", "base_url", "api_key"):
            if getattr(options, name) is not None:
                option = name.replace("_", "-")
                raise ConfigError(f"--{option} without a model that answers", remedy="add --provider ollama")
        return None
    flags = options.flags
    if not any((flags["provider"], flags["api"], *map(os.environ.get, PROVIDER_VARIABLES))):
        flags["provider"] = DEFAULT_PROVIDER
    loaded = settings.load(flags, os.environ, None)
    provider = settings.make_provider(loaded)
    judge: Judge | None = None
    if options.judge_model is not None and options.judge not in {None, BY_MODEL}:
        raise ConfigError("--judge and --judge-model both name the judge", remedy="leave one of them out")
    if options.judge_model is not None or options.judge == BY_MODEL:
        judge = ModelJudge(provider, options.judge_model or loaded.model or loaded.provider)
    elif options.judge is not None:
        judge = load_judge(options.judge)
    return Answerer(provider, loaded.provider, loaded.model, judge, options.jobs or AT_ONCE, options.price)


def _demand_consent(options: BenchOptions) -> None:
    """Print the workspace of a daemon at a URL. Raises ConfigError if writing into it was not allowed."""
    url = str(options.daemon).rstrip("/")
    if problem := url_problem(url):
        raise ConfigError(f"--daemon {problem}", remedy="name its address, such as http://127.0.0.1:3850")
    health = asyncio.run(daemons.health_of(url, _token()))
    if health.failure is not None:
        raise ConfigError(f"no daemon answers at {url}: {health.detail}", remedy="start it, or leave --daemon out")
    workspace = health.text("agentsDir") or health.text("workspace")
    where = f"its workspace is {printable(workspace)}" if workspace else "it does not name its workspace"
    if not options.allow_writes:
        raise ConfigError(
            f"--daemon {url}: the run would write facts, sessions and transcripts into it; {where}",
            remedy="leave it out for a daemon of the run's own, or add --allow-writes if all that may stay there",
        )
    print(f"bench: writing into the daemon at {url}; {where}", file=sys.stderr)


def _token() -> str | None:
    return HarnessConfig.from_environment(os.environ).token


def _report_failure(message: str, remedy: str | None, folder: Path) -> int:
    print(f"error: {printable(message)}", file=sys.stderr)
    print(f"try: {printable(remedy or 'fix that, then run the same command again: it continues')}", file=sys.stderr)
    print(f"bench: the finished part is kept in {folder}", file=sys.stderr)
    return FAILED


def plan_of(options: BenchOptions, suite: Suite) -> BenchPlan:
    """The plan of a run; its folder is made. Raises ConfigError for options that do not go together."""
    if options.subject is not None and options.daemon is not None:
        raise ConfigError("--subject and --daemon both say what is measured", remedy="leave one of them out")
    is_embedded = options.daemon is None and (options.subject or daemons.EMBEDDED).partition(":")[0] == daemons.EMBEDDED
    if options.clock != "real" and not is_embedded:
        raise ConfigError("--clock fixed: only the embedded daemon's clock can be held", remedy="leave it out")
    if options.daemon is None and not is_embedded and (options.record or options.from_db is not None):
        option = "--record" if options.record else "--from-db"
        raise ConfigError(f"{option}: a baseline has no daemon", remedy="leave it out, or name a daemon")
    if _is_url(options.daemon):
        _demand_consent(options)
        if options.from_db is not None:
            raise ConfigError("--from-db needs a daemon of the run's own", remedy="leave it out, or --daemon")
    database = None if options.from_db is None else Database.load(options.from_db)
    daemon_options = daemons.DaemonOptions(
        limit=options.limit,
        initial_database=database,
        record=options.record,
        keep=options.keep,
        agent=options.agent,
        clock=FIXED_CLOCK if options.clock == "fixed" else None,
        token=_token() if _is_url(options.daemon) else None,
    )
    subject = _subject(options, daemon_options)
    jobs = 1 if isinstance(subject, daemons.RunningDaemon) else options.jobs or min(len(os.sched_getaffinity(0)), 8)
    plan = BenchPlan(suite=suite, subject=subject, settings={"limit": options.limit}, folder=Path(), jobs=jobs)
    folder = (options.out or _folder(plan)).absolute()
    with os_errors(folder, "name a folder of yours with --out"):
        (folder / "traces" if options.record else folder).mkdir(parents=True, exist_ok=True)
    return replace(plan, folder=folder)


def _is_url(daemon: str | None) -> bool:
    return daemon is not None and re.match(r"https?://", daemon) is not None


def _subject(options: BenchOptions, daemon_options: daemons.DaemonOptions) -> Subject:
    if options.daemon is not None:
        if not _is_url(options.daemon):
            return daemons.CommandedDaemon(options.daemon, _split_command(options.daemon), daemon_options)
        return daemons.RunningDaemon(options.daemon, daemon_options)
    name, _, version = (options.subject or daemons.EMBEDDED).partition(":")
    if name == daemons.EMBEDDED:
        return daemons.EmbeddedDaemon(version or None, daemon_options)
    if name not in BASELINES or version:
        remedy = f"name embedded, embedded:VERSION or {', '.join(BASELINES)}; a real daemon with --daemon"
        raise ConfigError(f"--subject {options.subject!r}: unknown subject", remedy=remedy)
    return BaselineSubject(name, options.limit)


def _split_command(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"--daemon {command!r}: {error}", remedy="quote it as a shell would read it") from None
    if not words:
        raise ConfigError("--daemon is empty", remedy="name a command that starts a daemon, or a URL")
    return words


def _folder(plan: BenchPlan) -> Path:
    """The newest folder of an unfinished run of this plan, else a new one."""
    stem = f"{plan.suite.head.name}-{plan.subject.name}-{plan.run[:8]}"
    number = 1
    while (RUNS / f"{stem}-{number}" / RESULT).exists():
        number += 1
    return RUNS / f"{stem}-{number}"


COLUMNS: Final = ("hit@1", "hit@5", "hit@10", "recall@10", "mrr@10", "ndcg@10")
BOUNDED: Final = ("hit@10", "mrr@10")
"""The figures whose intervals are printed; the result holds those of all."""


def show(result: Result, times: Times, answers: Answers | None, console: Console) -> None:
    """Print the figures, the times and the assertions that failed."""
    suite, counts, say = result.suite, result.suite.counts, speaker(console)
    say(f"{suite.name} on {subject_name(result.subject)}")
    say(
        f"{counts['questions']} questions over {counts['facts']} facts in {counts['scenarios']} scenarios; "
        f"{counts['questions_without_evidence']} without evidence, in no figure"
    )
    if result.questions:
        console.print(_figures(result))
        apart = sorted(UNANSWERABLE & result.by_category.keys())
        if apart:
            say(f"questions that the facts do not answer are not in all: {', '.join(apart)}")
        bounds = result.overall.intervals
        text = "; ".join(f"{name} {low:.3f} to {high:.3f}" for name, (low, high) in bounds.items() if name in BOUNDED)
        if text:
            say(f"95 % intervals: {text}")
    console.print(_latencies(times))
    if answers is not None:
        say(_answers(answers))
    held, failed = result.assertions["held"], result.assertions["failed"]
    if held + failed:
        say(f"assertions: {held} held, {failed} failed")
    for each in result.failed_assertions:
        demanded = "is missing" if each.demand == "expect" else "should not be there"
        say(f"  line {each.line}, scenario {each.scenario}: {each.item} {demanded}")
    for defect in suite.known_defects:
        say(f"known defect of the suite: {defect}")
    if suite.licence:
        say(f"licence of the suite: {suite.licence}")


def _answers(answers: Answers) -> str:
    overall = answers.overall
    judged = "" if overall.judged is None or answers.judge is None else f", J {overall.judged:.3f}"
    by = f" (by {answers.judge['model']})" if judged and answers.judge else ""
    model = " ".join(each for each in (answers.provider, answers.model) if each)
    scores = f"exact {overall.exact:.3f}, F1 {overall.f1:.3f}{judged}{by}"
    tokens = f"{overall.tokens:.0f} tokens of memories a question"
    price = "" if answers.price is None else f", ${answers.price:.6f}"
    summary = f"answers of {model} to {overall.questions} questions: {scores}; {tokens}{price}"
    others = answers.unanswerable
    if others is None:
        return summary
    right = "" if others.judged is None else f", J {others.judged:.3f}"
    return f"{summary}\nand to {others.questions} that the facts do not answer: {others.f1:.3f} said so{right}"


def _figures(result: Result) -> Table:
    table = bare_table("", "n", *COLUMNS)
    table.columns[0].max_width = 20
    groups = result.by_category if set(result.by_category) != {"none"} else {}
    for name, group in {"all": result.overall, **groups}.items():
        cells = (f"{group.figures[column]:.3f}" for column in COLUMNS)
        table.add_row(printable(name), str(group.questions), *cells)
    return table


def _latencies(times: Times) -> Table:
    table = bare_table("milliseconds", "calls", "p50", "p90", "p99")
    for operation, spent in times.latencies_ms.items():
        table.add_row(operation, str(int(spent["count"])), *(f"{spent[name]:.1f}" for name in ("p50", "p90", "p99")))
    return table


class SweepRun(StrictModel):
    """The settings of one run, as the options of `bench run` have them."""

    subject: str | None = None
    daemon: str | None = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    clock: str = "real"
    agent: dict[str, Any] | None = None


class Sweep(StrictModel):
    """The file of a sweep: one suite under several settings, as one table and a plot.

        suite: suite.jsonl          # beside this file; without it the suite in the package
        runs:
          words: {subject: fts5}
          newest: {subject: recent, limit: 5}
          mine: {daemon: "signet-daemon", agent: {memory: {pipelineV2: {enabled: false}}}}

    `agent` is written as agent.yaml into the workspace of each daemon that the run starts.
    """

    suite: str | None = None
    runs: Annotated[dict[str, SweepRun], Field(min_length=1)]


def read_sweep(path: Path) -> Sweep:
    """The settings in a YAML file. Raises ConfigError and DocumentError."""
    sweep = demand(Sweep, parse_yaml(read_file(path), path), str(path))
    for name, each in sweep.runs.items():
        if not name.replace("-", "").replace("_", "").isalnum():
            raise ConfigError(f"{path}: /runs: {name[:60]!r} cannot be a folder", remedy="use letters, digits, - and _")
        if each.agent is not None and each.daemon is None:
            raise ConfigError(
                f"{path}: /runs/{name}: only a daemon of its own reads 'agent'", remedy="give its command"
            )
    return sweep


def perform_sweep(path: Path, out: Path, *, jobs: int | None, quiet: bool, page_file: Path | None) -> int:
    """Perform the runs of a sweep, print one table, and return the exit status. Finished runs are not repeated."""
    figures.demand_installed()
    sweep = read_sweep(path)
    suite = own_suite() if sweep.suite is None else read_suite(path.parent / sweep.suite)
    plans = {
        name: plan_of(BenchOptions(**each.model_dump(), out=out / name, jobs=jobs), suite)
        for name, each in sweep.runs.items()
    }
    results = {name: run(plan, quiet=quiet).result for name, plan in plans.items()}
    overall = {name: result.overall.model_dump(mode="json") for name, result in results.items()}
    write_text(json.dumps({"suite": suite.head.name, "runs": overall}, indent=1) + "\n", out / "sweep.json")
    first, *others = results.values()
    comparisons = [compare(first, other) for other in others]
    if page_file is not None:
        write_text(page_of(results, comparisons), page_file)
    show_side_by_side(results, comparisons, wide_console())
    return 0
