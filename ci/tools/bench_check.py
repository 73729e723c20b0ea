"""Measures `signet-conformance check` as a whole process, beside Redocly's `drift` and plain parsing of the same file.

    python ci/tools/bench_check.py                        4,000 sessions, 24,001 exchanges of about 3 kB, 5 runs
    python ci/tools/bench_check.py --redocly REDOCLY      `drift` of the same exchanges, as HAR by the kit's OpenAPI
    python ci/tools/bench_check.py --large 64000          memory and time of a recording of 1.2 GB too, run once
    python ci/tools/bench_check.py --keep trace.jsonl     keep the trace that was generated

The trace holds sessions of six exchanges (start, prompt, recall, remember, prompt, end with transcript) of a
connector and a daemon that conform, one after the other. The baseline parses each line with `json.loads`, in one
process and in one for each processor. Since processors of some machines share hardware, the second shows how much
faster independent work can become at most. Prints medians: seconds, seconds of processors, and the memory of the
largest process. Nothing here fails.
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
from typing import Any, NamedTuple

from signet_conformance.children.spread import processors

BASELINE = """
import json, os, sys
place, count = 0, int(sys.argv[2])
while place < count - 1 and os.fork() == 0:
    place += 1
with open(sys.argv[1], "rb") as lines:
    lines.seek(os.stat(sys.argv[1]).st_size * place // count)
    if place:
        lines.readline()
    beyond = os.stat(sys.argv[1]).st_size * (place + 1) // count
    while lines.tell() < beyond:
        json.loads(lines.readline())
if place < count - 1:
    os.wait()
"""
"""Parses every line of a file, in several processes at once, each of which reads a part."""
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

ALONE, TOGETHER = "json.loads of every line", "the same, all processors"

Exchange = dict[str, Any]


def prose(chance: random.Random, characters: int) -> str:
    """Plain words, about `characters` long together."""
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
    """Write a trace of `sessions` sessions, always the same one."""
    chance = random.Random(20)
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


class Cost(NamedTuple):
    """The cost of a process and its children: seconds by the clock and of processors, memory of the largest process."""

    wall_s: float
    cpu_s: float
    memory_mb: float

    def __str__(self) -> str:
        return f"{self.wall_s:7.2f} s  {self.cpu_s:7.2f} s of processors  {self.memory_mb:6.0f} MB"


COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The environment of the measured processes: modules are compiled once, as by an installer, not at each start."""


def cost(command: Sequence[str], *, accepted: frozenset[int] = frozenset({0})) -> Cost:
    """Run a process and return its cost. Raises RuntimeError if it ends with a status that is not accepted."""
    with tempfile.TemporaryFile() as output:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=COMPILED)
        _, ended, used = os.wait4(process.pid, 0)
        elapsed = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(ended)
        if process.returncode not in accepted:
            output.seek(0)
            raise RuntimeError(f"{command} ended with {process.returncode}: {output.read().decode()[-800:]}")
    return Cost(elapsed, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def medians(costs: Sequence[Cost]) -> Cost:
    """The median of each column."""
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def drift_of(redocly: str, trace: Path, folder: Path) -> list[str]:
    """The command of Redocly's `drift` over the same exchanges."""
    har, api = folder / "trace.har", folder / "openapi.json"
    kit = [sys.executable, "-m", "signet_conformance.cli"]
    subprocess.run([*kit, "convert", str(trace), str(har)], check=True, capture_output=True)
    with api.open("wb") as stream:
        subprocess.run([*kit, "contract", "openapi", "0.145"], check=True, stdout=stream)
    report = ["--format", "json", "--output", str(folder / "drift.json")]
    return [redocly, "drift", str(har), "--api", str(api), "--match-mode", "basepath", *report]


def main() -> int:
    """Generate, measure turn by turn, print; the exit status."""
    parser = argparse.ArgumentParser(description="Measure `signet-conformance check` as a whole process.")
    parser.add_argument("--sessions", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--redocly", metavar="PATH", help="measure the `drift` of this program as well")
    parser.add_argument("--large", type=int, metavar="SESSIONS", help="measure a recording of this many sessions once")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the generated trace under this name")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        trace = options.keep or folder / "trace.jsonl"
        write_trace(trace, options.sessions)
        size = trace.stat().st_size
        count = 1 + 6 * options.sessions
        print(f"{count} exchanges, {size / 1e6:.1f} MB, {size / count:.0f} bytes each; {processors()} processors")
        check = [sys.executable, "-m", "signet_conformance.cli", "check"]
        commands = {
            "check": [*check, str(trace)],
            "check, one process": [*check, "--workers", "1", str(trace)],
            ALONE: [sys.executable, "-c", BASELINE, str(trace), "1"],
            TOGETHER: [sys.executable, "-c", BASELINE, str(trace), str(processors())],
        }
        if options.redocly:
            commands["drift"] = drift_of(options.redocly, trace, folder)
        rows: dict[str, list[Cost]] = {name: [] for name in commands}
        for _ in range(options.runs):
            for name, command in commands.items():
                # `drift` ends with 1 if it finds anything, and it does not know all headers of a daemon.
                rows[name].append(cost(command, accepted=frozenset({0, 1})))
        figures = {name: medians(costs) for name, costs in rows.items()}
        for name, figure in figures.items():
            ratio = figure.wall_s / figures["check"].wall_s
            print(f"{name:26}{figure}  {ratio:5.2f} x the time of check")
        gained = figures["check, one process"].wall_s / figures["check"].wall_s
        possible = figures[ALONE].wall_s / figures[TOGETHER].wall_s
        print(f"{processors()} processors: check is {gained:.2f} x as fast as by one, json.loads {possible:.2f} x")
        if options.large:
            print_large(check, folder / "large.jsonl", options.large)
    return 0


def print_large(check: Sequence[str], trace: Path, sessions: int) -> None:
    """Print the cost of a large recording, in one process and in one for each processor."""
    write_trace(trace, sessions)
    print(f"{trace.stat().st_size / 1e6:.0f} MB in {1 + 6 * sessions} exchanges")
    alone, several = (cost([*check, "--workers", str(count), str(trace)]) for count in (1, processors()))
    print(f"{'check, one process':26}{alone}")
    print(f"{f'check, {processors()} processes':26}{several}  {alone.wall_s / several.wall_s:5.2f} x as fast")


if __name__ == "__main__":
    sys.exit(main())
