"""LongMemEval (Wu et al., ICLR 2025): each question has a history, and so a database, of its own.

`[{"question_id", "question_type", "question", "answer", "question_date", "haystack_session_ids", "haystack_dates",
"haystack_sessions": [[{"role", "content", "has_answer"}]], "answer_session_ids"}]`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from signet_reference_harness.bench.converters.source import Source, Value, moment, name_of, plain

ABSTENTION = "_abs"


def convert(source: Source) -> Iterator[dict[str, Any]]:
    """The lines of the suite; turns marked `has_answer` are evidence. Raises DocumentError."""
    yield {
        "kind": "suite",
        "format": "signet-bench-suite/1",
        "name": "longmemeval",
        "licence": "MIT",
        "source": f"LongMemEval, Wu et al., ICLR 2025; sha256 of the file: {source.sha256}",
        "known_defects": [
            "evidence is a turn that its authors marked; where none is, every turn of the answer's sessions counts"
        ],
    }
    seen: dict[str, int] = {}
    for record in source.root.items():
        question = record.member("question_id").text()
        name = name_of(question)
        seen[name] = seen.get(name, 0) + 1
        yield {"kind": "scenario", "id": name if seen[name] == 1 else f"{name}.{seen[name]}"}
        marked, of_sessions = [], []
        for turn, is_marked, is_answers in _turns(record):
            yield turn
            marked += [turn["id"]] if is_marked else []
            of_sessions += [turn["id"]] if is_answers else []
        unanswerable = question.endswith(ABSTENTION)
        yield plain(
            {
                "kind": "query",
                "id": "question",
                "text": record.member("question").text(),
                "evidence": [] if unanswerable else marked or of_sessions,
                "category": "abstention" if unanswerable else record.optional("question_type"),
                "answer": record.member("answer").text(),
            }
        )


def _turns(record: Value) -> Iterator[tuple[dict[str, Any], bool, bool]]:
    sessions = record.member("haystack_sessions").items()
    names = [str(name) for name in record.optional("haystack_session_ids") or []]
    dates = [str(date) for date in record.optional("haystack_dates") or []]
    answers = {str(name) for name in record.optional("answer_session_ids") or []}
    for number, session in enumerate(sessions):
        said = dates[number] if number < len(dates) else ""
        at = moment(said, "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d %H:%M", "%Y/%m/%d", "%Y-%m-%d")
        is_answers = number < len(names) and names[number] in answers
        for order, turn in enumerate(session.items(), 1):
            content = turn.member("content").text()
            if not content.strip():
                continue
            text = f"{turn.member('role').text()}: {content}"
            fact = plain({"kind": "fact", "id": f"s{number + 1}:{order}", "text": text, "at": at})
            yield fact, turn.optional("has_answer") is True, is_answers
