"""Makes suites of published data sets. The user supplies the files: the package ships and downloads no data."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.bench.source import PublishedFile, Value, moment, name_of, plain, read_source
from signet_reference_harness.documents import DocumentError

CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
TURN: Final = re.compile(r"D:?(\d+):0*(\d+)")
SESSION: Final = re.compile(r"session_(\d+)")
ABSTENTION = "_abs"
NUMBERED: Final = re.compile(r"^\d+[.:] ")
PIECE: Final = 1_500
"""Characters of a piece, where the text is not a list of facts."""
LEAST_ANSWER: Final = 3
ANSWERS: Final = ("answer", "ideal_answer", "ideal_response", "ideal_summary")
INDEX: Final = re.compile(r"\s*->->\s*[\d,. ]*$")
"""What its generator left at the end of a user's message."""
NO_SOURCE: Final = "abstention"


def locomo(source: PublishedFile, *, captions: bool) -> Iterator[dict[str, Any]]:
    """Convert LoCoMo (Maharana et al., ACL 2024): a database a conversation, a fact a turn, a question a query.

    `[{"sample_id", "conversation": {"session_1_date_time", "session_1": [{"speaker", "dia_id", "text",
    "blip_caption"}]}, "qa": [{"question", "answer", "adversarial_answer", "evidence": ["D1:3"], "category"}]}]`

    With `captions` a turn holds what its picture shows. Raises DocumentError.
    """
    mended, lost, without = 0, 0, 0
    scenarios: list[dict[str, Any]] = []
    for number, sample in enumerate(source.root.items(), 1):
        name = name_of(str(sample.optional("sample_id") or f"conversation-{number}"))
        scenarios.append({"kind": "scenario", "id": name})
        turns = list(_locomo_turns(sample.member("conversation"), captions=captions))
        scenarios += turns
        known = {turn["id"] for turn in turns}
        for order, question in enumerate(sample.member("qa").items(), 1):
            named = [str(each) for each in question.optional("evidence") or []]
            evidence = list(dict.fromkeys(f"D{a}:{b}" for each in named for a, b in TURN.findall(each)))
            kept = [each for each in evidence if each in known]
            mended += sum(each not in known for each in named)
            lost += len(evidence) - len(kept)
            without += not kept
            category = question.optional("category")
            answer = question.optional("answer")
            expected = None if answer is None or category == 5 else str(answer)
            text = question.member("question").text()
            scenarios.append(_query(f"q{order}", text, kept, CATEGORIES.get(category, str(category)), expected))
    yield _head(
        "locomo-captions" if captions else "locomo",
        "CC-BY-NC-4.0",
        f"LoCoMo, Maharana et al., ACL 2024; sha256 of the file: {source.sha256}",
        f"{mended} entries of evidence name no turn; they were split or corrected where that was plain",
        f"{lost} of the turns named then do not exist and are left out; {without} questions have no evidence",
        "the evidence of category 5 is that of the question it was twisted from: it answers nothing",
    )
    yield from scenarios


def _locomo_turns(conversation: Value, *, captions: bool) -> Iterator[dict[str, Any]]:
    members = conversation.demand(dict)
    numbers = sorted(int(session[1]) for name in members if (session := SESSION.fullmatch(name)))
    for number in numbers:
        said = str(members.get(f"session_{number}_date_time", ""))
        at = moment(said, "%I:%M %p on %d %B, %Y", "%d %B, %Y")
        for turn in conversation.member(f"session_{number}").items():
            text = f"{turn.member('speaker').text()}: {turn.member('text').text()}"
            caption = turn.optional("blip_caption")
            shown = f" [shows a picture: {caption}]" if captions and caption else ""
            yield plain({"kind": "fact", "id": turn.member("dia_id").text(), "text": text + shown, "at": at})


