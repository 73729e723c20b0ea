"""A stand-in for OpenClaw: `gateway run --port N` and `acp --url ADDRESS`, which write down what they are told."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from pathlib import Path
from types import FrameType


def told(line: str) -> None:
    """Write down a line."""
    with (Path.home() / "told").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def gateway() -> None:
    """Say what the test wants, be ready, and run until asked to end."""
    told("gateway begins")
    (Path.home() / "gateway.pid").write_text(str(os.getpid()))
    if said := os.environ.get("STAND_IN_SAYS"):
        print(said, said, sep="\n", flush=True)
    if "STAND_IN_ENDS" in os.environ:
        sys.exit(1)
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        told("gateway was asked to end")
        ended.set()

    def throw(_number: int, _frame: FrameType | None) -> None:
        print("Error: no\n    at f (/x/signet.js:1:2)", file=sys.stderr, flush=True)
        os._exit(1)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGUSR1, throw)
    print("2026-11-23T03:29:53.913+00:00 [gateway] ready", flush=True)
    if found := os.environ.get("STAND_IN_FINDS"):
        # The daemon is there again: as soon as somebody has looked whether it is.
        while not (Path.home() / "looked").exists() and not ended.wait(0.01):
            pass
        print(found, flush=True)
        told("gateway found the daemon")
    ended.wait()


def bridge() -> None:
    """Answer every request, and stay when the input ends, as the program does."""
    told("bridge begins")
    for line in sys.stdin:
        request = json.loads(line)
        params = request["params"]
        result: dict[str, object] = {}
        if request["method"] == "initialize" and "STAND_IN_IS_OLD" not in os.environ:
            result = {"agentCapabilities": {"sessionCapabilities": {"close": {}}}}
        if request["method"] == "session/new":
            told(f"session {params['_meta']['sessionKey']}")
            result = {"sessionId": f"{request['id']}"}
        if request["method"] == "session/close":
            told("session closed")
        if request["method"] == "session/prompt":
            told(f"typed {params['prompt'][0]['text']}")
            if params["prompt"][0]["text"] == "throw":
                gateway = int((Path.home() / "gateway.pid").read_text())
                running = os.pidfd_open(gateway)
                os.kill(gateway, signal.SIGUSR1)
                # As the program does, which answers when its connection is lost: the gateway has ended by then.
                select.select([running], [], [])
                print("the gateway is gone", file=sys.stderr, flush=True)
        if params.get("prompt") == [{"type": "text", "text": "/new"}] and "STAND_IN_STAYS" in os.environ:
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
    signal.pause()


if sys.argv[1] == "gateway":
    gateway()
else:
    bridge()
