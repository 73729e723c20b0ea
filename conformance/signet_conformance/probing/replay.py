"""Sends recorded requests to a daemon again, and lists the differences between two answers to one request.

A row of `schemas/answers` is a request with the answer of a real daemon of that release. Long strings and lists are
clipped there (`...[N chars]`), and a body too large to keep is described by `body_note`.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from signet_conformance.contract import schemas_folder
from signet_conformance.diff.exchanges import json_type
from signet_conformance.files.json_values import map_leaves, member_of

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UUID_OF_ANY_CASE = re.compile(_UUID.pattern, re.IGNORECASE)
_CLIPPED = re.compile(r"\.\.\.\[(\d+) chars\]$")
_MINIMAL: Mapping[str, Mapping[str, Any]] = {
    "/api/hooks/remember": {"harness": "claude-code", "content": "Transport probe memory."},
    "/api/memory/recall": {"query": "Quokka Ledger cut-over"},
    "/api/secrets/exec": {"command": "true", "secrets": {"A": "A"}},
}
_LARGEST_BYTES = 32 * 1024 * 1024
"""More bytes than any daemon sends in answer to a probe."""
_LONGEST_S = 300.0
_POLL_S = 0.05
_MOST_POLLS = 200
_EXACT = (
    "claimedBy",
    "contextEpoch",
    "count",
    "deleted",
    "endedBy",
    "engine",
    "memoriesSaved",
    "method",
    "provider",
    "timeoutMs",
)
"""Members whose value is part of the contract, like that of every `error` and every flag."""

Row = Mapping[str, Any]


def answers_file(name: str) -> Path:
    """The file of a release's answers, such as 0.145.7, or of the requests before the first probe, `seed`."""
    return schemas_folder() / "answers" / f"{name}.jsonl"


@cache
def recorded(release: str, group: str = "local") -> Sequence[Row]:
    """The requests of `group` (local, team) with the answers of that release, in the order in which they were sent."""
    return [row for row in _lines(answers_file(release)) if row["group"] == group]


def seeds() -> Sequence[Row]:
    """The requests that come before the first probe."""
    return _lines(answers_file("seed"))


def _lines(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """The answer to a probe; `body` is its JSON value, or its text if it is not JSON."""

    status: int
    headers: Mapping[str, str]
    body: Any
    is_json: bool


@dataclass
class Replay:
    """Sends recorded requests to a daemon, with the ids in recorded answers replaced by those of its own answers.

    `keys` are the credentials that replace those of the recording, by name.
    """

    client: httpx.AsyncClient
    keys: Mapping[str, str] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)

    async def send(self, row: Row) -> ProbeAnswer:
        """Send the request of `row`, and map the recorded ids to those of the answer."""
        request = row["request"]
        headers = {name: self._credential(value) for name, value in request["headers"].items()}
        path, body = self._own_ids(request["path"]), _body(request)
        if body is not None and "body_note" not in request:  # a described body is large, and holds no id
            body = self._own_ids(body.decode("latin-1")).encode("latin-1")
        awaits_end = "(poll)" in row["case"] and row["response_body"]["status"] != "running"
        for _ in range(_MOST_POLLS):
            answer = await self._send(request["method"], path, headers, body)
            if not (awaits_end and member_of(answer.body, "status") in ("queued", "running")):
                break
            await asyncio.sleep(_POLL_S)
        self._map_ids(row["response_body"], answer.body)
        return answer

    async def _send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> ProbeAnswer:
        response, content = await _request(self.client, method, path, headers=headers, content=body)
        is_json = response.headers.get("content-type") == "application/json" and bool(content)
        value: Any = content.decode(response.encoding or "utf-8", "replace")
        if is_json:
            try:
                value = json.loads(content)
            except (ValueError, RecursionError):
                is_json = False
        return ProbeAnswer(response.status_code, dict(response.headers), value, is_json)

    def _credential(self, value: str) -> str:
        placeholder = re.search(r"Bearer (?:sig_sk )?<(\w+)>", value)
        if not placeholder:
            return value
        if placeholder[1] != "changed":
            return f"Bearer {self.keys[placeholder[1]]}"
        key = self.keys["PROBE_CONN"]
        # Some bits of a key's last character are ignored: the replacement differs in the others too.
        return f"Bearer {key[:-1]}{'A' if key[-1] > 'Z' else 'z'}"

    def _own_ids(self, text: str) -> str:
        return _UUID_OF_ANY_CASE.sub(lambda uuid: self._ids.get(uuid[0], uuid[0]), text)

    def _map_ids(self, recorded: Any, own: Any) -> None:
        if isinstance(recorded, dict) and isinstance(own, dict):
            for name in recorded.keys() & own.keys():
                self._map_ids(recorded[name], own[name])
        elif isinstance(recorded, list) and isinstance(own, list):
            for left, right in zip(recorded, own, strict=False):
                self._map_ids(left, right)
        elif isinstance(recorded, str) and isinstance(own, str) and _UUID.fullmatch(recorded):
            self._ids[recorded] = own
            self._ids[recorded.upper()] = own.upper()


