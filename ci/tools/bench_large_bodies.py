"""Measures how long a large body takes, and how much it delays others, beside a direct connection in the same run.

32 connections send a small request every 20 ms; meanwhile another one sends requests of 4 MB, turn by turn: a
transcript, base64, and text that names a secret in every word. Turns through each proxy and without one alternate.
Prints the median time of the large answers, and the 50th and 99th percentile of the small ones. Asserts nothing about
time.

    python ci/tools/bench_large_bodies.py [--turns 3] [--large 4] [--redocly PATH/TO/redocly]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import bench_recorder

SIZE = 4 * 1024 * 1024
SMALL = json.dumps({"harness": "claude-code", "userMessage": "Round invoices half to even."}).encode()
ANSWER = b'{"inject":"","memoryCount":0}'
CONNECTIONS, EVERY_S, PAUSE_S = 32, 0.02, 0.2
WORDS = (
    *("the", "invoice", "rounding", "token", "for", "a", "session", "is", "half", "to", "even", "and", "key", "of"),
    *("each", "row", "was", "set", "by", "author", "with", "care", "while", "tests", "pass", "in", "branch", "that"),
    *("robin", "pushed", "origin", "at", "noon", "so", "deploy", "on", "friday", "please"),
)


def bodies() -> dict[str, bytes]:
    """The large bodies by kind, each of about SIZE bytes."""
    chance = random.Random(4)
    words = (chance.choice(WORDS) for _ in range(SIZE // 5))
    text = " ".join(f"\nUser: {word}" if number % 40 == 0 else word for number, word in enumerate(words))
    return {
        "transcript": json.dumps({"transcript": text[:SIZE]}).encode(),
        "base64": json.dumps({"content": base64.b64encode(chance.randbytes(SIZE * 3 // 4)).decode()}).encode(),
        "named": json.dumps({"content": "token=" * (SIZE // 6)}).encode(),
    }


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _time_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> float:
    """Send a request; return the seconds until its answer is complete."""
    began = time.perf_counter()
    head = b"POST /api/hooks/session-end HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
    answer_head = await reader.readuntil(b"\r\n\r\n")
    length = answer_head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
    return time.perf_counter() - began


async def _small(port: int, over: asyncio.Event, took: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(random.random() * EVERY_S)
    while not over.is_set():
        took.append(await _time_request(reader, writer, SMALL))
        await asyncio.sleep(EVERY_S)
    writer.close()


async def _turn(port: int, body: bytes, large: int) -> tuple[list[float], list[float]]:
    """Seconds of the large answers, and of the small ones beside them."""
    over, small = asyncio.Event(), list[float]()
    others = [asyncio.create_task(_small(port, over, small)) for _ in range(CONNECTIONS)]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    await asyncio.sleep(PAUSE_S)
    took = []
    for _ in range(large):
        took.append(await _time_request(reader, writer, body))
        await asyncio.sleep(PAUSE_S)
    over.set()
    await asyncio.gather(*others)
    writer.close()
    return took, small


def _serve() -> None:
    async def serve() -> None:
        server = await asyncio.start_server(_answer, "127.0.0.1", 0, limit=1 << 24)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(serve())


def main() -> None:
    """Run the turns and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--large", type=int, default=4, help="large requests a turn (default: 4)")
    parser.add_argument("--redocly", default=shutil.which("redocly"), help="Redocly's command (default: on PATH)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        _serve()
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(bench_recorder.running(sys.executable, __file__, "--serve"))
        direct = int(bench_recorder.line(server))
        upstream = f"http://127.0.0.1:{direct}"
        recorder = stack.enter_context(bench_recorder.recorder(upstream, folder, counts=False))
        ports = {"direct": direct, "recorder": recorder.port}
        if options.redocly:
            ports["redocly"] = stack.enter_context(bench_recorder.redocly(options.redocly, upstream, folder)).port
        if Path(sys.executable).with_name("mitmdump").exists():
            ports["mitmdump"] = stack.enter_context(bench_recorder.mitmdump(upstream, folder)).port
        for kind, body in bodies().items():
            took: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in ports}
            for _ in range(options.turns):
                for name, port in ports.items():
                    large, small = asyncio.run(_turn(port, body, options.large))
                    took[name][0].extend(large)
                    took[name][1].extend(small)
            for name, (large, small) in took.items():
                p50, p99 = (1000 * statistics.quantiles(small, n=100)[at] for at in (49, 98))
                figures = f"large {statistics.median(large) * 1000:7.1f} ms   small {p50:6.2f} / {p99:6.2f} ms"
                print(f"{kind:10} {name:9} {figures}   of {len(small)}", flush=True)


if __name__ == "__main__":
    main()
