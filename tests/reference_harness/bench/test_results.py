"""Documents of a run: comparison, training pairs, a model's answers, and the progress line."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from rich.console import Console

from signet_reference_harness.bench import answering, comparing
from signet_reference_harness.bench.answering import Answerer
from signet_reference_harness.bench.log import BenchFailureError, RunLog
from signet_reference_harness.bench.pairs import read_pairs
from signet_reference_harness.bench.running import ProgressLine
from signet_reference_harness.cli import commands
from signet_reference_harness.documents import DocumentError
from signet_reference_harness.errors import ConfigError
from signet_reference_harness.providers import CompletionResult, settings
from signet_reference_harness.providers.scripted import ScriptedProvider
from tests.reference_harness.bench.suites import hut_lines, result, run, suite

SCHEMAS = Path(__file__).parents[3] / "schemas" / "harness"


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """The folders of a good run, and of one by recency alone."""
    for subject in ("fts5", "recent"):
        run(hut_lines(), tmp_path / subject, subject=subject, emit_pairs=tmp_path / f"{subject}.pairs")
    return tmp_path / "fts5", tmp_path / "recent"


def test_documents_keep_to_their_schemas(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """The files of result, times, comparison and pairs are valid."""
    first, second = map(comparing.read_result, runs)
    documents = {
        "signet-bench-result-1": result(runs[0]),
        "signet-bench-times-1": json.loads((runs[0] / "times.json").read_text()),
        "signet-bench-comparison-1": comparing.compare(first, second).model_dump(mode="json"),
        "signet-scorer-pair-1": json.loads((tmp_path / "fts5.pairs").read_text().splitlines()[0]),
        "signet-bench-suite-1": hut_lines()[3],
    }
    for name, value in documents.items():
        jsonschema.validate(value, json.loads((SCHEMAS / f"{name}.schema.json").read_text()))


def test_a_comparison_is_by_question(runs: tuple[Path, Path]) -> None:
    """Its differences are those of the figures, each with an interval; changed questions are named."""
    comparison = comparing.compare(*map(comparing.read_result, runs))
    assert comparison.figures["mrr@10"].first == 1.0
    assert comparison.figures["mrr@10"].difference == round(sum([1 / 4, 1 / 3, 1 / 2]) / 3 - 1, 6)
    assert comparison.figures["hit@10"].interval == (0.0, 0.0)
    assert (comparison.better, comparison.worse) == (0, 9)
    assert (comparison.changed[0].first_rank, comparison.changed[0].second_rank) == (1, 4)
    assert set(comparison.by_category) == {"first", "hut"}


def test_a_comparison_is_shown_and_drawn(runs: tuple[Path, Path]) -> None:
    """The terminal has figures and questions; the page escapes texts of a suite."""
    comparison = comparing.compare(*map(comparing.read_result, runs))
    console = Console(file=io.StringIO(), width=120)
    comparing.show(comparison, console)
    said = console.file.getvalue()
    assert "9 questions: 0 better, 9 worse" in said
    assert "line 7, valley-0/q0: 1 -> 4" in said
    results = dict(zip(("a", "b"), map(comparing.read_result, runs), strict=True))
    page = comparing.page_of(results, [comparison.model_copy(update={"suite": "<script>alert(1)</script>"})])
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert page.count(" -&gt; ") == 1 + len(comparison.changed), "each question that changed"
    assert "hut: ndcg@10" in page, "each figure of each category"


def test_any_number_of_results_is_compared_with_the_first(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """Terminal and plot have a row for each, JSON each pair; a single result is refused."""
    again = shutil.copytree(runs[0], tmp_path / "again")
    three = [str(runs[1]), str(runs[0] / "result.json"), str(again)]
    done = CliRunner().invoke(commands, ["bench", "compare", *three, "--html", str(tmp_path / "plot.html")])
    assert [line.split()[0] for line in done.output.splitlines()[1:4]] == ["recent", "fts5", "again"]
    assert done.output.count(": mrr@10 +0.639 (") == 2, "from the first result, not from the one before"
    plot = (tmp_path / "plot.html").read_text().rpartition("run")[2]
    assert [line.split()[0] for line in plot.splitlines()[1:4]] == ["recent", "fts5", "again"]
    told = json.loads(CliRunner().invoke(commands, ["bench", "compare", *three, "--json"]).output)
    assert [each["first"]["name"] for each in told] == ["recent", "recent"]
    with pytest.raises(ConfigError, match="needs two results or more"):
        comparing.read_results([runs[0]])


def test_no_figure_is_cut_to_the_width_of_a_pipe(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """Long names of runs hide no column, and no line ends in blanks."""
    three = [shutil.copytree(runs[0], tmp_path / f"{'a-run-with-a-long-name-' * 3}{n}") for n in range(3)]
    done = CliRunner().invoke(commands, ["bench", "compare", *map(str, three)])
    assert "…" not in done.output
    assert done.output.count(" 1.000 (1.000 to 1.000)") == 6
    done = CliRunner().invoke(commands, ["bench", "compare", *map(str, three[:2])])
    assert [line for line in done.output.splitlines() if line.endswith(" ")] == []


def test_a_category_that_a_result_lacks_is_none(runs: tuple[Path, Path]) -> None:
    """A baseline gets no questions that need a session."""
    first, second = map(comparing.read_result, runs)
    second = second.model_copy(update={"by_category": {"hut": second.by_category["hut"]}})
    console = Console(file=io.StringIO(), width=120)
    comparing.show_side_by_side({"a": first, "b": second}, [comparing.compare(first, second)], console)
    said = console.file.getvalue()
    assert [line.split() for line in said.splitlines()[-2:]] == [
        ["first", "1.000", "of", "3", "none"],
        ["hut", "1.000", "of", "6", "0.417", "of", "6"],
    ]


def test_unanswerable_questions_are_in_no_overall_figure(tmp_path: Path) -> None:
    """They have figures of their own category, and are in no comparison and no training pair."""
    lines = hut_lines()
    adversarial = [line | {"category": "adversarial"} if line.get("id") == "q0" else line for line in lines]
    for subject in ("fts5", "recent"):
        run(adversarial, tmp_path / subject, subject=subject, emit_pairs=tmp_path / f"{subject}.pairs")
    first, second = (comparing.read_result(tmp_path / subject) for subject in ("fts5", "recent"))
    assert (second.overall.questions, second.by_category["adversarial"].questions) == (6, 3)
    assert sum(group.questions for group in second.by_operation.values()) == 6
    assert second.overall.figures["mrr@10"] == pytest.approx((1 / 3 + 1 / 2) / 2, abs=1e-5)
    comparison = comparing.compare(first, second)
    assert (comparison.questions, comparison.worse, len(comparison.changed)) == (6, 6, 6)
    assert comparison.by_category["adversarial"].keys() == comparison.figures.keys()
    assert len(list(read_pairs(tmp_path / "recent.pairs"))) == 6


def test_results_of_two_suites_are_not_compared(runs: tuple[Path, Path]) -> None:
    """Their questions differ."""
    first = comparing.read_result(runs[0])
    other = first.model_copy(update={"suite": first.suite.model_copy(update={"sha256": "0" * 64})})
    with pytest.raises(ConfigError, match="are of two suites"):
        comparing.compare(first, other)


def test_a_file_without_a_result_is_refused(tmp_path: Path) -> None:
    """The error names it, whether it is missing or something else."""
    (tmp_path / "x.json").write_text("{}")
    for path in (tmp_path, tmp_path / "x.json"):
        with pytest.raises(DocumentError, match=r"\.json: "):
            comparing.read_result(path)


def test_pairs_hold_candidates_and_outcome(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """One for each question with evidence, in the order of the suite, with the text of each memory."""
    pairs = list(read_pairs(tmp_path / "recent.pairs"))
    assert len(pairs) == 9
    assert pairs[0].run == result(runs[1])["run"]
    assert pairs[0].context.query == "Which hut is painted red?"
    assert [(each.item, each.relevant) for each in pairs[0].candidates] == [
        ("white", False),
        ("blue", False),
        ("green", False),
        ("red", True),
    ]
    assert pairs[0].candidates[3].text == "Hut 0 of valley 0 is painted red."
    assert (pairs[0].outcome.relevant, pairs[0].outcome.rank) == (("red",), 4)


@pytest.mark.parametrize("synthetic", [None, False, "true", 1])
def test_a_row_that_is_not_synthetic_is_refused(synthetic: object, runs: tuple[Path, Path], tmp_path: Path) -> None:
    """Real sessions are not mixed with generated ones, whatever else the row says."""
    del runs
    row = json.loads((tmp_path / "fts5.pairs").read_text().splitlines()[0])
    row.pop("synthetic")
    row |= {} if synthetic is None else {"synthetic": synthetic}
    (tmp_path / "rows").write_text(f"\n{json.dumps(row)}\n")
    with pytest.raises(DocumentError, match=r"rows:2: .*synthetic"):
        list(read_pairs(tmp_path / "rows"))


class Strict:
    """A judge for tests."""

    model = "nobody"
    prompt = "Is it the same word?"

    def score(self, question: str, expected: str | None, answer: str) -> float:
        """1 for an equal text."""
        del question
        return float(expected == answer)


def answer_with(
    texts: list[str], runs: tuple[Path, Path], judge: Any = None, price: float | None = None
) -> answering.Answers:
    """The answers of a model that gives these texts in order."""
    read = comparing.read_result(runs[0])
    huts = suite(hut_lines())
    provider = ScriptedProvider([CompletionResult(content=text) for text in texts])
    answerer = Answerer(provider, "scripted", None, judge, 1, price)
    log = RunLog.open(runs[0])
    try:
        asyncio.run(answering.answer_all(huts, read, answerer, log, log.load(), ProgressLine(9, "answers", quiet=True)))
        return answering.answers_of(huts, read, answerer, log.load())
    finally:
        log.close()


def test_answers_are_scored_apart(runs: tuple[Path, Path]) -> None:
    """A judge is named with model and prompt, and its score is not the main figure."""
    comparison = answer_with(["Hut 0.", "hut 1", "none"] * 3, runs, Strict())
    scores = {"questions": 9, "exact": 0.666667, "f1": 0.666667, "judged": 0.333333}
    tokens = sum(answer.tokens for answer in comparison.answers) / 9
    assert comparison.overall.model_dump() == {**scores, "tokens": round(tokens, 6)}
    assert tokens > 0
    assert comparison.judge == {"model": "nobody", "prompt": "Is it the same word?"}
    jsonschema.validate(
        comparison.model_dump(mode="json"), json.loads((SCHEMAS / "signet-bench-answers-1.schema.json").read_text())
    )


def test_equal_answers_make_equal_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal answers give an equal document; durations are in the times."""
    for name in ("one", "two"):
        provider = ScriptedProvider([CompletionResult(content="hut 0")] * 9)
        monkeypatch.setattr(settings, "make_provider", lambda _asked, made=provider: made)
        given = {"answer": True, "provider": "ollama", "model": "m", "price": 1.0}
        assert run(hut_lines(), tmp_path / name, subject="fts5", **given) == 0
    one, two = tmp_path / "one", tmp_path / "two"
    assert (one / "answers.json").read_bytes() == (two / "answers.json").read_bytes()
    assert json.loads((two / "times.json").read_text())["latencies_ms"]["answer"]["count"] == 9


