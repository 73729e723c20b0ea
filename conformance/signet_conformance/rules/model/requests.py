"""Requests to a model, read from their bodies, and the comparison of texts by their words.

Programs wrap, escape, indent, quote and re-order what they put before a model. The formats are Anthropic's messages,
OpenAI's chat completions and responses, and Ollama's chat and generate. A request for anything else (a list of
models, a count of tokens) asks the model nothing.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import takewhile
from typing import Any, Literal

from msgspec import Struct

from signet_conformance.files.json_values import objects_in, text_in
from signet_conformance.trace.model import Exchange

_REDACTED = re.compile(r"<redacted:[^>\s]{1,40}>")
_ESCAPED_BLANK = re.compile(r"\\+[nrt]")
_ESCAPED_LETTER = re.compile(r"\\+u([0-9a-fA-F]{4})")
_NO_WORD = re.compile(r"[\W_]+")
_LEAST_WORDS, _LEAST_LETTERS = 3, 14
_SHORTENED = re.compile(
    r"\b(?:truncated|shortened|omitted|trimmed|cut off|too long|saved to|full output|more (?:lines|characters|chars))\b"
    r"|\[\.\.\.\]|\u2026|\.\.\.",
    re.IGNORECASE,
)
_LONG_LETTERS = 40
"""From this length on a line is recognised with other blanks in it, and by its beginning where it was cut."""
_MOST_OF_IT = 0.5


def plain_words(text: str) -> str:
    """Return the words of a text in lower case, separated by single blanks.

    HTML entities and escapes are decoded; punctuation and redaction tokens are dropped.
    """
    text = html.unescape(_REDACTED.sub(" ", text))
    if "\\" in text:
        text = _ESCAPED_LETTER.sub(lambda match: chr(int(match[1], 16)), _ESCAPED_BLANK.sub(" ", text))
    return _NO_WORD.sub(" ", text).strip().casefold()


def padded(texts: Iterable[str]) -> str:
    """Texts as plain words, each between blanks and apart from the next, so that whole words can be found."""
    return "|".join(f" {words} " for text in texts if (words := plain_words(text)))


def occurrences(line: str, text: str) -> int:
    """How often a line of plain words occurs in a padded text."""
    return len(re.findall(f"(?<= ){re.escape(line)}(?= )", text))


def says(line: str, text: str) -> bool:
    """Whether a padded text holds a line. A long one may be wrapped inside its words."""
    return f" {line} " in text or (len(line) >= _LONG_LETTERS and line.replace(" ", "") in text.replace(" ", ""))


def is_beginning(shown: str, line: str) -> bool:
    """Whether `shown` ends with the beginning of `line`, long enough to be recognised."""
    end = line.find(" ", _LONG_LETTERS)
    at = padded([shown]).find(f" {line[:end]}") if end > 0 else -1
    return at >= 0 and line.startswith(shown[at:])


def marker_lines(text: str) -> tuple[str, ...]:
    """The lines that identify a text, as plain words; the whole text if each line is too short.

    Empty for a text that has too few words to be told from others.
    """
    lines = dict.fromkeys(filter(_identifies, (plain_words(line) for line in text.splitlines())))
    if lines:
        return tuple(lines)
    whole = plain_words(text)
    return (whole,) if _identifies(whole) else ()


def _identifies(words: str) -> bool:
    return len(words) >= _LEAST_LETTERS and words.count(" ") + 1 >= _LEAST_WORDS


_NOTICE_LETTERS = 300
"""A notice may say how much was left out and where all of it is kept."""


def says_left_out(text: str, lines: Iterable[str], given: str) -> bool:
    """Whether a text says, near the `lines` of `given` in it, that something was left out.

    A notice that is further off, or that is in `given` itself, is about something else.
    """
    words = f" {plain_words(text)} "
    begins = [at for line in lines if (at := words.find(f" {line} ")) >= 0]
    if not begins:
        return False
    reach = max(map(len, marker_lines(given)), default=0) + _NOTICE_LETTERS
    low, high = min(begins) - reach, max(begins) + reach
    return sum(low <= place <= high for place in _notices(text)) > len(_SHORTENED.findall(given))


def _notices(text: str) -> Iterator[int]:
    """Where a text says that something was left out, counted in its plain words."""
    place = reached = 0
    for match in _SHORTENED.finditer(text):
        words = plain_words(text[reached : match.start()])
        place += len(words) + bool(place and words)
        reached = match.start()
        yield place


class LineCount(Struct, frozen=True):
    """How many of the lines of a text another one holds."""

    present: int
    total: int

    @property
    def absent(self) -> bool:
        """Whether no line is there."""
        return self.present == 0

    @property
    def mostly(self) -> bool:
        """Whether at least half of the lines are there: a program may leave some out."""
        return self.present >= self.total * _MOST_OF_IT and self.present > 0


def count_lines(lines: tuple[str, ...], text: str) -> LineCount:
    """Count the marker lines of a text in a padded text."""
    return LineCount(sum(says(line, text) for line in lines), len(lines))


Role = Literal["system", "user", "assistant", "result"]
"""Who speaks; `system` includes developers, `result` is the output of a tool."""


class SaidPart(Struct, frozen=True):
    """One piece of a request's text. A result has the id of its `call`, and whether it says that the tool `failed`."""

    role: Role
    text: str
    call: str | None = None
    failed: bool = False


