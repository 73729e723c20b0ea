"""Measure generated sessions: sessions a second, judging a thousand exchanges, shrinking and confirming a breach.

The tool prints seconds, and each figure also as a ratio to plain work on the same machine (the start of an interpreter,
`json.loads` of the same lines), so that machines can be compared. No figure makes it fail.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from signet_conformance import engine, targets, trace
from signet_conformance.running.generated import GeneratedSessions
from signet_conformance.running.workers import RunWorkers

BROKEN = Path(__file__).resolve().parents[2] / "tests" / "running" / "generated" / "broken_reference.py"
DEFECT = "last_started_agent"


def generated(folder: Path, target: targets.Target, count: int) -> tuple[float, float | None]:
    """Seconds of performing `count` sessions, and of shrinking and confirming their breaches; None without a breach."""
    with RunWorkers(target, folder) as run:
        sessions = GeneratedSessions(workers=run, count=count, seed=1, failures=folder / "failures", replay=str)
        began = time.perf_counter()
        chunks = list(run.work(sessions.jobs()))
        performed = time.perf_counter()
        summary = sessions.conclude(chunks, dict)
        return performed - began, time.perf_counter() - performed if summary.breaches else None


def judging(folder: Path) -> tuple[float, float, int]:
    """Seconds of reading and judging the traces of a scripted run, of `json.loads` on them, and their exchanges."""
    report = folder / "scripted"
    scripted = ("run", "reference", "--scenarios", "0", "--quiet", "--report", str(report))
    subprocess.run([sys.executable, "-m", "signet_conformance.cli", *scripted], check=True, stdout=subprocess.DEVNULL)
    files = sorted(report.glob("*.jsonl"))
    began = time.perf_counter()
    judged = [engine.judge(trace.read(file)) for file in files]
    ended = time.perf_counter()
    for file in files:
        for line in file.read_bytes().splitlines():
            json.loads(line)
    return ended - began, time.perf_counter() - ended, sum(len(each.trace.exchanges) for each in judged)


def interpreter_start() -> float:
    """Seconds a bare interpreter takes to start and end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
    return time.perf_counter() - began


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100, help="how many to perform (default: 100)")
    count = parser.parse_args().sessions
    if count < 1:
        parser.error("--sessions: at least 1")
    reference = targets.load("reference")
    broken = replace(reference, name="broken", command=(sys.executable, str(BROKEN), DEFECT))
    start = min(interpreter_start() for _ in range(5))
    with tempfile.TemporaryDirectory(prefix="signet-bench-") as name:
        folder = Path(name)
        for part in ("reference", "judging", "broken"):
            (folder / part).mkdir()
        performed, _ = generated(folder / "reference", reference, count)
        cost = performed / count / start
        print(f"sessions    {count / performed:8.1f} a second; one costs {cost:.1f} interpreter starts")
        judged, parsed, exchanges = judging(folder / "judging")
        print(
            f"judging     {1000 * judged / exchanges:8.3f} s a thousand exchanges; {judged / parsed:.1f} x json.loads"
        )
        _, followed = generated(folder / "broken", broken, count)
        if followed is None:
            print(f"shrinking   not measured: no breach in {count} sessions; try --sessions 100")
        else:
            ratio = followed / start
            print(f"shrinking   {followed:8.1f} s to shrink and confirm a breach; {ratio:.0f} interpreter starts")


if __name__ == "__main__":
    main()