async def _request(client: httpx.AsyncClient, method: str, path: str, **sent: Any) -> tuple[httpx.Response, bytes]:
    """Send a request; return the answer and its body. Raises httpx.HTTPError, also for an endless body."""
    content = bytearray()
    try:
        async with asyncio.timeout(_LONGEST_S), client.stream(method, path, **sent) as response:
            async for part in response.aiter_bytes():
                content += part
                if len(content) > _LARGEST_BYTES:
                    raise httpx.ReadError(f"the answer is larger than {_LARGEST_BYTES // 2**20} MiB")
    except TimeoutError:
        raise httpx.ReadTimeout(f"the answer does not end within {_LONGEST_S:g} s") from None
    return response, bytes(content)


async def send_seeds(client: httpx.AsyncClient) -> None:
    """Send a daemon the requests that come before the first probe."""
    for seed in seeds():
        await _request(client, seed["method"], seed["path"], json=seed["body"])


async def send_probes(client: httpx.AsyncClient, rows: Sequence[Row]) -> AsyncIterator[ProbeAnswer]:
    """Send a daemon the seeds, then `rows` in their order; yield the answers to these. Raises httpx.HTTPError."""
    await send_seeds(client)
    replay = Replay(client)
    for row in rows:
        yield await replay.send(row)


def row_of(row: Row, answer: ProbeAnswer) -> Row:
    """The request of `row` with another daemon's answer, described as `row` describes its own."""
    return {
        **{name: row[name] for name in ("id", "endpoint", "case", "group", "request")},
        "status": answer.status,
        "content_type": answer.headers.get("content-type"),
        "response_headers": {name: answer.headers[name] for name in row["response_headers"] if name in answer.headers},
        "response_is_json": answer.is_json,
        "response_body": answer.body,
        "response_shape": shape(answer.body, row["response_shape"]) if answer.is_json else None,
    }


def differences(row: Row, answer: ProbeAnswer) -> Iterator[str]:
    """What differs between an answer and that of `row`: status, headers, members, types, errors, flags, counts."""
    if answer.status != row["status"]:
        yield f"status {answer.status}, not {row['status']}"
        return
    # The header connection depends on the HTTP server, not on the daemon.
    headers = {name: value for name, value in row["response_headers"].items() if name != "connection"}
    if (own := {name: answer.headers.get(name) for name in headers}) != headers:
        yield f"headers {own}, not {headers}"
    if not row["response_is_json"]:
        if answer.body != row["response_body"]:
            yield f"{answer.body!r}, not {row['response_body']!r}"
        return
    if (own_shape := shape(answer.body, row["response_shape"])) != row["response_shape"]:
        yield from _shape_differences(own_shape, row["response_shape"])
        return
    for name, value in row["response_body"].items() if isinstance(row["response_body"], dict) else ():
        if (name == "error" or isinstance(value, bool) or name in _EXACT) and answer.body[name] != value:
            yield f"{name} is {answer.body[name]!r}, not {value!r}"
        if name in ("memories", "results") and not _is_clipped(value) and len(answer.body[name]) != len(value):
            yield f"{len(answer.body[name])} {name}, not {len(value)}"