class ToolUse(Struct, frozen=True):
    """A call of a tool by the model, as a later request repeats it; `arguments` is their JSON text."""

    id: str | None
    name: str
    arguments: str


class ModelCall(Struct, frozen=True, dict=True):
    """One request to the model.

    `t0`, when it was sent, is in the time of the daemon's recording. A request is not `whole` if the recorder cut its
    body or could not decode it: then nothing but its time is known.
    """

    exchange: Exchange
    api: str
    t0: float
    whole: bool
    parts: tuple[SaidPart, ...] = ()
    uses: tuple[ToolUse, ...] = ()
    tools: tuple[str, ...] = ()
    chained: bool = False
    """Whether the server keeps what was said before, which this request then does not repeat."""

    @property
    def seq(self) -> int:
        """Its number in the recording of the model."""
        return self.exchange.seq

    @property
    def is_answered(self) -> bool:
        """Whether the model answered it."""
        response = self.exchange.response
        return response is not None and 200 <= response.status < 300

    @property
    def context_texts(self) -> list[str]:
        """The texts of system and users, in order, without the model's own words and tool results."""
        return [part.text for part in self.parts if part.role in ("system", "user")]

    @cached_property
    def context(self) -> str:
        """The words of `context_texts`."""
        return padded(self.context_texts)

    @cached_property
    def everything(self) -> str:
        """All of its text in plain wording."""
        return padded(part.text for part in self.parts)

    @cached_property
    def system(self) -> str:
        """Its system text as plain words: the parts before the first of another role."""
        return padded(part.text for part in takewhile(lambda part: part.role == "system", self.parts))

    @cached_property
    def users(self) -> str:
        """What users said in it, in plain wording."""
        return padded(part.text for part in self.parts if part.role == "user")

    @property
    def excerpt(self) -> str:
        """The last four texts of system and users, for people: each in at most 120 characters."""
        texts = [" ".join(text.split()) for text in self.context_texts]
        return " | ".join(text if len(text) <= 120 else f"{text[:119]}…" for text in texts[-4:])

    @property
    def said_by_user(self) -> list[str]:
        """The words of each part of the user's, in order."""
        return [plain_words(part.text) for part in self.parts if part.role == "user"]

    def continues(self, earlier: ModelCall) -> bool:
        """Whether it continues the same conversation: it begins with what the user said there."""
        before = earlier.said_by_user
        return self.chained or self.said_by_user[: len(before)] == before


RequestReader = Callable[[Mapping[str, Any]], Iterator[SaidPart | ToolUse]]