def longmemeval(source: PublishedFile) -> Iterator[dict[str, Any]]:
    """Convert LongMemEval (Wu et al., ICLR 2025): each question has a history, and so a database, of its own.

    `[{"question_id", "question_type", "question", "answer", "question_date", "haystack_session_ids", "haystack_dates",
    "haystack_sessions": [[{"role", "content", "has_answer"}]], "answer_session_ids"}]`

    Turns marked `has_answer` are evidence. Raises DocumentError.
    """
    yield _head(
        "longmemeval",
        "MIT",
        f"LongMemEval, Wu et al., ICLR 2025; sha256 of the file: {source.sha256}",
        "evidence is a turn that its authors marked; without such a turn, every turn of the answer's sessions counts",
    )
    seen: dict[str, int] = {}
    for record in source.root.items():
        question = record.member("question_id").text()
        name = name_of(question)
        seen[name] = seen.get(name, 0) + 1
        yield {"kind": "scenario", "id": name if seen[name] == 1 else f"{name}.{seen[name]}"}
        marked, of_sessions = [], []
        for turn, is_marked, is_answers in _longmemeval_turns(record):
            yield turn
            marked += [turn["id"]] if is_marked else []
            of_sessions += [turn["id"]] if is_answers else []
        unanswerable = question.endswith(ABSTENTION)
        evidence = [] if unanswerable else marked or of_sessions
        category = "abstention" if unanswerable else record.optional("question_type")
        text, answer = record.member("question").text(), record.member("answer").text()
        yield _query("question", text, evidence, category, answer)


def _longmemeval_turns(record: Value) -> Iterator[tuple[dict[str, Any], bool, bool]]:
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


def memoryagentbench(source: PublishedFile) -> Iterator[dict[str, Any]]:
    """Convert MemoryAgentBench (Hu et al., 2025): a long text, read in pieces, and questions about it.

    `[{"context", "questions": […], "answers": [[…]], "metadata": {"source", "qa_pair_ids", "question_types"}}]`; the
    data set is published as Parquet, and is exported as JSON lines.

    A piece that holds an answer word for word is evidence. Raises DocumentError.
    """
    yield _head(
        "memoryagentbench",
        "MIT",
        f"MemoryAgentBench, Hu et al., 2025; sha256 of the file: {source.sha256}",
        "the data set names no evidence: each piece of the text that holds an accepted answer word for word counts",
        "questions whose answer stands nowhere word for word have no evidence",
    )
    for number, record in enumerate(source.root.items(), 1):
        metadata = record.optional("metadata") or {}
        told = metadata.get("source") if isinstance(metadata, dict) else None
        yield {"kind": "scenario", "id": f"{name_of(str(told or record.optional('source') or 'text'))}.{number}"}
        pieces = list(_memoryagentbench_pieces(record.member("context").text()))
        for order, piece in enumerate(pieces, 1):
            yield {"kind": "fact", "id": f"p{order}", "text": piece}
        yield from _memoryagentbench_questions(record, metadata if isinstance(metadata, dict) else {}, pieces)


def _memoryagentbench_questions(record: Value, metadata: dict[str, Any], pieces: list[str]) -> Iterator[dict[str, Any]]:
    questions, answers = record.member("questions").items(), record.member("answers").items()
    if len(questions) != len(answers):
        record.refuse(f"has {len(questions)} questions and {len(answers)} answers")
    types = metadata.get("question_types") or []
    lowered = [piece.lower() for piece in pieces]
    for order, (question, answer) in enumerate(zip(questions, answers, strict=True), 1):
        accepted = [each.text() for each in answer.items()] if isinstance(answer.value, list) else [answer.text()]
        wanted = [each.lower().strip() for each in accepted if len(each.strip()) >= LEAST_ANSWER]
        evidence = [f"p{n}" for n, piece in enumerate(lowered, 1) if any(each in piece for each in wanted)]
        category = types[order - 1] if isinstance(types, list) and order <= len(types) else None
        yield _query(f"q{order}", question.text(), evidence, category, accepted[0] if accepted else None)


def _memoryagentbench_pieces(text: str) -> Iterator[str]:
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


def _read_beam(path: Path) -> PublishedFile:
    if not path.is_dir():
        return read_source(path)
    chats = sorted(path.glob("**/chat.json"), key=lambda each: [_beam_number(part) for part in each.parts])
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
    return PublishedFile(path, digest.hexdigest(), Value(str(path), "", records))


