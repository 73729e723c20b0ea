"""Measures the recorder beside two peers in one run, turn by turn: plain `mitmdump` and Redocly's proxy.

All proxies run at the same time in front of one upstream, and short turns alternate, so that other work of the machine
affects all of them alike; ratios are medians over the turns. A turn keeps first 4, then 32 connections busy, each with
its next request as soon as its answer is complete, and at last a single one. Client and upstream (`http_load.py`) are
the same for all, bare sockets without a parser. The client's processor time is printed too: if it were near a proxy's,
the figures would measure the client. Prints requests a second, the median time of an answer on one connection, the
processor time of a request in the proxy (which a busy machine changes least), the ratios, and how many requests are
missing in the recording. Asserts nothing about time. A peer that is not installed is left out.

    python ci/tools/bench_recorder.py [--requests 1280] [--turns 9] [--redocly PATH/TO/redocly]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import http_load

CONNECTIONS = (4, 32)
WARMING = 2000
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


@dataclass
class Proxy:
    """A running proxy, and the measurements of its turns."""

    port: int
    process: int
    rates: dict[int, list[float]] = field(default_factory=lambda: {connections: [] for connections in CONNECTIONS})
    latencies_ms: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    client_s: float = 0.0
    counted: int = 0
    sent: int = 0

    def warm(self) -> None:
        """Send some load first, so that work which a proxy does only once is not measured."""
        self._load(CONNECTIONS[0], WARMING)

    def turn(self, requests: int) -> None:
        """Send `requests` requests over each number of connections, and a quarter of that over a single one."""
        before, own_before = _cpu_s(self.process), time.process_time()
        for connections, rates in self.rates.items():
            rates.append(self._load(connections, requests)[0])
        self.cpu_s += _cpu_s(self.process) - before
        self.client_s += time.process_time() - own_before
        self.counted += requests * len(self.rates)
        self.latencies_ms.append(statistics.median(self._load(1, max(400, requests // 4))[1]) * 1000)

    def _load(self, connections: int, requests: int) -> tuple[float, list[float]]:
        self.sent += requests
        head = (
            f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\ncontent-type: application/json\r\n"
            f"x-signet-runtime-path: plugin\r\ncontent-length: {len(REQUEST)}\r\n\r\n"
        )
        return http_load.load(self.port, head.encode() + REQUEST, ANSWER, connections, requests)

    def summary(self) -> str:
        """The medians over the turns, and the processor time of a request."""
        rates = "   ".join(f"{statistics.median(rates):7.0f}/s at {count}" for count, rates in self.rates.items())
        return (
            f"{rates}   {statistics.median(self.latencies_ms):6.3f} ms at 1   {self.cpu_us:5.0f} us of a processor a"
            f" request, {self.client_s / self.counted * 1e6:.0f} of the client's"
        )

    @property
    def cpu_us(self) -> float:
        """The processor time of a request, in microseconds."""
        return self.cpu_s / self.counted * 1e6


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def wait_until_idle(proxies: Iterable[Proxy]) -> None:
    """Wait until no proxy works any more: work that a turn left behind would slow the next proxy's turn."""
    before = None
    while before != (now := [_cpu_s(proxy.process) for proxy in proxies]):
        before = now
        # Linux counts processor time in ticks of 10 ms: a working proxy shows in ten of them.
        time.sleep(0.1)


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Run a process within this context."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def line(process: subprocess.Popen[str]) -> str:
    """The next line on a process's stdout."""
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


@contextmanager
def _peer(*command: str, port: int) -> Iterator[Proxy]:
    with running(*command) as process:
        _wait_for(port)
        yield Proxy(port, process.pid)


def mitmdump(upstream: str, _folder: Path) -> AbstractContextManager[Proxy]:
    """Run mitmdump in front of an upstream."""
    port, mitmdump = _free_port(), str(Path(sys.executable).with_name("mitmdump"))
    reverse = ("--quiet", "--mode", f"reverse:{upstream}", "--listen-host", "127.0.0.1", "-p", str(port))
    return _peer(mitmdump, *reverse, port=port)


def redocly(program: str, upstream: str, folder: Path) -> AbstractContextManager[Proxy]:
    """Run Redocly's proxy in front of an upstream."""
    port, har = _free_port(), str(folder / "redocly.har")
    return _peer(program, "proxy", "--target", upstream, "--port", str(port), "--har", har, port=port)


@contextmanager
def recorder(upstream: str, folder: Path, *, counts: bool = True) -> Iterator[Proxy]:
    """Run the recorder in front of an upstream; `counts` prints how many requests its recording lacks."""
    out = folder / "recorder.jsonl"
    command = (sys.executable, "-m", "signet_recording_proxy", "--upstream", upstream, "--out", str(out))
    with running(*command) as process:
        proxy = Proxy(int(json.loads(line(process))["url"].rpartition(":")[2]), process.pid)
        yield proxy
    if not counts:
        return
    with out.open("rb") as trace:
        missing = proxy.sent - sum(each.startswith(b'{"kind":"exchange"') for each in trace)
    print(f"{missing} of {proxy.sent} requests are missing in the recording")


def _compare(ours: Proxy, peer: str, theirs: Proxy) -> None:
    """Print the recorder's figures as ratios to a peer's: medians over the turns."""

    def ratio(of: Sequence[float], to: Sequence[float]) -> float:
        return statistics.median(a / b for a, b in zip(of, to, strict=True))

    rates = "   ".join(f"{ratio(ours.rates[count], theirs.rates[count]):.2f} at {count}" for count in CONNECTIONS)
    latency, cpu = ratio(ours.latencies_ms, theirs.latencies_ms), theirs.cpu_us / ours.cpu_us
    print(f"recorder / {peer}: {rates}   latency {latency:.2f}   requests a processor's second {cpu:.2f}")


def main() -> None:
    """Run the turns and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1280, help="a load, a multiple of 32 (default: 1280)")
    parser.add_argument("--turns", type=int, default=9, help="turns of each (default: 9)")
    parser.add_argument("--redocly", default=shutil.which("redocly"), help="Redocly's command (default: on PATH)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        http_load.serve(head % len(ANSWER) + ANSWER, REQUEST, lambda port: print(port, flush=True))
    requests = max(1, options.requests // 32) * 32
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(running(sys.executable, __file__, "--serve"))
        upstream = f"http://127.0.0.1:{line(server).strip()}"
        proxies = {"recorder": stack.enter_context(recorder(upstream, folder))}
        if options.redocly:
            proxies["redocly"] = stack.enter_context(redocly(options.redocly, upstream, folder))
        if Path(sys.executable).with_name("mitmdump").exists():
            proxies["mitmdump"] = stack.enter_context(mitmdump(upstream, folder))
        for proxy in proxies.values():
            proxy.warm()
        for _ in range(options.turns):
            for proxy in proxies.values():
                wait_until_idle(proxies.values())
                proxy.turn(requests)
        for name, proxy in proxies.items():
            print(f"{name:9} {proxy.summary()}")
        ours = proxies.pop("recorder")
        for name, proxy in proxies.items():
            _compare(ours, name, proxy)


if __name__ == "__main__":
    main()
