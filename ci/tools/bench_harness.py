"""Figures for the reference harness: what it adds to a turn, and how long a token takes from server to listener.

    python ci/tools/bench_harness.py [--turns 100]

An embedded daemon and the scripted model run as processes of their own. A plain turn asks the model once, one with a
tool twice, with a recall in between. The servers' own time is what the requests of a turn take a client that only
sends their bytes over a kept connection and waits for the last byte of each answer; it is measured beside each turn,
right after it. What the harness adds, with its HTTP library, is the turn's time less that. Nothing here can fail: the
specification's bound (median 5 ms, 95th percentile 20 ms) is printed beside each figure, and the median as a ratio to
the servers' own time. On a machine that does other things too, what the processor worked for a turn says more than how
long the turn took.
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
WARM_UP: Final = 5
MOST_TURNS: Final = 400
BOUND: Final = "bound 5 and 20 ms"


class FirstToken(TurnListener):
    """Notes when the first piece of each answer came."""

    def __init__(self) -> None:
        self.at: list[float] = []
        self._waits = True

    def chunk(self, chunk: CompletionChunk) -> None:  # noqa: ARG002 - only the time of its arrival counts
        """The time of the first piece."""
        if self._waits:
            self.at.append(time.time())
        self._waits = False

    def message(self, message: object) -> None:  # noqa: ARG002 - any message ends an answer, whatever it says
        """The next piece is again a first one."""
        self._waits = True


class Bare:
    """A client that only sends bytes over one kept connection, and waits for the last byte of each answer."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._place = parts.hostname or "", parts.port or 80
        self._host = parts.netloc
        self._socket: socket.socket | None = None

    def request(self, method: str, path: str, body: Any, headers: Sequence[Sequence[str]] = ()) -> bytes:
        """A request as it is sent, with the headers that are no concern of one connection."""
        content = b"" if body is None else json.dumps(body).encode()
        own = {"host": self._host, "content-length": str(len(content))}
        others = {name: value for name, value in headers if name.lower() not in own}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in {**others, **own}.items())]
        return "\r\n".join((*lines, "", "")).encode() + content

    def post(self, path: str, body: Any) -> bytes:
        """A POST of JSON as it is sent."""
        return self.request("POST", path, body, (("content-type", "application/json"),))

    def send(self, request: bytes) -> bytes:
        """The whole answer, head and all."""
        while True:
            if self._socket is None:
                self._socket = socket.create_connection(self._place)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(ConnectionError):
                self._socket.sendall(request)
                answer = self._answer(self._socket)
                if answer is not None:
                    return answer
            # It was idle for too long; the next attempt opens another.
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
        """The JSON of an answer that is not in chunks."""
        return json.loads(self.send(self.request(method, path, body)).partition(b"\r\n\r\n")[2] or b"null")

    def seconds(self, requests: Sequence[bytes]) -> float:
        """How long these take, one after the other."""
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
    """The address of a program that prints it, until the end."""
    with subprocess.Popen([sys.executable, "-m", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield json.loads(process.stdout.readline() if process.stdout is not None else b"")["url"]
        finally:
            process.terminate()


class Servers:
    """The servers of a turn, asked without a harness."""

    def __init__(self, daemon_url: str, model: Bare | None, answers: int) -> None:
        self._model = model
        self._daemon = Bare(daemon_url)
        self._answers = answers
        self._asked: list[bytes] = []
        session = {"sessionKey": "bare", "agentId": "atlas"}
        hook = {**session, "harness": "bench", "runtimePath": "plugin", "project": "/srv/atlas"}
        recall = {**session, "query": "which port", "limit": 10}
        self._daemon.send(self._daemon.post("/api/hooks/session-start", hook))
        self._hooks = [self._daemon.post("/api/hooks/user-prompt-submit", {**hook, "userMessage": "Which port?"})]
        if answers > 1:
            self._hooks.append(self._daemon.post("/api/memory/recall", recall))

    def learn(self) -> None:
        """Keep the requests of the last turn that reached the model."""
        if self._model is not None:
            kept = self._model.value("GET", "/requests")["requests"][-self._answers :]
            self._asked = [self._model.request("POST", each["path"], each["body"], each["headers"]) for each in kept]

    def seconds(self) -> float:
        """What the requests of one turn take."""
        asked = 0.0 if self._model is None else self._model.seconds(self._asked)
        return asked + self._daemon.seconds(self._hooks)


@dataclass
class Taken:
    """Turns, in seconds: what each added, what the servers took, what the processor worked; when a token came."""

    added: list[float] = field(default_factory=list)
    servers: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)


async def turns_of(provider: Provider, daemon_url: str, servers: Servers, count: int) -> Taken:
    """So many turns, and the servers asked without the harness after each."""
    host = SessionHost(HarnessConfig(origin=daemon_url, agent="atlas"))
    session = host.session_for("bench", project="/srv/atlas", agent=None, key=None)
    await host.start(session, "startup")
    taken = Taken()
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
            taken.added.append(turn - own)
            taken.servers.append(own)
            taken.worked.append(worked)
            taken.firsts.append(listener.at[-1])
    await host.aclose()
    await provider.aclose()
    return taken


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
        for kind, answers in (("plain", [{"content": WORDS}]), ("tool", [{"content": [RECALL]}, {"content": WORDS}])):
            alone = Servers(daemon_url, None, len(answers))
            taken = asyncio.run(turns_of(scripted(answers, count), daemon_url, alone, count))
            print(row(kind, "no model", taken), flush=True)
            for name in PROVIDERS:
                print(*asked(kind, name, answers, daemon_url, model_url, count), sep="; ", flush=True)


def asked(
    kind: str, name: str, answers: list[Mapping[str, Any]], daemon_url: str, model_url: str, count: int
) -> Iterator[str]:
    """The figures of turns with a vendor's interface."""
    vendor, api, path = PROVIDERS[name]
    model = Bare(model_url)
    model.value("PUT", "/script", {"format": "signet-llm/1", "turns": answers * (WARM_UP + 2 * count)})
    model.value("DELETE", "/requests")
    servers = Servers(daemon_url, model, len(answers))
    flags = {"provider": vendor, "api": api, "model": "scripted", "base_url": model_url + path, "api_key": "none"}
    provider = settings.make_provider(settings.load(flags, {}, None))
    taken = asyncio.run(turns_of(provider, daemon_url, servers, count))
    yield row(kind, name, taken)
    kept = model.value("GET", "/requests")["requests"][-2 * len(answers) * count :]
    # Each turn's requests, then those that were sent without the harness.
    last = kept[len(answers) - 1 :: 2 * len(answers)]
    late = [came - request["first_chunk"] for came, request in zip(taken.firsts, last, strict=True)]
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


def row(kind: str, name: str, taken: Taken) -> str:
    """What the harness adds to a turn."""
    own = median(taken.servers)
    servers = f"{median(taken.added) / own:4.1f} times the servers' own {1000 * own:5.2f}"
    worked = f"works {1000 * median(taken.worked):5.2f} ms"
    return f"{kind:<6}{name:<17} adds {figures(taken.added)} ({BOUND}), {servers}; {worked}"


if __name__ == "__main__":
    main()