def beam(source: PublishedFile) -> Iterator[dict[str, Any]]:
    """Convert BEAM (Tavakoli et al., 2025): long conversations and ten kinds of probing questions.

    A folder of its repository, such as chats/100K or chats/100K/1: `chat.json` is
    `[{"turns": [[{"role", "id", "content", "time_anchor"}]]}]`, `probing_questions/probing_questions.json` is
    `{KIND: [{"question", "answer", "source_chat_ids"}]}`. Or a file of records
    `{"conversation_id", "chat", "probing_questions"}`. Raises DocumentError.
    """
    repeated = 0
    scenarios: list[dict[str, Any]] = []
    for number, record in enumerate(source.root.items(), 1):
        told = str(record.optional("conversation_id") or number)
        scenarios.append({"kind": "scenario", "id": f"beam-{name_of(told)}"})
        turns = list(_beam_turns(record.member("chat")))
        scenarios += (turn for _, turn in turns)
        by_message: dict[int, list[str]] = {}
        for message, turn in turns:
            by_message.setdefault(message, []).append(turn["id"])
        repeated += sum(len(ids) > 1 for ids in by_message.values())
        scenarios += _beam_questions(record.member("probing_questions"), by_message)
    yield _head(
        "beam",
        "see the data set's own terms",
        f"BEAM, Tavakoli et al., 2025; sha256 of the files: {source.sha256}",
        f"{repeated} message ids belong to more than one message: each of these counts as evidence",
        "questions of abstention, and those that name no message, have no evidence",
    )
    yield from scenarios


def _beam_number(part: str) -> tuple[int, str]:
    return (int(part), "") if part.isdigit() else (-1, part)


def _beam_turns(chat: Value) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield message id and fact of each message, at any depth."""
    at: str | None = None
    used: dict[str, int] = {}
    for message in _beam_messages(chat):
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


def _beam_messages(value: Value) -> Iterator[Value]:
    if isinstance(value.value, list):
        for item in value.items():
            yield from _beam_messages(item)
    elif isinstance(value.value, dict):
        if "content" in value.value and "role" in value.value:
            yield value
        else:
            for name in value.value:
                yield from _beam_messages(value.member(name))


def _beam_questions(probing: Value, by_message: dict[int, list[str]]) -> Iterator[dict[str, Any]]:
    if isinstance(probing.value, str):
        probing = Value(probing.where, probing.pointer, _beam_literal(probing))
    order = 0
    for kind in probing.demand(dict):
        for question in probing.member(kind).items():
            order += 1
            numbers = [] if kind == NO_SOURCE else list(_beam_numbers(question.optional("source_chat_ids")))
            evidence = [name for number in dict.fromkeys(numbers) for name in by_message.get(number, ())]
            answer = next((question.optional(name) for name in ANSWERS if question.optional(name)), None)
            text = question.member("question").text()
            yield _query(f"q{order}", text, evidence, kind, None if answer is None else str(answer))


def _beam_literal(probing: Value) -> Any:
    """Parse a text that published rows hold instead of an object: JSON, or Python's notation."""
    text = probing.demand(str)
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return probing.refuse("is a text that holds no object")


def _beam_numbers(value: Any) -> Iterator[int]:
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _beam_numbers(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _beam_numbers(item)


def _head(name: str, licence: str, source: str, *known_defects: str) -> dict[str, Any]:
    head = {"kind": "suite", "format": "signet-bench-suite/1", "name": name, "licence": licence, "source": source}
    return {**head, "known_defects": list(known_defects)}


def _query(name: str, text: str, evidence: list[str], category: Any, answer: str | None) -> dict[str, Any]:
    query = {"kind": "query", "id": name, "text": text, "evidence": evidence}
    return plain({**query, "category": category, "answer": answer})


Convert = Callable[[PublishedFile], Iterator[dict[str, Any]]]

CONVERTERS: Final[dict[str, Convert]] = {
    "locomo": lambda source: locomo(source, captions=False),
    "locomo-captions": lambda source: locomo(source, captions=True),
    "longmemeval": longmemeval,
    "memoryagentbench": memoryagentbench,
    "beam": beam,
}
"""The data sets by name. `locomo-captions` has in each turn what its picture shows."""


def convert(name: str, path: Path) -> bytes:
    """The suite made of a published file, or a folder of files, as bytes. Raises DocumentError."""
    source = _read_beam(path) if name == "beam" else read_source(path)
    lines = (json.dumps(line, ensure_ascii=False) for line in CONVERTERS[name](source))
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
