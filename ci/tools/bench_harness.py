"""Figures for the reference harness: what it adds to a turn, and how long a token takes from server to listener.

    python ci/tools/bench_harness.py [--turns 100]

An embedded daemon and the scripted model run as processes of their own. A plain turn asks the model once, one with a
tool twice, with a recall in between. What the harness and the vendor's package add is the turn's time less the model
server's own and what a bare client waits for the daemon. Nothing here can fail: the specification's bound (median 5 ms,
95th percentile 20 ms) is printed beside each figure, and the median as a ratio to the bare client's wait. On a machine
that does other things too, what the processor worked for a turn says more than how long the turn took.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final
from urllib.parse import urlsplit

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.host import SessionHost
from signet_reference_harness.messages import ToolCall
from signet_reference_harness.providers import Provider, registry, settings
from signet_reference_harness.providers.completion import CompletionChunk, CompletionResult, StopReason
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.turn import TurnListener

PROVIDERS: Final = {
    "anthropic": ("anthropic", "anthropic-messages", ""),
    "openai chat": ("openai", "openai-completions", "/v1"),
    "openai responses": ("openai", "openai-responses", "/v1"),
    "ollama": ("ollama", "ollama-chat", ""),
}
RECALL: Final[dict[str, Any]] = {"type": "tool_call", "name": "memory_search", "arguments": {"query": "which port"}}
WORDS: Final = "The port of the ledger is 50051, and REST stays as it is until the spring."
WARM_UP: Final = 5
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
    """A plain client on one kept connection."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON."""
        content = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, content, {"content-type": "application/json"})
            return json.loads(self._connection.getresponse().read() or b"null")
        except http.client.RemoteDisconnected:
            # It was idle for too long; the next request opens another.
            self._connection.close()
            return self.send(method, path, body)

    def seconds(self, path: str, body: Any) -> float:
        """How long one POST takes."""
        began = time.perf_counter()
        self.send("POST", path, body)
        return time.perf_counter() - began


@contextmanager
def running(*command: str) -> Iterator[str]:
    """The address of a program that prints it, until the end."""
    with subprocess.Popen([sys.executable, "-m", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield json.loads(process.stdout.readline() if process.stdout is not None else b"")["url"]
        finally:
            process.terminate()


def daemon_seconds(daemon: Bare, turns: int, *, recalls: bool) -> float:
    """What one turn's requests to the daemon take a bare client: a prompt, and perhaps a recall."""
    hook = {
        "harness": "bench",
        "sessionKey": "bare",
        "agentId": "atlas",
        "runtimePath": "plugin",
        "project": "/srv/atlas",
    }
    daemon.send("POST", "/api/hooks/session-start", hook)
    taken = []
    for number in range(turns):
        prompt = daemon.seconds("/api/hooks/user-prompt-submit", {**hook, "userMessage": f"Which port, no. {number}?"})
        recall = {"query": "which port", "limit": 10, "sessionKey": "bare", "agentId": "atlas"}
        taken.append(prompt + (daemon.seconds("/api/memory/recall", recall) if recalls else 0))
    return median(taken)


async def turns_of(provider: Provider, daemon_url: str, count: int) -> tuple[list[float], list[float], list[float]]:
    """Seconds of each turn, those of them that the processor worked, and when the first piece of its answer came."""
    host = SessionHost(HarnessConfig(origin=daemon_url, agent="atlas"))
    session = host.session_for("bench", project="/srv/atlas", agent=None, key=None)
    await host.start(session, "startup")
    taken, worked, firsts = [], [], []
    for number in range(count + WARM_UP):
        listener = FirstToken()
        session.conversation.clear()
        began, before = time.perf_counter(), time.process_time()
        result = await session.turn(f"Which port, no. {number}?", provider, listener=listener)
        ended, processor = time.perf_counter(), time.process_time() - before
        if result.error or result.reply != WORDS:
            raise SystemExit(f"the turn went wrong: {result.error or result}")
        if number >= WARM_UP:
            taken.append(ended - began)
            worked.append(processor)
            firsts.append(listener.at[-1])
    await host.aclose()
    await provider.aclose()
    return taken, worked, firsts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Figures for the reference harness.")
    parser.add_argument("--turns", type=int, default=100, help="how many to take with each provider (default: 100)")
    count = parser.parse_args().turns
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signet-bench-")))
        (folder / "script.json").write_text(json.dumps({"format": "signet-llm/1", "turns": []}))
        daemon_url = stack.enter_context(running("signet_conformance.cli", "daemon"))
        llm = ("signet_reference_harness.cli", "llm", str(folder / "script.json"), "--until-stdin-closes")
        model_url = stack.enter_context(running(*llm))
        for kind, answers in (("plain", [{"content": WORDS}]), ("tool", [{"content": [RECALL]}, {"content": WORDS}])):
            bare = daemon_seconds(Bare(daemon_url), count, recalls=len(answers) > 1)
            taken, worked, _ = asyncio.run(turns_of(scripted(answers, count), daemon_url, count))
            print(row(kind, "no model", [turn - bare for turn in taken], worked, bare))
            for name, (vendor, api, path) in PROVIDERS.items():
                model = Bare(model_url)
                turns = answers * (count + WARM_UP)
                model.send("PUT", "/script", {"format": "signet-llm/1", "turns": turns})
                model.send("DELETE", "/requests")
                address = {"base_url": model_url + path, "api_key": "none"}
                provider = registry.provider(
                    settings.load({"provider": vendor, "api": api, "model": "scripted", **address}, {}, None)
                )
                taken, worked, firsts = asyncio.run(turns_of(provider, daemon_url, count))
                each = len(answers)
                kept = model.send("GET", "/requests")["requests"][-each * count :]
                server = [
                    sum(request["ended"] - request["began"] for request in kept[at : at + each])
                    for at in range(0, len(kept), each)
                ]
                added = [turn - own - bare for turn, own in zip(taken, server, strict=True)]
                asked = kept[each - 1 :: each]
                late = [came - request["first_chunk"] for came, request in zip(firsts, asked, strict=True)]
                print(
                    row(kind, name, added, worked, bare),
                    f"first token {figures(late)} after the server sent it",
                    sep="; ",
                )


def scripted(answers: Sequence[Mapping[str, Any]], count: int) -> ScriptedProvider:
    """A model in this process that gives the same answers."""
    call = ToolCall("c1", RECALL["name"], RECALL["arguments"])
    calls = CompletionResult(content="", tool_calls=(call,), stop_reason=StopReason.TOOL_USE)
    script = [CompletionResult(content=WORDS) if turn["content"] == WORDS else calls for turn in answers]
    return ScriptedProvider(script * (count + WARM_UP))


def figures(seconds: Sequence[float]) -> str:
    """Median and 95th percentile."""
    return f"{1000 * median(seconds):6.2f} ms, p95 {1000 * quantiles(seconds, n=20)[-1]:6.2f}"


def row(kind: str, name: str, added: Sequence[float], worked: Sequence[float], bare: float) -> str:
    """What the harness adds to a turn."""
    ratio = f"{median(added) / bare:4.1f} times the daemon's"
    return f"{kind:<6}{name:<17} adds {figures(added)} ({BOUND}), {ratio}; works {1000 * median(worked):5.2f} ms"


if __name__ == "__main__":
    main()
