"""`python -m signet_conformance.selftest.harness --mutant ID`: the reference harness with one change.

It speaks the driver protocol like the harness. Without `--mutant` it has the changes of each `--variant ID`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.drivers.model_process import MODEL_VARIABLE
from signet_conformance.errors import SignetConformanceError
from signet_conformance.selftest.models import ChangedModels
from signet_conformance.selftest.mutants import NOTHING, Change, mutant, variant
from signet_conformance.selftest.transport import Chain, MutatingTransport
from signet_reference_harness import driver
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session.host import Models

PLANTED_VARIABLE = "SIGNET_SELFTEST_PLANTED"
"""Holds the value of a secret, for the mutant that leaks one."""

DEFAULT_PORT_VARIABLE = "SIGNET_SELFTEST_DEFAULT_PORT"
"""Holds the port in place of the daemon's default one, for the mutant that calls it."""

APPLIED_VARIABLE = "SIGNET_SELFTEST_APPLIED"
"""Names the file for the ids of the variants that changed a request, written at the end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve standard input until it ends; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m signet_conformance.selftest.harness")
    parser.add_argument("--mutant", metavar="ID", help="a mutant of schemas/mutants.json (default: none)")
    parser.add_argument("--variant", metavar="ID", action="append", default=[], help="a variant; repeatable")
    parser.add_argument("--start-at-prompt", action="store_true", help="as for the harness itself")
    given = parser.parse_args(arguments)
    try:
        change = NOTHING if given.mutant is None else mutant(given.mutant).of_connector
        changes = [(name, change) for name in given.variant for change in variant(name).changes]
    except SignetConformanceError as problem:
        print(f"{problem}", file=sys.stderr)
        return problem.exit_status
    asked = [(given.mutant or "", change)] if change.get("do") == "model" else []
    asked += [named for named in changes if named[1]["do"] == "model"]
    changes = [named for named in changes if named[1]["do"] != "model"]
    models = _models(asked)
    if change.get("do") in ("environment", "model"):
        for variable in change.get("unset", ()):
            os.environ.pop(variable, None)
        change = NOTHING
    secret = os.environ.get(PLANTED_VARIABLE)
    if change.get("do") == "host":
        with seen_by_host(change):
            return driver.main(MutatingTransport(), models, starts_at_prompt=given.start_at_prompt)
    hosts = [(name, change) for name, change in changes if change["do"] == "host"]
    if not given.variant:
        port = int(os.environ.get(DEFAULT_PORT_VARIABLE, "0"))
        transport = MutatingTransport(change, secret=secret, default_port=port)
        return driver.main(transport, models, starts_at_prompt=given.start_at_prompt)
    chain = Chain([named for named in changes if named not in hosts], secret=secret)
    with contextlib.ExitStack() as seen:
        for _, shown in hosts:
            seen.enter_context(seen_by_host(shown))
        status = driver.main(chain.transport, models, starts_at_prompt=given.start_at_prompt)
    if (out := os.environ.get(APPLIED_VARIABLE)) is not None:
        applied = {name for name, _ in changes} - chain.idle
        applied |= models.applied if isinstance(models, ChangedModels) else set()
        Path(out).write_text(json.dumps(sorted(applied)), "utf-8")
    return status


def _models(changes: Sequence[tuple[str, Change]]) -> Models:
    """Return the models: those of a server if the kit started one, else scripts in this process."""
    return ChangedModels(changes) if MODEL_VARIABLE in os.environ else ScriptedProvider


@contextlib.contextmanager
def seen_by_host(change: Change) -> Iterator[None]:
    """Pass standard input and output on, with the members that a `host` change adds to the driver's answers.

    The driver reads descriptor 0 and writes descriptor 1, which are pipes to threads of this process.
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


if __name__ == "__main__":
    sys.exit(main())
