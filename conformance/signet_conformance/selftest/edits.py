"""Changes of one message: another member, header, path, body or text; or another spelling of the same message.

Requests and answers are complete objects here, without a transport. All spellings of a message mean the same in HTTP
and JSON.
"""

from __future__ import annotations

import gzip
import html
import json
import re
import unicodedata
import urllib.parse
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import httpx

from signet_conformance.contract.routes import route_table
from signet_conformance.files import json_values
from signet_conformance.selftest.mutants import Change

_FRAMING = frozenset({"content-length", "transfer-encoding", "connection"})
"""Headers of one transport, which the next one writes itself."""
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request. `headers` have lower-case names."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes

    @classmethod
    async def of(cls, request: httpx.Request) -> Outgoing:
        """Read a request of httpx."""
        headers = {name.lower(): value for name, value in request.headers.items() if name.lower() not in _FRAMING}
        path = request.url.raw_path.partition(b"?")[0].decode("ascii")
        return cls(request.method, path, dict(request.url.params), headers, await request.aread())

    def to_httpx(self, like: httpx.Request) -> httpx.Request:
        """Return the request for httpx, with the address of `like`."""
        url = like.url.copy_with(raw_path=self.path.encode("ascii"))
        return httpx.Request(
            self.method,
            url.copy_merge_params(self.query) if self.query else url,
            headers=dict(self.headers),
            content=self.content or None,
            extensions=like.extensions,
        )

    @property
    def operation(self) -> str | None:
        """The operation of method and path in the newest contract; None without one."""
        route = route_table("0.237").find(self.method, self.path)
        return None if route is None else route.operation

    @property
    def json(self) -> Any:
        """The body's JSON value, a new one each time, or None without a body."""
        return json_values.parse_value(self.content)


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """One answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @classmethod
    async def of(cls, response: httpx.Response) -> WholeAnswer:
        """Read an answer of httpx."""
        try:
            content = b"".join([piece async for piece in response.aiter_raw()])
        finally:
            await response.aclose()
        headers = {name.lower(): value for name, value in response.headers.items() if name.lower() not in _FRAMING}
        return cls(response.status_code, headers, content)

    @classmethod
    def of_json(cls, status: int, body: Any) -> WholeAnswer:
        """Make an answer in place of the daemon's."""
        return cls(status, {"content-type": JSON_TYPE}, encoded(body))

    def to_httpx(self, request: httpx.Request) -> httpx.Response:
        """Return the answer for httpx, not read yet."""
        headers = {**self.headers, "content-length": str(len(self.content))}
        return httpx.Response(self.status, headers=headers, stream=httpx.ByteStream(self.content), request=request)

    @property
    def json(self) -> Any:
        """The body's JSON value, a new one each time, or None without a body."""
        return json_values.parse_value(self.content)


def encoded(body: Any) -> bytes:
    """Return a JSON value as a body."""
    return json.dumps(body, separators=(",", ":")).encode("ascii")


_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


