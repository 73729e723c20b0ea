"""Times `signet-conformance check` as a whole process, beside the least that reading the same file can cost.

    python ci/tools/bench_check.py                        4,000 sessions, 24,001 exchanges of about 3 kB, 5 runs
    python ci/tools/bench_check.py --limit 1.6            exit 1 when the median is above 1.6 s
    python ci/tools/bench_check.py --keep trace.jsonl     keep the trace that was generated

The trace holds sessions of six exchanges (start, prompt, recall, remember, prompt, end with transcript) of a
connector and a daemon that conform, one after the other. The baseline parses each line with `json.loads`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

BASELINE = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"
BEGINNINGS = (
    "in",
    "ledg",
    "ex",
    "port",
    "pool",
    "wind",
    "depl",
    "schem",
    "roll",
    "back",
    "queu",
    "work",
    "cach",
    "tok",
)
ENDINGS = ("", "s", "er", "ers", "ing", "ed", "able", "ment", "ion", "ions", "age", "ive", "al", "ance")
WORDS = sorted({a + b + c for a in BEGINNINGS for b in BEGINNINGS for c in ENDINGS})

Exchange = dict[str, Any]


def prose(chance: random.Random, characters: int) -> str:
    """Plain words of about that many characters."""
    words = chance.choices(WORDS, k=max(1, characters // 9))
    return " ".join(words)


def exchange(path: str, body: Exchange, answer: Exchange) -> Exchange:
    """One exchange without its number and times, as a connector of the plugin kind sends it."""
    headers = [
        ["host", "127.0.0.1:3850"],
        ["accept", "*/*"],
        ["user-agent", "node"],
        ["content-type", "application/json"],
        ["x-signet-runtime-path", "plugin"],
        ["x-signet-actor", "openclaw"],
    ]
    return {
        "request": {"method": "POST", "path": path, "query": [], "headers": headers, "body": {"json": body}},
        "response": {
            "status": 200,
            "headers": [["content-type", "application/json"], ["vary", "Origin"], ["connection", "keep-alive"]],
            "body": {"json": answer},
        },
    }


def injected(chance: random.Random, number: int, characters: int) -> str:
    """Context as the daemon injects it, under the heading with the time of the day."""
    clock = f"{number // 60 % 24:02}:{number % 60:02}"
    return f"# Current Date & Time\nSaturday, November 21, 2026 at {clock} (UTC)\n\n{prose(chance, characters)}"


def memories(chance: random.Random, count: int) -> list[Exchange]:
    """Rows as a recall answers them."""
    row = {
        "content_length": 160,
        "truncated": False,
        "source": "hybrid",
        "type": "fact",
        "tags": "atlas",
        "pinned": False,
    }
    who = {"importance": 0.5, "who": "openclaw", "project": None, "created_at": "2026-06-12T09:00:00.000Z"}
    return [
        {
            "id": f"{chance.getrandbits(128):032x}",
            "content": prose(chance, 160),
            "score": round(chance.random(), 3),
            **row,
            **who,
        }
        for _ in range(count)
    ]


def session(chance: random.Random, number: int) -> Iterator[Exchange]:
    """The six exchanges of one session, in order."""
    project = f"/srv/{WORDS[number % len(WORDS)]}"
    who = {
        "harness": "openclaw",
        "sessionKey": f"{chance.getrandbits(64):016x}-{number}",
        "agentId": "atlas-agent",
        "runtimePath": "plugin",
    }
    first, second = f"{prose(chance, 240)} ({number})?", f"{prose(chance, 200)} ({number}, again)?"
    reply, answer = prose(chance, 700), prose(chance, 700)
    inject = {"inject": injected(chance, number, 900), "memories": memories(chance, 3), "identity": {"name": "Rig"}}
    yield exchange("/api/hooks/session-start", {**who, "project": project}, inject)
    meta = {"totalReturned": 6, "hasSupplementary": False, "noHits": False}
    known = {"sessionKnown": True, "memoryCount": 3}
    yield exchange(
        "/api/hooks/user-prompt-submit",
        {**who, "project": project, "userMessage": first},
        {"inject": injected(chance, number, 1500), **known},
    )
    yield exchange(
        "/api/memory/recall",
        {"query": first, "limit": 10, "agentId": "atlas-agent", "sessionKey": who["sessionKey"]},
        {
            "results": memories(chance, 6),
            "query": first,
            "method": "hybrid",
            "meta": meta,
        },
    )
    content = prose(chance, 900)
    saved = {
        "tags": "atlas",
        "pinned": False,
        "importance": 0.5,
        "entities_linked": 0,
        "hints_written": 0,
        "structured": False,
    }
    yield exchange(
        "/api/memory/remember",
        {"content": content, "agentId": "atlas-agent", "tags": ["atlas"], "project": project},
        {"id": f"{chance.getrandbits(128):032x}", "type": "fact", "content": content, "embedded": False, **saved},
    )
    yield exchange(
        "/api/hooks/user-prompt-submit",
        {**who, "project": project, "userMessage": second, "lastAssistantMessage": reply},
        {"inject": injected(chance, number, 900), **known},
    )
    transcript = f"User: {first}\nAssistant: {reply}\nUser: {second}\nAssistant: {answer}"
    yield exchange(
        "/api/hooks/session-end",
        {**who, "cwd": project, "transcript": transcript, "reason": "session_shutdown"},
        {"memoriesSaved": 0, "queued": True},
    )


def write_trace(path: Path, sessions: int) -> None:
    """Write a trace of so many sessions, the same one each time."""
    chance = random.Random(20)  # noqa: S311  a trace, no secret
    declared = {"agents": ["atlas-agent"], "harness": "openclaw", "bounds_s": {"start": 15.0, "prompt": 5.0}}
    header = {
        "kind": "header",
        "format": "signet-trace/1",
        "created": "2026-11-21T20:17:00Z",
        "target": "openclaw",
        "daemon_version": "0.145.7",
        "declared": declared,
    }
    health = exchange("/health", {}, {"status": "healthy", "version": "0.145.7"})
    health["request"].update(method="GET", body=None)
    with path.open("w") as stream:
        stream.write(json.dumps(header, separators=(",", ":")) + "\n")
        exchanges = chain([health], chain.from_iterable(session(chance, number) for number in range(sessions)))
        for seq, call in enumerate(exchanges, 1):
            line = {"kind": "exchange", "seq": seq, "conn": 1, "t0": seq * 0.05, "t1": seq * 0.05 + 0.01}
            stream.write(json.dumps({**line, **call}, separators=(",", ":")) + "\n")


def seconds(command: Sequence[str], *, accepted: frozenset[int] = frozenset({0})) -> float:
    """The wall-clock seconds of one process; RuntimeError when it ends with another status than those accepted."""
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - begin
    if done.returncode not in accepted:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr[-500:]}{done.stdout[-500:]}")
    return elapsed


def main() -> int:
    """Generate, time, print; the exit status."""
    parser = argparse.ArgumentParser(description="Time `signet-conformance check` as a whole process.")
    parser.add_argument("--sessions", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="exit 1 when the median is above")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the generated trace under this name")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        trace = options.keep or Path(folder, "trace.jsonl")
        write_trace(trace, options.sessions)
        size = trace.stat().st_size
        count = 1 + 6 * options.sessions
        print(f"{count} exchanges, {size / 1e6:.1f} MB, {size / count:.0f} bytes each, one core")
        check = [sys.executable, "-m", "signet_conformance.cli", "check", str(trace)]
        baseline = [sys.executable, "-c", BASELINE, str(trace)]
        pairs = [(seconds(check), seconds(baseline)) for _ in range(options.runs)]
    checked, parsed = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"check     {checked:.3f} s  ({', '.join(f'{seconds:.3f}' for seconds, _ in pairs)})")
    print(f"baseline  {parsed:.3f} s  (json.loads of every line)")
    print(f"ratio     {checked / parsed:.2f}")
    return int(options.limit is not None and checked > options.limit)


if __name__ == "__main__":
    sys.exit(main())
