"""Holds the benchmark of memory to what it promises, on the ten conversations of LoCoMo, which you bring.

    python ci/tools/prove_memory_bench.py locomo10.json [--runs 5] [--other PYTHON]

Ends with 1 when a run of the embedded daemon takes more than two processors give in a minute; when two runs differ in a
byte: with the recorder between, after a kill -9, or on the Python that --other names; when the recording breaks the
contract; or when a baseline misses its published figures by more than 0.005. It takes some ten minutes of a processor.
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
    """The means over all questions, adversarial ones too: so the published figures count them."""
    result: dict[str, Any] = json.loads((out / "result.json").read_bytes())
    each = [question["figures"] for question in result["questions"]]
    return {name: sum(one[name] for one in each) / len(each) for name in each[0]}


class Proof:
    """Runs in a folder, and what did not hold."""

    def __init__(self, source: Path, folder: Path) -> None:
        self._folder = folder
        self.broken: list[str] = []
        for name in ("locomo", "locomo-captions"):
            subprocess.run(bench("convert", name, source, "--out", self._folder / f"{name}.jsonl"), check=True)
        self._first: bytes | None = None

    def hold(self, what: str, *, held: bool) -> None:
        """Print whether it held."""
        print(f"{'ok  ' if held else 'NOT '} {what}", flush=True)
        if not held:
            self.broken.append(what)

    def embedded(self, name: str, *options: str, python: str = sys.executable) -> Path:
        """A run of the embedded daemon, compared with the first one."""
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
            self.hold(
                f"{name}: {cpu:.0f} s of CPU, {wall:.0f} s by the clock, {shown(figures(out))}", held=cpu < MOST_CPU_S
            )
        else:
            told = f"{name}: {cpu:.0f} s of CPU, {wall:.0f} s by the clock, the same bytes"
            self.hold(told, held=result == self._first)
        return out

    def killed(self, name: str, seed: int) -> None:
        """A run that is killed a few times on its way."""
        chosen = random.Random(seed)
        command = bench("run", self._folder / "locomo-captions.jsonl", "--out", self._folder / name, "-q")
        for _ in range(KILLS):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            time.sleep(chosen.uniform(3, 12))
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.embedded(name)

    def baseline(self, name: str) -> None:
        """A baseline, held to its figures."""
        out = self._folder / name
        suite = self._folder / "locomo.jsonl"
        subprocess.run(
            bench("run", suite, "--subject", name, "--out", out, "-q"), check=True, stdout=subprocess.DEVNULL
        )
        overall = figures(out)
        near = all(abs(overall[figure] - value) <= TOLERANCE for figure, value in BASELINES[name].items())
        self.hold(f"{name}: {shown(overall)}, published {BASELINES[name]}", held=near)

    def judged(self, out: Path) -> None:
        """The recording of a run, judged by the kit."""
        traces = sorted(map(str, (out / "traces").glob("*.jsonl")))
        check = [sys.executable, "-m", "signet_conformance.cli", "check", *traces]
        status = subprocess.run(check, stdout=subprocess.DEVNULL, check=False).returncode
        self.hold(f"the kit judges {len(traces)} recordings: exit status {status}", held=status == 0)


def shown(overall: dict[str, float]) -> str:
    """The figures that are spoken of."""
    return f"hit@10 {overall['hit@10']:.3f}, mrr@10 {overall['mrr@10']:.3f}"


def main() -> int:
    """Prove it; the exit status."""
    parser = argparse.ArgumentParser(description="Hold the benchmark of memory to what it promises.")
    parser.add_argument("source", type=Path, help="locomo10.json")
    parser.add_argument("--runs", type=int, default=5, help="runs to compare (default: %(default)s)")
    parser.add_argument("--other", metavar="PYTHON", help="another Python that has the kit and its bench extra")
    given = parser.parse_args()
    os.environ.pop("SIGNET_TOKEN", None)
    with tempfile.TemporaryDirectory(prefix="memory-bench-") as folder:
        proof = Proof(given.source, Path(folder))
        for number in range(given.runs):
            proof.embedded(f"run-{number + 1}")
        if given.other:
            proof.embedded("other", python=given.other)
        proof.judged(proof.embedded("recorded", "--record"))
        proof.killed("killed", seed=16)
        for name in BASELINES:
            proof.baseline(name)
    return 1 if proof.broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
