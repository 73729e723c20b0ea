"""The result of a run, as two documents: figures, equal for equal runs, and times, which differ each time."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from signet_reference_harness.bench import figures
from signet_reference_harness.bench.log import BenchFailureError, BenchLog, Record
from signet_reference_harness.bench.suite import UNANSWERABLE, Suite
from signet_reference_harness.documents import HarnessDocument, StrictModel, put_text
from signet_reference_harness.errors import os_errors

RESULT: Literal["result.json"] = "result.json"
TIMES: Literal["times.json"] = "times.json"

Figure = Annotated[float, Field(strict=False)]
Figures = dict[str, Figure]
Strings = Annotated[tuple[str, ...], Field(strict=False)]


class SuiteFacts(StrictModel):
    """The suite: its name, the SHA-256 of its bytes, its owner's terms, and its known errors."""

    name: str
    sha256: str
    licence: str
    source: str
    known_defects: Strings
    counts: dict[str, int]


class Group(StrictModel):
    """The figures over a group of questions."""

    questions: int
    figures: Figures
    intervals: dict[str, Annotated[tuple[Figure, Figure], Field(strict=False)]] = Field(default_factory=dict)
    """bounds of each mean at 95 %, by a percentile bootstrap"""


class RankedRow(StrictModel):
    """A memory that was returned. `item` is a fact or prompt of the suite; for any other it begins with `other:`."""

    item: str
    score: Figure | None = None
    source: str | None = None


class AboutQuestion(StrictModel):
    """The question of the suite that a row is about."""

    scenario: str
    id: str
    line: int
    category: str | None


class Question(AboutQuestion):
    """One question: its evidence, the memories that were returned, and the figures that follow."""

    operation: str
    evidence: Strings
    rank: int | None
    """the rank of the best evidence, from 1; null if no evidence was returned"""
    rows: Annotated[tuple[RankedRow, ...], Field(strict=False)]
    figures: Figures


class UnmeasuredQuestion(AboutQuestion):
    """A question without evidence: no figure counts it."""

    rows: Annotated[tuple[RankedRow, ...], Field(strict=False)]


class Assertion(StrictModel):
    """An assertion of the suite, and whether it was true."""

    scenario: str
    line: int
    demand: Literal["expect", "absent"]
    item: str
    held: bool


class Result(HarnessDocument):
    """What `signet-harness bench run` found."""

    model_config = ConfigDict(title="Result of a benchmark run")
    schema_file: ClassVar[str] = "harness/signet-bench-result-1.schema.json"

    format: Literal["signet-bench-result/1"] = "signet-bench-result/1"
    run: str
    """an id made from suite, subject and settings: equal for equal runs"""
    suite: SuiteFacts
    subject: dict[str, Any]
    settings: dict[str, Any]
    overall: Group
    """the figures over all questions that the facts answer"""
    by_category: dict[str, Group]
    by_operation: dict[str, Group]
    assertions: dict[str, int]
    questions: Annotated[tuple[Question, ...], Field(strict=False)]
    questions_without_evidence: Annotated[tuple[UnmeasuredQuestion, ...], Field(strict=False)]
    failed_assertions: Annotated[tuple[Assertion, ...], Field(strict=False)]


class QuestionTime(StrictModel):
    """How long a question took."""

    scenario: str
    line: int
    ms: Figure


class Times(HarnessDocument):
    """The parts of a run that differ from one to the next: latencies, and the environment."""

    model_config = ConfigDict(title="Times of a benchmark run")
    schema_file: ClassVar[str] = "harness/signet-bench-times-1.schema.json"

    format: Literal["signet-bench-times/1"] = "signet-bench-times/1"
    run: str
    environment: dict[str, str | int | None]
    latencies_ms: dict[str, Figures]
    """operation to count, p50, p90 and p99 of its latency in milliseconds"""
    questions: Annotated[tuple[QuestionTime, ...], Field(strict=False)]


def subject_name(subject: Mapping[str, Any]) -> str:
    """A subject in a few words."""
    words = (subject.get(member) for member in ("kind", "name", "command", "url", "version"))
    return " ".join(str(word) for word in words if word)


