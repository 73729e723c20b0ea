"""Checks that the recorder's memory does not grow with the traffic, and that it refuses clearly if it has no room.

Bodies: a gigabyte each way, past a side that pauses, takes no more memory than 64 MB do. Connections: 10,000 at a time,
each with a request and its answer, opened twice; the second time takes no more memory than the first. Files: if the
process may open fewer files than there are connections, the connections without room are answered 503 and recorded as
not carried, and the others go on. Prints the figures; ends with 1 if any of these promises is broken.

    python ci/tools/prove_recorder_memory.py [--connections 10000] [--gigabytes 1]
"""

from __future__ import annotations

import argparse
import json
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import http_load

from signet_conformance import trace
from signet_conformance.trace.model import NOT_CARRIED

MB = 1 << 20
SMALLER = 64 * MB
SLACK_MB = 32.0
"""How much more memory the larger body may take than the smaller one: buffers of sockets and of the event loop."""
GROWTH = 1.1
"""The largest ratio of the memory of the second wave of connections to that of the first."""
FEW_FILES, ROOM_FOR_FEW = 512, 600
PAUSE_S = 1.0
"""How long a client pauses on purpose. Meanwhile, the recorder must not read more than it can pass on."""
PIECE = b"r" * MB
ANSWER = b'{"inject":"Invoices are rounded half to even."}'
REQUEST = b'{"harness":"claude-code","userMessage":"Round invoices."}'
SILENCE_S = 120.0


@dataclass
class Recorder:
    """A running recorder, and its memory."""

    process: subprocess.Popen[str]
    port: int

    def memory_mb(self, name: str = "VmRSS") -> float:
        """Its memory now, or for `VmHWM` its highest memory since `forget_peak`."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith(name)).split()[1]) / 1024

    def forget_peak(self) -> None:
        """Measure the highest memory from now on."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def connect(self) -> socket.socket:
        """Connect a new client."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=SILENCE_S)


@contextmanager
def _recorder(upstream: int, out: Path, files: int | None = None) -> Iterator[Recorder]:
    command = (sys.executable, "-m", "signet_recording_proxy", "--upstream", f"http://127.0.0.1:{upstream}")
    process = subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        if files is not None:
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (files, files))
        yield Recorder(process, int(json.loads(line)["url"].rpartition(":")[2]))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _upstream() -> Iterator[int]:
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline() if process.stdout else 0)
        finally:
            process.terminate()


# ---- bodies


def _receive(connection: socket.socket, size: int) -> None:
    """Read `size` bytes, with a pause once a megabyte has come."""
    buffer, left = memoryview(bytearray(MB)), size
    while left:
        count = connection.recv_into(buffer, min(MB, left))
        if not count:
            raise ConnectionError
        if left > size - MB >= left - count:
            time.sleep(PAUSE_S)
        left -= count


def _send(connection: socket.socket, size: int) -> None:
    for _ in range(size // MB):
        connection.sendall(PIECE)


def _head(connection: socket.socket) -> tuple[bytes, int]:
    """Read a head; return it with the length of the body."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            raise ConnectionError
        head += byte
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return head, int(length or 0)


def _serve_bodies(listening: socket.socket) -> None:
    """Read each request; answer with as many bytes as its path names."""
    while True:
        connection, _ = listening.accept()
        with connection, suppress(ConnectionError):
            while True:
                head, length = _head(connection)
                _receive(connection, length)
                wanted = int(head.split(b" ", 2)[1].rpartition(b"/")[2] or 0) if b"/bytes/" in head else 0
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % wanted)
                _send(connection, wanted)


def _bodies(folder: Path, size: int) -> bool:
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve_bodies, args=(listening,), daemon=True).start()
    peaks: dict[tuple[str, int], float] = {}
    with _recorder(listening.getsockname()[1], folder / "bodies.jsonl") as recorder:
        for way in ("request", "answer"):
            for length in (SMALLER, size):
                recorder.forget_peak()
                began = time.perf_counter()
                with recorder.connect() as client:
                    sent, wanted = (length, 0) if way == "request" else (0, length)
                    head = f"POST /bytes/{wanted} HTTP/1.1\r\nhost: x\r\ncontent-length: {sent}\r\n\r\n"
                    client.sendall(head.encode())
                    _send(client, sent)
                    _receive(client, _head(client)[1])
                peaks[way, length] = recorder.memory_mb("VmHWM")
                took_s = time.perf_counter() - began
                print(
                    f"{length / MB:6.0f} MB of {way}: at most {peaks[way, length]:.0f} MB, {took_s:.1f} s", flush=True
                )
    large = [(e.request, e.response)[e.request.body is None] for e in _exchanges(folder, "bodies")]
    whole = [message.body.size for message in large if message and message.body] == [SMALLER, size] * 2
    return whole and all(peaks[way, size] <= peaks[way, SMALLER] + SLACK_MB for way in ("request", "answer"))


