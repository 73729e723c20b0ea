"""`python -m signet_conformance.selftest.harness --mutant ID`: the reference harness, broken in one place.

It speaks the driver protocol like the harness itself. Without `--mutant` it is the harness itself.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from signet_conformance.errors import SignetConformanceError
from signet_conformance.selftest.mutants import NOTHING, mutant
from signet_conformance.selftest.transport import MutatingTransport
from signet_reference_harness import driver

PLANTED_VARIABLE = "SIGNET_SELFTEST_PLANTED"
"""Holds the value of a secret, for the mutant that tells one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve standard input until it ends; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m signet_conformance.selftest.harness")
    parser.add_argument("--mutant", metavar="ID", help="a mutant of schemas/mutants.json (default: none)")
    name = parser.parse_args(arguments).mutant
    try:
        change = NOTHING if name is None else mutant(name).of_connector
    except SignetConformanceError as problem:
        print(f"{problem}", file=sys.stderr)
        return problem.exit_status
    if change.get("do") == "environment":
        for variable in change["unset"]:
            os.environ.pop(variable, None)
        change = NOTHING
    return driver.main(MutatingTransport(change, secret=os.environ.get(PLANTED_VARIABLE)))


if __name__ == "__main__":
    sys.exit(main())
