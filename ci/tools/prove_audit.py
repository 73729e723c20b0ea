"""Checks the promises of an audit on a generated data set: the same bytes in every way of judging; prints the speed.

    python ci/tools/prove_audit.py                  22,900 short recordings: 1, 2 and 8 workers, ten kills, figures
    python ci/tools/prove_audit.py --recordings 500 --kills 3

Exits with 1 if the results of two audits differ, or a recording is lost or counted twice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDERS = 100
HEADERS = [
    ["host", "127.0.0.1:3850"],
    ["accept", "*/*"],
    ["content-type", "application/json"],
    ["user-agent", "node"],
    ["x-signet-runtime-path", "plugin"],
]
ANSWER_HEADERS = [["content-type", "application/json"], ["content-length", "182"]]
SENTENCE = "the ledger exports rows by day so a backfill of one week takes an hour and nobody is paged for it"


def exchanges(key: str, chance: random.Random) -> Iterator[tuple[str, str, Any, Any]]:
    """A session: method, path, body and answer of each request. One in twenty never ends, one in thirty is silent."""
    session = {"harness": "openclaw", "sessionKey": key, "agentId": "atlas-agent", "runtimePath": "plugin"}
    yield "GET", "/health", None, {"status": "healthy", "uptime": 12.5, "pid": 7, "version": "0.145.7", "db": True}
    identity = {
        "identity": {"name": "Rig", "description": text(chance, 12)},
        "inject": text(chance, 60),
        "memories": [],
    }
    yield "POST", "/api/hooks/session-start", {**session, "project": "/srv/atlas"}, identity
    for _ in range(chance.randint(1, 3)):
        prompt = {**session, "userMessage": text(chance, 25), "lastAssistantMessage": text(chance, 40)}
        answer = {"inject": text(chance, 30), "memoryCount": 1, "sessionKnown": True}
        yield "POST", "/api/hooks/user-prompt-submit", prompt, answer
    if chance.random() < 0.3:
        recall = {"query": text(chance, 4), "sessionKey": key, "agentId": "atlas-agent", "limit": 5}
        meta = {"totalReturned": 0, "hasSupplementary": False, "noHits": True}
        yield "POST", "/api/memory/recall", recall, {"results": [], "query": "x", "method": "hybrid", "meta": meta}
    if chance.random() >= 0.05:
        transcript = "\n".join(f"{who}: {text(chance, 30)}" for who in ("User", "Assistant") * 2)
        bare = {} if chance.random() < 1 / 30 else {"transcript": transcript}
        end = {**session, "cwd": "/srv/atlas", "reason": "session_shutdown", **bare}
        yield "POST", "/api/hooks/session-end", end, {"memoriesSaved": 0, "queued": True, "jobId": f"j-{key}"}


def text(chance: random.Random, words: int) -> str:
    """A text of `words` random words."""
    return " ".join(chance.choices(SENTENCE.split(), k=words))


def recording(number: int) -> bytes:
    """The lines of a short recording; always the same ones for a number."""
    chance = random.Random(number)
    created = f"2026-11-{number % 28 + 1:02}T{number % 24:02}:{number % 60:02}:00.000Z"
    declared = {"agents": ["atlas-agent"], "harness": "openclaw", "bounds_s": {"start": 15.0, "prompt": 5.0}}
    lines: list[dict[str, Any]] = [
        {
            "kind": "header", "format": "signet-trace/1", "created": created, "target": f"connector-{number % 7}",
            "upstream": "http://127.0.0.1:3850", "daemon_version": "0.145.7", "declared": declared,
            "recorder": f"{number:016x}", "kit": "0.1.0", "connector_release": f"1.{number % 5}.0",
        }
    ]  # fmt: skip
    key = hashlib.sha256(str(number).encode()).hexdigest()[:32]
    for seq, (method, path, body, answer) in enumerate(exchanges(key, chance), 1):
        request = {"method": method, "path": path, "query": [], "headers": HEADERS, "body": body and {"json": body}}
        response = {"status": 200, "headers": ANSWER_HEADERS, "body": {"json": answer}}
        times = {"conn": 1, "t0": seq * 1.5, "t1": seq * 1.5 + 0.02}
        lines.append({"kind": "exchange", "seq": seq, **times, "request": request, "response": response})
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def data_set(folder: Path, count: int) -> int:
    """Write `count` recordings; return their size in bytes."""
    size = 0
    for number in range(count):
        path = folder / f"host-{number % FOLDERS:03}" / f"{number:06}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        size += path.write_bytes(recording(number))
    return size


def command(folder: Path, out: Path, *judges: str) -> list[str]:
    """The command of an audit; `judges` are the options that choose its workers."""
    words = ("audit", str(folder), "--out", str(out), "--fail-on", "never", *judges)
    return [sys.executable, "-m", "signet_conformance.cli", *words]


def digest(out: Path) -> str:
    """A hash of all results of an audit."""
    whole = hashlib.sha256()
    for path in sorted((out / "results").iterdir()):
        whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()


def audit(folder: Path, out: Path, workers: int, count: int) -> str:
    """Audit with a number of workers and print the cost; return the hash of the results."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command(folder, out, "--workers", str(workers)), capture_output=True, text=True, check=False)
    took_s = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode != 0:
        sys.exit(f"exit {done.returncode}: {done.stderr or done.stdout}")
    print(
        f"{workers} workers: {took_s:.1f} s, {cpu_s:.1f} s of CPU: {count / cpu_s:,.0f} recordings a second and core;"
        f" {after.ru_maxrss / 1024:.0f} MB at most in a process; results {digest(out)[:16]}",
        flush=True,
    )
    return digest(out)


