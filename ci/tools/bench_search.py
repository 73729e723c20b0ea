"""Measures the processor time of the recorder's search for secrets in a large body, by kind of content.

Each body is searched twice: the recorder remembers texts that it has searched. Prints milliseconds per megabyte, the
least of several tries, and the ratio of the first search to reading and writing the same JSON, which depends less on
the machine. The last kinds are texts that are made to keep the search busy. Asserts nothing about time.

    python ci/tools/bench_search.py [--tries 5] [--megabytes 1] [KIND...]
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import bench_large_bodies
import msgspec

from signet_recording_proxy.line_maker import ProvisionalRedactor
from signet_recording_proxy.redaction import keyword_search

ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 1 << 20
HOSTILE = (
    *("token=", "password: ", "curl -", "://a:", "@", "eyJ", '\\"token\\":\\"', '"key":"', "%20", "form-data"),
    *("-----BEGIN PRIVATE KEY-----\n", "sk-", "pat", "TOKEN=abc1 "),
)


def _files(folder: str, pattern: str) -> Iterator[str]:
    for path in sorted((ROOT / folder).rglob(pattern)):
        yield path.read_text("utf-8")


def _lock_file(chance: random.Random) -> Iterator[str]:
    """Lines like those of the lock files of npm and bun: names, versions, hashes."""
    words = sorted(set(re.findall("[a-z]{3,9}", "".join(_files("docs", "*.md")))))
    while True:
        name = "-".join(chance.choice(words) for _ in range(2))
        version = ".".join(str(chance.randrange(20)) for _ in range(3))
        digest = base64.b64encode(chance.randbytes(64)).decode()
        needs = f'{{ "dependencies": {{ "{chance.choice(words)}": "^{version}" }} }}'
        yield f'    "{name}": ["{name}@{version}", "", {needs}, "sha512-{digest}"],\n'


def _messages(chance: random.Random, size: int) -> list[dict[str, Any]]:
    """A conversation as JSON, half of it source code."""
    source, taken = "".join(_files("conformance", "*.py")), 0
    messages: list[dict[str, Any]] = []
    while taken < size:
        words = " ".join(chance.choice(bench_large_bodies.WORDS) for _ in range(40))
        start = chance.randrange(len(source) - 2000)
        code = source[start : start + chance.randrange(200, 2000)]
        content = [{"type": "text", "text": words}, {"type": "tool_use", "name": "Write", "input": {"content": code}}]
        messages.append({"id": f"msg_{len(messages):06}", "role": "assistant", "content": content})
        taken += len(words) + len(code) + 150
    return messages


def _rows(chance: random.Random, size: int) -> list[dict[str, Any]]:
    """Rows like those of a recall: many short texts, most of them different in each row."""
    words = bench_large_bodies.WORDS

    def row(number: int) -> dict[str, Any]:
        return {
            "id": str(uuid.UUID(int=chance.getrandbits(128))),
            "content": " ".join(chance.choice(words) for _ in range(12)),
            "score": round(chance.random(), 6),
            "tags": ["invoice", f"t{chance.randrange(50)}"],
            "created_at": f"2026-03-{chance.randrange(1, 28):02}T10:00:00Z",
            "pinned": False,
            "entity": {"name": chance.choice(words), "kind": "concept", "mentions": number},
        }

    return [row(number) for number in range(size // 320)]


def _nested(chance: random.Random, size: int) -> list[Any]:
    """Objects and lists, twenty of each in one another."""

    def node(depth: int) -> dict[str, Any]:
        children = [node(depth - 1)] if depth else []
        return {"type": "node", "children": children, "label": chance.choice(bench_large_bodies.WORDS)}

    return [node(20) for _ in range(size // 1000)]


def _of_many_names(chance: random.Random, size: int) -> dict[str, Any]:
    """An object like an index of files: each member has a name of its own."""
    words = bench_large_bodies.WORDS

    def name(number: int) -> str:
        return f"src/{chance.choice(words)}/{chance.choice(words)}-{number}.ts"

    return {name(number): {"size": chance.randrange(9999), "kind": "file"} for number in range(size // 60)}


def bodies(size: int) -> dict[str, Callable[[], Any]]:
    """By kind, a function that makes a body of about `size` bytes."""
    chance = random.Random(4)

    def until(parts: Iterator[str]) -> str:
        text, length = [], 0
        for part in parts:
            text.append(part)
            length += len(part)
            if length >= size:
                break
        return "".join(text)[:size]

    kinds: dict[str, Callable[[], Any]] = {
        "words": lambda: until(f"{chance.choice(bench_large_bodies.WORDS)} " for _ in range(size)),
        "documents": lambda: until(_files("docs", "*.md")),
        "source": lambda: until(_files("conformance", "*.py")),
        "JSON as text": lambda: until(_files("schemas", "*.json")),
        "lock file": lambda: until(_lock_file(chance)),
        "JSON": lambda: _messages(chance, size),
        "rows of JSON as text": lambda: "\n".join(map(json.dumps, _messages(chance, size))),
        "JSON of rows": lambda: _rows(chance, size),
        "JSON of vectors": lambda: [[chance.uniform(-1, 1) for _ in range(384)] for _ in range(size // 7700)],
        "nested JSON": lambda: _nested(chance, size),
        "JSON of many names": lambda: _of_many_names(chance, size),
        "base64": lambda: base64.b64encode(chance.randbytes(size * 3 // 4)).decode(),
        "hexadecimal": lambda: chance.randbytes(size // 2).hex(),
    }
    for unit in HOSTILE:
        kinds[repr(unit)] = partial(str.__mul__, unit, size // len(unit))
    return kinds


def _line(body: Any) -> dict[str, Any]:
    request = {"method": "POST", "path": "/api/hooks/session-end", "query": [], "headers": []}
    return {
        "kind": "exchange", "seq": 1, "conn": 1, "t0": 0.0, "t1": 0.1,
        "request": {**request, "body": {"json": {"sessionKey": "s1", "transcript": body}}},
        "response": {"status": 200, "headers": [], "body": {"json": {}}},
    }  # fmt: skip


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    """Measure the named kinds, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=5, help="tries of each (default: 5)")
    parser.add_argument("--megabytes", type=float, default=1, help="size of a body (default: 1)")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="only these")
    options = parser.parse_args()
    redactor = ProvisionalRedactor({})
    redactor.exchange(_line("token=abcdefgh12345 " * 2000), is_long=True)  # work that is done only once
    for kind, make in bodies(int(options.megabytes * MEGABYTE)).items():
        if not options.kinds or kind in options.kinds:
            first, again, times = _measure(redactor, make(), options.tries)
            print(f"{kind:32} {first:6.1f} ms a MB   again {again:6.1f}   {times:5.1f} x JSON", flush=True)


def _measure(redactor: ProvisionalRedactor, body: Any, tries: int) -> tuple[float, float, float]:
    """Milliseconds per megabyte of the two searches, and the ratio of the first to reading and writing."""
    size = len(json.dumps(body)) / MEGABYTE
    first, again, read = list[float](), list[float](), list[float]()
    for _ in range(tries):
        keyword_search.forget()
        for times in (first, again):
            times.append(_seconds(partial(redactor.exchange, _line(body), is_long=True)))
        read.append(_seconds(lambda: msgspec.json.decode(msgspec.json.encode(body))))
    return min(first) * 1000 / size, min(again) * 1000 / size, min(first) / min(read)


if __name__ == "__main__":
    main()
