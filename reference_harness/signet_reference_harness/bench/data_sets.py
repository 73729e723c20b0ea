"""Converts published data sets to suites. The user supplies the files: the package ships and downloads no data."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from signet_reference_harness.bench.suite import FORMAT
from signet_reference_harness.documents import DocumentError, demand, read_file
from signet_reference_harness.messages import map_texts

LARGEST_SOURCE: Final = 4 * 1024 * 1024 * 1024
EXPORT: Final = "export the data set as JSON or JSON lines"
FACTS: Final = json.loads(Path(__file__).with_name("data_sets.json").read_bytes())
AS_PUBLISHED: Final = "name a file as its authors publish it; docs/harness/bench.md says which"


class PublishedObject(BaseModel):
    """The members of an object of a published file that are read. A number is accepted as a text."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True, defer_build=True)


Row = TypeVar("Row", bound=PublishedObject)


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """The value in a published file, or in a folder of files, with the SHA-256 of the bytes."""

    path: Path
    sha256: str
    value: Any

    def rows(self, model: type[Row], values: Any, pointer: str = "") -> Iterator[Row]:
        """The items of the list `values` at a JSON pointer of the file. Raises DocumentError."""
        if not isinstance(values, list):
            raise DocumentError(f"{self.path}: {pointer or 'the whole'}: is no list", remedy=AS_PUBLISHED)
        for number, value in enumerate(values):
            yield self.parse(model, value, f"{pointer}/{number}")

    def parse(self, model: type[Row], value: Any, pointer: str) -> Row:
        """The value at a JSON pointer of the file. Raises DocumentError."""
        return demand(model, value, f"{self.path}: {pointer}", remedy=AS_PUBLISHED)


def read_source(path: Path) -> PublishedFile:
    """Read a JSON file, or JSON lines as a list of their values. Raises DocumentError."""
    data = read_file(path, LARGEST_SOURCE)
    return PublishedFile(path, hashlib.sha256(data).hexdigest(), _parse(path, data))


def _parse(path: Path, data: bytes) -> Any:
    try:
        text = data.decode("utf-8-sig")
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path}: is not UTF-8: {error}", remedy=EXPORT) from None
    except (ValueError, RecursionError) as error:
        whole = error
    values = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            values += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError) as problem:
            # A file without one good line is no JSON lines: say what is wrong with it as one document.
            message = f"{path}:{number}: is not JSON: {problem}" if values else f"{path}: is not JSON: {whole}"
            raise DocumentError(message, remedy=EXPORT) from None
    return values


CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
TURN: Final = re.compile(r"D:?(\d+):0*(\d+)")
SESSION: Final = re.compile(r"session_(\d+)")


class LocomoTurn(PublishedObject):
    """An utterance of one of the two speakers, and the caption of the picture that they show."""

    speaker: str
    text: str
    dia_id: str
    blip_caption: str | None = None


class LocomoQuestion(PublishedObject):
    """A question; `evidence` names turns, such as D1:3, and `category` is a number."""

    question: str
    answer: Any = None
    evidence: list[str] | None = None
    category: Any = None


class LocomoSample(PublishedObject):
    """A conversation with its questions; `session_1` and `session_1_date_time` are members of the conversation."""

    sample_id: str | None = None
    conversation: dict[str, Any]
    qa: list[LocomoQuestion]


def locomo(source: PublishedFile, *, captions: bool) -> Iterator[dict[str, Any]]:
    """Convert LoCoMo (Maharana et al., ACL 2024): a database a conversation, a fact a turn, a question a query.

    With `captions`, a turn contains the caption of its picture. Raises DocumentError.
    """
    malformed, unknown, without = 0, 0, 0
    scenarios: list[dict[str, Any]] = []
    for number, sample in enumerate(source.rows(LocomoSample, source.value)):
        name = name_of(sample.sample_id or f"conversation-{number + 1}")
        scenarios.append({"kind": "scenario", "id": name})
        turns = list(_locomo_turns(source, f"/{number}/conversation", sample.conversation, captions=captions))
        scenarios += turns
        known = {turn["id"] for turn in turns}
        for order, asked in enumerate(sample.qa, 1):
            named = asked.evidence or []
            evidence = list(dict.fromkeys(f"D{a}:{b}" for each in named for a, b in TURN.findall(each)))
            existing = [each for each in evidence if each in known]
            malformed += sum(each not in known for each in named)
            unknown += len(evidence) - len(existing)
            without += not existing
            expected = None if asked.category == 5 else asked.answer
            category = CATEGORIES.get(asked.category, str(asked.category))
            scenarios.append(_query(f"q{order}", asked.question, existing, category, expected))
    yield {
        **_head("locomo", source, malformed=malformed, unknown=unknown, without=without),
        "name": "locomo-captions" if captions else "locomo",
    }
    yield from scenarios


