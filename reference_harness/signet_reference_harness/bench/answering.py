"""Asks a model to answer the questions from the returned memories, and scores its answers.

Their figures have a document of their own, since a model's answers differ between runs.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol

from pydantic import ConfigDict, Field

from signet_reference_harness.bench.figures import rounded
from signet_reference_harness.bench.log import BenchFailureError, BenchLog, ProgressLine, RunLog, first_failure
from signet_reference_harness.bench.result import AboutQuestion, Figure, Question, Result
from signet_reference_harness.bench.suite import UNANSWERABLE, Suite, SuiteFact, SuiteQuery, SuiteTurn
from signet_reference_harness.documents import HarnessDocument, StrictModel
from signet_reference_harness.errors import ProviderError, load_plugin
from signet_reference_harness.messages import Message
from signet_reference_harness.providers import CompletionOptions, Provider

ANSWERS: Final = "answers.json"
SYSTEM: Final = (
    "Answer the question from the memories below, in as few words as you can. "
    "Where they do not tell, answer: not mentioned."
)
MOST_TOKENS: Final = 256


JUDGE: Final = (
    "You grade an answer to a question about past conversations. Reply with one word. CORRECT: it says what the "
    "expected answer says, in whatever words, and may say more, or write a date in another form. WRONG: it says "
    "something else, contradicts the expected answer, or says that it does not know what the expected answer tells."
)
UNKNOWN: Final = "This is not mentioned."
"""The expected answer to a question that the facts do not answer."""
JUDGE_TOKENS: Final = 16
CHARACTERS_A_TOKEN: Final = 4


class Judge(Protocol):
    """Scores an answer from 0 to 1. `model` and `prompt` are named in the document; `score` may be async."""

    model: str
    prompt: str

    def score(self, question: str, expected: str | None, answer: str) -> Any:
        """Return the score of `answer`; `expected` is None if the facts do not answer the question."""


class ModelJudge:
    """A model that judges by the prompt JUDGE: 1 for an answer that it calls correct, else 0."""

    prompt = JUDGE

    def __init__(self, provider: Provider, model: str) -> None:
        self.model = model
        self._provider = provider

    async def score(self, question: str, expected: str | None, answer: str) -> float:
        """Ask the model. Raises ProviderError if it does not answer."""
        text = f"Question: {question}\nExpected answer: {expected or UNKNOWN}\nAnswer: {answer}"
        options = CompletionOptions(model=self.model, max_tokens=JUDGE_TOKENS, temperature=0.0, system_prompt=JUDGE)
        completion = await self._provider.complete([Message("user", text)], options)
        words = re.findall(r"[a-z]+", completion.content.lower())
        return float("correct" in words and "wrong" not in words and "not" not in words)


@dataclass(frozen=True, slots=True)
class Answerer:
    """The provider that answers, and the judge if there is one. `price` is in dollars per million tokens read."""

    provider: Provider
    name: str
    model: str | None
    judge: Judge | None
    at_once: int
    price: float | None = None


class ScoredAnswer(AboutQuestion):
    """The model's answer to a question, with its scores."""

    expected: str | None
    answer: str
    exact: Figure
    f1: Figure
    judged: Figure | None = None
    tokens: int = 0
    """tokens of the memories that the model got, counted as four characters each"""


class AnswerFigures(StrictModel):
    """Means over questions."""

    questions: int
    exact: Figure
    f1: Figure
    judged: Figure | None = None
    tokens: Figure = 0.0
    """tokens of memories per question, counted as four characters each"""