def _exchanges(folder: Path, name: str) -> list[trace.Exchange]:
    return sorted(trace.read(folder / f"{name}.jsonl").exchanges, key=lambda exchange: exchange.seq)


# ---- connections


def _ask(connection: socket.socket, number: int) -> bytes:
    """Send a request; return the first line of its answer, which is empty if the connection was closed without one."""
    head = f"POST /{number} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(REQUEST)}\r\n\r\n"
    answer = b""
    with suppress(ConnectionError):
        connection.sendall(head.encode() + REQUEST)
        while not answer.endswith((ANSWER, b'files open"}')) and (data := connection.recv(65536)):
            answer += data
    return answer.partition(b"\r\n")[0]


def _wave(recorder: Recorder, count: int) -> tuple[Counter[bytes], float]:
    """Open connections, each with a request; return the counts of answers by first line, and the memory then."""
    clients, answers = list[socket.socket](), Counter[bytes]()
    try:
        for number in range(count):
            clients.append(recorder.connect())
            answers[_ask(clients[-1], number)] += 1
        return answers, recorder.memory_mb()
    finally:
        for client in clients:
            client.close()


def _connections(folder: Path, upstream: int, count: int) -> bool:
    with _recorder(upstream, folder / "connections.jsonl") as recorder:
        before = recorder.memory_mb()
        (first, first_mb), (second, second_mb) = _wave(recorder, count), _wave(recorder, count)
    share = (first_mb - before) / count * 1024
    print(
        f"{count} connections at a time: {first_mb:.0f} MB, {before:.0f} before ({share:.1f} kB each);"
        f" {second_mb:.0f} MB with as many others; {_counts(first + second)}",
        flush=True,
    )
    recorded = sum(e.response is not None and e.error is None for e in _exchanges(folder, "connections"))
    return (first + second)[b"HTTP/1.1 200 OK"] == recorded == 2 * count and second_mb <= first_mb * GROWTH


def _few_files(folder: Path, upstream: int) -> bool:
    with _recorder(upstream, folder / "few.jsonl", FEW_FILES) as recorder:
        answers, _ = _wave(recorder, ROOM_FOR_FEW)
        # Give the recorder time to notice that the clients have left: it reports nothing that could be awaited.
        time.sleep(PAUSE_S)
        with recorder.connect() as client:
            after = _ask(client, 0)
    ends = Counter(exchange.error or "carried" for exchange in _exchanges(folder, "few"))
    print(f"{ROOM_FOR_FEW} connections, {FEW_FILES} files: {_counts(answers)}; then {after.decode()}; {dict(ends)}")
    served, refused = answers[b"HTTP/1.1 200 OK"], answers[b"HTTP/1.1 503 Service Unavailable"]
    recorded = ends["carried"] == served + 1 and ends[NOT_CARRIED] == refused
    return recorded and served > FEW_FILES // 2 and served + refused == ROOM_FOR_FEW and after == b"HTTP/1.1 200 OK"


def _counts(answers: Counter[bytes]) -> str:
    return ", ".join(f"{count} {line.decode() or 'closed'}" for line, count in answers.items())


def main() -> int:
    """Check all three promises; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=10_000, help="at a time (default: 10000)")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="the larger body (default: 1)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if options.serve:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(ANSWER)
        http_load.serve(head + ANSWER, REQUEST, lambda port: print(port, flush=True))
    with tempfile.TemporaryDirectory() as folder, _upstream() as upstream:
        promises = {
            "bodies": _bodies(Path(folder), int(options.gigabytes * 1024) * MB),
            "connections": _connections(Path(folder), upstream, options.connections),
            "files": _few_files(Path(folder), upstream),
        }
    print(", ".join(f"{name}: {'held' if holds else 'NOT HELD'}" for name, holds in promises.items()))
    return 0 if all(promises.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