def audit_with_kills(folder: Path, out: Path, kills: int, whole_s: float) -> str:
    """Audit, and kill the audit `kills` times on its way; return the hash of the final results."""
    chance = random.Random(3)
    done = 0
    while done < kills:
        process = subprocess.Popen(
            command(folder, out, "--workers", "2"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            if process.wait(chance.uniform(0.3, max(0.6, 2 * whole_s / kills))) != 0:
                sys.exit("an audit that was killed does not continue")
            # It has ended: remove a part of its results, so that it has to continue.
            (out / "results" / "summary.json").unlink()
            batches = sorted((out / "batches").iterdir())
            for path in chance.sample(batches, len(batches) // 2):
                path.unlink()
        except subprocess.TimeoutExpired:
            # Kill only the parent: its workers must end by themselves.
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            done += 1
    count = len(list((out / "batches").glob("*.jsonl")))
    print(f"{kills} kills, {count} batches done by then", flush=True)
    return digest(out) if audit_again(folder, out) else ""


def audit_again(folder: Path, out: Path) -> bool:
    """Let a killed audit finish; return whether it succeeds."""
    return subprocess.run(command(folder, out, "--workers", "2"), capture_output=True, check=False).returncode == 0


def on_a_cluster(folder: Path, out: Path) -> str | None:
    """Audit on a Dask cluster of two processes; return the hash of the results, or None if Dask is not installed."""
    try:
        from distributed import LocalCluster
    except ImportError:
        print("no cluster: dask is not installed")
        return None
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        began = time.monotonic()
        done = subprocess.run(
            command(folder, out, "--scheduler", cluster.scheduler_address), capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        sys.exit(f"exit {done.returncode}: {done.stderr or done.stdout}")
    print(f"a Dask cluster of 2: {time.monotonic() - began:.1f} s", flush=True)
    return digest(out)


def main() -> int:
    """Make the data set, audit it in each way, and compare; return the exit status."""
    parser = argparse.ArgumentParser(description="Check the promises of an audit.")
    parser.add_argument("--recordings", type=int, default=22_900)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--no-cluster", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="signet-prove-audit-") as name:
        base = Path(name)
        size = data_set(base / "set", options.recordings)
        print(f"{options.recordings:,} recordings of {size / options.recordings / 1000:.1f} kB", flush=True)
        digests = {}
        began = time.monotonic()
        for workers in options.workers:
            digests[f"{workers} workers"] = audit(base / "set", base / f"out-{workers}", workers, options.recordings)
        whole_s = (time.monotonic() - began) / len(options.workers)
        if options.kills:
            digests["killed"] = audit_with_kills(base / "set", base / "out-killed", options.kills, whole_s)
        if not options.no_cluster and (of_cluster := on_a_cluster(base / "set", base / "out-cluster")) is not None:
            digests["cluster"] = of_cluster
        rows = [
            json.loads(line)["recording"]
            for line in (base / f"out-{options.workers[0]}/results/recordings.jsonl").open()
        ]
        whole = len(rows) == len(set(rows)) == options.recordings
    print(f"every recording counted once: {whole}; the same bytes: {len(set(digests.values())) == 1}")
    return 0 if whole and len(set(digests.values())) == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