class Answers(HarnessDocument):
    """A model's answers to the questions of a run."""

    model_config = ConfigDict(title="Answers of a model in a benchmark run")
    schema_file: ClassVar[str] = "harness/signet-bench-answers-1.schema.json"

    format: Literal["signet-bench-answers/1"] = "signet-bench-answers/1"
    run: str
    provider: str
    model: str | None
    prompt: str
    judge: dict[str, str] | None = None
    """the judge's model and prompt; null without one"""
    price: Figure | None = None
    """dollars per question for its memories; null without --price"""
    overall: AnswerFigures
    """the figures over all questions that the facts answer"""
    unanswerable: AnswerFigures | None = None
    """the figures over adversarial questions and abstentions; null if there are no such questions"""
    by_category: dict[str, AnswerFigures]
    answers: Annotated[tuple[ScoredAnswer, ...], Field(strict=False)]


def load_judge(reference: str) -> Judge:
    """Import the judge `module:attribute`; instantiate it if it is a class. Raises ConfigError."""
    remedy = "name an object or a class with model, prompt and score, such as my_judges:Strict"
    needed = ("model", "prompt", "score")
    judge: Judge = load_plugin(
        reference, "--judge", lambda value: value() if isinstance(value, type) else value, needed, remedy=remedy
    )
    return judge


async def answer_all(
    suite: Suite, result: Result, answerer: Answerer, log: RunLog, loaded: BenchLog, progress: ProgressLine
) -> None:
    """Ask the model the questions without an answer in the log. Raises BenchFailureError if it does not answer."""
    slots = asyncio.Semaphore(answerer.at_once)

    async def ask(question: Question, query: SuiteQuery, memories: list[str]) -> None:
        async with slots:
            record = await _answer(answerer, question, query, memories)
        log.write(record)
        progress.step()

    try:
        with first_failure():
            async with asyncio.TaskGroup() as group:
                for question, query, memories in questions_for_model(suite, result):
                    known = loaded.answers.get((question.scenario, question.line))
                    if known is None or known.get("by") != _answerer_id(answerer):
                        group.create_task(ask(question, query, memories))
                    else:
                        progress.step()
    finally:
        await answerer.provider.aclose()


def questions_for_model(suite: Suite, result: Result) -> Iterator[tuple[Question, SuiteQuery, list[str]]]:
    """The questions that a model can answer, each with the texts of the memories that were returned."""
    questions = {question.line: question for question in result.questions}
    for scenario_run in suite.scenario_runs:
        texts: dict[str, str] = {}
        for line, step in scenario_run.steps:
            if isinstance(step, SuiteFact):
                texts[step.id] = step.text if step.at is None else f"{step.at[:10]} {step.text}"
            elif isinstance(step, SuiteTurn) and step.id is not None:
                texts[step.id] = step.text
            elif isinstance(step, SuiteQuery) and line in questions:
                question = questions[line]
                if step.answer is not None or step.category in UNANSWERABLE:
                    yield question, step, [texts[row.item] for row in question.rows if row.item in texts]


def answers_of(suite: Suite, result: Result, answerer: Answerer, loaded: BenchLog) -> Answers:
    """The answers of a run, scored."""
    answers = []
    for question, query, memories in questions_for_model(suite, result):
        record: Mapping[str, Any] = loaded.answers[(question.scenario, question.line)]
        answers.append(
            ScoredAnswer(
                **question.model_dump(include=set(AboutQuestion.model_fields)),
                expected=query.answer,
                answer=record["answer"],
                exact=0.0 if query.answer is None else exact_match(record["answer"], query.answer),
                f1=f1_score(record["answer"], query.answer, query.category),
                judged=record.get("judged"),
                tokens=sum(map(len, memories)) // CHARACTERS_A_TOKEN,
            )
        )
    categories = sorted({answer.category for answer in answers if answer.category is not None})
    judge, price = answerer.judge, answerer.price
    overall = _figures([each for each in answers if each.category not in UNANSWERABLE])
    others = [each for each in answers if each.category in UNANSWERABLE]
    return Answers(
        run=result.run,
        provider=answerer.name,
        model=answerer.model,
        prompt=SYSTEM,
        judge=None if judge is None else {"model": judge.model, "prompt": judge.prompt},
        price=None if price is None else rounded(overall.tokens * price / 1_000_000),
        overall=overall,
        unanswerable=_figures(others) if others else None,
        by_category={name: _figures([each for each in answers if each.category == name]) for name in categories},
        answers=tuple(answers),
    )


