"""BEAM (Tavakoli et al., 2025): long conversations and ten kinds of probing questions.

A folder of its repository, such as chats/100K or chats/100K/1: `chat.json` is
`[{"turns": [[{"role", "id", "content", "time_anchor"}]]}]`, `probing_questions/probing_questions.json` is
`{KIND: [{"question", "answer", "source_chat_ids"}]}`.
Or a file of records `{"conversation_id", "chat", "probing_questions"}`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.bench.converters.source import Source, Value, moment, name_of, plain, read_source
from signet_reference_harness.documents import DocumentError

ANSWERS: Final = ("answer", "ideal_answer", "ideal_response", "ideal_summary")
INDEX: Final = re.compile(r"\s*->->\s*[\d,. ]*$")
"""What its generator left at the end of a user's message."""
NO_SOURCE: Final = "abstention"


def read(path: Path) -> Source:
    """The records of a folder or a file. Raises DocumentError."""
    if not path.is_dir():
        return read_source(path)
    chats = sorted(path.glob("**/chat.json"), key=lambda each: [_number(part) for part in each.parts])
    records, digest = [], hashlib.sha256()
    for chat in chats:
        questions = chat.parent / "probing_questions" / "probing_questions.json"
        if questions.is_file():
            read_chat, read_questions = read_source(chat), read_source(questions)
            digest.update(f"{read_chat.sha256}{read_questions.sha256}".encode())
            records.append(
                {
                    "conversation_id": chat.parent.relative_to(path).as_posix().replace("/", "-") or chat.parent.name,
                    "chat": read_chat.root.value,
                    "probing_questions": read_questions.root.value,
                }
            )
    if not records:
        raise DocumentError(
            f"{path}: holds no chat.json with probing_questions beside it", remedy="name a folder such as chats/100K"
        )
    return Source(path, digest.hexdigest(), Value(str(path), "", records))


def convert(source: Source) -> Iterator[dict[str, Any]]:
    """The lines of the suite. Raises DocumentError."""
    repeated = 0
    scenarios: list[dict[str, Any]] = []
    for number, record in enumerate(source.root.items(), 1):
        told = str(record.optional("conversation_id") or number)
        scenarios.append({"kind": "scenario", "id": f"beam-{name_of(told)}"})
        turns = list(_turns(record.member("chat")))
        scenarios += (turn for _, turn in turns)
        by_message: dict[int, list[str]] = {}
        for message, turn in turns:
            by_message.setdefault(message, []).append(turn["id"])
        repeated += sum(len(ids) > 1 for ids in by_message.values())
        scenarios += _questions(record.member("probing_questions"), by_message)
    yield {
        "kind": "suite",
        "format": "signet-bench-suite/1",
        "name": "beam",
        "licence": "see the data set's own terms",
        "source": f"BEAM, Tavakoli et al., 2025; sha256 of the files: {source.sha256}",
        "known_defects": [
            f"{repeated} message ids stand at more than one message: each of these counts as evidence",
            "questions of abstention, and those that name no message, have no evidence",
        ],
    }
    yield from scenarios


def _number(part: str) -> tuple[int, str]:
    return (int(part), "") if part.isdigit() else (-1, part)


def _turns(chat: Value) -> Iterator[tuple[int, dict[str, Any]]]:
    """Message id and fact of each message, at whatever depth it stands."""
    at: str | None = None
    used: dict[str, int] = {}
    for message in _messages(chat):
        content = INDEX.sub("", message.member("content").text())
        anchor = message.optional("time_anchor")
        at = moment(str(anchor), "%B-%d-%Y", "%B %d, %Y", "%Y-%m-%d") or at if anchor else at
        if not content.strip():
            continue
        number = message.optional("id")
        name = f"m{number}"
        used[name] = used.get(name, 0) + 1
        text = f"{message.member('role').text()}: {content}"
        unique = name if used[name] == 1 else f"{name}.{used[name]}"
        yield number if isinstance(number, int) else -1, plain({"kind": "fact", "id": unique, "text": text, "at": at})


def _messages(value: Value) -> Iterator[Value]:
    if isinstance(value.value, list):
        for item in value.items():
            yield from _messages(item)
    elif isinstance(value.value, dict):
        if "content" in value.value and "role" in value.value:
            yield value
        else:
            for name in value.value:
                yield from _messages(value.member(name))


def _questions(probing: Value, by_message: dict[int, list[str]]) -> Iterator[dict[str, Any]]:
    if isinstance(probing.value, str):
        probing = Value(probing.where, probing.pointer, _literal(probing))
    order = 0
    for kind in probing.demand(dict):
        for question in probing.member(kind).items():
            order += 1
            numbers = [] if kind == NO_SOURCE else list(_numbers(question.optional("source_chat_ids")))
            evidence = [name for number in dict.fromkeys(numbers) for name in by_message.get(number, ())]
            answer = next((question.optional(name) for name in ANSWERS if question.optional(name)), None)
            yield plain(
                {
                    "kind": "query",
                    "id": f"q{order}",
                    "text": question.member("question").text(),
                    "evidence": evidence,
                    "category": kind,
                    "answer": None if answer is None else str(answer),
                }
            )


def _literal(probing: Value) -> Any:
    """What a text holds, which the published rows have in the place of an object: JSON, or Python's notation."""
    text = probing.demand(str)
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return probing.refuse("is a text that holds no object")


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _numbers(item)
