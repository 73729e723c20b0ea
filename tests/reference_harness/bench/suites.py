"""Small suites for tests, and the command line that performs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from signet_reference_harness.bench.command import BenchOptions, perform
from signet_reference_harness.bench.suite import Suite, parse_suite

HEAD = {"kind": "suite", "format": "signet-bench-suite/1", "name": "huts", "licence": "CC0-1.0"}
COLOURS = ("red", "green", "blue", "white")


def hut_lines(scenarios: int = 3) -> list[dict[str, Any]]:
    """A suite of some scenarios, each with four facts, three questions, and one that no fact answers."""
    lines: list[dict[str, Any]] = [HEAD]
    for number in range(scenarios):
        lines.append({"kind": "scenario", "id": f"valley-{number}"})
        lines += (
            {"kind": "fact", "id": colour, "text": f"Hut {place} of valley {number} is painted {colour}."}
            for place, colour in enumerate(COLOURS)
        )
        lines += (
            {
                "kind": "query",
                "id": f"q{place}",
                "text": f"Which hut is painted {colour}?",
                "evidence": [colour],
                "category": "hut" if place else "first",
                "answer": f"hut {place}",
                "expect": [colour],
            }
            for place, colour in enumerate(COLOURS[:3])
        )
        lines.append({"kind": "query", "id": "none", "text": "Who was mayor?"})
    return lines


def data(lines: list[dict[str, Any]]) -> bytes:
    """The bytes of a suite."""
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def suite(lines: list[dict[str, Any]]) -> Suite:
    """The suite of these lines."""
    return parse_suite(data(lines), "huts.jsonl")


def run(lines: list[dict[str, Any]], out: Path, **given: Any) -> int:
    """Run `signet-harness bench run` on a suite with these options; return the exit status."""
    file = out.parent / "huts.jsonl"
    if "suite" not in given and not (file.exists() and file.read_bytes() == data(lines)):
        file.write_bytes(data(lines))
    return perform(BenchOptions(**{"suite": file, "out": out, "quiet": True, "jobs": 2, **given}))


def result(out: Path) -> dict[str, Any]:
    """The result in the folder of a run."""
    read: dict[str, Any] = json.loads((out / "result.json").read_text("utf-8"))
    return read