@pytest.mark.parametrize(
    ("said", "score"),
    [
        ("CORRECT", 1.0),
        ("Correct.", 1.0),
        ("WRONG", 0.0),
        ("Not correct", 0.0),
        ("Incorrect", 0.0),
        ("I think so", 0.0),
    ],
)
def test_a_model_judges_in_one_word(said: str, score: float) -> None:
    """Only a plain CORRECT counts; the model reads question, expected answer and answer."""
    provider = ScriptedProvider([CompletionResult(content=said)])
    judge = answering.ModelJudge(provider, "judge-1")
    assert asyncio.run(judge.score("Which hut?", None, "No idea.")) == score
    ((message,), options) = provider.seen[0]
    assert message.content == "Question: Which hut?\nExpected answer: This is not mentioned.\nAnswer: No idea."
    assert (options.model, options.system_prompt, options.temperature) == ("judge-1", judge.prompt, 0.0)


def test_memories_have_a_price(runs: tuple[Path, Path]) -> None:
    """The dollars for the tokens of memories read per question."""
    answers = answer_with(["hut 0"] * 9, runs, price=1_000_000.0)
    assert answers.price == answers.overall.tokens


def test_questions_that_the_facts_do_not_answer_stand_apart(
    runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that says it does not know is right, but that does not raise the other figures."""
    monkeypatch.setattr(answering, "UNANSWERABLE", frozenset({comparing.read_result(runs[0]).questions[0].category}))
    answers = answer_with(["not mentioned"] * 9, runs)
    assert answers.unanswerable is not None
    assert answers.overall.questions + answers.unanswerable.questions == 9
    assert (answers.overall.f1, answers.unanswerable.f1) == (0.0, 1.0)


def test_a_question_is_not_asked_twice(runs: tuple[Path, Path]) -> None:
    """Answers before a failure are kept, and count when the run is continued."""
    with pytest.raises(BenchFailureError, match=r"scenario valley-1, line 17: the model: the script has no completion"):
        answer_with(["hut 0", "hut 1", "hut 2", "hut 0"], runs)
    assert answer_with(["hut 1", "hut 2", "hut 0", "hut 1", "hut 2"], runs).overall.exact == 1.0


def test_progress_in_a_log_is_a_line_now_and_then() -> None:
    """No line is rewritten or wider than a terminal, and a short run prints nothing."""
    stream = io.StringIO()
    progress = ProgressLine(4, "steps", stream=stream)
    progress.step()
    assert stream.getvalue() == ""
    progress._written_at -= 60
    progress._began -= 60
    progress.step()
    assert stream.getvalue() == "bench: 2 of 4 steps, 50%, about 1 min 00 s left\n"
