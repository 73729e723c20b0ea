"""Measures the recorder's throughput against plain `mitmdump` in reverse mode, in one run, turn by turn.

One tiny upstream answers as fast as it can; one client process keeps 32 connections busy, each with
its next request as soon as its answer is complete. Prints requests per second of each turn, the
median ratio, and whether every request that was sent stands in the trace. Asserts nothing about time.

    python ci/tools/bench_recorder.py [--requests 4800] [--turns 3]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONNECTIONS = 32
REQUEST = json.dumps(
    {
        "harness": "claude-code",
        "project": "/workspace/src/acme-api",
        "sessionKey": "366659fd-0f23-4577-b9d7-16bcba37a8e9",
        "userMessage": "Write a regression test for the rounding bug in invoice_total(). " * 4,
        "runtimePath": "plugin",
    }
).encode()
ANSWER = json.dumps(
    {
        "inject": "# Memories\n" + "- Invoices are rounded half to even, per line and not per total.\n" * 20,
        "memoryCount": 20,
        "queryTerms": "rounding invoice total",
        "engine": "hybrid",
        "memories": [{"id": f"m-{i}", "score": i / 20, "content": "rounded half to even"} for i in range(10)],
    }
).encode()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(ANSWER)
    try:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            if request.startswith(b"POST"):
                await reader.readexactly(len(REQUEST))
            writer.write(head + ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _client(port: int, requests: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    message = (
        b"POST /api/hooks/user-prompt-submit HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\n"
        b"x-signet-runtime-path: plugin\r\ncontent-length: %d\r\n\r\n" % (port, len(REQUEST)) + REQUEST
    )
    for _ in range(requests):
        writer.write(message)
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(ANSWER))
    writer.close()


async def _load(port: int, requests: int) -> float:
    """Requests per second."""
    began = time.perf_counter()
    await asyncio.gather(*(_client(port, requests // CONNECTIONS) for _ in range(CONNECTIONS)))
    return requests / (time.perf_counter() - began)


@contextmanager
def _running(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _line(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline() if process.stdout else ""


def _wait_for(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _measure_mitmdump(upstream: str, requests: int) -> float:
    port = _free_port()
    mitmdump = str(Path(sys.executable).with_name("mitmdump"))
    command = (mitmdump, "--quiet", "--mode", f"reverse:{upstream}", "--listen-host", "127.0.0.1", "-p", str(port))
    with _running(*command):
        _wait_for(port)
        return asyncio.run(_load(port, requests))


def _measure_recorder(upstream: str, requests: int, out: Path) -> tuple[float, int]:
    """Requests per second, and how many exchanges the trace holds."""
    command = (sys.executable, "-m", "signet_recording_proxy", "--upstream", upstream, "--out", str(out))
    with _running(*command) as process:
        rate = asyncio.run(_load(int(json.loads(_line(process))["url"].rpartition(":")[2]), requests))
    with out.open("rb") as trace:
        return rate, sum(b'"kind":"exchange"' in line[:40] for line in trace)


def main() -> None:
    """Run the turns and print what they gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4800, help="a turn, a multiple of 32 (default: 4800)")
    parser.add_argument("--turns", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve())
        return
    requests = max(1, options.requests // CONNECTIONS) * CONNECTIONS
    ratios, lost = [], 0
    with _running(sys.executable, __file__, "--serve") as server, tempfile.TemporaryDirectory() as folder:
        upstream = f"http://127.0.0.1:{_line(server).strip()}"
        for turn in range(options.turns):
            plain = _measure_mitmdump(upstream, requests)
            recorded, exchanges = _measure_recorder(upstream, requests, Path(folder) / f"{turn}.jsonl")
            lost += requests - exchanges
            ratios.append(recorded / plain)
            print(f"turn {turn + 1}: mitmdump {plain:7.0f}/s   recorder {recorded:7.0f}/s   ratio {ratios[-1]:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f}; {CONNECTIONS} connections, {os.cpu_count()} cores")
    print(f"{requests * options.turns} sent, {lost} not in the trace")


if __name__ == "__main__":
    main()
