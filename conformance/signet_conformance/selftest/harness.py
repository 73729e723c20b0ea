"""`python -m signet_conformance.selftest.harness --mutant ID`: the reference harness, broken in one place.

It speaks the driver protocol like the harness itself. Without `--mutant` it is the harness itself, with what each
`--variant ID` changes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from signet_conformance.drivers.model_process import MODEL_VARIABLE
from signet_conformance.errors import SignetConformanceError
from signet_conformance.selftest.host import seen_by_host
from signet_conformance.selftest.models import ChangedModels
from signet_conformance.selftest.mutants import NOTHING, Change, mutant
from signet_conformance.selftest.transport import Chain, MutatingTransport
from signet_conformance.selftest.variants import variant
from signet_reference_harness import driver
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session.host import Models

PLANTED_VARIABLE = "SIGNET_SELFTEST_PLANTED"
"""Holds the value of a secret, for the mutant that tells one."""

DEFAULT_PORT_VARIABLE = "SIGNET_SELFTEST_DEFAULT_PORT"
"""Holds the port that stands for the daemon's default one, for the mutant that calls it."""

APPLIED_VARIABLE = "SIGNET_SELFTEST_APPLIED"
"""Names the file that is to hold, in the end, the ids of the variants that changed a request."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve standard input until it ends; the exit status."""
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
    """The models that are asked: those of a server, where the kit has put one, else scripts in this process."""
    return ChangedModels(changes) if MODEL_VARIABLE in os.environ else ScriptedProvider


if __name__ == "__main__":
    sys.exit(main())
