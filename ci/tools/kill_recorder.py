"""Kill the recorder with SIGKILL at random instants under load, and count the answered exchanges that were lost.

On each of many connections a client sends its next request when the answer to the last one is complete. Answers have
different forms; some requests are large and contain a secret. The trace must hold every exchange whose whole answer a
client received, if only as a pending line. Only its last line may be damaged, and it must not contain a secret. The
exit status is 1 if an exchange was lost or a secret was written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from signet_conformance import trace
from signet_conformance.trace.model import NOT_WRITTEN

LONGEST_S = 1.5
"""The recorder is killed at most this long after the first answer."""
REQUEST = json.dumps({"harness": "claude-code", "userMessage": "Round invoices half to even. " * 30}).encode()
ANSWER = json.dumps({"inject": "- Invoices are rounded half to even.\n" * 40}).encode()
SECRET = f"token-{'0123456789abcdef' * 2}"
LARGE = json.dumps({"transcript": f"{'Round invoices half to even. ' * 4000} token={SECRET}"}).encode()
EVERY = 7
"""Every seventh request is large."""
FORMS = (
    b"content-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER),
    b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(ANSWER), ANSWER),
    b"content-length: 0\r\n\r\n",
)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            number = 0
            if head.startswith(b"POST"):
                length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                number = int(head.split(b" ", 2)[1].rpartition(b"/")[2])
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + FORMS[number % len(FORMS)])
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _client(port: int, connection: int, answered: set[str], first: asyncio.Event) -> None:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in range(1_000_000):
            path = f"/{connection}/{number}"
            body = LARGE if number % EVERY == EVERY - 1 else REQUEST
            head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
            writer.write(b"%bcontent-length: %d\r\n\r\n%b" % (head.encode(), len(body), body))
            await _read_answer(reader)
            answered.add(path)
            first.set()
    except (asyncio.IncompleteReadError, ConnectionError):
        return


async def _read_answer(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"transfer-encoding: chunked" in head:
        while (line := await reader.readline()) not in (b"0\r\n", b""):
            await reader.readexactly(int(line, 16) + 2)
        await reader.readexactly(2)
        return
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.partition(b":")[2]))


async def _first_line(process: asyncio.subprocess.Process) -> bytes:
    if process.stdout is None:
        raise RuntimeError("the recorder was started without a pipe for its output")
    return await process.stdout.readline()


async def _kill_once(upstream: int, connections: int, after_s: float, out: Path) -> set[str]:
    """Kill the recorder once, and return the paths that it had answered."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "signet_recording_proxy", "--upstream", f"http://127.0.0.1:{upstream}", "--out", str(out),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        port = int(json.loads(await _first_line(process))["url"].rpartition(":")[2])
        answered: set[str] = set()
        first = asyncio.Event()
        clients = [asyncio.create_task(_client(port, n, answered, first)) for n in range(connections)]
        await first.wait()
        await asyncio.sleep(after_s)
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    await asyncio.gather(*clients)
    return answered


async def _kill_repeatedly(instants: int, connections: int, seed: int) -> int:
    instant_random = random.Random(seed)
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    upstream: int = server.sockets[0].getsockname()[1]
    all_answered = all_lost = torn = pending = shown = 0
    with tempfile.TemporaryDirectory() as folder:
        for instant in range(instants):
            after_s, out = instant_random.uniform(0, LONGEST_S), Path(folder) / f"{instant}.jsonl"
            answered = await _kill_once(upstream, connections, after_s, out)
            recorded = trace.read(out)
            lost = answered - {e.request.path for e in recorded.exchanges if e.response is not None and e.error is None}
            all_answered, all_lost = all_answered + len(answered), all_lost + len(lost)
            torn += bool(recorded.warnings)
            pending += sum(gap.why == NOT_WRITTEN for gap in recorded.gaps)
            shown += SECRET.encode() in out.read_bytes()
            print(f"killed after {after_s:.3f} s: {len(answered)} answered, {len(lost)} lost", flush=True)
    print(
        f"{instants} instants, {connections} connections, seed {seed}: {all_answered} answered, "
        f"{all_lost} lost, {pending} without bodies, {torn} traces with a torn last line, "
        f"{shown} with a secret"
    )
    return 1 if all_lost or shown else 0


def main() -> int:
    """Read the options, kill the recorder, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instants", type=int, default=40, help="how often to kill it (default: 40)")
    parser.add_argument("--connections", type=int, default=64, help="how many to open at a time (default: 64)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the instants (default: 1)")
    options = parser.parse_args()
    return asyncio.run(_kill_repeatedly(options.instants, options.connections, options.seed))


if __name__ == "__main__":
    raise SystemExit(main())
