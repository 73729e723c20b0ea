"""Training pairs for a predictive scorer: a session, the memories that it might be shown, and those that helped.

They come from a benchmark, not from a person's sessions: each row says `synthetic: true`; the reader refuses others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from signet_reference_harness.bench.result import Figure, Question, Result
from signet_reference_harness.bench.suite import UNANSWERABLE, Suite, SuiteFact, SuiteQuery, SuiteStart, SuiteTurn
from signet_reference_harness.documents import DocumentError, HarnessDocument, StrictModel, parse_document
from signet_reference_harness.errors import os_errors

TURNS: Final = 6
"""How many turns of the session a row contains, the newest."""


class PairTurn(StrictModel):
    """One utterance of the session."""

    role: Literal["user", "assistant"]
    content: str


class SessionContext(StrictModel):
    """The session at the moment of the recall. `query` is null at its start."""

    agent: str
    project: str
    session: str
    operation: str
    query: str | None
    turns: Annotated[tuple[PairTurn, ...], Field(strict=False)]


class Candidate(StrictModel):
    """A memory that was returned. `text` is null if the suite did not store it."""

    item: str
    text: str | None
    rank: int
    score: Figure | None
    source: str | None
    relevant: bool


class Outcome(StrictModel):
    """The memories that answer the question, and the rank of the best that was returned."""

    relevant: Annotated[tuple[str, ...], Field(strict=False)]
    rank: int | None


def _only_true(value: object) -> object:
    if value is not True:
        raise ValueError("only rows with synthetic: true are read")
    return value


class Pair(HarnessDocument):
    """One recall with its outcome: a line of what `--emit-pairs` writes."""

    model_config = ConfigDict(title="Training pair for a predictive scorer")
    schema_file: ClassVar[str] = "harness/signet-scorer-pair-1.schema.json"

    format: Literal["signet-scorer-pair/1"] = "signet-scorer-pair/1"
    synthetic: Annotated[Literal[True], BeforeValidator(_only_true)]
    """it comes from a benchmark; rows without it are refused"""
    run: str
    suite: str
    suite_sha256: str
    licence: str
    scenario: str
    line: int
    context: SessionContext
    candidates: Annotated[tuple[Candidate, ...], Field(strict=False)]
    outcome: Outcome


def pairs_of(suite: Suite, result: Result) -> Iterator[Pair]:
    """A pair for each question with evidence that the facts can answer, in the order of the suite."""
    questions = {question.line: question for question in result.questions if question.category not in UNANSWERABLE}
    for scenario_run in suite.scenario_runs:
        texts: dict[str, str] = {}
        turns: dict[str, list[PairTurn]] = {}
        agents: dict[str, SuiteStart] = {}
        for line, step in scenario_run.steps:
            if isinstance(step, SuiteStart):
                agents.setdefault(step.session, step)
            if line in questions and isinstance(step, SuiteQuery | SuiteTurn | SuiteStart):
                start = agents.get(step.session)
                context = SessionContext(
                    agent=(start and start.agent) or scenario_run.agent,
                    project=(start and start.project) or scenario_run.project,
                    session=step.session,
                    operation=questions[line].operation,
                    query=None if isinstance(step, SuiteStart) else step.text,
                    turns=tuple(turns.get(step.session, [])[-TURNS:]),
                )
                yield _pair(result, questions[line], context, texts)
            if isinstance(step, SuiteFact):
                texts[step.id] = step.text
            elif isinstance(step, SuiteTurn):
                turns.setdefault(step.session, []).extend(
                    (PairTurn(role="user", content=step.text), PairTurn(role="assistant", content=step.reply))
                )
                if step.id is not None:
                    texts[step.id] = step.text


def pairs_text(pairs: Iterator[Pair]) -> str:
    """Pairs as JSON lines."""
    return "".join(f"{json.dumps(pair.model_dump(mode='json'), ensure_ascii=False)}\n" for pair in pairs)


def read_pairs(path: Path) -> Iterator[Pair]:
    """The pairs in a file. Raises DocumentError for a line that is not a pair, and for a pair that is not synthetic."""
    with os_errors(path, "name a file that can be read", DocumentError), path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield parse_document(Pair, line, f"{path}:{number}")


def _pair(result: Result, question: Question, context: SessionContext, texts: dict[str, str]) -> Pair:
    relevant = set(question.evidence)
    return Pair(
        synthetic=True,
        run=result.run,
        suite=result.suite.name,
        suite_sha256=result.suite.sha256,
        licence=result.suite.licence,
        scenario=question.scenario,
        line=question.line,
        context=context,
        candidates=tuple(
            Candidate(**row.model_dump(), text=texts.get(row.item), rank=rank, relevant=row.item in relevant)
            for rank, row in enumerate(question.rows, 1)
        ),
        outcome=Outcome(relevant=question.evidence, rank=question.rank),
    )
