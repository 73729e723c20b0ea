"""Measures the reference harness: the time that it adds to a turn, and that of a token from server to listener.

    python ci/tools/bench_harness.py [--turns 100]

An embedded daemon and the scripted model run as processes of their own. A plain turn asks the model once, one with a
tool twice, with a recall in between. The servers' own time is measured right after each turn: a bare client sends the
bytes of the same requests over one connection, and waits for the last byte of each answer. The harness, with its HTTP
library, adds the rest of the turn's time. Nothing here can fail: the specification's bound (median 5 ms, 95th
percentile 20 ms) is printed beside each figure, and the median as a ratio to the servers' own time. On a busy machine,
the processor time of a turn says more than its duration.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final
from urllib.parse import urlsplit

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.messages import ToolCall
from signet_reference_harness.providers import CompletionChunk, CompletionResult, Provider, StopReason, settings
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.session.turn import TurnListener

PROVIDERS: Final = {
    "anthropic": ("anthropic", "anthropic-messages", ""),
    "openai chat": ("openai", "openai-completions", "/v1"),
    "openai responses": ("openai", "openai-responses", "/v1"),
    "ollama": ("ollama", "ollama-chat", ""),
}
RECALL: Final[dict[str, Any]] = {"type": "tool_call", "name": "memory_search", "arguments": {"query": "which port"}}
WORDS: Final = "The port of the ledger is 50051, and REST stays as it is until the spring."
ANSWERS: Final[Mapping[str, list[Mapping[str, Any]]]] = {
    "plain": [{"content": WORDS}],
    "tool": [{"content": [RECALL]}, {"content": WORDS}],
}
"""The model's answers in a turn of each kind."""
WARM_UP: Final = 5
MOST_TURNS: Final = 400
BOUND: Final = "bound 5 and 20 ms"


class FirstToken(TurnListener):
    """Notes the time of the first piece of each answer."""

    def __init__(self) -> None:
        self.at: list[float] = []
        self._waits = True

    def chunk(self, chunk: CompletionChunk) -> None:  # noqa: ARG002 - only the time of its arrival counts
        """Note the time if this is the first piece."""
        if self._waits:
            self.at.append(time.time())
        self._waits = False

    def message(self, message: object) -> None:  # noqa: ARG002 - any message ends an answer, whatever it says
        """Expect a first piece again."""
        self._waits = True


class BareClient:
    """A client that only sends bytes over one kept connection, and waits for the last byte of each answer."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._place = parts.hostname or "", parts.port or 80
        self._host = parts.netloc
        self._socket: socket.socket | None = None

    def request(self, method: str, path: str, body: Any, headers: Sequence[Sequence[str]] = ()) -> bytes:
        """The bytes of a request, with its headers except those of the connection."""
        content = b"" if body is None else json.dumps(body).encode()
        own = {"host": self._host, "content-length": str(len(content))}
        others = {name: value for name, value in headers if name.lower() not in own}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in {**others, **own}.items())]
        return "\r\n".join((*lines, "", "")).encode() + content

    def post(self, path: str, body: Any) -> bytes:
        """The bytes of a POST of JSON."""
        return self.request("POST", path, body, (("content-type", "application/json"),))

    def send(self, request: bytes) -> bytes:
        """Send a request; return the whole answer with its head."""
        while True:
            if self._socket is None:
                self._socket = socket.create_connection(self._place)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(ConnectionError):
                self._socket.sendall(request)
                answer = self._answer(self._socket)
                if answer is not None:
                    return answer
            # The connection was idle for too long; the next attempt opens another one.
            self.close()

    @staticmethod
    def _answer(connection: socket.socket) -> bytes | None:
        received, rest = b"", -1
        while rest != 0:
            piece = connection.recv(1 << 18)
            if not piece:
                return None
            received += piece
            head, ended, body = received.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE) if ended else None
            if length:
                rest = int(length[1]) - len(body)
            elif body.endswith(b"0\r\n\r\n"):
                rest = 0
        return received

    def value(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request; return the JSON of its answer, which must not be chunked."""
        return json.loads(self.send(self.request(method, path, body)).partition(b"\r\n\r\n")[2] or b"null")

    def seconds(self, requests: Sequence[bytes]) -> float:
        """Send the requests one after the other; return the seconds that they took."""
        began = time.perf_counter()
        for request in requests:
            self.send(request)
        return time.perf_counter() - began

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None