def read_request(exchange: Exchange, shift: float) -> ModelCall | None:
    """Read an exchange as a request to the model; None if it is no such request. `shift` is added to its times."""
    request = exchange.request
    path = request.path.rstrip("/")
    api = next((suffix for suffix in _READERS if path.endswith(suffix)), None)
    if api is None or request.method != "POST":
        return None
    t0 = exchange.t0 + shift
    document = None if request.body is None else request.body.object
    if document is None:
        return ModelCall(exchange, api, t0, whole=False)
    read = list(_READERS[api](document))
    return ModelCall(
        exchange,
        api,
        t0,
        whole=True,
        parts=tuple(
            each for each in read if isinstance(each, SaidPart) and (each.text.strip() or each.role == "result")
        ),
        uses=tuple(each for each in read if isinstance(each, ToolUse)),
        tools=tuple(_tool_names(document.get("tools"))),
        chained=bool(document.get("previous_response_id")),
    )


def _text(content: Any) -> str:
    """The text of a content: itself, or the texts among its blocks, a line each."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in objects_in(content) if (text := text_in(block.get("text"))))


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _tool_names(tools: Any) -> Iterator[str]:
    for tool in objects_in(tools):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, Mapping) else tool.get("name")
        yield text_in(name or tool.get("type"))


_ROLES: Mapping[str, Role] = {
    "system": "system", "developer": "system", "assistant": "assistant", "tool": "result", "function": "result",
}  # fmt: skip


def _role(value: Any) -> Role:
    return _ROLES.get(text_in(value), "user")


def _anthropic(document: Mapping[str, Any]) -> Iterator[SaidPart | ToolUse]:
    yield SaidPart("system", _text(document.get("system")))
    for message in objects_in(document.get("messages")):
        role, content = _role(message.get("role")), message.get("content")
        if isinstance(content, str):
            yield SaidPart(role, content)
        for block in objects_in(content):
            kind = block.get("type")
            if kind == "tool_result":
                failed = block.get("is_error") is True
                yield SaidPart("result", _text(block.get("content")), text_in(block.get("tool_use_id")), failed)
            elif kind == "tool_use":
                yield ToolUse(text_in(block.get("id")), text_in(block.get("name")), _arguments(block.get("input")))
            else:
                yield SaidPart(role, text_in(block.get("text")))


def _chat(document: Mapping[str, Any]) -> Iterator[SaidPart | ToolUse]:
    """OpenAI's chat completions, and Ollama's chat, whose calls may lack ids."""
    for message in objects_in(document.get("messages")):
        call = message.get("tool_call_id")
        yield SaidPart(_role(message.get("role")), _text(message.get("content")), text_in(call) or None)
        for use in objects_in(message.get("tool_calls")):
            function = use.get("function")
            if isinstance(function, Mapping):
                yield ToolUse(
                    text_in(use.get("id")) or None, text_in(function.get("name")), _arguments(function.get("arguments"))
                )


def _responses(document: Mapping[str, Any]) -> Iterator[SaidPart | ToolUse]:
    yield SaidPart("system", _text(document.get("instructions")))
    given = document.get("input")
    if isinstance(given, str):
        yield SaidPart("user", given)
    for item in objects_in(given):
        kind = text_in(item.get("type"))
        if kind.endswith("_output"):
            yield SaidPart("result", _text(item.get("output")), text_in(item.get("call_id")))
        elif kind.endswith("_call"):
            arguments = _arguments(item.get("arguments", item.get("input")))
            yield ToolUse(text_in(item.get("call_id")), text_in(item.get("name")), arguments)
        elif "role" in item:
            yield SaidPart(_role(item["role"]), _text(item.get("content")))


def _generate(document: Mapping[str, Any]) -> Iterator[SaidPart | ToolUse]:
    yield SaidPart("system", text_in(document.get("system")))
    yield SaidPart("user", text_in(document.get("prompt")))


_READERS: Mapping[str, RequestReader] = {
    "/messages": _anthropic,
    "/chat/completions": _chat,
    "/responses": _responses,
    "/api/chat": _chat,
    "/api/generate": _generate,
}
"""How each interface is read, by how its path ends."""


def results(request: ModelCall) -> Iterator[tuple[ToolUse, SaidPart]]:
    """The tool calls in a request, each with its result; those without ids are matched by order."""
    waiting = list(request.uses)
    for part in request.parts:
        if part.role != "result":
            continue
        use = next((use for use in waiting if part.call in (None, use.id)), None)
        if use is not None:
            waiting.remove(use)
            yield use, part
