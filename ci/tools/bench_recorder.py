"""Measures the recorder beside two peers in one run, turn by turn: plain `mitmdump` and Redocly's proxy.

One tiny upstream answers as fast as it can; clients keep 4 and then 32 connections busy, each with its next request as
soon as its answer is complete, and at last a single one. Prints requests a second, the median time of an answer on one
connection, the processor's time a request took in the proxy (which a busy machine changes least), the ratios of the
medians, and whether every request stands in the recording. Asserts nothing about time. A peer that is not installed is
left out.

    python ci/tools/bench_recorder.py [--requests 4800] [--turns 3] [--redocly PATH/TO/redocly]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvloop

CONNECTIONS = (4, 32)
PATH = "/api/hooks/user-prompt-submit"
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
_TICKS = os.sysconf("SC_CLK_TCK")


class _Messages(asyncio.Protocol):
    """Calls `whole` for each message that has come: a head, and the body whose length or chunks it tells."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A TCP connection's transport writes too, whichever event loop made it; asyncio declares the base alone.
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, mark, rest = self._data.partition(b"\r\n\r\n")
        if not mark:
            return
        lowered = head.lower()
        if b"chunked" in lowered:
            if not rest.endswith(b"0\r\n\r\n"):
                return
        else:
            _, _, length = lowered.partition(b"content-length:")
            if len(rest) < int(length.split(b"\r\n", 1)[0] or 0):
                return
        self._data = b""
        self.whole()

    def whole(self) -> None:
        """A message has come."""


class _Upstream(_Messages):
    ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(ANSWER) + ANSWER

    def whole(self) -> None:
        self.transport.write(self.ANSWER)


