"""Checks the promises of the memory benchmark on the ten conversations of LoCoMo, a file that you supply.

    python ci/tools/prove_memory_bench.py locomo10.json [--runs 5] [--other PYTHON]

Ends with 1 if a run of the embedded daemon takes more than two minutes of CPU; if two runs differ in a byte: with the
recorder between, after a kill -9, or on the Python that --other names; if the recording breaches the contract; or if a
baseline misses its published figures by more than 0.005. It takes some ten minutes of a processor.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MOST_CPU_S = 120.0
TOLERANCE = 0.005
BASELINES = {"fts5": {"hit@10": 0.637, "mrr@10": 0.405}, "bm25s": {"hit@10": 0.577, "mrr@10": 0.367}}
KILLS = 3


def bench(*words: object, python: str = sys.executable) -> list[str]:
    """The command line of `signet-harness bench`."""
    return [python, "-m", "signet_reference_harness.cli", "bench", *map(str, words)]


def figures(out: Path) -> dict[str, float]:
    """The means over all questions, including adversarial ones, as in the published figures."""
    result: dict[str, Any] = json.loads((out / "result.json").read_bytes())
    each = [question["figures"] for question in result["questions"]]
    return {name: sum(one[name] for one in each) / len(each) for name in each[0]}


class Proof:
    """The runs in a folder, and the promises that they broke."""

    def __init__(self, source: Path, folder: Path) -> None:
        self._folder = folder
        self.broken: list[str] = []
        for name in ("locomo", "locomo-captions"):
            subprocess.run(bench("convert", name, source, "--out", self._folder / f"{name}.jsonl"), check=True)
        self._first: bytes | None = None

    def check(self, promise: str, *, holds: bool) -> None:
        """Print a promise and whether it holds."""
        print(f"{'ok  ' if holds else 'NOT '} {promise}", flush=True)
        if not holds:
            self.broken.append(promise)

    def embedded(self, name: str, *options: str, python: str = sys.executable) -> Path:
        """Run the embedded daemon; compare the result with that of the first run."""
        out = self._folder / name
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        suite = self._folder / "locomo-captions.jsonl"
        subprocess.run(
            bench("run", suite, "--out", out, "-q", *options, python=python), check=True, stdout=subprocess.DEVNULL
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        wall = time.monotonic() - began
        result = (out / "result.json").read_bytes()
        if self._first is None:
            self._first = result
            self.check(
                f"{name}: {cpu:.0f} s of CPU, {wall:.0f} s by the clock, {summary(figures(out))}",
                holds=cpu < MOST_CPU_S,
            )
        else:
            promise = f"{name}: {cpu:.0f} s of CPU, {wall:.0f} s by the clock, the same bytes"
            self.check(promise, holds=result == self._first)
        return out

    def run_with_kills(self, name: str, seed: int) -> None:
        """Run the embedded daemon, and kill the run several times on its way."""
        chosen = random.Random(seed)
        command = bench("run", self._folder / "locomo-captions.jsonl", "--out", self._folder / name, "-q")
        for _ in range(KILLS):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            time.sleep(chosen.uniform(3, 12))
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.embedded(name)

    def baseline(self, name: str) -> None:
        """Run a baseline; compare its figures with the published ones."""
        out = self._folder / name
        suite = self._folder / "locomo.jsonl"
        subprocess.run(
            bench("run", suite, "--subject", name, "--out", out, "-q"), check=True, stdout=subprocess.DEVNULL
        )
        overall = figures(out)
        near = all(abs(overall[figure] - value) <= TOLERANCE for figure, value in BASELINES[name].items())
        self.check(f"{name}: {summary(overall)}, published {BASELINES[name]}", holds=near)

    def judge(self, out: Path) -> None:
        """Let the kit judge the recordings of a run."""
        traces = sorted(map(str, (out / "traces").glob("*.jsonl")))
        check = [sys.executable, "-m", "signet_conformance.cli", "check", *traces]
        status = subprocess.run(check, stdout=subprocess.DEVNULL, check=False).returncode
        self.check(f"the kit judges {len(traces)} recordings: exit status {status}", holds=status == 0)


def summary(overall: dict[str, float]) -> str:
    """The two figures that are published."""
    return f"hit@10 {overall['hit@10']:.3f}, mrr@10 {overall['mrr@10']:.3f}"


def main() -> int:
    """Check all promises; return the exit status."""
    parser = argparse.ArgumentParser(description="Check the promises of the memory benchmark.")
    parser.add_argument("source", type=Path, help="locomo10.json")
    parser.add_argument("--runs", type=int, default=5, help="runs to compare (default: %(default)s)")
    parser.add_argument("--other", metavar="PYTHON", help="another Python that has the kit and its bench extra")
    options = parser.parse_args()
    os.environ.pop("SIGNET_TOKEN", None)
    with tempfile.TemporaryDirectory(prefix="memory-bench-") as folder:
        proof = Proof(options.source, Path(folder))
        for number in range(options.runs):
            proof.embedded(f"run-{number + 1}")
        if options.other:
            proof.embedded("other", python=options.other)
        proof.judge(proof.embedded("recorded", "--record"))
        proof.run_with_kills("killed", seed=16)
        for name in BASELINES:
            proof.baseline(name)
    return 1 if proof.broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