def result_of(suite: Suite, plan: Mapping[str, Any], run: str, loaded: BenchLog) -> Result:
    """The figures of a complete run."""
    records = [record for database in suite.databases for record in loaded.records[database]]
    records.sort(key=lambda record: record["line"])
    records_by_key = {f"{r['scenario']}\0{r['line']}": r for r in records if r["kind"] == "question"}
    measured = {key: record for key, record in records_by_key.items() if record["evidence"]}
    figures_of = figures.of_questions(
        {key: (record["evidence"], [row[0] for row in record["rows"]]) for key, record in measured.items()}
    )
    questions = tuple(_question(record, figures_of[key]) for key, record in measured.items())
    answerable = [question for question in questions if question.category not in UNANSWERABLE]
    assertions = [record for record in records if record["kind"] == "assertion"]
    versions = sorted(set(loaded.versions.values()))
    return Result(
        run=run,
        suite=SuiteFacts(
            **suite.head.model_dump(include=set(SuiteFacts.model_fields)), sha256=suite.sha256, counts=suite.counts()
        ),
        subject={**plan["subject"], **({"version": ", ".join(versions)} if versions else {})},
        settings=dict(plan["settings"]),
        overall=_group(answerable, intervals=True),
        by_category=_groups(questions, "category"),
        by_operation=_groups(answerable, "operation"),
        assertions={
            "held": sum(record["held"] for record in assertions),
            "failed": sum(not record["held"] for record in assertions),
        },
        questions=questions,
        questions_without_evidence=tuple(
            UnmeasuredQuestion(**_members_of(record, *AboutQuestion.model_fields), rows=_rows(record["rows"]))
            for record in records_by_key.values()
            if not record["evidence"]
        ),
        failed_assertions=tuple(
            Assertion(**_members_of(record, *Assertion.model_fields)) for record in assertions if not record["held"]
        ),
    )


def times_of(suite: Suite, run: str, loaded: BenchLog) -> Times:
    """The times of a complete run."""
    latencies: dict[str, list[float]] = {}
    for database in suite.databases:
        for operation, values in loaded.done[database]["latencies_ms"].items():
            latencies.setdefault(operation, []).extend(values)
    if loaded.answers:
        latencies["answer"] = [float(record["ms"]) for record in loaded.answers.values()]
    records = [record for database in suite.databases for record in loaded.records[database]]
    return Times(
        run=run,
        environment=environment(),
        latencies_ms={operation: figures.percentiles(values) for operation, values in sorted(latencies.items())},
        questions=tuple(
            QuestionTime(**_members_of(record, *QuestionTime.model_fields))
            for record in records
            if record["kind"] == "question"
        ),
    )


def environment() -> dict[str, str | int | None]:
    """The environment that a run's times depend on."""
    packages = ("signet-conformance", "ir-measures", "bm25s")
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "sqlite": sqlite3.sqlite_version,
        **{name: next((package.version for package in distributions(name=name)), None) for name in packages},
    }


def write_document(document: HarnessDocument, path: Path) -> None:
    """Write the document to `path` atomically. Raises BenchFailureError."""
    write_text(document_text(document), path)


def document_text(document: HarnessDocument) -> str:
    """The document as JSON."""
    return json.dumps(document.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


def write_text(text: str, path: Path) -> None:
    """Write the text to `path` atomically. Raises BenchFailureError."""
    with os_errors(f"{path}: cannot be written", kind=BenchFailureError):
        put_text(path, text)


def _question(record: Record, question_figures: figures.Figures) -> Question:
    evidence = set(record["evidence"])
    ranks = [rank for rank, row in enumerate(record["rows"], 1) if row[0] in evidence]
    return Question(
        **_members_of(record, *AboutQuestion.model_fields, "operation"),
        evidence=tuple(record["evidence"]),
        rank=ranks[0] if ranks else None,
        rows=_rows(record["rows"]),
        figures=question_figures,
    )


def _members_of(record: Record, *names: str) -> dict[str, Any]:
    return {name: record[name] for name in names}


def _rows(rows: Iterable[Sequence[Any]]) -> tuple[RankedRow, ...]:
    return tuple(RankedRow(item=item, score=score, source=source) for item, score, source in rows)


def _groups(questions: Sequence[Question], member: str) -> dict[str, Group]:
    grouped: dict[str, list[Question]] = {}
    for question in questions:
        grouped.setdefault(getattr(question, member) or "none", []).append(question)
    return {name: _group(grouped[name], intervals=False) for name in sorted(grouped)}


def _group(questions: Sequence[Question], *, intervals: bool) -> Group:
    bounds = {
        name: bound
        for name in figures.MEASURES
        if intervals and (bound := figures.interval([question.figures[name] for question in questions]))
    }
    return Group(
        questions=len(questions), figures=figures.mean([question.figures for question in questions]), intervals=bounds
    )