class Memory:
    """Fills the placeholders of a change, `{{name}}` in any of its strings, from earlier messages.

    Names: path, key, text, agent, project (of the request and its session), other_key, other_agent (of another
    session), token, secret, inject (the newest injected text), previous (the value of this member in the previous
    request of the operation), value (that in this request). A placeholder without a value is left.
    """

    def __init__(self, secret: str | None = None) -> None:
        self._sessions: dict[str, dict[str, str]] = {}
        self._previous: dict[str, Any] = {}
        self._known: dict[str, str] = {} if secret is None else {"secret": secret}

    def note_request(self, request: Outgoing) -> None:
        """Note the values in a request, after its own placeholders are filled."""
        body = request.json
        if request.operation is not None:
            self._previous[request.operation] = body
        if request.path.startswith("/api/secrets/") and isinstance(body, dict) and isinstance(body.get("value"), str):
            self._known["secret"] = body["value"]
        if token := request.headers.get("authorization", "").removeprefix("Bearer "):
            self._known["token"] = token
        key = self.key_of(request)
        if key is None or not isinstance(body, dict):
            return
        session = self._sessions.setdefault(key, {})
        for name, member in (("agent", "agentId"), ("project", "project"), ("project", "cwd")):
            if isinstance(body.get(member), str):
                session.setdefault(name, body[member])

    def note_answer(self, answer: WholeAnswer) -> None:
        """Note the values in an answer."""
        body = answer.json
        if isinstance(body, dict) and isinstance(body.get("inject"), str) and body["inject"]:
            self._known["inject"] = body["inject"]

    def key_of(self, request: Outgoing) -> str | None:
        """Return the session key of a request; None without one."""
        return json_values.only_text(json_values.member_of(request.json, "sessionKey"))

    def place_of(self, request: Outgoing) -> int | None:
        """Return the number of a request's session, from 1 in the order of their first requests; None without one."""
        key = self.key_of(request)
        if key is None:
            return None
        return [*self._sessions, key].index(key) + 1

    def fill(self, template: Any, request: Outgoing, pointer: str = "") -> Any:
        """Return `template` with its placeholders replaced; `pointer` is the member of the body that it is for."""
        if isinstance(template, dict):
            return {name: self.fill(value, request, pointer) for name, value in template.items()}
        if isinstance(template, list):
            return [self.fill(value, request, pointer) for value in template]
        if not isinstance(template, str) or "{{" not in template:
            return template
        known = self._names(request, pointer)
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None and whole[1] in known:
            return known[whole[1]]
        return _PLACEHOLDER.sub(lambda match: str(known.get(match[1], match[0])), template)

    def _names(self, request: Outgoing, pointer: str) -> dict[str, Any]:
        key = self.key_of(request)
        own = self._sessions.get(key, {}) if key is not None else {}
        names: dict[str, Any] = {**self._known, **_facts_sent_by(request), **own, "path": request.path}
        if key is not None:
            names["key"] = key
        for other, session in self._sessions.items():
            if other != key:
                names["other_key"] = other
                if "agent" in session:
                    names["other_agent"] = session["agent"]
        previous = self._previous.get(request.operation or "")
        for name, document in (("value", request.json), ("previous", previous)):
            if pointer and (value := json_values.value_at(document, pointer)) is not json_values.ABSENT:
                names[name] = value
        return names


def _facts_sent_by(request: Outgoing) -> dict[str, str]:
    body = json_values.object_in(request.json)
    facts = {
        "agent": body.get("agentId", request.query.get("agentId")),
        "text": body.get("userMessage"),
        "project": body.get("project"),
    }
    return {name: value for name, value in facts.items() if isinstance(value, str)}


_LONG = 300_000
"""In characters: longer than a body that the recorder keeps as JSON."""
_KEPT_CONTROLS = "\t\n"


Turn = Mapping[str, Any]


def _turns(transcript: str) -> list[Turn]:
    return [json.loads(line) for line in transcript.split("\n") if line.strip()]


def _of_turns(change: Callable[[list[Turn]], Iterable[Turn]]) -> Callable[[str], str]:
    """A rewriter of transcripts that changes their turns as a whole."""
    return lambda transcript: "\n".join(json.dumps(turn) for turn in change(_turns(transcript)))


def _of_each_turn(change: Callable[[Turn], Turn]) -> Callable[[str], str]:
    """A rewriter of transcripts that changes each of their turns."""
    return _of_turns(lambda turns: map(change, turns))


def _of_lines(user: str, assistant: str, between: str = "\n") -> Callable[[str], str]:
    """A rewriter of transcripts that puts the words for its speaker before each turn."""
    speakers = {"user": user, "assistant": assistant}
    return lambda transcript: between.join(speakers[turn["role"]] + turn["content"] for turn in _turns(transcript))


def _with_swapped_turns(turns: list[Turn]) -> list[Turn]:
    """Put each reply before the prompt that it answers."""
    for place, (turn, following) in enumerate(pairwise(turns.copy())):
        if (turn["role"], following["role"]) == ("user", "assistant"):
            turns[place], turns[place + 1] = following, turn
    return turns


def _with_tool_turns(turns: list[Turn]) -> Iterator[Turn]:
    for turn in turns:
        if turn["role"] == "assistant":
            yield {"role": "tool", "content": "2 rows", "name": "memory_search"}
        yield turn


def _turns_of_lines(turns: list[Turn]) -> Iterator[Turn]:
    for turn in turns:
        lines = turn["content"].splitlines() if turn["role"] == "user" else [turn["content"]]
        yield from ({**turn, "content": line} for line in lines if line.strip())


