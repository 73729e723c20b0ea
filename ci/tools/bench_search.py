"""Measures what the recorder's search for secrets costs in a large body, by kind of content, in processor time.

Each body is searched anew and once more: what is sent again is known by then. Prints milliseconds a megabyte, the least
of some tries, and how many times as long the first search takes as it takes to read and write the same JSON, which
depends less on the machine. The last kinds are text that is made to keep the search busy. Asserts nothing about time.

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


def _lock_file(drawn: random.Random) -> Iterator[str]:
    """Lines as those of npm's and bun's: names, versions, hashes."""
    words = sorted(set(re.findall("[a-z]{3,9}", "".join(_files("docs", "*.md")))))
    while True:
        name = "-".join(drawn.choice(words) for _ in range(2))
        version = ".".join(str(drawn.randrange(20)) for _ in range(3))
        digest = base64.b64encode(drawn.randbytes(64)).decode()
        needs = f'{{ "dependencies": {{ "{drawn.choice(words)}": "^{version}" }} }}'
        yield f'    "{name}": ["{name}@{version}", "", {needs}, "sha512-{digest}"],\n'


def _messages(drawn: random.Random, size: int) -> list[dict[str, Any]]:
    """A conversation as JSON, half of it source code."""
    source, messages, taken = "".join(_files("conformance", "*.py")), [], 0
    while taken < size:
        said = " ".join(drawn.choice(bench_large_bodies.WORDS) for _ in range(40))
        start = drawn.randrange(len(source) - 2000)
        code = source[start : start + drawn.randrange(200, 2000)]
        content = [{"type": "text", "text": said}, {"type": "tool_use", "name": "Write", "input": {"content": code}}]
        messages.append({"id": f"msg_{len(messages):06}", "role": "assistant", "content": content})
        taken += len(said) + len(code) + 150
    return messages


def _rows(drawn: random.Random, size: int) -> list[dict[str, Any]]:
    """What a recall answers with: many short texts, most of them other ones in each row."""
    said = bench_large_bodies.WORDS

    def row(number: int) -> dict[str, Any]:
        return {
            "id": str(uuid.UUID(int=drawn.getrandbits(128))),
            "content": " ".join(drawn.choice(said) for _ in range(12)),
            "score": round(drawn.random(), 6),
            "tags": ["invoice", f"t{drawn.randrange(50)}"],
            "created_at": f"2026-03-{drawn.randrange(1, 28):02}T10:00:00Z",
            "pinned": False,
            "entity": {"name": drawn.choice(said), "kind": "concept", "mentions": number},
        }

    return [row(number) for number in range(size // 320)]


def _nested(drawn: random.Random, size: int) -> list[Any]:
    """Objects and lists, twenty of each in one another."""

    def node(depth: int) -> dict[str, Any]:
        children = [node(depth - 1)] if depth else []
        return {"type": "node", "children": children, "label": drawn.choice(bench_large_bodies.WORDS)}

    return [node(20) for _ in range(size // 1000)]


def _of_many_names(drawn: random.Random, size: int) -> dict[str, Any]:
    """As an index of files: each member has a name of its own."""
    words = bench_large_bodies.WORDS

    def name(number: int) -> str:
        return f"src/{drawn.choice(words)}/{drawn.choice(words)}-{number}.ts"

    return {name(number): {"size": drawn.randrange(9999), "kind": "file"} for number in range(size // 60)}


def bodies(size: int) -> dict[str, Callable[[], Any]]:
    """How to make a body of about this many bytes, by kind."""
    drawn = random.Random(4)

    def until(parts: Iterator[str]) -> str:
        text, length = [], 0
        for part in parts:
            text.append(part)
            length += len(part)
            if length >= size:
                break
        return "".join(text)[:size]

    kinds: dict[str, Callable[[], Any]] = {
        "words": lambda: until(f"{drawn.choice(bench_large_bodies.WORDS)} " for _ in range(size)),
        "documents": lambda: until(_files("docs", "*.md")),
        "source": lambda: until(_files("conformance", "*.py")),
        "JSON as text": lambda: until(_files("schemas", "*.json")),
        "lock file": lambda: until(_lock_file(drawn)),
        "JSON": lambda: _messages(drawn, size),
        "rows of JSON as text": lambda: "\n".join(map(json.dumps, _messages(drawn, size))),
        "JSON of rows": lambda: _rows(drawn, size),
        "JSON of vectors": lambda: [[drawn.uniform(-1, 1) for _ in range(384)] for _ in range(size // 7700)],
        "nested JSON": lambda: _nested(drawn, size),
        "JSON of many names": lambda: _of_many_names(drawn, size),
        "base64": lambda: base64.b64encode(drawn.randbytes(size * 3 // 4)).decode(),
        "hexadecimal": lambda: drawn.randbytes(size // 2).hex(),
    }
    for unit in HOSTILE:
        kinds[repr(unit)] = lambda unit=unit: unit * (size // len(unit))
    return kinds


def _line(body: Any) -> dict[str, Any]:
    request = {"method": "POST", "path": "/api/hooks/session-end", "query": [], "headers": []}
    return {
        "kind": "exchange", "seq": 1, "conn": 1, "t0": 0.0, "t1": 0.1,
        "request": {**request, "body": {"json": {"sessionKey": "s1", "transcript": body}}},
        "response": {"status": 200, "headers": [], "body": {"json": {}}},
    }  # fmt: skip


def _took(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Measure the kinds that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=5, help="tries of each (default: 5)")
    parser.add_argument("--megabytes", type=float, default=1, help="size of a body (default: 1)")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="only these")
    options = parser.parse_args()
    redactor = ProvisionalRedactor({})
    redactor.exchange(_line("token=abcdefgh12345 " * 2000), is_long=True)  # what is slow only once
    for kind, make in bodies(int(options.megabytes * MEGABYTE)).items():
        if not options.kinds or kind in options.kinds:
            first, again, times = _measured(redactor, make(), options.tries)
            print(f"{kind:32} {first:6.1f} ms a MB   again {again:6.1f}   {times:5.1f} x JSON", flush=True)


def _measured(redactor: ProvisionalRedactor, body: Any, tries: int) -> tuple[float, float, float]:
    """Milliseconds a megabyte of the first search and of the second; the first by what reading and writing takes."""
    size = len(json.dumps(body)) / MEGABYTE
    first, again, read = [], [], []
    for _ in range(tries):
        keyword_search.forget()
        for took in (first, again):
            took.append(_took(partial(redactor.exchange, _line(body), is_long=True)))
        read.append(_took(lambda: msgspec.json.decode(msgspec.json.encode(body))))
    return min(first) * 1000 / size, min(again) * 1000 / size, min(first) / min(read)


if __name__ == "__main__":
    main()
