"""Compare the verdicts of targets over several seeds, and on a machine that loops keep busy.

    python ci/tools/verdicts_by_seed.py reference opencode --loops 0 2 8 --in-turn

Run it in a folder where the kit finds the targets. It prints each requirement whose verdict differs between runs, with
the runs of each verdict; the exit status is then 1. seeds.md, beside this file, says what a seed may change.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep the processors busy with this number of processes."""
    # Each ends when this process ends, even if it is killed.
    command = [sys.executable, "-c", "import os; us = os.getppid()\nwhile os.getppid() == us: pass"]
    # Each has its own session: some kernels share the processors between sessions, not between processes.
    children = [subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True) for _ in range(loops)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def verdicts(target: str, seed: int, sessions: int | None, folder: Path) -> dict[str, str]:
    """The verdict of each requirement in one run."""
    words = [sys.executable, "-P", "-m", "signet_conformance.cli", "run", target, "--quiet"]
    words += ["--seed", str(seed), "--report", str(folder)]
    words += [] if sessions is None else ["--scenarios", str(sessions)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    report = folder / "report.json"
    if not report.is_file():
        raise SystemExit(f"{target}, seed {seed}: no report, exit {done.returncode}\n{done.stdout}{done.stderr}")
    return {name: row["verdict"] for name, row in json.loads(report.read_bytes())["together"].items()}


def runs(loops: Sequence[int], seeds: int, *, in_turn: bool) -> list[tuple[int, int]]:
    """Busy loops and seed of each run: every seed with each number of loops, or with one of these numbers in turn."""
    numbers = range(1, seeds + 1)
    if in_turn:
        return list(zip(itertools.cycle(loops), numbers, strict=False))
    return list(itertools.product(loops, numbers))


def main() -> int:
    """Run the targets, and print the requirements whose verdicts differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="seeds 1 to N (default: 10)")
    parser.add_argument(
        "--loops", type=int, nargs="+", default=[0], metavar="N", help="numbers of busy loops (default: 0)"
    )
    parser.add_argument(
        "--in-turn",
        action="store_true",
        help="run each seed once: seed 1 with the first number of loops, seed 2 with the second, and so on",
    )
    parser.add_argument(
        "--sessions", type=int, metavar="N", help="generated sessions (default: the target's own number)"
    )
    options = parser.parse_args()
    differ = False
    for target in options.targets:
        seen: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for loops, seed in runs(options.loops, options.seeds, in_turn=options.in_turn):
            with busy(loops), tempfile.TemporaryDirectory(prefix="signet-seeds-") as folder:
                judged = verdicts(target, seed, options.sessions, Path(folder) / "report")
            run = f"{seed}" if options.loops == [0] else f"{seed}+{loops}"
            for name, verdict in judged.items():
                seen[name][verdict].append(run)
            print(f"{target}: seed {seed}, {loops} busy loops: done", file=sys.stderr, flush=True)
        differing = {name: rows for name, rows in seen.items() if len(rows) > 1}
        differ = differ or bool(differing)
        print(f"{target}: {len(seen) - len(differing)} of {len(seen)} requirements have one verdict everywhere")
        for name, rows in differing.items():
            print(f"  {name}: " + "; ".join(f"{verdict} with {', '.join(runs)}" for verdict, runs in rows.items()))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
