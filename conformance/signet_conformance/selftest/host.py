"""Changes of what the host sees of a connector: the answers of the driver in this process, on their way out."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from typing import Any

from signet_conformance.selftest.mutants import Change


@contextlib.contextmanager
def seen_by_host(change: Change) -> Iterator[None]:
    """Pass standard input and output on, with the members that a `host` change adds to answers.

    The driver reads and writes the descriptors 0 and 1 as ever; those of the kit stand behind.
    """
    asked: dict[Any, str] = {}
    kit_in, kit_out = os.dup(0), os.dup(1)
    requests, to_driver = os.pipe()
    answers, to_kit = os.pipe()
    for given, descriptor in ((requests, 0), (to_kit, 1)):
        os.dup2(given, descriptor)
        os.close(given)
    listening = threading.Thread(target=_hand_over, args=(kit_in, to_driver, asked), name="requests", daemon=True)
    telling = threading.Thread(target=_tell, args=(answers, kit_out, asked, change), name="answers")
    listening.start()
    telling.start()
    try:
        yield
    finally:
        # The pipe ends with its last writer, and with it the thread.
        os.dup2(kit_out, 1)
        telling.join()


def _hand_over(kit_in: int, to_driver: int, asked: dict[Any, str]) -> None:
    with open(kit_in, "rb") as lines, open(to_driver, "wb", buffering=0) as driver:
        for line in lines:
            request = json.loads(line)
            step = request.get("step")
            asked[request.get("id")] = step["step"] if isinstance(step, dict) else str(request.get("op"))
            driver.write(line)


def _tell(answers: int, kit_out: int, asked: dict[Any, str], change: Change) -> None:
    with open(answers, "rb") as lines, open(kit_out, "wb", buffering=0) as kit:
        for line in lines:
            message = json.loads(line)
            result, about = message.get("result"), asked.get(message.get("id"))
            if isinstance(result, dict) and about is not None:
                added = {"hello": change.get("hello", {}), change.get("at", ""): change.get("result", {})}
                result.update(added.get(about, {}))
            kit.write(json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n")