@contextmanager
def running(*command: str) -> Iterator[str]:
    """Run a program that prints its address within this context; yield the address."""
    with subprocess.Popen([sys.executable, "-m", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield json.loads(process.stdout.readline() if process.stdout is not None else b"")["url"]
        finally:
            process.terminate()


class Servers:
    """The servers of a turn, called without a harness."""

    def __init__(self, daemon_url: str, model: BareClient | None, answers: int) -> None:
        self._model = model
        self._daemon = BareClient(daemon_url)
        self._answers = answers
        self._replayed: list[bytes] = []
        session = {"sessionKey": "bare", "agentId": "atlas"}
        hook = {**session, "harness": "bench", "runtimePath": "plugin", "project": "/srv/atlas"}
        recall = {**session, "query": "which port", "limit": 10}
        self._daemon.send(self._daemon.post("/api/hooks/session-start", hook))
        self._hooks = [self._daemon.post("/api/hooks/user-prompt-submit", {**hook, "userMessage": "Which port?"})]
        if answers > 1:
            self._hooks.append(self._daemon.post("/api/memory/recall", recall))

    def learn(self) -> None:
        """Keep the model's requests of the last turn."""
        if self._model is not None:
            kept = self._model.value("GET", "/requests")["requests"][-self._answers :]
            self._replayed = [self._model.request("POST", each["path"], each["body"], each["headers"]) for each in kept]

    def seconds(self) -> float:
        """Send the requests of one turn; return the seconds that they took."""
        of_model = 0.0 if self._model is None else self._model.seconds(self._replayed)
        return of_model + self._daemon.seconds(self._hooks)


@dataclass
class TurnTimes:
    """Seconds by turn: added by the harness, of the servers, of the processor; and the time of each first token."""

    added: list[float] = field(default_factory=list)
    servers: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)


async def turns_of(provider: Provider, daemon_url: str, servers: Servers, count: int) -> TurnTimes:
    """Perform `count` turns, and call the servers without the harness after each."""
    host = SessionHost(HarnessConfig(origin=daemon_url, agent="atlas"))
    session = host.session_for("bench", project="/srv/atlas", agent=None, key=None)
    await host.start(session, "startup")
    times = TurnTimes()
    for number in range(count + WARM_UP):
        if number == WARM_UP:
            servers.learn()
        listener = FirstToken()
        session.conversation.clear()
        began, before = time.perf_counter(), time.process_time()
        result = await session.turn(f"Which port, no. {number}?", provider, listener=listener)
        turn, worked = time.perf_counter() - began, time.process_time() - before
        if result.error or result.reply != WORDS:
            raise SystemExit(f"the turn went wrong: {result.error or result}")
        if number >= WARM_UP:
            own = servers.seconds()
            times.added.append(turn - own)
            times.servers.append(own)
            times.worked.append(worked)
            times.firsts.append(listener.at[-1])
    await host.aclose()
    await provider.aclose()
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Figures for the reference harness.")
    parser.add_argument("--turns", type=int, default=100, help="how many to take with each provider (default: 100)")
    count = parser.parse_args().turns
    if not 2 <= count <= MOST_TURNS:
        parser.error(f"--turns is 2 to {MOST_TURNS}: the scripted model keeps the requests of no more")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signet-bench-")))
        (folder / "script.json").write_text(json.dumps({"format": "signet-llm/1", "turns": []}))
        daemon_url = stack.enter_context(running("signet_conformance.cli", "daemon"))
        llm = ("signet_reference_harness.cli", "llm", str(folder / "script.json"), "--until-stdin-closes")
        model_url = stack.enter_context(running(*llm))
        for kind, answers in ANSWERS.items():
            alone = Servers(daemon_url, None, len(answers))
            times = asyncio.run(turns_of(scripted(answers, count), daemon_url, alone, count))
            print(row(kind, "no model", times), flush=True)
            for name in PROVIDERS:
                print(*vendor_lines(kind, name, answers, daemon_url, model_url, count), sep="; ", flush=True)


def vendor_lines(
    kind: str, name: str, answers: list[Mapping[str, Any]], daemon_url: str, model_url: str, count: int
) -> Iterator[str]:
    """The lines of figures for turns with a vendor's interface."""
    vendor, api, path = PROVIDERS[name]
    model = BareClient(model_url)
    model.value("PUT", "/script", {"format": "signet-llm/1", "turns": answers * (WARM_UP + 2 * count)})
    model.value("DELETE", "/requests")
    servers = Servers(daemon_url, model, len(answers))
    flags = {"provider": vendor, "api": api, "model": "scripted", "base_url": model_url + path, "api_key": "none"}
    provider = settings.make_provider(settings.load(flags, {}, None))
    times = asyncio.run(turns_of(provider, daemon_url, servers, count))
    yield row(kind, name, times)
    kept = model.value("GET", "/requests")["requests"][-2 * len(answers) * count :]
    # For each turn, its own requests, then those that were sent without the harness.
    last = kept[len(answers) - 1 :: 2 * len(answers)]
    late = [came - request["first_chunk"] for came, request in zip(times.firsts, last, strict=True)]
    yield f"first token {figures(late)} after the server sent it"


def scripted(answers: Sequence[Mapping[str, Any]], count: int) -> ScriptedProvider:
    """A model in this process that gives the same answers."""
    call = ToolCall("c1", RECALL["name"], RECALL["arguments"])
    calls = CompletionResult(content="", tool_calls=(call,), stop_reason=StopReason.TOOL_USE)
    script = [CompletionResult(content=WORDS) if turn["content"] == WORDS else calls for turn in answers]
    return ScriptedProvider(script * (count + WARM_UP))


def figures(seconds: Sequence[float]) -> str:
    """Median and 95th percentile."""
    return f"{1000 * median(seconds):6.2f} ms, p95 {1000 * quantiles(seconds, n=20)[-1]:6.2f}"


def row(kind: str, name: str, times: TurnTimes) -> str:
    """The line of figures for one kind of turn and one provider."""
    own = median(times.servers)
    servers = f"{median(times.added) / own:4.1f} times the servers' own {1000 * own:5.2f}"
    worked = f"works {1000 * median(times.worked):5.2f} ms"
    return f"{kind:<6}{name:<17} adds {figures(times.added)} ({BOUND}), {servers}; {worked}"


if __name__ == "__main__":
    main()