def _locomo_turns(
    source: PublishedFile, pointer: str, conversation: Mapping[str, Any], *, captions: bool
) -> Iterator[dict[str, Any]]:
    for number in sorted(int(match[1]) for match in map(SESSION.fullmatch, conversation) if match):
        name = f"session_{number}"
        at = iso_time(str(conversation.get(f"{name}_date_time")), "%I:%M %p on %d %B, %Y", "%d %B, %Y")
        for turn in source.rows(LocomoTurn, conversation[name], f"{pointer}/{name}"):
            picture = f" [shows a picture: {turn.blip_caption}]" if captions and turn.blip_caption else ""
            yield _fact(turn.dia_id, f"{turn.speaker}: {turn.text}{picture}", at)


ABSTENTION_SUFFIX: Final = "_abs"


class LongMemEvalTurn(PublishedObject):
    """A message of the history."""

    role: str
    content: str
    has_answer: Any = None


class LongMemEvalQuestion(PublishedObject):
    """A question with its history; the lists of ids and dates go by session."""

    question_id: str
    question_type: Any = None
    question: str
    answer: str
    haystack_sessions: list[list[LongMemEvalTurn]]
    haystack_session_ids: list[str] | None = None
    haystack_dates: list[str] | None = None
    answer_session_ids: list[str] | None = None


def longmemeval(source: PublishedFile) -> Iterator[dict[str, Any]]:
    """Convert LongMemEval (Wu et al., ICLR 2025): each question has a history, and so a database, of its own.

    Turns marked `has_answer` are evidence. Raises DocumentError.
    """
    yield _head("longmemeval", source)
    unique = _Unique()
    for asked in source.rows(LongMemEvalQuestion, source.value):
        yield {"kind": "scenario", "id": unique(name_of(asked.question_id))}
        marked, of_sessions = [], []
        for turn, is_marked, is_answers in _longmemeval_turns(asked):
            yield turn
            marked += [turn["id"]] if is_marked else []
            of_sessions += [turn["id"]] if is_answers else []
        unanswerable = asked.question_id.endswith(ABSTENTION_SUFFIX)
        evidence = [] if unanswerable else marked or of_sessions
        category = "abstention" if unanswerable else asked.question_type
        yield _query("question", asked.question, evidence, category, asked.answer)


def _longmemeval_turns(asked: LongMemEvalQuestion) -> Iterator[tuple[dict[str, Any], bool, bool]]:
    names, dates = asked.haystack_session_ids or [], asked.haystack_dates or []
    answers = set(asked.answer_session_ids or ())
    for number, session in enumerate(asked.haystack_sessions):
        date = dates[number] if number < len(dates) else ""
        at = iso_time(date, "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d %H:%M", "%Y/%m/%d", "%Y-%m-%d")
        is_answers = number < len(names) and names[number] in answers
        for order, turn in enumerate(session, 1):
            if turn.content.strip():
                fact = _fact(f"s{number + 1}:{order}", f"{turn.role}: {turn.content}", at)
                yield fact, turn.has_answer is True, is_answers


NUMBERED: Final = re.compile(r"^\d+[.:] ")
PIECE: Final = 1_500
"""How many characters a piece has at most, if the text is not a list of facts."""
LEAST_ANSWER: Final = 3


class MemoryAgentBenchText(PublishedObject):
    """A long text with questions, the accepted answers of each, and in `metadata` the `question_types`."""

    context: str
    questions: list[str]
    answers: list[str | list[str]]
    metadata: Any = None
    source: Any = None


