"""`python -m signet_conformance.selftest.harness --mutant ID`: the reference harness, broken in one place.

It speaks the driver protocol like the harness itself. Without `--mutant` it is the harness itself, with what each
`--variant ID` changes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from signet_conformance.errors import SignetConformanceError
from signet_conformance.selftest.mutants import NOTHING, mutant
from signet_conformance.selftest.transport import Chain, MutatingTransport
from signet_conformance.selftest.variants import variant
from signet_reference_harness import driver

PLANTED_VARIABLE = "SIGNET_SELFTEST_PLANTED"
"""Holds the value of a secret, for the mutant that tells one."""

APPLIED_VARIABLE = "SIGNET_SELFTEST_APPLIED"
"""Names the file that is to hold, in the end, the ids of the variants that changed a request."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve standard input until it ends; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m signet_conformance.selftest.harness")
    parser.add_argument("--mutant", metavar="ID", help="a mutant of schemas/mutants.json (default: none)")
    parser.add_argument("--variant", metavar="ID", action="append", default=[], help="a variant; repeatable")
    given = parser.parse_args(arguments)
    try:
        change = NOTHING if given.mutant is None else mutant(given.mutant).of_connector
        changes = [(name, change) for name in given.variant for change in variant(name).changes]
    except SignetConformanceError as problem:
        print(f"{problem}", file=sys.stderr)
        return problem.exit_status
    if change.get("do") == "environment":
        for variable in change["unset"]:
            os.environ.pop(variable, None)
        change = NOTHING
    secret = os.environ.get(PLANTED_VARIABLE)
    if not changes:
        return driver.main(MutatingTransport(change, secret=secret))
    chain = Chain(changes, secret=secret)
    status = driver.main(chain.transport)
    if (out := os.environ.get(APPLIED_VARIABLE)) is not None:
        Path(out).write_text(json.dumps(chain.applied), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