class _Client(_Messages):
    def __init__(self, message: bytes, requests: int, done: asyncio.Future[None], took_s: list[float]) -> None:
        super().__init__()
        self._message, self._left, self._done, self._took_s = message, requests, done, took_s
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._ask()

    def whole(self) -> None:
        self._took_s.append(time.perf_counter() - self._sent_at)
        self._left -= 1
        if self._left:
            self._ask()
        else:
            self._done.set_result(None)
            self.transport.close()

    def connection_lost(self, _failure: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(ConnectionError("the proxy closed a connection"))

    def _ask(self) -> None:
        self._sent_at = time.perf_counter()
        self.transport.write(self._message)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Upstream, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _load(port: int, connections: int, requests: int) -> tuple[float, float]:
    """Requests a second, and the median seconds until an answer was complete."""
    loop, took_s = asyncio.get_running_loop(), list[float]()
    message = (
        f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        f"x-signet-runtime-path: plugin\r\ncontent-length: {len(REQUEST)}\r\n\r\n"
    ).encode() + REQUEST
    ends = [loop.create_future() for _ in range(connections)]
    began = time.perf_counter()
    for end in ends:
        await loop.create_connection(
            partial(_Client, message, requests // connections, end, took_s),
            "127.0.0.1",
            port,
        )
    await asyncio.gather(*ends)
    return len(took_s) / (time.perf_counter() - began), statistics.median(took_s)


@dataclass
class Turn:
    """What a turn of one proxy gave."""

    rates: dict[int, float]
    latency_ms: float
    cpu_us: float


def _run(work: Coroutine[Any, Any, tuple[float, float]]) -> tuple[float, float]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _measured(port: int, process: int, requests: int) -> Turn:
    _run(_load(port, 4, 400))  # what is slow only once
    before = _cpu_s(process)
    rates = {connections: _run(_load(port, connections, requests))[0] for connections in CONNECTIONS}
    cpu_us = (_cpu_s(process) - before) / (requests * len(CONNECTIONS)) * 1e6
    return Turn(rates, _run(_load(port, 1, max(400, requests // 4)))[1] * 1000, cpu_us)


def _sent(requests: int) -> int:
    """How many requests one turn sends in all."""
    return 400 + requests * len(CONNECTIONS) + max(400, requests // 4)


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def _running(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
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


def _mitmdump(upstream: str, requests: int, _folder: Path) -> Turn:
    port = _free_port()
    mitmdump = str(Path(sys.executable).with_name("mitmdump"))
    command = (mitmdump, "--quiet", "--mode", f"reverse:{upstream}", "--listen-host", "127.0.0.1", "-p", str(port))
    with _running(*command) as process:
        _wait_for(port)
        return _measured(port, process.pid, requests)


def _redocly(program: str) -> Callable[[str, int, Path], Turn]:
    def measure(upstream: str, requests: int, folder: Path) -> Turn:
        port = _free_port()
        command = (program, "proxy", "--target", upstream, "--port", str(port), "--har", str(folder / "redocly.har"))
        with _running(*command) as process:
            _wait_for(port)
            return _measured(port, process.pid, requests)

    return measure


def _recorder(upstream: str, requests: int, folder: Path) -> Turn:
    out = folder / f"{time.time_ns()}.jsonl"
    command = (sys.executable, "-m", "signet_recording_proxy", "--upstream", upstream, "--out", str(out))
    with _running(*command) as process:
        turn = _measured(int(json.loads(_line(process))["url"].rpartition(":")[2]), process.pid, requests)
    with out.open("rb") as trace:
        missing = _sent(requests) - sum(line.startswith(b'{"kind":"exchange"') for line in trace)
    if missing:
        print(f"{missing} requests do not stand in the recording")
    out.unlink()
    return turn


def _shown(name: str, turn: Turn) -> str:
    rates = "   ".join(f"{rate:7.0f}/s at {connections}" for connections, rate in turn.rates.items())
    return f"{name:9} {rates}   {turn.latency_ms:6.3f} ms at 1   {turn.cpu_us:5.0f} us of a processor a request"


def _compare(turns: Mapping[str, list[Turn]]) -> None:
    """The recorder against each peer, by the medians over the turns."""
    ours = turns.pop("recorder") if isinstance(turns, dict) else turns["recorder"]

    def median(of: list[Turn], what: Callable[[Turn], float]) -> float:
        return statistics.median(map(what, of))

    for peer, theirs in turns.items():
        rates = "   ".join(
            f"{statistics.median(t.rates[c] for t in ours) / statistics.median(t.rates[c] for t in theirs):.2f} at {c}"
            for c in CONNECTIONS
        )
        latency = median(ours, lambda t: t.latency_ms) / median(theirs, lambda t: t.latency_ms)
        cpu = median(theirs, lambda t: t.cpu_us) / median(ours, lambda t: t.cpu_us)
        print(f"recorder / {peer}: {rates}   latency {latency:.2f}   requests a processor's second {cpu:.2f}")


def main() -> None:
    """Run the turns and print what they gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4800, help="a load, a multiple of 32 (default: 4800)")
    parser.add_argument("--turns", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--redocly", default=shutil.which("redocly"), help="Redocly's command (default: on PATH)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve())
        return
    requests = max(1, options.requests // 32) * 32
    proxies: dict[str, Callable[[str, int, Path], Turn]] = {"recorder": _recorder}
    if Path(sys.executable).with_name("mitmdump").exists():
        proxies["mitmdump"] = _mitmdump
    if options.redocly:
        proxies["redocly"] = _redocly(options.redocly)
    turns: dict[str, list[Turn]] = {name: [] for name in proxies}
    with _running(sys.executable, __file__, "--serve") as server, tempfile.TemporaryDirectory() as folder:
        upstream = f"http://127.0.0.1:{_line(server).strip()}"
        for number in range(options.turns):
            print(f"turn {number + 1}")
            for name, measure in proxies.items():
                turns[name].append(measure(upstream, requests, Path(folder)))
                print(f"  {_shown(name, turns[name][-1])}", flush=True)
    _compare(turns)


if __name__ == "__main__":
    main()
