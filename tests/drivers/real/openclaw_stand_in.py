"""A stand-in for OpenClaw: `gateway run --port N` and `acp --session KEY`, which write down what they are told."""

from __future__ import annotations

import json
import os
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
    if said := os.environ.get("STAND_IN_SAYS"):
        print(said, said, sep="\n", flush=True)
    if "STAND_IN_ENDS" in os.environ:
        sys.exit(1)
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        told("gateway was asked to end")
        ended.set()

    signal.signal(signal.SIGTERM, end)
    print("2026-11-23T03:29:53.913+00:00 [gateway] ready", flush=True)
    ended.wait()


def bridge(session: str) -> None:
    """Answer every request, and stay when the input ends, as the program does."""
    told(f"bridge of {session}")
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] == "session/prompt":
            told(f"typed {request['params']['prompt'][0]['text']}")
        if request["params"].get("prompt") == [{"type": "text", "text": "/new"}] and "STAND_IN_STAYS" in os.environ:
            continue
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"sessionId": "one"}}
        print(json.dumps(answer), flush=True)
    signal.pause()


if sys.argv[1] == "gateway":
    gateway()
else:
    bridge(sys.argv[sys.argv.index("--session") + 1])