def _without_last_reply(turns: list[Turn]) -> list[Turn]:
    return turns[:-1] if turns and turns[-1]["role"] == "assistant" else turns


_OTHER_ROLE = {"user": "assistant", "assistant": "user"}
_STAMP = {"user": "[Sun 2026-11-22 20:06 UTC] ", "assistant": ""}


def _without_controls(text: str) -> str:
    return "".join(
        character for character in text if character in _KEPT_CONTROLS or unicodedata.category(character) != "Cc"
    )


REWRITERS: Mapping[str, Callable[[str], str]] = {
    "swapped_turns": _of_turns(_with_swapped_turns),
    "named_speakers": _of_lines("User: ", "Assistant: "),
    "human_speakers": _of_lines("human: ", "ASSISTANT: "),
    # Markdown, in which the daemon finds no turns.
    "bold_speakers": _of_lines("**User:** ", "**Assistant:** ", between="\n\n"),
    "nested_turns": _of_each_turn(lambda turn: {"type": turn["role"], "message": turn}),
    "turns_in_parts": _of_each_turn(lambda turn: {**turn, "content": [{"type": "text", "text": turn["content"]}]}),
    "turns_of_lines": _of_turns(_turns_of_lines),
    "with_tool_turns": _of_turns(_with_tool_turns),
    "swapped_speakers": _of_each_turn(lambda turn: {**turn, "role": _OTHER_ROLE[turn["role"]]}),
    "turns_twice": _of_turns(lambda turns: [turn for turn in turns for _ in range(2)]),
    "turns_once": lambda transcript: "\n".join(dict.fromkeys(transcript.split("\n"))),
    "last_turns": _of_turns(lambda turns: turns[-8:]),
    "without_replies": _of_turns(lambda turns: [turn for turn in turns if turn["role"] == "user"]),
    "without_first_turn": _of_turns(lambda turns: turns[1:]),
    "without_last_reply": _of_turns(_without_last_reply),
    "in_one_line": _of_each_turn(lambda turn: {**turn, "content": " ".join(turn["content"].split())}),
    "enveloped": _of_each_turn(lambda turn: {**turn, "content": _STAMP[turn["role"]] + turn["content"]}),
    "crlf": lambda text: re.sub(r"\r?\n", "\r\n", text),
    "lf": lambda text: text.replace("\r\n", "\n"),
    "padded": lambda text: f"\n  {text} \n",
    "trimmed": str.strip,
    "without_controls": _without_controls,
    "long": lambda text: text + " and so on" * (_LONG // 10),
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "compatible": lambda text: unicodedata.normalize("NFKC", text),
    "mojibake": lambda text: text.encode("utf-8", "replace").decode("latin-1"),
    "question_marks": lambda text: text.encode("ascii", "replace").decode("ascii"),
    "without_astral": lambda text: "".join(character for character in text if ord(character) <= 0xFFFF),
    "first_500": lambda text: text[:500],
    "first_64_ki": lambda text: text[: 64 * 1024],
    "first_128_ki": lambda text: text[: 128 * 1024],
    "first_line": lambda text: text.split("\n", 1)[0],
    "without_tag": lambda text: re.sub(r"^\[[^\]]*\]\s*", "", text),
    "straight_quotes": lambda text: text.translate({0x201C: '"', 0x201D: '"', 0x2019: "'"}),
    "single_blanks": lambda text: re.sub(" +", " ", text),
    "html": html.escape,
    "in_a_url": urllib.parse.quote,
    "lower_case": str.lower,
}


def edited_request(request: Outgoing, change: Change, memory: Memory) -> Outgoing:
    """Return the request with the members of an `edit` changed."""
    headers = dict(request.headers)
    for name, value in change.get("headers", {}).items():
        headers.pop(name, None)
        if value is not None:
            headers[name] = memory.fill(value, request)
    query = {**request.query, **memory.fill(change.get("query", {}), request)}
    for name in change.get("remove_query", ()):
        query.pop(name, None)
    return replace(
        request,
        method=change.get("method", request.method),
        path=memory.fill(change.get("path", request.path), request),
        query=query,
        headers=headers,
        content=_content(request.content, request.json, change, lambda t, p: memory.fill(t, request, p)),
    )


def edited_answer(answer: WholeAnswer, change: Change, request: Outgoing, memory: Memory) -> WholeAnswer:
    """Return the answer with the members of an `answer` changed."""
    if "text" in change:
        headers = {**answer.headers, "content-type": "text/plain"}
        return WholeAnswer(change.get("status", answer.status), headers, change["text"].encode())
    content = _content(answer.content, answer.json, change, lambda t, p: memory.fill(t, request, p))
    return replace(answer, status=change.get("status", answer.status), content=content)


def _content(content: bytes, body: Any, change: Change, fill: Callable[[Any, str], Any]) -> bytes:
    if "body" in change and change["body"] is None:
        return b""
    if "body" in change:
        return encoded(fill(change["body"], ""))
    before = encoded(body)
    for source, target in change.get("rename", {}).items():
        if (value := json_values.take(body, source)) is not json_values.ABSENT:
            json_values.put(body, target, value)
    for pointer in change.get("remove", ()):
        json_values.take(body, pointer)
    for pointer, value in change.get("set", {}).items():
        json_values.put(body, pointer, fill(value, pointer))
    for pointer, value in change.get("replace", {}).items():
        if json_values.value_at(body, pointer) is not json_values.ABSENT:
            json_values.put(body, pointer, fill(value, pointer))
    for pointer, name in change.get("rewrite", {}).items():
        if isinstance(value := json_values.value_at(body, pointer), str):
            json_values.put(body, pointer, REWRITERS[name](value))
    return content if encoded(body) == before else encoded(body)


_MARK = "\ue000"
"""Stands for a byte that is not UTF-8 until the text has become bytes."""


def spelled(request: Outgoing, change: Change, like: httpx.Request) -> httpx.Request:
    """Return the request for httpx in the spelling of a `spell` change, with the address of `like`."""
    plain = request.to_httpx(like)
    content = request.content
    if content and request.json is not None and "body" in change:
        content = BODIES[change["body"]](request.json)
    if content and "not_utf8" in change:
        content = _with_stray_bytes(request.json, change["not_utf8"])
    coding = {}
    if content and "coding" in change:
        content, coding = CODINGS[change["coding"]](content), {"content-encoding": change["coding"]}
    url = plain.url
    if change.get("path") == "percent":
        url = url.copy_with(raw_path=url.raw_path.replace(b"-", b"%2D"))
    headers = list({**request.headers, **coding}.items())
    if "header_names" in change:
        headers = [(HEADER_NAMES[change["header_names"]](name), value) for name, value in headers]
    if change.get("header_order") == "reversed":
        headers.reverse()
    headers += [(name, value) for name, value in change.get("more_headers", ())]
    return httpx.Request(
        request.method, url, headers=headers, content=content or None, extensions=dict(like.extensions)
    )


def _with_stray_bytes(body: Any, pointers: list[str]) -> bytes:
    for pointer in pointers:
        if isinstance(value := json_values.value_at(body, pointer), str):
            json_values.put(body, pointer, value + _MARK)
    return _raw(body).replace(_MARK.encode(), b"\xff")


def _raw(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _escaped(value: Any) -> str:
    """A JSON text in which every character of every string is an escape."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_escaped(name)}:{_escaped(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_escaped, value)) + "]"
    if isinstance(value, str):
        units = value.encode("utf-16-be", "surrogatepass").hex()
        return '"' + "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)) + '"'
    return json.dumps(value)


def _float(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _twice(body: Any) -> str:
    members = [f"{json.dumps(name)}:{json.dumps(value)}" for name, value in body.items()]
    return "{" + ",".join(member for pair in zip(members, members, strict=True) for member in pair) + "}"


BODIES: Mapping[str, Callable[[Any], bytes]] = {
    "raw": _raw,
    "escaped": lambda body: _escaped(body).encode("ascii"),
    "indented": lambda body: b"\r\n\t " + json.dumps(body, indent=4).encode("ascii") + b"\n",
    "reversed": lambda body: json.dumps(dict(reversed(body.items()))).encode("ascii"),
    "floats": lambda body: json.dumps(json_values.map_leaves(body, _float)).encode("ascii"),
    "twice": lambda body: _twice(body).encode("ascii"),
}
CODINGS: Mapping[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
HEADER_NAMES: Mapping[str, Callable[[str], str]] = {"upper": str.upper, "title": str.title}
