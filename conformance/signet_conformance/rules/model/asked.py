"""What a request to a model holds, read from its body in each of the four formats: who says what, tools, results.

The formats are Anthropic's messages, OpenAI's chat completions and responses, and Ollama's chat and generate. A
request for anything else (a list of models, a count of tokens) asks the model nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import takewhile
from typing import Any, Literal

from msgspec import Struct

from signet_conformance.rules.model.wording import padded, plain
from signet_conformance.trace.model import Body, Exchange

Role = Literal["system", "user", "assistant", "result"]
"""Who speaks; `system` stands for developers too, `result` is what a tool returned."""


class Part(Struct, frozen=True):
    """One piece of what a request holds. Of a result: the id of its call, and whether it says that the tool failed."""

    role: Role
    text: str
    call: str | None = None
    failed: bool = False


class ToolUse(Struct, frozen=True):
    """A call of a tool by the model, as a later request repeats it; `arguments` is their JSON text."""

    id: str | None
    name: str
    arguments: str


class Asked(Struct, frozen=True, dict=True):
    """One request to the model.

    `t0`, when it was sent, is in the time of the daemon's recording. A request is `whole` unless its body was cut by
    the recorder's limit, or is in a coding that it does not read: then nothing but its time is known.
    """

    exchange: Exchange
    api: str
    t0: float
    whole: bool
    parts: tuple[Part, ...] = ()
    uses: tuple[ToolUse, ...] = ()
    tools: tuple[str, ...] = ()
    chained: bool = False
    """Whether the server keeps what was said before, which this request then does not repeat."""

    @property
    def seq(self) -> int:
        """Its number in the recording of the model."""
        return self.exchange.seq

    @property
    def answered(self) -> bool:
        """Whether the model answered it."""
        response = self.exchange.response
        return response is not None and 200 <= response.status < 300

    @cached_property
    def told(self) -> str:
        """What stands before the model in plain wording, but for its own words and the results of tools."""
        return padded(part.text for part in self.parts if part.role in ("system", "user"))

    @cached_property
    def everything(self) -> str:
        """All of its text in plain wording."""
        return padded(part.text for part in self.parts)

    @cached_property
    def system(self) -> str:
        """Its system text in plain wording: what stands before the first thing that is said."""
        return padded(part.text for part in takewhile(lambda part: part.role == "system", self.parts))

    @cached_property
    def users(self) -> str:
        """What users said in it, in plain wording."""
        return padded(part.text for part in self.parts if part.role == "user")

    @property
    def excerpt(self) -> str:
        """The beginnings of what it tells the model, for people: each in at most 120 characters."""
        told = [" ".join(part.text.split()) for part in self.parts if part.role in ("system", "user")]
        return " | ".join(text if len(text) <= 120 else f"{text[:119]}…" for text in told[-4:])

    def continues(self, earlier: Asked) -> bool:
        """Whether it goes on with the same conversation: it repeats what the user said there, in order."""
        said = [part.text for part in self.parts if part.role == "user"]
        before = [part.text for part in earlier.parts if part.role == "user"]
        return self.chained or [plain(text) for text in said[: len(before)]] == [plain(text) for text in before]


Read = Callable[[Mapping[str, Any]], Iterator[Part | ToolUse]]


def asked(exchange: Exchange, shift: float) -> Asked | None:
    """What an exchange asks the model; None where it asks nothing. `shift` is added to its times."""
    request = exchange.request
    path = request.path.rstrip("/")
    api = next((suffix for suffix in _READERS if path.endswith(suffix)), None)
    if api is None or request.method != "POST":
        return None
    t0 = exchange.t0 + shift
    document = _document(request.body)
    if document is None:
        return Asked(exchange, api, t0, whole=False)
    read = list(_READERS[api](document))
    return Asked(
        exchange,
        api,
        t0,
        whole=True,
        parts=tuple(each for each in read if isinstance(each, Part) and each.text.strip()),
        uses=tuple(each for each in read if isinstance(each, ToolUse)),
        tools=tuple(_tool_names(document.get("tools"))),
        chained=bool(document.get("previous_response_id")),
    )


def _document(body: Body | None) -> Mapping[str, Any] | None:
    return None if body is None or body.cut else body.object


def _text(content: Any) -> str:
    """The text of a content: itself, or the texts among its blocks, a line each."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in _objects(content) if isinstance(block.get("text"), str))


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _tool_names(tools: Any) -> Iterator[str]:
    for tool in _objects(tools):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, Mapping) else tool.get("name")
        yield _name(name or tool.get("type"))


_ROLES: Mapping[str, Role] = {
    "system": "system", "developer": "system", "assistant": "assistant", "tool": "result", "function": "result",
}  # fmt: skip


def _role(value: Any) -> Role:
    return _ROLES.get(_name(value), "user")


def _anthropic(document: Mapping[str, Any]) -> Iterator[Part | ToolUse]:
    yield Part("system", _text(document.get("system")))
    for message in _objects(document.get("messages")):
        role, content = _role(message.get("role")), message.get("content")
        if isinstance(content, str):
            yield Part(role, content)
        for block in _objects(content):
            kind = block.get("type")
            if kind == "tool_result":
                failed = block.get("is_error") is True
                yield Part("result", _text(block.get("content")), _name(block.get("tool_use_id")), failed)
            elif kind == "tool_use":
                yield ToolUse(_name(block.get("id")), _name(block.get("name")), _arguments(block.get("input")))
            else:
                yield Part(role, _name(block.get("text")))


def _chat(document: Mapping[str, Any]) -> Iterator[Part | ToolUse]:
    """OpenAI's chat completions, and Ollama's chat, whose calls may lack ids."""
    for message in _objects(document.get("messages")):
        call = message.get("tool_call_id")
        yield Part(_role(message.get("role")), _text(message.get("content")), _name(call) or None)
        for use in _objects(message.get("tool_calls")):
            function = use.get("function")
            if isinstance(function, Mapping):
                yield ToolUse(
                    _name(use.get("id")) or None, _name(function.get("name")), _arguments(function.get("arguments"))
                )


def _responses(document: Mapping[str, Any]) -> Iterator[Part | ToolUse]:
    yield Part("system", _text(document.get("instructions")))
    given = document.get("input")
    if isinstance(given, str):
        yield Part("user", given)
    for item in _objects(given):
        kind = _name(item.get("type"))
        if kind.endswith("_output"):
            yield Part("result", _text(item.get("output")), _name(item.get("call_id")))
        elif kind.endswith("_call"):
            arguments = _arguments(item.get("arguments", item.get("input")))
            yield ToolUse(_name(item.get("call_id")), _name(item.get("name")), arguments)
        elif "role" in item:
            yield Part(_role(item["role"]), _text(item.get("content")))


def _generate(document: Mapping[str, Any]) -> Iterator[Part | ToolUse]:
    yield Part("system", _name(document.get("system")))
    yield Part("user", _name(document.get("prompt")))


_READERS: Mapping[str, Read] = {
    "/messages": _anthropic,
    "/chat/completions": _chat,
    "/responses": _responses,
    "/api/chat": _chat,
    "/api/generate": _generate,
}
"""How each interface is read, by how its path ends."""


def results(request: Asked) -> Iterator[tuple[ToolUse, Part]]:
    """The calls of tools in a request, each with what the model was told of it; in order where they have no ids."""
    waiting = list(request.uses)
    for part in request.parts:
        if part.role != "result":
            continue
        use = next((use for use in waiting if part.call in (None, use.id)), None)
        if use is not None:
            waiting.remove(use)
            yield use, part