async def _answer(answerer: Answerer, question: Question, query: SuiteQuery, memories: list[str]) -> dict[str, Any]:
    listed = "\n".join(f"- {memory}" for memory in memories) or "There are no memories."
    options = CompletionOptions(
        model=answerer.model, max_tokens=MOST_TOKENS, temperature=0.0, system_prompt=f"{SYSTEM}\n\n{listed}"
    )
    began = asyncio.get_running_loop().time()
    try:
        completion = await answerer.provider.complete([Message("user", query.text)], options)
    except ProviderError as failure:
        raise BenchFailureError(
            f"scenario {question.scenario}, line {question.line}: the model: {failure.message}", remedy=failure.remedy
        ) from None
    ms = (asyncio.get_running_loop().time() - began) * 1000
    record: dict[str, Any] = {
        "kind": "answer",
        "scenario": question.scenario,
        "line": question.line,
        "by": _answerer_id(answerer),
        "answer": completion.content.strip(),
        "ms": round(ms, 3),
    }
    if answerer.judge is not None:
        try:
            score = answerer.judge.score(query.text, query.answer, record["answer"])
            record["judged"] = rounded(float(await score if inspect.isawaitable(score) else score))
        except ProviderError as failure:
            raise BenchFailureError(f"the judge: {failure.message}", remedy=failure.remedy) from None
    return record


def _answerer_id(answerer: Answerer) -> list[str | None]:
    judge = answerer.judge
    return [answerer.name, answerer.model, *((judge.model, judge.prompt) if judge is not None else ())]


def _figures(answers: list[ScoredAnswer]) -> AnswerFigures:
    judged = [answer.judged for answer in answers if answer.judged is not None]
    number = len(answers) or 1
    return AnswerFigures(
        questions=len(answers),
        exact=rounded(sum(answer.exact for answer in answers) / number),
        f1=rounded(sum(answer.f1 for answer in answers) / number),
        judged=rounded(sum(judged) / len(judged)) if judged else None,
        tokens=rounded(sum(answer.tokens for answer in answers) / number),
    )


ARTICLES: Final = re.compile(r"\b(a|an|the|and)\b")
MULTI_HOP: Final = "multi-hop"
"""The category whose answers are lists: each expected part is compared with each part of the answer."""
OPEN_DOMAIN: Final = "open-domain"
"""The category whose expected answers hold a reason after a semicolon."""
NOT_MENTIONED: Final = ("not mentioned", "no information available")


def exact_match(answer: str, expected: str) -> float:
    """Return 1 when both are equal without case, punctuation and articles, else 0."""
    return float(_normalized(answer) == _normalized(expected))


def f1_score(answer: str, expected: str | None, category: str | None) -> float:
    """The harmonic mean of precision and recall over the stems of the words."""
    if category in UNANSWERABLE:
        return float(any(words in answer.lower() for words in NOT_MENTIONED))
    if expected is None:
        return 0.0
    if category == MULTI_HOP:
        answers = answer.split(",")
        parts = expected.split(",")
        return rounded(sum(max(_overlap(each, part) for each in answers) for part in parts) / len(parts))
    if category == OPEN_DOMAIN:
        expected = expected.split(";")[0]
    return rounded(_overlap(answer, expected))


def _overlap(answer: str, expected: str) -> float:
    words, expected_words = Counter(_stems(answer)), Counter(_stems(expected))
    common = sum((words & expected_words).values())
    if not common:
        return 0.0
    precision, recall = common / words.total(), common / expected_words.total()
    return 2 * precision * recall / (precision + recall)


def _normalized(text: str) -> str:
    without = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(ARTICLES.sub(" ", without).split())


def _stems(text: str) -> list[str]:
    return list(_stemmer().stemWords(_normalized(text).split()))


@cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("porter")