def memoryagentbench(source: PublishedFile) -> Iterator[dict[str, Any]]:
    """Convert MemoryAgentBench (Hu et al., 2025): a long text, read in pieces, and questions about it.

    The data set is published as Parquet, and is exported as JSON lines. A piece that holds an answer word for word is
    evidence. Raises DocumentError.
    """
    yield _head("memoryagentbench", source)
    for number, record in enumerate(source.rows(MemoryAgentBenchText, source.value), 1):
        metadata = record.metadata if isinstance(record.metadata, dict) else {}
        name = name_of(str(metadata.get("source") or record.source or "text"))
        yield {"kind": "scenario", "id": f"{name}.{number}"}
        if len(record.questions) != len(record.answers):
            counts = f"{len(record.questions)} questions and {len(record.answers)} answers"
            raise DocumentError(f"{source.path}: /{number - 1}: has {counts}", remedy=AS_PUBLISHED)
        pieces = list(_memoryagentbench_pieces(record.context))
        for order, piece in enumerate(pieces, 1):
            yield {"kind": "fact", "id": f"p{order}", "text": piece}
        types = metadata.get("question_types")
        yield from _memoryagentbench_questions(record, types if isinstance(types, list) else [], pieces)


def _memoryagentbench_questions(
    record: MemoryAgentBenchText, types: list[Any], pieces: list[str]
) -> Iterator[dict[str, Any]]:
    lowered = [piece.lower() for piece in pieces]
    for order, (question, answer) in enumerate(zip(record.questions, record.answers, strict=True), 1):
        accepted = answer if isinstance(answer, list) else [answer]
        wanted = [each.lower().strip() for each in accepted if len(each.strip()) >= LEAST_ANSWER]
        evidence = [f"p{n}" for n, piece in enumerate(lowered, 1) if any(each in piece for each in wanted)]
        category = types[order - 1] if order <= len(types) else None
        yield _query(f"q{order}", question, evidence, category, accepted[0] if accepted else None)


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


GENERATOR_MARK: Final = re.compile(r"\s*->->\s*[\d,. ]*$")
"""A mark that the generator of the messages left at the end of a user's message."""
ABSTENTION_KIND: Final = "abstention"


