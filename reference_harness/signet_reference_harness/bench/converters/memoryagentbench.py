"""MemoryAgentBench (Hu et al., 2025): a long text, read in pieces, and questions about it.

`[{"context", "questions": […], "answers": [[…]], "metadata": {"source", "qa_pair_ids", "question_types"}}]`; the data
set is published as Parquet, and is exported as JSON lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from signet_reference_harness.bench.converters.source import Source, Value, name_of, plain

NUMBERED: Final = re.compile(r"^\d+[.:] ")
PIECE: Final = 1_500
"""Characters of a piece, where the text is not a list of facts."""
LEAST_ANSWER: Final = 3


def convert(source: Source) -> Iterator[dict[str, Any]]:
    """The lines of the suite; a piece that holds an answer word for word is evidence. Raises DocumentError."""
    yield {
        "kind": "suite",
        "format": "signet-bench-suite/1",
        "name": "memoryagentbench",
        "licence": "MIT",
        "source": f"MemoryAgentBench, Hu et al., 2025; sha256 of the file: {source.sha256}",
        "known_defects": [
            "the data set names no evidence: each piece of the text that holds an accepted answer word for word counts",
            "questions whose answer stands nowhere word for word have no evidence",
        ],
    }
    for number, record in enumerate(source.root.items(), 1):
        metadata = record.optional("metadata") or {}
        told = metadata.get("source") if isinstance(metadata, dict) else None
        yield {"kind": "scenario", "id": f"{name_of(str(told or record.optional('source') or 'text'))}.{number}"}
        pieces = list(_pieces(record.member("context").text()))
        for order, piece in enumerate(pieces, 1):
            yield {"kind": "fact", "id": f"p{order}", "text": piece}
        yield from _questions(record, metadata if isinstance(metadata, dict) else {}, pieces)


def _questions(record: Value, metadata: dict[str, Any], pieces: list[str]) -> Iterator[dict[str, Any]]:
    questions, answers = record.member("questions").items(), record.member("answers").items()
    if len(questions) != len(answers):
        record.refuse(f"has {len(questions)} questions and {len(answers)} answers")
    types = metadata.get("question_types") or []
    lowered = [piece.lower() for piece in pieces]
    for order, (question, answer) in enumerate(zip(questions, answers, strict=True), 1):
        accepted = [each.text() for each in answer.items()] if isinstance(answer.value, list) else [answer.text()]
        wanted = [each.lower().strip() for each in accepted if len(each.strip()) >= LEAST_ANSWER]
        evidence = [f"p{n}" for n, piece in enumerate(lowered, 1) if any(each in piece for each in wanted)]
        yield plain(
            {
                "kind": "query",
                "id": f"q{order}",
                "text": question.text(),
                "evidence": evidence,
                "category": types[order - 1] if isinstance(types, list) and order <= len(types) else None,
                "answer": accepted[0] if accepted else None,
            }
        )


def _pieces(text: str) -> Iterator[str]:
    """The facts of a numbered list, else paragraphs put together up to the length of a piece."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    facts = [NUMBERED.sub("", line) for line in lines if NUMBERED.match(line)]
    if len(facts) > len(lines) / 2:
        yield from (fact for fact in facts if fact)
        return
    piece = ""
    for sentence in (part for line in lines for part in re.split(r"(?<=[.!?]) ", line)):
        if piece and len(piece) + len(sentence) >= PIECE:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}".strip()
    if piece:
        yield piece