def _shape_differences(own: Any, expected: Any) -> Iterator[str]:
    had, wanted = dict(_members(own)), dict(_members(expected))
    yield from (
        f"{name or 'the body'} is {had[name]}, not {wanted[name]}"
        for name in had
        if name in wanted and had[name] != wanted[name]
    )
    yield from (f"{name} is new" for name in had if name not in wanted)
    yield from (f"{name} is missing" for name in wanted if name not in had)


def _members(shaped: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """The JSON pointers of a shape, each with its type; `*` is any item of a list."""
    yield place, "object" if isinstance(shaped, dict) else "array" if isinstance(shaped, list) else str(shaped)
    items = [("*", item) for item in shaped] if isinstance(shaped, list) else []
    inner = shaped.items() if isinstance(shaped, dict) else items
    for name, item in inner:
        yield from _members(item, f"{place}/{name}")


def _is_clipped(values: list[Any]) -> bool:
    return bool(values) and isinstance(values[-1], str)


def shape(value: Any, like: Any = None) -> Any:
    """The keys and types of `value`, to the depth of `like`. A list has the shape of its first item."""
    if isinstance(like, str) and like in ("object", "array"):
        return json_type(value) if isinstance(value, dict | list) else "?"
    if isinstance(value, dict):
        inner: Mapping[str, Any] = like if isinstance(like, dict) else {}
        return {name: shape(item, inner.get(name)) for name, item in value.items()}
    if isinstance(value, list):
        inner_like = like[0] if isinstance(like, list) and like else None
        return [shape(value[0], inner_like)] if value else []
    return json_type(value)


def _body(request: Row) -> bytes | None:
    """The bytes of a request, with clipped strings and described bodies filled to their length."""
    if "body_note" in request:
        return _described_body(request["path"], request["body_note"])
    if "body_text" in request:
        return str(request["body_text"]).encode()
    return json.dumps(map_leaves(request["body"], _fill)).encode() if "body" in request else None


def _fill(value: Any) -> Any:
    clipped = _CLIPPED.search(value) if isinstance(value, str) else None
    return value[: clipped.start()].ljust(int(clipped[1]), "x") if clipped else value


def _described_body(path: str, note: str) -> bytes:
    minimal: Mapping[str, Any] = _MINIMAL.get(path, {"harness": "claude-code"})
    if note.startswith("gzip"):
        return gzip.compress(json.dumps(minimal).encode())
    if "11 MiB" in note:
        return json.dumps({**minimal, "pad": "x" * (11 * 1024 * 1024)}).encode()
    member, _, described = note.partition(" = ")
    if note == "same 6 kB again":
        member, described = "content", "6 kB of distinct sentences"
    return json.dumps({**minimal, member: _values()[described]}).encode()


@cache
def _values() -> Mapping[str, str]:
    """The large values that recorded requests only describe, by their description."""
    sentences = " ".join(f"Dunnock statement {number} is distinct from the others." for number in range(90_000))
    return {
        "5,000,000 x": "x" * 5_000_000,
        "100,000 k": "k" * 100_000,
        "5 MB": "User: x\n" * 625_000,
        "4.6 MB of distinct sentences": sentences.replace("Dunnock", "Wagtail")[:4_600_000],
        "6 kB of distinct sentences": sentences[:6_000],
        "130 distinct words": " ".join(f"heron{number}" for number in range(130)),
        "1250 distinct words": " ".join(f"heron{number}" for number in range(1250)),
        "'Heron ' x 16600": "Heron " * 16_600,
    }