def _parse_literal(value: Any) -> Any:
    """Parse an object that published rows write as text: as JSON, or in Python's notation."""
    for parse in (json.loads, ast.literal_eval) if isinstance(value, str) else ():
        try:
            return parse(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return value


class BeamMessage(PublishedObject):
    """A message of a chat."""

    role: str
    content: str
    id: Any = None
    time_anchor: Any = None


class BeamQuestion(PublishedObject):
    """A probing question; its answer has one of four names."""

    question: str
    answer: Any = None
    ideal_answer: Any = None
    ideal_response: Any = None
    ideal_summary: Any = None
    source_chat_ids: Any = None


class BeamRecord(PublishedObject):
    """A conversation, whose messages are at any depth of `chat`, and its questions by their kinds."""

    conversation_id: Any = None
    chat: Any
    probing_questions: Annotated[dict[str, list[BeamQuestion]], BeforeValidator(_parse_literal)]


def _read_beam(path: Path) -> PublishedFile:
    """Read a file of records, or a folder of BEAM's repository, such as chats/100K or chats/100K/1."""
    if not path.is_dir():
        return read_source(path)
    chats = sorted(path.glob("**/chat.json"), key=lambda each: [_numeric_order(part) for part in each.parts])
    records, digest = [], hashlib.sha256()
    for chat in chats:
        questions = chat.parent / "probing_questions" / "probing_questions.json"
        if questions.is_file():
            read_chat, read_questions = read_source(chat), read_source(questions)
            digest.update(f"{read_chat.sha256}{read_questions.sha256}".encode())
            name = chat.parent.relative_to(path).as_posix().replace("/", "-") or chat.parent.name
            records.append(
                {"conversation_id": name, "chat": read_chat.value, "probing_questions": read_questions.value}
            )
    if not records:
        raise DocumentError(
            f"{path}: holds no chat.json with probing_questions beside it", remedy="name a folder such as chats/100K"
        )
    return PublishedFile(path, digest.hexdigest(), records)


def beam(source: PublishedFile) -> Iterator[dict[str, Any]]:
    """Convert BEAM (Tavakoli et al., 2025): long conversations and ten kinds of probing questions.

    Raises DocumentError.
    """
    repeated = 0
    scenarios: list[dict[str, Any]] = []
    for number, record in enumerate(source.rows(BeamRecord, source.value)):
        scenarios.append({"kind": "scenario", "id": f"beam-{name_of(str(record.conversation_id or number + 1))}"})
        by_message: dict[int, list[str]] = {}
        for message, fact in _beam_turns(source, f"/{number}/chat", record.chat):
            scenarios.append(fact)
            by_message.setdefault(message, []).append(fact["id"])
        repeated += sum(len(ids) > 1 for ids in by_message.values())
        scenarios += _beam_questions(record, by_message)
    yield _head("beam", source, repeated=repeated)
    yield from scenarios


def _numeric_order(part: str) -> tuple[int, str]:
    """The key by which a part of a path is sorted: a number by its value."""
    return (int(part), "") if part.isdigit() else (-1, part)


def _beam_turns(source: PublishedFile, pointer: str, chat: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield message id and fact of each message."""
    at: str | None = None
    unique = _Unique()
    for value in _nested(chat, lambda each: isinstance(each, dict) and {"content", "role"} <= each.keys()):
        message = source.parse(BeamMessage, value, pointer)
        if message.time_anchor:
            at = iso_time(str(message.time_anchor), "%B-%d-%Y", "%B %d, %Y", "%Y-%m-%d") or at
        content = GENERATOR_MARK.sub("", message.content)
        if content.strip():
            fact = _fact(unique(f"m{message.id}"), f"{message.role}: {content}", at)
            yield message.id if isinstance(message.id, int) else -1, fact


def _nested(value: Any, is_wanted: Callable[[Any], bool]) -> Iterator[Any]:
    """The parts of a JSON value, at any depth, for which `is_wanted` returns True."""
    if is_wanted(value):
        yield value
        return
    for each in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from _nested(each, is_wanted)


def _beam_questions(record: BeamRecord, by_message: Mapping[int, list[str]]) -> Iterator[dict[str, Any]]:
    asked = ((kind, question) for kind, questions in record.probing_questions.items() for question in questions)
    for order, (kind, each) in enumerate(asked, 1):
        numbers = () if kind == ABSTENTION_KIND else _nested(each.source_chat_ids, lambda value: type(value) is int)
        evidence = [name for number in dict.fromkeys(numbers) for name in by_message.get(number, ())]
        answer = each.answer or each.ideal_answer or each.ideal_response or each.ideal_summary
        yield _query(f"q{order}", each.question, evidence, kind, answer or None)


def name_of(text: str) -> str:
    """`text` as the name of a step or scenario."""
    name = re.sub(r"[^A-Za-z0-9._:-]+", "-", text).strip("-._:")[:120]
    return name or "unnamed"


class _Unique:
    """Numbers the second and later uses of a name."""

    def __init__(self) -> None:
        self._uses: Counter[str] = Counter()

    def __call__(self, name: str) -> str:
        self._uses[name] += 1
        return name if self._uses[name] == 1 else f"{name}.{self._uses[name]}"


def iso_time(text: str, *formats: str) -> str | None:
    """A time that is written in one of the formats, as ISO 8601 in UTC; None if it matches none of them."""
    for form in formats:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except ValueError:
            continue
    return None


def _head(name: str, source: PublishedFile, **counts: int) -> dict[str, Any]:
    """The head of a data set's suite, from the facts in `data_sets.json` and these counts."""
    facts = map_texts(FACTS[name], lambda text: text.format(sha256=source.sha256, **counts))
    return {"kind": "suite", "format": FORMAT, "name": name, **facts}


def _fact(name: str, text: str, at: str | None) -> dict[str, Any]:
    return {"kind": "fact", "id": name, "text": text, **({"at": at} if at else {})}


def _query(name: str, text: str, evidence: list[str], category: Any, answer: Any) -> dict[str, Any]:
    query = {"kind": "query", "id": name, "text": text, "evidence": evidence, "category": category}
    query["answer"] = None if answer is None else str(answer)
    return {name: value for name, value in query.items() if value not in (None, [], "")}


Convert = Callable[[PublishedFile], Iterator[dict[str, Any]]]

CONVERTERS: Final[dict[str, Convert]] = {
    "locomo": lambda source: locomo(source, captions=False),
    "locomo-captions": lambda source: locomo(source, captions=True),
    "longmemeval": longmemeval,
    "memoryagentbench": memoryagentbench,
    "beam": beam,
}
"""The data sets by name. In `locomo-captions`, turns contain the captions of their pictures."""


def convert(name: str, path: Path) -> bytes:
    """The suite made of a published file, or a folder of files, as bytes. Raises DocumentError."""
    source = _read_beam(path) if name == "beam" else read_source(path)
    lines = (json.dumps(line, ensure_ascii=False) for line in CONVERTERS[name](source))
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
